// SPDX-License-Identifier: Apache-2.0
/*
 * During a rolling update two instances serve at the same time; only the holder of
 * flock(<data dir>/publish.lock) writes slices, so that an old and a new version never fight.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd/agent.h"

#define LOCK_RETRY_US (1000000ULL)
#define ERROR_RETRY_US (30 * 1000000ULL)

/* 0: the lock is ours; -EWOULDBLOCK: another instance has it. */
static int take_lock(struct agent *a, struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/publish.lock", a->data_dir);

	if (a->publish_lock < 0)
		a->publish_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (a->publish_lock < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot open %s", path);
	if (flock(a->publish_lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return err_errno(err, ERR_RETRY, errno, "cannot lock %s", path);
}

static int start_publisher(struct agent *a, struct err *err)
{
	int r = publisher_new(a->loop, a->kube, &a->publish, &a->publisher, err);

	if (r == 0 && a->inventory)
		publisher_set(a->publisher, a->inventory);
	return r;
}

static void try_publish(void *data)
{
	struct agent *a = data;
	struct err err = { 0 };
	int r = take_lock(a, &err);

	if (r == -EWOULDBLOCK) {
		if (!a->waiting_for_lock)
			log_info(
				"another instance of this driver publishes, waiting for it to end");
		a->waiting_for_lock = true;
		loop_timer_set(a->publish_timer, LOCK_RETRY_US);
		return;
	}
	if (r == 0)
		r = start_publisher(a, &err);
	if (r < 0) {
		log_error("cannot publish, will try again", KV("error", "%s", err.msg));
		loop_timer_set(a->publish_timer, ERROR_RETRY_US);
	}
}

void publish_start(struct agent *a)
{
	a->publish_timer = loop_timer_new(a->loop, try_publish, a);
	try_publish(a);
}

void publish_stop(struct agent *a)
{
	a->publisher = publisher_free(a->publisher);
	a->publish_timer = loop_timer_free(a->publish_timer);
	closep(&a->publish_lock);
}

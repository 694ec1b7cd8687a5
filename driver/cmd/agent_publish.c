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

static int start_publisher(struct agent *a, struct err *err)
{
	const struct publish_options po = {
		.driver = a->options.driver_name,
		.node_name = a->options.node_name,
		.kinds = a->options.kinds,
		.mirror = a->options.mirror == 0,
	};
	int r = publisher_new(a->loop, a->kube, &po, &a->publisher, err);

	if (r == 0 && a->inventory)
		publisher_set(a->publisher, a->inventory);
	return r;
}

static void on_lock_timer(void *data)
{
	struct agent *a = data;
	struct err err = { 0 };

	if (flock(a->publish_lock, LOCK_EX | LOCK_NB) < 0) {
		loop_timer_set(a->publish_timer, LOCK_RETRY_US);
		return;
	}
	log_info("publishing from here on");
	if (start_publisher(a, &err) < 0)
		log_error("cannot publish", KV("error", "%s", err.msg));
}

int publish_start(struct agent *a, struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/publish.lock", a->data_dir);

	a->publish_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (a->publish_lock < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot open %s", path);
	if (flock(a->publish_lock, LOCK_EX | LOCK_NB) == 0)
		return start_publisher(a, err);
	if (errno != EWOULDBLOCK)
		return err_errno(err, ERR_RETRY, errno, "cannot lock %s", path);
	log_info("another instance of this driver publishes, waiting for it to end",
		 KV("lock", "%s", path));
	a->publish_timer = loop_timer_new(a->loop, on_lock_timer, a);
	loop_timer_set(a->publish_timer, LOCK_RETRY_US);
	return 0;
}

void publish_stop(struct agent *a)
{
	publisher_free(a->publisher);
	loop_timer_free(a->publish_timer);
	closep(&a->publish_lock);
}

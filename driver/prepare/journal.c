// SPDX-License-Identifier: Apache-2.0
#include "prepare/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

/* A claim of 32 devices needs about 20 KiB. */
#define RECORD_BYTES_MAX (1024 * 1024)
/* The lock is held for some milliseconds; whoever holds it much longer hangs. */
#define LOCK_WAIT_US 20000000u
#define LOCK_POLL_FIRST_US 2000u
#define LOCK_POLL_MAX_US 100000u

static int make_dir(const struct journal *j, struct err *err)
{
	int r = dir_make(j->dir, 0700, err);

	/* a record is durable only if the name of its folder is */
	return r < 0 ? r : dir_sync(j->data_dir, err);
}

int journal_init(struct journal *j, const char *data_dir, struct err *err)
{
	j->data_dir = xstrdup(data_dir);
	j->dir = xasprintf("%s/claims", data_dir);
	j->lock_path = xasprintf("%s/serialize.lock", data_dir);
	j->lock_wait_us = LOCK_WAIT_US;
	atomic_init(&j->stopping, false);
	j->corrupt = 0;
	j->unreadable = (struct strlist){ 0 };
	return make_dir(j, err);
}

void journal_done(struct journal *j)
{
	free(j->data_dir);
	free(j->dir);
	free(j->lock_path);
	strlist_done(&j->unreadable);
	j->data_dir = j->dir = j->lock_path = NULL;
}

int journal_lock(const struct journal *j, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = open(j->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	uint64_t end = clock_us() + j->lock_wait_us;
	unsigned int pause = LOCK_POLL_FIRST_US;

	if (fd < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot open %s", j->lock_path);
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return err_errno(err, ERR_RETRY, errno, "cannot lock %s", j->lock_path);
		if (atomic_load(&j->stopping) || clock_us() >= end)
			return err_set(
				err, ERR_RETRY, EBUSY,
				"%s is held by another process: see \"fuser %s\"; if it is an "
				"agent that hangs, restart it",
				j->lock_path, j->lock_path);
		usleep(pause);
		pause = pause * 2 < LOCK_POLL_MAX_US ? pause * 2 : LOCK_POLL_MAX_US;
	}
	if (access(j->dir, F_OK) < 0 && errno == ENOENT) {
		int r = make_dir(j, err);

		if (r < 0)
			return r;
		log_warn("the folder of the records was removed, made again",
			 KV("folder", "%s", j->dir));
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static char *record_path(const struct journal *j, const char *uid)
{
	return xasprintf("%s/%s.json", j->dir, uid);
}

static int read_object(const char *path, json_t **ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = file_read(path, RECORD_BYTES_MAX, &text, &len, err);

	if (r < 0)
		return r == -EFBIG ? -EINVAL : r;
	return json_parse(text, len, ret, err);
}

static int read_one(const char *path, const char *uid, struct record **ret, struct err *err)
{
	_cleanup_(record_freep) struct record *record = NULL;
	_cleanup_json_ json_t *object = NULL;
	int r = read_object(path, &object, err);

	if (r < 0)
		return r;
	r = record_from_json(object, &record, err);
	if (r < 0)
		return r;
	if (!streq(record->uid, uid))
		return err_set(err, ERR_INVALID, EINVAL, "it holds the claim %s", record->uid);
	*ret = TAKE_PTR(record);
	return 0;
}

int journal_load(struct journal *j, const char *uid, struct record **ret, struct err *err)
{
	_cleanup_free_ char *path = record_path(j, uid), *aside = NULL;
	struct err why = { 0 };
	int r;

	r = read_one(path, uid, ret, &why);
	if (r == -EINVAL) {
		aside = xasprintf("%s.corrupt", path);
		if (rename(path, aside) < 0)
			return err_errno(err, ERR_RETRY, errno,
					 "record %s is unreadable and cannot be set aside", path);
		j->corrupt++;
		log_warn("record is unreadable, set aside", KV("file", "%s", aside),
			 KV("err", "%s", why.msg));
		return err_set(err, ERR_NOT_FOUND, ENOENT, "there is no record %s", path);
	}
	if (r < 0) {
		if (r == -EOPNOTSUPP)
			err_wrap(&why, "record %s", path);
		if (err)
			*err = why;
	}
	return r;
}

void record_list_done(struct record_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		record_free(list->items[i]);
	free(list->items);
	*list = (struct record_list){ 0 };
}

/* "<uid>.json" → uid; NULL: another kind of file. */
static char *uid_of(const char *file)
{
	_cleanup_free_ char *uid = NULL;

	if (!ends_with(file, ".json"))
		return NULL;
	uid = xstrndup(file, strlen(file) - strlen(".json"));
	return is_uid(uid) ? TAKE_PTR(uid) : NULL;
}

/* What other claims have to know of a record that this version cannot serve; NULL: unreadable. */
static struct record *load_holder(const struct journal *j, const char *uid)
{
	_cleanup_free_ char *path = record_path(j, uid);
	_cleanup_json_ json_t *object = NULL;

	return read_object(path, &object, NULL) < 0 ? NULL : record_holder(object, uid);
}

/* A record that cannot be read concerns its own claim only.  Each call reads all: warn once. */
static void skip_unreadable(struct journal *j, const char *uid, const struct err *why)
{
	if (strlist_has(&j->unreadable, uid))
		return;
	strlist_add(&j->unreadable, uid);
	log_warn("record cannot be read, its claim can be neither prepared nor unprepared",
		 KV("uid", "%s", uid), KV("err", "%s", why->msg));
}

int journal_load_all(struct journal *j, struct record_list *ret, struct err *err)
{
	struct strlist files = { 0 };
	int r = dir_list_at(AT_FDCWD, j->dir, &files);

	if (r < 0)
		err_errno(err, ERR_RETRY, r, "cannot list %s", j->dir);
	for (size_t i = 0; r == 0 && i < files.n; i++) {
		_cleanup_free_ char *uid = uid_of(files.items[i]);
		struct record *record = NULL;
		struct err why = { 0 };
		int e;

		if (!uid)
			continue;
		e = journal_load(j, uid, &record, &why);
		if (e == -EOPNOTSUPP)
			record = load_holder(j, uid);
		else if (e < 0 && e != -ENOENT)
			skip_unreadable(j, uid, &why);
		if (record)
			*array_push(ret->items, ret->n, ret->cap) = record;
	}
	strlist_done(&files);
	return r;
}

static void add_functions(const json_t *object, const char *uid, struct strlist *ret)
{
	_cleanup_(record_freep) struct record *record = record_holder(object, uid);

	for (size_t i = 0; i < record->n_devices; i++)
		for (size_t k = 0;
		     !record->devices[i].admin_access && k < record->devices[i].functions.n; k++)
			strlist_add(ret, record->devices[i].functions.items[k]);
}

int journal_held(const struct journal *j, struct strlist *ret, struct err *err)
{
	struct strlist files = { 0 };
	int r = dir_list_at(AT_FDCWD, j->dir, &files);

	if (r < 0)
		err_errno(err, ERR_RETRY, r, "cannot list %s", j->dir);
	for (size_t i = 0; r == 0 && i < files.n; i++) {
		_cleanup_free_ char *uid = uid_of(files.items[i]), *path = NULL;
		_cleanup_json_ json_t *object = NULL;

		if (!uid)
			continue;
		path = record_path(j, uid);
		r = read_object(path, &object, err);
		if (r == 0)
			add_functions(object, uid, ret);
		else if (r == -ENOENT || r == -EINVAL)
			r = 0; /* removed meanwhile, or malformed: it is set aside */
	}
	strlist_done(&files);
	return r;
}

int journal_save(const struct journal *j, const struct record *record, struct err *err)
{
	_cleanup_free_ char *path = record_path(j, record->uid), *text = NULL;
	_cleanup_json_ json_t *object = record_to_json(record);

	text = json_text_pretty(object);
	return file_write_atomic(path, text, strlen(text), 0600, FILE_DURABLE, err);
}

int journal_remove(const struct journal *j, const char *uid, struct err *err)
{
	_cleanup_free_ char *path = record_path(j, uid);

	return file_remove(path, 0, err);
}

int journal_sync(const struct journal *j, struct err *err)
{
	return dir_sync(j->dir, err);
}

void journal_remove_stale(const struct journal *j)
{
	file_remove_stale(j->dir, "");
}

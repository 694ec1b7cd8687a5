/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_JOURNAL_H
#define TWINRAIL_PREPARE_JOURNAL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/err.h"
#include "prepare/record.h"

/*
 * The records on disk: <data dir>/claims/<uid>.json.  Nothing is cached: whoever reads or writes
 * does so between journal_lock() and closing its descriptor, so that an old and a new agent can
 * serve side by side.  Blocking; used on one thread at a time.
 */
struct journal {
	char *data_dir;
	char *dir; /* "<data dir>/claims" */
	char *lock_path; /* "<data dir>/serialize.lock" */
	uint64_t lock_wait_us; /* how long to wait for it */
	atomic_bool stopping; /* set on any thread: wait for the lock no longer */
	unsigned int corrupt; /* records set aside so far */
	struct strlist unreadable; /* uids whose records failed to be read, warned about */
};

/* Makes the directories, durably. */
int journal_init(struct journal *j, const char *data_dir, struct err *err)
	__attribute__((warn_unused_result));
void journal_done(struct journal *j);

/*
 * Waits for the lock, less long than kubelet does; the caller closes *ret_fd to release it.
 * ERR_RETRY names the file when somebody else holds it all the time.  Makes the folder of the
 * records again when it is missing.
 */
int journal_lock(const struct journal *j, int *ret_fd, struct err *err)
	__attribute__((warn_unused_result));

/*
 * Read one record.  ERR_NOT_FOUND with -ENOENT: there is none, or it was unreadable and has been
 * set aside as "<uid>.json.corrupt" (counted and logged).  ERR_PERMANENT with -EOPNOTSUPP: it is
 * there but belongs to a later version.
 */
int journal_load(struct journal *j, const char *uid, struct record **ret, struct err *err)
	__attribute__((warn_unused_result));

struct record_list {
	struct record **items; /* sorted by uid */
	size_t n, cap;
};
void record_list_done(struct record_list *list);

/*
 * All records.  Those of a later version are there as record_holder() makes them; malformed ones
 * are set aside as above; others that cannot be read (EIO, EACCES, a directory) are left out with a
 * warning, and journal_load() of that uid says why.
 */
int journal_load_all(struct journal *j, struct record_list *ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * PCI addresses of all functions that recorded claims hold, but for adminAccess; appended to "ret",
 * one may be there twice.  Only reads, without the lock: on any thread.  An error when a record may
 * hold functions that are not known.
 */
int journal_held(const struct journal *j, struct strlist *ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * Write a record: temporary file, fsync, rename.  The rename is durable after journal_sync(), which
 * the claims of one call share.
 */
int journal_save(const struct journal *j, const struct record *record, struct err *err)
	__attribute__((warn_unused_result));
/* A record that is not there is success; durable after journal_sync(). */
int journal_remove(const struct journal *j, const char *uid, struct err *err)
	__attribute__((warn_unused_result));
int journal_sync(const struct journal *j, struct err *err) __attribute__((warn_unused_result));

/* Remove what killed writers left behind. */
void journal_remove_stale(const struct journal *j);

#endif

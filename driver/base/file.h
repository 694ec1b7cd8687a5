/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_FILE_H
#define TWINRAIL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/*
 * Read a whole file below directory "dirfd" (AT_FDCWD: plain path), at most "max" bytes.
 * The result is NUL-terminated; *ret_len (may be NULL) has the length without it.
 * 0 or a negative errno, -EFBIG when the file is longer than "max", -EISDIR for a directory,
 * -EOPNOTSUPP for anything else that is no regular file: a pipe or device may never end.
 */
int file_read_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
	__attribute__((warn_unused_result));

/* file_read_at() of a descriptor that is open for reading; it stays the caller's. */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len)
	__attribute__((warn_unused_result));

/* file_read_at() with a text for people. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
	__attribute__((warn_unused_result));

enum file_write_flags {
	FILE_DURABLE = 1, /* fsync the file before the rename */
	FILE_SYNC_DIR = 2, /* fsync the directory after it */
};

/*
 * Replace "path" by "data" so that a reader sees the old or the new content and nothing between:
 * a temporary file ".<name>.<random>.tmp" beside it, then rename.  The file gets "mode".
 */
int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode, int flags,
		      struct err *err) __attribute__((warn_unused_result));

/* unlink(); a file that is not there is success.  "flags": FILE_SYNC_DIR. */
int file_remove(const char *path, int flags, struct err *err) __attribute__((warn_unused_result));

/* fsync a directory. */
int dir_sync(const char *path, struct err *err) __attribute__((warn_unused_result));

/* mkdir -p; each directory that is made gets "mode". */
int dir_make(const char *path, mode_t mode, struct err *err) __attribute__((warn_unused_result));

/* Names in a directory without "." and "..", sorted by byte value.  0 or a negative errno. */
int dir_list_at(int dirfd, const char *path, struct strlist *ret)
	__attribute__((warn_unused_result));

/* dir_list_at() of a directory that is open; takes over the descriptor. */
int dir_list_fd(int fd, struct strlist *ret) __attribute__((warn_unused_result));

/* Remove what a killed writer left: "<dir>/.<prefix>*.tmp". */
void file_remove_stale(const char *dir, const char *prefix);

#endif

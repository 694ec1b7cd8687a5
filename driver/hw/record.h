/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_RECORD_H
#define TWINRAIL_HW_RECORD_H

#include <stddef.h>

#include "base/str.h"
#include "hw/root.h"

/*
 * Internal to hw/: recording a machine through its readers.  Whoever touches a file below a root
 * tells the root's recorder, if it has one, with these functions; so a recording cannot lack what a
 * reader saw.  "path" is what was opened, relative to the directory "dirfd", which is root->fd or
 * one that was opened below it.  The recorder follows the path itself: each link on the way is
 * recorded, and the file is recorded where it really lies.
 */

struct hw_recorder *hw_recorder_new(void);
struct hw_recorder *hw_recorder_free(struct hw_recorder *rec); /* NULL is fine; returns NULL */

/* A file was read: "len" bytes of "data", or reading failed with "r" < 0. */
void hw_record_file(const struct hw_root *root, int dirfd, const char *path, int r,
		    const void *data, size_t len);

/* It was asked where a link leads, or whether there is one. */
void hw_record_link(const struct hw_root *root, int dirfd, const char *path);

/*
 * A directory was listed; "names" is not used when that failed with "r" < 0.  Links and directories
 * in it are kept; a file counts when it is read or looked for.
 */
void hw_record_list(const struct hw_root *root, int dirfd, const char *path, int r,
		    const struct strlist *names);

/* It was asked whether there is something, or a directory was opened to read files in it. */
void hw_record_exists(const struct hw_root *root, int dirfd, const char *path);

#endif

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

/* By path; a slash comes first, so that what is in a directory follows it. */
int hw_record_cmp_path(const char *a, const char *b);

/* What was recorded of one path. */
enum hw_recorded_kind {
	HW_RECORDED_DIR,
	HW_RECORDED_FILE, /* it is there; nobody read it */
	HW_RECORDED_FAILED, /* reading it, or listing the directory, gave "errnum" */
	HW_RECORDED_LINK, /* to "data" */
	HW_RECORDED_VALUE
};

struct hw_recorded {
	const char *path; /* relative to the root, without links on the way */
	enum hw_recorded_kind kind;
	bool is_dir; /* of HW_RECORDED_FAILED */
	int errnum;
	const char *data; /* NUL-terminated behind its "len" bytes */
	size_t len;
};

struct hw_recorder *hw_recorder_new(void);
struct hw_recorder *hw_recorder_free(struct hw_recorder *rec); /* NULL is fine; returns NULL */

/* Add a file that no reader reads, with "text". */
void hw_recorder_add(struct hw_recorder *rec, const char *path, const char *text);

/*
 * Visit all of it, sorted by path so that a directory comes right before what is in it; one that
 * has something in it is left out.
 */
void hw_recorder_each(const struct hw_recorder *rec,
		      void (*visit)(const struct hw_recorded *recorded, void *arg), void *arg);

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

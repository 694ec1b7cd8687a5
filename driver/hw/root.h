/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_ROOT_H
#define TWINRAIL_HW_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

/* Internal to hw/: reading below one root directory. */

/* In an unpacked recording: "path ERRNO" lines of files whose reading fails. */
#define HW_ERRORS_FILE "twinrail/errors"

struct hw_root_error {
	dev_t dev;
	ino_t ino;
	int errnum;
};

struct hw_recorder;

struct hw_root {
	int fd;
	bool live; /* the root is "/": the running machine */
	bool no_openat2; /* Linux before 5.6, some seccomp profiles */
	bool *exhausted; /* set when a file cannot be read for lack of descriptors or memory */
	struct hw_recorder *recorder; /* is told of everything that is read; NULL: nobody is */
	struct hw_root_error *errors;
	size_t n_errors, cap_errors;
};

/* ERR_INVALID naming "root" and --root when it is not a directory that can be listed. */
int hw_root_open(const char *root, struct hw_root *ret, struct err *err)
	__attribute__((warn_unused_result));
void hw_root_close(struct hw_root *root);

/*
 * A whole file at "path" (relative: "sys/…"), at most "max" bytes, NUL-terminated.  0 or a negative
 * errno, also the one that was recorded.
 */
int hw_root_read(const struct hw_root *root, const char *path, size_t max, char **ret,
		 size_t *ret_len) __attribute__((warn_unused_result));

/*
 * The text of attribute "name" of directory "dir" without white space at its end.  NULL when it
 * cannot be read, is empty, longer than 4096 bytes or not UTF-8: an unknown fact is absent.
 */
char *hw_attr(const struct hw_root *root, const char *dir, const char *name);

/*
 * hw_attr() for one or two files of one of many devices: the directory at "path" is not opened for
 * them.  The way to the file, as hw_dir_link_path() gives it, leads through directories only: NULL
 * when there are links.
 */
char *hw_attr_direct(const struct hw_root *root, const char *path, const char *name);

/*
 * A directory that is open, e.g. that of one device: its files are read by their short names.
 * Those files are no links; names like "ports/1/state" lead through directories only.
 */
struct hw_dir {
	const struct hw_root *root;
	const char *path; /* below the root; the caller's */
	int fd;
	bool missed; /* a file was not there, or its device is gone */
};

/* "path" stays the caller's and in place until hw_dir_close().  0 or a negative errno. */
int hw_dir_open(const struct hw_root *root, const char *path, struct hw_dir *ret)
	__attribute__((warn_unused_result));
void hw_dir_close(struct hw_dir *dir);

/* Directory "name" of "dir", to read many files in it; "missed" is its own.  As hw_dir_open(). */
int hw_dir_open_in(const struct hw_dir *dir, const char *name, struct hw_dir *ret)
	__attribute__((warn_unused_result));

/* The directory is no longer there: what was read may be half of the facts. */
bool hw_dir_gone(const struct hw_dir *dir);

/* There is something of that name in it, be it a link that leads nowhere. */
bool hw_dir_has(const struct hw_dir *dir, const char *name);

/* The first "size" bytes of a file: how many there are, or a negative errno. */
ssize_t hw_dir_read(struct hw_dir *dir, const char *name, void *buf, size_t size)
	__attribute__((warn_unused_result));

/* As hw_attr(). */
char *hw_dir_text(struct hw_dir *dir, const char *name);

#define HW_ATTR_MAX 4096

struct hw_text {
	char text[HW_ATTR_MAX + 1];
};

/* The same without memory of its own: NULL or buf->text. */
char *hw_dir_text_into(struct hw_dir *dir, const char *name, struct hw_text *buf);

/* As numbers; "fallback" when absent or not a number.  hw_dir_hex() takes "0x15b3" and "15b3". */
int hw_dir_int(struct hw_dir *dir, const char *name, int fallback);
unsigned int hw_dir_hex(struct hw_dir *dir, const char *name, unsigned int fallback);

/* The names in directory "name" of it; as hw_list(). */
int hw_dir_list(struct hw_dir *dir, const char *name, size_t max, struct strlist *ret)
	__attribute__((warn_unused_result));

/* The last component of the text of link "name"; NULL when it is no link.  Nothing is resolved. */
char *hw_dir_link_base(const struct hw_dir *dir, const char *name);

/*
 * Where the link "name" leads, as an absolute path below the root: joined with dir->path and
 * normalised by its text alone, without looking at the file system.  NULL when it is no link.
 */
char *hw_dir_link_path(const struct hw_dir *dir, const char *name);

/* Join and normalise: ("sys/bus/pci/devices", "../../../devices/x") → "/sys/devices/x". */
char *hw_path_join(const char *dir, const char *target);

/* The names in a directory, sorted; 0 or a negative errno; more than "max" names: -EFBIG. */
int hw_list(const struct hw_root *root, const char *dir, size_t max, struct strlist *ret)
	__attribute__((warn_unused_result));

bool hw_exists(const struct hw_root *root, const char *path);

/* "EINVAL" → EINVAL; 0 when there is no such name. */
int hw_errno_from_name(const char *name);

/*
 * The PCI function whose own device ".../<address>/<class>/<name>" (class: "net", "infiniband") is,
 * also through virtio: ".../<address>/virtio0/net/eth0".  NULL when anything else stands between:
 * a subfunction, a USB device.  malloc'ed.
 */
char *hw_path_bus_id(const char *path);

/* The function of a subfunction's device: ".../<address>/mlx5_core.sf.4/net/eth0"; as above. */
char *hw_path_sf_parent(const char *path);

#endif

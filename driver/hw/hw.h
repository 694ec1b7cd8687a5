/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_HW_H
#define TWINRAIL_HW_HW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * Raw facts of one machine, read below one root directory ("/" or an unpacked recording).
 * A thing that cannot be read becomes a warning in the result; only an unreadable root is an error.
 */
struct hw_machine;

/* What can be read on its own; later ones look at what earlier ones found. */
enum {
	HW_PART_NODE = 1 << 0, /* NUMA, DMI, kernel modules */
	HW_PART_PCI = 1 << 1,
	HW_PART_NET = 1 << 2, /* links */
	HW_PART_IP = 1 << 3, /* addresses, routes, rules, neighbours */
	HW_PART_RDMA = 1 << 4,
	HW_PART_GPU = 1 << 5,
	HW_PART_ALL = (1 << 6) - 1
};

int hw_read(const char *root, struct hw_machine **ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * Read some parts again, in place; the others, with their warnings, stay as they are (with
 * HW_PART_NET comes HW_PART_IP).  On error (an unreadable root) the machine is as before.
 */
int hw_read_again(const char *root, unsigned int parts, struct hw_machine *machine, struct err *err)
	__attribute__((warn_unused_result));
struct hw_machine *hw_free(struct hw_machine *machine); /* NULL is fine; returns NULL */

struct hw_snapshot_options {
	bool raw; /* replace nothing */
	const char *seed; /* equal ones replace equally; NULL: a random key, which nobody has */
};

/*
 * Record the machine below "root": *ret is the text of a recording (malloc'ed, *ret_len bytes) with
 * everything that the readers read, sorted by path.  Addresses, GUIDs, serial numbers, UUIDs and
 * host names are replaced consistently unless options->raw.  ERR_INVALID when the root cannot be
 * read or the recording would be longer than 64 MiB.
 */
int hw_snapshot_record(const char *root, const struct hw_snapshot_options *options, char **ret,
		       size_t *ret_len, struct err *err) __attribute__((warn_unused_result));

/* Unpack a recorded machine (tests/fixtures/NAME.machine) into a new or empty directory. */
int hw_snapshot_unpack(const char *file, const char *dir, struct err *err)
	__attribute__((warn_unused_result));

#endif

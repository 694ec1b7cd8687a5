/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_HW_H
#define TWINRAIL_HW_HW_H

#include "base/err.h"

/*
 * Raw facts of one machine, read below one root directory ("/" or an unpacked recording).
 * A thing that cannot be read becomes a warning in the result; only an unreadable root is an error.
 */
struct hw_machine;

int hw_read(const char *root, struct hw_machine **ret, struct err *err)
	__attribute__((warn_unused_result));
struct hw_machine *hw_free(struct hw_machine *machine); /* NULL is fine; returns NULL */

/* Unpack a recorded machine (tests/fixtures/NAME.machine) into a new or empty directory. */
int hw_snapshot_unpack(const char *file, const char *dir, struct err *err)
	__attribute__((warn_unused_result));

#endif

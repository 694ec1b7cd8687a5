/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_SNAPSHOT_H
#define TWINRAIL_HW_SNAPSHOT_H

#include <stdbool.h>

/* Internal to hw/: what writing and unpacking a recording agree on; the format is in snapshot.c. */
#define HW_SNAPSHOT_MAX (64 * 1024 * 1024) /* bytes of a recording */
#define HW_SNAPSHOT_LINE_MAX (16 * 1024 * 1024) /* bytes of a line */

/* Relative, without empty, "." and ".." components. */
bool hw_snapshot_path_ok(const char *path);

/*
 * A link at "path" may point to anything below the root, by a relative target.  ".." is at its
 * beginning only, as in sysfs: after the name of another link the text would not tell where it is.
 */
bool hw_snapshot_target_ok(const char *path, const char *target);

#endif

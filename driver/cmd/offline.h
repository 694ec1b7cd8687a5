/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_OFFLINE_H
#define TWINRAIL_CMD_OFFLINE_H

#include "base/err.h"
#include "cmd/options.h"
#include "topo/inventory.h"

/* What the commands share that show or record a machine and need no cluster. */

/* A row of an option table: --root of these commands. */
#define OPTION_MACHINE(var)                                                                        \
	{                                                                                          \
		"root", 0, OPTION_STRING, (var), "DIR",                                            \
			"read DIR/sys, DIR/proc and DIR/dev, or a recorded machine, instead of /", \
			NULL, 0                                                                    \
	}

/*
 * Call "use" with the directory of a machine: "root" itself, or when "root" is a file, a recorded
 * machine, a directory that it is unpacked into, which is gone afterwards.  What "use" gives, or a
 * negative errno: the recording cannot be unpacked, or the directory has no sys/.
 */
int offline_with_root(const char *root, int (*use)(const char *dir, void *arg, struct err *err),
		      void *arg, struct err *err) __attribute__((warn_unused_result));

/*
 * Read the machine below "root", or a recorded one when "root" is a file, and build its model: a new
 * reference.  NULL: it cannot be read, and the reason is on stderr after the name of the command.
 * Patterns in "options" that fit no NIC are told there, too.
 */
struct inventory *offline_inventory(const char *command, const char *root,
				    const struct topo_options *options);

/* Write all of "text" to stdout; the exit code, after a line on stderr when it cannot be written. */
int offline_print(const char *command, const char *text);

#endif

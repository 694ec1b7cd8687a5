/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_OFFLINE_H
#define TWINRAIL_CMD_OFFLINE_H

#include "topo/inventory.h"

/* What the commands share that show a machine and need no cluster. */

/*
 * Read the machine below "root", or a recorded one when "root" is a file, and build its model: a new
 * reference.  NULL: it cannot be read, and the reason is on stderr after the name of the command.
 */
struct inventory *offline_inventory(const char *command, const char *root,
				    const struct topo_options *options);

/* Write all of "text" to stdout; the exit code, after a line on stderr when it cannot be written. */
int offline_print(const char *command, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_VERBS_H
#define TWINRAIL_HW_VERBS_H

#include "hw/machine.h"

/*
 * What the verbs libraries say of RDMA devices: active MTU, Data Direct function, and what sysfs
 * lacks.  They are no part of the program: without them, without device files, or where opening a
 * device proves nothing (no port, no GUID) the facts stay unknown.
 */
struct hw_verbs_paths {
	const char *libibverbs, *libmlx5; /* for dlopen() */
	const char *dev; /* where uverbsN are: "/dev/infiniband" */
};

/*
 * Ask each device of machine->rdma that is no VF and no subfunction, once for what it is and the
 * state of its ports: answers are kept in the process.  A contradiction to sysfs is a warning that
 * names both values, and sysfs stays.  From one thread.
 */
void hw_verbs_ask(const struct hw_verbs_paths *paths, struct hw_machine *machine);

/*
 * The text of a recorded machine, one fact a line:
 *
 *	mlx5_0 data_direct 0009:03:00.0
 *	mlx5_0 port 1 active_mtu 4096
 */
#define HW_VERBS_FILE "twinrail/verbs"
void hw_verbs_parse(const char *text, struct hw_machine *machine); /* bad lines: one warning */
char *hw_verbs_print(const struct hw_machine *machine); /* "" when there is nothing; malloc'ed */

#endif

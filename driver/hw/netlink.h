/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_NETLINK_H
#define TWINRAIL_HW_NETLINK_H

#include "hw/machine.h"

/*
 * Internal to hw/: fill machine->ip from the network namespace of this process, and what sysfs does
 * not tell of its links (kind, master, lower links) into machine->netdevs.  What cannot be read
 * makes the part incomplete; never fails.
 */
void hw_netlink_read(struct hw_machine *machine);

#endif

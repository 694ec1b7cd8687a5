/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_IP_H
#define TWINRAIL_HW_IP_H

#include "hw/machine.h"

/*
 * The texts below twinrail/ of a recorded machine that hold what only rtnetlink tells, one fact a
 * line, words separated by spaces as iproute2 prints them:
 *
 *	addresses    gpu0rdma0 10.1.0.5/32 scope global
 *	routes       default via fe80::1 dev eth0 metric 100
 *	             default nexthop via 10.0.0.1 dev a nexthop via 10.0.0.2 dev b
 *	             10.1.0.0/21 dev gpu0rdma0 table 101 metric 10
 *	             unreachable default dev lo
 *	rules        100: from 10.1.0.5 lookup 101
 *	             -6 100: from all to fd00::/8 iif eth0 oif eth1 lookup 101
 *	             partial
 *	neighbours   10.1.0.1 dev gpu0rdma0 lladdr 00:00:5e:00:53:01 PERMANENT
 *	links        eth0.7 kind vlan master vrf0 lower eth0
 *
 * A route or rule of IPv6 that no address shows ("default dev eth0") begins with "-6".  Tables are
 * numbers or "main", "default", "local"; main when absent.  A line "nexthop …" goes on with the
 * route above it.  The rule "partial" ("-6 partial") stands for those that cannot be told, e.g. with
 * "not", "suppress_prefixlength" or "goto"; one with a mark, a protocol or ports is left out, as
 * packets of RDMA connections have none.  Other words that are not known are passed over.  "links"
 * has what sysfs may not tell of the links that it has, one "lower" for each link below.
 */
enum hw_ip_text {
	HW_IP_ADDRESSES,
	HW_IP_ROUTES,
	HW_IP_RULES,
	HW_IP_NEIGHBOURS,
	HW_IP_LINKS,
	HW_IP_TEXTS
};

/* Bounds of what is kept; more is left out with a warning. */
#define HW_MAX_ADDRESSES 65536
#define HW_MAX_ROUTES 65536
#define HW_MAX_RULES 16384
#define HW_MAX_NEIGHBOURS 8192

/* "twinrail/routes": where the text is below the root. */
const char *hw_ip_file(enum hw_ip_text which);

/*
 * Add what "text" says to machine->ip, for HW_IP_LINKS to machine->netdevs (sorted by name).  Lines
 * that cannot be read are left out with one warning for the text.  Never fails.
 */
void hw_ip_parse(enum hw_ip_text which, const char *text, struct hw_machine *machine);

/* The text that hw_ip_parse() reads, "" when there is nothing; malloc'ed. */
char *hw_ip_print(const struct hw_machine *machine, enum hw_ip_text which);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_NETLINK_DUMP_H
#define TWINRAIL_HW_NETLINK_DUMP_H

#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "hw/machine.h"

/* Internal to netlink*.c: one reading of everything. */
#define HW_MAX_NEXTHOPS 65536

struct hw_nl_link {
	int ifindex;
	char name[IFNAMSIZ];
	char kind[32]; /* "" unknown */
	int master, lower; /* ifindex, 0 none */
	bool added_kind, added_master, added_lower; /* to the netdev of that name */
};

/* A next hop object ("ip nexthop"); of a group only the members are known. */
struct hw_nl_nexthop {
	unsigned int id;
	int ifindex;
	char *gateway;
	bool blackhole;
	unsigned int *members;
	size_t n_members;
};

struct hw_nl_dump {
	struct nl_sock *sk;
	struct hw_machine *machine;
	struct hw_nl_link *links; /* by ifindex, once all are there */
	size_t n_links, cap_links;
	struct hw_nl_nexthop *nexthops; /* as the kernel tells them: by id */
	size_t n_nexthops, cap_nexthops;
	bool full; /* something was left out for a bound */
	bool torn; /* a message names a link that is not there: it came or went meanwhile */
};

/* "10.1.0.5" of an attribute; NULL without one or when its length is not that of the family. */
char *hw_nl_address(int family, struct nlattr *attr);
uint32_t hw_nl_u32(struct nlattr *attr, uint32_t fallback);
int hw_nl_version(int family); /* 4, 6; 0: another one */

/* The name of a link, borrowed; NULL when it is not there, and then the reading is torn. */
const char *hw_nl_name(struct hw_nl_dump *d, int ifindex);

/* Callbacks for the messages of one kind; "data" is the struct hw_nl_dump; always NL_OK. */
int hw_nl_on_nexthop(struct nl_msg *msg, void *data);
int hw_nl_on_route(struct nl_msg *msg, void *data);
int hw_nl_on_rule(struct nl_msg *msg, void *data);

#endif

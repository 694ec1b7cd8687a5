/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_NEST_H
#define TWINRAIL_TOPO_NEST_H

#include "topo/inventory.h"

/*
 * Internal to the outputs: what stands in what.  Root complexes hold switches, cards and devices; a
 * NIC stands where its DMA comes from.  VFs with a visible PF are left out.
 */
enum nest_kind { NEST_TOP, NEST_ROOT, NEST_BRIDGE, NEST_CARD, NEST_GPU, NEST_NIC };

struct nest {
	enum nest_kind kind;
	const char *root; /* NEST_ROOT: "pci0009:00"; NULL: not known.  Borrowed */
	const struct topo_bridge *bridge; /* NEST_BRIDGE; borrowed */
	size_t index; /* NEST_CARD, NEST_GPU, NEST_NIC: into the inventory */
	struct nest **children;
	size_t n, cap;
};

/*
 * The whole, a NEST_TOP; its roots are in the order of their numbers, an unknown one last.
 * "all_bridges": also those that are no switch upstream ports.
 */
struct nest *nest_build(const struct inventory *inv, bool all_bridges);
struct nest *nest_free(struct nest *nest); /* returns NULL */

/* The root that a NIC's DMA comes from; NULL: not known. */
const char *nest_nic_root(const struct inventory *inv, const struct topo_nic *nic);

/* A NIC that has a place of its own: not a VF whose PF is here, too. */
bool nest_stands_alone(const struct inventory *inv, const struct topo_nic *nic);

/* The NUMA node of all devices of a root; TOPO_UNKNOWN when they differ or it is not known. */
int nest_root_numa(const struct inventory *inv, const char *root);

/* "4 GPUs, 10 NICs, 5 cards, 8 rails, topology data-direct, platform gb300"; malloc'ed. */
char *nest_summary(const struct inventory *inv);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_PATH_H
#define TWINRAIL_TOPO_PATH_H

#include "hw/machine.h"
#include "topo/inventory.h"

/*
 * The value of resource.kubernetes.io/pcieRoot, by the rule of Kubernetes' deviceattribute library:
 * "path" (where the link sys/bus/pci/devices/<bus_id> leads, normalised by its text) must begin
 * with /sys/devices/pci and end in the address, which must have a four-digit domain; the value is
 * the first component after /sys/devices/.  NULL where that does not hold; malloc'ed.
 */
char *pcie_root_of(const char *bus_id, const char *path);

/* For sorting: "pci0009:00" before "pci0010:00" before "pci10000:00"; what is none, NULL too, last. */
unsigned long pcie_root_number(const char *root);

/* Where a function sits: its root complex and the bridges from there down to it. */
struct place_bridge {
	char *bus_id;
	unsigned int vendor, device;
	enum hw_port_type type; /* never UNKNOWN directly on the root bus */
	int acs; /* as hw_pci.acs */
};

struct place {
	char *complex; /* path down to the root bus; NULL: the place is not known */
	struct place_bridge *bridges;
	size_t n, cap;
	int numa_node; /* TOPO_UNKNOWN */
};

/* Never fails: "complex" stays NULL when the path is not known or deeper than 64 bridges. */
void place_init(struct place *place, const struct hw_machine *machine, const struct hw_pci *pci);
void place_done(struct place *place);

/* The kind of a bridge above it could not be read: switches and paths may be unknown. */
bool place_is_unsure(const struct place *place);

/* The first switch upstream port from the root complex towards the device; borrowed, or NULL. */
const char *place_switch(const struct place *place);

/* How many bridges, counted from the root complex, the two have in common.  Both are on one. */
size_t place_common(const struct place *a, const struct place *b);

/* docs/design.md §6.  *hops: bridge functions between the two, or TOPO_UNKNOWN. */
enum path_class path_between(const struct place *a, const struct place *b, int *hops);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "topo/path.h"

#include <limits.h>

#include "base/bus_id.h"
#include "base/mem.h"
#include "topo/numa.h"

#define MAX_BRIDGES 64

char *pcie_root_of(const char *bus_id, const char *path)
{
	static const char devices[] = "/sys/devices/", start[] = "/sys/devices/pci";
	const char *root, *last;

	if (!path || !is_standard_bus_id(bus_id) || !starts_with(path, start))
		return NULL;
	last = strrchr(path, '/') + 1;
	root = path + strlen(devices);
	if (!streq(last, bus_id) || last == root)
		return NULL;
	return xstrndup(root, strcspn(root, "/"));
}

unsigned long pcie_root_number(const char *root)
{
	char *end;
	unsigned long domain;

	if (!root || !starts_with(root, "pci"))
		return ULONG_MAX;
	domain = strtoul(root + 3, &end, 16);
	return domain << 8 | (*end == ':' ? strtoul(end + 1, NULL, 16) & 0xff : 0);
}

/* A bridge on the root bus is no switch, whatever its kind; below, only reading tells. */
static enum hw_port_type port_type(const struct hw_pci *pci, size_t depth)
{
	if (pci && pci->port_type != HW_PORT_UNKNOWN)
		return pci->port_type;
	return depth == 0 ? HW_PORT_ROOT : HW_PORT_UNKNOWN;
}

void place_init(struct place *place, const struct hw_machine *machine, const struct hw_pci *pci)
{
	struct strlist parts = { 0 };
	struct buf complex = { 0 };
	size_t first;

	*place = (struct place){ .numa_node = numa_node_known(pci->numa_node) };
	if (!pci->path)
		return;
	strlist_split(&parts, pci->path, '/');
	/* The addresses at the end of the path are the bridges and the function. */
	for (first = parts.n; first > 0 && is_bus_id(parts.items[first - 1]); first--)
		;
	for (size_t i = 0; i < first; i++)
		buf_printf(&complex, "/%s", parts.items[i]);
	if (first > 0 && first < parts.n && streq(parts.items[parts.n - 1], pci->bus_id) &&
	    starts_with(pci->path, "/sys/devices/") && parts.n - first - 1 <= MAX_BRIDGES) {
		place->complex = buf_take(&complex);
		for (size_t i = first; i + 1 < parts.n; i++) {
			const struct hw_pci *bridge = hw_find_pci(machine, parts.items[i]);
			enum hw_port_type type = port_type(bridge, place->n);

			*array_push(place->bridges, place->n, place->cap) = (struct place_bridge){
				.bus_id = xstrdup(parts.items[i]),
				.vendor = bridge ? bridge->vendor : 0,
				.device = bridge ? bridge->device : 0,
				.type = type,
				.acs = bridge ? bridge->acs : HW_UNKNOWN,
			};
		}
	}
	buf_done(&complex);
	strlist_done(&parts);
}

void place_done(struct place *place)
{
	for (size_t i = 0; i < place->n; i++)
		free(place->bridges[i].bus_id);
	free(place->bridges);
	free(place->complex);
	*place = (struct place){ 0 };
}

bool place_is_unsure(const struct place *place)
{
	for (size_t i = 0; i < place->n; i++)
		if (place->bridges[i].type == HW_PORT_UNKNOWN)
			return true;
	return false;
}

const char *place_switch(const struct place *place)
{
	for (size_t i = 0; i < place->n; i++) {
		if (place->bridges[i].type == HW_PORT_UPSTREAM)
			return place->bridges[i].bus_id;
		if (place->bridges[i].type == HW_PORT_UNKNOWN)
			return NULL; /* perhaps that is the first one */
	}
	return NULL;
}

/* Is one of these bridges an upstream port?  TRI_UNKNOWN: one whose kind is not known may be. */
static enum tri has_switch(const struct place *place, size_t from, size_t to)
{
	enum tri found = TRI_UNSUPPORTED;

	for (size_t i = from; i < to; i++) {
		if (place->bridges[i].type == HW_PORT_UPSTREAM)
			return TRI_SUPPORTED;
		if (place->bridges[i].type == HW_PORT_UNKNOWN)
			found = TRI_UNKNOWN;
	}
	return found;
}

/*
 * Both are below bridge "common" - 1 of "a", the nearest that they share.  It is part of a switch, or
 * behind one, when an upstream port is among those that they share; a downstream port without one
 * above it contradicts itself.
 */
static enum path_class path_below(const struct place *a, const struct place *b, size_t common)
{
	enum hw_port_type nearest = common ? a->bridges[common - 1].type : HW_PORT_ROOT;
	enum tri shared = has_switch(a, 0, common), below_a = has_switch(a, common, a->n),
		 below_b = has_switch(b, common, b->n);

	if (nearest == HW_PORT_UNKNOWN)
		return PATH_UNKNOWN;
	if (nearest == HW_PORT_DOWNSTREAM && shared == TRI_UNSUPPORTED)
		return PATH_UNKNOWN;
	if (nearest != HW_PORT_DOWNSTREAM && shared != TRI_SUPPORTED)
		return shared == TRI_UNKNOWN ? PATH_UNKNOWN : PATH_PHB;
	if (below_a == TRI_SUPPORTED || below_b == TRI_SUPPORTED)
		return PATH_PXB;
	return below_a == TRI_UNKNOWN || below_b == TRI_UNKNOWN ? PATH_UNKNOWN : PATH_PIX;
}

size_t place_common(const struct place *a, const struct place *b)
{
	size_t common = 0;

	while (common < a->n && common < b->n &&
	       streq(a->bridges[common].bus_id, b->bridges[common].bus_id))
		common++;
	return common;
}

enum path_class path_between(const struct place *a, const struct place *b, int *hops)
{
	*hops = TOPO_UNKNOWN;
	if (a->complex && b->complex && streq(a->complex, b->complex)) {
		size_t common = place_common(a, b);
		enum path_class path = path_below(a, b, common);

		if (path != PATH_UNKNOWN)
			*hops = (int)(a->n - common + b->n - common + (common > 0));
		return path;
	}
	if (a->complex && b->complex && a->numa_node >= 0 && b->numa_node >= 0)
		return a->numa_node == b->numa_node ? PATH_NODE : PATH_SYS;
	return PATH_UNKNOWN;
}

// SPDX-License-Identifier: Apache-2.0
/* The bridges above each device, kept for people who ask why two devices are near or far. */
#include "topo/build.h"

#include "base/mem.h"
#include "base/str.h"

static enum topo_bridge_type bridge_type(enum hw_port_type type)
{
	switch (type) {
	case HW_PORT_ROOT:
		return BRIDGE_ROOT_PORT;
	case HW_PORT_UPSTREAM:
		return BRIDGE_UPSTREAM;
	case HW_PORT_DOWNSTREAM:
		return BRIDGE_DOWNSTREAM;
	case HW_PORT_OTHER:
		return BRIDGE_OTHER;
	default:
		return BRIDGE_UNKNOWN;
	}
}

static struct topo_bridge *copy_bridges(const struct hw_machine *machine, const struct place *place)
{
	struct topo_bridge *bridges = xcalloc(place->n, sizeof(*bridges));

	for (size_t i = 0; i < place->n; i++) {
		const struct place_bridge *from = &place->bridges[i];
		const struct hw_pci *pci = hw_find_pci(machine, from->bus_id);

		bridges[i] = (struct topo_bridge){
			.bus_id = xstrdup(from->bus_id),
			.vendor_id = from->vendor,
			.device_id = from->device,
			.type = bridge_type(from->type),
			.link = { TOPO_UNKNOWN, TOPO_UNKNOWN, TOPO_UNKNOWN, TOPO_UNKNOWN,
				  TRI_UNKNOWN },
			.acs = pci ? pci->acs : TOPO_UNKNOWN,
		};
		if (pci)
			bridges[i].link = (struct topo_link){
				.speed_mts = pci->link.speed_mts,
				.max_speed_mts = pci->link.max_speed_mts,
				.width = pci->link.width,
				.max_width = pci->link.max_width,
			};
	}
	return bridges;
}

void topo_keep_bridges(struct builder *b)
{
	struct inventory *inv = b->inv;

	for (size_t i = 0; i < inv->n_gpus; i++) {
		inv->gpus[i].bridges = copy_bridges(b->machine, &b->gpus[i]);
		inv->gpus[i].n_bridges = b->gpus[i].n;
	}
	for (size_t i = 0; i < inv->n_nics; i++) {
		if (b->nics[i].pf >= 0)
			continue;
		inv->nics[i].bridges = copy_bridges(b->machine, &b->nics[i].place);
		inv->nics[i].n_bridges = b->nics[i].place.n;
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Paths between GPUs and NICs, and which NICs are the best of which GPU. */
#include "topo/build.h"

#include "base/mem.h"
#include "base/str.h"

static struct topo_pair *pair_at(struct builder *b, size_t gpu, size_t nic)
{
	return &b->inv->pairs[gpu * b->inv->n_nics + nic];
}

void topo_add_pairs(struct builder *b)
{
	struct inventory *inv = b->inv;

	inv->n_pairs = inv->n_gpus * inv->n_nics;
	inv->pairs = xcalloc(inv->n_pairs, sizeof(*inv->pairs));
	for (size_t g = 0; g < inv->n_gpus; g++) {
		for (size_t n = 0; n < inv->n_nics; n++) {
			struct topo_pair *pair = pair_at(b, g, n);

			pair->gpu = (int)g;
			pair->nic = (int)n;
			pair->path = path_between(&b->gpus[g], &b->nics[n].place, &pair->hops);
			pair->via_data_direct = inv->nics[n].dma_bus_id != NULL;
		}
	}
}

enum {
	HOPS = 1000, /* more than there are between two devices */
	BY_NUMA = (int)PATH_NODE * HOPS * 2 /* nearness of those that share a NUMA node only */
};

/*
 * How near the two are as one number, smaller is nearer: path class, hops, same NUMA node.
 * Negative: too far or unknown.
 */
static int nearness(struct builder *b, size_t gpu, size_t nic)
{
	const struct topo_pair *pair = pair_at(b, gpu, nic);
	int numa_gpu = b->inv->gpus[gpu].numa_node, numa_nic = b->inv->nics[nic].numa_node;
	bool same_numa = numa_gpu >= 0 && numa_gpu == numa_nic;

	if (pair->path >= PATH_SYS)
		return -1;
	return ((int)pair->path * HOPS + (pair->hops > 0 ? pair->hops : 0)) * 2 + !same_numa;
}

/* What is handed out as one: an atomic card or a function. */
struct unit {
	const int *members; /* of the card, or &self */
	size_t n;
	int self;
	bool taken;
};

static bool may_be_best(const struct topo_nic *nic)
{
	return nic->role != ROLE_STORAGE && !topo_is_kept_back(nic);
}

static size_t collect_units(struct builder *b, struct unit *units)
{
	struct inventory *inv = b->inv;
	size_t n = 0;

	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		const struct topo_card *card = nic->card >= 0 ? &inv->cards[nic->card] : NULL;
		struct unit *unit = &units[n];
		bool all = true;

		if (b->nics[i].pf >= 0) /* VFs with a visible PF follow that */
			continue;
		*unit = (struct unit){ .members = &unit->self, .n = 1, .self = (int)i };
		if (card && card->atomic) {
			if (card->members[0] != (int)i)
				continue;
			unit->members = card->members;
			unit->n = card->n_members;
		}
		for (size_t k = 0; k < unit->n; k++)
			all = all && may_be_best(&inv->nics[unit->members[k]]);
		n += all;
	}
	return n;
}

static void set_best(struct builder *b, size_t gpu, struct unit *unit)
{
	unit->taken = true;
	for (size_t k = 0; k < unit->n; k++) {
		struct topo_nic *nic = &b->inv->nics[unit->members[k]];
		struct topo_pair *pair = pair_at(b, gpu, (size_t)unit->members[k]);

		/* The other PFs of a card may stand where nobody knows. */
		if (pair->path == PATH_UNKNOWN)
			continue;
		pair->best = true;
		if (nic->best_gpu < 0) {
			nic->best_gpu = (int)gpu;
			nic->best_path = pair->path;
		}
	}
}

static int unit_nearness(struct builder *b, size_t gpu, const struct unit *unit)
{
	return nearness(b, gpu, (size_t)unit->members[0]);
}

/* How near the nearest unit is; negative: none. */
static int nearest_unit(struct builder *b, size_t gpu, const struct unit *units, size_t n_units)
{
	int nearest = -1;

	for (size_t u = 0; u < n_units; u++) {
		int d = unit_nearness(b, gpu, &units[u]);

		if (d >= 0 && (nearest < 0 || d < nearest))
			nearest = d;
	}
	return nearest;
}

/*
 * Each GPU takes units of its root complex that are as near to it as any; where several GPUs and
 * several units are equally near (two of each behind one switch), they are dealt out in the order
 * of their addresses.
 */
static void deal(struct builder *b, struct unit *units, size_t n_units)
{
	bool again = true;

	for (int round = 0; again; round++) {
		again = false;
		for (size_t g = 0; g < b->inv->n_gpus; g++) {
			struct unit *shared = NULL, *found = NULL;
			int nearest = nearest_unit(b, g, units, n_units);

			if (nearest >= BY_NUMA)
				continue;
			for (size_t u = 0; nearest >= 0 && u < n_units && !found; u++) {
				if (unit_nearness(b, g, &units[u]) != nearest)
					continue;
				if (!units[u].taken)
					found = &units[u];
				else if (!shared)
					shared = &units[u];
			}
			if (found) {
				set_best(b, g, found);
				again = true;
			} else if (round == 0 && shared) {
				set_best(b, g, shared);
			}
		}
	}
}

/* Another GPU is as near to the unit as "nearness", or nearer. */
static bool is_others(struct builder *b, size_t gpu, const struct unit *unit, int nearness)
{
	for (size_t g = 0; g < b->inv->n_gpus; g++) {
		int d = unit_nearness(b, g, unit);

		if (g != gpu && d >= 0 && d <= nearness)
			return true;
	}
	return false;
}

/*
 * Of GPUs and NICs that share no more than a NUMA node those belong together that are alone there;
 * to deal out the others would be a guess.
 */
static void pair_by_numa(struct builder *b, struct unit *units, size_t n_units)
{
	const char *unknown = NULL;

	for (size_t g = 0; g < b->inv->n_gpus; g++) {
		int nearest = nearest_unit(b, g, units, n_units);
		struct unit *unit = NULL;
		bool any = false;
		size_t n = 0;

		for (size_t u = 0; nearest >= BY_NUMA && u < n_units; u++) {
			if (unit_nearness(b, g, &units[u]) != nearest)
				continue;
			unit = &units[u];
			n++;
			any = any || !is_others(b, g, unit, nearest - 1);
		}
		if (n == 1 && !is_others(b, g, unit, nearest))
			set_best(b, g, unit);
		else if (any && !unknown)
			unknown = b->inv->gpus[g].name;
	}
	if (unknown)
		topo_warn(b, "best-unknown", "node",
			  "NUMA alone does not tell which NIC belongs to which GPU (see %s, which "
			  "shares no more with its NICs): no best pairs; where a NIC is there for "
			  "something else, roles in a platform file say so and leave it out",
			  unknown);
}

/* For NICs that are nobody's best: how far the nearest GPU is, and which, if it is only one. */
static void set_nearest_gpu(struct builder *b, size_t n)
{
	struct topo_nic *nic = &b->inv->nics[n];
	const struct topo_pair *best = NULL;

	for (size_t g = 0; g < b->inv->n_gpus; g++) {
		const struct topo_pair *pair = pair_at(b, g, n);

		if (pair->path == PATH_UNKNOWN)
			continue;
		if (!best || pair->path < best->path ||
		    (pair->path == best->path && pair->hops < best->hops)) {
			best = pair;
			nic->best_gpu = (int)g;
			nic->best_path = pair->path;
		} else if (pair->path == best->path && pair->hops == best->hops) {
			nic->best_gpu = TOPO_UNKNOWN;
		}
	}
}

void topo_set_best(struct builder *b)
{
	struct inventory *inv = b->inv;
	_cleanup_free_ struct unit *units = xcalloc(inv->n_nics, sizeof(*units));
	size_t n_units;

	if (inv->topology_class == CLASS_FLAT) {
		topo_warn(b, "flat-topology", "node",
			  "all functions sit on one PCI root without switches, as in a virtual "
			  "machine: the PCI tree does not tell which GPU and NIC belong together");
	} else {
		n_units = collect_units(b, units);
		deal(b, units, n_units);
		pair_by_numa(b, units, n_units);
	}
	for (size_t n = 0; n < inv->n_nics; n++) {
		int pf = b->nics[n].pf;

		if (pf < 0 && inv->nics[n].best_gpu < 0)
			set_nearest_gpu(b, n);
	}
	for (size_t n = 0; n < inv->n_nics; n++) {
		int pf = b->nics[n].pf;

		if (pf < 0)
			continue;
		inv->nics[n].best_gpu = inv->nics[pf].best_gpu;
		inv->nics[n].best_path = inv->nics[pf].best_path;
		for (size_t g = 0; g < inv->n_gpus; g++)
			pair_at(b, g, n)->best = pair_at(b, g, (size_t)pf)->best &&
						 pair_at(b, g, n)->path != PATH_UNKNOWN &&
						 may_be_best(&inv->nics[n]);
	}
}

static bool is_grace_or_vera_port(const struct place_bridge *bridge)
{
	return bridge->vendor == VENDOR_NVIDIA &&
	       (bridge->device == 0x22b1 || bridge->device == 0x22b2 || bridge->device == 0x22b8 ||
		bridge->device == 0x2f95 || bridge->device == 0x2f96);
}

/* A switch inside a ConnectX carries the GPU. */
static bool is_inline(const struct builder *b, const struct topo_pair *pair)
{
	const struct place *place = &b->gpus[pair->gpu];
	const char *upstream = place_switch(place);

	for (size_t i = 0; upstream && i < place->n; i++)
		if (streq(place->bridges[i].bus_id, upstream))
			return place->bridges[i].vendor == VENDOR_MELLANOX;
	return false;
}

/* All GPUs and NICs on one root complex, no switch anywhere. */
static bool is_flat(const struct builder *b)
{
	const struct place *first = b->inv->n_gpus ? &b->gpus[0] : NULL;

	if (!first || !first->complex || !b->inv->virtual_machine || b->inv->n_nics == 0)
		return false;
	for (size_t i = 0; i < b->inv->n_gpus; i++)
		if (!streq_null(b->gpus[i].complex, first->complex) || place_switch(&b->gpus[i]))
			return false;
	for (size_t i = 0; i < b->inv->n_nics; i++)
		if (!streq_null(b->nics[i].place.complex, first->complex) ||
		    place_switch(&b->nics[i].place))
			return false;
	return true;
}

void topo_set_class(struct builder *b)
{
	struct inventory *inv = b->inv;
	enum path_class nearest = PATH_UNKNOWN;
	bool in_nic = false;

	if (b->data_direct) {
		inv->topology_class = CLASS_DATA_DIRECT;
		return;
	}
	for (size_t i = 0; i < inv->n_gpus; i++) {
		const struct place *place = &b->gpus[i];

		if (place->n && is_grace_or_vera_port(&place->bridges[place->n - 1])) {
			inv->topology_class = CLASS_NUMA;
			return;
		}
	}
	for (size_t i = 0; i < inv->n_pairs; i++) {
		const struct topo_pair *pair = &inv->pairs[i];

		if (pair->path < nearest)
			nearest = pair->path;
		if (pair->path <= PATH_PXB)
			in_nic = in_nic || is_inline(b, pair);
	}
	if (nearest <= PATH_PXB)
		inv->topology_class = in_nic ? CLASS_INLINE : CLASS_SWITCH;
	else if (is_flat(b))
		inv->topology_class = CLASS_FLAT;
	else if (nearest == PATH_NODE || nearest == PATH_SYS)
		inv->topology_class = CLASS_NUMA;
}

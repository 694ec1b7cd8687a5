// SPDX-License-Identifier: Apache-2.0
/* Roles, rails and rail groups. */
#include "topo/build.h"

#include "base/mem.h"
#include "base/str.h"

#define MAX_RAIL 1023

/* --- roles --- */

/* The node uses this link, so it uses all below it (of a bond, bridge, VLAN or macvlan), too. */
static void use_link(struct builder *b, const char *netdev, struct strlist *used)
{
	const struct hw_netdev *link = hw_find_netdev(b->machine, netdev);

	if (strlist_has(used, netdev))
		return;
	strlist_add(used, netdev);
	for (size_t i = 0; link && i < link->lower.n; i++)
		use_link(b, link->lower.items[i], used);
}

/* An atomic card is handed out whole: it is the node's own as soon as one of its PFs is. */
static void spread_over_card(struct inventory *inv, const struct topo_card *card)
{
	bool frontend = false;

	for (size_t i = 0; i < card->n_members; i++)
		frontend = frontend || inv->nics[card->members[i]].role == ROLE_FRONTEND;
	for (size_t i = 0; frontend && i < card->n_members; i++)
		inv->nics[card->members[i]].role = ROLE_FRONTEND;
}

void topo_set_frontends(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	const struct strlist *own = b->options->own_nics;
	struct inventory *inv = b->inv;
	struct strlist used = { 0 };

	for (size_t i = 0; i < m->default_routes.n; i++)
		use_link(b, m->default_routes.items[i], &used);
	/* Whoever is part of a bond, bridge, OVS or VRF is no longer its own master. */
	for (size_t i = 0; i < m->n_netdevs; i++)
		if (m->netdevs[i].master)
			use_link(b, m->netdevs[i].name, &used);
	for (size_t i = 0; i < inv->n_nics; i++)
		if ((inv->nics[i].netdev && strlist_has(&used, inv->nics[i].netdev)) ||
		    (own && strlist_has(own, inv->nics[i].bus_id)))
			inv->nics[i].role = ROLE_FRONTEND;
	for (size_t i = 0; i < inv->n_cards; i++)
		if (inv->cards[i].atomic)
			spread_over_card(inv, &inv->cards[i]);
	strlist_done(&used);
}

/* The nearest path of a NIC to any GPU. */
static enum path_class nearest_path(const struct builder *b, size_t nic)
{
	enum path_class nearest = PATH_UNKNOWN;

	for (size_t g = 0; g < b->inv->n_gpus; g++) {
		const struct topo_pair *pair = inventory_pair(b->inv, g, nic);

		if (pair->path < nearest)
			nearest = pair->path;
	}
	return nearest;
}

/* Each GPU has a NIC within PHB that may be handed out. */
static bool every_gpu_has_nic(const struct builder *b)
{
	for (size_t g = 0; g < b->inv->n_gpus; g++) {
		bool has = false;

		for (size_t n = 0; n < b->inv->n_nics; n++)
			has = has || (b->inv->nics[n].role != ROLE_FRONTEND &&
				      inventory_pair(b->inv, g, n)->path <= PATH_PHB);
		if (!has)
			return false;
	}
	return b->inv->n_gpus > 0;
}

static bool card_is_frontend(const struct builder *b, const struct topo_nic *nic)
{
	const struct topo_card *card = nic->card >= 0 ? &b->inv->cards[nic->card] : NULL;

	for (size_t i = 0; card && i < card->n_members; i++)
		if (b->inv->nics[card->members[i]].role == ROLE_FRONTEND)
			return true;
	return false;
}

/* What has no GPU near it although every GPU has a NIC is there for something else. */
static void set_far_roles(struct builder *b)
{
	bool storage = every_gpu_has_nic(b);

	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];
		enum path_class path = nearest_path(b, i);

		if (nic->role != ROLE_UNKNOWN || nic->rail >= 0 || path <= PATH_PHB ||
		    path == PATH_UNKNOWN)
			continue;
		if (card_is_frontend(b, nic))
			nic->role = ROLE_FRONTEND; /* the other port of that card */
		else if (storage)
			nic->role = ROLE_STORAGE;
	}
}

static void set_rail_roles(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];
		bool near = b->inv->topology_class != CLASS_FLAT && nearest_path(b, i) <= PATH_PHB;

		if (nic->role == ROLE_UNKNOWN && (nic->rail >= 0 || near))
			nic->role = ROLE_RAIL;
	}
}

/*
 * As long as it is not known which link has the default route, each NIC that may carry one is kept
 * back, but for those of rails.  One without a link carries none, if the links could be read.
 */
static void withhold(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	bool any = false;

	if (!m->incomplete && (m->default_routes.n > 0 || b->options->own_known))
		return;
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		if (nic->role == ROLE_FRONTEND || (nic->role == ROLE_RAIL && nic->netdev))
			continue;
		nic->withheld = nic->netdev || m->incomplete;
		any = any || nic->withheld;
	}
	if (any)
		topo_warn(
			b, "own-nic-unknown", "node",
			"%s: the node's own NIC is unknown; NICs that are not there for rails are "
			"not handed out meanwhile",
			m->incomplete ? "the hardware cannot be read in full" : "no default route");
}

/* --- rails --- */

/* "gpu3rdma1" with prefix "gpu" and middle "rdma" → 3, 1; "rdma5" with middle NULL → 5, 0. */
static bool match_name(const char *name, const char *prefix, const char *middle, unsigned int *n,
		       unsigned int *m)
{
	_cleanup_free_ char *first = NULL;
	const char *p = name + strlen(prefix);
	size_t digits;

	if (!starts_with(name, prefix))
		return false;
	digits = strspn(p, "0123456789");
	first = xstrndup(p, digits);
	if (parse_uint(first, MAX_RAIL, n) < 0)
		return false;
	p += digits;
	*m = 0;
	if (!middle)
		return *p == '\0';
	return starts_with(p, middle) && parse_uint(p + strlen(middle), MAX_RAIL, m) == 0;
}

/* The numbers in the name of a NIC's link, or of a child that is named after its rail. */
static bool name_numbers(const struct topo_nic *nic, bool per_gpu, unsigned int *n, unsigned int *m)
{
	if (!per_gpu)
		return nic->netdev && match_name(nic->netdev, "rdma", NULL, n, m);
	if (nic->netdev && match_name(nic->netdev, "gpu", "rdma", n, m))
		return true;
	for (size_t i = 0; i < nic->n_children; i++)
		if (nic->children[i].netdev &&
		    match_name(nic->children[i].netdev, "gpu", "ipvlan", n, m))
			return true;
	return false;
}

/* gpu<N>rdma<M>: rail N·F+M, F one more than the highest M; rdma<N>: rail N.  True: names exist. */
static bool rails_by_name(struct builder *b, bool per_gpu)
{
	unsigned int n, m, f = 0;
	bool any = false;

	for (size_t i = 0; i < b->inv->n_nics; i++) {
		if (b->nics[i].pf >= 0 || !name_numbers(&b->inv->nics[i], per_gpu, &n, &m))
			continue;
		if (m + 1 > f)
			f = m + 1;
		any = true;
	}
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		if (b->nics[i].pf >= 0 || !name_numbers(nic, per_gpu, &n, &m))
			continue;
		if (n * f + m > MAX_RAIL)
			continue;
		nic->rail = (int)(n * f + m);
		nic->rail_source = "netdev-name";
	}
	return any;
}

/* "pci0009:00" as one number, for sorting. */
static unsigned long root_number(const char *root)
{
	char *end;
	unsigned long domain = strtoul(root + 3, &end, 16);

	return domain << 8 | (*end == ':' ? strtoul(end + 1, NULL, 16) & 0xff : 0);
}

struct candidate {
	int nic;
	unsigned long root;
};

static int cmp_candidate(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return x->nic - y->nic; /* NICs are sorted by address */
}

/* The root that the NIC's DMA comes from, whatever the policy publishes; malloc'ed. */
static char *effective_root(const struct builder *b, size_t nic)
{
	const struct topo_nic *t = &b->inv->nics[nic];
	const struct hw_pci *dma = t->dma_bus_id ? hw_find_pci(b->machine, t->dma_bus_id) : NULL;

	if (dma)
		return pcie_root_of(dma->bus_id, dma->path);
	return b->nics[nic].place.complex ? xstrdup_null(t->function_pcie_root) : NULL;
}

/* A NIC near a GPU: one that is there for rails. */
static bool wants_rail(const struct builder *b, size_t nic)
{
	const struct topo_nic *t = &b->inv->nics[nic];

	return b->inv->topology_class != CLASS_FLAT && b->nics[nic].pf < 0 &&
	       t->role == ROLE_UNKNOWN && t->best_gpu >= 0 && t->best_path <= PATH_PHB;
}

/* Rails are not guessed: that NICs of one rail reach each other is what people rely on. */
static void warn_without_rails(struct builder *b)
{
	bool wanted = false;

	for (size_t i = 0; i < b->inv->n_nics; i++) {
		if (b->inv->nics[i].rail >= 0)
			return;
		wanted = wanted || wants_rail(b, i);
	}
	if (wanted)
		topo_warn(b, "rail-unknown", "node",
			  "no NIC has a rail: the links' names do not tell (gpu<N>rdma<M>, "
			  "rdma<N>), and %s",
			  b->root_order ? "not every GPU has exactly one NIC near it"
					: "this is no platform whose rails follow the PCI roots");
}

/*
 * Without names: the GPU-near NICs in the order of their effective roots, on platforms that are
 * cabled so.  Only when nothing is missing: every GPU has one NIC of its own within PHB.
 */
static void rails_by_root(struct builder *b)
{
	struct inventory *inv = b->inv;
	_cleanup_free_ struct candidate *list = xcalloc(inv->n_nics, sizeof(*list));
	_cleanup_free_ size_t *per_gpu = xcalloc(inv->n_gpus, sizeof(*per_gpu));
	size_t n = 0;

	if (!b->root_order)
		return;
	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		_cleanup_free_ char *root = effective_root(b, i);

		if (!wants_rail(b, i))
			continue;
		if (!root)
			return;
		per_gpu[nic->best_gpu]++;
		list[n++] = (struct candidate){ (int)i, root_number(root) };
	}
	for (size_t g = 0; g < inv->n_gpus; g++)
		if (per_gpu[g] != 1)
			return;
	qsort(list, n, sizeof(*list), cmp_candidate);
	for (size_t i = 0; i < n; i++) {
		inv->nics[list[i].nic].rail = (int)i;
		inv->nics[list[i].nic].rail_source = "root-order";
	}
}

static void drop_rails(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		b->inv->nics[i].rail = TOPO_UNKNOWN;
		b->inv->nics[i].rail_source = NULL;
	}
}

/*
 * Each once; otherwise none at all.  One that is missing takes none from the others: names are
 * absolute, and a NIC may have dropped off the bus.
 */
static void check_rails(struct builder *b)
{
	struct inventory *inv = b->inv;
	int n = 0;

	for (size_t i = 0; i < inv->n_nics; i++)
		n += inv->nics[i].rail >= 0;
	for (size_t i = 0; i < inv->n_nics; i++) {
		for (size_t k = i + 1; inv->nics[i].rail >= 0 && k < inv->n_nics; k++) {
			if (inv->nics[i].rail != inv->nics[k].rail)
				continue;
			topo_warn(b, "rail-duplicate", inv->nics[k].name,
				  "rail %d is also that of %s; no rail is published",
				  inv->nics[k].rail, inv->nics[i].name);
			drop_rails(b);
			return;
		}
	}
	for (size_t i = 0; i < inv->n_nics; i++) {
		if (inv->nics[i].rail < n)
			continue;
		topo_warn(
			b, "rail-gap", inv->nics[i].name,
			"it is on rail %d, but only %d NICs have a rail: one is missing, or their "
			"names do not count from 0",
			inv->nics[i].rail, n);
		break;
	}
	inv->rail_count = n;
}

static bool has_gap(const struct inventory *inv)
{
	for (size_t i = 0; i < inv->n_nics; i++)
		if (inv->nics[i].rail >= inv->rail_count)
			return true;
	return false;
}

/* How many rails the card with most of them has; 1 when no card has any. */
static int rails_per_card(const struct inventory *inv)
{
	int most = 1;

	for (size_t i = 0; i < inv->n_cards; i++) {
		int n = 0;

		for (size_t k = 0; k < inv->cards[i].n_members; k++)
			n += inv->nics[inv->cards[i].members[k]].rail >= 0;
		most = n > most ? n : most;
	}
	return most;
}

/*
 * With a rail missing, groups are counted as if all cards had as many rails, so that those behind
 * it keep their number.  When cards do not fit into that, there are none.
 */
static void set_groups_around_gap(struct inventory *inv)
{
	int size = rails_per_card(inv);

	for (size_t i = 0; i < inv->n_nics; i++)
		if (inv->nics[i].rail >= 0)
			inv->nics[i].rail_group = inv->nics[i].rail / size;
	for (size_t i = 0; i < inv->n_nics; i++) {
		for (size_t k = i + 1; inv->nics[i].rail >= 0 && k < inv->n_nics; k++) {
			const struct topo_nic *x = &inv->nics[i], *y = &inv->nics[k];
			bool one_card = x->card >= 0 && x->card == y->card;

			if (y->rail < 0 || one_card == (x->rail_group == y->rail_group))
				continue;
			for (size_t n = 0; n < inv->n_nics; n++)
				inv->nics[n].rail_group = TOPO_UNKNOWN;
			return;
		}
	}
}

/* Groups in the order of their lowest rail: the rails of one card, or one rail. */
static void set_rail_groups(struct builder *b)
{
	struct inventory *inv = b->inv;
	int group = 0;

	if (has_gap(inv)) {
		set_groups_around_gap(inv);
		return;
	}
	for (int rail = 0; rail < inv->rail_count; rail++) {
		for (size_t i = 0; i < inv->n_nics; i++) {
			struct topo_nic *nic = &inv->nics[i];
			bool first = nic->rail == rail && nic->rail_group < 0;

			if (!first)
				continue;
			nic->rail_group = group;
			for (size_t k = 0; nic->card >= 0 && k < inv->n_nics; k++)
				if (inv->nics[k].card == nic->card && inv->nics[k].rail >= 0)
					inv->nics[k].rail_group = group;
			group++;
		}
	}
}

/*
 * A VF has the rail and role of its PF, unless the node uses the VF itself; a GPU has the group of
 * its first best NIC.
 */
static void inherit(struct builder *b)
{
	struct inventory *inv = b->inv;

	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *pf = b->nics[i].pf >= 0 ? &inv->nics[b->nics[i].pf] : NULL;

		if (!pf)
			continue;
		if (inv->nics[i].role != ROLE_FRONTEND)
			inv->nics[i].role = pf->role;
		inv->nics[i].withheld = inv->nics[i].withheld || pf->withheld;
		inv->nics[i].rail = pf->rail;
		inv->nics[i].rail_group = pf->rail_group;
		inv->nics[i].rail_source = pf->rail_source;
	}
	for (size_t g = 0; g < inv->n_gpus; g++)
		for (size_t n = 0; n < inv->n_nics && inv->gpus[g].rail_group < 0; n++)
			if (inventory_pair(inv, g, n)->best)
				inv->gpus[g].rail_group = inv->nics[n].rail_group;
}

void topo_set_rails(struct builder *b)
{
	if (!rails_by_name(b, true) && !rails_by_name(b, false)) {
		rails_by_root(b);
		warn_without_rails(b);
	}
	check_rails(b);
	set_far_roles(b);
	set_rail_roles(b);
	set_rail_groups(b);
	withhold(b);
	inherit(b);
}

// SPDX-License-Identifier: Apache-2.0
/* Rails and rail groups. */
#include "topo/build.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"

/* --- names --- */

/* A pattern of links' names, and whether it is for the NIC's own link or for its children. */
struct name_rule {
	const char *pattern;
	bool link, child;
};

static const struct name_rule generic_rules[] = {
	{ "gpu<N>rdma<M>", true, false },
	{ "gpu<N>ipvlan<M>", false, true },
	{ "rdma<N>", true, false },
};

/* The number at *p; moves *p behind it. */
static bool match_number(const char **p, unsigned int *ret)
{
	size_t digits = strspn(*p, "0123456789");
	_cleanup_free_ char *text = xstrndup(*p, digits);

	*p += digits;
	return parse_uint(text, PLATFORM_MAX_RAIL, ret) == 0;
}

/* "gpu3rdma1" with "gpu<N>rdma<M>" → 3, 1; "rdma5" with "rdma<N>" → 5, 0. */
static bool match_name(const char *pattern, const char *name, unsigned int *n, unsigned int *m)
{
	*m = 0;
	while (*pattern) {
		if (starts_with(pattern, "<N>") || starts_with(pattern, "<M>")) {
			if (!match_number(&name, pattern[1] == 'N' ? n : m))
				return false;
			pattern += 3;
		} else if (*pattern++ != *name++) {
			return false;
		}
	}
	return *name == '\0';
}

static bool is_rail_child(const struct topo_child *child)
{
	return streq(child->kind, "ipvlan") || streq(child->kind, "macvlan");
}

static bool rule_matches(const struct name_rule *rule, const struct topo_nic *nic, unsigned int *n,
			 unsigned int *m)
{
	if (rule->link && nic->netdev && match_name(rule->pattern, nic->netdev, n, m))
		return true;
	for (size_t i = 0; rule->child && i < nic->n_children; i++)
		if (nic->children[i].netdev && is_rail_child(&nic->children[i]) &&
		    match_name(rule->pattern, nic->children[i].netdev, n, m))
			return true;
	return false;
}

/* The numbers in the name of a NIC's link, or of a child that is named after its rail. */
static bool name_numbers(const struct name_rule *rules, size_t n_rules, bool per_gpu,
			 const struct topo_nic *nic, unsigned int *n, unsigned int *m)
{
	for (size_t i = 0; i < n_rules; i++)
		if ((strstr(rules[i].pattern, "<M>") != NULL) == per_gpu &&
		    rule_matches(&rules[i], nic, n, m))
			return true;
	return false;
}

/*
 * Links that are missing must not change the rails of the others: where the platform says how many
 * rails and GPUs there are, that decides how many rails each GPU has.  "seen": one more than the
 * highest M of the names; 0: they do not fit the platform.
 */
static unsigned int rails_per_gpu(struct builder *b, unsigned int seen)
{
	unsigned int gpus = platform_gpus(b->platform), rails;

	if (gpus == 0 || b->platform->rails < 0)
		return seen;
	rails = (unsigned int)b->platform->rails;
	if (rails % gpus == 0 && rails / gpus >= seen)
		return rails / gpus;
	topo_warn(b, "rail-unknown", "node",
		  "no NIC has a rail: the links' names count %u for each GPU, but %s has %u for %u "
		  "GPUs; a railMap in the platform file tells them",
		  seen, b->platform->name, rails, gpus);
	return 0;
}

/*
 * gpu<N>rdma<M>: rail N·F+M, F by the platform, else one more than the highest M; rdma<N>: rail N.
 * True: names exist.
 */
static bool rails_by_rules(struct builder *b, const struct name_rule *rules, size_t n_rules,
			   bool per_gpu)
{
	unsigned int n, m, f = 0;
	bool any = false;

	for (size_t i = 0; i < b->inv->n_nics; i++) {
		if (b->nics[i].pf >= 0 ||
		    !name_numbers(rules, n_rules, per_gpu, &b->inv->nics[i], &n, &m))
			continue;
		if (m + 1 > f)
			f = m + 1;
		any = true;
	}
	if (any && per_gpu)
		f = rails_per_gpu(b, f);
	for (size_t i = 0; f > 0 && i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		if (b->nics[i].pf >= 0 || !name_numbers(rules, n_rules, per_gpu, nic, &n, &m))
			continue;
		if (n * f + m > PLATFORM_MAX_RAIL)
			continue;
		nic->rail = (int)(n * f + m);
		nic->rail_source = "netdev-name";
	}
	return any;
}

/* Names of the platform first, then those that are used everywhere; of a GPU, then of a rail. */
static bool rails_by_name(struct builder *b)
{
	const struct strlist *own = b->platform ? &b->platform->rail_names : NULL;
	size_t n = own ? own->n : 0;
	_cleanup_free_ struct name_rule *rules = xcalloc(n, sizeof(*rules));

	for (size_t i = 0; i < n; i++)
		rules[i] = (struct name_rule){ own->items[i], true, true };
	return rails_by_rules(b, rules, n, true) || rails_by_rules(b, rules, n, false) ||
	       rails_by_rules(b, generic_rules, ARRAY_SIZE(generic_rules), true) ||
	       rails_by_rules(b, generic_rules, ARRAY_SIZE(generic_rules), false);
}

/* --- the platform file --- */

/* The map says it for each address.  True: for one that is there. */
static bool rails_by_map(struct builder *b)
{
	const struct platform *p = b->platform;
	bool any = false;

	for (size_t k = 0; p && k < p->n_rail_map; k++) {
		for (size_t i = 0; i < b->inv->n_nics; i++) {
			struct topo_nic *nic = &b->inv->nics[i];

			if (b->nics[i].pf >= 0 ||
			    bus_id_cmp(nic->bus_id, p->rail_map[k].bus_id) != 0)
				continue;
			nic->rail = p->rail_map[k].rail;
			nic->rail_source = platform_source(p);
			any = true;
		}
	}
	return any;
}

struct candidate {
	int nic;
	unsigned long place;
};

static int cmp_candidate(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->nic - y->nic; /* NICs are sorted by address */
}

static void number_rails(struct builder *b, struct candidate *list, size_t n, const char *source)
{
	qsort(list, n, sizeof(*list), cmp_candidate);
	for (size_t i = 0; i < n; i++) {
		b->inv->nics[list[i].nic].rail = (int)i;
		b->inv->nics[list[i].nic].rail_source = source;
	}
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

/* A NIC that may be there for rails. */
static bool may_have_rail(const struct builder *b, size_t nic)
{
	const struct topo_nic *t = &b->inv->nics[nic];

	return b->nics[nic].pf < 0 && (t->role == ROLE_UNKNOWN || t->role == ROLE_RAIL);
}

/* One near a GPU is there for rails. */
static bool wants_rail(const struct builder *b, size_t nic)
{
	return b->inv->topology_class != CLASS_FLAT && may_have_rail(b, nic) &&
	       topo_nearest_path(b, nic) <= PATH_PHB;
}

/* The lowest of several that are equally near. */
static size_t nearest_gpu(const struct builder *b, size_t nic)
{
	const struct topo_pair *best = NULL;
	size_t found = 0;

	for (size_t g = 0; g < b->inv->n_gpus; g++) {
		const struct topo_pair *pair = inventory_pair(b->inv, g, nic);

		if (!best || pair->path < best->path ||
		    (pair->path == best->path && pair->hops < best->hops)) {
			best = pair;
			found = g;
		}
	}
	return found;
}

/*
 * Without names: the GPU-near NICs in the order of their effective roots, on platforms that are
 * cabled so.  Only when nothing is missing: every GPU has one NIC of its own within PHB, and there
 * are as many as rails, if the platform says how many.
 */
static void rails_by_root(struct builder *b)
{
	struct inventory *inv = b->inv;
	_cleanup_free_ struct candidate *list = xcalloc(inv->n_nics, sizeof(*list));
	_cleanup_free_ size_t *per_gpu = xcalloc(inv->n_gpus, sizeof(*per_gpu));
	size_t n = 0;

	for (size_t i = 0; i < inv->n_nics; i++) {
		_cleanup_free_ char *root = NULL;

		if (!wants_rail(b, i))
			continue;
		root = effective_root(b, i);
		if (!root)
			return;
		per_gpu[nearest_gpu(b, i)]++;
		list[n++] = (struct candidate){ (int)i, pcie_root_number(root) };
	}
	for (size_t g = 0; g < inv->n_gpus; g++)
		if (per_gpu[g] != 1)
			return;
	if (b->platform->rails >= 0 && n != (size_t)b->platform->rails)
		return;
	number_rails(b, list, n, "root-order");
}

/* As many NICs as rails, each in a PCI domain of its own: virtual machines that number them so. */
static void rails_by_domain(struct builder *b)
{
	struct inventory *inv = b->inv;
	_cleanup_free_ struct candidate *list = xcalloc(inv->n_nics, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < inv->n_nics; i++)
		if (may_have_rail(b, i))
			list[n++] = (struct candidate){ (int)i,
							strtoul(inv->nics[i].bus_id, NULL, 16) };
	if (n != (size_t)b->platform->rails)
		return;
	for (size_t i = 0; i + 1 < n; i++) /* sorted by address already */
		if (list[i].place == list[i + 1].place)
			return;
	number_rails(b, list, n, "pci-domain");
}

static void rails_by_order(struct builder *b)
{
	if (b->platform && b->platform->rail_order == RAIL_ORDER_PCIE_ROOT)
		rails_by_root(b);
	else if (b->platform && b->platform->rail_order == RAIL_ORDER_PCI_DOMAIN)
		rails_by_domain(b);
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
			  "rdma<N>), and %s; a railMap in the platform file tells it",
			  b->platform && b->platform->rail_order != RAIL_ORDER_NONE
				  ? "a GPU is missing, or has not exactly one NIC near it"
				  : "this is no platform whose rails follow the PCI roots");
}

/* --- checks and groups --- */

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

/* A VF has the rail and role of its PF, unless the node uses the VF itself. */
static void inherit(struct builder *b)
{
	struct inventory *inv = b->inv;

	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *pf = b->nics[i].pf >= 0 ? &inv->nics[b->nics[i].pf] : NULL;

		if (!pf)
			continue;
		if (inv->nics[i].role != ROLE_FRONTEND) {
			inv->nics[i].role = pf->role;
			inv->nics[i].role_source = pf->role_source;
		}
		inv->nics[i].withheld = inv->nics[i].withheld || pf->withheld;
		inv->nics[i].rail = pf->rail;
		inv->nics[i].rail_group = pf->rail_group;
		inv->nics[i].rail_source = pf->rail_source;
	}
}

void topo_set_gpu_groups(struct builder *b)
{
	struct inventory *inv = b->inv;

	for (size_t g = 0; g < inv->n_gpus; g++)
		for (size_t n = 0; n < inv->n_nics && inv->gpus[g].rail_group < 0; n++)
			if (inventory_pair(inv, g, n)->best)
				inv->gpus[g].rail_group = inv->nics[n].rail_group;
}

void topo_set_rails(struct builder *b)
{
	if (!rails_by_map(b) && !rails_by_name(b)) {
		rails_by_order(b);
		warn_without_rails(b);
	}
	check_rails(b);
	topo_set_roles(b);
	set_rail_groups(b);
	inherit(b);
}

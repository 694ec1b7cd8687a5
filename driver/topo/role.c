// SPDX-License-Identifier: Apache-2.0
/*
 * What NICs are there for, and which of them are never handed out (docs/design.md §6, Roles):
 * recomputed from the facts at each reading, never remembered but by the caller.
 */
#include "base/mem.h"
#include "topo/build.h"
#include "topo/pattern.h"
#include "topo/prefix.h"

/* --- what the node itself uses --- */

/* For each link (by its place in machine->netdevs) why the node uses it; NULL: it does not. */
struct usage {
	const struct hw_machine *machine;
	const char **why;
	size_t *todo; /* links whose lower ones are still to be looked at */
};

static void mark(struct usage *u, const char *netdev, const char *why, size_t *n_todo)
{
	const struct hw_netdev *link = hw_find_netdev(u->machine, netdev);
	size_t i = link ? (size_t)(link - u->machine->netdevs) : 0;

	if (!link || u->why[i])
		return;
	u->why[i] = why;
	u->todo[(*n_todo)++] = i;
}

/* The node uses this link, so it uses all below it (of a bond, bridge, VLAN or macvlan), too. */
static void use_link(struct usage *u, const char *netdev, const char *why)
{
	size_t n_todo = 0;

	mark(u, netdev, why, &n_todo);
	while (n_todo) {
		const struct hw_netdev *link = &u->machine->netdevs[u->todo[--n_todo]];

		for (size_t i = 0; i < link->lower.n; i++)
			mark(u, link->lower.items[i], why, &n_todo);
	}
}

static bool is_global(const struct hw_address *address)
{
	return !address->scope || streq(address->scope, "global");
}

/* True: an address of the node was found on a link. */
static bool use_node_addresses(struct usage *u, const struct strlist *texts)
{
	const struct hw_ip *ip = &u->machine->ip;
	bool found = false;

	for (size_t i = 0; texts && i < texts->n; i++) {
		struct ip_prefix node, own;

		if (!ip_prefix_parse(texts->items[i], &node))
			continue;
		for (size_t k = 0; k < ip->n_addresses; k++) {
			if (!ip_prefix_parse(ip->addresses[k].address, &own) ||
			    !ip_prefix_contains(&own, &node))
				continue;
			found = true;
			use_link(u, ip->addresses[k].netdev, "node-address");
		}
	}
	return found;
}

/*
 * A VLAN with an address is the node's: who gets the link below it would get the VLAN's traffic,
 * too.  Children of rails (ipvlan, macvlan) hold the rail's addresses and go with it.
 */
static void use_vlan_parents(struct usage *u)
{
	const struct hw_ip *ip = &u->machine->ip;

	for (size_t i = 0; i < ip->n_addresses; i++) {
		const struct hw_address *address = &ip->addresses[i];
		const struct hw_netdev *link = hw_find_netdev(u->machine, address->netdev);

		if (!link || !link->kind || !streq(link->kind, "vlan") || !is_global(address))
			continue;
		for (size_t k = 0; k < link->lower.n; k++)
			use_link(u, link->lower.items[k], "vlan-parent");
	}
}

static void find_used_links(struct builder *b, struct usage *u)
{
	const struct hw_machine *m = b->machine;

	for (size_t i = 0; i < m->default_routes.n; i++)
		use_link(u, m->default_routes.items[i], "default-route");
	b->own_found = use_node_addresses(u, b->options->node_addresses) || m->default_routes.n > 0;
	/*
	 * Whoever is part of a bond, bridge, OVS or VRF, or is the fast path of a Hyper-V link, is
	 * no longer its own master.
	 */
	for (size_t i = 0; i < m->n_netdevs; i++)
		if (m->netdevs[i].master)
			use_link(u, m->netdevs[i].name, "master");
	use_vlan_parents(u);
}

/* NULL: the node does not use it, or there is no link. */
static const char *why_link(const struct usage *u, const char *netdev)
{
	const struct hw_netdev *link = netdev ? hw_find_netdev(u->machine, netdev) : NULL;

	return link ? u->why[link - u->machine->netdevs] : NULL;
}

/*
 * Why the node uses the NIC's link, one that its RDMA device serves as part of a bond, or one that
 * lives on the same function although no link is below it: another port, a VF, a subfunction.
 */
static const char *why_used(const struct usage *u, const struct topo_nic *nic)
{
	const char *why = why_link(u, nic->netdev);

	for (size_t i = 0; !why && nic->lag_members && nic->lag_members[i]; i++)
		why = why_link(u, nic->lag_members[i]);
	for (size_t i = 0; !why && i < nic->n_children; i++)
		why = why_link(u, nic->children[i].netdev);
	return why;
}

static void set_role(struct topo_nic *nic, enum topo_role role, const char *source)
{
	nic->role = role;
	nic->role_source = source;
}

/* An atomic card is handed out whole: it is the node's own as soon as one of its PFs is. */
static void spread_over_card(struct inventory *inv, const struct topo_card *card)
{
	bool frontend = false;

	for (size_t i = 0; i < card->n_members; i++)
		frontend = frontend || inv->nics[card->members[i]].role == ROLE_FRONTEND;
	for (size_t i = 0; frontend && i < card->n_members; i++)
		if (inv->nics[card->members[i]].role != ROLE_FRONTEND)
			set_role(&inv->nics[card->members[i]], ROLE_FRONTEND, "card");
}

/* What the platform file says of NICs that the node does not use. */
static void set_platform_roles(struct builder *b)
{
	const struct platform *p = b->platform;

	for (size_t i = 0; p && i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		for (size_t k = 0; k < p->n_roles && b->nics[i].pf < 0; k++)
			for (size_t n = 0; n < p->roles[k].nics.n; n++)
				if (nic->role == ROLE_UNKNOWN &&
				    nic_pattern_match(p->roles[k].nics.items[n], nic))
					set_role(nic, p->roles[k].role, platform_source(p));
	}
}

void topo_set_frontends(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	const struct strlist *own = b->options->own_nics;
	struct inventory *inv = b->inv;
	_cleanup_free_ const char **why = xcalloc(m->n_netdevs, sizeof(*why));
	_cleanup_free_ size_t *todo = xcalloc(m->n_netdevs, sizeof(*todo));
	struct usage u = { m, why, todo };

	find_used_links(b, &u);
	for (size_t i = 0; i < inv->n_nics; i++) {
		const char *used = why_used(&u, &inv->nics[i]);

		if (!used && own && strlist_has(own, inv->nics[i].bus_id))
			used = "earlier";
		if (used)
			set_role(&inv->nics[i], ROLE_FRONTEND, used);
	}
	set_platform_roles(b);
	for (size_t i = 0; i < inv->n_cards; i++)
		if (inv->cards[i].atomic)
			spread_over_card(inv, &inv->cards[i]);
}

bool topo_is_own(const struct topo_nic *nic)
{
	return nic->role == ROLE_FRONTEND && nic->role_source &&
	       !streq(nic->role_source, "platform") && !streq(nic->role_source, "config");
}

/* --- the other roles --- */

enum path_class topo_nearest_path(const struct builder *b, size_t nic)
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

/*
 * What has no GPU near it although every GPU has a NIC is there for something else, unless its GPU
 * is gone: one is missing, or the NIC sits at a switch, where GPUs are, too.
 */
static void set_far_roles(struct builder *b)
{
	bool storage = every_gpu_has_nic(b) && b->inv->n_gpus >= platform_gpus(b->platform);

	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];
		enum path_class path = topo_nearest_path(b, i);

		if (nic->role != ROLE_UNKNOWN || nic->rail >= 0 || path <= PATH_PHB ||
		    path == PATH_UNKNOWN)
			continue;
		if (card_is_frontend(b, nic))
			set_role(nic, ROLE_FRONTEND, "card"); /* the other port of that card */
		else if (storage && !place_switch(&b->nics[i].place))
			set_role(nic, ROLE_STORAGE, "distance");
	}
}

static const char *source_of_rail(const struct builder *b, const struct topo_nic *nic)
{
	return streq(nic->rail_source, "netdev-name") ? "name" : platform_source(b->platform);
}

static void set_rail_roles(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];
		bool near =
			b->inv->topology_class != CLASS_FLAT && topo_nearest_path(b, i) <= PATH_PHB;

		if (nic->role == ROLE_UNKNOWN && nic->rail >= 0)
			set_role(nic, ROLE_RAIL, source_of_rail(b, nic));
		else if (nic->role == ROLE_UNKNOWN && near)
			set_role(nic, ROLE_RAIL, "distance");
	}
}

/*
 * That it stands near a GPU proves nothing (the only NIC of a small machine does, too), nor does
 * its place in an order: a name, or what somebody wrote of it, does.
 */
static bool is_surely_rail(const struct topo_nic *nic)
{
	if (nic->role != ROLE_RAIL || !nic->netdev || streq(nic->role_source, "distance"))
		return false;
	return !nic->rail_source ||
	       (!streq(nic->rail_source, "root-order") && !streq(nic->rail_source, "pci-domain"));
}

/*
 * As long as it is not known which link has the default route, each NIC that may carry one is kept
 * back, but for those of rails.  One without a link carries none, if the links could be read.
 */
static void withhold(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	bool any = false;

	if (!m->incomplete && (b->own_found || b->options->own_known))
		return;
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		if (nic->role == ROLE_FRONTEND || is_surely_rail(nic))
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

void topo_set_roles(struct builder *b)
{
	set_far_roles(b);
	set_rail_roles(b);
	withhold(b);
}

/* --- what the administrator withholds --- */

static bool any_matches(const struct strlist *patterns, const struct topo_nic *nic)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (nic_pattern_match(patterns->items[i], nic))
			return true;
	return false;
}

void topo_set_excluded(struct builder *b)
{
	const struct strlist *include = b->options->include, *exclude = b->options->exclude;

	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		nic->excluded = (include && include->n && !any_matches(include, nic)) ||
				(exclude && any_matches(exclude, nic));
	}
}

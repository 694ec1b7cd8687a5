// SPDX-License-Identifier: Apache-2.0
/* What is made on a NIC: links on its link, VFs, subfunctions, further ports, the rest of a LAG. */
#include "topo/build.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"

#define MAX_STACK 16 /* links on links; also ends a circle */

bool topo_is_child_kind(const char *kind)
{
	static const char *const kinds[] = { "ipvlan", "ipvtap", "macvlan", "macvtap", "vlan" };

	for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++)
		if (streq(kind, kinds[i]))
			return true;
	return false;
}

static int nic_of_function(const struct builder *b, const char *bus_id)
{
	const struct function_owns *owns = topo_function(b, bus_id);

	return owns ? owns->nic : TOPO_UNKNOWN;
}

/* The PF of a VF, or NULL. */
static const char *pf_of(const struct builder *b, const char *bus_id)
{
	const struct hw_pci *pci = bus_id ? hw_find_pci(b->machine, bus_id) : NULL;

	return pci ? pci->physfn : NULL;
}

/* The NIC that a link belongs to or is made on; TOPO_UNKNOWN: none, e.g. a bond. */
static int nic_below(const struct builder *b, const struct hw_netdev *link, unsigned int depth)
{
	int nic = TOPO_UNKNOWN;

	if (link->bus_id) {
		if (topo_is_uplink(link))
			nic = nic_of_function(b, link->bus_id);
		/* A VF that is no NIC of its own is part of its PF. */
		return nic >= 0 ? nic : nic_of_function(b, pf_of(b, link->bus_id));
	}
	if (link->sf_parent)
		return nic_of_function(b, link->sf_parent);
	for (size_t i = 0; topo_is_child_kind(link->kind) && depth < MAX_STACK && i < link->lower.n;
	     i++) {
		const struct hw_netdev *lower = hw_find_netdev(b->machine, link->lower.items[i]);

		if (lower && nic < 0)
			nic = nic_below(b, lower, depth + 1);
	}
	return nic;
}

/* Strings are copied; "nic" may be TOPO_UNKNOWN. */
static void add_child(struct builder *b, int nic, const char *netdev, const char *kind,
		      const char *rdma, const char *bus_id)
{
	struct topo_nic *parent;

	if (nic < 0)
		return;
	parent = &b->inv->nics[nic];
	parent->children =
		xrealloc(parent->children, parent->n_children + 1, sizeof(*parent->children));
	parent->children[parent->n_children++] = (struct topo_child){
		.netdev = xstrdup_null(netdev),
		.kind = xstrdup(kind),
		.rdma_device = xstrdup_null(rdma),
		.bus_id = xstrdup_null(bus_id),
	};
}

static void add_link(struct builder *b, const struct hw_netdev *link)
{
	const struct function_owns *owns = topo_function(b, link->bus_id);
	const char *pf = pf_of(b, link->bus_id);

	if (pf)
		add_child(b, nic_of_function(b, pf), link->name, "vf",
			  owns->rdma ? owns->rdma->name : NULL, link->bus_id);
	else if (owns && owns->link != link && topo_is_uplink(link))
		add_child(b, owns->nic, link->name, "port", NULL, NULL);
	else if (link->sf_parent)
		add_child(b, nic_of_function(b, link->sf_parent), link->name, "sf", NULL, NULL);
	else if (!link->bus_id && topo_is_child_kind(link->kind))
		add_child(b, nic_below(b, link, 0), link->name, link->kind, NULL, NULL);
}

/* --- RDMA devices of subfunctions --- */

static bool has_gid_of(const struct hw_rdma *rdma, const char *netdev)
{
	for (size_t i = 0; i < rdma->n_ports; i++)
		for (size_t k = 0; k < rdma->ports[i].n_gids; k++)
			if (streq_null(rdma->ports[i].gids[k].netdev, netdev))
				return true;
	return false;
}

/* How many RDMA devices subfunctions of this function have. */
static size_t count_sf_devices(const struct hw_machine *m, const char *sf_parent)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_rdma; i++)
		n += streq_null(m->rdma[i].sf_parent, sf_parent);
	return n;
}

/* The subfunction's link by the names in its GIDs; or the only one there can be.  NULL: none. */
static struct topo_child *link_of_sf(const struct builder *b, struct topo_nic *nic,
				     const struct hw_rdma *rdma)
{
	struct topo_child *only = NULL;
	size_t n = 0;

	for (size_t i = 0; i < nic->n_children; i++) {
		struct topo_child *child = &nic->children[i];

		if (!streq(child->kind, "sf") || child->rdma_device)
			continue;
		if (child->netdev && has_gid_of(rdma, child->netdev))
			return child;
		only = child;
		n++;
	}
	return n == 1 && count_sf_devices(b->machine, rdma->sf_parent) == 1 ? only : NULL;
}

static void add_sf_device(struct builder *b, const struct hw_rdma *rdma)
{
	int nic = nic_of_function(b, rdma->sf_parent);
	struct topo_child *child = nic >= 0 ? link_of_sf(b, &b->inv->nics[nic], rdma) : NULL;

	if (child)
		child->rdma_device = xstrdup(rdma->name);
	else
		add_child(b, nic, NULL, "sf", rdma->name, NULL);
}

/* --- LAG --- */

/*
 * A bond over the ports of one mlx5 chip has one RDMA device, on the first of them; the other
 * functions have none.  Only those: another NIC in the same bond has its own.
 */
static bool is_served(const struct builder *b, const struct topo_nic *nic,
		      const struct hw_netdev *link, const struct hw_netdev *own)
{
	const struct function_owns *owns = topo_function(b, link->bus_id);
	const struct hw_pci *pci = link->bus_id ? hw_find_pci(b->machine, link->bus_id) : NULL;

	if (!owns || !pci || owns->rdma || owns->link != link ||
	    !streq_null(link->master, own->master))
		return false;
	return pci->vendor == nic->vendor_id && pci->device == nic->device_id &&
	       (bus_id_same_slot(pci->bus_id, nic->bus_id) ||
		(own->phys_switch_id && streq_null(link->phys_switch_id, own->phys_switch_id)));
}

static void set_lag_members(struct builder *b, size_t i)
{
	const struct hw_machine *m = b->machine;
	const struct hw_netdev *own = b->nics[i].netdev;
	const struct hw_netdev *bond = own && own->master ? hw_find_netdev(m, own->master) : NULL;
	struct topo_nic *nic = &b->inv->nics[i];
	struct strlist names = { 0 };

	if (!bond || !streq_null(bond->kind, "bond") || nic->vendor_id != VENDOR_MELLANOX)
		return;
	for (size_t k = 0; k < m->n_netdevs; k++) {
		if (!is_served(b, nic, &m->netdevs[k], own))
			continue;
		strlist_add(&names, m->netdevs[k].name);
		topo_function(b, m->netdevs[k].bus_id)->in_lag = true;
	}
	nic->lag_members = names.items;
}

void topo_add_children(struct builder *b)
{
	const struct hw_machine *m = b->machine;

	for (size_t i = 0; i < m->n_netdevs; i++)
		add_link(b, &m->netdevs[i]);
	for (size_t i = 0; i < m->n_rdma; i++)
		if (m->rdma[i].sf_parent && !m->rdma[i].bus_id)
			add_sf_device(b, &m->rdma[i]);
	for (size_t i = 0; i < b->inv->n_nics; i++)
		set_lag_members(b, i);
}

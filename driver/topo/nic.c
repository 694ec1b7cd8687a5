// SPDX-License-Identifier: Apache-2.0
/* The functions: which PCI functions are GPUs and NICs, and their own facts. */
#include "topo/build.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"

bool topo_may_have_data_direct(const struct topo_nic *nic)
{
	return nic->vendor_id == VENDOR_MELLANOX &&
	       (nic->device_id == 0x1023 || nic->device_id == 0x1025);
}

bool topo_has_data_direct(const struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_pci; i++)
		if (machine->pci[i].vendor == VENDOR_MELLANOX && machine->pci[i].device == 0x2100)
			return true;
	return false;
}

bool topo_is_vf(const struct hw_pci *pci)
{
	return pci->physfn || (pci->vendor == VENDOR_MELLANOX && pci->device == 0x101e);
}

static const char *gpu_vendor(const struct hw_pci *pci)
{
	unsigned int class = pci->class >> 8;

	if (pci->vendor == VENDOR_NVIDIA && (class == 0x0300 || class == 0x0302))
		return "nvidia";
	if (pci->vendor == VENDOR_AMD && (class == 0x1200 || class == 0x0380))
		return "amd";
	if (pci->vendor == VENDOR_INTEL && class == 0x0380)
		return "intel";
	return NULL;
}

static int cmp_pci(const void *a, const void *b)
{
	const struct hw_pci *const *x = a, *const *y = b;

	return bus_id_cmp((*x)->bus_id, (*y)->bus_id);
}

/* All functions by address as numbers; the caller frees the array. */
static const struct hw_pci **sorted_functions(const struct hw_machine *machine)
{
	const struct hw_pci **sorted = xcalloc(machine->n_pci, sizeof(const struct hw_pci *));

	for (size_t i = 0; i < machine->n_pci; i++)
		sorted[i] = &machine->pci[i];
	qsort(sorted, machine->n_pci, sizeof(const struct hw_pci *), cmp_pci);
	return sorted;
}

static void add_gpu(struct builder *b, const struct hw_pci *pci, const char *vendor)
{
	const struct hw_machine *m = b->machine;
	struct topo_gpu *gpu = array_push(b->inv->gpus, b->inv->n_gpus, b->cap_gpus);
	size_t n_places = b->inv->n_gpus - 1;
	struct place *place = array_push(b->gpus, n_places, b->cap_gpu_places);

	place_init(place, m, pci);
	*gpu = (struct topo_gpu){
		.name = device_name("gpu", pci->bus_id),
		.bus_id = xstrdup(pci->bus_id),
		.vendor = vendor,
		.vendor_id = pci->vendor,
		.device_id = pci->device,
		.minor = TOPO_UNKNOWN,
		.n_partitions = TOPO_UNKNOWN,
		.iommu_group = pci->iommu_group,
		.numa_node = pci->numa_node,
		.pcie_root = pcie_root_of(pci->bus_id, pci->path),
		.pcie_switch = xstrdup_null(place_switch(place)),
		.rail_group = TOPO_UNKNOWN,
	};
	if (pci->vendor == VENDOR_NVIDIA) {
		gpu->driver_version = xstrdup_null(m->nvidia_driver);
		gpu->gdr = m->nvidia_peermem ? "peermem" : NULL;
	}
	for (size_t i = 0; i < m->n_gpus; i++) {
		const struct hw_gpu *hw = &m->gpus[i];

		if (bus_id_cmp(hw->bus_id, pci->bus_id) != 0)
			continue;
		gpu->model = xstrdup_null(hw->model);
		gpu->uuid = xstrdup_null(hw->uuid);
		gpu->minor = hw->minor;
		break;
	}
	if (!gpu->pcie_root)
		topo_warn(b, "pcie-root-unknown", gpu->name,
			  "its place in the PCI tree is not below a PCI root complex of this "
			  "machine; pcieRoot is left out");
}

void topo_add_gpus(struct builder *b)
{
	_cleanup_free_ const struct hw_pci **sorted = sorted_functions(b->machine);

	for (size_t i = 0; i < b->machine->n_pci; i++) {
		const char *vendor = gpu_vendor(sorted[i]);

		if (vendor)
			add_gpu(b, sorted[i], vendor);
	}
}

/* Representors of VFs ("pf0vf1") sit on the same function as the uplink ("p0", or no name). */
static bool is_uplink(const struct hw_netdev *netdev)
{
	const char *name = netdev->phys_port_name;

	return !name || (name[0] == 'p' && name[1] && !name[1 + strspn(name + 1, "0123456789")]);
}

/* What belongs to machine->pci[i]; with 1,024 VFs nothing may be sought for each of them. */
struct owned {
	const struct hw_rdma *rdma;
	const struct hw_netdev *link;
	int nic; /* TOPO_UNKNOWN: it is none */
};

static struct owned *owned_by(struct owned *owned, const struct hw_machine *m, const char *bus_id)
{
	const struct hw_pci *pci = bus_id ? hw_find_pci(m, bus_id) : NULL;

	return pci ? &owned[pci - m->pci] : NULL;
}

/* The caller frees the array. */
static struct owned *assign_devices(const struct hw_machine *m)
{
	struct owned *owned = xcalloc(m->n_pci, sizeof(*owned)), *o;

	for (size_t i = 0; i < m->n_pci; i++)
		owned[i].nic = TOPO_UNKNOWN;
	for (size_t i = 0; i < m->n_rdma; i++) {
		o = owned_by(owned, m, m->rdma[i].bus_id);
		/* One of its own goes before a software device on its link. */
		if (o && (!o->rdma || (o->rdma->software && !m->rdma[i].software)))
			o->rdma = &m->rdma[i];
	}
	for (size_t i = 0; i < m->n_netdevs; i++) {
		o = owned_by(owned, m, m->netdevs[i].bus_id);
		if (o && !o->link && is_uplink(&m->netdevs[i]))
			o->link = &m->netdevs[i];
	}
	return owned;
}

static bool is_child_kind(const char *kind)
{
	static const char *const kinds[] = { "ipvlan", "ipvtap", "macvlan", "macvtap", "vlan" };

	for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++)
		if (streq(kind, kinds[i]))
			return true;
	return false;
}

static void add_child(struct builder *b, const struct owned *parent, const char *netdev,
		      const char *kind)
{
	struct topo_nic *nic;
	size_t n;

	if (!parent || parent->nic < 0)
		return;
	nic = &b->inv->nics[parent->nic];
	n = nic->n_children++;
	nic->children = xrealloc(nic->children, nic->n_children, sizeof(*nic->children));
	nic->children[n] = (struct topo_child){
		.netdev = xstrdup(netdev),
		.kind = xstrdup(kind),
	};
}

/* Links on the NIC's own link, links of its VFs and subfunctions; by name. */
static void add_children(struct builder *b, struct owned *owned)
{
	const struct hw_machine *m = b->machine;

	for (size_t i = 0; i < m->n_netdevs; i++) {
		const struct hw_netdev *netdev = &m->netdevs[i];
		const struct hw_pci *pci = netdev->bus_id ? hw_find_pci(m, netdev->bus_id) : NULL;

		for (size_t k = 0; is_child_kind(netdev->kind) && k < netdev->lower.n; k++) {
			const struct hw_netdev *lower = hw_find_netdev(m, netdev->lower.items[k]);
			const struct owned *o = lower ? owned_by(owned, m, lower->bus_id) : NULL;

			if (o && o->link == lower)
				add_child(b, o, netdev->name, netdev->kind);
		}
		if (pci && pci->physfn)
			add_child(b, owned_by(owned, m, pci->physfn), netdev->name, "vf");
		if (netdev->sf_parent)
			add_child(b, owned_by(owned, m, netdev->sf_parent), netdev->name, "sf");
	}
}

static bool is_link_local(const char *gid)
{
	/* fe80::/10: the third digit is 8, 9, a or b */
	return starts_with(gid, "fe") && gid[2] && strchr("89ab", gid[2]);
}

/*
 * The RoCE v2 entry with an address that is more than link-local: of a child (it holds the address
 * where there is one), else of the link itself, else any; a link-local one when nothing else is
 * there.  Lowest index first.  InfiniBand needs no choice.
 */
int topo_choose_gid(const struct topo_nic *nic, const struct topo_port *port)
{
	int best = TOPO_UNKNOWN, best_score = 0;

	if (!port->link_layer || !streq(port->link_layer, "Ethernet"))
		return TOPO_UNKNOWN;
	for (size_t i = 0; i < port->n_gids; i++) {
		const struct topo_gid *gid = &port->gids[i];
		int score = 1;

		if (!gid->type || !streq(gid->type, "RoCE v2"))
			continue;
		if (!is_link_local(gid->gid)) {
			score = 2;
			if (gid->netdev && nic->netdev && streq(gid->netdev, nic->netdev))
				score = 3;
			for (size_t k = 0; gid->netdev && k < nic->n_children; k++)
				if (streq(gid->netdev, nic->children[k].netdev))
					score = 4;
		}
		if (score > best_score) {
			best = (int)gid->index;
			best_score = score;
		}
	}
	return best;
}

static void add_ports(struct topo_nic *nic, const struct hw_rdma *rdma)
{
	nic->ports = xcalloc(rdma->n_ports, sizeof(*nic->ports));
	nic->n_ports = rdma->n_ports;
	for (size_t i = 0; i < rdma->n_ports; i++) {
		const struct hw_rdma_port *from = &rdma->ports[i];
		struct topo_port *port = &nic->ports[i];

		*port = (struct topo_port){
			.port = from->port,
			.state = xstrdup_null(from->state),
			.phys_state = xstrdup_null(from->phys_state),
			.link_layer = xstrdup_null(from->link_layer),
			.rate_gbps = from->rate_gbps,
			.active_mtu = TOPO_UNKNOWN, /* sysfs does not tell */
			.gids = xcalloc(from->n_gids, sizeof(*port->gids)),
			.n_gids = from->n_gids,
		};
		for (size_t k = 0; k < from->n_gids; k++)
			port->gids[k] = (struct topo_gid){
				.index = from->gids[k].index,
				.gid = xstrdup(from->gids[k].gid),
				.type = xstrdup_null(from->gids[k].type),
				.netdev = xstrdup_null(from->gids[k].netdev),
			};
		port->gid_index = topo_choose_gid(nic, port);
	}
}

static void add_nic(struct builder *b, const struct hw_pci *pci, struct owned *owned)
{
	const struct hw_rdma *rdma = owned->rdma;
	const struct hw_netdev *netdev = owned->link;
	struct topo_nic *nic = array_push(b->inv->nics, b->inv->n_nics, b->cap_nics);
	size_t n_facts = b->inv->n_nics - 1;
	struct nic_facts *facts = array_push(b->nics, n_facts, b->cap_nic_facts);

	*facts = (struct nic_facts){ pci, rdma, netdev, { 0 }, TOPO_UNKNOWN };
	*nic = (struct topo_nic){
		.name = device_name("nic", pci->bus_id),
		.bus_id = xstrdup(pci->bus_id),
		.vendor_id = pci->vendor,
		.device_id = pci->device,
		.driver = xstrdup_null(pci->driver),
		.firmware = xstrdup_null(rdma->fw_ver),
		.board_id = xstrdup_null(rdma->board_id),
		.hca_type = xstrdup_null(rdma->hca_type),
		.iommu_group = pci->iommu_group,
		.netdev = netdev ? xstrdup(netdev->name) : NULL,
		.rdma_device = xstrdup(rdma->name),
		.uverbs = xstrdup_null(rdma->uverbs),
		.uverbs_major = rdma->uverbs_major,
		.uverbs_minor = rdma->uverbs_minor,
		.mtu = netdev ? netdev->mtu : TOPO_UNKNOWN,
		.oper_state = netdev ? xstrdup_null(netdev->oper_state) : NULL,
		.rail = TOPO_UNKNOWN,
		.rail_group = TOPO_UNKNOWN,
		.card = TOPO_UNKNOWN,
		.pf_index = TOPO_UNKNOWN,
		.pf_count = TOPO_UNKNOWN,
		.is_vf = topo_is_vf(pci),
		.num_vfs = pci->num_vfs,
		.pf_bus_id = xstrdup_null(pci->physfn),
		.numa_node = pci->numa_node,
		.function_pcie_root = pcie_root_of(pci->bus_id, pci->path),
		.best_gpu = TOPO_UNKNOWN,
		.best_path = PATH_UNKNOWN,
	};
	owned->nic = (int)b->inv->n_nics - 1;
	if (!nic->function_pcie_root)
		topo_warn(b, "pcie-root-unknown", nic->name,
			  "its place in the PCI tree is not below a PCI root complex of this "
			  "machine; pcieRoot is left out");
}

void topo_add_nics(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	_cleanup_free_ const struct hw_pci **sorted = sorted_functions(m);
	_cleanup_free_ struct owned *owned = assign_devices(m);

	for (size_t i = 0; i < m->n_pci; i++) {
		struct owned *o = &owned[sorted[i] - m->pci];

		if (o->rdma && !gpu_vendor(sorted[i]))
			add_nic(b, sorted[i], o);
	}
	add_children(b, owned);
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		const struct owned *pf = owned_by(owned, m, b->inv->nics[i].pf_bus_id);

		if (pf)
			b->nics[i].pf = pf->nic;
		add_ports(&b->inv->nics[i], b->nics[i].rdma); /* knows the children's GIDs */
	}
}

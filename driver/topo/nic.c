// SPDX-License-Identifier: Apache-2.0
/* The functions: which PCI functions are GPUs and NICs, and their own facts. */
#include "topo/build.h"

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

bool topo_same_slot(const char *bus_id_a, const char *bus_id_b)
{
	const char *a = strrchr(bus_id_a, '.'), *b = strrchr(bus_id_b, '.');

	return a && b && a - bus_id_a == b - bus_id_b &&
	       strncmp(bus_id_a, bus_id_b, (size_t)(a - bus_id_a)) == 0;
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

/* The RDMA device of a function; one of its own before a software device on its link. */
static const struct hw_rdma *find_rdma(const struct hw_machine *m, const char *bus_id)
{
	const struct hw_rdma *found = NULL;

	for (size_t i = 0; i < m->n_rdma; i++) {
		const struct hw_rdma *rdma = &m->rdma[i];

		if (!rdma->bus_id || !streq(rdma->bus_id, bus_id))
			continue;
		if (!rdma->software)
			return rdma;
		if (!found)
			found = rdma;
	}
	return found;
}

/* Representors of VFs ("pf0vf1") sit on the same function as the uplink ("p0", or no name). */
static bool is_uplink(const struct hw_netdev *netdev)
{
	const char *name = netdev->phys_port_name;

	return !name || (name[0] == 'p' && name[1] && !name[1 + strspn(name + 1, "0123456789")]);
}

static const struct hw_netdev *find_link(const struct hw_machine *m, const char *bus_id)
{
	for (size_t i = 0; i < m->n_netdevs; i++)
		if (m->netdevs[i].bus_id && streq(m->netdevs[i].bus_id, bus_id) &&
		    is_uplink(&m->netdevs[i]))
			return &m->netdevs[i];
	return NULL;
}

static bool is_child_kind(const char *kind)
{
	static const char *const kinds[] = { "ipvlan", "ipvtap", "macvlan", "macvtap", "vlan" };

	for (size_t i = 0; kind && i < ARRAY_SIZE(kinds); i++)
		if (streq(kind, kinds[i]))
			return true;
	return false;
}

static void add_children(const struct hw_machine *m, struct topo_nic *nic)
{
	size_t cap = 0;

	for (size_t i = 0; i < m->n_netdevs; i++) {
		const struct hw_netdev *netdev = &m->netdevs[i];
		const struct hw_pci *pci = netdev->bus_id ? hw_find_pci(m, netdev->bus_id) : NULL;
		const char *kind = NULL;

		if (nic->netdev && is_child_kind(netdev->kind) &&
		    strlist_has(&netdev->lower, nic->netdev))
			kind = netdev->kind;
		else if (pci && pci->physfn && streq(pci->physfn, nic->bus_id))
			kind = "vf";
		else if (netdev->sf_parent && streq(netdev->sf_parent, nic->bus_id))
			kind = "sf";
		if (kind)
			*array_push(nic->children, nic->n_children, cap) =
				(struct topo_child){ xstrdup(netdev->name), xstrdup(kind) };
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

static void add_nic(struct builder *b, const struct hw_pci *pci, const struct hw_rdma *rdma)
{
	const struct hw_netdev *netdev = find_link(b->machine, pci->bus_id);
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
		.sriov_parent = pci->num_vfs > 0,
		.num_vfs = pci->num_vfs,
		.pf_bus_id = xstrdup_null(pci->physfn),
		.numa_node = pci->numa_node,
		.function_pcie_root = pcie_root_of(pci->bus_id, pci->path),
		.best_gpu = TOPO_UNKNOWN,
		.best_path = PATH_UNKNOWN,
	};
	add_children(b->machine, nic);
	add_ports(nic, rdma);
	if (!nic->function_pcie_root)
		topo_warn(b, "pcie-root-unknown", nic->name,
			  "its place in the PCI tree is not below a PCI root complex of this "
			  "machine; pcieRoot is left out");
}

void topo_add_nics(struct builder *b)
{
	_cleanup_free_ const struct hw_pci **sorted = sorted_functions(b->machine);

	for (size_t i = 0; i < b->machine->n_pci; i++) {
		const struct hw_rdma *rdma = find_rdma(b->machine, sorted[i]->bus_id);

		if (rdma && !gpu_vendor(sorted[i]))
			add_nic(b, sorted[i], rdma);
	}
	for (size_t i = 0; i < b->inv->n_nics; i++)
		for (size_t k = 0; b->inv->nics[i].pf_bus_id && k < b->inv->n_nics; k++)
			if (streq(b->inv->nics[i].pf_bus_id, b->inv->nics[k].bus_id))
				b->nics[i].pf = (int)k;
}

// SPDX-License-Identifier: Apache-2.0
/* Which PCI functions are NICs, and their own facts. */
#include "topo/build.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"
#include "topo/numa.h"

bool topo_may_have_data_direct(const struct topo_nic *nic)
{
	return nic->vendor_id == VENDOR_MELLANOX &&
	       (nic->device_id == 0x1023 || nic->device_id == 0x1025);
}

bool topo_has_data_direct(const struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_pci; i++)
		if (hw_is_data_direct(&machine->pci[i]))
			return true;
	return false;
}

bool topo_is_vf(const struct hw_pci *pci)
{
	/* As in the kernel's mlx5 driver: Connect-IB, ConnectX-4 to 6, all later, BlueField. */
	static const unsigned int devices[] = { 0x1012, 0x1014, 0x1016, 0x1018,
						0x101a, 0x101c, 0x101e, 0xa2d3 };

	for (size_t i = 0; pci->vendor == VENDOR_MELLANOX && i < ARRAY_SIZE(devices); i++)
		if (pci->device == devices[i])
			return true;
	return pci->physfn != NULL;
}

static int cmp_pci(const void *a, const void *b)
{
	const struct hw_pci *const *x = a, *const *y = b;

	return bus_id_cmp((*x)->bus_id, (*y)->bus_id);
}

const struct hw_pci **topo_sorted_functions(const struct hw_machine *machine)
{
	const struct hw_pci **sorted = xcalloc(machine->n_pci, sizeof(const struct hw_pci *));
	bool in_order = true;

	for (size_t i = 0; i < machine->n_pci; i++) {
		sorted[i] = &machine->pci[i];
		in_order = in_order && (i == 0 || cmp_pci(&sorted[i - 1], &sorted[i]) < 0);
	}
	/* By name they nearly always are. */
	if (!in_order)
		qsort(sorted, machine->n_pci, sizeof(const struct hw_pci *), cmp_pci);
	return sorted;
}

/*
 * Representors of VFs ("pf0vf1") sit on the same function as the uplink: "p0", "p0s1" when the port
 * is split, or no name.
 */
bool topo_is_uplink(const struct hw_netdev *netdev)
{
	static const char digits[] = "0123456789";
	const char *name = netdev->phys_port_name;
	size_t n = name && name[0] == 'p' ? strspn(name + 1, digits) : 0, split;

	if (!name)
		return true;
	split = n && name[1 + n] == 's' ? strspn(name + 2 + n, digits) : 0;
	return n && !name[1 + n + (split ? 1 + split : 0)];
}

bool topo_has_verbs(const struct topo_nic *nic)
{
	return nic->uverbs && nic->uverbs_major > 0 && nic->uverbs_minor >= 0;
}

bool topo_is_kept_back(const struct topo_nic *nic)
{
	return nic->role == ROLE_FRONTEND || nic->withheld || nic->excluded || nic->broken ||
	       !topo_has_verbs(nic);
}

struct function_owns *topo_function(const struct builder *b, const char *bus_id)
{
	const struct hw_pci *pci = bus_id ? hw_find_pci(b->machine, bus_id) : NULL;

	return pci ? &b->functions[pci - b->machine->pci] : NULL;
}

/* Of several links of one function: that of its first port; one that says it is an uplink. */
static bool is_better_link(const struct hw_netdev *link, const struct hw_netdev *than)
{
	int port = link->dev_port > 0 ? link->dev_port : 0;
	int other = than->dev_port > 0 ? than->dev_port : 0;

	if (port != other)
		return port < other;
	return link->phys_port_name && !than->phys_port_name;
}

static void assign_devices(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	struct function_owns *f;

	b->functions = xcalloc(m->n_pci, sizeof(*b->functions));
	for (size_t i = 0; i < m->n_pci; i++)
		b->functions[i].nic = TOPO_UNKNOWN;
	for (size_t i = 0; i < m->n_rdma; i++) {
		f = topo_function(b, m->rdma[i].bus_id);
		/* One of its own goes before a software device on its link. */
		if (f && (!f->rdma || (f->rdma->software && !m->rdma[i].software)))
			f->rdma = &m->rdma[i];
	}
	for (size_t i = 0; i < m->n_netdevs; i++) {
		bool uplink = topo_is_uplink(&m->netdevs[i]);

		f = topo_function(b, m->netdevs[i].bus_id);
		if (!f)
			continue;
		f->n_uplinks += uplink;
		f->n_representors += !uplink;
		if (uplink && (!f->link || is_better_link(&m->netdevs[i], f->link)))
			f->link = &m->netdevs[i];
	}
}

static bool is_link_local(const char *gid)
{
	/* fe80::/10: the third digit is 8, 9, a or b */
	return starts_with(gid, "fe") && gid[2] && strchr("89ab", gid[2]);
}

/* 169.254.0.0/16, which a link gives itself when nobody gives it an address. */
static bool is_link_local_v4(const char *gid)
{
	return starts_with(gid, "0000:0000:0000:0000:0000:ffff:a9fe:");
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
		if (is_link_local_v4(gid->gid)) {
			score = 2;
		} else if (!is_link_local(gid->gid)) {
			score = 3;
			if (gid->netdev && nic->netdev && streq(gid->netdev, nic->netdev))
				score = 4;
			for (size_t k = 0; gid->netdev && k < nic->n_children; k++)
				if (streq_null(gid->netdev, nic->children[k].netdev))
					score = 5;
		}
		if (score > best_score) {
			best = (int)gid->index;
			best_score = score;
		}
	}
	return best;
}

/*
 * In switchdev mode each representor is a port of the RDMA device, behind those of the uplinks: no
 * port of the card, and its rate is nothing that the NIC has in addition.
 */
static size_t own_ports(const struct builder *b, const struct topo_nic *nic,
			const struct hw_rdma *rdma)
{
	const struct function_owns *owns = topo_function(b, nic->bus_id);
	bool more =
		owns->n_representors > 0 && owns->n_uplinks > 0 && owns->n_uplinks < rdma->n_ports;

	return more ? owns->n_uplinks : rdma->n_ports;
}

static bool is_link_layer(const char *text)
{
	return text && (streq(text, "Ethernet") || streq(text, "InfiniBand"));
}

static void add_ports(const struct builder *b, struct topo_nic *nic, const struct hw_rdma *rdma)
{
	nic->n_ports = own_ports(b, nic, rdma);
	nic->ports = xcalloc(nic->n_ports, sizeof(*nic->ports));
	for (size_t i = 0; i < nic->n_ports; i++) {
		const struct hw_rdma_port *from = &rdma->ports[i];
		struct topo_port *port = &nic->ports[i];

		*port = (struct topo_port){
			.port = from->port,
			.state = xstrdup_null(from->state),
			.phys_state = xstrdup_null(from->phys_state),
			/* EFA has neither, and says "Unknown" or "Unspecified". */
			.link_layer =
				is_link_layer(from->link_layer) ? xstrdup(from->link_layer) : NULL,
			.rate_gbps = from->rate_gbps,
			.active_mtu = from->active_mtu,
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

static void add_nic(struct builder *b, const struct hw_pci *pci, struct function_owns *owns)
{
	const struct hw_rdma *rdma = owns->rdma;
	const struct hw_netdev *netdev = owns->link;
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
		.broken = pci->broken,
		.iommu_group = pci->iommu_group,
		.netdev = netdev ? xstrdup(netdev->name) : NULL,
		.rdma_device = xstrdup(rdma->name),
		.uverbs = xstrdup_null(rdma->uverbs),
		.uverbs_major = rdma->uverbs_major,
		.uverbs_minor = rdma->uverbs_minor,
		.mtu = netdev ? netdev->mtu : TOPO_UNKNOWN,
		.oper_state = netdev ? xstrdup_null(netdev->oper_state) : NULL,
		.master = netdev ? xstrdup_null(netdev->master) : NULL,
		.rail = TOPO_UNKNOWN,
		.rail_group = TOPO_UNKNOWN,
		.card = TOPO_UNKNOWN,
		.pf_index = TOPO_UNKNOWN,
		.pf_count = TOPO_UNKNOWN,
		.is_vf = topo_is_vf(pci),
		.num_vfs = pci->num_vfs,
		.pf_bus_id = xstrdup_null(pci->physfn),
		.numa_node = numa_node_known(pci->numa_node),
		.function_pcie_root = pcie_root_of(pci->bus_id, pci->path),
		.best_gpu = TOPO_UNKNOWN,
		.best_path = PATH_UNKNOWN,
	};
	owns->nic = (int)b->inv->n_nics - 1;
	if (b->options->numa_lists)
		nic->numa_nodes = numa_nodes_near(b->machine, nic->numa_node, &nic->n_numa_nodes);
	if (!nic->uverbs)
		topo_warn(b, "nic-without-verbs", nic->name,
			  "its RDMA device has no verbs device, which programs open, so it cannot "
			  "be handed out: load ib_uverbs");
	else if (!topo_has_verbs(nic))
		topo_warn(
			b, "nic-without-verbs", nic->name,
			"the device number of %s is not known (its file \"dev\"), so it cannot be "
			"handed out",
			nic->uverbs);
	if (!nic->function_pcie_root)
		topo_warn(b, "pcie-root-unknown", nic->name,
			  "its place in the PCI tree is not below a PCI root complex of this "
			  "machine; pcieRoot is left out");
}

/* It should be a NIC: say what keeps it from being one. */
static void warn_without_rdma(struct builder *b, const struct hw_pci *pci)
{
	const char *driver = pci->driver;

	if (!driver)
		topo_warn(b, "nic-without-rdma", pci->bus_id,
			  "it has no driver, so it cannot be handed out: is mlx5_core loaded, and "
			  "does the kernel's log say why it failed?");
	else if (streq(driver, "mlx5_core"))
		topo_warn(b, "nic-without-rdma", pci->bus_id,
			  "it has no RDMA device here, so it cannot be handed out: load mlx5_ib, "
			  "unless somebody moved the device into a container's network namespace");
	else
		topo_warn(b, "nic-without-rdma", pci->bus_id,
			  "it is bound to %s (for a virtual machine or a program), so it cannot be "
			  "handed out; bind it to mlx5_core if that is not wanted",
			  driver);
}

/* A ConnectX or BlueField function of a node with GPUs. */
static bool wants_rdma(const struct builder *b, const struct hw_pci *pci)
{
	return b->inv->n_gpus && pci->vendor == VENDOR_MELLANOX && pci->class >> 16 == 0x02 &&
	       !topo_is_vf(pci) && !pci->broken;
}

/* A VF stands beside its PF in the PCI tree, and has no VFs of its own. */
static bool can_be_vf_of(const struct hw_pci *vf, const struct hw_pci *pf)
{
	const char *end = vf->path ? strrchr(vf->path, '/') : NULL;
	size_t n = end ? (size_t)(end - vf->path) + 1 : 0;

	if (topo_is_vf(pf))
		return false;
	return !vf->path || !pf->path ||
	       (strncmp(vf->path, pf->path, n) == 0 && !strchr(pf->path + n, '/'));
}

/* What a VF has in common with its PF is taken from there, so the two must fit together. */
static void set_pf(struct builder *b, size_t i)
{
	struct topo_nic *nic = &b->inv->nics[i];
	const struct function_owns *pf = topo_function(b, nic->pf_bus_id);

	if (!pf || pf->nic < 0)
		return;
	if (can_be_vf_of(b->nics[i].pci, b->nics[pf->nic].pci)) {
		b->nics[i].pf = pf->nic;
		return;
	}
	topo_warn(b, "vf-contradiction", nic->name,
		  "%s is said to be its PF, but is a VF or stands elsewhere in the PCI tree; it is "
		  "taken for a VF whose PF cannot be seen",
		  nic->pf_bus_id);
	free(nic->pf_bus_id);
	nic->pf_bus_id = NULL;
}

void topo_add_nics(struct builder *b)
{
	const struct hw_machine *m = b->machine;
	_cleanup_free_ const struct hw_pci **sorted = topo_sorted_functions(m);

	assign_devices(b);
	for (size_t i = 0; i < m->n_pci; i++) {
		struct function_owns *owns = &b->functions[sorted[i] - m->pci];

		if (owns->rdma && !topo_gpu_vendor(sorted[i]))
			add_nic(b, sorted[i], owns);
	}
	topo_add_children(b);
	for (size_t i = 0; i < m->n_pci; i++) {
		const struct function_owns *owns = &b->functions[sorted[i] - m->pci];

		if (!owns->rdma && !owns->in_lag && wants_rdma(b, sorted[i]))
			warn_without_rdma(b, sorted[i]);
	}
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		set_pf(b, i);
		add_ports(b, &b->inv->nics[i], b->nics[i].rdma); /* knows the children's GIDs */
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_TOPO_RANDOM_H
#define TWINRAIL_TESTS_TOPO_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/machine.h"

/*
 * Machines that the readers could have seen, with facts that are wrong, doubled, missing or
 * contradict each other.  What they guarantee is kept: addresses and names are unique and sorted,
 * texts are UTF-8 and not empty.
 */

/* Numbers from a seed, or from the bytes of a fuzzer: without more of them, zeros. */
struct chance {
	uint64_t seed;
	const uint8_t *data;
	size_t len;
};

static inline uint64_t chance_next(struct chance *c)
{
	uint64_t z;

	if (c->data) {
		if (c->len == 0)
			return 0;
		c->len--;
		return *c->data++;
	}
	/* splitmix64 */
	z = c->seed += 0x9e3779b97f4a7c15U;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/* 0 … n - 1, n at most 256 */
static inline unsigned int below(struct chance *c, unsigned int n)
{
	return (unsigned int)(chance_next(c) % n);
}

/* One in "n". */
static inline bool one_in(struct chance *c, unsigned int n)
{
	return below(c, n) == n - 1;
}

static inline const char *pick_of(struct chance *c, const char *const *texts, unsigned int n)
{
	return texts[below(c, n)];
}

#define PICK(c, ...)                                                                               \
	pick_of(c, (const char *const[]){ __VA_ARGS__ },                                           \
		(unsigned int)ARRAY_SIZE(((const char *const[]){ __VA_ARGS__ })))

/* The same, malloc'ed; NULL is one of the texts. */
#define PICKED(c, ...) xstrdup_null(PICK(c, __VA_ARGS__))

#define BUSES_PER_ROOT 32

struct growing {
	struct chance *c;
	struct hw_machine *m;
	unsigned int domain, bus, last_bus; /* bus: the next one of this root complex */
	unsigned int n_mlx5, n_names;
	bool data_direct, flat;
};

static inline int small_number(struct chance *c)
{
	static const int numbers[] = { 0, 1, 0, 1, 2, 7, 1023, HW_UNKNOWN };

	return numbers[below(c, ARRAY_SIZE(numbers))];
}

/* A function at "device"."function" of the bus that "parent" leads to; its address is unique. */
static inline struct hw_pci *grow_function(struct growing *g, const char *parent, unsigned int bus,
					   unsigned int slot)
{
	struct hw_machine *m = g->m;
	struct hw_pci *pci = array_push(m->pci, m->n_pci, m->cap_pci);

	*pci = (struct hw_pci){
		.bus_id = xasprintf("%04x:%02x:%02x.%x", g->domain, bus, slot >> 3, slot & 7),
		.numa_node = small_number(g->c),
		.driver = PICKED(g->c, "mlx5_core", "nvidia", "vfio-pci", "pcieport", NULL),
		.iommu_group = small_number(g->c),
		.acs = small_number(g->c),
		.link = { 32000, 32000, 16, 16 },
		.total_vfs = HW_UNKNOWN,
		.broken = one_in(g->c, 40),
	};
	if (one_in(g->c, 8))
		pci->link = (struct hw_pcie_link){ HW_UNKNOWN, 64000, 4, HW_UNKNOWN };
	/* A link that dangles, or leads somewhere else. */
	if (one_in(g->c, 40))
		pci->path = PICKED(g->c, NULL, "/sys/devices", "/", "/sys/devices/pci0000:00/x",
				   "/sys/devices/pci0000:00/0000:00:1f.7", "/tmp/0000:00:00.0");
	else
		pci->path = xasprintf("%s/%s", parent, pci->bus_id);
	return pci;
}

/* A name that no other link has yet. */
static inline char *grow_name(struct growing *g, const char *form)
{
	for (;;) {
		_cleanup_free_ char *name = NULL;
		unsigned int n = g->n_names++;
		bool taken = false;

		if (streq(form, "gpuNrdmaM"))
			name = xasprintf("gpu%urdma%u", n / 2, n % 2);
		else if (streq(form, "gpuNipvlanM")) /* of the few virtual links, at most 8 */
			name = xasprintf("gpu%uipvlan%u", n % 8 / 2, n % 2);
		else if (n < 4 && !one_in(g->c, 4))
			name = xstrdup(form);
		else
			name = xasprintf("%s%u", form, n);
		for (size_t i = 0; i < g->m->n_netdevs; i++)
			taken = taken || streq(g->m->netdevs[i].name, name);
		if (!taken)
			return TAKE_PTR(name);
	}
}

static inline struct hw_netdev *grow_netdev(struct growing *g, const char *form, const char *bus_id)
{
	struct hw_machine *m = g->m;
	char *name = grow_name(g, form);
	struct hw_netdev *netdev = array_push(m->netdevs, m->n_netdevs, m->cap_netdevs);

	*netdev = (struct hw_netdev){
		.name = name,
		.bus_id = xstrdup_null(bus_id),
		.oper_state = PICKED(g->c, "up", "down", "unknown", NULL),
		.address = PICKED(g->c, "00:00:5e:00:53:20", "00:00:5e:00:53:21", NULL),
		.type = one_in(g->c, 6) ? 32 : 1,
		.ifindex = (int)m->n_netdevs,
		.mtu = small_number(g->c),
		.speed_mbps = one_in(g->c, 2) ? 400000 : HW_UNKNOWN,
		.carrier = (int)below(g->c, 3) - 1,
	};
	return netdev;
}

static inline void grow_port(struct growing *g, struct hw_rdma *rdma, unsigned int number)
{
	struct hw_rdma_port *port = array_push(rdma->ports, rdma->n_ports, rdma->cap_ports);

	*port = (struct hw_rdma_port){
		.port = number,
		.state = PICKED(g->c, "ACTIVE", "DOWN", "INIT", "?", NULL),
		.phys_state = PICKED(g->c, "LinkUp", "Disabled", NULL),
		.link_layer = PICKED(g->c, "Ethernet", "InfiniBand", "Unspecified", NULL),
		.rate_gbps = one_in(g->c, 3) ? small_number(g->c) : 400,
		.lid = HW_UNKNOWN,
		.sm_lid = HW_UNKNOWN,
		.active_mtu = HW_UNKNOWN,
	};
	for (unsigned int i = below(g->c, 4); i > 0; i--)
		*array_push(port->gids, port->n_gids, port->cap_gids) = (struct hw_gid){
			.index = (unsigned int)port->n_gids * 2,
			.gid = PICKED(g->c, "fe80:0000:0000:0000:0200:5eff:fe00:5320",
				      "fd20:0000:0000:0000:0000:0000:0000:0001",
				      "0000:0000:0000:0000:0000:ffff:0a00:0001", "f", "?"),
			.type = PICKED(g->c, "RoCE v2", "IB/RoCE v1", NULL),
			.netdev = PICKED(g->c, "gpu0rdma0", "eth0", "gpu0ipvlan0", NULL),
		};
}

/* "guid": of its chip; NULL: any. */
static inline void grow_rdma(struct growing *g, const char *bus_id, const char *guid, bool software)
{
	struct hw_machine *m = g->m;
	struct hw_rdma *rdma = array_push(m->rdma, m->n_rdma, m->cap_rdma);
	unsigned int n = g->n_mlx5++;

	*rdma = (struct hw_rdma){
		.name = xasprintf("%s%u", software ? "rxe" : "mlx5_", n),
		.bus_id = xstrdup_null(bus_id),
		.software = software,
		.sys_image_guid =
			guid && !one_in(g->c, 12)
				? xstrdup(guid)
				: PICKED(g->c, "0000:5e03:0000:0001", "0000:5e03:0000:0002",
					 "0000:5e03:0000:0003", "0000:5e03:0000:0004", NULL),
		.fw_ver = PICKED(g->c, "40.46.7004", "x y", NULL),
		.board_id = PICKED(g->c, "MT_0000001513", NULL),
		.hca_type = PICKED(g->c, "MT4131", "MT4129", NULL),
		.uverbs = one_in(g->c, 6) ? NULL : xasprintf("uverbs%u", n),
		.uverbs_major = 231,
		.uverbs_minor = small_number(g->c),
	};
	for (unsigned int i = one_in(g->c, 5) ? below(g->c, 4) : 1; i > 0; i--)
		grow_port(g, rdma, i);
	/* The readers sort by number. */
	for (size_t i = 0; i < rdma->n_ports / 2; i++) {
		struct hw_rdma_port first = rdma->ports[i];

		rdma->ports[i] = rdma->ports[rdma->n_ports - 1 - i];
		rdma->ports[rdma->n_ports - 1 - i] = first;
	}
}

/* "index": of the function in machine->pci, which moves when it grows. */
static inline void grow_nic_parts(struct growing *g, size_t index, const char *guid)
{
	static const char *const forms[] = {
		"gpuNrdmaM",	  "gpuNrdmaM", "rdma",	"rdma",	    "eth",
		"enp3s0f0np",	  "é",	       "<&\">", "gpu0rdma", "gpu1023rdma1023",
		"rdma99999999999"
	};
	const char *bus_id = g->m->pci[index].bus_id;
	struct hw_netdev *netdev;

	if (!one_in(g->c, 8))
		grow_rdma(g, bus_id, guid, false);
	if (one_in(g->c, 16))
		grow_rdma(g, bus_id, NULL, true);
	if (one_in(g->c, 5))
		return;
	netdev = grow_netdev(g, pick_of(g->c, forms, ARRAY_SIZE(forms)), bus_id);
	netdev->phys_port_name = PICKED(g->c, NULL, NULL, "p0", "p1", "pf0vf1", "p");
	netdev->phys_switch_id = PICKED(g->c, NULL, NULL, NULL, NULL, "0a", "0b");
}

/* One to four functions in a slot that are NICs, cards of some kind among them. */
static inline void grow_nics(struct growing *g, const char *parent, unsigned int bus)
{
	static const unsigned int ids[] = {
		0x1023, 0x1023, 0x1023, 0x1021, 0x1025, 0x101d, 0xa2dc
	};
	static const unsigned int vendors[] = { 0x15b3, 0x15b3, 0x15b3, 0x1d0f, 0x8086 };
	const char *sn = PICK(g->c, "SN1", "SN2", "SN3", NULL),
		   *v3 = PICK(g->c, "a", "b", "c", NULL);
	unsigned int id = ids[below(g->c, ARRAY_SIZE(ids))];
	unsigned int vendor = vendors[below(g->c, ARRAY_SIZE(vendors))];

	_cleanup_free_ char *guid = one_in(g->c, 3) ? NULL : xasprintf("0000:5e03:0001:%04x", bus);

	for (unsigned int i = 0, n = 1 + below(g->c, 3); i < n; i++) {
		struct hw_pci *pci = grow_function(g, parent, bus, i);

		pci->vendor = vendor;
		pci->device = one_in(g->c, 12) ? 0x101e : id;
		pci->class = one_in(g->c, 4) ? 0x020700 : 0x020000;
		pci->num_vfs = one_in(g->c, 4) ? (int)below(g->c, 4) : 0;
		pci->vpd_sn = xstrdup_null(one_in(g->c, 20) ? "SN9" : sn);
		pci->vpd_v3 = xstrdup_null(one_in(g->c, 20) ? "x" : v3);
		grow_nic_parts(g, g->m->n_pci - 1, guid);
	}
}

static inline void grow_gpu(struct growing *g, const char *parent, unsigned int bus)
{
	static const unsigned int vendors[] = { 0x10de, 0x10de, 0x10de, 0x1002, 0x8086 };
	static const unsigned int ids[] = { 0x2330, 0x31c2, 0x2941, 0x74a1, 0x2335 };
	static const unsigned int classes[] = { 0x030200, 0x030000, 0x120000, 0x038000 };
	struct hw_pci *pci = grow_function(g, parent, bus, 0);
	struct hw_machine *m = g->m;
	unsigned int kind = below(g->c, ARRAY_SIZE(vendors));

	pci->vendor = vendors[kind];
	pci->device = ids[kind];
	pci->class = kind == 3 ? classes[2] : kind == 4 ? classes[3] : classes[below(g->c, 2)];
	if (one_in(g->c, 5))
		return;
	*array_push(m->gpus, m->n_gpus, m->cap_gpus) = (struct hw_gpu){
		.bus_id = xstrdup(pci->bus_id),
		.model =
			PICKED(g->c, "NVIDIA GB300", "NVIDIA H100 80GB HBM3", "<&\">é", NULL,
			       "a model whose name is longer than the sixty-four bytes of a value"),
		.uuid = PICKED(g->c, "GPU-00000000-0000-4000-8000-000000000001", "GPU-1", NULL),
		.minor = small_number(g->c),
		.partition = PICKED(g->c, NULL, NULL, "mig"),
		.n_partitions = HW_UNKNOWN,
	};
}

/* A Data Direct function, or something that is none of ours. */
static inline void grow_other(struct growing *g, const char *parent, unsigned int bus)
{
	struct hw_pci *pci = grow_function(g, parent, bus, 0);
	bool direct = g->data_direct && !one_in(g->c, 4);

	pci->vendor = direct ? 0x15b3 : 0x144d;
	pci->device = direct ? 0x2100 : 0xa80a;
	pci->class = direct ? 0x080100 : 0x010802;
	pci->vpd_sn = direct ? PICKED(g->c, "SN1", "SN2", NULL) : NULL;
	pci->vpd_v3 = direct ? PICKED(g->c, "a", "b", "c", "d", "e", "f", NULL) : NULL;
}

static inline void grow_bus(struct growing *g, const char *parent, unsigned int depth);

static inline void grow_bridge(struct growing *g, const char *parent, unsigned int bus,
			       unsigned int slot, unsigned int depth)
{
	static const unsigned int vendors[] = { 0x1000, 0x15b3, 0x10de, 0x8086 };
	static const unsigned int ids[] = { 0xc030, 0x197c, 0x22b1, 0x1234 };
	struct hw_pci *pci = grow_function(g, parent, bus, slot << 3);
	unsigned int kind = below(g->c, ARRAY_SIZE(vendors));
	_cleanup_free_ char *path = xasprintf("%s/%s", parent, pci->bus_id);
	enum hw_port_type usual = depth == 0	   ? HW_PORT_ROOT
				  : depth % 2 == 1 ? HW_PORT_UPSTREAM
						   : HW_PORT_DOWNSTREAM;

	pci->vendor = vendors[kind];
	pci->device = ids[kind];
	pci->class = 0x060400;
	pci->port_type = one_in(g->c, 12) ? (enum hw_port_type)below(g->c, 5) : usual;
	grow_bus(g, path, depth + 1);
}

/* What sits on the bus behind "parent". */
static inline void grow_bus(struct growing *g, const char *parent, unsigned int depth)
{
	unsigned int bus = g->bus, n;

	if (bus >= g->last_bus)
		return;
	g->bus++;
	switch (depth == 0 || (depth < 5 && one_in(g->c, 2)) ? 0 : 1 + below(g->c, 3)) {
	case 0:
		n = 1 + below(g->c, depth == 0 ? 2 : 3);
		for (unsigned int slot = 0; slot < n && depth < 6; slot++)
			grow_bridge(g, parent, bus, slot, depth);
		break;
	case 1:
		grow_nics(g, parent, bus);
		break;
	case 2:
		grow_gpu(g, parent, bus);
		break;
	default:
		grow_other(g, parent, bus);
		break;
	}
	/* Directly beside a bridge, too. */
	if (depth == 0 && one_in(g->c, 4)) {
		_cleanup_free_ char *beside = xstrdup(parent);

		bus = g->bus++;
		grow_gpu(g, beside, bus);
		bus = g->bus++;
		grow_nics(g, beside, bus);
	}
}

static inline void grow_root(struct growing *g, unsigned int index)
{
	const char *above = PICK(g->c, "/sys/devices", "/sys/devices", "/sys/devices",
				 "/sys/devices/LNXSYSTM:00/VMBUS:00", "/sys/devices/platform/soc");
	_cleanup_free_ char *path = NULL;

	/* Several roots of one domain, or one each; those of VMD have five digits. */
	g->domain = (one_in(g->c, 12) ? 0x10000 : 0) + (one_in(g->c, 2) ? index : 0);
	g->bus = index * BUSES_PER_ROOT;
	g->last_bus = g->bus + BUSES_PER_ROOT - 4;
	path = xasprintf("%s/pci%04x:%02x", above, g->domain, g->bus);
	if (!g->flat) {
		grow_bus(g, path, 0);
		return;
	}
	/* As in a virtual machine: no bridges. */
	for (unsigned int i = 1 + below(g->c, 4); i > 0; i--) {
		grow_nics(g, path, g->bus++);
		grow_gpu(g, path, g->bus++);
	}
}

/* VFs of functions that are there, of functions that are none of ours, and of nothing. */
static inline void grow_vfs(struct growing *g)
{
	struct hw_machine *m = g->m;

	g->domain = 0;
	g->bus = 0xf0;
	for (unsigned int i = below(g->c, 5); i > 0 && m->n_pci; i--) {
		size_t of = below(g->c, m->n_pci < 256 ? (unsigned int)m->n_pci : 256);
		_cleanup_free_ char *pf = xstrdup(m->pci[of].bus_id);
		_cleanup_free_ char *parent = xstrdup_null(m->pci[of].path);
		struct hw_pci *vf;

		if (parent && strrchr(parent, '/') > parent)
			*strrchr(parent, '/') = '\0';
		vf = grow_function(g, parent ? parent : "/sys/devices", g->bus, i);
		vf->vendor = 0x15b3;
		vf->device = 0x101e;
		vf->class = 0x020000;
		vf->physfn = one_in(g->c, 6) ? PICKED(g->c, "0000:ff:00.0", "x") : TAKE_PTR(pf);
		grow_nic_parts(g, m->n_pci - 1, NULL);
	}
}

/* The name of some link, or of none. */
static inline const char *some_link(struct growing *g)
{
	const struct hw_machine *m = g->m;
	unsigned int n = m->n_netdevs < 255 ? (unsigned int)m->n_netdevs : 255;
	unsigned int i = below(g->c, n + 1);

	return i < n ? m->netdevs[i].name : "gone0";
}

/* Bonds, bridges, children, representors and subfunctions; their links may run in a circle. */
static inline void grow_virtual(struct growing *g)
{
	struct hw_machine *m = g->m;
	size_t n_real = m->n_netdevs;

	for (unsigned int i = below(g->c, 6); i > 0; i--) {
		const char *kind = PICK(g->c, "bond", "bridge", "vlan", "ipvlan", "macvlan", "sf",
					"representor", NULL);
		size_t of = n_real ? below(g->c, n_real < 256 ? (unsigned int)n_real : 256) : 0;
		_cleanup_free_ char *bus_id = n_real ? xstrdup_null(m->netdevs[of].bus_id) : NULL;
		bool representor = kind && streq(kind, "representor");
		struct hw_netdev *netdev =
			grow_netdev(g, kind && streq(kind, "ipvlan") ? "gpuNipvlanM" : "virt",
				    representor ? bus_id : NULL);

		if (representor)
			netdev->phys_port_name = xstrdup("pf0vf0");
		else if (kind && streq(kind, "sf"))
			netdev->sf_parent = TAKE_PTR(bus_id);
		else
			netdev->kind = xstrdup_null(kind);
		/* Only bonds and bridges are on several links. */
		for (unsigned int k = below(g->c, kind && *kind == 'b' ? 3 : 2); k > 0; k--) {
			const char *lower = some_link(g);

			if (!strlist_has(&netdev->lower, lower))
				strlist_add(&netdev->lower, lower);
		}
	}
	for (size_t i = 0; i < m->n_netdevs; i++)
		if (one_in(g->c, 12))
			m->netdevs[i].master = xstrdup(some_link(g));
}

static inline void grow_ip(struct growing *g)
{
	struct hw_machine *m = g->m;
	struct hw_ip *ip = &m->ip;

	for (unsigned int i = below(g->c, 3); i > 0; i--) {
		const char *link = some_link(g);

		if (!strlist_has(&m->default_routes, link))
			strlist_add(&m->default_routes, link);
		*array_push(ip->routes, ip->n_routes, ip->cap_routes) = (struct hw_route){
			.family = one_in(g->c, 2) ? 6 : 4,
			.destination = PICKED(g->c, NULL, NULL, "10.1.0.0/21", "fd20::/64"),
			.netdev = xstrdup(link),
			.table = one_in(g->c, 3) ? 100 : 254,
			.unusable = one_in(g->c, 8),
		};
	}
	for (unsigned int i = below(g->c, 4); i > 0; i--)
		*array_push(ip->addresses, ip->n_addresses, ip->cap_addresses) =
			(struct hw_address){ .netdev = xstrdup(some_link(g)),
					     .address =
						     PICKED(g->c, "10.1.0.5", "fd20::1", "fe80::1"),
					     .prefix = 64,
					     .scope = PICKED(g->c, "global", "link") };
	ip->known = !one_in(g->c, 3);
}

static inline void grow_node(struct growing *g)
{
	struct hw_machine *m = g->m;

	for (unsigned int i = 0, n = below(g->c, 4); i < n; i++) {
		struct hw_numa *numa = array_push(m->numa, m->n_numa, m->cap_numa);

		*numa = (struct hw_numa){ .node = (int)i, .package = small_number(g->c) };
		/* A row may be shorter than the others. */
		numa->n_distances = one_in(g->c, 6) ? 1 : n;
		numa->distances = xcalloc(n, sizeof(int));
		for (unsigned int k = 0; k < n; k++)
			numa->distances[k] = k == i ? 10 : 10 + (int)below(g->c, 3) * 2;
	}
	m->rdma_cm_major = 10;
	m->rdma_cm_minor = small_number(g->c);
	m->hypervisor = g->flat || one_in(g->c, 3);
	m->incomplete = one_in(g->c, 10);
	m->dmi_vendor = PICKED(g->c, NULL, "Google", "NVIDIA", "Microsoft Corporation", "OCI");
	m->dmi_product = PICKED(g->c, NULL, "a4x-maxgpu-4g-metal", "Virtual Machine", "DGX");
	m->nvidia_driver = PICKED(g->c, NULL, "580.65.06", "580.95", "not a version");
	m->nvidia_peermem = one_in(g->c, 2);
	m->nvidia_open = one_in(g->c, 2);
	if (one_in(g->c, 6))
		*array_push(m->warnings, m->n_warnings, m->cap_warnings) = (struct hw_warning){
			.part = HW_PART_PCI,
			.code = "function-unreadable",
			.object = xstrdup("0000:1f:00.0"),
			.message = xstrdup("the PCI function is left out"),
		};
}

/* All kinds of devices begin with their name. */
static inline int cmp_first_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static inline void machine_sort(struct hw_machine *m)
{
	if (m->n_pci)
		qsort(m->pci, m->n_pci, sizeof(*m->pci), cmp_first_text);
	if (m->n_netdevs)
		qsort(m->netdevs, m->n_netdevs, sizeof(*m->netdevs), cmp_first_text);
	if (m->n_rdma)
		qsort(m->rdma, m->n_rdma, sizeof(*m->rdma), cmp_first_text);
	if (m->n_gpus)
		qsort(m->gpus, m->n_gpus, sizeof(*m->gpus), cmp_first_text);
}

/* The caller frees it with hw_free(). */
static inline struct hw_machine *machine_random(struct chance *c)
{
	struct growing g = { .c = c, .m = xnew(struct hw_machine), .data_direct = one_in(c, 2) };
	unsigned int n_roots = below(c, 7);

	g.flat = one_in(c, 12);
	for (unsigned int i = 0; i < (g.flat ? 1 : n_roots); i++)
		grow_root(&g, i);
	grow_vfs(&g);
	grow_virtual(&g);
	grow_ip(&g);
	grow_node(&g);
	machine_sort(g.m);
	return g.m;
}

#endif

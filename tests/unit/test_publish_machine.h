/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PUBLISH_MACHINE_H
#define TEST_PUBLISH_MACHINE_H

/* Inventories written by hand, for the tests of publish/. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "topo/inventory.h"

struct machine {
	struct inventory inv; /* its reference count never gets to 0 */
	struct strlist strings;
	void *blocks[1024];
	size_t n_blocks;
};

static inline void *machine_block(struct machine *m, void *p)
{
	if (m->n_blocks == ARRAY_SIZE(m->blocks))
		abort();
	return m->blocks[m->n_blocks++] = p;
}

__attribute__((format(printf, 2, 3))) static inline char *text(struct machine *m, const char *fmt,
							       ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	strlist_take(&m->strings, s);
	return s;
}

static inline void machine_done(struct machine *m)
{
	for (size_t i = 0; i < m->n_blocks; i++)
		free(m->blocks[i]);
	strlist_done(&m->strings);
	free(m->inv.gpus);
	free(m->inv.nics);
	free(m->inv.cards);
	*m = (struct machine){ 0 };
}

/* Everything unknown but the address. */
static inline struct topo_nic *add_nic(struct machine *m, const char *bus_id)
{
	struct inventory *inv = &m->inv;
	struct topo_nic *nic;
	char *name;

	inv->nics = xrealloc(inv->nics, inv->n_nics + 1, sizeof(*inv->nics));
	nic = &inv->nics[inv->n_nics++];
	*nic = (struct topo_nic){ .vendor_id = 0x15b3,
				  .device_id = 0x1021,
				  .mtu = TOPO_UNKNOWN,
				  .rail = TOPO_UNKNOWN,
				  .rail_group = TOPO_UNKNOWN,
				  .card = TOPO_UNKNOWN,
				  .pf_index = TOPO_UNKNOWN,
				  .pf_count = TOPO_UNKNOWN,
				  .numa_node = TOPO_UNKNOWN,
				  .best_gpu = TOPO_UNKNOWN,
				  .best_path = PATH_UNKNOWN,
				  .standalone = true };
	nic->bus_id = text(m, "%s", bus_id);
	name = text(m, "nic-%s", bus_id);
	for (char *c = name; *c; c++)
		if (*c == ':' || *c == '.')
			*c = '-';
	nic->name = name;
	nic->uverbs = text(m, "uverbs%zu", inv->n_nics - 1);
	nic->uverbs_major = 231;
	nic->uverbs_minor = (int)inv->n_nics - 1;
	return nic;
}

static inline void add_port(struct machine *m, struct topo_nic *nic, const char *state, int gbps)
{
	struct topo_port *port = machine_block(m, xnew(struct topo_port));

	port->port = 1;
	port->state = text(m, "%s", state);
	port->link_layer = text(m, "Ethernet");
	port->rate_gbps = gbps;
	nic->ports = port;
	nic->n_ports = 1;
}

static inline struct topo_gpu *add_gpu(struct machine *m, const char *bus_id)
{
	struct inventory *inv = &m->inv;
	struct topo_gpu *gpu;
	char *name;

	inv->gpus = xrealloc(inv->gpus, inv->n_gpus + 1, sizeof(*inv->gpus));
	gpu = &inv->gpus[inv->n_gpus++];
	*gpu = (struct topo_gpu){ .vendor = "nvidia",
				  .vendor_id = 0x10de,
				  .device_id = 0x31c2,
				  .minor = (int)inv->n_gpus - 1,
				  .numa_node = TOPO_UNKNOWN,
				  .rail_group = TOPO_UNKNOWN };
	gpu->bus_id = text(m, "%s", bus_id);
	name = text(m, "gpu-%s", bus_id);
	for (char *c = name; *c; c++)
		if (*c == ':' || *c == '.')
			*c = '-';
	gpu->name = name;
	return gpu;
}

/* A NIC about which everything is known: the fullest device. */
static inline struct topo_nic *add_full_nic(struct machine *m, const char *bus_id)
{
	struct topo_nic *nic = add_nic(m, bus_id);
	size_t n = m->inv.n_nics - 1;

	nic->driver = text(m, "mlx5_core");
	nic->netdev = text(m, "eth%zu", n);
	nic->rdma_device = text(m, "mlx5_%zu", n);
	nic->mtu = 9000;
	nic->oper_state = text(m, "up");
	nic->role = ROLE_RAIL;
	nic->rail = (int)n;
	nic->rail_group = (int)n;
	nic->pf_index = 0;
	nic->pf_count = 1;
	nic->numa_node = 0;
	nic->pcie_root = text(m, "pci0009:00");
	nic->function_pcie_root = text(m, "pci0000:00");
	nic->dma_bus_id = text(m, "0009:05:00.0");
	nic->pcie_switch = text(m, "0009:01:00.0");
	nic->hairpin = TRI_SUPPORTED;
	nic->cross_rail = TRI_UNSUPPORTED;
	nic->best_path = PATH_PXB;
	add_port(m, nic, "ACTIVE", 400);
	return nic;
}

/* "n" atomic cards of two functions, a GPU beside each, as on GB300. */
static inline void machine_cards(struct machine *m, size_t n)
{
	*m = (struct machine){ .inv = { .refs = 1000, .topology_class = CLASS_DATA_DIRECT } };
	m->inv.cards = xcalloc(n + 1, sizeof(*m->inv.cards));
	for (size_t i = 0; i < n; i++) {
		struct topo_card *card = &m->inv.cards[m->inv.n_cards++];
		struct topo_gpu *gpu;
		char bus_id[64];

		*card = (struct topo_card){ .id = text(m, "card-%04zx-03-00", i),
					    .atomic = true,
					    .n_members = 2 };
		card->members = machine_block(m, xcalloc(2, sizeof(int)));
		for (unsigned int f = 0; f < 2; f++) {
			struct topo_nic *nic;

			snprintf(bus_id, sizeof(bus_id), "%04zx:03:00.%u", i, f);
			nic = add_full_nic(m, bus_id);
			nic->netdev = text(m, "gpu%zurdma%u", i, f);
			nic->rail_group = (int)i;
			nic->card = (int)i;
			nic->pf_index = (int)f;
			nic->pf_count = 2;
			nic->standalone = false;
			nic->pcie_root = text(m, "pci%04zx:00", i + 16);
			card->members[f] = (int)m->inv.n_nics - 1;
		}
		snprintf(bus_id, sizeof(bus_id), "%04zx:06:00.0", i + 16);
		gpu = add_gpu(m, bus_id);
		gpu->pcie_root = text(m, "pci%04zx:00", i + 16);
		gpu->model = text(m, "NVIDIA GB300");
		gpu->uuid = text(m, "GPU-%08zx-f437-565c-ab0f-914032019dc5", i);
		gpu->driver_version = text(m, "580.95.05");
		gpu->minor = (int)i;
		gpu->numa_node = 0;
		gpu->rail_group = (int)i;
		gpu->gdr = "dmabuf";
		gpu->pcie_switch = text(m, "%04zx:01:00.0", i + 16);
	}
	m->inv.platform = text(m, "gb300");
	m->inv.nvlink_domain = text(m, "domain-1");
}

/* "n" NICs that may be handed out alone. */
static inline void machine_nics(struct machine *m, size_t n)
{
	*m = (struct machine){ .inv = { .refs = 1000 } };
	for (size_t i = 0; i < n; i++) {
		char bus_id[64];

		snprintf(bus_id, sizeof(bus_id), "%04zx:%02zx:00.0", i / 256, i % 256);
		add_full_nic(m, bus_id);
	}
}

#endif

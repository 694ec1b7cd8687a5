// SPDX-License-Identifier: Apache-2.0
#include "topo/inventory.h"

#include "base/mem.h"
#include "base/str.h"

struct inventory *inventory_ref(struct inventory *inv)
{
	__atomic_fetch_add(&inv->refs, 1, __ATOMIC_RELAXED);
	return inv;
}

static void free_texts(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
}

static void free_bridges(struct topo_bridge *bridges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(bridges[i].bus_id);
	free(bridges);
}

static void free_port(struct topo_port *port)
{
	for (size_t i = 0; i < port->n_gids; i++) {
		free(port->gids[i].gid);
		free(port->gids[i].type);
		free(port->gids[i].netdev);
	}
	free(port->gids);
	free(port->state);
	free(port->phys_state);
	free(port->link_layer);
}

static void free_nic(struct topo_nic *nic)
{
	for (size_t i = 0; i < nic->n_ports; i++)
		free_port(&nic->ports[i]);
	for (size_t i = 0; i < nic->n_children; i++) {
		free(nic->children[i].netdev);
		free(nic->children[i].kind);
		free(nic->children[i].rdma_device);
		free(nic->children[i].bus_id);
	}
	free(nic->ports);
	free(nic->children);
	free(nic->name);
	free(nic->bus_id);
	free(nic->driver);
	free(nic->firmware);
	free(nic->board_id);
	free(nic->hca_type);
	free(nic->master);
	free_texts(nic->lag_members);
	free(nic->numa_nodes);
	free(nic->netdev);
	free(nic->rdma_device);
	free(nic->uverbs);
	free(nic->oper_state);
	free(nic->pf_bus_id);
	free(nic->pcie_root);
	free(nic->function_pcie_root);
	free(nic->dma_bus_id);
	free(nic->pcie_switch);
	free_bridges(nic->bridges, nic->n_bridges);
}

static void free_gpu(struct topo_gpu *gpu)
{
	free(gpu->name);
	free(gpu->bus_id);
	free(gpu->model);
	free(gpu->uuid);
	free(gpu->driver_version);
	free(gpu->partition);
	free(gpu->numa_nodes);
	free(gpu->pcie_root);
	free(gpu->pcie_switch);
	free_bridges(gpu->bridges, gpu->n_bridges);
}

static void free_card(struct topo_card *card)
{
	free_texts(card->agreement);
	free(card->id);
	free(card->members);
	free(card->dma_bus_id);
	free(card->dma_pcie_root);
}

struct inventory *inventory_unref(struct inventory *inv)
{
	if (!inv || __atomic_sub_fetch(&inv->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	for (size_t i = 0; i < inv->n_nics; i++)
		free_nic(&inv->nics[i]);
	for (size_t i = 0; i < inv->n_gpus; i++)
		free_gpu(&inv->gpus[i]);
	for (size_t i = 0; i < inv->n_cards; i++)
		free_card(&inv->cards[i]);
	for (size_t i = 0; i < inv->n_warnings; i++) {
		free(inv->warnings[i].object);
		free(inv->warnings[i].message);
	}
	free(inv->nics);
	free(inv->gpus);
	free(inv->cards);
	free(inv->pairs);
	free(inv->warnings);
	free(inv->node_name);
	free(inv->platform);
	free_texts(inv->environment);
	free(inv->nvlink_domain);
	free(inv);
	return NULL;
}

const struct topo_nic *inventory_nic(const struct inventory *inv, const char *name_or_bus_id)
{
	for (size_t i = 0; i < inv->n_nics; i++)
		if (streq(inv->nics[i].name, name_or_bus_id) ||
		    streq(inv->nics[i].bus_id, name_or_bus_id))
			return &inv->nics[i];
	return NULL;
}

const struct topo_gpu *inventory_gpu(const struct inventory *inv, const char *name_or_bus_id)
{
	for (size_t i = 0; i < inv->n_gpus; i++)
		if (streq(inv->gpus[i].name, name_or_bus_id) ||
		    streq(inv->gpus[i].bus_id, name_or_bus_id))
			return &inv->gpus[i];
	return NULL;
}

const struct topo_card *inventory_card(const struct inventory *inv, const char *id)
{
	for (size_t i = 0; i < inv->n_cards; i++)
		if (streq(inv->cards[i].id, id))
			return &inv->cards[i];
	return NULL;
}

const struct topo_pair *inventory_pair(const struct inventory *inv, size_t gpu, size_t nic)
{
	if (gpu >= inv->n_gpus || nic >= inv->n_nics)
		return NULL;
	return &inv->pairs[gpu * inv->n_nics + nic];
}

bool inventory_has_rail(const struct inventory *inv, int rail)
{
	for (size_t i = 0; i < inv->n_nics; i++)
		if (inv->nics[i].rail == rail)
			return true;
	return false;
}

int inventory_highest_rail(const struct inventory *inv)
{
	int highest = TOPO_UNKNOWN;

	for (size_t i = 0; i < inv->n_nics; i++)
		if (inv->nics[i].rail > highest)
			highest = inv->nics[i].rail;
	return highest;
}

bool topo_warnings_alike(const struct topo_warning *a, const struct topo_warning *b)
{
	return streq(a->code, b->code) && streq(a->message, b->message);
}

const char *topo_role_name(enum topo_role role)
{
	static const char *const names[] = { "unknown", "rail", "frontend", "storage" };

	return names[role];
}

const char *topo_class_name(enum topo_class class)
{
	static const char *const names[] = { "unknown",	    "switch", "inline",
					     "data-direct", "numa",   "flat" };

	return names[class];
}

const char *path_class_name(enum path_class path)
{
	static const char *const names[] = { "PIX", "PXB", "PHB", "NODE", "SYS", "unknown" };

	return names[path];
}

const char *tri_name(enum tri value)
{
	static const char *const names[] = { "unknown", "unsupported", "supported" };

	return names[value];
}

const char *topo_bridge_type_name(enum topo_bridge_type type)
{
	static const char *const names[] = { "bridge", "root port", "switch upstream port",
					     "switch downstream port", "bridge" };

	return names[type];
}

char *device_name(const char *prefix, const char *bus_id)
{
	char *name = xasprintf("%s-%s", prefix, bus_id);

	for (char *p = name + strlen(prefix); *p; p++)
		if (*p == ':' || *p == '.')
			*p = '-';
	return name;
}

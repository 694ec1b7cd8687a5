// SPDX-License-Identifier: Apache-2.0
/* "NodeTopology" of docs/design.md §6: absent facts have no key. */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "topo/output.h"

static void set_hex(json_t *object, const char *key, unsigned int value)
{
	_cleanup_free_ char *text = xasprintf("%04x", value);

	json_set_string(object, key, text);
}

static void set_tri(json_t *object, const char *key, enum tri value)
{
	if (value != TRI_UNKNOWN)
		json_set_bool(object, key, value == TRI_YES);
}

/* 2.5 GT/s is the one generation that is no whole number. */
static void set_speed(json_t *object, const char *key, int mts)
{
	if (mts > 0)
		json_set(object, key,
			 mts % 1000 ? json_real(mts / 1000.0) : json_new_int(mts / 1000));
}

static void set_link(json_t *object, const struct topo_link *link)
{
	json_t *o = json_new_object();

	set_speed(o, "speedGTs", link->speed_mts);
	set_speed(o, "maxSpeedGTs", link->max_speed_mts);
	if (link->width > 0)
		json_set_int(o, "width", link->width);
	if (link->max_width > 0)
		json_set_int(o, "maxWidth", link->max_width);
	set_tri(o, "degraded", link->degraded);
	if (json_object_size(o) > 0)
		json_set(object, "pcieLink", o);
	else
		json_decref(o);
}

static void set_texts(json_t *object, const char *key, char *const *texts)
{
	json_t *array;

	if (!texts || !texts[0])
		return;
	array = json_new_array();
	for (size_t i = 0; texts[i]; i++)
		json_add_string(array, texts[i]);
	json_set(object, key, array);
}

static void set_numbers(json_t *object, const char *key, const int *numbers, size_t n)
{
	json_t *array;

	if (n == 0)
		return;
	array = json_new_array();
	for (size_t i = 0; i < n; i++)
		json_add(array, json_new_int(numbers[i]));
	json_set(object, key, array);
}

/* Addresses of the bridges from the root complex down. */
static void set_bridges(json_t *object, const struct topo_bridge *bridges, size_t n)
{
	json_t *array;

	if (n == 0)
		return;
	array = json_new_array();
	for (size_t i = 0; i < n; i++)
		json_add_string(array, bridges[i].bus_id);
	json_set(object, "bridges", array);
}

static json_t *node_json(const struct inventory *inv)
{
	json_t *o = json_new_object();

	json_set_string(o, "name", inv->node_name);
	json_set_string(o, "platform", inv->platform);
	if (inv->topology_class != CLASS_UNKNOWN)
		json_set_string(o, "topologyClass", topo_class_name(inv->topology_class));
	json_set_int(o, "railCount", inv->rail_count);
	json_set_bool(o, "virtual", inv->virtual_machine);
	json_set_string(o, "nvlinkDomain", inv->nvlink_domain);
	if (inv->nvlink_domain_size >= 0)
		json_set_int(o, "nvlinkDomainSize", inv->nvlink_domain_size);
	set_texts(o, "environment", inv->environment);
	return o;
}

static json_t *gpu_json(const struct topo_gpu *gpu)
{
	json_t *o = json_new_object();

	json_set_string(o, "name", gpu->name);
	json_set_string(o, "busID", gpu->bus_id);
	json_set_string(o, "vendor", gpu->vendor);
	set_hex(o, "deviceID", gpu->device_id);
	json_set_string(o, "model", gpu->model);
	json_set_string(o, "uuid", gpu->uuid);
	json_set_known(o, "minor", gpu->minor);
	json_set_known(o, "numaNode", gpu->numa_node);
	set_numbers(o, "numaNodes", gpu->numa_nodes, gpu->n_numa_nodes);
	json_set_string(o, "pcieRoot", gpu->pcie_root);
	json_set_string(o, "pcieSwitch", gpu->pcie_switch);
	set_bridges(o, gpu->bridges, gpu->n_bridges);
	set_link(o, &gpu->link);
	json_set_known(o, "iommuGroup", gpu->iommu_group);
	json_set_string(o, "driverVersion", gpu->driver_version);
	json_set_string(o, "gdr", gpu->gdr);
	json_set_string(o, "partition", gpu->partition);
	json_set_known(o, "partitions", gpu->n_partitions);
	json_set_known(o, "railGroup", gpu->rail_group);
	return o;
}

static json_t *port_json(const struct topo_port *port)
{
	json_t *o = json_new_object(), *gids = json_new_array();

	json_set_int(o, "port", port->port);
	json_set_string(o, "state", port->state);
	json_set_string(o, "physState", port->phys_state);
	json_set_string(o, "linkLayer", port->link_layer);
	json_set_known(o, "rateGbps", port->rate_gbps);
	json_set_known(o, "activeMtu", port->active_mtu);
	for (size_t i = 0; i < port->n_gids; i++) {
		json_t *gid = json_new_object();

		json_set_int(gid, "index", port->gids[i].index);
		json_set_string(gid, "gid", port->gids[i].gid);
		json_set_string(gid, "type", port->gids[i].type);
		json_set_string(gid, "netdev", port->gids[i].netdev);
		json_add(gids, gid);
	}
	json_set(o, "gids", gids);
	json_set_known(o, "gidIndex", port->gid_index);
	return o;
}

static json_t *children_json(const struct topo_nic *nic)
{
	json_t *children = json_new_array();

	for (size_t i = 0; i < nic->n_children; i++) {
		json_t *child = json_new_object();

		json_set_string(child, "netdev", nic->children[i].netdev);
		json_set_string(child, "kind", nic->children[i].kind);
		json_set_string(child, "rdmaDevice", nic->children[i].rdma_device);
		json_set_string(child, "busID", nic->children[i].bus_id);
		json_add(children, child);
	}
	return children;
}

static json_t *nic_json(const struct inventory *inv, const struct topo_nic *nic)
{
	json_t *o = json_new_object(), *ports = json_new_array();

	json_set_string(o, "name", nic->name);
	json_set_string(o, "busID", nic->bus_id);
	set_hex(o, "vendorID", nic->vendor_id);
	set_hex(o, "deviceID", nic->device_id);
	json_set_string(o, "driver", nic->driver);
	json_set_string(o, "netdev", nic->netdev);
	json_set_string(o, "rdmaDevice", nic->rdma_device);
	json_set_string(o, "master", nic->master);
	set_texts(o, "lagMembers", nic->lag_members);
	json_set_string(o, "role", topo_role_name(nic->role));
	json_set_string(o, "roleSource", nic->role_source);
	if (nic->excluded)
		json_set_bool(o, "excluded", true);
	json_set_known(o, "rail", nic->rail);
	json_set_known(o, "railGroup", nic->rail_group);
	json_set_string(o, "railSource", nic->rail_source);
	set_tri(o, "railRouted", nic->rail_routed);
	json_set_string(o, "cardId", nic->card >= 0 ? inv->cards[nic->card].id : NULL);
	json_set_known(o, "pfIndex", nic->pf_index);
	json_set_known(o, "pfCount", nic->pf_count);
	json_set_bool(o, "standalone", nic->standalone);
	json_set_bool(o, "isVF", nic->is_vf);
	json_set_string(o, "pfBusID", nic->pf_bus_id);
	json_set_known(o, "numaNode", nic->numa_node);
	set_numbers(o, "numaNodes", nic->numa_nodes, nic->n_numa_nodes);
	json_set_string(o, "pcieRoot", nic->pcie_root);
	json_set_string(o, "functionPcieRoot", nic->function_pcie_root);
	json_set_string(o, "dmaBusID", nic->dma_bus_id);
	json_set_string(o, "pcieSwitch", nic->pcie_switch);
	set_bridges(o, nic->bridges, nic->n_bridges);
	set_link(o, &nic->link);
	json_set_known(o, "iommuGroup", nic->iommu_group);
	json_set_string(o, "hairpin", tri_name(nic->hairpin));
	json_set_string(o, "hairpinSource", nic->hairpin_source);
	json_set_string(o, "crossRail", tri_name(nic->cross_rail));
	json_set_string(o, "crossRailSource", nic->cross_rail_source);
	json_set_string(o, "firmware", nic->firmware);
	json_set_string(o, "boardID", nic->board_id);
	json_set_string(o, "hcaType", nic->hca_type);
	for (size_t i = 0; i < nic->n_ports; i++)
		json_add(ports, port_json(&nic->ports[i]));
	json_set(o, "ports", ports);
	json_set(o, "children", children_json(nic));
	return o;
}

static json_t *card_json(const struct inventory *inv, const struct topo_card *card)
{
	json_t *o = json_new_object(), *members = json_new_array(), *agreement = json_new_array();

	json_set_string(o, "id", card->id);
	for (size_t i = 0; i < card->n_members; i++)
		json_add_string(members, inv->nics[card->members[i]].name);
	json_set(o, "members", members);
	json_set_bool(o, "atomic", card->atomic);
	for (size_t i = 0; card->agreement && card->agreement[i]; i++)
		json_add_string(agreement, card->agreement[i]);
	json_set(o, "agreement", agreement);
	if (card->dma_bus_id) {
		json_t *dma = json_new_object();

		json_set_string(dma, "busID", card->dma_bus_id);
		json_set_string(dma, "pcieRoot", card->dma_pcie_root);
		json_set(o, "dataDirect", dma);
	}
	return o;
}

static json_t *pair_json(const struct inventory *inv, const struct topo_pair *pair)
{
	json_t *o = json_new_object();

	json_set_string(o, "gpu", inv->gpus[pair->gpu].name);
	json_set_string(o, "nic", inv->nics[pair->nic].name);
	json_set_string(o, "path", path_class_name(pair->path));
	json_set_known(o, "hops", pair->hops);
	json_set_string(o, "via", pair->via_data_direct ? "data-direct" : "function");
	json_set_bool(o, "best", pair->best);
	set_tri(o, "acsRedirect", pair->acs_redirect);
	return o;
}

static json_t *rail_json(const struct inventory *inv, int rail)
{
	json_t *o = json_new_object(), *nics = json_new_array();

	json_set_int(o, "rail", rail);
	for (size_t i = 0; i < inv->n_nics; i++)
		if (inv->nics[i].rail == rail)
			json_add_string(nics, inv->nics[i].name);
	json_set(o, "nics", nics);
	return o;
}

static json_t *warning_json(const struct topo_warning *warning)
{
	json_t *o = json_new_object();

	json_set_string(o, "code", warning->code);
	json_set_string(o, "object", warning->object);
	json_set_string(o, "message", warning->message);
	return o;
}

json_t *topo_to_json(const struct inventory *inv)
{
	json_t *o = json_new_object(), *gpus = json_new_array(), *nics = json_new_array(),
	       *cards = json_new_array();
	json_t *pairs = json_new_array(), *rails = json_new_array(), *warnings = json_new_array();

	for (size_t i = 0; i < inv->n_gpus; i++)
		json_add(gpus, gpu_json(&inv->gpus[i]));
	for (size_t i = 0; i < inv->n_nics; i++)
		json_add(nics, nic_json(inv, &inv->nics[i]));
	for (size_t i = 0; i < inv->n_cards; i++)
		json_add(cards, card_json(inv, &inv->cards[i]));
	for (size_t i = 0; i < inv->n_pairs; i++)
		json_add(pairs, pair_json(inv, &inv->pairs[i]));
	for (int rail = 0; rail <= inventory_highest_rail(inv); rail++)
		if (inventory_has_rail(inv, rail))
			json_add(rails, rail_json(inv, rail));
	for (size_t i = 0; i < inv->n_warnings; i++)
		json_add(warnings, warning_json(&inv->warnings[i]));
	json_set_string(o, "apiVersion", "twinrail.dev/v1");
	json_set_string(o, "kind", "NodeTopology");
	json_set(o, "node", node_json(inv));
	json_set(o, "gpus", gpus);
	json_set(o, "nics", nics);
	json_set(o, "cards", cards);
	json_set(o, "pairs", pairs);
	json_set(o, "rails", rails);
	json_set(o, "warnings", warnings);
	return o;
}

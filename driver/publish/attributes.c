// SPDX-License-Identifier: Apache-2.0
/*
 * Attributes and capacities of one device: the table of docs/design.md §7.  What is not known is
 * absent; only the mirror of dra.net's names is total, because selectors written for that driver
 * read its keys without a guard.
 *
 * Our own names are written without a domain: the API takes them as names in the driver's domain.
 */
#include <string.h>

#include "base/bus_id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

#define STANDARD "resource.kubernetes.io/"
#define MIRROR "dra.net/"

/* What a NIC-like device says about itself; strings are borrowed. */
struct view {
	struct topo_nic nic; /* for a card: what all its functions agree on */
	const char *name, *type, *card_id;
	bool rdma;
	const char *link_layer;
	int link_gbps;
	uint64_t total_gbps; /* 0: unknown */
};

static void set_typed(json_t *attributes, const char *key, const char *type, json_t *value)
{
	json_t *o = json_new_object();

	json_set(o, type, value);
	json_set(attributes, key, o);
}

static bool fits(const char *key, const char *value)
{
	if (strlen(value) <= ATTRIBUTE_MAX_STRING && utf8_valid(value, strlen(value)))
		return true;
	log_debug("attribute left out: longer than 64 bytes or not UTF-8",
		  KV("attribute", "%s", key), KV("value", "%s", value));
	return false;
}

static void set_string(json_t *attributes, const char *key, const char *value)
{
	if (value && *value && fits(key, value))
		set_typed(attributes, key, "string", json_new_string(value));
}

/* Unknown numbers are negative (TOPO_UNKNOWN) and stay out. */
static void set_int(json_t *attributes, const char *key, int value)
{
	if (value >= 0)
		set_typed(attributes, key, "int", json_new_int(value));
}

static void set_bool(json_t *attributes, const char *key, bool value)
{
	set_typed(attributes, key, "bool", json_boolean(value));
}

static void set_tri(json_t *attributes, const char *key, enum tri value)
{
	if (value != TRI_UNKNOWN)
		set_string(attributes, key, tri_name(value));
}

static void set_id(json_t *attributes, const char *key, unsigned int id)
{
	char text[16];

	snprintf(text, sizeof(text), "%04x", id & 0xffff);
	set_string(attributes, key, text);
}

/* Values of the standard attributes; strings and lists are borrowed, NULL is unknown. */
struct standard {
	const char *bus_id, *pcie_root;
	const char *other_root; /* the second value of a list */
	int numa;
	const int *numa_nodes; /* the list form */
	size_t n_numa_nodes;
};

/* For the scheduler a scalar is a list of one value: one value is published as such. */
static void set_numa(json_t *attributes, const struct standard *s)
{
	json_t *list;

	if (s->n_numa_nodes < 2 || s->n_numa_nodes > NUMA_LIST_MAX) {
		set_int(attributes, STANDARD "numaNode", s->numa);
		return;
	}
	list = json_new_array();
	for (size_t i = 0; i < s->n_numa_nodes; i++)
		json_add(list, json_new_int(s->numa_nodes[i]));
	set_typed(attributes, STANDARD "numaNode", "ints", list);
}

/* Other addresses, e.g. of VMD, have none of the standard PCI attributes. */
static void set_standard(json_t *attributes, const struct standard *s)
{
	set_numa(attributes, s);
	if (!is_standard_bus_id(s->bus_id))
		return;
	set_string(attributes, STANDARD "pciBusID", s->bus_id);
	if (s->pcie_root && s->other_root && !streq(s->pcie_root, s->other_root) &&
	    fits("pcieRoot", s->pcie_root) && fits("pcieRoot", s->other_root)) {
		json_t *list = json_new_array();

		json_add_string(list, s->pcie_root);
		json_add_string(list, s->other_root);
		set_typed(attributes, STANDARD "pcieRoot", "strings", list);
	} else {
		set_string(attributes, STANDARD "pcieRoot", s->pcie_root);
	}
}

bool devices_have_lists(const json_t *devices)
{
	const char *key;
	json_t *device, *value;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)devices, i, device)
		json_object_foreach(json_object_get(device, "attributes"), key, value)
			if (json_object_get(value, "ints") || json_object_get(value, "strings"))
				return true;
	return false;
}

/* Every key on every device: "" and 0 stand for what is not known or not one value. */
static void set_mirror(json_t *attributes, const struct view *v)
{
	const struct topo_nic *nic = &v->nic;
	const struct {
		const char *key, *value;
	} strings[] = {
		{ MIRROR "ifName", nic->netdev },     { MIRROR "rdmaDevice", nic->rdma_device },
		{ MIRROR "pciAddress", nic->bus_id }, { MIRROR "state", nic->oper_state },
		{ MIRROR "type", "device" }, /* the link kind of a NIC's own netdev */
	};

	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		const char *s = strings[i].value;

		set_typed(attributes, strings[i].key, "string",
			  json_new_string(s && fits(strings[i].key, s) ? s : ""));
	}
	set_bool(attributes, MIRROR "rdma",
		 v->rdma && (nic->role == ROLE_RAIL || nic->role == ROLE_UNKNOWN));
	set_bool(attributes, MIRROR "virtual", false);
	set_typed(attributes, MIRROR "mtu", "int", json_new_int(nic->mtu > 0 ? nic->mtu : 0));
}

static json_t *device_object(const char *name, json_t *attributes, uint64_t gbps)
{
	json_t *device = json_new_object();

	json_set_string(device, "name", name);
	json_set(device, "attributes", attributes);
	if (gbps) {
		_cleanup_free_ char *text = quantity_text(gbps * 1000000000U);
		json_t *capacity = json_new_object(), *bandwidth = json_new_object();

		json_set_string(bandwidth, "value", text);
		json_set(capacity, "bandwidth", bandwidth);
		json_set(device, "capacity", capacity);
	}
	return device;
}

static json_t *device_from_view(const struct view *v, const struct publish_options *options)
{
	const struct topo_nic *nic = &v->nic;
	const struct standard standard = {
		.bus_id = nic->bus_id,
		.pcie_root = nic->pcie_root,
		.other_root = options->root_list ? nic->function_pcie_root : NULL,
		.numa = nic->numa_node,
		.numa_nodes = nic->numa_nodes,
		.n_numa_nodes = options->numa_list ? nic->n_numa_nodes : 0,
	};
	json_t *a = json_new_object();

	set_standard(a, &standard);
	set_string(a, "type", v->type);
	if (nic->role != ROLE_UNKNOWN)
		set_string(a, "role", topo_role_name(nic->role));
	set_id(a, "vendor", nic->vendor_id);
	set_id(a, "deviceID", nic->device_id);
	set_int(a, "rail", nic->rail);
	set_int(a, "railGroup", nic->rail_group);
	set_string(a, "cardId", v->card_id);
	if (nic->is_vf) {
		set_string(a, "pfBusID", nic->pf_bus_id);
	} else {
		set_int(a, "pfIndex", nic->pf_index);
		set_int(a, "pfCount", nic->pf_count);
	}
	set_bool(a, "standalone", nic->standalone);
	set_string(a, "pcieSwitch", nic->pcie_switch);
	set_string(a, "functionPcieRoot", nic->function_pcie_root);
	set_string(a, "dmaBusID", nic->dma_bus_id);
	if (nic->best_path != PATH_UNKNOWN)
		set_string(a, "pathClass", path_class_name(nic->best_path));
	set_string(a, "linkLayer", v->link_layer);
	set_int(a, "linkGbps", v->link_gbps);
	set_bool(a, "isVF", nic->is_vf);
	set_tri(a, "hairpin", nic->hairpin);
	set_tri(a, "crossRail", nic->cross_rail);
	/* In the domain dra.net itself the mirror's names are our own. */
	if (options->mirror && !streq(options->driver, "dra.net")) {
		set_mirror(a, v);
	} else {
		set_string(a, "ifName", nic->netdev);
		set_string(a, "rdmaDevice", nic->rdma_device);
		set_int(a, "mtu", nic->mtu > 0 ? nic->mtu : TOPO_UNKNOWN);
	}
	return device_object(v->name, a, v->total_gbps);
}

/* The rate of a port which is not active is what the chip starts with, not what the link has. */
static int port_gbps(const struct topo_port *port)
{
	bool usable = !port->state || streq(port->state, "ACTIVE");

	return usable && port->rate_gbps > 0 ? port->rate_gbps : TOPO_UNKNOWN;
}

static struct view view_of(const struct inventory *inv, const struct topo_nic *nic,
			   const char *type)
{
	struct view v = {
		.nic = *nic,
		.name = nic->name,
		.type = type,
		.rdma = nic->rdma_device != NULL,
		.link_gbps = TOPO_UNKNOWN,
	};

	if (nic->card >= 0 && (size_t)nic->card < inv->n_cards)
		v.card_id = inv->cards[nic->card].id;
	if (nic->n_ports) {
		v.link_layer = nic->ports[0].link_layer;
		v.link_gbps = port_gbps(&nic->ports[0]);
	}
	for (size_t i = 0; i < nic->n_ports; i++) {
		int gbps = port_gbps(&nic->ports[i]);

		if (gbps > 0)
			v.total_gbps += (uint64_t)gbps;
	}
	return v;
}

json_t *device_nic(const struct inventory *inv, const struct topo_nic *nic, const char *type,
		   const struct publish_options *options)
{
	struct view v = view_of(inv, nic, type);

	return device_from_view(&v, options);
}

static void agree_string(char **a, const char *b)
{
	if (!streq_null(*a, b))
		*a = NULL;
}

static void agree_int(int *a, int b)
{
	if (*a != b)
		*a = TOPO_UNKNOWN;
}

static bool same_nodes(const struct topo_nic *a, const struct topo_nic *b)
{
	return a->n_numa_nodes == b->n_numa_nodes &&
	       (a->n_numa_nodes == 0 ||
		memcmp(a->numa_nodes, b->numa_nodes, a->n_numa_nodes * sizeof(int)) == 0);
}

/* Take the facts of one more function of the card into account. */
static void view_merge(struct view *v, const struct view *other)
{
	struct topo_nic *a = &v->nic;
	const struct topo_nic *b = &other->nic;

	agree_string(&a->pcie_root, b->pcie_root);
	agree_string(&a->function_pcie_root, b->function_pcie_root);
	agree_string(&a->pcie_switch, b->pcie_switch);
	agree_string(&a->dma_bus_id, b->dma_bus_id);
	agree_int(&a->numa_node, b->numa_node);
	if (!same_nodes(a, b))
		a->n_numa_nodes = 0;
	agree_int(&a->rail, b->rail);
	agree_int(&a->rail_group, b->rail_group);
	if (a->role != b->role)
		a->role = ROLE_UNKNOWN;
	if (a->hairpin != b->hairpin)
		a->hairpin = TRI_UNKNOWN;
	if (a->cross_rail != b->cross_rail)
		a->cross_rail = TRI_UNKNOWN;
	if (b->best_path < a->best_path)
		a->best_path = b->best_path;
	if (b->mtu > 0 && (a->mtu <= 0 || b->mtu < a->mtu))
		a->mtu = b->mtu;
	if (!streq_null(a->oper_state, b->oper_state)) {
		static char down[] = "down";

		a->oper_state = down; /* the card as a whole is not up */
	}
	if (!streq_null(v->link_layer, other->link_layer))
		v->link_layer = NULL;
	agree_int(&v->link_gbps, other->link_gbps);
	v->rdma = v->rdma && other->rdma;
	v->total_gbps = v->total_gbps && other->total_gbps ? v->total_gbps + other->total_gbps : 0;
}

json_t *device_card(const struct inventory *inv, const struct topo_card *card,
		    const struct publish_options *options)
{
	struct view v = view_of(inv, &inv->nics[card->members[0]], "card");

	for (size_t i = 1; i < card->n_members; i++) {
		struct view other = view_of(inv, &inv->nics[card->members[i]], "card");

		view_merge(&v, &other);
	}
	v.name = card->id;
	v.card_id = card->id;
	/* Not one value: a selector on interface names is meant to pick functions, not cards. */
	v.nic.netdev = NULL;
	v.nic.rdma_device = NULL;
	v.nic.is_vf = false;
	v.nic.standalone = true;
	v.nic.pf_index = TOPO_UNKNOWN;
	v.nic.pf_count = (int)card->n_members;
	return device_from_view(&v, options);
}

json_t *device_gpu(const struct inventory *inv, const struct topo_gpu *gpu,
		   const struct publish_options *options)
{
	const struct standard standard = {
		.bus_id = gpu->bus_id,
		.pcie_root = gpu->pcie_root,
		.numa = gpu->numa_node,
		.numa_nodes = gpu->numa_nodes,
		.n_numa_nodes = options->numa_list ? gpu->n_numa_nodes : 0,
	};
	json_t *a = json_new_object();

	set_standard(a, &standard);
	set_string(a, "type", "gpu");
	set_string(a, "vendor", gpu->vendor);
	set_id(a, "deviceID", gpu->device_id);
	set_string(a, "model", gpu->model);
	set_string(a, "uuid", gpu->uuid);
	set_int(a, "minor", gpu->minor);
	/* Two names, because a name whose type depends on the value cannot be selected on. */
	set_string(a, "driverVersion", gpu->driver_version);
	if (gpu->driver_version && is_semver(gpu->driver_version) &&
	    fits("driverSemver", gpu->driver_version))
		set_typed(a, "driverSemver", "version", json_new_string(gpu->driver_version));
	set_string(a, "pcieSwitch", gpu->pcie_switch);
	set_string(a, "gdr", gpu->gdr);
	set_string(a, "platform", inv->platform);
	if (inv->topology_class != CLASS_UNKNOWN)
		set_string(a, "topologyClass", topo_class_name(inv->topology_class));
	set_string(a, "nvlinkDomain", inv->nvlink_domain);
	set_int(a, "railGroup", gpu->rail_group);
	return device_object(gpu->name, a, 0);
}

// SPDX-License-Identifier: Apache-2.0
/* Links and RDMA devices as JSON, and back. */
#include "base/json.h"
#include "base/mem.h"
#include "topo/facts.h"

#define MAX_PORTS 256
#define MAX_GIDS 1024
#define MAX_LOWER 4096

json_t *facts_netdev_to_json(const struct hw_netdev *netdev)
{
	json_t *o = json_new_object(), *lower = json_new_array();

	json_set_string(o, "name", netdev->name);
	json_set_string(o, "busID", netdev->bus_id);
	json_set_string(o, "sfParent", netdev->sf_parent);
	json_set_string(o, "operState", netdev->oper_state);
	json_set_string(o, "physSwitchID", netdev->phys_switch_id);
	json_set_string(o, "physPortName", netdev->phys_port_name);
	json_set_string(o, "kind", netdev->kind);
	json_set_string(o, "master", netdev->master);
	json_set_known(o, "type", netdev->type);
	json_set_known(o, "ifindex", netdev->ifindex);
	json_set_known(o, "mtu", netdev->mtu);
	json_set_known(o, "speedMbps", netdev->speed_mbps);
	json_set_known(o, "carrier", netdev->carrier);
	json_set_known(o, "devPort", netdev->dev_port);
	for (size_t i = 0; i < netdev->lower.n; i++)
		json_add_string(lower, netdev->lower.items[i]);
	json_set(o, "lower", lower);
	return o;
}

static json_t *port_to_json(const struct hw_rdma_port *port)
{
	json_t *o = json_new_object(), *gids = json_new_array();

	json_set_int(o, "port", port->port);
	json_set_string(o, "state", port->state);
	json_set_string(o, "physState", port->phys_state);
	json_set_string(o, "linkLayer", port->link_layer);
	json_set_known(o, "rateGbps", port->rate_gbps);
	json_set_known(o, "lid", port->lid);
	json_set_known(o, "smLid", port->sm_lid);
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
	return o;
}

json_t *facts_rdma_to_json(const struct hw_rdma *rdma)
{
	json_t *o = json_new_object(), *ports = json_new_array();

	json_set_string(o, "name", rdma->name);
	json_set_string(o, "busID", rdma->bus_id);
	json_set_string(o, "sfParent", rdma->sf_parent);
	json_set_string(o, "nodeGuid", rdma->node_guid);
	json_set_string(o, "sysImageGuid", rdma->sys_image_guid);
	json_set_string(o, "firmware", rdma->fw_ver);
	json_set_string(o, "boardID", rdma->board_id);
	json_set_string(o, "hcaType", rdma->hca_type);
	json_set_string(o, "dataDirect", rdma->data_direct);
	json_set_string(o, "uverbs", rdma->uverbs);
	json_set_known(o, "uverbsMajor", rdma->uverbs_major);
	json_set_known(o, "uverbsMinor", rdma->uverbs_minor);
	for (size_t i = 0; i < rdma->n_ports; i++)
		json_add(ports, port_to_json(&rdma->ports[i]));
	json_set(o, "ports", ports);
	return o;
}

/* --- back --- */

static char *get_string(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && *text ? xstrdup(text) : NULL;
}

static int get_int(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);
	json_int_t n = json_integer_value(v);

	return json_is_integer(v) && n >= 0 && n <= INT32_MAX ? (int)n : HW_UNKNOWN;
}

bool facts_netdev_from_json(const json_t *object, struct hw_netdev *ret)
{
	const json_t *lower = json_object_get(object, "lower"), *name;
	const char *text = json_string_value(json_object_get(object, "name"));
	size_t i;

	if (!text || !*text || json_array_size(lower) > MAX_LOWER)
		return false;
	*ret = (struct hw_netdev){
		.name = xstrdup(text),
		.bus_id = get_string(object, "busID"),
		.sf_parent = get_string(object, "sfParent"),
		.oper_state = get_string(object, "operState"),
		.phys_switch_id = get_string(object, "physSwitchID"),
		.phys_port_name = get_string(object, "physPortName"),
		.kind = get_string(object, "kind"),
		.master = get_string(object, "master"),
		.type = get_int(object, "type"),
		.ifindex = get_int(object, "ifindex"),
		.mtu = get_int(object, "mtu"),
		.speed_mbps = get_int(object, "speedMbps"),
		.carrier = get_int(object, "carrier"),
		.dev_port = get_int(object, "devPort"),
	};
	json_array_foreach((json_t *)(uintptr_t)lower, i, name)
		if (json_is_string(name))
			strlist_add(&ret->lower, json_string_value(name));
	return true;
}

static void get_gids(const json_t *gids, struct hw_rdma_port *port)
{
	const json_t *v;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)gids, i, v) {
		char *gid = i < MAX_GIDS ? get_string(v, "gid") : NULL;

		if (gid)
			*array_push(port->gids, port->n_gids, port->cap_gids) = (struct hw_gid){
				.index = (unsigned int)json_integer_value(
					json_object_get(v, "index")),
				.gid = gid,
				.type = get_string(v, "type"),
				.netdev = get_string(v, "netdev"),
			};
	}
}

bool facts_rdma_from_json(const json_t *object, struct hw_rdma *ret)
{
	const json_t *ports = json_object_get(object, "ports"), *v;
	const char *text = json_string_value(json_object_get(object, "name"));
	size_t i;

	if (!text || !*text || json_array_size(ports) > MAX_PORTS)
		return false;
	*ret = (struct hw_rdma){
		.name = xstrdup(text),
		.bus_id = get_string(object, "busID"),
		.sf_parent = get_string(object, "sfParent"),
		.node_guid = get_string(object, "nodeGuid"),
		.sys_image_guid = get_string(object, "sysImageGuid"),
		.fw_ver = get_string(object, "firmware"),
		.board_id = get_string(object, "boardID"),
		.hca_type = get_string(object, "hcaType"),
		.data_direct = get_string(object, "dataDirect"),
		.uverbs = get_string(object, "uverbs"),
		.uverbs_major = get_int(object, "uverbsMajor"),
		.uverbs_minor = get_int(object, "uverbsMinor"),
	};
	json_array_foreach((json_t *)(uintptr_t)ports, i, v) {
		struct hw_rdma_port *port = array_push(ret->ports, ret->n_ports, ret->cap_ports);

		*port = (struct hw_rdma_port){
			.port = (unsigned int)json_integer_value(json_object_get(v, "port")),
			.state = get_string(v, "state"),
			.phys_state = get_string(v, "physState"),
			.link_layer = get_string(v, "linkLayer"),
			.rate_gbps = get_int(v, "rateGbps"),
			.lid = get_int(v, "lid"),
			.sm_lid = get_int(v, "smLid"),
			.active_mtu = get_int(v, "activeMtu"),
		};
		get_gids(json_object_get(v, "gids"), port);
	}
	return true;
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/mem.h"
#include "hw/read.h"

#define CLASS_RDMA "sys/class/infiniband"
#define CLASS_VERBS "sys/class/infiniband_verbs"
#define PORT_MAX 255

/* "4: ACTIVE" → "ACTIVE" */
static char *state_word(const struct hw_root *root, const char *dir, const char *name)
{
	_cleanup_free_ char *text = hw_attr(root, dir, name);
	const char *colon = text ? strstr(text, ": ") : NULL;

	return colon && colon[2] ? xstrdup(colon + 2) : NULL;
}

/* "400 Gb/sec (4X NDR)" → 400, "2.5 Gb/sec (1X SDR)" → 2 */
static int rate(const struct hw_root *root, const char *dir)
{
	_cleanup_free_ char *text = hw_attr(root, dir, "rate");
	size_t digits = text ? strspn(text, "0123456789") : 0;
	int v;

	if (!digits || !strstr(text, " Gb/sec"))
		return HW_UNKNOWN;
	text[digits] = '\0';
	return parse_int(text, &v) == 0 && v > 0 ? v : HW_UNKNOWN;
}

/* A GUID or GID of zeros stands for "not set". */
static char *nonzero(const struct hw_root *root, const char *dir, const char *name)
{
	_cleanup_free_ char *text = hw_attr(root, dir, name);

	return text && text[strspn(text, "0:")] ? TAKE_PTR(text) : NULL;
}

static int cmp_gid(const void *a, const void *b)
{
	const struct hw_gid *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

static void read_gids(const struct hw_root *root, const char *dir, struct hw_rdma_port *port)
{
	_cleanup_free_ char *gids = xasprintf("%s/gids", dir);
	_cleanup_free_ char *types = xasprintf("%s/gid_attrs/types", dir);
	_cleanup_free_ char *ndevs = xasprintf("%s/gid_attrs/ndevs", dir);
	struct strlist names = { 0 };

	if (hw_list(root, gids, HW_MAX_GIDS, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.items[i];
		unsigned int index;
		char *gid;

		if (parse_uint(name, PORT_MAX * 256, &index) < 0)
			continue;
		gid = nonzero(root, gids, name);
		if (!gid)
			continue;
		*array_push(port->gids, port->n_gids, port->cap_gids) = (struct hw_gid){
			.index = index,
			.gid = gid,
			.type = hw_attr(root, types, name),
			.netdev = hw_attr(root, ndevs, name),
		};
	}
	strlist_done(&names);
	if (port->n_gids)
		qsort(port->gids, port->n_gids, sizeof(*port->gids), cmp_gid);
}

static int cmp_port(const void *a, const void *b)
{
	const struct hw_rdma_port *x = a, *y = b;

	return x->port < y->port ? -1 : x->port > y->port;
}

static void read_ports(const struct hw_root *root, const char *dir, struct hw_rdma *rdma)
{
	_cleanup_free_ char *ports = xasprintf("%s/ports", dir);
	struct strlist names = { 0 };

	if (hw_list(root, ports, HW_MAX_PORTS, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *port_dir = xasprintf("%s/%s", ports, names.items[i]);
		struct hw_rdma_port *port;
		unsigned int number;

		if (parse_uint(names.items[i], PORT_MAX, &number) < 0)
			continue;
		port = array_push(rdma->ports, rdma->n_ports, rdma->cap_ports);
		*port = (struct hw_rdma_port){
			.port = number,
			.state = state_word(root, port_dir, "state"),
			.phys_state = state_word(root, port_dir, "phys_state"),
			.link_layer = hw_attr(root, port_dir, "link_layer"),
			.rate_gbps = rate(root, port_dir),
			.lid = HW_UNKNOWN,
			.sm_lid = HW_UNKNOWN,
			.active_mtu = HW_UNKNOWN,
		};
		read_gids(root, port_dir, port);
	}
	strlist_done(&names);
	if (rdma->n_ports)
		qsort(rdma->ports, rdma->n_ports, sizeof(*rdma->ports), cmp_port);
}

/* The PCI function, for a software device (rxe, siw) that of the link it runs on. */
static void set_bus_id(const struct hw_root *root, const char *dir, struct hw_rdma *rdma,
		       const struct hw_machine *machine)
{
	_cleanup_free_ char *path = hw_link_path(root, CLASS_RDMA, rdma->name), *parent = NULL;
	const struct hw_netdev *netdev;

	rdma->bus_id = path ? hw_path_bus_id(path) : NULL;
	if (rdma->bus_id)
		return;
	parent = hw_attr(root, dir, "parent");
	netdev = parent ? hw_find_netdev(machine, parent) : NULL;
	rdma->bus_id = netdev ? xstrdup_null(netdev->bus_id) : NULL;
	rdma->software = rdma->bus_id != NULL;
}

static void read_device(const struct hw_root *root, const char *name, struct hw_machine *machine)
{
	_cleanup_free_ char *dir = xasprintf(CLASS_RDMA "/%s", name);
	struct hw_rdma *rdma = array_push(machine->rdma, machine->n_rdma, machine->cap_rdma);

	*rdma = (struct hw_rdma){
		.name = xstrdup(name),
		.sys_image_guid = nonzero(root, dir, "sys_image_guid"),
		.fw_ver = hw_attr(root, dir, "fw_ver"),
		.board_id = hw_attr(root, dir, "board_id"),
		.uverbs_major = HW_UNKNOWN,
		.uverbs_minor = HW_UNKNOWN,
	};
	set_bus_id(root, dir, rdma, machine);
	read_ports(root, dir, rdma);
}

/* uverbsN names its device in "ibdev": N need not be the device's number. */
static void read_uverbs(const struct hw_root *root, struct hw_machine *machine)
{
	struct strlist names = { 0 };

	if (hw_list(root, CLASS_VERBS, HW_MAX_RDMA, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = xasprintf(CLASS_VERBS "/%s", names.items[i]);
		_cleanup_free_ char *ibdev = hw_attr(root, dir, "ibdev");
		_cleanup_free_ char *dev = hw_attr(root, dir, "dev");

		for (size_t k = 0; ibdev && k < machine->n_rdma; k++) {
			struct hw_rdma *rdma = &machine->rdma[k];

			if (!streq(rdma->name, ibdev) || rdma->uverbs)
				continue;
			rdma->uverbs = xstrdup(names.items[i]);
			hw_parse_dev(dev, &rdma->uverbs_major, &rdma->uverbs_minor);
		}
	}
	strlist_done(&names);
}

void hw_read_rdma(const struct hw_root *root, struct hw_machine *machine)
{
	_cleanup_free_ char *cm = hw_attr(root, "sys/class/misc/rdma_cm", "dev");
	struct strlist names = { 0 };
	int r = hw_list(root, CLASS_RDMA, HW_MAX_RDMA, &names);

	hw_parse_dev(cm, &machine->rdma_cm_major, &machine->rdma_cm_minor);
	if (r < 0 && r != -ENOENT)
		hw_unreadable(machine, "rdma-unreadable", CLASS_RDMA, "RDMA devices", r);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		if (utf8_valid(names.items[i], strlen(names.items[i])))
			read_device(root, names.items[i], machine);
	read_uverbs(root, machine);
	strlist_done(&names);
}

static void rdma_done(struct hw_rdma *rdma)
{
	for (size_t i = 0; i < rdma->n_ports; i++) {
		struct hw_rdma_port *port = &rdma->ports[i];

		for (size_t k = 0; k < port->n_gids; k++) {
			free(port->gids[k].gid);
			free(port->gids[k].type);
			free(port->gids[k].netdev);
		}
		free(port->gids);
		free(port->state);
		free(port->phys_state);
		free(port->link_layer);
	}
	free(rdma->ports);
	free(rdma->name);
	free(rdma->bus_id);
	free(rdma->sf_parent);
	free(rdma->parent);
	free(rdma->node_guid);
	free(rdma->sys_image_guid);
	free(rdma->hca_type);
	free(rdma->data_direct);
	free(rdma->fw_ver);
	free(rdma->board_id);
	free(rdma->uverbs);
}

void hw_clear_rdma(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_rdma; i++)
		rdma_done(&machine->rdma[i]);
	free(machine->rdma);
	machine->rdma = NULL;
	machine->n_rdma = machine->cap_rdma = 0;
	machine->rdma_cm_major = machine->rdma_cm_minor = HW_UNKNOWN;
}

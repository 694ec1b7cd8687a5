// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/mem.h"
#include "hw/read.h"

#define CLASS_NET "sys/class/net"

/* "DEVTYPE=vlan" in the uevent file. */
static char *dev_type(const struct hw_root *root, const char *dir)
{
	_cleanup_free_ char *text = hw_attr(root, dir, "uevent");
	struct strlist lines = { 0 };
	char *type = NULL;

	if (!text)
		return NULL;
	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n && !type; i++)
		if (starts_with(lines.items[i], "DEVTYPE=") && lines.items[i][8])
			type = xstrdup(lines.items[i] + 8);
	strlist_done(&lines);
	return type;
}

static void read_lower(const struct hw_root *root, const char *dir, struct hw_netdev *netdev)
{
	struct strlist names = { 0 };

	if (hw_list(root, dir, HW_MAX_NETDEVS, &names) == 0)
		for (size_t i = 0; i < names.n; i++)
			if (starts_with(names.items[i], "lower_"))
				strlist_add(&netdev->lower, names.items[i] + 6);
	strlist_done(&names);
}

static void read_netdev(const struct hw_root *root, const char *name, struct hw_machine *machine)
{
	_cleanup_free_ char *dir = xasprintf(CLASS_NET "/%s", name);
	_cleanup_free_ char *path = hw_link_path(root, CLASS_NET, name);
	struct hw_netdev *netdev;

	/* Files such as bonding_masters are no links and no netdevs. */
	if (!path || !utf8_valid(name, strlen(name)))
		return;
	netdev = array_push(machine->netdevs, machine->n_netdevs, machine->cap_netdevs);
	*netdev = (struct hw_netdev){
		.name = xstrdup(name),
		.bus_id = hw_path_bus_id(path),
		.sf_parent = hw_path_sf_parent(path),
		.oper_state = hw_attr(root, dir, "operstate"),
		.phys_switch_id = hw_attr(root, dir, "phys_switch_id"),
		.phys_port_name = hw_attr(root, dir, "phys_port_name"),
		.kind = dev_type(root, dir),
		.master = hw_link_base(root, dir, "master"),
		.ifindex = HW_UNKNOWN,
		.type = HW_UNKNOWN,
		.speed_mbps = HW_UNKNOWN,
		.carrier = HW_UNKNOWN,
		.dev_port = HW_UNKNOWN,
		.mtu = hw_attr_int(root, dir, "mtu", HW_UNKNOWN),
	};
	read_lower(root, dir, netdev);
}

void hw_read_net(const struct hw_root *root, struct hw_machine *machine)
{
	struct strlist names = { 0 };
	int r = hw_list(root, CLASS_NET, HW_MAX_NETDEVS, &names);

	if (r < 0 && r != -ENOENT)
		hw_unreadable(machine, "net-unreadable", CLASS_NET, "network devices", r);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		read_netdev(root, names.items[i], machine);
	strlist_done(&names);
}

static void netdev_done(struct hw_netdev *netdev)
{
	free(netdev->name);
	free(netdev->bus_id);
	free(netdev->sf_parent);
	free(netdev->oper_state);
	free(netdev->phys_switch_id);
	free(netdev->phys_port_name);
	free(netdev->kind);
	free(netdev->address);
	free(netdev->master);
	strlist_done(&netdev->lower);
}

void hw_clear_net(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_netdevs; i++)
		netdev_done(&machine->netdevs[i]);
	free(machine->netdevs);
	machine->netdevs = NULL;
	machine->n_netdevs = machine->cap_netdevs = 0;
}

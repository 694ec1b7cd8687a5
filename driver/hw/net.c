// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/mem.h"
#include "hw/read.h"

#define CLASS_NET "sys/class/net"
#define ROUTES_MAX (1024 * 1024)

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

static void add_default_route(struct hw_machine *machine, const char *netdev)
{
	if (!strlist_has(&machine->default_routes, netdev))
		strlist_add(&machine->default_routes, netdev);
}

/* Words "default … dev NAME", also several next hops, as "ip route" prints them. */
static void parse_recorded(struct hw_machine *machine, struct strlist *words)
{
	bool is_default = words->n > 0 && streq(words->items[0], "default");

	for (size_t i = 0; is_default && i + 1 < words->n; i++)
		if (streq(words->items[i], "dev"))
			add_default_route(machine, words->items[i + 1]);
}

/* /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask …, hexadecimal. */
static void parse_ipv4(struct hw_machine *machine, struct strlist *w)
{
	if (w->n >= 8 && streq(w->items[1], "00000000") && streq(w->items[7], "00000000"))
		add_default_route(machine, w->items[0]);
}

/*
 * /proc/net/ipv6_route: destination, prefix length, source, prefix length, next hop, metric,
 * counters, flags, device.  The kernel's own "unreachable default" is on lo.
 */
static void parse_ipv6(struct hw_machine *machine, struct strlist *w)
{
	if (w->n >= 10 && streq(w->items[0], "00000000000000000000000000000000") &&
	    streq(w->items[1], "00") && !streq(w->items[9], "lo"))
		add_default_route(machine, w->items[9]);
}

static void read_route_file(const struct hw_root *root, const char *path,
			    struct hw_machine *machine,
			    void (*parse)(struct hw_machine *, struct strlist *))
{
	_cleanup_free_ char *text = NULL;
	struct strlist lines = { 0 };
	int r = hw_root_read(root, path, ROUTES_MAX, &text, NULL);

	if (r < 0) {
		if (r != -ENOENT)
			hw_unreadable(machine, "routes-unreadable", path, "routes", r);
		return;
	}
	for (char *p = text; *p; p++)
		if (*p == '\t')
			*p = ' ';
	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n; i++) {
		struct strlist words = { 0 };

		strlist_split(&words, lines.items[i], ' ');
		parse(machine, &words);
		strlist_done(&words);
	}
	strlist_done(&lines);
}

void hw_read_routes(const struct hw_root *root, struct hw_machine *machine)
{
	if (root->live) {
		read_route_file(root, "proc/net/route", machine, parse_ipv4);
		read_route_file(root, "proc/net/ipv6_route", machine, parse_ipv6);
	} else {
		read_route_file(root, "twinrail/routes", machine, parse_recorded);
	}
}

void hw_netdev_done(struct hw_netdev *netdev)
{
	free(netdev->name);
	free(netdev->bus_id);
	free(netdev->sf_parent);
	free(netdev->oper_state);
	free(netdev->phys_switch_id);
	free(netdev->phys_port_name);
	free(netdev->kind);
	free(netdev->master);
	strlist_done(&netdev->lower);
}

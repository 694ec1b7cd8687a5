// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/mem.h"
#include "hw/read.h"

#define CLASS_NET "sys/class/net"

/* "KEY=value" lines of the uevent file: the kind of link, and its number. */
static void read_uevent(struct hw_dir *dir, struct hw_netdev *netdev)
{
	_cleanup_free_ char *text = hw_dir_text(dir, "uevent");

	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (starts_with(line, "DEVTYPE=") && line[8] && !netdev->kind)
			netdev->kind = xstrdup(line + 8);
		else if (starts_with(line, "IFINDEX=") &&
			 (parse_int(line + 8, &netdev->ifindex) < 0 || netdev->ifindex <= 0))
			netdev->ifindex = HW_UNKNOWN;
	}
	if (netdev->ifindex == HW_UNKNOWN)
		netdev->ifindex = hw_dir_int(dir, "ifindex", HW_UNKNOWN);
}

static void read_lower(struct hw_dir *dir, struct hw_netdev *netdev)
{
	struct strlist names = { 0 };

	if (hw_dir_list(dir, ".", HW_MAX_NETDEVS, &names) == 0)
		for (size_t i = 0; i < names.n; i++)
			if (starts_with(names.items[i], "lower_"))
				strlist_add(&netdev->lower, names.items[i] + 6);
	strlist_done(&names);
}

/* "dev_port"; drivers of older kernels told it as "dev_id". */
static int read_dev_port(struct hw_dir *dir)
{
	int port = hw_dir_int(dir, "dev_port", HW_UNKNOWN);

	if (port < 0)
		port = (int)(hw_dir_hex(dir, "dev_id", 0xffff) & 0xffff);
	return port == 0xffff ? HW_UNKNOWN : port;
}

/* Of a link that is down by an administrator, speed and carrier cannot be read: EINVAL. */
static void read_port(struct hw_dir *dir, struct hw_netdev *netdev)
{
	netdev->address = hw_dir_text(dir, "address");
	netdev->type = hw_dir_int(dir, "type", HW_UNKNOWN);
	netdev->carrier = hw_dir_int(dir, "carrier", HW_UNKNOWN);
	netdev->speed_mbps = hw_dir_int(dir, "speed", HW_UNKNOWN);
	if (netdev->speed_mbps <= 0)
		netdev->speed_mbps = HW_UNKNOWN;
	netdev->dev_port = read_dev_port(dir);
	netdev->phys_switch_id = hw_dir_text(dir, "phys_switch_id");
	netdev->phys_port_name = hw_dir_text(dir, "phys_port_name");
}

/*
 * The link of a VF whose PF can be seen: the port is that of the PF, and as there may be 1,024 of
 * them, no more is read than what is published.
 */
static bool is_of_vf(const struct hw_machine *machine, const struct hw_netdev *netdev)
{
	const struct hw_pci *pci = netdev->bus_id ? hw_find_pci(machine, netdev->bus_id) : NULL;

	return pci && pci->physfn && hw_find_pci(machine, pci->physfn);
}

/* Directly below a PCI function there is hardware: it runs on no other link. */
static bool is_hardware(const char *path, const struct hw_netdev *netdev)
{
	return netdev->bus_id && !strstr(path, "/virtio");
}

static void fill_netdev(struct hw_dir *dir, const struct hw_machine *machine,
			struct hw_netdev *netdev)
{
	netdev->master = hw_dir_link_base(dir, "master");
	netdev->oper_state = hw_dir_text(dir, "operstate");
	netdev->mtu = hw_dir_int(dir, "mtu", HW_UNKNOWN);
	if (!is_of_vf(machine, netdev)) {
		read_uevent(dir, netdev);
		read_port(dir, netdev);
	}
	if (!is_hardware(dir->path, netdev))
		read_lower(dir, netdev);
}

static char *read_master(struct hw_dir *list, const char *name)
{
	_cleanup_free_ char *path = hw_dir_link_path(list, name);
	_cleanup_(hw_dir_close) struct hw_dir dir = { .fd = -1 };

	return path && hw_dir_open(list->root, path + 1, &dir) == 0
		       ? hw_dir_link_base(&dir, "master")
		       : NULL;
}

/*
 * Two files of a VF's own link are read without opening its directory; read_vf_masters() tells the
 * rest.  False: it is not as usual, and fill_netdev() is to find out.
 */
static bool fill_vf(const struct hw_root *root, const char *path, struct hw_netdev *netdev)
{
	_cleanup_free_ char *state = hw_attr_direct(root, path, "operstate");
	_cleanup_free_ char *mtu = state ? hw_attr_direct(root, path, "mtu") : NULL;

	if (!mtu || parse_int(mtu, &netdev->mtu) < 0) {
		netdev->mtu = HW_UNKNOWN;
		return false;
	}
	netdev->oper_state = TAKE_PTR(state);
	return true;
}

/* A master has a link lower_<name> to each of its members: only such VFs are asked for it. */
static void read_vf_masters(struct hw_dir *list, struct hw_machine *machine)
{
	struct strlist *lower;

	for (size_t i = 0; i < machine->n_netdevs; i++) {
		lower = &machine->netdevs[i].lower;
		for (size_t k = 0; k < lower->n; k++) {
			const struct hw_netdev *vf = hw_find_netdev(machine, lower->items[k]);

			if (vf && !vf->master && is_of_vf(machine, vf))
				machine->netdevs[vf - machine->netdevs].master =
					read_master(list, vf->name);
		}
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
	free(netdev->address);
	free(netdev->master);
	strlist_done(&netdev->lower);
}

static void read_netdev(struct hw_dir *list, const char *name, struct hw_machine *machine)
{
	_cleanup_free_ char *path = hw_dir_link_path(list, name);
	_cleanup_(hw_dir_close) struct hw_dir dir = { .fd = -1 };
	struct hw_netdev netdev = {
		.ifindex = HW_UNKNOWN,
		.type = HW_UNKNOWN,
		.mtu = HW_UNKNOWN,
		.speed_mbps = HW_UNKNOWN,
		.carrier = HW_UNKNOWN,
		.dev_port = HW_UNKNOWN,
	};
	bool short_way;
	int r = 0;

	/* Files such as bonding_masters are no links and no netdevs. */
	if (!path)
		return;
	netdev.bus_id = hw_path_bus_id(path);
	/* A recorder is to see that there is no master. */
	short_way = !list->root->recorder && is_hardware(path, &netdev) &&
		    is_of_vf(machine, &netdev) && fill_vf(list->root, path + 1, &netdev);
	if (!short_way)
		r = hw_dir_open(list->root, path + 1, &dir);
	if (r < 0 && hw_dir_has(list, name))
		hw_warn(machine, "netdev-unreadable", name, "the link is left out: %s",
			strerror(-r));
	if (r == 0 && !short_way) {
		netdev.sf_parent = hw_path_sf_parent(path);
		fill_netdev(&dir, machine, &netdev);
	}
	if (r < 0 || (dir.missed && hw_dir_gone(&dir))) {
		hw_netdev_done(&netdev);
		return;
	}
	netdev.name = xstrdup(name);
	*array_push(machine->netdevs, machine->n_netdevs, machine->cap_netdevs) = netdev;
}

void hw_read_net(const struct hw_root *root, struct hw_machine *machine)
{
	_cleanup_(hw_dir_close) struct hw_dir list = { .fd = -1 };
	struct strlist names = { 0 };
	int r = hw_list(root, CLASS_NET, HW_MAX_NETDEVS, &names);

	if (r == 0)
		r = hw_dir_open(root, CLASS_NET, &list);
	if (r < 0 && r != -ENOENT)
		hw_unreadable(machine, "net-unreadable", CLASS_NET, "network devices", r);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		const char *name = names.items[i];

		if (utf8_valid(name, strlen(name)))
			read_netdev(&list, name, machine);
		else
			hw_warn(machine, "netdev-unreadable", CLASS_NET,
				"a link is left out: its name is not UTF-8");
	}
	read_vf_masters(&list, machine);
	strlist_done(&names);
}

void hw_clear_net(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_netdevs; i++)
		hw_netdev_done(&machine->netdevs[i]);
	free(machine->netdevs);
	machine->netdevs = NULL;
	machine->n_netdevs = machine->cap_netdevs = 0;
}

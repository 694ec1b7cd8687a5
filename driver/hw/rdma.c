// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "hw/read.h"

#define CLASS_RDMA "sys/class/infiniband"
#define CLASS_VERBS "sys/class/infiniband_verbs"
#define PORT_MAX 255
#define MAX_LEVELS 8 /* of links on links */
#define NAME_SIZE 300 /* "ports/255/gid_attrs/types/", and the longest name of a file */

/* One device of the class, before it is read. */
struct found {
	const char *name;
	char *path; /* absolute below the root */
	char *bus_id;
	const struct hw_pci *pf; /* of a VF whose PF can be seen */
	bool no_gids; /* of such a VF: its GIDs are not read, see set_no_gids() */
};

/* "4: ACTIVE" → "ACTIVE" */
static char *state_word(const char *text)
{
	const char *colon = text ? strstr(text, ": ") : NULL;

	return colon && colon[2] ? xstrdup(colon + 2) : NULL;
}

static char *read_state(struct hw_dir *dir, const char *name)
{
	_cleanup_free_ char *text = hw_dir_text(dir, name);

	return state_word(text);
}

/* "400 Gb/sec (4X NDR)" → 400, "2.5 Gb/sec (1X SDR)" → 2 */
static int rate(struct hw_dir *dir, const char *name)
{
	_cleanup_free_ char *text = hw_dir_text(dir, name);
	size_t digits = text ? strspn(text, "0123456789") : 0;
	int v;

	if (!digits || !strstr(text, " Gb/sec"))
		return HW_UNKNOWN;
	text[digits] = '\0';
	return parse_int(text, &v) == 0 && v > 0 ? v : HW_UNKNOWN;
}

/* "0x1"; 0 and ffff stand for "none yet". */
static int lid(struct hw_dir *dir, const char *name)
{
	unsigned int v = hw_dir_hex(dir, name, 0);

	return v > 0 && v < 0xffff ? (int)v : HW_UNKNOWN;
}

/* A GUID or GID of zeros stands for "not set". */
static char *nonzero(struct hw_dir *dir, const char *name)
{
	struct hw_text buf;
	const char *text = hw_dir_text_into(dir, name, &buf);

	return text && text[strspn(text, "0:")] ? xstrdup(text) : NULL;
}

/* The name of a file of a port: "ports/1/state", "ports/1/gids/3"; a table of GIDs has many. */
struct port_file {
	char name[NAME_SIZE];
	size_t n; /* length of "ports/1/" */
};

static void port_file_init(struct port_file *f, unsigned int port)
{
	f->n = (size_t)snprintf(f->name, sizeof(f->name), "ports/%u/", port);
}

static const char *port_file(struct port_file *f, const char *folder, const char *file)
{
	snprintf(f->name + f->n, sizeof(f->name) - f->n, "%s%s", folder, file);
	return f->name;
}

static int cmp_gid(const void *a, const void *b)
{
	const struct hw_gid *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

/* A table has up to some hundred entries, nearly all of them zero: each is one short name. */
static void read_gids(struct hw_dir *dir, struct port_file *f, struct hw_rdma_port *port)
{
	_cleanup_(hw_dir_close) struct hw_dir gids = { .fd = -1 };
	struct strlist names = { 0 };

	if (hw_dir_open_in(dir, port_file(f, "gids", ""), &gids) < 0 ||
	    hw_dir_list(&gids, ".", HW_MAX_GIDS, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.items[i];
		unsigned int index;
		char *gid;

		if (parse_uint(name, PORT_MAX * 256, &index) < 0)
			continue;
		gid = nonzero(&gids, name);
		if (!gid)
			continue;
		*array_push(port->gids, port->n_gids, port->cap_gids) = (struct hw_gid){
			.index = index,
			.gid = gid,
			.type = hw_dir_text(dir, port_file(f, "gid_attrs/types/", name)),
			.netdev = hw_dir_text(dir, port_file(f, "gid_attrs/ndevs/", name)),
		};
	}
	strlist_done(&names);
	dir->missed = dir->missed || gids.missed;
	if (port->n_gids)
		qsort(port->gids, port->n_gids, sizeof(*port->gids), cmp_gid);
}

static struct hw_rdma_port *new_port(unsigned int number, struct hw_rdma *rdma)
{
	struct hw_rdma_port *port = array_push(rdma->ports, rdma->n_ports, rdma->cap_ports);

	*port = (struct hw_rdma_port){
		.port = number,
		.rate_gbps = HW_UNKNOWN,
		.lid = HW_UNKNOWN,
		.sm_lid = HW_UNKNOWN,
		.active_mtu = HW_UNKNOWN,
	};
	return port;
}

/* That of a VF and that of its PF are the same physical port. */
static void copy_port(const struct hw_rdma_port *of_pf, struct hw_rdma_port *port)
{
	port->phys_state = xstrdup_null(of_pf->phys_state);
	port->link_layer = xstrdup_null(of_pf->link_layer);
	port->rate_gbps = of_pf->rate_gbps;
}

static bool is_infiniband(const struct hw_rdma_port *port)
{
	return port->link_layer && streq(port->link_layer, "InfiniBand");
}

/* "of_pf": the port of the PF, for a VF. */
static void read_port(struct hw_dir *dir, unsigned int number, const struct hw_rdma_port *of_pf,
		      bool gids, struct hw_rdma *rdma)
{
	struct hw_rdma_port *port = new_port(number, rdma);
	struct port_file f;

	port_file_init(&f, number);
	port->state = read_state(dir, port_file(&f, "", "state"));
	if (of_pf) {
		copy_port(of_pf, port);
	} else {
		port->phys_state = read_state(dir, port_file(&f, "", "phys_state"));
		port->link_layer = hw_dir_text(dir, port_file(&f, "", "link_layer"));
		port->rate_gbps = rate(dir, port_file(&f, "", "rate"));
	}
	if (is_infiniband(port)) {
		port->lid = lid(dir, port_file(&f, "", "lid"));
		port->sm_lid = lid(dir, port_file(&f, "", "sm_lid"));
	}
	if (gids || port->lid != HW_UNKNOWN)
		read_gids(dir, &f, port);
}

static int cmp_port(const void *a, const void *b)
{
	const struct hw_rdma_port *x = a, *y = b;

	return x->port < y->port ? -1 : x->port > y->port;
}

static void read_ports(struct hw_dir *dir, bool gids, struct hw_rdma *rdma)
{
	struct strlist names = { 0 };

	if (hw_dir_list(dir, "ports", HW_MAX_PORTS, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		unsigned int number;

		if (parse_uint(names.items[i], PORT_MAX, &number) == 0)
			read_port(dir, number, NULL, gids, rdma);
	}
	strlist_done(&names);
	if (rdma->n_ports)
		qsort(rdma->ports, rdma->n_ports, sizeof(*rdma->ports), cmp_port);
}

/* The link that a software device (rxe, siw) runs on, and the PCI function of that. */
static void read_parent(struct hw_dir *dir, const struct hw_machine *machine, struct hw_rdma *rdma)
{
	const struct hw_netdev *netdev;

	rdma->parent = hw_dir_text(dir, "parent");
	rdma->software = rdma->parent != NULL;
	netdev = rdma->parent ? hw_find_netdev(machine, rdma->parent) : NULL;
	if (netdev)
		rdma->bus_id = xstrdup_null(netdev->bus_id);
}

static void fill_device(struct hw_dir *dir, const struct hw_machine *machine, struct hw_rdma *rdma)
{
	rdma->node_guid = nonzero(dir, "node_guid");
	rdma->sys_image_guid = nonzero(dir, "sys_image_guid");
	rdma->fw_ver = hw_dir_text(dir, "fw_ver");
	rdma->board_id = hw_dir_text(dir, "board_id");
	rdma->hca_type = hw_dir_text(dir, "hca_type");
	rdma->sf_parent = hw_path_sf_parent(dir->path);
	if (!rdma->bus_id && !rdma->sf_parent)
		read_parent(dir, machine, rdma);
	read_ports(dir, true, rdma);
}

static void copy_chip(const struct hw_rdma *pf, struct hw_rdma *rdma)
{
	rdma->sys_image_guid = xstrdup_null(pf->sys_image_guid);
	rdma->fw_ver = xstrdup_null(pf->fw_ver);
	rdma->board_id = xstrdup_null(pf->board_id);
	rdma->hca_type = xstrdup_null(pf->hca_type);
}

/* A VF is of the same chip as its PF: what is true of both is not read for each of 1,024 VFs. */
static void fill_vf(struct hw_dir *dir, const struct hw_rdma *pf, bool gids, struct hw_rdma *rdma)
{
	copy_chip(pf, rdma);
	/* In switchdev mode a PF has a port for each representor, too: those are not the VF's. */
	if (pf->n_ports == 1)
		read_port(dir, pf->ports[0].port, &pf->ports[0], gids, rdma);
	else
		read_ports(dir, gids, rdma);
}

/*
 * Of a VF of RoCE without GIDs only the state of its port is read: its directory need not be opened
 * for that.  False: it is not as usual, and fill_vf() is to find out.
 */
static bool fill_waiting_vf(const struct hw_root *root, const char *path, const struct hw_rdma *pf,
			    struct hw_rdma *rdma)
{
	const struct hw_rdma_port *of_pf = pf->ports;
	_cleanup_free_ char *text = NULL, *state = NULL;
	struct port_file f;

	if (pf->n_ports != 1 || is_infiniband(of_pf))
		return false;
	port_file_init(&f, of_pf->port);
	text = hw_attr_direct(root, path, port_file(&f, "", "state"));
	state = state_word(text);
	if (!state)
		return false;
	copy_chip(pf, rdma);
	new_port(of_pf->port, rdma)->state = TAKE_PTR(state);
	copy_port(of_pf, rdma->ports);
	return true;
}

void hw_rdma_done(struct hw_rdma *rdma)
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

/* "pf": that of the PF, for a VF. */
static void read_device(const struct hw_dir *list, const struct found *found,
			const struct hw_rdma *pf, struct hw_machine *machine)
{
	_cleanup_(hw_dir_close) struct hw_dir dir = { .fd = -1 };
	struct hw_rdma rdma = {
		.name = xstrdup(found->name),
		.bus_id = xstrdup_null(found->bus_id),
		.uverbs_major = HW_UNKNOWN,
		.uverbs_minor = HW_UNKNOWN,
	};
	int r;

	if (pf && found->no_gids && !list->root->recorder &&
	    fill_waiting_vf(list->root, found->path + 1, pf, &rdma)) {
		*array_push(machine->rdma, machine->n_rdma, machine->cap_rdma) = rdma;
		return;
	}
	r = hw_dir_open(list->root, found->path + 1, &dir);
	if (r == 0 && pf)
		fill_vf(&dir, pf, !found->no_gids, &rdma);
	else if (r == 0)
		fill_device(&dir, machine, &rdma);
	if (r == 0 && !(dir.missed && hw_dir_gone(&dir))) {
		*array_push(machine->rdma, machine->n_rdma, machine->cap_rdma) = rdma;
		return;
	}
	if (r < 0 && hw_dir_has(list, found->name))
		hw_warn(machine, "rdma-device-unreadable", found->name,
			"the RDMA device is left out: %s", strerror(-r));
	hw_rdma_done(&rdma);
}

static int cmp_bus_id(const void *a, const void *b)
{
	const struct hw_rdma *const *x = a, *const *y = b;

	return strcmp((*x)->bus_id, (*y)->bus_id);
}

static int cmp_name(const void *a, const void *b)
{
	const struct hw_rdma *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* VFs after their PFs. */
static void read_vfs(const struct hw_dir *list, const struct found *found, size_t n,
		     struct hw_machine *machine)
{
	size_t n_pfs = 0, n_others = machine->n_rdma;
	_cleanup_free_ struct hw_rdma *others = xcalloc(n_others, sizeof(*others));
	_cleanup_free_ const struct hw_rdma **pfs = xcalloc(n_others, sizeof(*pfs));

	/* Their own array moves while it grows. */
	if (n_others)
		memcpy(others, machine->rdma, n_others * sizeof(*others));
	for (size_t i = 0; i < n_others; i++)
		if (others[i].bus_id && !others[i].software)
			pfs[n_pfs++] = &others[i];
	qsort(pfs, n_pfs, sizeof(*pfs), cmp_bus_id);
	for (size_t i = 0; i < n; i++) {
		const struct hw_rdma *key, **pf;

		if (!found[i].pf)
			continue;
		key = &(const struct hw_rdma){ .bus_id = found[i].pf->bus_id };
		pf = n_pfs ? bsearch(&key, pfs, n_pfs, sizeof(*pfs), cmp_bus_id) : NULL;
		read_device(list, &found[i], pf ? *pf : NULL, machine);
	}
	if (machine->n_rdma)
		qsort(machine->rdma, machine->n_rdma, sizeof(*machine->rdma), cmp_name);
}

static size_t find_devices(struct hw_dir *list, const struct strlist *names,
			   struct hw_machine *machine, struct found *found)
{
	size_t n = 0;

	for (size_t i = 0; i < names->n; i++) {
		const char *name = names->items[i];
		struct found *f = &found[n];
		const struct hw_pci *pci;

		if (!utf8_valid(name, strlen(name))) {
			hw_warn(machine, "rdma-device-unreadable", CLASS_RDMA,
				"a device is left out: its name is not UTF-8");
			continue;
		}
		f->path = hw_dir_link_path(list, name);
		if (!f->path)
			continue;
		f->name = name;
		f->bus_id = hw_path_bus_id(f->path);
		pci = f->bus_id ? hw_find_pci(machine, f->bus_id) : NULL;
		f->pf = pci && pci->physfn ? hw_find_pci(machine, pci->physfn) : NULL;
		n++;
	}
	return n;
}

/* The PCI function of a link, or of the link that it runs on (VLAN, ipvlan); NULL: none. */
static const char *function_below(const struct hw_machine *machine, const char *name)
{
	const struct hw_netdev *netdev = hw_find_netdev(machine, name);

	for (int depth = 0; netdev && !netdev->bus_id && depth < MAX_LEVELS; depth++)
		netdev = netdev->lower.n == 1 ? hw_find_netdev(machine, netdev->lower.items[0])
					      : NULL;
	return netdev ? netdev->bus_id : NULL;
}

static int cmp_string(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * A VF of RoCE whose link has no address but perhaps a link-local one waits for its pod, and its
 * GIDs will be others there: a table of GIDs for each of 1,024 VFs says nothing.
 */
static void set_no_gids(const struct hw_machine *machine, struct found *found, size_t n)
{
	const struct hw_ip *ip = &machine->ip;
	_cleanup_free_ const char **used = xcalloc(ip->n_addresses + 1, sizeof(*used));
	size_t n_used = 0;

	for (size_t i = 0; i < ip->n_addresses; i++) {
		const struct hw_address *a = &ip->addresses[i];
		bool local = a->scope && (streq(a->scope, "link") || streq(a->scope, "host"));
		const char *bus_id = local ? NULL : function_below(machine, a->netdev);

		if (bus_id)
			used[n_used++] = bus_id;
	}
	qsort(used, n_used, sizeof(*used), cmp_string);
	for (size_t i = 0; ip->known && i < n; i++)
		found[i].no_gids = found[i].pf && !bsearch(&found[i].bus_id, used, n_used,
							   sizeof(*used), cmp_string);
}

/* PFs before their VFs. */
static void read_devices(struct hw_dir *list, struct found *found, size_t n,
			 struct hw_machine *machine)
{
	size_t n_vfs = 0;

	for (size_t i = 0; i < n; i++) {
		if (found[i].pf)
			n_vfs++;
		else
			read_device(list, &found[i], NULL, machine);
	}
	if (n_vfs) {
		set_no_gids(machine, found, n);
		read_vfs(list, found, n, machine);
	}
}

static struct hw_rdma *find_device(const struct hw_machine *machine, const char *name)
{
	struct hw_rdma key = { .name = (char *)name };

	return machine->n_rdma ? bsearch(&key, machine->rdma, machine->n_rdma,
					 sizeof(*machine->rdma), cmp_name)
			       : NULL;
}

static int cmp_path(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/*
 * The only RDMA device below the function of "…/<function>/infiniband_verbs/uverbs0"; NULL: none, or
 * more than one.  "found" is sorted by path.
 */
static const char *neighbour(const struct found *found, size_t n, const char *path)
{
	const char *class = strstr(path, "/infiniband_verbs/");
	size_t low = 0, high = n, len = class ? (size_t)(class - path) : 0;
	_cleanup_free_ char *prefix = NULL;

	if (!class)
		return NULL;
	prefix = xmalloc(len + sizeof("/infiniband/"));
	memcpy(prefix, path, len);
	memcpy(prefix + len, "/infiniband/", sizeof("/infiniband/"));
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(found[middle].path + 1, prefix) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == n || !starts_with(found[low].path + 1, prefix) ||
	    (low + 1 < n && starts_with(found[low + 1].path + 1, prefix)))
		return NULL;
	return found[low].name;
}

/* One beside the only device of a function need not be asked for it. */
static void read_uverbs_of(const struct hw_root *root, const struct found *found, size_t n,
			   const char *name, const char *path, struct hw_machine *machine)
{
	const char *beside = neighbour(found, n, path);
	/* The device that uverbsN names; N need not be the device's number. */
	_cleanup_free_ char *ibdev = beside ? NULL : hw_attr_direct(root, path, "ibdev");
	_cleanup_free_ char *dev = NULL;
	struct hw_rdma *rdma = NULL;

	if (beside || ibdev)
		rdma = find_device(machine, beside ? beside : ibdev);
	if (!rdma || rdma->uverbs)
		return;
	rdma->uverbs = xstrdup(name);
	dev = hw_attr_direct(root, path, "dev");
	hw_parse_dev(dev, &rdma->uverbs_major, &rdma->uverbs_minor);
}

static void read_uverbs(const struct hw_root *root, struct found *found, size_t n,
			struct hw_machine *machine)
{
	_cleanup_(hw_dir_close) struct hw_dir list = { .fd = -1 };
	struct strlist names = { 0 };
	int r;

	r = hw_list(root, CLASS_VERBS, HW_MAX_RDMA + 1, &names); /* and "abi_version" */
	if (r < 0) {
		if (r != -ENOENT)
			hw_unreadable(machine, "rdma-unreadable", CLASS_VERBS, "verbs devices", r);
		return;
	}
	if (hw_dir_open(root, CLASS_VERBS, &list) < 0)
		strlist_done(&names);
	if (n)
		qsort(found, n, sizeof(*found), cmp_path);
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.items[i];
		_cleanup_free_ char *link = hw_dir_link_path(&list, name);
		_cleanup_free_ char *path = link ? NULL : xasprintf(CLASS_VERBS "/%s", name);

		if (starts_with(name, "uverbs"))
			read_uverbs_of(root, found, n, name, link ? link + 1 : path, machine);
	}
	strlist_done(&names);
}

void hw_read_rdma(const struct hw_root *root, struct hw_machine *machine)
{
	_cleanup_free_ char *cm = hw_attr(root, "sys/class/misc/rdma_cm", "dev");
	_cleanup_(hw_dir_close) struct hw_dir list = { .fd = -1 };
	struct strlist names = { 0 };
	struct found *found = NULL;
	size_t n = 0;
	int r = hw_list(root, CLASS_RDMA, HW_MAX_RDMA, &names);

	hw_parse_dev(cm, &machine->rdma_cm_major, &machine->rdma_cm_minor);
	if (r == 0)
		r = hw_dir_open(root, CLASS_RDMA, &list);
	if (r < 0 && r != -ENOENT)
		hw_unreadable(machine, "rdma-unreadable", CLASS_RDMA, "RDMA devices", r);
	if (r == 0) {
		found = xcalloc(names.n, sizeof(*found));
		n = find_devices(&list, &names, machine, found);
		read_devices(&list, found, n, machine);
	}
	read_uverbs(root, found, n, machine);
	for (size_t i = 0; i < n; i++) {
		free(found[i].path);
		free(found[i].bus_id);
	}
	free(found);
	strlist_done(&names);
}

void hw_clear_rdma(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_rdma; i++)
		hw_rdma_done(&machine->rdma[i]);
	free(machine->rdma);
	machine->rdma = NULL;
	machine->n_rdma = machine->cap_rdma = 0;
	machine->rdma_cm_major = machine->rdma_cm_minor = HW_UNKNOWN;
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <sys/stat.h>

#include "base/bus_id.h"
#include "base/mem.h"
#include "hw/read.h"
#include "hw/vpd.h"

#define DEVICES "sys/bus/pci/devices"
#define VPD_MAX (32 * 1024) /* the address register has 15 bits */
#define CONFIG_MAX 4096

/* Byte offsets in configuration space (PCI and PCI Express base specifications). */
enum { CFG_STATUS = 0x06, CFG_CAPABILITIES = 0x34, CFG_HEADER = 0x40, CFG_CONVENTIONAL = 0x100 };
enum { STATUS_CAP_LIST = 0x10, CAP_EXPRESS = 0x10 };

/*
 * Device/port type of the PCI Express capability; a function without that capability is OTHER, a
 * conventional bridge.  Without CAP_SYS_ADMIN only the 64 byte header can be read: unknown.
 */
static enum hw_port_type port_type(const unsigned char *cfg, size_t len)
{
	size_t at;

	if (len < CFG_HEADER || (cfg[0] == 0xff && cfg[1] == 0xff))
		return HW_PORT_UNKNOWN;
	if (!(cfg[CFG_STATUS] & STATUS_CAP_LIST))
		return HW_PORT_OTHER;
	at = cfg[CFG_CAPABILITIES] & 0xfcU;
	/* At most one capability per four bytes: a list that runs in a circle ends. */
	for (size_t i = 0; i < CFG_CONVENTIONAL / 4; i++) {
		if (at == 0)
			return HW_PORT_OTHER;
		if (at < CFG_HEADER || at + 3 >= len)
			return HW_PORT_UNKNOWN;
		if (cfg[at] != CAP_EXPRESS) {
			at = cfg[at + 1] & 0xfcU;
			continue;
		}
		switch (cfg[at + 2] >> 4) {
		case 4:
			return HW_PORT_ROOT;
		case 5:
			return HW_PORT_UPSTREAM;
		case 6:
			return HW_PORT_DOWNSTREAM;
		default:
			return HW_PORT_OTHER;
		}
	}
	return HW_PORT_UNKNOWN;
}

static void read_port_type(const struct hw_root *root, const char *dir, struct hw_pci *pci)
{
	_cleanup_free_ char *path = xasprintf("%s/config", dir), *cfg = NULL;
	size_t len;

	if (hw_root_read(root, path, CONFIG_MAX, &cfg, &len) == 0)
		pci->port_type = port_type((unsigned char *)cfg, len);
}

/*
 * VPD never changes while a function is there, and some cards take tens of milliseconds for it:
 * that of the running machine is read once.  A function that was taken out and put in again has
 * another inode.
 */
struct known_vpd {
	char *bus_id; /* first: compared by cmp_known() */
	ino_t inode;
	struct vpd vpd;
};

static void *known_vpds; /* a tree of <search.h>, one entry per address */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static int cmp_known(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void vpd_copy(const struct vpd *from, struct vpd *to)
{
	*to = (struct vpd){ .sn = xstrdup_null(from->sn), .v3 = xstrdup_null(from->v3) };
}

static bool recall_vpd(char *bus_id, ino_t inode, struct vpd *ret)
{
	struct known_vpd **known;
	bool found;

	pthread_mutex_lock(&known_lock);
	known = tfind(&bus_id, &known_vpds, cmp_known);
	found = known && (*known)->inode == inode;
	if (found)
		vpd_copy(&(*known)->vpd, ret);
	pthread_mutex_unlock(&known_lock);
	return found;
}

static void remember_vpd(char *bus_id, ino_t inode, const struct vpd *vpd)
{
	struct known_vpd *fresh = xnew(struct known_vpd), **known;

	*fresh = (struct known_vpd){ .bus_id = xstrdup(bus_id) };
	pthread_mutex_lock(&known_lock);
	known = tsearch(fresh, &known_vpds, cmp_known);
	if (!known)
		abort(); /* only memory can fail */
	if (*known != fresh) {
		free(fresh->bus_id);
		free(fresh);
	}
	vpd_done(&(*known)->vpd);
	vpd_copy(vpd, &(*known)->vpd);
	(*known)->inode = inode;
	pthread_mutex_unlock(&known_lock);
}

/* 0 or a negative errno; "ret" is the caller's. */
static int load_vpd(const struct hw_root *root, const char *path, char *bus_id, struct vpd *ret)
{
	_cleanup_free_ char *data = NULL;
	struct stat st = { 0 };
	size_t len = 0;
	int r;

	if (root->live && !root->recorder && fstatat(root->fd, path, &st, 0) == 0 &&
	    recall_vpd(bus_id, st.st_ino, ret))
		return 0;
	r = hw_root_read(root, path, VPD_MAX, &data, &len);
	if (r == 0)
		r = vpd_parse(data, len, ret);
	if (r == 0 && root->live && !root->recorder)
		remember_vpd(bus_id, st.st_ino, ret);
	return r;
}

static void read_vpd(const struct hw_root *root, const char *dir, struct hw_machine *machine,
		     struct hw_pci *pci, bool *no_rights)
{
	_cleanup_free_ char *path = xasprintf("%s/vpd", dir);
	struct vpd vpd = { 0 };
	int r = load_vpd(root, path, pci->bus_id, &vpd);

	if (r == -ENOENT)
		return;
	if (r == -EACCES || r == -EPERM) {
		*no_rights = true;
		return;
	}
	if (r < 0) {
		hw_warn(machine, "vpd-unreadable", pci->bus_id,
			"vital product data cannot be used: %s", strerror(-r));
		return;
	}
	pci->vpd_sn = vpd.sn;
	pci->vpd_v3 = vpd.v3;
}

/* Network controllers (class 02), and the Data Direct functions of ConnectX-8. */
static bool wants_vpd(const struct hw_pci *pci)
{
	return pci->class >> 16 == 0x02 || (pci->vendor == 0x15b3 && pci->device == 0x2100);
}

static bool read_function(const struct hw_root *root, const char *name, struct hw_machine *machine,
			  bool *no_rights)
{
	_cleanup_free_ char *dir = xasprintf(DEVICES "/%s", name);
	struct hw_pci *pci;
	unsigned int class = hw_attr_hex(root, dir, "class", 0);
	unsigned int vendor = hw_attr_hex(root, dir, "vendor", 0);
	unsigned int device = hw_attr_hex(root, dir, "device", 0);

	if (!class || !vendor || vendor > 0xfffe || device > 0xffff || class > 0xffffff)
		return false;
	pci = array_push(machine->pci, machine->n_pci, machine->cap_pci);
	*pci = (struct hw_pci){
		.bus_id = xstrdup(name),
		.path = hw_link_path(root, DEVICES, name),
		.vendor = vendor,
		.device = device,
		.class = class,
		.numa_node = hw_attr_int(root, dir, "numa_node", HW_UNKNOWN),
		.driver = hw_link_base(root, dir, "driver"),
		.physfn = hw_link_base(root, dir, "physfn"),
		.num_vfs = hw_attr_int(root, dir, "sriov_numvfs", 0),
		.link = { HW_UNKNOWN, HW_UNKNOWN, HW_UNKNOWN, HW_UNKNOWN },
		.iommu_group = HW_UNKNOWN,
		.acs = HW_UNKNOWN,
	};
	if (pci->numa_node < 0)
		pci->numa_node = HW_UNKNOWN;
	if (pci->num_vfs < 0)
		pci->num_vfs = 0;
	if (class >> 8 == 0x0604)
		read_port_type(root, dir, pci);
	if (wants_vpd(pci))
		read_vpd(root, dir, machine, pci, no_rights);
	return true;
}

void hw_read_pci(const struct hw_root *root, struct hw_machine *machine)
{
	struct strlist names = { 0 };
	bool no_rights = false;
	int r = hw_list(root, DEVICES, HW_MAX_PCI, &names);

	if (r == -ENOENT)
		hw_warn(machine, "no-pci", DEVICES, "this machine shows no PCI bus");
	else if (r < 0)
		hw_unreadable(machine, "no-pci", DEVICES, "PCI functions", r);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		if (!is_bus_id(names.items[i]) ||
		    !read_function(root, names.items[i], machine, &no_rights))
			hw_warn(machine, "function-unreadable", names.items[i],
				"the PCI function is left out: no valid class, vendor or device");
	if (no_rights)
		hw_warn(machine, "vpd-no-rights", DEVICES,
			"no right to read vital product data; run as root to group functions into "
			"cards and to find Data Direct functions");
	strlist_done(&names);
}

static void pci_done(struct hw_pci *pci)
{
	free(pci->bus_id);
	free(pci->path);
	free(pci->driver);
	free(pci->physfn);
	free(pci->vpd_sn);
	free(pci->vpd_v3);
}

void hw_clear_pci(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_pci; i++)
		pci_done(&machine->pci[i]);
	free(machine->pci);
	machine->pci = NULL;
	machine->n_pci = machine->cap_pci = 0;
}

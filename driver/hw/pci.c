// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <search.h>
#include <sys/stat.h>

#include "base/bus_id.h"
#include "base/clock.h"
#include "base/mem.h"
#include "hw/pci_config.h"
#include "hw/read.h"
#include "hw/vpd.h"

#define DEVICES "sys/bus/pci/devices"
#define VPD_MAX (32 * 1024) /* the address register has 15 bits */
#define CONFIG_FIRST 256 /* where the extended configuration space begins */

/* While the functions are read one after the other. */
struct scan {
	bool no_vpd, no_config; /* there was no right to read it */
	const char *pf; /* the last PF whose VFs came, and the device id of those */
	unsigned int vf_device;
};

static bool is_bridge(const struct hw_pci *pci)
{
	return pci->class >> 8 == 0x0604;
}

/* The DMA function of a ConnectX-8. */
bool hw_is_data_direct(const struct hw_pci *pci)
{
	return pci->vendor == 0x15b3 && pci->device == 0x2100;
}

/* Network controllers, displays, accelerators: what is published, not what just is there. */
static bool is_device(const struct hw_pci *pci)
{
	unsigned int base = pci->class >> 16;

	return base == 0x02 || base == 0x03 || base == 0x12 || hw_is_data_direct(pci);
}

/*
 * VPD never changes while a function is there, and some cards take seconds for it: that of the
 * running machine is read once, also when it is wrong, and after an error of the device not again
 * for VPD_RETRY_US.  A function that was taken out and put in again has another inode.
 */
#define VPD_RETRY_US (10 * 60 * 1000000ULL)

struct known_vpd {
	char *bus_id; /* first: compared by cmp_known() */
	ino_t inode;
	int result; /* 0 or what reading it gave */
	uint64_t until_us; /* 0: for ever */
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

/* True: reading it is known to give *result. */
static bool recall_vpd(char *bus_id, ino_t inode, struct vpd *ret, int *result)
{
	struct known_vpd **known;
	bool found;

	pthread_mutex_lock(&known_lock);
	known = tfind(&bus_id, &known_vpds, cmp_known);
	found = known && (*known)->inode == inode &&
		(!(*known)->until_us || clock_us() < (*known)->until_us);
	if (found) {
		*result = (*known)->result;
		vpd_copy(&(*known)->vpd, ret);
	}
	pthread_mutex_unlock(&known_lock);
	return found;
}

/* For how long a result is true: 0 for ever, otherwise an error of the device. */
static uint64_t true_until(int result)
{
	return result == 0 || result == -EBADMSG ? 0 : clock_us() + VPD_RETRY_US;
}

static void remember_vpd(char *bus_id, ino_t inode, const struct vpd *vpd, int result)
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
	(*known)->result = result;
	(*known)->until_us = true_until(result);
	pthread_mutex_unlock(&known_lock);
}

/* Errors that say nothing of the VPD: rights or descriptors were short, or it is no more. */
static bool is_of_vpd(int result)
{
	static const int others[] = { EACCES, EPERM, EMFILE, ENFILE, ENOMEM, ENOENT, ENODEV };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (result == -others[i])
			return false;
	return true;
}

/* 0 or a negative errno; "ret" is the caller's. */
static int load_vpd(struct hw_dir *dir, const struct hw_pci *pci, struct vpd *ret)
{
	/* A recorder is to see the bytes. */
	bool once = dir->root->live && !dir->root->recorder;
	_cleanup_free_ void *data = NULL;
	struct stat st = { 0 };
	ssize_t n;
	int r;

	once = once && fstatat(dir->fd, "vpd", &st, 0) == 0;
	if (once && recall_vpd(pci->bus_id, st.st_ino, ret, &r))
		return r;
	data = xmalloc(VPD_MAX);
	n = hw_dir_read(dir, "vpd", data, VPD_MAX);
	r = n < 0 ? (int)n : vpd_parse(data, (size_t)n, ret);
	if (once && !pci->broken && is_of_vpd(r))
		remember_vpd(pci->bus_id, st.st_ino, ret, r);
	return r;
}

static void read_vpd(struct hw_dir *dir, struct hw_machine *machine, struct hw_pci *pci,
		     struct scan *scan)
{
	struct vpd vpd = { 0 };
	int r = load_vpd(dir, pci, &vpd);

	if (r == -EACCES || r == -EPERM)
		scan->no_vpd = true;
	else if (r < 0 && r != -ENOENT && r != -ENODEV)
		hw_warn(machine, "vpd-unreadable", pci->bus_id,
			"vital product data cannot be used: %s", strerror(-r));
	if (r < 0)
		return;
	pci->vpd_sn = vpd.sn;
	pci->vpd_v3 = vpd.v3;
}

/*
 * The header of a device tells whether it answers; of a bridge as much is read as it takes to know
 * what it is.  Without CAP_SYS_ADMIN there is only the header.
 */
static void read_config(struct hw_dir *dir, struct hw_machine *machine, struct hw_pci *pci,
			struct scan *scan)
{
	unsigned char data[PCI_CONFIG_MAX];
	size_t size = is_bridge(pci) ? CONFIG_FIRST : PCI_CONFIG_HEADER;
	struct pci_config cfg;

	if (dir->root->recorder)
		size = sizeof(data);
	for (;;) {
		ssize_t n = hw_dir_read(dir, "config", data, size);
		int r = n < 0 ? (int)n : pci_config_parse(data, (size_t)n, &cfg);

		if (r == -ENODEV && n >= 0) {
			pci->broken = true;
			hw_warn(machine, "function-broken", pci->bus_id,
				"the PCI function does not answer (its configuration space reads "
				"ff); it may have dropped off the bus");
		}
		if (r < 0 || !is_bridge(pci))
			return;
		if (cfg.wanted <= size || (size_t)n < size) {
			scan->no_config = scan->no_config || (n == PCI_CONFIG_HEADER && cfg.wanted);
			break;
		}
		size = cfg.wanted;
	}
	pci->port_type = cfg.port_type;
	pci->acs = cfg.acs;
}

/* "32.0 GT/s PCIe", "8 GT/s" → 32000, 8000; "Unknown": the link is down. */
static int read_speed(struct hw_dir *dir, const char *name)
{
	_cleanup_free_ char *text = hw_dir_text(dir, name);
	char *end = text ? strstr(text, " GT/s") : NULL, *point;
	unsigned int whole, tenth = 0;

	if (!end)
		return HW_UNKNOWN;
	*end = '\0';
	point = strchr(text, '.');
	if (point) {
		*point = '\0';
		if (parse_uint(point + 1, 9, &tenth) < 0)
			return HW_UNKNOWN;
	}
	if (parse_uint(text, 1000, &whole) < 0 || whole + tenth == 0)
		return HW_UNKNOWN;
	return (int)(whole * 1000 + tenth * 100);
}

/* Lanes; 0, and a field of ones in the register (63, in 8 bits 255), are no width. */
static int read_width(struct hw_dir *dir, const char *name)
{
	int width = hw_dir_int(dir, name, HW_UNKNOWN);

	return width > 0 && width <= 32 ? width : HW_UNKNOWN;
}

static int read_iommu_group(const struct hw_dir *dir)
{
	_cleanup_free_ char *name = hw_dir_link_base(dir, "iommu_group");
	int group;

	return name && parse_int(name, &group) == 0 && group >= 0 ? group : HW_UNKNOWN;
}

/* Facts of devices and bridges, other than VFs. */
static void read_device(struct hw_dir *dir, struct hw_machine *machine, struct hw_pci *pci,
			struct scan *scan)
{
	pci->subsystem_vendor = hw_dir_hex(dir, "subsystem_vendor", 0) & 0xffff;
	pci->subsystem_device = hw_dir_hex(dir, "subsystem_device", 0) & 0xffff;
	pci->revision = hw_dir_hex(dir, "revision", 0) & 0xff;
	pci->link = (struct hw_pcie_link){
		.speed_mts = read_speed(dir, "current_link_speed"),
		.max_speed_mts = read_speed(dir, "max_link_speed"),
		.width = read_width(dir, "current_link_width"),
		.max_width = read_width(dir, "max_link_width"),
	};
	read_config(dir, machine, pci, scan);
	if (!is_bridge(pci) && !hw_is_data_direct(pci)) {
		pci->num_vfs = hw_dir_int(dir, "sriov_numvfs", 0);
		pci->total_vfs = hw_dir_int(dir, "sriov_totalvfs", 0);
		if (pci->num_vfs < 0)
			pci->num_vfs = 0;
		if (pci->total_vfs < 0)
			pci->total_vfs = 0;
	}
	/* Network controllers, and the Data Direct functions of ConnectX-8. */
	if (pci->class >> 16 == 0x02 || hw_is_data_direct(pci))
		read_vpd(dir, machine, pci, scan);
}

/* One for all VFs of a PF (Single Root I/O Virtualization specification, "VF Device ID"). */
static unsigned int vf_device(const struct hw_root *root, const struct hw_pci *pf,
			      struct scan *scan)
{
	_cleanup_(hw_dir_close) struct hw_dir dir = { .fd = -1 };

	if (scan->pf == pf->bus_id)
		return scan->vf_device;
	scan->pf = pf->bus_id;
	scan->vf_device = hw_dir_open(root, pf->path + 1, &dir) < 0
				  ? UINT_MAX
				  : hw_dir_hex(&dir, "sriov_vf_device", UINT_MAX);
	return scan->vf_device;
}

/* A VF is the same chip in the same place as its PF: what is true of both is not read again. */
static void read_vf(struct hw_dir *dir, const struct hw_pci *pf, struct hw_pci *pci,
		    struct scan *scan)
{
	pci->class = pf->class;
	pci->vendor = pf->vendor;
	pci->numa_node = pf->numa_node;
	pci->device = vf_device(dir->root, pf, scan);
	if (pci->device > 0xffff)
		pci->device = hw_dir_hex(dir, "device", UINT_MAX);
}

static void read_ids(struct hw_dir *dir, struct hw_pci *pci)
{
	pci->class = hw_dir_hex(dir, "class", 0);
	pci->vendor = hw_dir_hex(dir, "vendor", UINT_MAX);
	pci->device = hw_dir_hex(dir, "device", UINT_MAX);
	pci->numa_node = hw_dir_int(dir, "numa_node", HW_UNKNOWN);
	if (pci->numa_node < 0)
		pci->numa_node = HW_UNKNOWN;
}

/* ffff is what nobody answers. */
static bool ids_ok(const struct hw_pci *pci)
{
	return pci->class && pci->class <= 0xffffff && pci->vendor && pci->vendor < 0xffff &&
	       pci->device <= 0xffff;
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

static bool fill_function(struct hw_dir *dir, struct hw_machine *machine, struct hw_pci *pci,
			  struct scan *scan)
{
	const struct hw_pci *pf;

	pci->driver = hw_dir_link_base(dir, "driver");
	pci->physfn = hw_dir_link_base(dir, "physfn");
	/* The address of a PF is before those of its VFs. */
	pf = pci->physfn ? hw_find_pci(machine, pci->physfn) : NULL;
	if (pf)
		read_vf(dir, pf, pci, scan);
	else
		read_ids(dir, pci);
	if (!ids_ok(pci))
		return false;
	if (pf)
		return true;
	if (is_bridge(pci) || is_device(pci))
		read_device(dir, machine, pci, scan);
	pci->iommu_group = read_iommu_group(dir);
	return true;
}

/* One that went away meanwhile is just gone; one that is there is left out with a warning. */
static void read_function(struct hw_dir *list, const char *name, struct hw_machine *machine,
			  struct scan *scan)
{
	size_t n_warnings = machine->n_warnings;
	struct hw_pci pci = {
		.bus_id = xstrdup(name),
		.path = is_bus_id(name) ? hw_dir_link_path(list, name) : NULL,
		.link = { HW_UNKNOWN, HW_UNKNOWN, HW_UNKNOWN, HW_UNKNOWN },
		.iommu_group = HW_UNKNOWN,
		.acs = HW_UNKNOWN,
	};
	_cleanup_(hw_dir_close) struct hw_dir dir = { .fd = -1 };
	bool known = pci.path && hw_dir_open(list->root, pci.path + 1, &dir) == 0 &&
		     fill_function(&dir, machine, &pci, scan);

	if (known && !(dir.missed && hw_dir_gone(&dir))) {
		*array_push(machine->pci, machine->n_pci, machine->cap_pci) = pci;
		return;
	}
	hw_unwarn(machine, n_warnings);
	if (hw_dir_has(list, name) && (dir.fd < 0 || !hw_dir_gone(&dir)))
		hw_warn(machine, "function-unreadable", name, "the PCI function is left out: %s",
			pci.vendor == 0xffff ? "it does not answer (its vendor reads ffff)"
					     : "no valid class, vendor or device");
	pci_done(&pci);
}

void hw_read_pci(const struct hw_root *root, struct hw_machine *machine)
{
	_cleanup_(hw_dir_close) struct hw_dir list = { .fd = -1 };
	struct strlist names = { 0 };
	struct scan scan = { 0 };
	int r = hw_list(root, DEVICES, HW_MAX_PCI, &names);

	if (r == 0)
		r = hw_dir_open(root, DEVICES, &list);
	if (r == -ENOENT)
		hw_warn(machine, "no-pci", DEVICES, "this machine shows no PCI bus");
	else if (r < 0)
		hw_unreadable(machine, "no-pci", DEVICES, "PCI functions", r);
	for (size_t i = 0; r == 0 && i < names.n; i++)
		read_function(&list, names.items[i], machine, &scan);
	if (scan.no_vpd)
		hw_warn(machine, "vpd-no-rights", DEVICES,
			"no right to read vital product data; run as root to group functions into "
			"cards and to find Data Direct functions");
	if (scan.no_config)
		hw_warn(machine, "config-no-rights", DEVICES,
			"no right to read more than the header of configuration space; run with "
			"CAP_SYS_ADMIN to tell switches from other bridges and to see ACS");
	strlist_done(&names);
}

void hw_clear_pci(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_pci; i++)
		pci_done(&machine->pci[i]);
	free(machine->pci);
	machine->pci = NULL;
	machine->n_pci = machine->cap_pci = 0;
}

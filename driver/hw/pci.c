// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

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
 * Device/port type of the PCI Express capability.  Without CAP_SYS_ADMIN only the 64 byte header
 * can be read: unknown.
 */
static enum hw_port_type port_type(const unsigned char *cfg, size_t len)
{
	size_t at;

	if (len < CFG_HEADER || !(cfg[CFG_STATUS] & STATUS_CAP_LIST))
		return HW_PORT_UNKNOWN;
	at = cfg[CFG_CAPABILITIES] & 0xfcU;
	/* At most one capability per four bytes: a list that runs in a circle ends. */
	for (size_t i = 0; i < CFG_CONVENTIONAL / 4; i++) {
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

static void read_vpd(const struct hw_root *root, const char *dir, struct hw_machine *machine,
		     struct hw_pci *pci, bool *no_rights)
{
	_cleanup_free_ char *path = xasprintf("%s/vpd", dir), *data = NULL;
	struct vpd vpd = { 0 };
	size_t len = 0;
	int r = hw_root_read(root, path, VPD_MAX, &data, &len);

	if (r == -ENOENT)
		return;
	if (r == -EACCES || r == -EPERM) {
		*no_rights = true;
		return;
	}
	if (r == 0)
		r = vpd_parse(data, len, &vpd);
	if (r < 0) {
		hw_warn(machine, "vpd-unreadable", pci->bus_id,
			"vital product data cannot be used: %s", strerror(-r));
		return;
	}
	pci->vpd_sn = vpd.sn;
	pci->vpd_v3 = vpd.v3;
	pci->vpd_pn = vpd.pn;
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
		.subsystem_vendor = hw_attr_hex(root, dir, "subsystem_vendor", 0),
		.subsystem_device = hw_attr_hex(root, dir, "subsystem_device", 0),
		.numa_node = hw_attr_int(root, dir, "numa_node", HW_UNKNOWN),
		.driver = hw_link_base(root, dir, "driver"),
		.physfn = hw_link_base(root, dir, "physfn"),
		.num_vfs = hw_attr_int(root, dir, "sriov_numvfs", 0),
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
		hw_warn(machine, "no-pci", DEVICES, "cannot list PCI functions: %s", strerror(-r));
	for (size_t i = 0; r == 0 && i < names.n; i++)
		if (!hw_is_bus_id(names.items[i]) ||
		    !read_function(root, names.items[i], machine, &no_rights))
			hw_warn(machine, "function-unreadable", names.items[i],
				"the PCI function is left out: no valid class, vendor or device");
	if (no_rights)
		hw_warn(machine, "vpd-no-rights", DEVICES,
			"no right to read vital product data; run as root to group functions into "
			"cards and to find Data Direct functions");
	strlist_done(&names);
}

void hw_pci_done(struct hw_pci *pci)
{
	free(pci->bus_id);
	free(pci->path);
	free(pci->driver);
	free(pci->physfn);
	free(pci->vpd_sn);
	free(pci->vpd_v3);
	free(pci->vpd_pn);
}

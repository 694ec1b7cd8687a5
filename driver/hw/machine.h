/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_MACHINE_H
#define TWINRAIL_HW_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "hw/hw.h"

/*
 * The raw facts: what the files say, nothing derived.  An unknown string is NULL, never empty; an
 * unknown number is HW_UNKNOWN.  Arrays of devices are sorted by name.
 */
#define HW_UNKNOWN (-1)

/* Kind of a bridge, from the PCI Express capability in its configuration space. */
enum hw_port_type {
	HW_PORT_UNKNOWN,
	HW_PORT_ROOT,
	HW_PORT_UPSTREAM,
	HW_PORT_DOWNSTREAM,
	HW_PORT_OTHER
};

struct hw_pci {
	char *bus_id; /* "0000:03:00.0" */
	char *path; /* "/sys/devices/pci0000:00/…/0000:03:00.0": the link of sys/bus/pci/devices */
	unsigned int vendor, device, class; /* class: 24 bits, 0x020000 */
	int numa_node; /* HW_UNKNOWN also for a negative number */
	char *driver;
	char *physfn; /* PCI address of the PF, when this is a VF */
	int num_vfs; /* enabled VFs */
	enum hw_port_type port_type;
	char *vpd_sn, *vpd_v3; /* NIC and Data Direct functions only */
};

struct hw_netdev {
	char *name;
	char *bus_id; /* the PCI function whose own link it is, also through virtio, or NULL */
	char *sf_parent; /* the link of a subfunction: the PCI function of that; or NULL */
	char *oper_state, *phys_switch_id, *phys_port_name;
	char *kind; /* DEVTYPE: "vlan", "ipvlan", "macvlan", "bridge", "bond" */
	int mtu;
	struct strlist lower; /* names of the netdevs below it */
	char *master; /* the bond, bridge, OVS or VRF that it belongs to */
};

struct hw_gid {
	unsigned int index;
	char *gid; /* "fe80:0000:…", never the all-zero one */
	char *type, *netdev;
};

struct hw_rdma_port {
	unsigned int port;
	char *state, *phys_state, *link_layer; /* "ACTIVE", "LinkUp", "Ethernet" */
	int rate_gbps; /* rounded down */
	struct hw_gid *gids;
	size_t n_gids, cap_gids;
};

struct hw_rdma {
	char *name;
	char *bus_id; /* NULL: it is not a PCI function's own, e.g. that of a subfunction */
	bool software; /* rxe, siw: "bus_id" is that of the link it runs on */
	char *sys_image_guid; /* NULL also when all zero */
	char *fw_ver, *board_id;
	char *uverbs; /* "uverbs0" */
	int uverbs_major, uverbs_minor;
	struct hw_rdma_port *ports;
	size_t n_ports, cap_ports;
};

/* What the vendor's driver says about a GPU. */
struct hw_gpu {
	char *bus_id;
	char *model, *uuid;
	int minor;
};

struct hw_warning {
	const char *code; /* stable word; static */
	char *object, *message;
};

struct hw_machine {
	struct hw_pci *pci;
	size_t n_pci, cap_pci;
	struct hw_netdev *netdevs;
	size_t n_netdevs, cap_netdevs;
	struct hw_rdma *rdma;
	size_t n_rdma, cap_rdma;
	struct hw_gpu *gpus;
	size_t n_gpus, cap_gpus;
	struct hw_warning *warnings;
	size_t n_warnings, cap_warnings;

	/*
	 * A list of devices or routes could not be read, or descriptors or memory ran out: what is
	 * not here may be there all the same.  A list that does not exist is empty.
	 */
	bool incomplete;
	struct strlist default_routes; /* names of the links with a default route, IPv4 or IPv6 */
	int rdma_cm_major, rdma_cm_minor;
	char *dmi_vendor, *dmi_product;
	bool hypervisor; /* the CPU or the DMI texts say that this is a virtual machine */
	char *nvidia_driver; /* version */
	bool nvidia_peermem; /* the module is loaded */
};

/* Find by PCI address or name in O(log n); NULL when it is not there. */
const struct hw_pci *hw_find_pci(const struct hw_machine *machine, const char *bus_id);
const struct hw_netdev *hw_find_netdev(const struct hw_machine *machine, const char *name);

#endif

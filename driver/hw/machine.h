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

/* Bits of the ACS control register (PCI Express base specification, Access Control Services). */
enum {
	HW_ACS_SOURCE_VALIDATION = 0x01,
	HW_ACS_TRANSLATION_BLOCKING = 0x02,
	HW_ACS_P2P_REQUEST_REDIRECT = 0x04,
	HW_ACS_P2P_COMPLETION_REDIRECT = 0x08,
	HW_ACS_UPSTREAM_FORWARDING = 0x10,
	HW_ACS_P2P_EGRESS_CONTROL = 0x20,
	HW_ACS_DIRECT_TRANSLATED_P2P = 0x40
};

/* A PCI Express link as negotiated and as the function could; HW_UNKNOWN each. */
struct hw_pcie_link {
	int speed_mts, max_speed_mts; /* megatransfers per second: "32.0 GT/s PCIe" is 32000 */
	int width, max_width; /* lanes */
};

/*
 * Of a VF whose PF can be seen, what is true of both is that of the PF (vendor, class, NUMA node),
 * and subsystem, link, IOMMU group and VPD are not read: there may be 1,024 of them.
 */
struct hw_pci {
	char *bus_id; /* "0000:03:00.0" */
	char *path; /* "/sys/devices/pci0000:00/…/0000:03:00.0": the link of sys/bus/pci/devices */
	unsigned int vendor, device, class; /* class: 24 bits, 0x020000 */
	unsigned int subsystem_vendor, subsystem_device, revision; /* 0: unknown */
	int numa_node; /* HW_UNKNOWN also for a negative number */
	char *driver;
	char *physfn; /* PCI address of the PF, when this is a VF */
	int num_vfs, total_vfs; /* enabled VFs; how many there can be */
	enum hw_port_type port_type;
	struct hw_pcie_link link; /* GPUs, NICs, their Data Direct functions and bridges */
	int iommu_group; /* HW_UNKNOWN: none, or no IOMMU */
	int acs; /* bridges: HW_ACS_… bits; 0 without the capability; HW_UNKNOWN: not readable */
	bool broken; /* configuration space reads ff: the function does not answer */
	char *vpd_sn, *vpd_v3; /* NIC and Data Direct functions only */
};

/* Of the link of such a VF: whose it is, oper_state, mtu and master; no more. */
struct hw_netdev {
	char *name;
	char *bus_id; /* the PCI function whose own link it is, also through virtio, or NULL */
	char *sf_parent; /* the link of a subfunction: the PCI function of that; or NULL */
	char *oper_state, *phys_switch_id, *phys_port_name;
	char *kind; /* DEVTYPE, or the kernel's link kind: "vlan", "ipvlan", "bond", "vrf", "veth" */
	char *address; /* MAC or IPoIB hardware address, "00:00:5e:00:53:20" */
	int type; /* ARPHRD_…: 1 Ethernet, 32 InfiniBand */
	int ifindex, mtu, speed_mbps;
	int carrier; /* 1, 0, HW_UNKNOWN (also while the link is down by an administrator) */
	int dev_port; /* index of the port on its function */
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
	int lid, sm_lid; /* InfiniBand; 0 is HW_UNKNOWN */
	int active_mtu; /* bytes; only verbs tell */
	struct hw_gid *gids;
	size_t n_gids, cap_gids;
};

/*
 * Of such a VF the facts of the chip and of the physical port are those of its PF; node_guid is not
 * read, nor are the GIDs while its link has no address but perhaps a link-local one.
 */
struct hw_rdma {
	char *name;
	char *bus_id; /* NULL: it is not a PCI function's own, e.g. that of a subfunction */
	char *sf_parent; /* of a subfunction: the PCI function of that */
	bool software; /* rxe, siw: "bus_id" is that of the link it runs on */
	char *parent; /* of a software device: the link it runs on */
	char *node_guid, *sys_image_guid; /* NULL also when all zero */
	char *fw_ver, *board_id, *hca_type; /* hca_type: "MT4131" */
	char *data_direct; /* PCI address of its Data Direct function, as the verbs library says */
	char *uverbs; /* "uverbs0" */
	int uverbs_major, uverbs_minor;
	struct hw_rdma_port *ports;
	size_t n_ports, cap_ports;
};

/* What the vendor's driver says about a GPU. */
struct hw_gpu {
	char *bus_id;
	char *model, *uuid;
	int minor; /* NVIDIA: /dev/nvidia<minor>; AMD, Intel: of the DRM render node */
	char *partition; /* it is divided: "mig", or AMD's compute mode "cpx"; NULL: not, or unknown */
	int n_partitions; /* how many can be seen; HW_UNKNOWN */
};

/* One NUMA node of sys/devices/system/node. */
struct hw_numa {
	int node;
	int package; /* socket of its first CPU; HW_UNKNOWN */
	int *distances; /* the row of "distance", by position */
	size_t n_distances;
};

/* IP facts: what the kernel's rtnetlink tells; recorded below twinrail/. */
struct hw_address {
	char *netdev, *address; /* "10.1.0.5", "fe80::1" */
	int prefix;
	char *scope; /* "global", "link", "host" */
};

struct hw_route { /* one per next hop */
	int family; /* 4 or 6 */
	char *destination; /* "10.1.0.0/21"; NULL: default */
	char *netdev, *gateway;
	unsigned int table; /* 254: main */
	unsigned int metric;
	bool unusable; /* unreachable, blackhole, prohibit */
};

struct hw_rule {
	int family;
	unsigned int priority, table;
	char *from, *to, *iif, *oif; /* NULL: all */
};

struct hw_neighbour {
	char *netdev, *address, *lladdr, *state; /* "PERMANENT", "REACHABLE" */
};

struct hw_ip {
	struct hw_address *addresses;
	size_t n_addresses, cap_addresses;
	struct hw_route *routes;
	size_t n_routes, cap_routes;
	struct hw_rule *rules;
	size_t n_rules, cap_rules;
	/* [0] IPv4, [1] IPv6: there are rules that struct hw_rule cannot tell; they are not here */
	bool partial_rules[2];
	struct hw_neighbour *neighbours;
	size_t n_neighbours, cap_neighbours;
	bool known; /* they could be read, or were recorded */
};

struct hw_warning {
	unsigned int part; /* HW_PART_…: what was being read */
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
	struct hw_numa *numa; /* ascending by node */
	size_t n_numa, cap_numa;
	struct hw_ip ip;
	struct hw_warning *warnings;
	size_t n_warnings, cap_warnings;

	/*
	 * Parts (HW_PART_…) of which a list could not be read, or during which descriptors or
	 * memory ran out: what is not here may be there all the same.  A list that does not exist
	 * is empty.
	 */
	unsigned int incomplete;
	unsigned int part; /* that is being read; 0 afterwards */
	struct strlist default_routes; /* names of the links with a default route, IPv4 or IPv6 */
	int rdma_cm_major, rdma_cm_minor;
	char *dmi_vendor, *dmi_product;
	bool hypervisor; /* the CPU or the DMI texts say that this is a virtual machine */
	char *kernel_release; /* "6.1.0-57-amd64" */
	char *nvidia_driver; /* version */
	bool nvidia_peermem; /* the module is loaded */
	bool nvidia_open; /* the open kernel modules, which can hand out dma-bufs */
};

/* Free what a netdev or an RDMA device owns, not the struct itself. */
void hw_netdev_done(struct hw_netdev *netdev);
void hw_rdma_done(struct hw_rdma *rdma);

/* A ConnectX-8's DMA function. */
bool hw_is_data_direct(const struct hw_pci *pci);

/* Find by PCI address or name in O(log n); NULL when it is not there. */
const struct hw_pci *hw_find_pci(const struct hw_machine *machine, const char *bus_id);
const struct hw_netdev *hw_find_netdev(const struct hw_machine *machine, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_INVENTORY_H
#define TWINRAIL_TOPO_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/*
 * The topology model of one node: an immutable, reference-counted snapshot.  Nobody edits an
 * inventory after topo_build() returned it; a change of the machine makes a new one.
 *
 * What is not known is absent: a NULL string, TOPO_UNKNOWN as a number, TRI_UNKNOWN.
 */
#define TOPO_UNKNOWN (-1)

enum tri { TRI_UNKNOWN, TRI_UNSUPPORTED, TRI_SUPPORTED, TRI_NO = TRI_UNSUPPORTED, TRI_YES };
enum topo_role { ROLE_UNKNOWN, ROLE_RAIL, ROLE_FRONTEND, ROLE_STORAGE };
enum topo_class {
	CLASS_UNKNOWN,
	CLASS_SWITCH,
	CLASS_INLINE,
	CLASS_DATA_DIRECT,
	CLASS_NUMA,
	CLASS_FLAT
};
/* From near to far, as in "nvidia-smi topo -m"; a smaller value is nearer. */
enum path_class { PATH_PIX, PATH_PXB, PATH_PHB, PATH_NODE, PATH_SYS, PATH_UNKNOWN };
enum pcie_root_policy {
	PCIE_ROOT_AUTO,
	PCIE_ROOT_FUNCTION,
	PCIE_ROOT_DATA_DIRECT,
	PCIE_ROOT_LIST /* effective and own root as a list attribute */
};

/* The PCI Express link of a device; TOPO_UNKNOWN each. */
struct topo_link {
	int speed_mts, max_speed_mts; /* megatransfers per second */
	int width, max_width; /* lanes */
	enum tri degraded; /* below what both ends of the link can do */
};

struct topo_gid {
	unsigned int index;
	char *gid, *type, *netdev;
};

struct topo_port {
	unsigned int port;
	char *state, *phys_state, *link_layer; /* "ACTIVE", "LinkUp", "Ethernet" */
	int rate_gbps, active_mtu;
	struct topo_gid *gids;
	size_t n_gids;
	int gid_index; /* the RoCE v2 entry to use */
};

/* A bridge between the root complex and a device. */
enum topo_bridge_type {
	BRIDGE_UNKNOWN,
	BRIDGE_ROOT_PORT,
	BRIDGE_UPSTREAM, /* of a switch, towards the root */
	BRIDGE_DOWNSTREAM,
	BRIDGE_OTHER
};

struct topo_bridge {
	char *bus_id;
	unsigned int vendor_id, device_id; /* 0: unknown */
	enum topo_bridge_type type;
	struct topo_link link; /* the one above it */
	int acs; /* ACS control bits (HW_ACS_…), 0 also without the capability; TOPO_UNKNOWN */
};

struct topo_child {
	char *netdev; /* NULL: a subfunction that has an RDMA device only */
	char *kind; /* "ipvlan", "macvlan", "vlan", "vf", "sf", "port" (further port of the NIC) */
	char *rdma_device; /* of a subfunction or VF */
	char *bus_id; /* of a VF */
};

struct topo_nic {
	char *name; /* "nic-0000-03-00-0" */
	char *bus_id; /* "0000:03:00.0" */
	unsigned int vendor_id, device_id;
	char *driver, *firmware, *board_id, *hca_type; /* hca_type: "MT4131" */
	struct topo_link link;
	int iommu_group;
	char *netdev, *rdma_device;
	char *uverbs; /* "uverbs0" */
	int uverbs_major, uverbs_minor;
	int mtu;
	char *oper_state; /* of the netdev: "up", "down" */
	char *master; /* the bond, bridge or VRF that the netdev is part of */
	char **lag_members; /* netdevs that its RDMA device serves too; NULL-terminated or NULL */
	enum topo_role role;
	const char *role_source; /* "config", "platform", "default-route", …; static, NULL */
	int rail, rail_group;
	const char *rail_source; /* "netdev-name", "root-order", "config"; static */
	enum tri rail_routed; /* its rail's subnet has a route, from its addresses too */
	int card; /* index into inventory->cards */
	int pf_index, pf_count;
	bool standalone; /* may be handed out alone */
	bool withheld; /* not handed out: perhaps the node itself uses it */
	bool excluded; /* not handed out: the administrator said so */
	bool broken; /* not handed out: the function does not answer */
	bool is_vf;
	char *pf_bus_id;
	int numa_node;
	int *numa_nodes; /* with topo_options.numa_lists: own node, then the equally near ones */
	size_t n_numa_nodes;
	char *pcie_root; /* by policy: what is published; with the policy "list" the effective one */
	char *function_pcie_root; /* of the function itself */
	char *dma_bus_id; /* its Data Direct function */
	char *pcie_switch;
	struct topo_bridge *bridges; /* from the root complex to where its DMA comes from; */
	size_t n_bridges; /* none for VFs with a visible PF: those of the PF */
	enum tri hairpin, cross_rail;
	const char *hairpin_source, *cross_rail_source; /* "platform", "config"; static, NULL */
	int num_vfs; /* enabled */
	struct topo_port *ports;
	size_t n_ports;
	struct topo_child *children;
	size_t n_children;
	int best_gpu; /* index into inventory->gpus of its nearest GPU */
	enum path_class best_path;
};

struct topo_gpu {
	char *name; /* "gpu-0009-06-00-0" */
	char *bus_id;
	const char *vendor; /* "nvidia", "amd", "intel"; static */
	unsigned int vendor_id, device_id;
	char *model, *uuid, *driver_version;
	int minor;
	bool broken; /* not handed out: the function does not answer */
	char *partition; /* it is divided: "mig", "cpx"; NULL: not, or unknown */
	int n_partitions;
	struct topo_link link;
	int iommu_group;
	int numa_node;
	int *numa_nodes; /* as of NICs */
	size_t n_numa_nodes;
	char *pcie_root, *pcie_switch;
	struct topo_bridge *bridges; /* from the root complex down to it */
	size_t n_bridges;
	const char *gdr; /* "dmabuf", "peermem", "none"; NULL unknown; static */
	int rail_group;
};

struct topo_card {
	char *id; /* "card-0000-03-00": lowest PF without its function */
	int *members; /* indexes into inventory->nics, ascending by PCI address */
	size_t n_members;
	bool atomic; /* its PFs must be handed out together */
	char **agreement; /* which keys agreed: "sys_image_guid", "vpd-sn", …; NULL-terminated */
	char *dma_bus_id, *dma_pcie_root; /* of its Data Direct function, when all PFs have one */
};

struct topo_pair {
	int gpu, nic; /* indexes */
	enum path_class path;
	int hops; /* bridge functions between the two */
	enum tri
		acs_redirect; /* a bridge between them sends peer-to-peer requests up to the root */
	bool via_data_direct;
	bool best;
};

struct topo_warning {
	const char *code; /* stable word, e.g. "data-direct-unmatched"; static */
	char *object, *message;
};

struct inventory {
	int refs;
	char *node_name; /* may be NULL */
	char *platform; /* name of the platform file's entry; NULL unknown */
	char **environment; /* "NAME=value" that the platform recommends; NULL-terminated or NULL */
	enum topo_class topology_class;
	bool virtual_machine;
	int rail_count; /* of different rails; some between them may be missing */
	char *nvlink_domain;
	int nvlink_domain_size; /* GPUs of a whole one on this platform */

	/* The misc device rdma_cm; TOPO_UNKNOWN when the node has none. */
	int rdma_cm_major, rdma_cm_minor;

	/* All sorted by PCI address (domain, bus, device, function as numbers). */
	struct topo_gpu *gpus;
	size_t n_gpus;
	struct topo_nic *nics;
	size_t n_nics;
	struct topo_card *cards;
	size_t n_cards;
	struct topo_pair *pairs; /* all GPU × NIC combinations, GPU-major */
	size_t n_pairs;
	struct topo_warning *warnings;
	size_t n_warnings;
};

/* Atomic reference counting: the only members that change. */
struct inventory *inventory_ref(struct inventory *inv);
struct inventory *inventory_unref(struct inventory *inv); /* NULL is fine; returns NULL */

static inline void inventory_unrefp(struct inventory **inv)
{
	inventory_unref(*inv);
}

/* Look up by published name or PCI address; NULL when it is not there. */
const struct topo_nic *inventory_nic(const struct inventory *inv, const char *name_or_bus_id);
const struct topo_gpu *inventory_gpu(const struct inventory *inv, const char *name_or_bus_id);
const struct topo_card *inventory_card(const struct inventory *inv, const char *id);
const struct topo_pair *inventory_pair(const struct inventory *inv, size_t gpu, size_t nic);

/* The node itself uses the NIC: a frontend, but for those that only the platform file calls so. */
bool topo_is_own(const struct topo_nic *nic);

/* It has a verbs device whose number is known: else no claim on it can be prepared. */
bool topo_has_verbs(const struct topo_nic *nic);

/*
 * Not handed out: what the node itself uses, the administrator excludes, nobody answers for or no
 * process can open (design.md §6).
 */
bool topo_is_kept_back(const struct topo_nic *nic);

/*
 * The driver tells its UUID or minor number, by which a container is given the device.  One that
 * is bound to vfio-pci, or whose driver is not loaded yet, has neither.
 */
bool topo_is_described(const struct topo_gpu *gpu);

bool inventory_has_rail(const struct inventory *inv, int rail);
int inventory_highest_rail(const struct inventory *inv); /* TOPO_UNKNOWN: no NIC has one */

/* They say the same of two objects. */
bool topo_warnings_alike(const struct topo_warning *a, const struct topo_warning *b);

/* The stable words of docs/design.md: "rail", "PIX", "supported", "data-direct". */
const char *topo_role_name(enum topo_role role);
const char *topo_class_name(enum topo_class class);
const char *path_class_name(enum path_class path);
const char *tri_name(enum tri value);
const char *topo_bridge_type_name(enum topo_bridge_type type);

/* "0000:03:00.0" → "<prefix>-0000-03-00-0"; malloc'ed. */
char *device_name(const char *prefix, const char *bus_id);

/* What an administrator decides. */
struct platforms;

struct topo_options {
	enum pcie_root_policy pcie_root;
	bool numa_lists; /* fill numa_nodes (needs DRAListTypeAttributes in the cluster) */
	const char *node_name;
	const char *nvlink_domain; /* ClusterUUID.CliqueID; NULL unknown */
	/* The administrator's platform file (topo/platform.h); goes before the shipped data. */
	const struct platforms *platforms;
	const char *platforms_error; /* why it is not in force; NULL: it is, or there is none */

	/*
	 * Patterns of NICs that are handed out (NULL or none: all) and of those that are not: a PCI
	 * address, the name of a link, "vendor:device" or "role=storage", each with "*" and "?".
	 */
	const struct strlist *include, *exclude;
	const struct strlist *node_addresses; /* IP addresses of the node itself; NULL unknown */

	/*
	 * Addresses of NICs that the node itself used before: they stay its own while a link is
	 * reconfigured.  NULL: none.
	 */
	const struct strlist *own_nics;
	bool own_known; /* a default route was seen before */
};

struct hw_machine;

/* Facts → model.  No I/O.  Never fails: what cannot be established becomes a warning. */
struct inventory *topo_build(const struct hw_machine *machine, const struct topo_options *options);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_BUILD_H
#define TWINRAIL_TOPO_BUILD_H

#include "hw/machine.h"
#include "topo/inventory.h"
#include "topo/path.h"
#include "topo/platform.h"

/*
 * Internal to topo/: the inventory while it is being built.  The steps run in the order in which
 * they stand here; each uses what the ones before it found.
 */
enum {
	VENDOR_MELLANOX = 0x15b3,
	VENDOR_NVIDIA = 0x10de,
	VENDOR_AMD = 0x1002,
	VENDOR_INTEL = 0x8086
};

/* The raw facts behind inv->nics[i]. */
struct nic_facts {
	const struct hw_pci *pci;
	const struct hw_rdma *rdma;
	const struct hw_netdev *netdev; /* NULL: none */
	struct place place; /* where its DMA comes from */
	int pf; /* of a VF: index of its PF; TOPO_UNKNOWN: not visible */
};

/* What belongs to machine->pci[i]; with 1,024 VFs nothing may be sought for each of them. */
struct function_owns {
	const struct hw_rdma *rdma;
	const struct hw_netdev *link; /* of its first port */
	size_t n_uplinks, n_representors;
	int nic; /* index into inv->nics; TOPO_UNKNOWN: it is none */
	bool in_lag; /* the RDMA device of another function serves its link, too */
};

struct builder {
	const struct hw_machine *machine;
	const struct topo_options *options;
	struct inventory *inv;
	struct function_owns *functions; /* as many as machine->pci */
	struct nic_facts *nics; /* as many as inv->nics */
	struct place *gpus; /* as many as inv->gpus */
	const struct platform *platform; /* its entry of the platform file; NULL: none */
	bool data_direct; /* see topo_has_data_direct() */
	bool own_found; /* a link by which the node is reached is known */
	size_t cap_nics, cap_nic_facts, cap_gpus, cap_gpu_places, cap_cards, cap_warnings;
};

void topo_add_gpus(struct builder *b);
void topo_add_nics(struct builder *b);
void topo_set_platform(struct builder *b); /* its entry, and what that says of GPUs */
void topo_add_children(struct builder *b); /* children, lag_members; part of topo_add_nics() */
void topo_match_data_direct(struct builder *b); /* dma_bus_id of PFs */
void topo_add_cards(struct builder *b); /* cards, standalone; may take dma_bus_id back */
void topo_set_roots(struct builder *b); /* places, pcie_root, pcie_switch of NICs */
void topo_set_frontends(struct builder *b); /* roles of what the node uses, and by platform */
void topo_add_pairs(struct builder *b); /* all paths */
void topo_set_links(struct builder *b); /* PCI Express links */
void topo_set_acs(struct builder *b); /* acs_redirect of pairs; checks what Data Direct needs */
void topo_set_class(struct builder *b);
void topo_set_rails(struct builder *b); /* rails and their groups, remaining roles */
void topo_set_excluded(struct builder *b); /* what the administrator withholds */
void topo_set_best(struct builder *b); /* best pairs, best_gpu and best_path of NICs */
void topo_set_gpu_groups(struct builder *b); /* rail_group of GPUs */
void topo_check_platform(struct builder *b); /* hairpin, cross_rail; what the entry expected */
void topo_check_routes(struct builder *b); /* rail_routed */
void topo_keep_bridges(struct builder *b);

/* A step of topo_set_rails(): roles that follow from rails and distances. */
void topo_set_roles(struct builder *b);
/* The nearest path of a NIC to any GPU. */
enum path_class topo_nearest_path(const struct builder *b, size_t nic);

/* "code" must be static. */
void topo_warn(struct builder *b, const char *code, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ConnectX-8 and later: chips that have a Data Direct function on some boards. */
bool topo_may_have_data_direct(const struct topo_nic *nic);
/* This node has Data Direct functions (15b3:2100). */
bool topo_has_data_direct(const struct hw_machine *machine);

/* "nvidia", "amd", "intel"; NULL: it is no GPU. */
const char *topo_gpu_vendor(const struct hw_pci *pci);
/* All functions by address as numbers; the caller frees the array. */
const struct hw_pci **topo_sorted_functions(const struct hw_machine *machine);

/* NULL: no such function. */
struct function_owns *topo_function(const struct builder *b, const char *bus_id);
/* Kinds of links that are made on another one and belong to the NIC below; NULL: no. */
bool topo_is_child_kind(const char *kind);
/* The link of a port, not the representor of a VF or subfunction. */
bool topo_is_uplink(const struct hw_netdev *netdev);

/* A VF shows its PF, or inside a virtual machine at least the device id of a VF. */
bool topo_is_vf(const struct hw_pci *pci);

/* The function's GID to use; docs/design.md §6 and nic.c. */
int topo_choose_gid(const struct topo_nic *nic, const struct topo_port *port);

#endif

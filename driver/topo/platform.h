/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_PLATFORM_H
#define TWINRAIL_TOPO_PLATFORM_H

#include "hw/machine.h"
#include "topo/inventory.h"

/*
 * The platform file (docs/platforms.md): which machines are known, and what is known about them
 * that the machine itself does not tell.  It is data: platforms.yaml is part of the binary, and a
 * file of the administrator goes before it.  A fact that an entry does not have is unknown.
 */
#define PLATFORM_MAX_RAIL 1023
#define PLATFORM_MAX_COUNT 4096 /* of devices; also the end of a range that has none */

struct platform_range {
	unsigned int min, max;
};

/* All conditions of an entry that are there must hold. */
struct platform_match {
	struct strlist gpu_ids; /* "10de:2330", with * and ?; empty: any */
	struct platform_range gpu_count;
	struct strlist nic_ids;
	struct platform_range nic_count; /* of NICs with one of the ids */
	struct strlist functions; /* addresses of NICs that must be there, with * and ? */
	struct strlist dmi_vendor, dmi_product; /* one of them, with * and ?; empty: any */
	enum tri virtual_machine, data_direct; /* TRI_UNKNOWN: either */
	bool gpus, nics; /* the key is there */
};

enum platform_rail_order { RAIL_ORDER_NONE, RAIL_ORDER_PCIE_ROOT, RAIL_ORDER_PCI_DOMAIN };

struct platform_rail {
	char *bus_id;
	int rail;
};

struct platform_role {
	struct strlist nics; /* patterns of topo/pattern.h */
	enum topo_role role;
};

struct platform {
	char *name;
	struct platform_match match;
	unsigned int classes; /* bits 1 << CLASS_…: what topologyClass may be; 0: unknown */
	int rails; /* how many; TOPO_UNKNOWN */
	struct strlist rail_names; /* "gpu<N>rdma<M>" */
	enum platform_rail_order rail_order;
	struct platform_rail *rail_map;
	size_t n_rail_map, cap_rail_map;
	enum tri routed_rails; /* the other nodes of a rail are behind a router */
	struct platform_role *roles;
	size_t n_roles, cap_roles;
	struct strlist atomic_cards; /* ids of chips: "15b3:1023", with * and ?; perhaps none */
	bool atomic_known; /* the key is there: other chips have none */
	enum tri hairpin, cross_rail;
	int nvlink_domain_size; /* GPUs; TOPO_UNKNOWN */
	const char *gdr; /* "dmabuf", "peermem"; static; NULL unknown */
	struct strlist environment; /* "NAME=value" */
	bool shipped; /* of the binary, not of the administrator */
};

struct platforms {
	struct platform *items;
	size_t n, cap;
};

/*
 * Read a platform file.  "name" is what errors call it.  The result is the caller's.  -EINVAL with
 * "NAME line N: key: what is wrong; what is allowed" for anything that docs/platforms.md does not
 * allow: unknown keys, wrong types, impossible values, two entries of one name.
 */
int platforms_parse(const char *text, size_t len, const char *name, struct platforms **ret,
		    struct err *err) __attribute__((warn_unused_result));
struct platforms *platforms_free(struct platforms *platforms); /* NULL is fine; returns NULL */

static inline void platforms_freep(struct platforms **platforms)
{
	platforms_free(*platforms);
}

/* The entries of the binary; never freed. */
const struct platforms *platforms_shipped(void);

/*
 * The entry for a machine whose GPUs and NICs are in "inv"; NULL: none.  The first that matches,
 * of: the administrator's entries ("own", may be NULL) whose names are not shipped, then the
 * shipped ones, each of which an own one of its name replaces.
 */
const struct platform *platforms_find(const struct platforms *own, const struct inventory *inv,
				      const struct hw_machine *machine);

/*
 * Log at debug level which entry was "taken" (NULL: none), and which conditions do not hold of the
 * administrator's others and, when none was taken, of the shipped ones that are for these GPUs.
 */
void platforms_log(const struct platforms *own, const struct platform *taken,
		   const struct inventory *inv, const struct hw_machine *machine);

/* The PFs of this chip must be handed out together; TRI_UNKNOWN: the entry does not say. */
enum tri platform_atomic_card(const struct platform *platform, unsigned int vendor,
			      unsigned int device);

/*
 * How many GPUs a whole machine of this kind has: the end of the range of counts, which begins
 * lower so that one that lost a GPU is known again.  0: the entry does not say, or there is none.
 */
unsigned int platform_gpus(const struct platform *platform);

/* Where a fact of the entry comes from, for the …_source members: "platform" or "config". */
const char *platform_source(const struct platform *platform);

#endif

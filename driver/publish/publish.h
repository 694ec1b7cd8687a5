/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PUBLISH_PUBLISH_H
#define TWINRAIL_PUBLISH_PUBLISH_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "kube/kube.h"
#include "topo/inventory.h"

/* Which kinds of devices are published. */
enum publish_kind {
	PUBLISH_CARD = 1, /* atomic cards as one device */
	PUBLISH_NIC = 2, /* functions that may be handed out alone */
	PUBLISH_GPU = 4,
	PUBLISH_PF = 8, /* functions of atomic cards, beside the cards: needs shared counters */
};

struct publish_options {
	const char *driver; /* "twinrail.dev": driver name and attribute domain */
	const char *node_name;
	unsigned int kinds; /* enum publish_kind bits */
	bool mirror; /* dra.net/… attributes */
	/* These need the feature gate DRAListTypeAttributes; one value stays a scalar. */
	bool root_list; /* pcieRoot of a NIC: where its DMA comes from, then its own root */
	bool numa_list; /* numaNode: topo_nic.numa_nodes */
};

/* "card,nic,pf,gpu" → bits.  ERR_INVALID names the unknown word and the known ones. */
int publish_parse_kinds(const char *text, unsigned int *ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * With cards and their functions in one device class the allocator's search explodes (5 cards
 * 0.4 s, 6 cards 10 s, the scheduler's limit), so "pf" is not published above this many atomic
 * cards.
 */
#define PUBLISH_PF_MAX_CARDS 4

/*
 * The kinds that will really be published for this machine: "kinds" without PUBLISH_PF when it
 * has more than PUBLISH_PF_MAX_CARDS atomic cards.  Whoever asked for the rest should be warned.
 */
unsigned int publish_effective_kinds(const struct inventory *inv, unsigned int kinds);

/*
 * GPUs of this vendor can be prepared (their device nodes or CDI names are known to prepare/); the
 * others are not published.
 */
bool publish_can_serve(const struct topo_gpu *gpu);

/*
 * Inventory → the wanted "spec" objects of the node's pool, in order: slices with devices and
 * slices with counters (an array of ResourceSliceSpec without pool.generation).  New reference.
 * Pure: the same inventory gives the same bytes.
 */
json_t *publish_specs(const struct inventory *inv, const struct publish_options *options);

/*
 * The complete ResourceSlice objects as they would be created on an empty API server, without the
 * owner reference (the Node's UID is known to the API server only).  An array; new reference.
 */
json_t *publish_slices(const struct inventory *inv, const struct publish_options *options);

/*
 * Keeps the slices of this driver and node on the API server equal to the last inventory: watch,
 * compare, write; see docs/design.md §7.  Errors are logged and retried, never fatal.
 */
struct publisher;
int publisher_new(struct loop *loop, struct kube *kube, const struct publish_options *options,
		  struct publisher **ret, struct err *err) __attribute__((warn_unused_result));
void publisher_set(struct publisher *publisher, struct inventory *inv); /* takes a reference */
/* Leaves the slices as they are; before kube_free().  NULL is fine; returns NULL. */
struct publisher *publisher_free(struct publisher *publisher);

#endif

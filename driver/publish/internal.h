/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PUBLISH_INTERNAL_H
#define TWINRAIL_PUBLISH_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "publish/publish.h"
#include "topo/inventory.h"

/* Limits of the API, resource.k8s.io/v1 (k8s.io/api/resource/v1/types.go). */
#define SLICE_MAX_DEVICES 128
/* when a device of the slice consumes counters or has a list attribute */
#define SLICE_MAX_ADVANCED_DEVICES 64
#define SLICE_MAX_COUNTER_SETS 8
#define ATTRIBUTE_MAX_STRING 64 /* bytes of a string or version value */
/* A device has at most 48 values in its at most 32 attributes: what a list may have of them. */
#define NUMA_LIST_MAX 16

/* attributes.c: one device object of the API each, new reference. */
json_t *device_nic(const struct inventory *inv, const struct topo_nic *nic, const char *type,
		   const struct publish_options *options);
json_t *device_card(const struct inventory *inv, const struct topo_card *card,
		    const struct publish_options *options);
json_t *device_gpu(const struct inventory *inv, const struct topo_gpu *gpu,
		   const struct publish_options *options);

/* devices.c: everything of the given kinds (already effective) in the order of publication. */
json_t *publish_devices(const struct inventory *inv, const struct publish_options *options,
			unsigned int kinds);
/* The counter sets those devices draw on; an empty array when nothing overlaps. */
json_t *publish_counter_sets(const struct inventory *inv, unsigned int kinds);

/* A device of this array has an attribute with a list of values. */
bool devices_have_lists(const json_t *devices);

/* values.c */

/* Strict semantic version 2.0.0, as the API server checks it. */
bool is_semver(const char *s);
/* "400000000000" → "400G": the canonical form of resource.Quantity; malloc'ed. */
char *quantity_text(uint64_t value);
/* Equal by value ("1000" and "1k"); texts that are no quantities are equal as bytes only. */
bool quantity_equal(const char *a, const char *b);
/*
 * Equal as the API sees it: order of lists counts, an absent member is equal to null, [] and {},
 * members called "value" are quantities.  NULL is equal to an absent member.
 */
bool spec_equal(const json_t *a, const json_t *b);

/* slices.c */

/* "00000-<driver>-<node>-": the order of names is the order of slices (and of allocation). */
char *slice_generate_name(const struct publish_options *options, size_t index);
/* The slice index in an object's name; -EINVAL when it does not begin with one. */
int slice_index(const char *name, size_t *ret) __attribute__((warn_unused_result));
/* A complete object made of a spec without generation; "uid" of the Node or NULL.  New reference. */
json_t *slice_object(const struct publish_options *options, const json_t *spec, size_t index,
		     long long generation, const char *node_uid);

/* plan.c */

/* A slice as it is on the API server, as far as we know. */
struct stored_slice {
	json_t *object;
	json_t *sent; /* the spec (without generation) that we wrote to get "object", or NULL */
	uint64_t written_us; /* clock_us() of that write, 0: somebody else's */
};

struct slice_plan {
	enum slice_op { SLICE_NOTHING, SLICE_DELETE, SLICE_UPDATE, SLICE_CREATE } op;
	size_t stored; /* DELETE, UPDATE: which stored slice */
	size_t index; /* UPDATE, CREATE: which wanted spec */
	long long generation; /* what it gets; NOTHING: the pool's */
};

/*
 * The next write that brings the pool from "stored" to "wanted" (publish_specs()): obsolete
 * slices are deleted first, then changed ones are updated, then missing ones are created.
 * Stateless: called again after each write (and after anything else that happened) it goes on
 * where it was.  Generation: a single changed slice keeps it; any other change begins the next
 * one, and slices that already have it and are right are not written again.
 */
void slice_plan_next(const struct stored_slice *stored, size_t n_stored, const json_t *wanted,
		     const char *pool, struct slice_plan *ret);

/* Both specs say the same, whatever the generation. */
bool slice_same_content(const json_t *spec, const json_t *wanted);

/* The object for UPDATE: "stored" with the wanted fields replaced.  New reference. */
json_t *slice_updated(const json_t *stored, const json_t *spec, long long generation);

/* store.c: what the API server has.  Zero-initialise; slice_store_done() frees. */
struct slice_store {
	struct stored_slice *a;
	size_t n, cap;
	struct strlist gone; /* uids that were deleted while a write of ours was under way */
};

/* For so long a list that does not have our own write is taken for an old one. */
#define STORE_GRACE_US (3 * 1000000ULL)

enum store_change {
	STORE_SAME = 0,
	STORE_CHANGED = 1, /* somebody else wrote or deleted */
	STORE_LOST = 2, /* … deleted */
	STORE_DOUBTFUL = 4, /* a slice we have just written is not in the list: list again later */
};

/* A full list; a set of enum store_change. */
unsigned int store_listed(struct slice_store *store, json_t *items, uint64_t now_us);
/* One event of a watch; a set of enum store_change.  States older than the known are ignored. */
unsigned int store_event(struct slice_store *store, const char *type, json_t *object);
/* The API server's answer to our create or update of "sent". */
void store_wrote(struct slice_store *store, json_t *object, json_t *sent, uint64_t now_us);
/* It is deleted, as we wanted or as an answer told. */
void store_removed(struct slice_store *store, const char *uid);
void slice_store_done(struct slice_store *store);

#endif

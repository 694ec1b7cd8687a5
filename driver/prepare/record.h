/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_RECORD_H
#define TWINRAIL_PREPARE_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "attach/plan.h"
#include "base/err.h"
#include "base/str.h"
#include "prepare/claim.h"

/*
 * The record of one claim (docs/design.md §8): all that is needed to make its CDI spec again, to
 * repeat the answer to kubelet, and to undo.  It holds no time stamps: the same claim on the same
 * machine gives the same bytes.
 */
#define RECORD_VERSION 1

enum record_state {
	RECORD_STARTED, /* something may have been done: undo it */
	RECORD_COMPLETED, /* all done, the answer may have been sent */
	RECORD_UNDOING, /* something may have been undone: finish it */
};

struct record_node {
	char *path; /* in the container, "/dev/infiniband/uverbs0" */
	int major, minor;
};

struct record_device {
	char *request; /* "main" or "main/sub" */
	char *pool, *device, *share_id;
	char *type; /* "nic", "card", "gpu" */
	bool admin_access;
	struct nic_config config;
	struct strlist functions; /* PCI addresses, ascending */
	struct record_node *nodes;
	size_t n_nodes;
	struct strlist vendor_cdi; /* "nvidia.com/gpu=GPU-…" */
};

struct record {
	char *uid, *namespace, *name;
	enum record_state state;
	char *boot_id;
	struct record_device *devices;
	size_t n_devices;
	struct strlist environment; /* "NAME=value", in order */
	struct attach_plan attach;
	bool renewed; /* "devices" and "environment" differ from "stored" */
	bool later; /* made by record_holder() */
	bool stray; /* and known by its CDI file only */
	json_t *stored; /* as read from disk: unknown members survive a rewrite; NULL: new */
};

struct record *record_new(const char *namespace, const char *name, const char *uid);
struct record *record_free(struct record *record); /* NULL is fine; returns NULL */

/* Make room for one more device; zeroed. */
struct record_device *record_add_device(struct record *record);

/*
 * Two records of one claim have the same functions, nodes and vendors' CDI ids: nothing was
 * numbered anew between them.
 */
bool record_same_devices(const struct record *a, const struct record *b);

/* Give "record" the devices of "fresh", which gets the old ones; marks it as renewed. */
void record_renew(struct record *record, struct record *fresh);

/* New reference. */
json_t *record_to_json(const struct record *record);

/*
 * ERR_INVALID with -EINVAL: malformed; ERR_PERMANENT with -EOPNOTSUPP: written by a later version
 * that this one cannot serve.  Takes a reference to "object".
 */
int record_from_json(json_t *object, struct record **ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * The record of claim "uid" that a later version wrote, as far as it matters to other claims: the
 * names and the functions, where they are found ("unknown" and none otherwise).  For overlaps only.
 * "object" may be NULL.
 */
struct record *record_holder(const json_t *object, const char *uid);

/* "Started", "Completed", "Undoing". */
const char *record_state_name(enum record_state state);

static inline void record_freep(struct record **record)
{
	record_free(*record);
}

#endif

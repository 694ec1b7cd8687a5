/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_PREPARE_H
#define TWINRAIL_PREPARE_PREPARE_H

#include "base/err.h"
#include "kube/kube.h"
#include "loop/loop.h"
#include "rpc/dra.h"
#include "topo/inventory.h"

/*
 * Prepares and unprepares claims: live GET, journal, CDI (docs/design.md §8).  All functions are
 * called on the loop's thread; disk work is done on a worker thread.
 */
struct preparer;

struct prepare_options {
	const char *driver; /* "twinrail.dev" */
	const char *pool; /* the node's name */
	const char *data_dir; /* claims/<uid>.json and serialize.lock live below it */
	const char *cdi_dir; /* "/var/run/cdi" */
	uint64_t overlap_wait_us; /* how long a claim waits for another's Unprepare; 0: 30 s */
	/*
	 * Folders of the vendors' CDI specifications, NULL-terminated; a device in a later one
	 * hides its namesake in an earlier one, as in the runtime.  NULL: /etc/cdi, cdi_dir.
	 */
	const char *const *vendor_cdi_dirs;
	/* After the start, how long kubelet may unprepare claims that are gone before we do; 0: 2
	 * minutes. */
	uint64_t orphan_grace_us;
};

/*
 * Brings the disk into order first (docs/design.md §8, "Start"): blocks for that.  The strings of
 * "options" are copied.
 */
int preparer_new(struct loop *loop, struct kube *kube, const struct prepare_options *options,
		 struct preparer **ret, struct err *err) __attribute__((warn_unused_result));
/* The inventory that device names are looked up in; takes a reference. */
void preparer_set(struct preparer *preparer, struct inventory *inv);
/*
 * PCI addresses of the functions that claims hold now, appended to "ret".  Reads the records, but
 * waits for nobody.  An error: more may be held.
 */
int preparer_held(const struct preparer *preparer, struct strlist *ret, struct err *err)
	__attribute__((warn_unused_result));
void preparer_prepare(struct preparer *preparer, struct dra_call *call);
void preparer_unprepare(struct preparer *preparer, struct dra_call *call);
/* Waits for running disk work; unfinished calls are failed with ERR_RETRY.  Returns NULL. */
struct preparer *preparer_free(struct preparer *preparer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_STORE_H
#define TWINRAIL_PREPARE_STORE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "prepare/claim.h"
#include "prepare/journal.h"
#include "prepare/resolve.h"
#include "topo/inventory.h"

/*
 * The steps of Prepare and Unprepare that touch the disk.  Each takes the lock, reads the records,
 * decides and writes; nothing is kept between two steps.  Blocking: runs on the worker's thread,
 * except store_recover() at start.
 */
struct store {
	struct resolve_options resolve;
	const char *cdi_dir;
	char boot_id[64];
	struct journal journal;
};

/* One claim of a call.  A step fills "record" or "err". */
struct store_claim {
	const char *uid;
	struct claim *claim; /* NULL: "err" was set before the step */
	struct record *record; /* Completed, the caller's: record_free() */
	struct err err; /* code 0: fine */
	bool wait; /* "err" passes when another claim is unprepared */
	bool kept; /* it was Completed already, and nothing has to be written */
	bool frozen; /* kept although its devices cannot be looked up now */
};

/* Reads the boot id and makes the data directory. */
int store_init(struct store *s, const char *data_dir, struct err *err)
	__attribute__((warn_unused_result));
/* On any thread: a step that waits for the lock fails at once, here and later. */
void store_stop(struct store *s);
void store_done(struct store *s);

/*
 * Prepare all claims of one call.  When one fails, the others that are new are not prepared either,
 * and say which one failed: kubelet starts the pod with all of them or not at all.  A Completed
 * record whose device nodes or environment are others by now (a reboot, a reload of a driver) is
 * written again; one whose devices are missing while the boot id is the same is answered as it is.
 * "pod" may be NULL.  *ret_lists (static text or NULL): why the list variables were left out.
 * true: nothing was done because devices are still held by other claims; call again later.
 */
bool store_prepare(struct store *s, const struct inventory *inv, const json_t *pod,
		   struct store_claim *claims, size_t n, const char **ret_lists);

/* Unprepare claims; one without a record is success. */
void store_unprepare(struct store *s, struct store_claim *claims, size_t n);

/* What a recorded claim is called, to ask the API server for it. */
struct store_name {
	char *namespace, *name, *uid;
};
void store_names_free(struct store_name *names, size_t n);

/*
 * At start: remove temporary files, undo what is Started or Undoing, make CDI files again, but
 * remove those of an earlier boot.  Trouble with one claim or with the CDI folder is logged and
 * does not stop the others.  ret_names: the claims that stay, the
 * caller's.
 */
int store_recover(struct store *s, struct store_name **ret_names, size_t *ret_n, struct err *err)
	__attribute__((warn_unused_result));

#endif

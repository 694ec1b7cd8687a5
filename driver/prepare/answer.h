/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_ANSWER_H
#define TWINRAIL_PREPARE_ANSWER_H

#include "prepare/record.h"
#include "prepare/store.h"
#include "rpc/dra.h"

/*
 * Answer claim "i" of a NodePrepareResources call from its Completed record: a function of the
 * record only, so that a repeated call gets the same answer.  Every device carries the CDI id of
 * its request, a GPU that of its vendor.
 */
void answer_prepared(struct dra_call *call, size_t i, const struct record *record,
		     const char *driver);

/* Log how a call for a claim of this name ended, and how long it took. */
void answer_log(bool prepare, const char *namespace, const char *name,
		const struct store_claim *claim, uint64_t started_us);

#endif

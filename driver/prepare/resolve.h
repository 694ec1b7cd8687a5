/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_RESOLVE_H
#define TWINRAIL_PREPARE_RESOLVE_H

#include "base/err.h"
#include "prepare/claim.h"
#include "prepare/journal.h"
#include "prepare/record.h"
#include "topo/inventory.h"

struct resolve_options {
	const char *driver, *pool;
	const char *const *cdi_dirs; /* as vendor_cdi_dirs in prepare.h */
};

/*
 * Claim + inventory → a new record (without state, boot id and environment): looks up every device
 * and its functions and nodes, and a GPU's CDI id (reads "cdi_dirs").  The text begins with the
 * claim's name and names the device, the cause and the cure.
 */
int resolve_claim(const struct claim *claim, const struct inventory *inv,
		  const struct resolve_options *options, struct record **ret, struct err *err)
	__attribute__((warn_unused_result));

/* The record was made from the same allocation and configuration. */
bool record_matches(const struct record *record, const struct claim *claim);

/*
 * A function of "record" that "other" (another claim) holds too: cards and their functions meet
 * here, adminAccess and shares on both sides are exempt.  Borrowed PCI address, or NULL.
 */
const char *records_overlap(const struct record *record, const struct record *other);

/*
 * All or none of the PFs of an atomic card, over all claims of one call; devices whose config says
 * halfPairPolicy: Allow, adminAccess, and records in state Completed are exempt.  Entries may be
 * NULL.  0, or ERR_INVALID for records[*ret_record],
 * naming the missing function, its card and the class to use.
 */
int check_half_pairs(const struct record *const *records, size_t n, const struct inventory *inv,
		     const char *driver, size_t *ret_record, struct err *err)
	__attribute__((warn_unused_result));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_ENVIRONMENT_H
#define TWINRAIL_PREPARE_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "prepare/claim.h"
#include "prepare/record.h"
#include "topo/inventory.h"

/*
 * The list variables of one pod: UCX_NET_DEVICES, NCCL_IB_HCA (exact form), TWINRAIL_PAIRS.
 * Several claims in one container overwrite each other's variables, so one value over all claims
 * of the call, i.e. of the pod, is used for each of them (docs/design.md §8).
 */

/*
 * The value depends on which container uses what: the pod named in reservedFor has to be read
 * first.  All claims are reserved for the same single pod and there are several claims, or one
 * with several NIC requests.
 */
bool environment_needs_pod(const struct claim *const *claims, size_t n);

/*
 * Fill "ret" with "NAME=value".  claims[i] and records[i] belong together.  "pod": the Pod object,
 * or NULL when it is not needed or could not be read.  Returns NULL, or why the lists were left
 * out (static text): they would be wrong for some container.
 */
const char *environment_build(const struct claim *const *claims,
			      const struct record *const *records, size_t n, const json_t *pod,
			      const struct inventory *inv, struct strlist *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_CLAIM_H
#define TWINRAIL_PREPARE_CLAIM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/*
 * What a driver needs of one allocated ResourceClaim.  Bounds are those of resource.k8s.io/v1:
 * 32 results, 64 configs, 256 consumers, 10 KiB of parameters.
 */
#define CLAIM_RESULTS_MAX 32
#define CLAIM_CONFIGS_MAX 64
#define CLAIM_CONSUMERS_MAX 256
#define CLAIM_REQUESTS_MAX 32
#define CLAIM_PARAMETERS_MAX (10 * 1024)

/* The opaque configuration "NicConfig"; fields that nobody set are HALF_PAIR_UNSET. */
enum half_pair_policy { HALF_PAIR_UNSET, HALF_PAIR_REFUSE, HALF_PAIR_ALLOW };

struct nic_config {
	enum half_pair_policy half_pair;
};

struct claim_result {
	char *request; /* "main" or "main/sub" */
	char *pool, *device;
	char *share_id; /* NULL: not a share */
	bool admin_access;
	struct nic_config config; /* class, then claim; later wins field by field */
};

struct claim {
	char *namespace, *name, *uid;
	struct claim_result *results; /* of this driver only */
	size_t n_results;
	size_t n_consumers; /* entries of reservedFor */
	char *pod_name, *pod_uid; /* the first pod in reservedFor; NULL: none */
};

/*
 * Read a ResourceClaim object.  "uid" is the one kubelet asks for.  Errors (docs/design.md §8): the
 * claim is not allocated (RETRY), was replaced by another one of the same name (CONFLICT), or is
 * malformed or has an opaque config of ours with an unknown field or kind (INVALID).  The texts
 * begin with the claim's name.  *ret is the caller's: claim_free().
 */
int claim_parse(const json_t *object, const char *driver, const char *uid, struct claim **ret,
		struct err *err) __attribute__((warn_unused_result));
struct claim *claim_free(struct claim *claim); /* NULL is fine; returns NULL */

/* The claim has a device of the pool. */
bool claim_uses_pool(const struct claim *claim, const char *pool);

/* Base name of a request reference: "main/sub" → "main"; malloc'ed. */
char *request_main(const char *request);

/* {"halfPairPolicy":"Allow"}, without fields that are unset; new reference. */
json_t *nic_config_to_json(const struct nic_config *config);

/* Fields of a NicConfig without apiVersion and kind; unknown fields are ERR_INVALID. */
int nic_config_from_json(const json_t *object, struct nic_config *ret, struct err *err)
	__attribute__((warn_unused_result));

static inline void claim_freep(struct claim **claim)
{
	claim_free(*claim);
}

#endif

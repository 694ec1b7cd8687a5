/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_ATTACH_PLAN_H
#define TWINRAIL_ATTACH_PLAN_H

#include <jansson.h>

#include "base/err.h"

/*
 * What has to be done to a pod's network before its containers start.  The agent writes the plan
 * into the claim's record ("attach": {"mode":"none","links":[]}), the hook carries it out.
 */
enum attach_mode {
	ATTACH_NONE, /* no link is moved: the pod uses the RDMA devices of the host's namespace */
};

struct attach_plan {
	enum attach_mode mode;
};

/* The "attach" member of a record; new reference. */
json_t *attach_plan_to_json(const struct attach_plan *plan);

/*
 * Read the "attach" member of a record.  ERR_INVALID with -EINVAL: it is malformed; ERR_PERMANENT
 * with -EOPNOTSUPP: it asks for a mode or for links that this build does not know, e.g. after a
 * downgrade.  *ret is written on success only.
 */
int attach_plan_from_json(const json_t *value, struct attach_plan *ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * The plan of the record in "file", for the hook: refuses a record that is missing, unreadable or
 * not Completed (docs/design.md §8: the hook fails closed).
 */
int attach_plan_read(const char *file, struct attach_plan *ret, struct err *err)
	__attribute__((warn_unused_result));

#endif

// SPDX-License-Identifier: Apache-2.0
#include "attach/plan.h"

#include <errno.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

/* Far above any record we write; a longer file is not a record. */
#define RECORD_BYTES_MAX (1024 * 1024)

json_t *attach_plan_to_json(const struct attach_plan *plan)
{
	json_t *o = json_new_object();

	(void)plan; /* there is one mode, without links */
	json_set_string(o, "mode", "none");
	json_set(o, "links", json_new_array());
	return o;
}

int attach_plan_from_json(const json_t *value, struct attach_plan *ret, struct err *err)
{
	const char *mode = json_string_value(json_object_get(value, "mode"));
	const json_t *links = json_object_get(value, "links");

	if (!mode || !json_is_array(links))
		return err_set(err, ERR_INVALID, EINVAL,
			       "the attach plan has no \"mode\" or no list of \"links\"");
	if (!streq(mode, "none"))
		return err_set(err, ERR_PERMANENT, EOPNOTSUPP,
			       "attach mode \"%.32s\" is not known to this version (%s): "
			       "install the version that wrote the record",
			       mode, TWINRAIL_VERSION);
	if (json_array_size(links) > 0)
		return err_set(err, ERR_PERMANENT, EOPNOTSUPP,
			       "the attach plan has %zu links, which this version (%s) cannot "
			       "attach: install the version that wrote the record",
			       json_array_size(links), TWINRAIL_VERSION);
	*ret = (struct attach_plan){ .mode = ATTACH_NONE };
	return 0;
}

int attach_plan_read(const char *file, struct attach_plan *ret, struct err *err)
{
	_cleanup_json_ json_t *record = NULL;
	_cleanup_free_ char *text = NULL;
	const char *state;
	size_t len;
	int r;

	r = file_read(file, RECORD_BYTES_MAX, &text, &len, err);
	if (r < 0)
		return r;
	r = json_parse(text, len, &record, err);
	if (r < 0)
		return err_wrap(err, "record %s", file);
	state = json_path_string(record, "state");
	if (!state || !streq(state, "Completed"))
		return err_set(err, ERR_CONFLICT, EBUSY,
			       "record %s is in state %.32s, not Completed: the claim is not "
			       "prepared, delete the pod",
			       file, state ? state : "(none)");
	r = attach_plan_from_json(json_path(record, "attach"), ret, err);
	return r < 0 ? err_wrap(err, "record %s", file) : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* What to write next, from what is there and what is wanted; no I/O. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

static const char *const spec_fields[] = {
	"pool", "devices", "sharedCounters", "nodeSelector", "allNodes", "perDeviceNodeSelection",
};

static long long generation_of(const struct stored_slice *s)
{
	return json_integer_value(json_path(s->object, "spec.pool.generation"));
}

static const char *name_of(const struct stored_slice *s)
{
	const char *name = json_path_string(s->object, "metadata.name");

	return name ? name : "";
}

bool slice_same_content(const json_t *spec, const json_t *wanted)
{
	for (size_t i = 0; i < ARRAY_SIZE(spec_fields); i++) {
		const char *field = spec_fields[i];
		const json_t *a = json_object_get(spec, field), *b = json_object_get(wanted, field);
		_cleanup_json_ json_t *pool = NULL;

		if (streq(field, "pool")) {
			pool = json_copy((json_t *)(uintptr_t)a);
			json_object_del(pool, "generation");
			a = pool;
		}
		if (!spec_equal(a, b))
			return false;
	}
	return true;
}

static bool is_right(const struct stored_slice *s, const json_t *wanted)
{
	/* What the API server made of our own words is not sent again. */
	if (s->sent && slice_same_content(s->sent, wanted))
		return true;
	return slice_same_content(json_object_get(s->object, "spec"), wanted);
}

/* Of two slices with one index the better one stays. */
static bool is_better(const struct stored_slice *a, const struct stored_slice *b,
		      const json_t *wanted)
{
	bool right_a = is_right(a, wanted), right_b = is_right(b, wanted);

	if (generation_of(a) != generation_of(b))
		return generation_of(a) > generation_of(b);
	if (right_a != right_b)
		return right_a;
	return strcmp(name_of(a), name_of(b)) < 0;
}

/* Which stored slice has which index (-1: none).  Returns an obsolete one, or -1. */
static ssize_t match(const struct stored_slice *stored, size_t n_stored, const json_t *wanted,
		     const char *pool, ssize_t *at)
{
	size_t n = json_array_size(wanted);

	for (size_t i = 0; i < n; i++)
		at[i] = -1;
	for (size_t k = 0; k < n_stored; k++) {
		const char *pool_name = json_path_string(stored[k].object, "spec.pool.name");
		size_t i;

		if (!pool_name || !streq(pool_name, pool) ||
		    slice_index(name_of(&stored[k]), &i) < 0 || i >= n)
			return (ssize_t)k;
		if (at[i] < 0)
			at[i] = (ssize_t)k;
		else if (is_better(&stored[k], &stored[at[i]], json_array_get(wanted, i)))
			return at[i];
		else
			return (ssize_t)k;
	}
	return -1;
}

/*
 * The generation which the pool gets.  "at" has no obsolete slices.  When all slices of the
 * highest generation are right, the rest only has to follow: that goes on with an update that is
 * under way and brings back a slice that somebody deleted.
 */
static long long target_generation(const struct stored_slice *stored, const ssize_t *at,
				   const json_t *wanted)
{
	size_t n = json_array_size(wanted), top = 0, wrong = 0;
	long long highest = 0;
	bool count_changed = false;

	for (size_t i = 0; i < n; i++)
		if (at[i] >= 0 && generation_of(&stored[at[i]]) > highest)
			highest = generation_of(&stored[at[i]]);
	for (size_t i = 0; i < n; i++) {
		const struct stored_slice *s = at[i] >= 0 ? &stored[at[i]] : NULL;
		const json_t *w = json_array_get(wanted, i);

		if (!s || generation_of(s) != highest)
			continue;
		top++;
		if (is_right(s, w))
			continue;
		wrong++;
		if (!json_equal(json_path(s->object, "spec.pool.resourceSliceCount"),
				json_path(w, "pool.resourceSliceCount")))
			count_changed = true;
	}
	if (highest > 0 && top > 0 && wrong == 0)
		return highest;
	if (highest > 0 && wrong == 1 && top == n && !count_changed)
		return highest;
	return highest + 1;
}

void slice_plan_next(const struct stored_slice *stored, size_t n_stored, const json_t *wanted,
		     const char *pool, struct slice_plan *ret)
{
	size_t n = json_array_size(wanted);
	_cleanup_free_ ssize_t *at = xcalloc(n + 1, sizeof(*at));
	ssize_t obsolete = match(stored, n_stored, wanted, pool, at);
	ssize_t missing = -1;

	if (obsolete >= 0) {
		*ret = (struct slice_plan){ .op = SLICE_DELETE, .stored = (size_t)obsolete };
		return;
	}
	*ret = (struct slice_plan){ .op = SLICE_NOTHING };
	ret->generation = target_generation(stored, at, wanted);
	for (size_t i = 0; i < n; i++) {
		const struct stored_slice *s = at[i] >= 0 ? &stored[at[i]] : NULL;

		if (!s) {
			if (missing < 0)
				missing = (ssize_t)i;
		} else if (generation_of(s) != ret->generation ||
			   !is_right(s, json_array_get(wanted, i))) {
			ret->op = SLICE_UPDATE;
			ret->stored = (size_t)at[i];
			ret->index = i;
			return;
		}
	}
	if (missing >= 0) {
		ret->op = SLICE_CREATE;
		ret->index = (size_t)missing;
	}
}

json_t *slice_updated(const json_t *stored, const json_t *spec, long long generation)
{
	json_t *object = json_deep_copy(stored);
	json_t *to = json_object_get(object, "spec");

	for (size_t i = 0; i < ARRAY_SIZE(spec_fields); i++) {
		json_t *value = json_object_get(spec, spec_fields[i]);

		if (value)
			json_set(to, spec_fields[i], json_deep_copy(value));
		else
			json_object_del(to, spec_fields[i]);
	}
	json_set_int(json_object_get(to, "pool"), "generation", generation);
	return object;
}

// SPDX-License-Identifier: Apache-2.0
/* Devices and counter sets → the slices of one pool. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

#define INDEX_DIGITS 5
#define INDEX_MAX_DIGITS 8

static json_t *spec_new(const struct publish_options *options, size_t n_slices)
{
	json_t *spec = json_new_object(), *pool = json_new_object();

	json_set_string(pool, "name", options->node_name);
	json_set_int(pool, "resourceSliceCount", (long long)n_slices);
	json_set_string(spec, "driver", options->driver);
	json_set_string(spec, "nodeName", options->node_name);
	json_set(spec, "pool", pool);
	return spec;
}

/* Elements [from, from + n) of an array as a new one. */
static json_t *array_part(const json_t *array, size_t from, size_t n)
{
	json_t *part = json_new_array();

	for (size_t i = from; i < from + n && i < json_array_size(array); i++)
		json_add(part, json_incref(json_array_get(array, i)));
	return part;
}

json_t *publish_specs(const struct inventory *inv, const struct publish_options *options)
{
	unsigned int kinds = publish_effective_kinds(inv, options->kinds);
	_cleanup_json_ json_t *devices = publish_devices(inv, options, kinds);
	_cleanup_json_ json_t *sets = publish_counter_sets(inv, kinds);
	bool advanced = json_array_size(sets) || devices_have_lists(devices);
	size_t limit = advanced ? SLICE_MAX_ADVANCED_DEVICES : SLICE_MAX_DEVICES;
	size_t n_devices = (json_array_size(devices) + limit - 1) / limit;
	size_t n_sets =
		(json_array_size(sets) + SLICE_MAX_COUNTER_SETS - 1) / SLICE_MAX_COUNTER_SETS;
	json_t *specs = json_new_array();

	/* A pool without devices still has a slice: it shows that the driver is alive. */
	if (n_devices == 0)
		n_devices = 1;
	for (size_t i = 0; i < n_devices; i++) {
		json_t *spec = spec_new(options, n_devices + n_sets);

		if (json_array_size(devices))
			json_set(spec, "devices", array_part(devices, i * limit, limit));
		json_add(specs, spec);
	}
	/* Since Kubernetes 1.35 a slice has devices or counters, never both. */
	for (size_t i = 0; i < n_sets; i++) {
		json_t *spec = spec_new(options, n_devices + n_sets);

		json_set(spec, "sharedCounters",
			 array_part(sets, i * SLICE_MAX_COUNTER_SETS, SLICE_MAX_COUNTER_SETS));
		json_add(specs, spec);
	}
	return specs;
}

char *slice_generate_name(const struct publish_options *options, size_t index)
{
	return xasprintf("%0*zx-%s-%s-", INDEX_DIGITS, index, options->driver, options->node_name);
}

int slice_index(const char *name, size_t *ret)
{
	size_t n = strspn(name, "0123456789abcdef");
	char digits[INDEX_MAX_DIGITS + 1];
	uint64_t v;

	if (n < INDEX_DIGITS || n > INDEX_MAX_DIGITS || name[n] != '-')
		return -EINVAL;
	memcpy(digits, name, n);
	digits[n] = '\0';
	if (parse_u64(digits, 16, &v) < 0)
		return -EINVAL;
	*ret = (size_t)v;
	return 0;
}

json_t *slice_object(const struct publish_options *options, const json_t *spec, size_t index,
		     long long generation, const char *node_uid)
{
	_cleanup_free_ char *name = slice_generate_name(options, index);
	json_t *object = json_new_object(), *metadata = json_new_object(),
	       *copy = json_deep_copy(spec);

	json_set_string(object, "apiVersion", "resource.k8s.io/v1");
	json_set_string(object, "kind", "ResourceSlice");
	json_set_string(metadata, "generateName", name);
	if (node_uid) {
		json_t *owners = json_new_array(), *owner = json_new_object();

		json_set_string(owner, "apiVersion", "v1");
		json_set_string(owner, "kind", "Node");
		json_set_string(owner, "name", options->node_name);
		json_set_string(owner, "uid", node_uid);
		json_set_bool(owner, "controller", true);
		json_add(owners, owner);
		json_set(metadata, "ownerReferences", owners);
	}
	json_set(object, "metadata", metadata);
	json_set_int(json_object_get(copy, "pool"), "generation", generation);
	json_set(object, "spec", copy);
	return object;
}

json_t *publish_slices(const struct inventory *inv, const struct publish_options *options)
{
	_cleanup_json_ json_t *specs = publish_specs(inv, options);
	json_t *slices = json_new_array();

	for (size_t i = 0; i < json_array_size(specs); i++)
		json_add(slices, slice_object(options, json_array_get(specs, i), i, 1, NULL));
	return slices;
}

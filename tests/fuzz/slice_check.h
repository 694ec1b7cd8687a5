/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_SLICE_CHECK_H
#define TWINRAIL_TESTS_SLICE_CHECK_H

/* Part of topo_check.h: what the API server accepts (resource.k8s.io/v1). */
#define MIRROR_DOMAIN "dra.net/"

static inline char *check_attribute(const char *device, const char *key, const json_t *value)
{
	const char *type = NULL, *text;
	const json_t *v = NULL;
	const char *k;
	json_t *member;

	json_object_foreach((json_t *)(uintptr_t)value, k, member) {
		type = k;
		v = member;
	}
	UNLESS(json_object_size(value) == 1, "%s: %s has %zu values", device, key,
	       json_object_size(value));
	UNLESS(streq(type, "string") || streq(type, "int") || streq(type, "bool") ||
		       streq(type, "version"),
	       "%s: %s has type %s", device, key, type);
	if (json_is_integer(v))
		UNLESS(json_integer_value(v) >= 0, "%s: %s is %lld", device, key,
		       (long long)json_integer_value(v));
	text = json_string_value(v);
	UNLESS(!text || strlen(text) <= 64, "%s: %s is longer than 64 bytes: %s", device, key,
	       text);
	UNLESS(!text || *text || starts_with(key, MIRROR_DOMAIN), "%s: %s is \"\"", device, key);
	return NULL;
}

static inline char *check_device_object(const json_t *device, struct strlist *names)
{
	const char *name = json_path_string(device, "name"), *key;
	const json_t *attributes = json_object_get(device, "attributes");
	size_t n = json_object_size(attributes) + json_object_size(json_path(device, "capacity"));
	char *wrong = NULL;
	json_t *value;

	UNLESS(name && is_dns_label(name), "device name \"%s\"", name ? name : "");
	UNLESS(!strlist_has(names, name), "two devices are called %s", name);
	UNLESS(n <= 32, "%s has %zu attributes and capacities", name, n);
	strlist_add(names, name);
	json_object_foreach((json_t *)(uintptr_t)attributes, key, value)
		if (!wrong)
			wrong = check_attribute(name, key, value);
	return wrong;
}

static inline char *check_spec(const json_t *spec, struct strlist *names)
{
	const json_t *devices = json_object_get(spec, "devices");
	const json_t *sets = json_object_get(spec, "sharedCounters");
	char *wrong = NULL;

	UNLESS(json_array_size(devices) <= 128, "%zu devices in a slice", json_array_size(devices));
	UNLESS(!devices || !sets, "a slice with devices and counters");
	UNLESS(json_array_size(sets) <= 8, "%zu counter sets in a slice", json_array_size(sets));
	for (size_t i = 0; i < json_array_size(devices) && !wrong; i++)
		wrong = check_device_object(json_array_get(devices, i), names);
	return wrong;
}

/* The slices of this inventory, everything published that can be, with and without the mirror. */
static inline char *check_published(const struct inventory *inv)
{
	char *wrong = NULL;

	for (int mirror = 0; mirror < 2 && !wrong; mirror++) {
		struct publish_options options = {
			.driver = "twinrail.dev",
			.node_name = "node1",
			.kinds = publish_effective_kinds(inv, PUBLISH_CARD | PUBLISH_NIC |
								      PUBLISH_GPU | PUBLISH_PF),
			.mirror = mirror,
		};
		_cleanup_json_ json_t *specs = publish_specs(inv, &options);
		struct strlist names = { 0 };

		for (size_t i = 0; i < json_array_size(specs) && !wrong; i++)
			wrong = check_spec(json_array_get(specs, i), &names);
		strlist_done(&names);
	}
	return wrong;
}

#endif

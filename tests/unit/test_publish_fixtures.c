// SPDX-License-Identifier: Apache-2.0
/* Devices of every recorded machine against the API's limits; runs in the project's folder. */
#include "test_topo_machine.h"

#include <glob.h>

#include "base/json.h"
#include "publish/publish.h"

/* What changes while nothing is plugged in: topo has it, slices not. */
static const char *const volatile_words[] = { "link-degraded", "GT/s", "acsRedirect",
					      "iommuGroup" };

static size_t values_of(const json_t *attributes)
{
	const char *key, *type;
	json_t *value, *v;
	size_t n = 0;

	json_object_foreach((json_t *)(uintptr_t)attributes, key, value)
		json_object_foreach(value, type, v)
			n += json_is_array(v) ? json_array_size(v) : 1;
	return n;
}

/* Returns how many devices there are. */
static size_t check_slices(const char *machine, const json_t *specs)
{
	_cleanup_free_ char *text = json_text(specs);
	const json_t *spec, *device;
	size_t i, k, n = 0;

	for (i = 0; i < ARRAY_SIZE(volatile_words); i++)
		if (strstr(text, volatile_words[i]))
			fail_msg("%s: slices have %s", machine, volatile_words[i]);
	json_array_foreach(specs, i, spec) {
		json_array_foreach(json_object_get(spec, "devices"), k, device) {
			const json_t *attributes = json_object_get(device, "attributes");
			size_t entries = json_object_size(attributes) +
					 json_object_size(json_object_get(device, "capacity"));

			if (entries > 32 || values_of(attributes) > 48)
				fail_msg("%s: %s has %zu attributes and capacities, %zu values",
					 machine, json_path_string(device, "name"), entries,
					 values_of(attributes));
			n++;
		}
	}
	return n;
}

static struct hw_machine *machine_of(const char *file)
{
	char *dir = new_folder();
	struct hw_machine *machine = NULL;
	struct err err = { 0 };

	if (hw_snapshot_unpack(file, dir, &err) < 0 || hw_read(dir, &machine, &err) < 0)
		fail_msg("%s", err.msg);
	remove_tree(dir);
	return machine;
}

static size_t check_machine(const char *file, const struct hw_machine *machine,
			    enum pcie_root_policy policy, bool lists, bool mirror)
{
	struct topo_options to = { .pcie_root = policy,
				   .numa_lists = lists,
				   .nvlink_domain = "4b1bd4cd-0d4e-4ad5-9f0d-6e3a2c1ee0a5.32766" };
	struct publish_options po = {
		.driver = "twinrail.dev",
		.node_name = "node1",
		.kinds = PUBLISH_CARD | PUBLISH_NIC | PUBLISH_GPU | PUBLISH_PF,
		.mirror = mirror,
		.root_list = policy == PCIE_ROOT_LIST,
		.numa_list = lists,
	};
	_cleanup_(inventory_unrefp) struct inventory *inv = topo_build(machine, &to);
	_cleanup_json_ json_t *specs = publish_specs(inv, &po);

	return check_slices(file, specs);
}

static void test_every_machine_fits(void **state)
{
	glob_t found = { 0 };
	size_t devices = 0;

	(void)state;
	assert_int_equal(glob("tests/fixtures/*.machine", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *file = found.gl_pathv[i];
		struct hw_machine *machine = machine_of(file);

		devices += check_machine(file, machine, PCIE_ROOT_AUTO, false, true);
		check_machine(file, machine, PCIE_ROOT_LIST, true, true);
		check_machine(file, machine, PCIE_ROOT_FUNCTION, true, false);
		hw_free(machine);
	}
	assert_true(devices >= 2 * found.gl_pathc);
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_machine_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

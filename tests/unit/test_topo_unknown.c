// SPDX-License-Identifier: Apache-2.0
/* What is not known is absent, in all forms of output. */
#include "test_topo_machine.h"

#include "base/json.h"
#include "topo/output.h"

/* No text is empty, no number is -1: unknown facts are absent. */
static void assert_no_empty(const json_t *value)
{
	const char *key;
	size_t i;
	json_t *child;

	if (json_is_string(value))
		assert_true(*json_string_value(value));
	if (json_is_integer(value))
		assert_true(json_integer_value(value) >= 0);
	json_object_foreach((json_t *)(uintptr_t)value, key, child)
		assert_no_empty(child);
	json_array_foreach(value, i, child)
		assert_no_empty(child);
}

static void test_nothing_known(void **state)
{
	static const char *const attributes[] = { "fw_ver", "hca_type", "board_id", "node_guid",
						  "sys_image_guid" };
	struct buf b = { 0 };
	_cleanup_json_ json_t *json = NULL;
	_cleanup_free_ char *tree = NULL, *matrix = NULL;
	struct inventory *inv;

	(void)state;
	/* A Hyper-V path: no root; all attributes empty; no NUMA node. */
	add_gpu(&b, "LNXSYSTM:00/pci0101:00/0101:00:00.0", -1);
	add_nic(&b, "LNXSYSTM:00/pci0102:00/0102:00:00.0", 0x101e, -1, "mlx5_0", NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		buf_printf(&b,
			   "sys/devices/LNXSYSTM:00/pci0102:00/0102:00:00.0/infiniband/mlx5_0/"
			   "%s =\n",
			   attributes[i]);
	buf_str(&b,
		"sys/devices/LNXSYSTM:00/pci0102:00/0102:00:00.0/infiniband/mlx5_0/ports/1/rate "
		"! EINVAL\n"
		"sys/devices/LNXSYSTM:00/pci0102:00/0102:00:00.0/infiniband/mlx5_0/ports/1/"
		"state =\n");
	inv = build_machine(&b);
	assert_null(inv->nics[0].pcie_root);
	assert_null(inv->nics[0].function_pcie_root);
	assert_null(inv->gpus[0].pcie_root);
	assert_int_equal(inv->pairs[0].path, PATH_UNKNOWN);
	assert_true(has_warning(inv, "pcie-root-unknown"));
	json = topo_to_json(inv);
	assert_no_empty(json);
	assert_null(json_path(json, "node.name"));
	assert_null(json_path(json, "node.topologyClass"));
	tree = topo_to_tree(inv, true);
	assert_non_null(strstr(tree, "PCI root unknown"));
	assert_non_null(strstr(tree, "! pcie-root-unknown"));
	matrix = topo_to_matrix(inv);
	assert_non_null(strstr(matrix, "unknown"));
	inventory_unref(inv);
}

static void test_empty_machine(void **state)
{
	struct hw_machine *machine = read_machine("proc/version = x\n");
	struct inventory *inv = topo_build(machine, NULL), *second;
	_cleanup_json_ json_t *json = topo_to_json(inv);
	_cleanup_free_ char *tree = topo_to_tree(inv, false), *matrix = topo_to_matrix(inv);

	(void)state;
	hw_free(machine);
	assert_int_equal(inv->n_gpus + inv->n_nics + inv->n_cards + inv->n_pairs, 0);
	assert_true(has_warning(inv, "no-pci"));
	assert_non_null(strstr(tree, "! no-pci"));
	assert_non_null(matrix);
	assert_int_equal(json_array_size(json_object_get(json, "gpus")), 0);
	second = inventory_ref(inv);
	assert_null(inventory_unref(inv));
	assert_int_equal(second->refs, 1);
	assert_null(inventory_unref(second));
	assert_null(inventory_unref(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_known),
		cmocka_unit_test(test_empty_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

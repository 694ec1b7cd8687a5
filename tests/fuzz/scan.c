// SPDX-License-Identifier: Apache-2.0
/* From a recording to everything that is said about the machine: readers, topology, outputs. */
#include "fuzz/topo_check.h"
#include "hw/machine.h"
#include "tree.h"

static void check_machine(const struct hw_machine *machine, enum pcie_root_policy policy,
			  unsigned int output)
{
	struct topo_options options = { .pcie_root = policy, .node_name = "node1" };
	struct inventory *inv = topo_build(machine, &options);
	char *wrong = check_inventory(inv, 1U << output);

	CHECK(!wrong, "%s", wrong);
	inventory_unref(inv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *dir = xasprintf("%s/tree", tree_home());
	struct hw_machine *machine = NULL;
	struct err err = { 0 };

	/* What was unpacked before the fault is a machine, too. */
	if (tree_unpack(data, size, dir, &err) < 0 && access(dir, F_OK) < 0)
		return 0;
	CHECK(hw_read(dir, &machine, &err) == 0, "%s", err.msg);
	tree_remove(dir);
	check_machine(machine, size % 2 ? PCIE_ROOT_AUTO : PCIE_ROOT_FUNCTION, size / 2 % 5);
	hw_free(machine);
	return 0;
}

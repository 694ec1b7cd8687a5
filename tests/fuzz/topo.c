// SPDX-License-Identifier: Apache-2.0
/* The model: machines whose every fact comes from the input (topo_random.h). */
#include "fuzz.h"
#include "fuzz/topo_check.h"
#include "fuzz/topo_random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct chance chance = { .data = size ? data : (const uint8_t *)"", .len = size };
	struct topo_options options = { .node_name = "node1" };
	struct hw_machine *machine;
	struct inventory *inv;
	unsigned int output = below(&chance, 5);
	char *wrong;

	options.pcie_root = (enum pcie_root_policy)below(&chance, 3);
	options.own_known = below(&chance, 2);
	machine = machine_random(&chance);
	inv = topo_build(machine, &options);
	wrong = check_inventory(inv, 1U << output);
	CHECK(!wrong, "%s", wrong);
	inventory_unref(inv);
	hw_free(machine);
	return 0;
}

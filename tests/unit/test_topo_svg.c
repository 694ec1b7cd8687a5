// SPDX-License-Identifier: Apache-2.0
/* The picture; tests/fixtures/outputs looks at that of each recorded machine. */
#include "test_topo_machine.h"

#include "topo/output.h"

/* The legend names the rails that are there, however many are missing between them. */
static void test_legend(void **state)
{
	static const char *const links[] = { "rdma0", "rdma5" };
	_cleanup_free_ char *svg = NULL;
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		add_group(&b, i);
		free(add_group_nic(&b, i, "03:00.0", 0x1021, links[i], NULL));
	}
	inv = build_machine(&b);
	assert_int_equal(inv->rail_count, 2);
	svg = topo_to_svg(inv);
	assert_non_null(strstr(svg, ">rail 0</text>"));
	assert_null(strstr(svg, ">rail 1</text>"));
	assert_non_null(strstr(svg, ">rail 5</text>"));
	/* A warning is written out, and in the tool tip of what it is about. */
	assert_non_null(strstr(svg, " rail-gap: it is on rail 5"));
	assert_non_null(strstr(svg, "rail-gap: nic-0001-03-00-0: it is on rail 5"));
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_legend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

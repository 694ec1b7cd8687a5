// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bus_id.h"
#include "base/mem.h"

static void test_form(void **state)
{
	(void)state;
	assert_true(is_bus_id("0000:03:00.0"));
	assert_true(is_bus_id("10000:03:00.7"));
	assert_true(is_bus_id("10000000:03:1f.7"));
	assert_false(is_bus_id("100000000:03:00.7"));
	assert_false(is_bus_id("000:03:00.0"));
	assert_false(is_bus_id("0000:03:00"));
	assert_false(is_bus_id("0000:03:00.8"));
	assert_false(is_bus_id("0000:03:00.0x"));
	assert_false(is_bus_id("0000:0g:00.0"));
	assert_false(is_bus_id("0000:0A:00.0"));
	assert_false(is_bus_id("0000:003:00.0"));
	assert_false(is_bus_id(""));
	assert_true(is_standard_bus_id("0000:03:00.0"));
	assert_false(is_standard_bus_id("10000:03:00.0"));
	assert_false(is_standard_bus_id("0000:03:00."));
}

static void test_same_slot(void **state)
{
	(void)state;
	assert_true(bus_id_same_slot("0000:03:00.0", "0000:03:00.1"));
	assert_true(bus_id_same_slot("10000:03:00.7", "10000:03:00.7"));
	assert_false(bus_id_same_slot("0000:03:00.0", "0000:03:01.0"));
	assert_false(bus_id_same_slot("0000:03:00.0", "10000:03:00.0"));
	assert_false(bus_id_same_slot("0000:03:00.0", "0001:03:00.0"));
	assert_false(bus_id_same_slot("a.0", "a.1"));
	assert_false(bus_id_same_slot("", ""));
}

static void test_bus_id_cmp(void **state)
{
	static const char *const ascending[] = {
		"0000:03:00.0", "0000:03:00.1", "0000:03:01.0",	 "0000:0a:00.0",    "0000:a0:00.0",
		"0001:00:00.0", "0010:00:00.0", "10000:00:00.0", "00010001:00:00.0"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ascending); i++)
		for (size_t k = 0; k < ARRAY_SIZE(ascending); k++) {
			int r = bus_id_cmp(ascending[i], ascending[k]);

			assert_int_equal(r < 0 ? -1 : r > 0, i < k ? -1 : i > k);
		}
	assert_int_equal(bus_id_cmp("00000000:1B:00.0", "0000:1b:00.0"), 0);
	assert_true(bus_id_cmp("x", "y") < 0);
	assert_true(bus_id_cmp("", "") == 0);
	assert_true(bus_id_cmp("0000:03", "0000:03:00.0") != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_form),
		cmocka_unit_test(test_same_slot),
		cmocka_unit_test(test_bus_id_cmp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

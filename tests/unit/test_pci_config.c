// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hw/pci_config.h"

/* Configuration space that is put together; a copy of the right length goes to the parser. */
static unsigned char space[PCI_CONFIG_MAX];

static void start(void)
{
	memset(space, 0, sizeof(space));
	space[0] = 0x86;
	space[1] = 0x80;
}

/* Capability list with the Express capability of this device/port type at 0x60. */
static void add_express(unsigned int type)
{
	space[0x06] = 0x10;
	space[0x34] = 0x40;
	space[0x40] = 0x01; /* power management */
	space[0x41] = 0x60;
	space[0x60] = 0x10;
	space[0x62] = (unsigned char)(type << 4 | 2);
}

static void add_extended(unsigned int at, unsigned int id, unsigned int next)
{
	space[at] = (unsigned char)id;
	space[at + 1] = (unsigned char)(id >> 8);
	space[at + 2] = (unsigned char)(1 | (next & 0xf) << 4);
	space[at + 3] = (unsigned char)(next >> 4);
}

static int parse(size_t len, struct pci_config *ret)
{
	/* Without spare bytes, so that reading too far is seen by sanitizers. */
	void *copy = xmalloc(len);
	int r;

	memcpy(copy, space, len);
	r = pci_config_parse(copy, len, ret);
	free(copy);
	return r;
}

static void assert_parsed(size_t len, enum hw_port_type type, int acs, size_t wanted)
{
	struct pci_config cfg;

	assert_int_equal(parse(len, &cfg), 0);
	assert_int_equal(cfg.port_type, type);
	assert_int_equal(cfg.acs, acs);
	assert_int_equal(cfg.wanted, wanted);
}

static void test_short_and_broken(void **state)
{
	struct pci_config cfg = { .acs = 77 };

	(void)state;
	start();
	assert_int_equal(parse(0, &cfg), -EBADMSG);
	assert_int_equal(parse(63, &cfg), -EBADMSG);
	memset(space, 0xff, sizeof(space));
	assert_int_equal(parse(64, &cfg), -ENODEV);
	assert_int_equal(parse(4096, &cfg), -ENODEV);
	assert_int_equal(cfg.acs, 77);
}

static void test_port_types(void **state)
{
	static const struct {
		unsigned int type;
		enum hw_port_type expected;
	} cases[] = {
		{ 0, HW_PORT_OTHER },	   { 4, HW_PORT_ROOT },	 { 5, HW_PORT_UPSTREAM },
		{ 6, HW_PORT_DOWNSTREAM }, { 7, HW_PORT_OTHER }, { 15, HW_PORT_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		start();
		add_express(cases[i].type);
		assert_parsed(4096, cases[i].expected, 0, 0);
	}
	/* Conventional bridges: no capabilities, or others only; no ACS either. */
	start();
	assert_parsed(64, HW_PORT_OTHER, 0, 0);
	add_express(4);
	space[0x60] = 0x05;
	assert_parsed(256, HW_PORT_OTHER, 0, 0);
}

/* What is behind the end of the data is unknown, and asked for. */
static void test_cut(void **state)
{
	(void)state;
	start();
	add_express(6);
	assert_parsed(64, HW_PORT_UNKNOWN, HW_UNKNOWN, 0x44);
	assert_parsed(0x43, HW_PORT_UNKNOWN, HW_UNKNOWN, 0x44);
	assert_parsed(0x44, HW_PORT_UNKNOWN, HW_UNKNOWN, 0x64);
	assert_parsed(0x63, HW_PORT_UNKNOWN, HW_UNKNOWN, 0x64);
	assert_parsed(0x64, HW_PORT_DOWNSTREAM, HW_UNKNOWN, 0x104);
	assert_parsed(0x103, HW_PORT_DOWNSTREAM, HW_UNKNOWN, 0x104);
	assert_parsed(0x104, HW_PORT_DOWNSTREAM, 0, 0);
	add_extended(0x100, 0x0001, 0x148);
	assert_parsed(0x104, HW_PORT_DOWNSTREAM, HW_UNKNOWN, 0x14c);
	add_extended(0x148, 0x000d, 0);
	space[0x14e] = 0x5d;
	assert_parsed(0x14c, HW_PORT_DOWNSTREAM, HW_UNKNOWN, 0x150);
	assert_parsed(0x150, HW_PORT_DOWNSTREAM, 0x5d, 0);
	assert_parsed(4096, HW_PORT_DOWNSTREAM, 0x5d, 0);
}

static void test_acs(void **state)
{
	(void)state;
	start();
	add_express(4);
	add_extended(0x100, 0x000d, 0x200);
	space[0x104] = 0xff; /* what it could, not what it does */
	space[0x106] = 0x80 | HW_ACS_SOURCE_VALIDATION | HW_ACS_P2P_REQUEST_REDIRECT;
	assert_parsed(4096, HW_PORT_ROOT, 0x05, 0);
	/* Other capabilities only. */
	add_extended(0x100, 0x0001, 0x200);
	add_extended(0x200, 0x0019, 0);
	assert_parsed(4096, HW_PORT_ROOT, 0, 0);
	/* No extended space reaches this port: all ones. */
	memset(space + 0x100, 0xff, sizeof(space) - 0x100);
	assert_parsed(4096, HW_PORT_ROOT, 0, 0);
}

/* Lists that run in a circle or where none may be end, and say nothing. */
static void test_lists_end(void **state)
{
	(void)state;
	start();
	space[0x06] = 0x10;
	space[0x34] = 0x40;
	space[0x41] = 0x40;
	assert_parsed(4096, HW_PORT_UNKNOWN, HW_UNKNOWN, 0);
	space[0x41] = 0x10; /* into the header */
	assert_parsed(4096, HW_PORT_UNKNOWN, HW_UNKNOWN, 0);
	start();
	add_express(5);
	add_extended(0x100, 0x0001, 0x140);
	add_extended(0x140, 0x0001, 0x100);
	assert_parsed(4096, HW_PORT_UPSTREAM, HW_UNKNOWN, 0);
	add_extended(0x140, 0x0001, 0x80); /* back into the first 256 bytes */
	assert_parsed(4096, HW_PORT_UPSTREAM, HW_UNKNOWN, 0);
	add_extended(0x140, 0x0001, 0xffc); /* the control register would be behind the end */
	add_extended(0xffc, 0x000d, 0);
	assert_parsed(4096, HW_PORT_UPSTREAM, HW_UNKNOWN, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_and_broken),
		cmocka_unit_test(test_port_types),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_acs),
		cmocka_unit_test(test_lists_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

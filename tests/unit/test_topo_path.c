// SPDX-License-Identifier: Apache-2.0
#include "test_topo_machine.h"

#include "topo/path.h"

static void assert_root(const char *bus_id, const char *path, const char *expected)
{
	_cleanup_free_ char *root = pcie_root_of(bus_id, path);

	assert_string_or_null(root, expected);
}

static void test_pcie_root(void **state)
{
	(void)state;
	assert_root("0000:3b:00.0", "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0",
		    "pci0000:3a");
	assert_root("0000:00:1f.2", "/sys/devices/pci0000:00/0000:00:1f.2", "pci0000:00");
	assert_root("0009:06:00.0",
		    "/sys/devices/pci0009:00/0009:00:00.0/0009:01:00.0/0009:06:00.0", "pci0009:00");
	/* Not a PCI root complex: Hyper-V, device tree, a driver's own bus. */
	assert_root("0101:00:00.0",
		    "/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00/x/pci0101:00/"
		    "0101:00:00.0",
		    NULL);
	assert_root("0000:01:00.0", "/sys/devices/platform/soc/pci0000:00/0000:01:00.0", NULL);
	/* Domains of more than four digits (VMD), upper case, and what is no address. */
	assert_root("10000:01:00.0",
		    "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:01:00.0", NULL);
	assert_root("0000:3B:00.0", "/sys/devices/pci0000:3a/0000:3B:00.0", NULL);
	assert_root("3b:00.0", "/sys/devices/pci0000:3a/3b:00.0", NULL);
	assert_root("", "/sys/devices/pci0000:3a/", NULL);
	/* The link leads to another function, to itself, or nowhere. */
	assert_root("0000:3b:00.0", "/sys/devices/pci0000:3a/0000:3b:00.1", NULL);
	assert_root("0000:3b:00.0", "/sys/bus/pci/devices/0000:3b:00.0", NULL);
	assert_root("0000:3b:00.0", NULL, NULL);
	assert_root("0000:3b:00.0", "/sys/devices/pci", NULL);
	/* The library asks for nothing more than the beginning. */
	assert_root("0000:3b:00.0", "/sys/devices/pci-x/0000:3b:00.0", "pci-x");
}

/* A machine with functions at these places; a negative type stands for "not read". */
static struct hw_machine *machine_of(const char *const *paths, size_t n)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	for (size_t i = 0; i < n; i++)
		add_bridge(&b, paths[i], 0x1000, 0xc030);
	machine = read_machine(b.data);
	buf_done(&b);
	return machine;
}

#define ROOT "pci0000:00/0000:00:01.0"
#define SWITCH ROOT "/0000:01:00.0"
#define SECOND SWITCH "/0000:02:01.0/0000:04:00.0"

static const char *const paths[] = {
	ROOT, SWITCH, SWITCH "/0000:02:00.0", SWITCH "/0000:02:01.0", SECOND,
	SECOND "/0000:05:00.0",
	/* the devices: */
	SWITCH "/0000:02:00.0/0000:03:00.0", /* below the first switch */
	SWITCH "/0000:02:00.0/0000:03:00.1", /* another function there */
	SECOND "/0000:05:00.0/0000:06:00.0", /* below the second switch */
	"pci0000:00/0000:00:02.0/0000:07:00.0", /* another root port */
	"pci0000:00/0000:00:03.0", /* on the root bus itself */
	"pci0000:80/0000:80:01.0/0000:81:00.0", /* another root complex */
	ROOT "/0000:01:00.1", /* below the root port, no switch */
	"platform/x/pci0002:00/0002:00:00.0/0002:01:00.0", /* not below /sys/devices/pci */
};

static void check(struct hw_machine *m, const char *a, const char *b, enum path_class expected,
		  int expected_hops)
{
	struct place x, y;
	int hops;

	place_init(&x, m, hw_find_pci(m, a));
	place_init(&y, m, hw_find_pci(m, b));
	assert_int_equal(path_between(&x, &y, &hops), expected);
	assert_int_equal(hops, expected_hops);
	assert_int_equal(path_between(&y, &x, &hops), expected);
	assert_int_equal(hops, expected_hops);
	place_done(&x);
	place_done(&y);
}

static void test_path_class(void **state)
{
	struct hw_machine *m = machine_of(paths, ARRAY_SIZE(paths));

	(void)state;
	check(m, "0000:03:00.0", "0000:03:00.1", PATH_PIX, 1);
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_PXB, 5);
	check(m, "0000:03:00.0", "0000:07:00.0", PATH_PHB, 4);
	check(m, "0000:03:00.0", "0000:00:03.0", PATH_PHB, 3);
	check(m, "0000:01:00.1", "0000:03:00.0", PATH_PHB, 3);
	check(m, "0000:03:00.0", "0000:81:00.0", PATH_NODE, TOPO_UNKNOWN);
	check(m, "0002:01:00.0", "0000:81:00.0", PATH_NODE, TOPO_UNKNOWN);
	m->pci[0].numa_node = 0;
	for (size_t i = 0; i < m->n_pci; i++)
		m->pci[i].numa_node = starts_with(m->pci[i].bus_id, "0000:8") ? 1 : 0;
	check(m, "0000:03:00.0", "0000:81:00.0", PATH_SYS, TOPO_UNKNOWN);
	for (size_t i = 0; i < m->n_pci; i++)
		m->pci[i].numa_node = HW_UNKNOWN;
	check(m, "0000:03:00.0", "0000:81:00.0", PATH_UNKNOWN, TOPO_UNKNOWN);
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_PXB, 5);
	hw_free(m);
}

/* What the configuration space says is better than the position. */
static void test_port_types(void **state)
{
	struct hw_machine *m = machine_of(paths, ARRAY_SIZE(paths));
	struct place place;

	(void)state;
	place_init(&place, m, hw_find_pci(m, "0000:06:00.0"));
	assert_string_equal(place_switch(&place), "0000:01:00.0");
	assert_int_equal(place.n, 5);
	place_done(&place);
	for (size_t i = 0; i < m->n_pci; i++)
		m->pci[i].port_type = HW_PORT_OTHER;
	place_init(&place, m, hw_find_pci(m, "0000:06:00.0"));
	assert_null(place_switch(&place));
	place_done(&place);
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_PHB, 5);
	hw_free(m);
}

/* Nobody may read the configuration space: no switch and no near path is made up. */
static void test_unknown_types(void **state)
{
	struct hw_machine *m = machine_of(paths, ARRAY_SIZE(paths));
	struct place place;

	(void)state;
	for (size_t i = 0; i < m->n_pci; i++)
		m->pci[i].port_type = HW_PORT_UNKNOWN;
	place_init(&place, m, hw_find_pci(m, "0000:06:00.0"));
	assert_null(place_switch(&place));
	assert_true(place_is_unsure(&place));
	place_done(&place);
	check(m, "0000:03:00.0", "0000:03:00.1", PATH_UNKNOWN, TOPO_UNKNOWN);
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_UNKNOWN, TOPO_UNKNOWN);
	/* Roots are known without it. */
	check(m, "0000:01:00.1", "0000:03:00.0", PATH_PHB, 3);
	check(m, "0000:03:00.0", "0000:07:00.0", PATH_PHB, 4);
	check(m, "0000:03:00.0", "0000:81:00.0", PATH_NODE, TOPO_UNKNOWN);
	/* One bridge below the common switch may be another switch, unless one is known there. */
	for (size_t i = 0; i < m->n_pci; i++)
		if (streq(m->pci[i].bus_id, "0000:01:00.0"))
			m->pci[i].port_type = HW_PORT_UPSTREAM;
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_UNKNOWN, TOPO_UNKNOWN);
	/* Also when all is known of one side. */
	for (size_t i = 0; i < m->n_pci; i++)
		if (streq(m->pci[i].bus_id, "0000:02:00.0"))
			m->pci[i].port_type = HW_PORT_DOWNSTREAM;
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_UNKNOWN, TOPO_UNKNOWN);
	for (size_t i = 0; i < m->n_pci; i++)
		if (streq(m->pci[i].bus_id, "0000:04:00.0"))
			m->pci[i].port_type = HW_PORT_UPSTREAM;
	check(m, "0000:03:00.0", "0000:06:00.0", PATH_PXB, 5);
	hw_free(m);
}

static void test_two_devices_per_switch(void **state)
{
	static const char *const two[] = {
		ROOT,
		SWITCH,
		SWITCH "/0000:02:00.0",
		SWITCH "/0000:02:01.0",
		SWITCH "/0000:02:00.0/0000:03:00.0",
		SWITCH "/0000:02:01.0/0000:04:00.0",
	};
	struct hw_machine *m = machine_of(two, ARRAY_SIZE(two));

	(void)state;
	check(m, "0000:03:00.0", "0000:04:00.0", PATH_PIX, 3);
	hw_free(m);
}

static void test_unknown_place(void **state)
{
	struct hw_machine machine = { 0 };
	struct hw_pci pci = { .bus_id = (char[]){ "0000:03:00.0" } };
	const char *const wrong[] = { NULL, "/sys/bus/pci/devices/0000:03:00.0", "/",
				      "/sys/devices/pci0000:00/0000:04:00.0", "/0000:03:00.0" };
	struct buf deep = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_free_ char *path = xstrdup_null(wrong[i]);
		struct place place;

		pci.path = path;
		place_init(&place, &machine, &pci);
		assert_null(place.complex);
		assert_null(place_switch(&place));
		place_done(&place);
	}
	buf_str(&deep, "/sys/devices/pci0000:00");
	for (int i = 0; i < 100; i++)
		buf_str(&deep, "/0000:01:00.0");
	buf_str(&deep, "/0000:03:00.0");
	pci.path = deep.data;
	{
		struct place place;

		place_init(&place, &machine, &pci);
		assert_null(place.complex);
		place_done(&place);
	}
	buf_done(&deep);
}

static void test_names(void **state)
{
	_cleanup_free_ char *name = device_name("gpu", "0009:06:00.0");

	(void)state;
	assert_string_equal(name, "gpu-0009-06-00-0");
	assert_string_equal(path_class_name(PATH_PXB), "PXB");
	assert_string_equal(path_class_name(PATH_UNKNOWN), "unknown");
	assert_string_equal(topo_role_name(ROLE_STORAGE), "storage");
	assert_string_equal(topo_class_name(CLASS_DATA_DIRECT), "data-direct");
	assert_string_equal(topo_class_name(CLASS_FLAT), "flat");
	assert_string_equal(tri_name(TRI_SUPPORTED), "supported");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pcie_root),
		cmocka_unit_test(test_path_class),
		cmocka_unit_test(test_port_types),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_two_devices_per_switch),
		cmocka_unit_test(test_unknown_place),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

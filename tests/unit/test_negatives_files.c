// SPDX-License-Identifier: Apache-2.0
/*
 * Files that fail, lie, vanish or are too many: the readers go on, what can be read is there, and
 * nothing that cannot be read is made up.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "fuzz/topo_check.h"
#include "test_topo_machine.h"

#define FIRST "0000:03:00.0"
#define OTHER "0001:03:00.0"

static struct inventory *inventory_at(const char *dir)
{
	struct hw_machine *machine = NULL;
	struct err err = { 0 };
	struct inventory *inv;
	char *wrong;

	if (hw_read(dir, &machine, &err) < 0)
		fail_msg("%s", err.msg);
	inv = topo_build(machine, NULL);
	hw_free(machine);
	wrong = check_inventory(inv, CHECK_ALL);
	if (wrong)
		fail_msg("%s", wrong);
	return inv;
}

static struct inventory *inventory_of(const char *recording)
{
	char *dir = unpack(recording);
	struct inventory *inv = inventory_at(dir);

	remove_tree(dir);
	return inv;
}

/* Two groups of a GPU and a NIC, with every kind of file that the readers look at. */
static char *machine_text(void)
{
	struct buf b = { 0 };

	for (unsigned int n = 0; n < 2; n++) {
		_cleanup_free_ char *netdev = xasprintf("eth%u", n + 1);
		_cleanup_free_ char *gpu = group_path(n, 1, "04:00.0"), *path = NULL;

		add_group(&b, n);
		add_silent_gpu(&b, gpu, 0);
		path = add_group_nic(&b, n, "03:00.0", 0x1021, netdev, "0000:5e03:0000:0001");
		add_vpd(&b, path, n ? "SN2" : "SN1", "V3");
		buf_printf(
			&b,
			"sys/devices/%s/sriov_numvfs = 0\n"
			"sys/devices/%s/max_link_speed = 32.0 GT/s PCIe\n"
			"sys/devices/%s/max_link_width = 16\n"
			"sys/devices/%s/net/%s/operstate = up\n"
			"sys/devices/%s/net/%s/phys_port_name = p0\n"
			"sys/devices/%s/net/%s/uevent = INTERFACE=x\n"
			"sys/devices/%s/infiniband/rocep%us03/fw_ver = 28.43.2026\n"
			"sys/devices/%s/infiniband/rocep%us03/ports/1/state = 4: ACTIVE\n"
			"sys/devices/%s/infiniband/rocep%us03/ports/1/rate = 400 Gb/sec (4X NDR)\n"
			"sys/devices/%s/infiniband/rocep%us03/ports/1/link_layer = Ethernet\n"
			"sys/devices/%s/infiniband/rocep%us03/ports/1/gids/3 = fd20::1\n"
			"sys/devices/%s/infiniband/rocep%us03/ports/1/gid_attrs/types/3 = RoCE v2\n"
			"proc/driver/nvidia/gpus/%04x:04:00.0/information = Model: H100\\n"
			"GPU UUID: GPU-%u\\nDevice Minor: %u\n",
			path, path, path, path, netdev, path, netdev, path, netdev, path, n, path,
			n, path, n, path, n, path, n, path, n, n, n, n);
	}
	buf_str(&b, "twinrail/routes = default via 10.0.0.1 dev eth9\n"
		    "sys/class/dmi/id/sys_vendor = Vendor\n"
		    "sys/module/nvidia/version = 580.95.5\n"
		    "sys/devices/system/node/node0/distance = 10 21\n"
		    "proc/cpuinfo = processor: 0\\nflags: fpu\n");
	return buf_take(&b);
}

/* The device that a line of the recording is about is not asked for more than being harmless. */
static void assert_others_unharmed(const struct inventory *inv, const char *line)
{
	if (strstr(line, "0001:")) {
		assert_string_equal(nic_of(inv, FIRST)->netdev, "eth1");
		assert_non_null(inventory_gpu(inv, "0000:04:00.0"));
	} else {
		assert_string_equal(nic_of(inv, OTHER)->netdev, "eth2");
		assert_non_null(inventory_gpu(inv, "0001:04:00.0"));
		assert_string_equal(nic_of(inv, OTHER)->pcie_root, "pci0001:00");
	}
}

static uint64_t steps(void)
{
	const char *few = getenv("TWINRAIL_TEST_SEEDS"); /* valgrind */

	return few ? 7 : 1;
}

/* Each file of the machine in turn becomes "operator value"; links stay. */
static void spoil_each(const char *operator_and_value)
{
	_cleanup_free_ char *text = machine_text();
	struct strlist lines = { 0 };

	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n; i += steps()) {
		struct buf b = { 0 };
		char *space = strchr(lines.items[i], ' ');
		struct inventory *inv;

		if (starts_with(space, " ->") || starts_with(lines.items[i], "twinrail/"))
			continue;
		for (size_t k = 0; k < lines.n; k++)
			if (k != i)
				buf_printf(&b, "%s\n", lines.items[k]);
		buf_printf(&b, "%.*s %s\n", (int)(space - lines.items[i]), lines.items[i],
			   operator_and_value);
		inv = inventory_of(b.data);
		assert_others_unharmed(inv, lines.items[i]);
		inventory_unref(inv);
		buf_done(&b);
	}
	strlist_done(&lines);
}

static void test_each_file_fails(void **state)
{
	(void)state;
	spoil_each("! EINVAL");
	spoil_each("! EIO");
	spoil_each("! ENODEV");
	spoil_each("! EOPNOTSUPP");
}

static void test_each_file_is_empty_or_no_text(void **state)
{
	(void)state;
	spoil_each("=");
	spoil_each("= \xff\xfe\x80");
	spoil_each(": 00");
	spoil_each("= \\n\\n\x1b[2J\x07");
}

static void test_each_value_has_100_kilobytes(void **state)
{
	_cleanup_free_ char *value = xcalloc(100003, 1);

	(void)state;
	memset(value, '7', 100002);
	value[0] = '=';
	value[1] = ' ';
	spoil_each(value);
}

/* Each link in turn leads nowhere, to itself, or into a circle. */
static void test_each_link_dangles_or_loops(void **state)
{
	static const char *const targets[] = { "nowhere", "../../../devices/nowhere",
					       ".",	  "..",
					       "loop-a",  NULL };
	_cleanup_free_ char *text = machine_text();
	struct strlist lines = { 0 };

	(void)state;
	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n; i += steps()) {
		char *arrow = strstr(lines.items[i], " -> ");

		for (size_t t = 0; arrow && t < ARRAY_SIZE(targets); t++) {
			struct buf b = { 0 };
			int n = (int)(arrow - lines.items[i]);
			struct inventory *inv;

			for (size_t k = 0; k < lines.n; k++)
				if (k != i)
					buf_printf(&b, "%s\n", lines.items[k]);
			/* NULL: to itself */
			buf_printf(&b, "%.*s -> %s\n", n, lines.items[i],
				   targets[t] ? targets[t] : strrchr(arrow, '/') + 1);
			buf_str(&b, "sys/bus/pci/devices/loop-a -> loop-b\n"
				    "sys/bus/pci/devices/loop-b -> loop-a\n"
				    "sys/class/net/loop-a -> loop-b\n"
				    "sys/class/net/loop-b -> loop-a\n");
			inv = inventory_of(b.data);
			/* What stood there is not known any more, and not made up. */
			if (strstr(lines.items[i], "bus/pci/devices/" FIRST))
				assert_null(inventory_nic(inv, FIRST));
			inventory_unref(inv);
			buf_done(&b);
		}
	}
	strlist_done(&lines);
}

/* Links that stand on each other in a circle have no bottom. */
static void test_circle_of_links(void **state)
{
	_cleanup_free_ char *text = machine_text();
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	buf_str(&b, text);
	buf_str(&b, "sys/class/net/v1 -> ../../devices/virtual/net/v1\n"
		    "sys/devices/virtual/net/v1/uevent = DEVTYPE=vlan\n"
		    "sys/devices/virtual/net/v1/lower_v2 -> ../v2\n"
		    "sys/devices/virtual/net/v1/master -> ../v2\n"
		    "sys/class/net/v2 -> ../../devices/virtual/net/v2\n"
		    "sys/devices/virtual/net/v2/uevent = DEVTYPE=bond\n"
		    "sys/devices/virtual/net/v2/lower_v1 -> ../v1\n"
		    "sys/devices/virtual/net/v2/master -> ../v1\n"
		    "sys/devices/virtual/net/v2/lower_v2 -> ../v2\n");
	inv = inventory_of(b.data);
	assert_non_null(inventory_nic(inv, FIRST));
	inventory_unref(inv);
	buf_done(&b);
}

struct vandal {
	const char *dir;
	atomic_bool stop;
	unsigned long rounds;
};

/* Takes a NIC out and puts it back, as a hot-plug slot does, while others look. */
static void *take_out_and_put_back(void *arg)
{
	static const char *const moved[] = {
		"sys/bus/pci/devices/0000:03:00.0", "sys/class/net/eth1",
		"sys/class/infiniband/rocep0s03",
		"sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0/0000:03:00.0"
	};
	struct vandal *v = arg;

	while (!atomic_load(&v->stop)) {
		for (size_t i = 0; i < 2 * ARRAY_SIZE(moved); i++) {
			const char *name = moved[i % ARRAY_SIZE(moved)];
			_cleanup_free_ char *here = xasprintf("%s/%s", v->dir, name);
			_cleanup_free_ char *gone =
				xasprintf("%s/gone%zu", v->dir, i % ARRAY_SIZE(moved));

			if (i < ARRAY_SIZE(moved))
				rename(here, gone);
			else
				rename(gone, here);
		}
		v->rounds++;
	}
	return NULL;
}

static void test_device_vanishes_during_the_scan(void **state)
{
	_cleanup_free_ char *text = machine_text();
	char *dir = unpack(text);
	struct vandal v = { .dir = dir };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, take_out_and_put_back, &v), 0);
	for (uint64_t i = 0; i < 300 / steps(); i++) {
		struct inventory *inv = inventory_at(dir);

		assert_string_equal(nic_of(inv, OTHER)->netdev, "eth2");
		assert_int_equal(nic_of(inv, OTHER)->n_ports, 1);
		inventory_unref(inv);
	}
	atomic_store(&v.stop, true);
	pthread_join(thread, NULL);
	assert_true(v.rounds > 0);
	remove_tree(dir);
}

/* Names in directories that are no text, or far too long. */
static void test_names_of_devices(void **state)
{
	_cleanup_free_ char *text = machine_text();
	_cleanup_free_ char *name = xcalloc(256, 1);
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	memset(name, 'n', 255);
	buf_str(&b, text);
	buf_printf(&b,
		   "sys/class/net/%s -> ../../devices/virtual/net/x\n"
		   "sys/class/net/\xff -> ../../devices/virtual/net/x\n"
		   "sys/class/net/\x1b[31m -> ../../devices/virtual/net/x\n"
		   "sys/class/infiniband/%s/node_type = 1: CA\n"
		   "sys/class/infiniband/\xff\xff/node_type = 1: CA\n"
		   "sys/bus/pci/devices/\xff\xff/class = 0x020000\n"
		   "sys/bus/pci/devices/%s/class = 0x020000\n"
		   "sys/bus/pci/devices/0000:03:00.8/class = 0x020000\n"
		   "sys/bus/pci/devices/0000:0G:00.0/class = 0x020000\n",
		   name, name, name);
	inv = inventory_of(b.data);
	assert_int_equal(inv->n_nics, 2);
	assert_true(has_warning(inv, "function-unreadable"));
	inventory_unref(inv);
	buf_done(&b);
}

/* One PF with many VFs, read from files. */
static void test_1024_vfs(void **state)
{
	static const char above[] = "pci0000:00/0000:00:01.0";
	struct buf b = { 0 };
	struct inventory *inv;
	size_t n_vfs = 1024 / steps();

	(void)state;
	add_bridge(&b, above, 0x8086, 1);
	add_nic(&b, "pci0000:00/0000:00:01.0/0000:01:00.0", 0x1021, 0, "mlx5_0", "eth1", NULL);
	buf_printf(&b, "sys/devices/%s/0000:01:00.0/sriov_numvfs = %zu\n", above, n_vfs);
	for (size_t i = 0; i < n_vfs; i++) {
		_cleanup_free_ char *bus_id =
			xasprintf("0000:%02zx:%02zx.%zx", 2 + i / 256, i / 8 % 32, i % 8);
		_cleanup_free_ char *path = xasprintf("%s/%s", above, bus_id);
		_cleanup_free_ char *rdma = xasprintf("mlx5_%zu", i + 1);

		add_nic(&b, path, 0x101e, 0, rdma, NULL, NULL);
		buf_printf(&b, "sys/devices/%s/physfn -> ../0000:01:00.0\n", path);
	}
	inv = inventory_of(b.data);
	buf_done(&b);
	assert_int_equal(inv->n_nics, n_vfs + 1);
	for (size_t i = 1; i < inv->n_nics; i++) {
		assert_true(inv->nics[i].is_vf && !inv->nics[i].standalone);
		assert_string_equal(inv->nics[i].pf_bus_id, "0000:01:00.0");
	}
	inventory_unref(inv);
}

/* Each with a root complex of its own: none is another one's. */
static void test_64_domains(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int n = 0; n < 64; n++) {
		add_group(&b, n);
		add_group_gpu(&b, n, "04:00.0");
		free(add_group_nic(&b, n, "03:00.0", 0x1021, NULL, NULL));
	}
	inv = inventory_of(b.data);
	buf_done(&b);
	assert_int_equal(inv->n_gpus, 64);
	assert_int_equal(inv->n_nics, 64);
	for (size_t i = 0; i < 64; i++) {
		assert_string_equal(inv->nics[i].pcie_root, inv->gpus[i].pcie_root);
		for (size_t k = 0; k < 64; k++)
			assert_int_equal(inventory_pair(inv, i, k)->best, i == k);
	}
	inventory_unref(inv);
}

/* What is meant for terminals has nothing that a terminal obeys. */
static void test_printable(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ "", "" },
		{ "a\tb\x07"
		  "c\x7f",
		  "a?b?c?" },
		{ "two\nlines", "two\nlines" },
		{ "\033[1mbold\033[0m \033[38;5;1m", "\033[1mbold\033[0m \033[38;5;1m" },
		{ "\033[2J\033]0;title\007\033", "?[2J?]0;title??" },
		{ "\xc2\x9b"
		  "2J \xc2\xa0\xe2\x94\x80",
		  "??2J \xc2\xa0\xe2\x94\x80" },
		{ "\xff\xe2\x94 \xf0\x9f\x98\x80\xc3", "??? \xf0\x9f\x98\x80?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = xstrdup(cases[i].text);

		assert_string_equal(str_printable(text, true), cases[i].expected);
	}
	{
		char red[] = "\033[31m!";

		assert_string_equal(str_printable(red, false), "?[31m!");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_file_fails),
		cmocka_unit_test(test_each_file_is_empty_or_no_text),
		cmocka_unit_test(test_each_value_has_100_kilobytes),
		cmocka_unit_test(test_each_link_dangles_or_loops),
		cmocka_unit_test(test_circle_of_links),
		cmocka_unit_test(test_device_vanishes_during_the_scan),
		cmocka_unit_test(test_names_of_devices),
		cmocka_unit_test(test_1024_vfs),
		cmocka_unit_test(test_64_domains),
		cmocka_unit_test(test_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

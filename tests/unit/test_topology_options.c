// SPDX-License-Identifier: Apache-2.0
/* What the commands are told about a machine. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/topology_options.h"

static void assert_refused(struct topology_options t, const char *expected)
{
	struct err err = { 0 };

	assert_int_equal(topology_check(&t, &err), -EINVAL);
	if (!strstr(err.msg, expected))
		fail_msg("\"%s\" lacks \"%s\"", err.msg, expected);
	topology_options_done(&t);
}

static void test_refused(void **state)
{
	(void)state;
	assert_refused((struct topology_options){ .nic_include = "eth0,role=x" },
		       "--nic-include: \"role=x\" names no role");
	assert_refused((struct topology_options){ .nic_exclude = "15b3:1021,1:2:3:4" },
		       "--nic-exclude: \"1:2:3:4\" is no PCI address");
	assert_refused((struct topology_options){ .nic_exclude = "eth0, eth1" },
		       "--nic-exclude: \" eth1\" cannot be");
	assert_refused((struct topology_options){ .nic_include = "," },
		       "--nic-include: \",\" has 0 elements");
	assert_refused((struct topology_options){ .node_ip = "10.0.0.1,10.0.0.0/8" },
		       "--node-ip: \"10.0.0.0/8\" is no IP address");
	assert_refused((struct topology_options){ .node_ip = "node1" },
		       "--node-ip: \"node1\" is no IP address");
	assert_refused((struct topology_options){ .nvlink_domain = "a b" },
		       "--nvlink-domain: \"a b\" is no domain; give ClusterUUID.CliqueID");
	assert_refused((struct topology_options){ .nvlink_domain =
							  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
							  "aaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
		       "--nvlink-domain");
}

static void test_values(void **state)
{
	struct topology_options t = {
		.pcie_root = PCIE_ROOT_LIST,
		.numa = 1,
		.nic_include = "eth*,15b3:1021",
		.nic_exclude = "role=storage",
		.nvlink_domain = "8f8c0e6e-0f0a-4c0b-9b0e-3c1f4f3c2b1a.32766",
		.node_ip = "10.0.0.1,fd00::1",
	};
	struct topo_options to = { .node_name = "n" };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topology_check(&t, &err), 0);
	assert_int_equal(topology_check(&t, &err), 0); /* once more: nothing comes twice */
	assert_int_equal(topology_read_platforms(&t, &err), 0);
	topology_set(&t, &to);
	assert_int_equal(to.pcie_root, PCIE_ROOT_LIST);
	assert_true(to.numa_lists);
	assert_int_equal(to.include->n, 2);
	assert_string_equal(to.include->items[1], "15b3:1021");
	assert_int_equal(to.exclude->n, 1);
	assert_string_equal(to.nvlink_domain, t.nvlink_domain);
	assert_int_equal(to.node_addresses->n, 2);
	assert_string_equal(to.node_name, "n");
	assert_null(to.platforms);
	assert_null(to.platforms_error);
	topology_options_done(&t);
}

static void add_told(const char *option, const char *pattern, void *data)
{
	buf_printf(data, "%s %s;", option, pattern);
}

static void test_unused_patterns(void **state)
{
	char first[] = "0000:03:00.0", second[] = "0000:04:00.0", link[] = "eth0";
	struct topo_nic nics[] = {
		{ .bus_id = first, .vendor_id = 0x15b3, .device_id = 0x1021, .netdev = link },
		{ .bus_id = second, .vendor_id = 0x15b3, .device_id = 0x1023, .role = ROLE_RAIL },
	};
	struct inventory inv = { .nics = nics, .n_nics = ARRAY_SIZE(nics) };
	struct topology_options t = {
		.nic_include = "eth*,eth1,15b3:1021",
		.nic_exclude = "0000:0?:00.0,0000:05:*,role=rail,role=storage,15B3:1019",
	};
	struct topo_options to = { 0 };
	struct buf told = { 0 };
	struct err err = { 0 };

	(void)state;
	topology_unused_patterns(&to, &inv, add_told, &told);
	assert_int_equal(told.len, 0);
	assert_int_equal(topology_check(&t, &err), 0);
	topology_set(&t, &to);
	topology_unused_patterns(&to, &inv, add_told, &told);
	assert_non_null(told.data);
	assert_string_equal(told.data, "--nic-include eth1;--nic-exclude 0000:05:*;"
				       "--nic-exclude role=storage;--nic-exclude 15B3:1019;");
	buf_done(&told);
	topology_options_done(&t);
}

/* Empty texts, as a chart gives them for what is not set. */
static void test_nothing(void **state)
{
	struct topology_options t = { .nic_include = "",
				      .nic_exclude = "",
				      .platform_file = "",
				      .nvlink_domain = "",
				      .node_ip = "" };
	struct topo_options to = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(topology_check(&t, &err), 0);
	assert_int_equal(topology_read_platforms(&t, &err), 0);
	topology_set(&t, &to);
	assert_int_equal(to.include->n, 0);
	assert_null(to.nvlink_domain);
	assert_null(to.node_addresses);
	topology_options_done(&t);
}

static void write_file(const char *path, const char *text)
{
	struct err err = { 0 };

	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, 0, &err), 0);
}

/* What a good file said stays until another good one says something else. */
static void test_file_changes(void **state)
{
	static const char good[] = "platforms:\n- {name: a, match: {virtual: true}}\n";
	char path[] = "/tmp/twinrail-test.XXXXXX";
	struct topology_options t = { .platform_file = path };
	struct topo_options to = { 0 };
	struct err err = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	write_file(path, "platforms:\n- {name: A}\n");
	assert_int_equal(topology_read_platforms(&t, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "--platform-file: /tmp/"));
	assert_non_null(strstr(err.msg, " line 2: name: is no name"));
	topology_set(&t, &to);
	assert_null(to.platforms);
	assert_string_equal(to.platforms_error, err.msg);

	write_file(path, good);
	assert_int_equal(topology_read_platforms(&t, NULL), 1);
	assert_int_equal(topology_read_platforms(&t, NULL), 0);
	topology_set(&t, &to);
	assert_string_equal(to.platforms->items[0].name, "a");
	assert_null(to.platforms_error);

	assert_int_equal(unlink(path), 0);
	assert_int_equal(topology_read_platforms(&t, &err), -ENOENT);
	topology_set(&t, &to);
	assert_string_equal(to.platforms->items[0].name, "a");
	assert_non_null(strstr(to.platforms_error, "No such file"));

	write_file(path, good); /* the same as before, but the error is over */
	assert_int_equal(topology_read_platforms(&t, NULL), 1);
	write_file(path, "platforms:\n- {name: b, match: {virtual: true}}\n");
	assert_int_equal(topology_read_platforms(&t, NULL), 1);
	topology_set(&t, &to);
	assert_int_equal(to.platforms->n, 1);
	assert_string_equal(to.platforms->items[0].name, "b");
	assert_null(to.platforms_error);
	unlink(path);
	topology_options_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unused_patterns), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_file_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

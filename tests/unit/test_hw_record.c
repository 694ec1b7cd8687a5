// SPDX-License-Identifier: Apache-2.0
/* Recording through the readers; tests/integration/test_snapshot.py has all fixtures. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "hw/record.h"
#include "test_topo_machine.h"

static void add_line(const struct hw_recorded *rec, void *arg)
{
	static const char *const kinds[] = {
		[HW_RECORDED_DIR] = "/",    [HW_RECORDED_FILE] = " there",
		[HW_RECORDED_FAILED] = "!", [HW_RECORDED_LINK] = " ->",
		[HW_RECORDED_VALUE] = " =",
	};
	struct buf *b = arg;

	buf_printf(b, "%s%s", rec->path, kinds[rec->kind]);
	if (rec->kind == HW_RECORDED_FAILED)
		buf_printf(b, "%s%s", strerrorname_np(rec->errnum), rec->is_dir ? " dir" : "");
	else if (rec->data)
		buf_printf(b, " %s", rec->data);
	if (rec->kind != HW_RECORDED_VALUE)
		buf_str(b, "\n");
}

struct tree {
	char *dir;
	struct hw_root root;
};

static void open_tree(const char *recording, struct tree *t)
{
	struct err err;

	t->dir = unpack(recording);
	assert_int_equal(hw_root_open(t->dir, &t->root, &err), 0);
	t->root.recorder = hw_recorder_new();
}

/* What was recorded is "expected"; closes. */
static void assert_recorded(struct tree *t, const char *expected)
{
	struct buf b = { 0 };

	hw_recorder_each(t->root.recorder, add_line, &b);
	assert_string_equal(b.data ? b.data : "", expected);
	buf_done(&b);
	t->root.recorder = hw_recorder_free(t->root.recorder);
	hw_root_close(&t->root);
	remove_tree(t->dir);
}

static void read_file(struct tree *t, const char *path)
{
	char *text;

	if (hw_root_read(&t->root, path, 100, &text, NULL) == 0)
		free(text);
}

static void list(struct tree *t, const char *path, size_t max)
{
	struct strlist names = { 0 };

	if (hw_list(&t->root, path, max, &names) == 0)
		strlist_done(&names);
}

#define MACHINE                                                                                    \
	"sys/class/net/eth0 -> ../../devices/0000:00:01.0/net/eth0\n"                              \
	"sys/class/net/bonding_masters =\n"                                                        \
	"sys/devices/0000:00:01.0/net/eth0/mtu = 1500\n"                                           \
	"sys/devices/0000:00:01.0/net/eth0/device -> ../../../0000:00:01.0\n"                      \
	"sys/devices/0000:00:01.0/net/eth0/speed ! EINVAL\n"                                       \
	"sys/devices/0000:00:01.0/net/eth0/queues/\n"                                              \
	"sys/devices/0000:00:01.0/vendor = 0x15b3\n"

/* The file is recorded where it lies, with the links that lead there. */
static void test_real_paths(void **state)
{
	struct tree t;

	(void)state;
	open_tree(MACHINE, &t);
	read_file(&t, "sys/class/net/eth0/device/vendor");
	read_file(&t, "sys/class/net/eth0/speed");
	read_file(&t, "sys/class/net/eth0/none");
	read_file(&t, "none/none");
	assert_recorded(&t, "sys/class/net/eth0 -> ../../devices/0000:00:01.0/net/eth0\n"
			    "sys/devices/0000:00:01.0/net/eth0/device -> ../../../0000:00:01.0\n"
			    "sys/devices/0000:00:01.0/net/eth0/speed!EINVAL\n"
			    "sys/devices/0000:00:01.0/vendor = 0x15b3\n");
}

/* A listing keeps links and directories; a file counts when it is read or looked for. */
static void test_listing(void **state)
{
	struct tree t;

	(void)state;
	open_tree(MACHINE, &t);
	list(&t, "sys/class/net/eth0", 100);
	list(&t, "sys/class/net", 100);
	assert_true(hw_exists(&t.root, "sys/class/net/bonding_masters"));
	assert_false(hw_exists(&t.root, "sys/class/net/eth1"));
	assert_recorded(&t, "sys/class/net/bonding_masters there\n"
			    "sys/class/net/eth0 -> ../../devices/0000:00:01.0/net/eth0\n"
			    "sys/devices/0000:00:01.0/net/eth0/device -> ../../../0000:00:01.0\n"
			    "sys/devices/0000:00:01.0/net/eth0/queues/\n");
}

static void test_failed_lists(void **state)
{
	struct tree t;

	(void)state;
	open_tree("a/ ! EACCES\na/x = 1\nb/x = 1\nb/y = 2\nc = 1\n", &t);
	list(&t, "a", 100);
	list(&t, "b", 1);
	list(&t, "c", 100);
	list(&t, "d", 100);
	assert_recorded(&t, "a!EACCES dir\nb!EFBIG dir\nc!ENOTDIR\n");
}

/* More replaces less, in any order. */
static void test_seen_twice(void **state)
{
	struct tree t;

	(void)state;
	open_tree("a/x = 1\na/y/\n", &t);
	read_file(&t, "a/x");
	assert_true(hw_exists(&t.root, "a/x"));
	assert_true(hw_exists(&t.root, "a/y"));
	list(&t, "a", 100);
	list(&t, "a/y", 100);
	assert_recorded(&t, "a/x = 1\na/y/\n");
}

static void test_odd_links(void **state)
{
	struct tree t;

	(void)state;
	open_tree(
		"circle -> circle\nnowhere -> a/none\na/up -> ../a/up/b\na/x = 1\nb/a -> ../a/.\n",
		&t);
	read_file(&t, "circle");
	read_file(&t, "nowhere");
	read_file(&t, "a/up/x");
	read_file(&t, "b/a/../a/x");
	read_file(&t, "b/../b/a//x");
	assert_recorded(&t, "a/up -> ../a/up/b\na/x = 1\nb/a -> ../a/.\ncircle -> circle\n"
			    "nowhere -> a/none\n");
}

/* A directory that is open: its path is found by its descriptor. */
static void test_below_a_directory(void **state)
{
	struct tree t;
	int fd;

	(void)state;
	open_tree(MACHINE, &t);
	fd = openat(t.root.fd, "sys/class/net/eth0", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	hw_record_exists(&t.root, t.root.fd, "sys/class/net/eth0");
	hw_record_file(&t.root, fd, "mtu", 0, "1500\n", 5);
	hw_record_file(&t.root, fd, "speed", -EINVAL, NULL, 0);
	/* Who follows no link fails at one; what it leads to is not at fault. */
	hw_record_file(&t.root, fd, "device/vendor", -ELOOP, NULL, 0);
	hw_record_link(&t.root, fd, "device");
	close(fd);
	fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	hw_record_file(&t.root, fd, "version", 0, "x\n", 2);
	close(fd);
	assert_recorded(&t, "sys/class/net/eth0 -> ../../devices/0000:00:01.0/net/eth0\n"
			    "sys/devices/0000:00:01.0/net/eth0/device -> ../../../0000:00:01.0\n"
			    "sys/devices/0000:00:01.0/net/eth0/mtu = 1500\n"
			    "sys/devices/0000:00:01.0/net/eth0/speed!EINVAL\n");
}

/* Of the running machine, whose root is a path of one character. */
static void test_live_root(void **state)
{
	struct hw_root root;
	struct err err;
	struct buf b = { 0 };
	int fd = open("/proc/sys/kernel", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(hw_root_open("/", &root, &err), 0);
	root.recorder = hw_recorder_new();
	hw_record_file(&root, fd, "ostype", 0, "x\n", 2);
	hw_recorder_each(root.recorder, add_line, &b);
	assert_string_equal(b.data, "proc/sys/kernel/ostype = x\n");
	buf_done(&b);
	hw_recorder_free(root.recorder);
	hw_root_close(&root);
	close(fd);
}

/* A directory comes before what is in it, also where names have characters before the slash. */
static void test_order(void **state)
{
	struct tree t;

	(void)state;
	open_tree("a/b/\na-b/c = 1\na\\sb = 1\na/b-c = 1\n", &t);
	list(&t, "", 100);
	list(&t, "a", 100);
	list(&t, "a-b", 100);
	read_file(&t, "a-b/c");
	read_file(&t, "a b");
	read_file(&t, "a/b-c");
	assert_recorded(&t, "a/b/\na/b-c = 1\na b = 1\na-b/c = 1\n");
}

/* The raw recording of a machine that is read from "recording". */
static char *record(const char *recording, bool raw)
{
	const struct hw_snapshot_options options = { .raw = raw, .seed = "test" };
	char *dir = unpack(recording), *text = NULL;
	struct err err = { 0 };
	size_t len = 0;

	if (hw_snapshot_record(dir, &options, &text, &len, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(strlen(text), len);
	remove_tree(dir);
	return text;
}

static void assert_has(const char *text, const char *line)
{
	_cleanup_free_ char *whole = xasprintf("\n%s\n", line);

	if (!strstr(text, whole))
		fail_msg("\"%s\" is not in \"%s\"", line, text);
}

static void test_written(void **state)
{
	_cleanup_free_ char *text = NULL, *again = NULL;
	struct buf b = { 0 };

	(void)state;
	add_pci(&b, "pci0000:00/0000:00:01.0", 0x020000, 0x15b3, 0x1021, -1);
	add_vpd(&b, "pci0000:00/0000:00:01.0", "SN1", "V31");
	buf_str(&b, "sys/bus/pci/devices/0000:00:02.0 -> ../../../devices/nowhere/0000:00:02.0\n"
		    "sys/bus/pci/devices/not\\sa\\\\function/\n"
		    "sys/class/net/eth0 -> ../../devices/virtual/net/eth0\n"
		    "sys/devices/virtual/net/eth0/operstate = \\sa\\tb\\\\c\\s\n"
		    "sys/devices/virtual/net/eth0/phys_port_name : 7030\n"
		    "sys/devices/virtual/net/eth0/phys_switch_id =\n"
		    "sys/devices/virtual/net/eth0/uevent = A=1\\nDEVTYPE=vlan\n"
		    "sys/class/infiniband/ ! EACCES\n"
		    "proc/cpuinfo = processor: 0\\nflags: a\\n\\nprocessor: 1\\nflags: b\n"
		    "proc/meminfo = never read\n"
		    "proc/driver/nvidia/gpus/\n"
		    "twinrail/routes = default dev eth0\n");
	text = record(b.data, true);
	buf_done(&b);
	assert_has(text, "sys/bus/pci/devices/0000:00:01.0 -> "
			 "../../../devices/pci0000:00/0000:00:01.0");
	assert_has(text, "sys/bus/pci/devices/0000:00:02.0 -> "
			 "../../../devices/nowhere/0000:00:02.0");
	assert_has(text, "sys/bus/pci/devices/not\\sa\\\\function/");
	assert_has(text, "sys/devices/pci0000:00/0000:00:01.0/vpd : 900c00534e03534e315633035633"
			 "3178");
	assert_has(text, "sys/devices/virtual/net/eth0/operstate = \\sa\\tb\\\\c\\s");
	/* No new line at the end: byte by byte. */
	assert_has(text, "sys/devices/virtual/net/eth0/phys_port_name : 7030");
	assert_has(text, "sys/devices/virtual/net/eth0/phys_switch_id =");
	assert_has(text, "sys/class/infiniband/ ! EACCES");
	assert_has(text, "proc/cpuinfo = processor: 0\\nflags: a");
	assert_has(text, "proc/driver/nvidia/gpus/");
	assert_has(text, "twinrail/routes = default dev eth0");
	assert_null(strstr(text, "meminfo"));
	assert_null(strstr(text, "twinrail/errors"));
	again = record(text, true);
	assert_string_equal(again, text);
}

/* A link out of the root leads to the root for the readers; a recording says so with its own. */
static void test_link_out_of_the_root(void **state)
{
	const struct hw_snapshot_options options = { .raw = true };
	char *dir = unpack("sys/bus/pci/devices/\n"), *text = NULL;
	_cleanup_free_ char *absolute = xasprintf("%s/sys/bus/pci/devices/0000:00:01.0", dir);
	_cleanup_free_ char *above = xasprintf("%s/sys/bus/pci/devices/0000:00:02.0", dir);
	struct err err;
	size_t len;

	(void)state;
	assert_int_equal(symlink("/sys/devices/pci0000:00/0000:00:01.0", absolute), 0);
	assert_int_equal(symlink("../../../../../../x/y z", above), 0);
	assert_int_equal(hw_snapshot_record(dir, &options, &text, &len, &err), 0);
	assert_has(text, "sys/bus/pci/devices/0000:00:01.0 -> "
			 "../../../../sys/devices/pci0000:00/0000:00:01.0");
	assert_has(text, "sys/bus/pci/devices/0000:00:02.0 -> ../../../../x/y\\sz");
	free(text);
	remove_tree(dir);
}

static void test_head(void **state)
{
	_cleanup_free_ char *raw = record("proc/sys/kernel/osrelease = 6.1.0-x\n", true);
	_cleanup_free_ char *anonymous = record("proc/x = 1\n", false);
	struct err err = { 0 };
	char *text = NULL;
	size_t len;

	(void)state;
	assert_int_equal(strncmp(raw, "# Machine recorded by twinrail " TWINRAIL_VERSION ".\n# Raw",
				 35 + strlen(TWINRAIL_VERSION)),
			 0);
	assert_has(raw, "# Kernel: 6.1.0-x");
	assert_non_null(strstr(anonymous, "\n# Anonymised: "));
	assert_null(strstr(anonymous, "Kernel"));
	assert_int_equal(
		hw_snapshot_record("/none", &(struct hw_snapshot_options){ 0 }, &text, &len, &err),
		-ENOENT);
	assert_null(text);
	assert_non_null(strstr(err.msg, "--root"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_paths),   cmocka_unit_test(test_listing),
		cmocka_unit_test(test_failed_lists), cmocka_unit_test(test_seen_twice),
		cmocka_unit_test(test_odd_links),    cmocka_unit_test(test_below_a_directory),
		cmocka_unit_test(test_live_root),    cmocka_unit_test(test_order),
		cmocka_unit_test(test_written),	     cmocka_unit_test(test_link_out_of_the_root),
		cmocka_unit_test(test_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

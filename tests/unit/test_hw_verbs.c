// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <libgen.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hw/verbs.h"
#include "test_topo_machine.h"

#define FUNCTION "pci0000:00/0000:00:01.0/0000:03:00.0"
#define RDMA "sys/devices/" FUNCTION "/infiniband/mlx5_0"
#define GUID "a088:c203:0012:3456"

static char *library; /* the fake one, beside this program */
static char *dev; /* a directory with "uverbs0", a character device that opens */

/* One device; its uverbs0 has the number of /dev/null.  "rest": more lines. */
static struct hw_machine *machine_of(const char *guid, const char *uverbs_dev, const char *rest)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	add_nic(&b, FUNCTION, 0x1023, 0, "mlx5_0", "eth0", NULL);
	if (guid)
		buf_printf(&b, RDMA "/node_guid = %s\n", guid);
	buf_printf(&b, RDMA "/ports/1/state = 4: ACTIVE\n");
	buf_printf(&b,
		   "sys/class/infiniband_verbs/uverbs0/ibdev = mlx5_0\n"
		   "sys/class/infiniband_verbs/uverbs0/dev = %s\n%s",
		   uverbs_dev, rest);
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_rdma, 1);
	assert_int_equal(machine->rdma[0].n_ports, 1);
	assert_int_equal(machine->rdma[0].ports[0].active_mtu, HW_UNKNOWN);
	return machine;
}

static unsigned int opens(void)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	unsigned int (*count)(void);

	assert_non_null(lib);
	*(void **)&count = dlsym(lib, "fake_verbs_opens");
	assert_non_null(count);
	return count();
}

/* Ask the fake library in this mode; how many devices it opened. */
static unsigned int ask(const char *mode, struct hw_machine *machine)
{
	const struct hw_verbs_paths paths = { library, library, dev };
	unsigned int before = opens();

	setenv("FAKE_VERBS", mode, 1);
	machine->part = HW_PART_RDMA;
	hw_verbs_ask(&paths, machine);
	return opens() - before;
}

static void assert_unasked(const char *mode, const char *guid, const char *uverbs_dev,
			   unsigned int expected_opens)
{
	struct hw_machine *machine = machine_of(guid, uverbs_dev, "");
	unsigned int warnings = (unsigned int)machine->n_warnings;

	assert_int_equal(ask(mode, machine), expected_opens);
	assert_null(machine->rdma[0].data_direct);
	assert_null(machine->rdma[0].fw_ver);
	assert_int_equal(machine->rdma[0].ports[0].active_mtu, HW_UNKNOWN);
	assert_int_equal(machine->n_warnings, warnings);
	hw_free(machine);
}

/* The library fills what sysfs lacks; it is asked once. */
static void test_fills(void **state)
{
	struct hw_machine *machine = machine_of(GUID, "1:3", "");
	_cleanup_free_ char *text = NULL;

	(void)state;
	assert_int_equal(ask("", machine), 1);
	assert_string_equal(machine->rdma[0].data_direct, "0009:03:00.0");
	assert_string_equal(machine->rdma[0].fw_ver, "28.39.1002");
	assert_string_equal(machine->rdma[0].sys_image_guid, GUID);
	assert_string_equal(machine->rdma[0].ports[0].link_layer, "Ethernet");
	assert_int_equal(machine->rdma[0].ports[0].active_mtu, 4096);
	text = hw_verbs_print(machine);
	assert_string_equal(text,
			    "mlx5_0 data_direct 0009:03:00.0\nmlx5_0 port 1 active_mtu 4096\n");
	hw_free(machine);

	machine = machine_of(GUID, "1:3", "");
	assert_int_equal(ask("nosys", machine), 0);
	assert_int_equal(machine->rdma[0].ports[0].active_mtu, 4096);
	hw_free(machine);
	/* another MTU of the link: another active MTU */
	machine = machine_of(GUID, "1:3", "");
	machine->netdevs[0].mtu = 9000;
	assert_int_equal(ask("nodirect", machine), 1);
	assert_null(machine->rdma[0].data_direct);
	hw_free(machine);
	/* no GUID in sysfs */
	machine = machine_of(NULL, "1:3", "");
	assert_int_equal(ask("", machine), 1);
	assert_string_equal(machine->rdma[0].node_guid, GUID);
	hw_free(machine);
}

/* Two answers: sysfs stays, the warning names both; it is asked again. */
static void test_disagrees(void **state)
{
	static const struct {
		const char *mode, *sysfs, *verbs;
	} cases[] = { { "guid", "\"0000:0000:0000:000", "\"a" },
		      { "down", "\"ACTIVE\"", "\"DOWN\"" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *guid = xasprintf("0000:0000:0000:000%zu", i + 1);
		struct hw_machine *machine = machine_of(i ? GUID : guid, "1:3", "");
		const char *message;
		size_t n = machine->n_warnings;

		machine->netdevs[0].mtu = 4000 + (int)i;
		for (int k = 0; k < 2; k++)
			assert_int_equal(ask(cases[i].mode, machine), 1);
		assert_int_equal(machine->n_warnings, n + 2);
		assert_string_equal(machine->warnings[n].code, "verbs-disagree");
		assert_string_equal(machine->warnings[n].object, "mlx5_0");
		message = machine->warnings[n].message;
		assert_non_null(strstr(message, cases[i].sysfs));
		assert_non_null(strstr(message, cases[i].verbs));
		assert_string_equal(machine->rdma[0].node_guid, i ? GUID : guid);
		assert_string_equal(machine->rdma[0].ports[0].state, "ACTIVE");
		hw_free(machine);
	}
}

/* What can be opened and has neither port nor GUID is no device. */
static void test_proves_nothing(void **state)
{
	(void)state;
	assert_unasked("hollow", "0000:0000:0000:0010", "1:3", 1);
	assert_unasked("unopened", "0000:0000:0000:0011", "1:3", 1);
	assert_unasked("nosys", "0000:0000:0000:0012", "1:3", 0);
}

/* No file, or not the character device that sysfs means: the library is left alone. */
static void test_no_device_file(void **state)
{
	const struct hw_verbs_paths none = { library, library, "/nonexistent" };
	struct hw_machine *machine = machine_of("0000:0000:0000:0021", "1:3", "");

	(void)state;
	assert_unasked("", "0000:0000:0000:0020", "231:192", 0);
	assert_unasked("", "0000:0000:0000:0020", "none", 0);
	hw_verbs_ask(&none, machine);
	assert_int_equal(machine->rdma[0].ports[0].active_mtu, HW_UNKNOWN);
	hw_free(machine);
}

static void test_no_library(void **state)
{
	const struct hw_verbs_paths none = { "libnonexistent.so.1", "libnonexistent.so.2", dev };
	const struct hw_verbs_paths other = { "libm.so.6", "libnonexistent.so.2", dev };
	struct hw_machine *machine = machine_of("0000:0000:0000:0030", "1:3", "");

	(void)state;
	hw_verbs_ask(&none, machine);
	machine->netdevs[0].mtu = 4711;
	hw_verbs_ask(&other, machine);
	assert_int_equal(machine->rdma[0].ports[0].active_mtu, HW_UNKNOWN);
	hw_free(machine);
}

/* VFs are many: sysfs has to be enough for them. */
static void test_vf(void **state)
{
	struct hw_machine *machine =
		machine_of("0000:0000:0000:0040", "1:3",
			   "sys/devices/" FUNCTION "/physfn -> ../0000:02:00.0\n");

	(void)state;
	assert_string_equal(machine->pci[0].physfn, "0000:02:00.0");
	assert_int_equal(ask("", machine), 0);
	hw_free(machine);
}

/* More states than answers are kept for. */
static void test_bounded(void **state)
{
	struct hw_machine *machine = machine_of(GUID, "1:3", "");

	(void)state;
	for (int i = 0; i < 1000; i++) {
		machine->netdevs[0].mtu = 10000 + i;
		assert_int_equal(ask("nodirect", machine), 1);
	}
	assert_int_equal(ask("nodirect", machine), 0);
	machine->netdevs[0].mtu = 10000;
	assert_int_equal(ask("nodirect", machine), 1);
	hw_free(machine);
}

static void test_recorded(void **state)
{
	struct hw_machine *machine;
	struct buf b = { 0 };
	_cleanup_free_ char *text = NULL;

	(void)state;
	add_nic(&b, FUNCTION, 0x1023, 0, "mlx5_0", "eth0", NULL);
	buf_str(&b, RDMA "/ports/1/state = 4: ACTIVE\n");
	buf_str(&b, "twinrail/verbs = mlx5_0 port 1 active_mtu 1024\\nmlx5_9 data_direct "
		    "0009:03:00.0\\nmlx5_0 data_direct 0009:03:00.0\\nmlx5_0 port 1\\nmlx5_0 "
		    "data_direct x\\nmlx5_0 port 1 active_mtu 0\n");
	machine = read_machine(b.data);
	buf_done(&b);
	text = hw_verbs_print(machine);
	assert_string_equal(text,
			    "mlx5_0 data_direct 0009:03:00.0\nmlx5_0 port 1 active_mtu 1024\n");
	assert_string_equal(machine->warnings[machine->n_warnings - 1].code, "verbs-text");
	assert_non_null(strstr(machine->warnings[machine->n_warnings - 1].message, "3 lines"));
	hw_free(machine);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fills),	       cmocka_unit_test(test_disagrees),
		cmocka_unit_test(test_proves_nothing), cmocka_unit_test(test_no_device_file),
		cmocka_unit_test(test_no_library),     cmocka_unit_test(test_vf),
		cmocka_unit_test(test_bounded),	       cmocka_unit_test(test_recorded),
	};
	char template[] = "/tmp/twinrail-test.XXXXXX";
	_cleanup_free_ char *program = realpath(argv[0], NULL), *node = NULL;
	int r;

	if (argc < 1 || !program || !mkdtemp(template))
		return 1;
	library = xasprintf("%s/fake_verbs.so", dirname(program));
	dev = template;
	node = xasprintf("%s/uverbs0", dev);
	if (symlink("/dev/null", node) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(node);
	rmdir(dev);
	free(library);
	return r;
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hw/read.h"
#include "test_topo_machine.h"

#define FUNCTION "pci0000:00/0000:00:01.0/0000:03:00.0"
#define RDMA "sys/devices/" FUNCTION "/infiniband/mlx5_0"

static bool warned(const struct hw_machine *machine, const char *code, const char *object)
{
	for (size_t i = 0; i < machine->n_warnings; i++)
		if (streq(machine->warnings[i].code, code) &&
		    streq(machine->warnings[i].object, object))
			return true;
	return false;
}

static void test_root(void **state)
{
	struct hw_machine *machine = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(hw_read("/nonexistent", &machine, &err), -ENOENT);
	assert_null(machine);
	assert_non_null(strstr(err.msg, "/nonexistent"));
	assert_non_null(strstr(err.msg, "--root"));
	assert_int_equal(hw_read("/dev/null", &machine, &err), -ENOTDIR);
}

/* No PCI at all is a machine without devices. */
static void test_no_pci(void **state)
{
	struct hw_machine *machine = read_machine("proc/version = x\n");

	(void)state;
	assert_int_equal(machine->n_pci, 0);
	assert_int_equal(machine->n_rdma, 0);
	assert_int_equal(machine->rdma_cm_major, HW_UNKNOWN);
	assert_true(warned(machine, "no-pci", "sys/bus/pci/devices"));
	hw_free(machine);
}

/* A list that is not there is empty; one that cannot be read makes the machine incomplete. */
static void test_incomplete(void **state)
{
	static const struct {
		const char *recording, *code, *object;
	} cases[] = {
		{ "proc/version = x\n", NULL, NULL },
		{ "sys/bus/pci/devices = x\n", "no-pci", "sys/bus/pci/devices" },
		{ "sys/class/net = x\n", "net-unreadable", "sys/class/net" },
		{ "sys/class/infiniband = x\n", "rdma-unreadable", "sys/class/infiniband" },
		{ "sys/class/infiniband_verbs = x\n", "rdma-unreadable",
		  "sys/class/infiniband_verbs" },
		{ "twinrail/routes ! EIO\n", "routes-unreadable", "twinrail/routes" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hw_machine *machine = read_machine(cases[i].recording);

		assert_int_equal(machine->incomplete != 0, cases[i].code != NULL);
		if (cases[i].code)
			assert_true(warned(machine, cases[i].code, cases[i].object));
		hw_free(machine);
	}
}

/* A file that tells "not now" for lack of descriptors; that of a function says nothing of it. */
static void test_exhausted(void **state)
{
	static const char *const errors[] = { "EIO", "EMFILE", "ENFILE", "ENOMEM" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		_cleanup_free_ char *text =
			xasprintf("sys/class/dmi/id/sys_vendor ! %s\n", errors[i]);
		struct hw_machine *machine = read_machine(text);

		assert_int_equal(machine->incomplete, i > 0 ? HW_PART_NODE : 0);
		hw_free(machine);
	}
}

static void add_link(const char *dir, const char *path, const char *target)
{
	_cleanup_free_ char *full = xasprintf("%s/%s", dir, path);

	assert_int_equal(symlink(target, full), 0);
}

/* Of the test proper: skip() leaves without freeing anything. */
static void check_links_stay_below_the_root(void)
{
	char *dir = unpack("x/y/z/\nsys/class/dmi/id/\nsys/bus/\n");
	_cleanup_free_ char *proc = xasprintf("%s/proc/sys/kernel", dir);
	_cleanup_free_ char *inside = xasprintf("%s/ostype", proc);
	struct hw_machine *machine = NULL;
	struct err err;

	add_link(dir, "x/y/z/up", "../../..");
	add_link(dir, "sys/class/dmi/id/sys_vendor",
		 "../../../../x/y/z/up/../../../proc/sys/kernel/ostype");
	add_link(dir, "sys/bus/pci", "../../x/y/z/up/../../sys/bus/pci");
	assert_int_equal(hw_read(dir, &machine, &err), 0);
	assert_null(machine->dmi_vendor);
	assert_int_equal(machine->n_pci, 0);
	machine = hw_free(machine);
	assert_int_equal(dir_make(proc, 0700, &err), 0);
	assert_int_equal(file_write_atomic(inside, "inside\n", 7, 0600, 0, &err), 0);
	assert_int_equal(hw_read(dir, &machine, &err), 0);
	assert_string_equal(machine->dmi_vendor, "inside");
	hw_free(machine);
	remove_tree(dir);
}

/* A link through a link leads out of a tree that others made although its text does not. */
static void test_links_stay_below_the_root(void **state)
{
	(void)state;
	if (syscall(SYS_openat2, -1, "", NULL, 0) < 0 && (errno == ENOSYS || errno == EPERM))
		skip();
	check_links_stay_below_the_root();
}

static void test_pci(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_pci *pci;

	(void)state;
	add_pci(&b, "pci0000:00/0000:00:01.0", 0x060400, 0x8086, 1, 0);
	/* Header, capability list at 0x40: power management, then Express with type 6. */
	buf_str(&b,
		"sys/devices/pci0000:00/0000:00:01.0/config : "
		"00000000000010000000000000000000000000000000000000000000000000000000000000000000"
		"000000000000000000000000400000000000000000000000"
		"01480000000000001000620000000000\n");
	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, -1);
	add_vpd(&b, FUNCTION, "SN1", "V31");
	buf_str(&b, "sys/devices/" FUNCTION "/driver -> ../../../../bus/pci/drivers/mlx5_core\n"
		    "sys/devices/" FUNCTION "/sriov_numvfs = 2\n"
		    "sys/devices/" FUNCTION "/physfn -> ../0000:02:00.0\n");
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_pci, 2);
	assert_int_equal(machine->pci[0].port_type, HW_PORT_DOWNSTREAM);
	pci = hw_find_pci(machine, "0000:03:00.0");
	assert_string_equal(pci->path, "/sys/devices/" FUNCTION);
	assert_int_equal(pci->vendor, 0x15b3);
	assert_int_equal(pci->device, 0x1021);
	assert_int_equal(pci->class, 0x020000);
	assert_int_equal(pci->numa_node, HW_UNKNOWN);
	assert_int_equal(pci->num_vfs, 2);
	assert_string_equal(pci->driver, "mlx5_core");
	assert_string_equal(pci->physfn, "0000:02:00.0");
	assert_string_equal(pci->vpd_sn, "SN1");
	assert_string_equal(pci->vpd_v3, "V31");
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

/* A capability list that runs in a circle, or out of the file. */
static void test_config_loop(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pci(&b, "pci0000:00/0000:00:01.0", 0x060400, 0x8086, 1, 0);
	buf_str(&b,
		"sys/devices/pci0000:00/0000:00:01.0/config : "
		"00000000000010000000000000000000000000000000000000000000000000000000000000000000"
		"000000000000000000000000400000000000000000000000"
		"0140000000000000\n");
	add_pci(&b, "pci0000:00/0000:00:02.0", 0x060400, 0x8086, 1, 0);
	buf_str(&b,
		"sys/devices/pci0000:00/0000:00:02.0/config : "
		"00000000000010000000000000000000000000000000000000000000000000000000000000000000"
		"000000000000000000000000fc0000000000000000000000\n");
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_pci, 2);
	assert_int_equal(machine->pci[0].port_type, HW_PORT_UNKNOWN);
	assert_int_equal(machine->pci[1].port_type, HW_PORT_UNKNOWN);
	hw_free(machine);
}

/* A bridge whose configuration space has these bytes, then zeros up to "len". */
static enum hw_port_type type_of(unsigned char status, unsigned char capability, size_t len)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	enum hw_port_type type;

	add_pci(&b, "pci0000:00/0000:00:01.0", 0x060400, 0x8086, 1, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:00:01.0/config : ");
	for (size_t i = 0; i < len; i++) {
		unsigned int v = i == 0x06 ? status : i == 0x34 ? 0x40 : i == 0x42 ? 0x52 : 0;

		buf_printf(&b, "%02x", i == 0x40 ? capability : v);
	}
	buf_str(&b, "\n");
	machine = read_machine(b.data);
	buf_done(&b);
	type = machine->pci[0].port_type;
	hw_free(machine);
	return type;
}

static void test_port_type(void **state)
{
	(void)state;
	assert_int_equal(type_of(0x10, 0x10, 256), HW_PORT_UPSTREAM);
	/* Conventional bridges: no capabilities, or others only. */
	assert_int_equal(type_of(0, 0, 64), HW_PORT_OTHER);
	assert_int_equal(type_of(0x10, 0x0d, 256), HW_PORT_OTHER);
	/* No right to read more than the header. */
	assert_int_equal(type_of(0x10, 0x10, 64), HW_PORT_UNKNOWN);
	assert_int_equal(type_of(0x10, 0x10, 63), HW_PORT_UNKNOWN);
}

static void test_broken_function(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	/* A link to itself, one to nowhere, one whose vendor fails, bad VPD, and a good one. */
	buf_str(&b, "sys/bus/pci/devices/0000:01:00.0 -> 0000:01:00.0\n"
		    "sys/bus/pci/devices/0000:02:00.0 -> ../../../devices/nowhere/0000:02:00.0\n"
		    "sys/bus/pci/devices/0000:05:00.0 -> ../../../devices/pci0000:00/0000:05:00.0\n"
		    "sys/devices/pci0000:00/0000:05:00.0/class = 0x020000\n"
		    "sys/devices/pci0000:00/0000:05:00.0/vendor ! EIO\n"
		    "sys/devices/pci0000:00/0000:05:00.0/device = 0x1021\n");
	add_pci(&b, "pci0000:00/0000:04:00.0", 0x020000, 0x15b3, 0x1021, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:04:00.0/vpd : ffffffff\n");
	add_pci(&b, "pci0000:00/0000:06:00.0", 0x020000, 0x15b3, 0x1021, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:06:00.0/vpd ! EACCES\n");
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_pci, 2);
	assert_string_equal(machine->pci[0].bus_id, "0000:04:00.0");
	assert_null(machine->pci[0].vpd_sn);
	assert_true(warned(machine, "function-unreadable", "0000:01:00.0"));
	assert_true(warned(machine, "function-unreadable", "0000:02:00.0"));
	assert_true(warned(machine, "function-unreadable", "0000:05:00.0"));
	assert_true(warned(machine, "vpd-unreadable", "0000:04:00.0"));
	assert_true(warned(machine, "vpd-no-rights", "sys/bus/pci/devices"));
	assert_int_equal(machine->n_warnings, 5);
	hw_free(machine);
}

static void test_rdma(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_rdma *rdma;
	const struct hw_rdma_port *port;

	(void)state;
	add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", "eth0", "0000:0000:0000:0001");
	buf_str(&b, RDMA "/fw_ver =\n" RDMA "/ports/1/state = 4: ACTIVE\n" RDMA
			 "/ports/1/phys_state = 5: LinkUp\n" RDMA
			 "/ports/1/rate = 2.5 Gb/sec (1X SDR)\n" RDMA
			 "/ports/1/link_layer = Ethernet\n" RDMA
			 "/ports/1/gids/10 = fe80:0000:0000:0000:0000:0000:0000:000a\n" RDMA
			 "/ports/1/gid_attrs/types/10 = RoCE v2\n" RDMA
			 "/ports/1/gid_attrs/ndevs/10 = eth0\n" RDMA
			 "/ports/1/gids/9 = fe80:0000:0000:0000:0000:0000:0000:0009\n" RDMA
			 "/ports/1/gid_attrs/types/9 ! EINVAL\n" RDMA
			 "/ports/1/gids/0 = 0000:0000:0000:0000:0000:0000:0000:0000\n" RDMA
			 "/ports/x/state = 4: ACTIVE\n"
			 "sys/class/infiniband_verbs/abi_version = 6\n"
			 "sys/class/infiniband_verbs/uverbs7/ibdev = mlx5_0\n"
			 "sys/class/infiniband_verbs/uverbs7/dev = 231:199\n"
			 "sys/class/infiniband_verbs/uverbs8/ibdev = mlx5_0\n"
			 "sys/class/misc/rdma_cm/dev = 10:58\n"
			 "sys/class/infiniband/rxe0 -> ../../devices/virtual/infiniband/rxe0\n"
			 "sys/devices/virtual/infiniband/rxe0/parent = eth0\n");
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_rdma, 2);
	rdma = &machine->rdma[0];
	assert_string_equal(rdma->bus_id, "0000:03:00.0");
	assert_false(rdma->software);
	assert_null(rdma->fw_ver);
	assert_string_equal(rdma->sys_image_guid, "0000:0000:0000:0001");
	assert_string_equal(rdma->uverbs, "uverbs7");
	assert_int_equal(rdma->uverbs_major, 231);
	assert_int_equal(rdma->uverbs_minor, 199);
	assert_int_equal(rdma->n_ports, 1);
	port = &rdma->ports[0];
	assert_string_equal(port->state, "ACTIVE");
	assert_string_equal(port->phys_state, "LinkUp");
	assert_int_equal(port->rate_gbps, 2);
	assert_int_equal(port->n_gids, 2);
	assert_int_equal(port->gids[0].index, 9);
	assert_null(port->gids[0].type);
	assert_int_equal(port->gids[1].index, 10);
	assert_string_equal(port->gids[1].netdev, "eth0");
	assert_true(machine->rdma[1].software);
	assert_string_equal(machine->rdma[1].bus_id, "0000:03:00.0");
	assert_int_equal(machine->rdma_cm_major, 10);
	assert_int_equal(machine->rdma_cm_minor, 58);
	hw_free(machine);
}

/* The ports of a PF in switchdev mode are also those of its representors. */
static void test_ports_of_vf(void **state)
{
	static const char vf[] = "pci0000:00/0000:03:00.1";
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", "eth0", "0000:0000:0000:0001");
	add_nic(&b, vf, 0x101e, 0, "mlx5_1", "eth1", "0000:0000:0000:0001");
	buf_printf(&b,
		   RDMA "/ports/1/state = 4: ACTIVE\n" RDMA "/ports/2/state = 4: ACTIVE\n" RDMA
			"/ports/3/state = 4: ACTIVE\n"
			"sys/devices/%s/physfn -> ../0000:03:00.0\n"
			"sys/devices/%s/infiniband/mlx5_1/ports/1/state = 1: DOWN\n",
		   vf, vf);
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_rdma, 2);
	assert_int_equal(machine->rdma[0].n_ports, 3);
	assert_int_equal(machine->rdma[1].n_ports, 1);
	assert_int_equal(machine->rdma[1].ports[0].port, 1);
	assert_string_equal(machine->rdma[1].ports[0].state, "DOWN");
	hw_free(machine);
}

static void test_net(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_netdev *netdev;

	(void)state;
	add_netdev(&b, "pci0000:00/0000:00:03.0/virtio1", "ens3");
	buf_str(&b, "sys/class/net/bonding_masters = bond0\n"
		    "sys/class/net/bond0 -> ../../devices/virtual/net/bond0\n"
		    "sys/devices/virtual/net/bond0/uevent = DEVTYPE=bond\\nINTERFACE=bond0\n"
		    "sys/devices/virtual/net/bond0/lower_ens3 -> ../ens3\n"
		    "sys/devices/virtual/net/bond0/mtu = many\n"
		    "sys/devices/pci0000:00/0000:00:03.0/virtio1/net/ens3/master -> ../x/bond0\n"
		    "twinrail/routes = default via 10.0.0.1 dev bond0 proto dhcp\\n10.0.0.0/8 dev "
		    "ens3\\ndefault nexthop dev ens4 nexthop dev ens5\\ndefault dev\n");
	machine = read_machine(b.data);
	buf_done(&b);
	assert_int_equal(machine->n_netdevs, 2);
	netdev = hw_find_netdev(machine, "ens3");
	assert_string_equal(netdev->bus_id, "0000:00:03.0");
	assert_int_equal(netdev->mtu, 1500);
	assert_string_equal(netdev->master, "bond0");
	netdev = hw_find_netdev(machine, "bond0");
	assert_null(netdev->bus_id);
	assert_string_equal(netdev->kind, "bond");
	assert_int_equal(netdev->mtu, HW_UNKNOWN);
	assert_true(strlist_has(&netdev->lower, "ens3"));
	assert_int_equal(machine->default_routes.n, 3);
	assert_true(strlist_has(&machine->default_routes, "bond0"));
	assert_true(strlist_has(&machine->default_routes, "ens4"));
	assert_true(strlist_has(&machine->default_routes, "ens5"));
	hw_free(machine);
}

static void assert_owner(const char *path, const char *function, const char *sf_parent)
{
	_cleanup_free_ char *own = hw_path_bus_id(path), *parent = hw_path_sf_parent(path);

	assert_string_or_null(own, function);
	assert_string_or_null(parent, sf_parent);
}

/* Whose device is it?  What stands between a function and the device is not the function's. */
static void test_owner(void **state)
{
	(void)state;
	assert_owner("/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/net/eth0", "0000:03:00.0",
		     NULL);
	assert_owner("/sys/devices/pci0000:00/0000:00:03.0/virtio1/net/ens3", "0000:00:03.0", NULL);
	assert_owner("/sys/devices/pci0000:00/0000:03:00.0/mlx5_core.sf.4/infiniband/mlx5_10", NULL,
		     "0000:03:00.0");
	assert_owner("/sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/net/enx0", NULL, NULL);
	assert_owner("/sys/devices/virtual/net/bond0", NULL, NULL);
	assert_owner("/net/eth0", NULL, NULL);
	assert_owner("/virtio1/net/eth0", NULL, NULL);
}

static void test_gpus_and_dmi(void **state)
{
	struct hw_machine *machine = read_machine(
		"sys/bus/pci/devices/x = 1\n"
		"proc/driver/nvidia/gpus/0000:1b:00.0/information = Model: \\t\\t NVIDIA X "
		"\\nGPU UUID: \\t GPU-1\\nDevice Minor: \\t 3\\n\n"
		"proc/driver/nvidia/gpus/0000:1c:00.0/information = Model:\\nGPU UUID: "
		"GPU-????????\\nDevice Minor: x\n"
		"proc/driver/nvidia/gpus/0000:1d:00.0/information ! EIO\n"
		"sys/module/nvidia/version = 1.2.3\n"
		"sys/class/dmi/id/sys_vendor = QEMU\n"
		"sys/class/dmi/id/product_name = Standard PC\n");

	(void)state;
	assert_int_equal(machine->n_gpus, 2);
	assert_string_equal(machine->gpus[0].model, "NVIDIA X");
	assert_string_equal(machine->gpus[0].uuid, "GPU-1");
	assert_int_equal(machine->gpus[0].minor, 3);
	assert_null(machine->gpus[1].model);
	assert_null(machine->gpus[1].uuid);
	assert_int_equal(machine->gpus[1].minor, HW_UNKNOWN);
	assert_true(warned(machine, "gpu-information", "0000:1d:00.0"));
	assert_true(warned(machine, "function-unreadable", "x"));
	assert_string_equal(machine->nvidia_driver, "1.2.3");
	assert_string_equal(machine->dmi_product, "Standard PC");
	assert_true(machine->hypervisor);
	hw_free(machine);
}

static char *serial_of(const char *dir, bool live)
{
	struct hw_machine *machine = xnew(struct hw_machine);
	struct hw_root root;
	struct err err = { 0 };
	char *sn;

	assert_int_equal(hw_root_open(dir, &root, &err), 0);
	root.live = live;
	hw_read_pci(&root, machine);
	hw_root_close(&root);
	sn = xstrdup_null(machine->pci[0].vpd_sn);
	hw_free(machine);
	return sn;
}

static void assert_serial(const char *dir, bool live, const char *expected)
{
	_cleanup_free_ char *sn = serial_of(dir, live);

	assert_string_or_null(sn, expected);
}

/* VPD is slow: that of the running machine is read once, as long as it is the same function. */
static void test_vpd_is_read_once(void **state)
{
	struct buf b = { 0 };
	_cleanup_free_ char *file = NULL, *moved = NULL;
	char *dir;
	int fd;

	(void)state;
	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 0);
	add_vpd(&b, FUNCTION, "SN1", NULL);
	dir = unpack(b.data);
	buf_done(&b);
	file = xasprintf("%s/sys/devices/" FUNCTION "/vpd", dir);
	moved = xasprintf("%s.old", file);
	assert_serial(dir, true, "SN1");
	fd = open(file, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "2", 1, 8), 1);
	close(fd);
	assert_serial(dir, false, "SN2");
	assert_serial(dir, true, "SN1");
	/* Another card in the slot: another inode. */
	assert_int_equal(rename(file, moved), 0);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "\x90\x06\x00SN\x03SN3\x78", 10), 10);
	close(fd);
	assert_serial(dir, true, "SN3");
	assert_serial(dir, true, "SN3");
	remove_tree(dir);
}

/* The running machine, whatever it is: reading must work. */
static void test_live(void **state)
{
	struct hw_machine *machine = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(hw_read("/", &machine, &err), 0);
	assert_non_null(machine);
	hw_free(machine);
	assert_null(hw_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_root),
		cmocka_unit_test(test_no_pci),
		cmocka_unit_test(test_incomplete),
		cmocka_unit_test(test_exhausted),
		cmocka_unit_test(test_links_stay_below_the_root),
		cmocka_unit_test(test_pci),
		cmocka_unit_test(test_config_loop),
		cmocka_unit_test(test_port_type),
		cmocka_unit_test(test_broken_function),
		cmocka_unit_test(test_rdma),
		cmocka_unit_test(test_ports_of_vf),
		cmocka_unit_test(test_net),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_gpus_and_dmi),
		cmocka_unit_test(test_vpd_is_read_once),
		cmocka_unit_test(test_live),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

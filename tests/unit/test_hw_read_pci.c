// SPDX-License-Identifier: Apache-2.0
/* PCI functions: all their facts, and what cannot be read of them. */
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hw/read.h"
#include "test_topo_machine.h"

#define BRIDGE "pci0000:00/0000:00:01.0"
#define FUNCTION BRIDGE "/0000:03:00.0"
#define DIR "sys/devices/" FUNCTION

static size_t count_warnings(const struct hw_machine *machine, const char *code, const char *object)
{
	size_t n = 0;

	for (size_t i = 0; i < machine->n_warnings; i++)
		n += streq(machine->warnings[i].code, code) &&
		     streq(machine->warnings[i].object, object);
	return n;
}

/* Takes the text of "b". */
static struct hw_machine *read_buf(struct buf *b)
{
	_cleanup_free_ char *text = buf_take(b);

	return read_machine(text);
}

static void test_facts(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_pci *pci;

	(void)state;
	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 1);
	buf_str(&b, DIR "/subsystem_vendor = 0x15b3\n" DIR "/subsystem_device = 0x0041\n" DIR
			"/revision = 0x0a\n" DIR
			"/iommu_group -> ../../../../kernel/iommu_groups/27\n" DIR
			"/sriov_totalvfs = 16\n" DIR "/sriov_numvfs = -1\n");
	machine = read_buf(&b);
	pci = pci_of(machine, "0000:03:00.0");
	assert_int_equal(pci->subsystem_vendor, 0x15b3);
	assert_int_equal(pci->subsystem_device, 0x41);
	assert_int_equal(pci->revision, 0x0a);
	assert_int_equal(pci->iommu_group, 27);
	assert_int_equal(pci->total_vfs, 16);
	assert_int_equal(pci->num_vfs, 0);
	assert_int_equal(pci->numa_node, 1);
	assert_int_equal(pci->link.speed_mts, HW_UNKNOWN);
	assert_int_equal(pci->acs, HW_UNKNOWN);
	assert_false(pci->broken);
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

static struct hw_pcie_link link_of(const char *speed, const char *width)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	struct hw_pcie_link link;

	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 0);
	buf_printf(&b, DIR "/current_link_speed = %s\n" DIR "/current_link_width = %s\n", speed,
		   width);
	buf_str(&b, DIR "/max_link_speed = 64.0 GT/s PCIe\n" DIR "/max_link_width = 16\n");
	machine = read_buf(&b);
	link = machine->pci[0].link;
	hw_free(machine);
	assert_int_equal(link.max_speed_mts, 64000);
	assert_int_equal(link.max_width, 16);
	return link;
}

static void test_link(void **state)
{
	static const struct {
		const char *text;
		int value;
	} speeds[] = {
		{ "32.0 GT/s PCIe", 32000 }, { "2.5 GT/s PCIe", 2500 },
		{ "8 GT/s", 8000 },	     { "Unknown", HW_UNKNOWN },
		{ "Unknown speed", HW_UNKNOWN }, { "0.0 GT/s PCIe", HW_UNKNOWN },
		{ "16.25 GT/s PCIe", HW_UNKNOWN }, { "-8 GT/s PCIe", HW_UNKNOWN },
		{ ".5 GT/s PCIe", HW_UNKNOWN }, { "99999999999 GT/s PCIe", HW_UNKNOWN },
	}, widths[] = {
		{ "16", 16 },	     { "1", 1 },	   { "0", HW_UNKNOWN },
		{ "63", HW_UNKNOWN }, { "255", HW_UNKNOWN }, { "x4", HW_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		assert_int_equal(link_of(speeds[i].text, "8").speed_mts, speeds[i].value);
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		assert_int_equal(link_of("8.0 GT/s PCIe", widths[i].text).width, widths[i].value);
}

/* A bridge whose configuration space has "len" bytes, with an ACS capability at 0x148. */
static void add_acs_bridge(struct buf *b, const char *path, unsigned int acs, size_t len)
{
	add_pci(b, path, 0x060400, 0x1000, 0xc030, 0);
	buf_printf(b, "sys/devices/%s/config : ", path);
	for (size_t at = 0; at < len; at++) {
		unsigned int v = at == 0x06    ? 0x10
				 : at == 0x34  ? 0x40
				 : at == 0x40  ? 0x10
				 : at == 0x42  ? 0x62
				 : at == 0x100 ? 0x01
				 : at == 0x102 ? 0x81
				 : at == 0x103 ? 0x14
				 : at == 0x148 ? 0x0d
				 : at == 0x14e ? acs
					       : 0;

		buf_printf(b, "%02x", v);
	}
	buf_str(b, "\n");
}

/* As much of the configuration space is read as it takes, be there more or less of it. */
static void test_acs(void **state)
{
	static const struct {
		size_t len;
		int acs;
	} cases[] = { { 4096, 0x1d }, { 0x150, 0x1d }, { 0x14f, HW_UNKNOWN }, { 256, HW_UNKNOWN } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b = { 0 };
		struct hw_machine *machine;

		add_acs_bridge(&b, BRIDGE, 0x1d, cases[i].len);
		machine = read_buf(&b);
		assert_int_equal(machine->pci[0].port_type, HW_PORT_DOWNSTREAM);
		assert_int_equal(machine->pci[0].acs, cases[i].acs);
		assert_int_equal(machine->n_warnings, 0);
		hw_free(machine);
	}
}

/* One warning for the node, and only where it is the rights that are missing. */
static void test_rights(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_acs_bridge(&b, "pci0000:00/0000:00:01.0", 0, 64);
	add_acs_bridge(&b, "pci0000:00/0000:00:02.0", 0, 64);
	machine = read_buf(&b);
	assert_int_equal(machine->n_pci, 2);
	assert_int_equal(machine->pci[0].port_type, HW_PORT_UNKNOWN);
	assert_int_equal(count_warnings(machine, "config-no-rights", "sys/bus/pci/devices"), 1);
	assert_int_equal(machine->n_warnings, 1);
	hw_free(machine);
	/* Cut by who wrote the recording; a conventional bridge, which has no more; no file. */
	add_acs_bridge(&b, "pci0000:00/0000:00:01.0", 0, 0x44);
	add_acs_bridge(&b, "pci0000:00/0000:00:02.0", 0, 65);
	add_pci(&b, "pci0000:00/0000:00:03.0", 0x060400, 0x1000, 0xc030, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:00:03.0/config : ");
	for (int i = 0; i < 64; i++)
		buf_str(&b, "00");
	buf_str(&b, "\n");
	add_pci(&b, "pci0000:00/0000:00:04.0", 0x060400, 0x1000, 0xc030, 0);
	machine = read_buf(&b);
	assert_int_equal(machine->n_pci, 4);
	assert_int_equal(machine->pci[2].port_type, HW_PORT_OTHER);
	assert_int_equal(machine->pci[2].acs, 0);
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

/* Functions that do not answer: named, and everything else goes on. */
static void test_broken(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pci(&b, "pci0000:00/0000:01:00.0", 0x030200, 0x10de, 0x2330, 0);
	add_pci(&b, "pci0000:00/0000:02:00.0", 0x020000, 0xffff, 0xffff, 0);
	add_pci(&b, "pci0000:00/0000:03:00.0", 0x020000, 0x15b3, 0x1021, 0);
	for (int bus = 1; bus <= 3; bus += 2) {
		buf_printf(&b, "sys/devices/pci0000:00/0000:%02x:00.0/config : ", bus);
		for (int i = 0; i < 64; i++)
			buf_str(&b, bus == 1 ? "ff" : "00");
		buf_str(&b, "\n");
	}
	machine = read_buf(&b);
	assert_int_equal(machine->n_pci, 2);
	assert_true(pci_of(machine, "0000:01:00.0")->broken);
	assert_false(pci_of(machine, "0000:03:00.0")->broken);
	assert_int_equal(count_warnings(machine, "function-broken", "0000:01:00.0"), 1);
	assert_int_equal(count_warnings(machine, "function-unreadable", "0000:02:00.0"), 1);
	assert_int_equal(machine->n_warnings, 2);
	assert_non_null(strstr(machine->warnings[0].message, "reads ff"));
	assert_non_null(strstr(machine->warnings[1].message, "does not answer"));
	hw_free(machine);
}

static void add_vf(struct buf *b, const char *bus_id, const char *physfn)
{
	buf_printf(b, "sys/bus/pci/devices/%s -> ../../../devices/" BRIDGE "/%s\n", bus_id, bus_id);
	buf_printf(b, "sys/devices/" BRIDGE "/%s/physfn -> ../%s\n", bus_id, physfn);
	buf_printf(b, "sys/devices/" BRIDGE "/%s/driver -> ../../../../bus/pci/drivers/vfio-pci\n",
		   bus_id);
}

/* What is true of a VF because it is true of its PF comes from there. */
static void test_vfs(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_pci *vf;

	(void)state;
	add_pci(&b, FUNCTION, 0x020700, 0x15b3, 0x1021, 1);
	buf_str(&b, DIR "/sriov_vf_device = 101e\n");
	add_vf(&b, "0000:03:00.1", "0000:03:00.0");
	/* A PF that tells no device id of its VFs. */
	add_pci(&b, BRIDGE "/0000:04:00.0", 0x020000, 0x15b3, 0x1021, 0);
	add_vf(&b, "0000:04:00.1", "0000:04:00.0");
	buf_str(&b, "sys/devices/" BRIDGE "/0000:04:00.1/device = 0x101c\n");
	/* One whose PF cannot be seen. */
	add_vf(&b, "0000:05:00.1", "0000:05:00.0");
	buf_str(&b, "sys/devices/" BRIDGE "/0000:05:00.1/device = 0x101e\n"
		    "sys/devices/" BRIDGE "/0000:05:00.1/vendor = 0x15b3\n"
		    "sys/devices/" BRIDGE "/0000:05:00.1/class = 0x020000\n"
		    "sys/devices/" BRIDGE "/0000:05:00.1/numa_node = 3\n");
	machine = read_buf(&b);
	assert_int_equal(machine->n_pci, 5);
	vf = pci_of(machine, "0000:03:00.1");
	assert_int_equal(vf->vendor, 0x15b3);
	assert_int_equal(vf->device, 0x101e);
	assert_int_equal(vf->class, 0x020700);
	assert_int_equal(vf->numa_node, 1);
	assert_string_equal(vf->physfn, "0000:03:00.0");
	assert_string_equal(vf->driver, "vfio-pci");
	assert_string_equal(vf->path, "/sys/devices/" BRIDGE "/0000:03:00.1");
	assert_int_equal(pci_of(machine, "0000:04:00.1")->device, 0x101c);
	vf = pci_of(machine, "0000:05:00.1");
	assert_int_equal(vf->device, 0x101e);
	assert_int_equal(vf->numa_node, 3);
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

/* Roots that are not "pci…", and domains of 32 bits. */
static void test_roots(void **state)
{
	static const char *const paths[] = {
		"LNXSYSTM:00/LNXSYBUS:00/VMBUS:00/47505500-0001/pci0101:00/0101:00:00.0",
		"pci0000:00/0000:00:0e.0/pci10000:00/10000:00:01.0",
		"pci0000:00/0000:00:0f.0/pci00010001:00/00010001:00:01.0",
		"platform/axi/1000120000.pcie/pci0002:00/0002:00:00.0",
	};
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		add_pci(&b, paths[i], 0x020000, 0x15b3, 0x101e, -1);
	machine = read_buf(&b);
	assert_int_equal(machine->n_pci, ARRAY_SIZE(paths));
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		const struct hw_pci *pci = pci_of(machine, strrchr(paths[i], '/') + 1);

		assert_true(starts_with(pci->path, "/sys/devices/"));
		assert_string_equal(pci->path + strlen("/sys/devices/"), paths[i]);
	}
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

/* Values of 100 kB, that are not UTF-8, that fail: unknown, and no warning for each. */
static void test_odd_values(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_pci *pci;

	(void)state;
	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 0);
	buf_str(&b, DIR "/current_link_speed = ");
	for (int i = 0; i < 100 * 1000; i++)
		buf_str(&b, "8");
	buf_str(&b, " GT/s\n" DIR "/max_link_speed = \xff\xfe GT/s\n" DIR
		    "/current_link_width ! EINVAL\n" DIR "/max_link_width ! ENODEV\n" DIR
		    "/revision ! EIO\n" DIR "/iommu_group -> ../\xff\xff\n" DIR "/driver -> .\n" DIR
		    "/config ! EIO\n" DIR "/sriov_totalvfs =\n");
	machine = read_buf(&b);
	pci = pci_of(machine, "0000:03:00.0");
	assert_int_equal(pci->link.speed_mts, HW_UNKNOWN);
	assert_int_equal(pci->link.max_speed_mts, HW_UNKNOWN);
	assert_int_equal(pci->link.width, HW_UNKNOWN);
	assert_int_equal(pci->link.max_width, HW_UNKNOWN);
	assert_int_equal(pci->revision, 0);
	assert_int_equal(pci->iommu_group, HW_UNKNOWN);
	assert_int_equal(pci->total_vfs, 0);
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

/* What goes away while it is read: the directory, and then its link, when "trigger" is asked for. */
static struct {
	const char *trigger, *dir, *link;
} vanishing;

ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	if (vanishing.trigger && streq(path, vanishing.trigger)) {
		vanishing.trigger = NULL;
		nftw(vanishing.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
		if (vanishing.link)
			unlink(vanishing.link);
	}
	return syscall(SYS_readlinkat, dirfd, path, buf, size);
}

static struct hw_machine *read_vanishing(char *recording, const char *trigger, const char *path,
					 const char *link)
{
	char *root = unpack(recording);
	_cleanup_free_ char *full = xasprintf("%s/%s", root, path);
	_cleanup_free_ char *full_link = link ? xasprintf("%s/%s", root, link) : NULL;
	struct hw_machine *machine = NULL;
	struct err err;

	free(recording);
	vanishing.trigger = trigger;
	vanishing.dir = full;
	vanishing.link = full_link;
	assert_int_equal(hw_read(root, &machine, &err), 0);
	assert_null(vanishing.trigger);
	remove_tree(root);
	return machine;
}

/* Gone, without half of its facts or a warning; the others stay. */
static void test_vanishing(void **state)
{
	static const char link[] = "sys/bus/pci/devices/0000:03:00.0";
	/*
	 * Before its directory is opened, before it is read, after that (and after a warning of its
	 * VPD), and with a link that stays.
	 */
	static const char *const triggers[] = { "0000:03:00.0", "driver", "iommu_group", "driver" };
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(triggers); i++) {
		add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 0);
		add_pci(&b, BRIDGE "/0000:04:00.0", 0x020000, 0x15b3, 0x1021, 0);
		add_vpd(&b, FUNCTION, "bad\xff", NULL);
		machine = read_vanishing(buf_take(&b), triggers[i], DIR, i == 3 ? NULL : link);
		assert_int_equal(machine->n_pci, 1);
		assert_string_equal(machine->pci[0].bus_id, "0000:04:00.0");
		assert_int_equal(machine->n_warnings, 0);
		hw_free(machine);
	}
}

static void test_netdev_vanishing(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 0);
	add_netdev(&b, FUNCTION, "eth0");
	add_netdev(&b, FUNCTION, "eth1");
	machine = read_vanishing(buf_take(&b), "master", DIR "/net/eth0", "sys/class/net/eth0");
	assert_int_equal(machine->n_netdevs, 1);
	assert_string_equal(machine->netdevs[0].name, "eth1");
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

static void test_rdma_vanishing(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, BRIDGE "/0000:04:00.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	machine = read_vanishing(buf_take(&b), "mlx5_0", DIR "/infiniband/mlx5_0",
				 "sys/class/infiniband/mlx5_0");
	assert_int_equal(machine->n_rdma, 1);
	assert_string_equal(machine->rdma[0].name, "mlx5_1");
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

static time_t later; /* seconds that are added to every clock */

/* Instead of the library's. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r = (int)syscall(SYS_clock_gettime, clock, t);

	t->tv_sec += later;
	return r;
}

/* As the running machine, whose VPD is remembered. */
static void assert_live_vpd(const struct hw_root *root, const char *bus_id, const char *sn,
			    const char *warning)
{
	struct hw_machine *machine = xnew(struct hw_machine);

	machine->part = HW_PART_PCI;
	hw_read_pci(root, machine);
	assert_string_or_null(pci_of(machine, bus_id)->vpd_sn, sn);
	assert_int_equal(machine->n_warnings, warning != NULL);
	if (warning)
		assert_string_equal(machine->warnings[0].code, warning);
	hw_free(machine);
}

/* In place, as in sysfs: the inode stays. */
static void write_vpd(const struct hw_root *root, const char *bus_id, const char *bytes, size_t n)
{
	_cleanup_free_ char *path = xasprintf("sys/bus/pci/devices/%s/vpd", bus_id);
	_cleanup_close_ int fd = openat(root->fd, path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
}

static char *live_nic(const char *bus_id, const char *vpd, struct hw_root *root)
{
	_cleanup_free_ char *path = xasprintf("pci0000:00/%s", bus_id);
	struct buf b = { 0 };
	struct err err;
	char *dir;

	add_pci(&b, path, 0x020000, 0x15b3, 0x1021, 0);
	buf_printf(&b, "sys/devices/%s/vpd%s\n", path, vpd);
	dir = unpack(b.data);
	buf_done(&b);
	assert_int_equal(hw_root_open(dir, root, &err), 0);
	root->live = true;
	return dir;
}

#define VPD_OF(sn) "\x90\x04\x00SN\x01" sn "\x78"
#define WRITE_VPD(root, bus_id, bytes) write_vpd(root, bus_id, bytes, sizeof(bytes) - 1)

/* A read takes long on some cards: what came of it is remembered, failures too. */
static void test_vpd_once(void **state)
{
	static const struct {
		const char *vpd; /* at first; then it is "b" */
		const char *sn, *warning;
		const char *soon_sn, *soon_warning;
		const char *later_sn, *later_warning; /* after more than ten minutes */
	} cases[] = {
		{ " : 900400534e016178", "a", NULL, "a", NULL, "a", NULL },
		{ " : ffff", NULL, "vpd-unreadable", NULL, "vpd-unreadable", NULL,
		  "vpd-unreadable" },
		{ " ! EIO", NULL, "vpd-unreadable", NULL, "vpd-unreadable", "b", NULL },
		{ " ! ETIMEDOUT", NULL, "vpd-unreadable", NULL, "vpd-unreadable", "b", NULL },
		{ " ! EACCES", NULL, "vpd-no-rights", "b", NULL, "b", NULL },
		{ " ! EMFILE", NULL, "vpd-unreadable", "b", NULL, "b", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *bus_id = xasprintf("0000:%02zx:00.0", i + 0x40);
		struct hw_root root;
		char *dir = live_nic(bus_id, cases[i].vpd, &root);

		later = 0;
		assert_live_vpd(&root, bus_id, cases[i].sn, cases[i].warning);
		WRITE_VPD(&root, bus_id, VPD_OF("b"));
		root.n_errors = 0;
		assert_live_vpd(&root, bus_id, cases[i].soon_sn, cases[i].soon_warning);
		later = 601;
		assert_live_vpd(&root, bus_id, cases[i].later_sn, cases[i].later_warning);
		later = 0;
		hw_root_close(&root);
		remove_tree(dir);
	}
}

/* Of a function that does not answer everything reads ff: that says nothing of it. */
static void test_vpd_of_broken(void **state)
{
	static const char bus_id[] = "0000:60:00.0";
	struct hw_root root;
	char *dir = live_nic(bus_id, " : ffff", &root);
	_cleanup_free_ char *config = xasprintf("%s/sys/devices/pci0000:00/%s/config", dir, bus_id);
	struct hw_machine *machine = xnew(struct hw_machine);
	char bytes[64];
	struct err err;

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(file_write_atomic(config, bytes, sizeof(bytes), 0600, 0, &err), 0);
	machine->part = HW_PART_PCI;
	hw_read_pci(&root, machine);
	assert_true(pci_of(machine, bus_id)->broken);
	hw_free(machine);
	assert_int_equal(unlink(config), 0);
	WRITE_VPD(&root, bus_id, VPD_OF("b"));
	assert_live_vpd(&root, bus_id, "b", NULL);
	hw_root_close(&root);
	remove_tree(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_acs),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_vfs),
		cmocka_unit_test(test_roots),
		cmocka_unit_test(test_odd_values),
		cmocka_unit_test(test_vanishing),
		cmocka_unit_test(test_vpd_once),
		cmocka_unit_test(test_vpd_of_broken),
		cmocka_unit_test(test_netdev_vanishing),
		cmocka_unit_test(test_rdma_vanishing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

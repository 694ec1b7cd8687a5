// SPDX-License-Identifier: Apache-2.0
/*
 * How long a machine is read and its topology built (budgets in docs/design.md §13), on machines
 * that are made on a RAM disk.  Processor time of the fastest run in milliseconds: a scan never
 * waits, and so other processes on the machine do not count.
 *   discover [FOLDER]            an 8+8 node, also with tables of GIDs as of running ports, 1,024
 *                                VFs, and that the time grows with the functions
 *   discover --rescan N [FOLDER] read the 8+8 node N times: the memory in use does not grow
 *   discover --make-vfs FOLDER   make the machine with 1,024 VFs; FOLDER is new
 *   discover --scan FOLDER       read it once (for callgrind: function "scan")
 * The default of the first FOLDER is /dev/shm.
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/hw.h"
#include "topo/inventory.h"

#define N_PFS 8
#define N_VFS 128
#define RUNS 15
#define NODE_BUDGET_MS 10
#define VFS_BUDGET_MS 50
#define MAX_RATIO 2.4 /* of twice the functions */
#define GID_TABLE 256
#define WARM_SCANS 200
#define MAX_GROWTH_KB 256

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Lines "<dir>/<file> = <value>" for pairs of file and value up to a NULL. */
static void add_files(struct buf *b, const char *dir, const char *const *pairs)
{
	for (; *pairs; pairs += 2)
		buf_printf(b, "%s/%s = %s\n", dir, pairs[0], pairs[1]);
}

static void add_function(struct buf *b, const char *dir, unsigned int class, unsigned int vendor,
			 unsigned int device, unsigned int port_type)
{
	const char *bus_id = strrchr(dir, '/') + 1;

	buf_printf(b, "sys/bus/pci/devices/%s -> ../../../%s\n", bus_id, dir);
	buf_printf(b, "sys/%s/class = 0x%06x\nsys/%s/vendor = 0x%04x\n", dir, class, dir, vendor);
	buf_printf(b, "sys/%s/device = 0x%04x\nsys/%s/numa_node = 0\n", dir, device, dir);
	buf_printf(b, "sys/%s/iommu_group -> ../../../kernel/iommu_groups/7\n", dir);
	if (!port_type)
		return;
	buf_printf(b, "sys/%s/config : ", dir);
	for (unsigned int at = 0; at < 0x108; at++) {
		unsigned int v = at == 0x06 ? 0x10 : at == 0x34 ? 0x40 : at == 0x40 ? 0x10 : 0;

		if (at == 0x42)
			v = port_type << 4 | 2;
		buf_printf(b, "%02x", at == 0x100 ? 0x0d : at == 0x106 ? 0x1d : v);
	}
	buf_str(b, "\n");
}

/* What devices and bridges have, VFs have not. */
static void add_physical(struct buf *b, const char *dir)
{
	_cleanup_free_ char *sys = xasprintf("sys/%s", dir);

	add_files(b, sys,
		  (const char *const[]){ "subsystem_vendor", "0x15b3", "subsystem_device", "0x0041",
					 "revision", "0x00", "current_link_speed", "32.0 GT/s PCIe",
					 "max_link_speed", "32.0 GT/s PCIe", "current_link_width",
					 "16", "max_link_width", "16", NULL });
}

static void add_netdev(struct buf *b, const char *dir, unsigned int n)
{
	_cleanup_free_ char *net = xasprintf("sys/%s/net/eth%u", dir, n);

	buf_printf(b, "sys/class/net/eth%u -> ../../%s/net/eth%u\n", n, dir, n);
	buf_printf(b, "%s/uevent = INTERFACE=eth%u\\nIFINDEX=%u\n", net, n, n + 2);
	add_files(b, net,
		  (const char *const[]){ "address", "00:00:5e:00:53:01", "type", "1", "mtu", "9000",
					 "operstate", "up", "carrier", "1", "speed", "400000",
					 "dev_port", "0", "phys_switch_id", "0123456789ab",
					 "phys_port_name", "p0", NULL });
}

/* "table": length of the GID table, of which "used" entries are set. */
static void add_rdma(struct buf *b, const char *dir, unsigned int n, unsigned int used,
		     unsigned int table)
{
	_cleanup_free_ char *rdma = xasprintf("sys/%s/infiniband/mlx5_%u", dir, n);
	_cleanup_free_ char *port = xasprintf("%s/ports/1", rdma);
	_cleanup_free_ char *guid = xasprintf("0000:5e00:5300:%04x", n);

	buf_printf(b, "sys/class/infiniband/mlx5_%u -> ../../%s/infiniband/mlx5_%u\n", n, dir, n);
	buf_printf(b, "sys/class/infiniband_verbs/uverbs%u -> ../../%s/infiniband_verbs/uverbs%u\n",
		   n, dir, n);
	buf_printf(b, "sys/%s/infiniband_verbs/uverbs%u/ibdev = mlx5_%u\n", dir, n, n);
	buf_printf(b, "sys/%s/infiniband_verbs/uverbs%u/dev = 231:%u\n", dir, n, 192 + n);
	add_files(b, rdma,
		  (const char *const[]){ "node_guid", guid, "sys_image_guid", guid, "fw_ver",
					 "28.39.3560", "board_id", "MT_0000000838", "hca_type",
					 "MT4129", NULL });
	add_files(b, port,
		  (const char *const[]){ "state", "4: ACTIVE", "phys_state", "5: LinkUp",
					 "link_layer", "Ethernet", "rate", "400 Gb/sec (4X NDR)",
					 "lid", "0x0", "sm_lid", "0x0", NULL });
	for (unsigned int i = 0; i < table; i++) {
		buf_printf(b, "%s/gids/%u = %s:0000:0000:0000:0000:0000:0000:0000\n", port, i,
			   i < used ? "fe80" : "0000");
		if (i >= used)
			continue;
		buf_printf(b, "%s/gid_attrs/types/%u = RoCE v2\n", port, i);
		buf_printf(b, "%s/gid_attrs/ndevs/%u = eth%u\n", port, i, n);
	}
}

static void add_pf(struct buf *b, const char *dir, unsigned int n, unsigned int n_vfs)
{
	add_function(b, dir, 0x020000, 0x15b3, 0x1021, 0);
	add_physical(b, dir);
	buf_printf(b, "sys/%s/driver -> ../../../../bus/pci/drivers/mlx5_core\n", dir);
	buf_printf(b, "sys/%s/sriov_numvfs = %u\nsys/%s/sriov_totalvfs = 256\n", dir, n_vfs, dir);
	buf_printf(b, "sys/%s/sriov_vf_device = 101e\n", dir);
	buf_printf(b, "sys/%s/vpd : 900a00534e0753%02x424344454678\n", dir, 0x41 + n % 26);
	add_netdev(b, dir, n);
}

/* 8 PFs with "n_vfs" VFs each below one root, and 8 GPUs. */
static void add_vf_machine(struct buf *b, unsigned int n_vfs)
{
	unsigned int n = 0;

	/* The links of VFs that wait for a pod have no address. */
	buf_str(b, "twinrail/addresses = lo 127.0.0.1/8 scope host\\neth0 10.0.0.1/24 scope "
		   "global\ntwinrail/routes = default via 10.0.0.2 dev eth0\n");
	for (unsigned int pf = 0; pf < N_PFS; pf++) {
		unsigned int bus = 0x10 + 2 * pf;
		_cleanup_free_ char *above = xasprintf("devices/pci0000:00/0000:00:%02x.0", pf + 1);
		_cleanup_free_ char *dir = xasprintf("%s/0000:%02x:00.0", above, bus);
		_cleanup_free_ char *gpu = xasprintf("devices/pci0000:00/0000:00:%02x.1/0000:%02x:"
						     "00.7",
						     pf + 1, 0x80 + pf);

		add_pf(b, dir, n, n_vfs);
		add_rdma(b, dir, n++, 4, 4);
		for (unsigned int vf = 1; vf <= n_vfs; vf++) {
			_cleanup_free_ char *path =
				xasprintf("%s/0000:%02x:%02x.%u", above, bus + (vf >> 8),
					  vf >> 3 & 0x1f, vf & 7);

			add_function(b, path, 0x020000, 0x15b3, 0x101e, 0);
			buf_printf(b, "sys/%s/driver -> ../../../../bus/pci/drivers/mlx5_core\n",
				   path);
			buf_printf(b, "sys/%s/physfn -> ../0000:%02x:00.0\n", path, bus);
			add_netdev(b, path, n);
			add_rdma(b, path, n++, 1, 1);
		}
		add_function(b, gpu, 0x030200, 0x10de, 0x2330, 0);
		add_physical(b, gpu);
	}
}

/* 8 switches with a GPU and a NIC each, and 64 functions of no interest. */
static void add_node(struct buf *b, unsigned int gid_table)
{
	for (unsigned int n = 0; n < N_PFS; n++) {
		_cleanup_free_ char *root = xasprintf("devices/pci%04x:00/%04x:00:00.0", n, n);
		_cleanup_free_ char *up = xasprintf("%s/%04x:01:00.0", root, n);
		_cleanup_free_ char *down0 = xasprintf("%s/%04x:02:00.0", up, n);
		_cleanup_free_ char *down1 = xasprintf("%s/%04x:02:01.0", up, n);
		_cleanup_free_ char *nic = xasprintf("%s/%04x:03:00.0", down0, n);
		_cleanup_free_ char *gpu = xasprintf("%s/%04x:04:00.0", down1, n);

		add_function(b, root, 0x060400, 0x8086, 0x352a, 4);
		add_function(b, up, 0x060400, 0x1000, 0xc030, 5);
		add_function(b, down0, 0x060400, 0x1000, 0xc030, 6);
		add_function(b, down1, 0x060400, 0x1000, 0xc030, 6);
		add_physical(b, root);
		add_physical(b, up);
		add_physical(b, down0);
		add_physical(b, down1);
		add_pf(b, nic, n, 0);
		add_rdma(b, nic, n, 4, gid_table);
		add_function(b, gpu, 0x030200, 0x10de, 0x2330, 0);
		add_physical(b, gpu);
		for (unsigned int other = 0; other < 8; other++) {
			_cleanup_free_ char *dir =
				xasprintf("devices/pci%04x:ff/%04x:ff:%02x.0", n, n, other);

			add_function(b, dir, 0x088000, 0x8086, 0x3250, 0);
		}
	}
}

static void make(const char *dir, struct buf *recording)
{
	_cleanup_free_ char *file = xasprintf("%s.machine", dir);
	struct err err = { 0 };

	if (file_write_atomic(file, recording->data, recording->len, 0600, 0, &err) < 0 ||
	    hw_snapshot_unpack(file, dir, &err) < 0) {
		fprintf(stderr, "discover: %s\n", err.msg);
		exit(2);
	}
	unlink(file);
	buf_done(recording);
}

static char *make_folder(const char *parent)
{
	char *dir = xasprintf("%s/discover.XXXXXX", parent);

	if (!mkdtemp(dir)) {
		fprintf(stderr, "discover: cannot make %s: %s\n", dir, strerror(errno));
		exit(2);
	}
	return dir;
}

static void remove_folder(char *dir)
{
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

static uint64_t cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

struct times {
	uint64_t read, total; /* microseconds */
};

/* Read "root" and build its topology; the number of NICs. */
__attribute__((noinline)) static size_t scan(const char *root, struct times *ret)
{
	uint64_t start = cpu_us();
	struct hw_machine *machine = NULL;
	struct inventory *inv;
	struct err err = { 0 };
	size_t n;

	if (hw_read(root, &machine, &err) < 0) {
		fprintf(stderr, "discover: %s\n", err.msg);
		exit(2);
	}
	ret->read = cpu_us() - start;
	inv = topo_build(machine, NULL);
	ret->total = cpu_us() - start;
	n = inv->n_nics;
	hw_free(machine);
	inventory_unref(inv);
	return n;
}

/* Fastest total in milliseconds; prints a line.  The budget may be 0: none. */
static double measure(const char *what, struct buf *recording, const char *folder, size_t n_nics,
		      int budget, int *status)
{
	char *dir = make_folder(folder);
	_cleanup_free_ char *root = xasprintf("%s/root", dir);
	struct times best = { 0, UINT64_MAX };
	bool over;

	make(root, recording);
	for (int i = 0; i < RUNS; i++) {
		struct times times;
		size_t n = scan(root, &times);

		if (n != n_nics) {
			fprintf(stderr, "discover: %s: %zu NICs found\n", what, n);
			*status = 1;
		}
		if (times.total < best.total)
			best = times;
	}
	remove_folder(dir);
	over = budget && best.total > (uint64_t)budget * 1000;
	if (over)
		*status = 1;
	printf("%s: read %.1f build %.1f total %.1f ms", what, (double)best.read / 1000,
	       (double)(best.total - best.read) / 1000, (double)best.total / 1000);
	if (budget)
		printf(" (budget %d%s)", budget, over ? ", NOT KEPT" : "");
	printf("\n");
	fflush(stdout);
	return (double)best.total / 1000;
}

static int measure_all(const char *folder)
{
	struct buf node = { 0 }, gids = { 0 }, vfs = { 0 }, twice = { 0 };
	int status = 0;
	double one, two;

	add_node(&node, 8);
	measure("8+8 node", &node, folder, N_PFS, NODE_BUDGET_MS, &status);
	add_node(&gids, GID_TABLE); /* as on the running machine */
	measure("8+8 node, with 256 GIDs each", &gids, folder, N_PFS, NODE_BUDGET_MS, &status);
	add_vf_machine(&vfs, N_VFS);
	one = measure("1,024 VFs", &vfs, folder, N_PFS * (N_VFS + 1), VFS_BUDGET_MS, &status);
	add_vf_machine(&twice, 2 * N_VFS - 1); /* the functions of two buses */
	two = measure("2,040 VFs", &twice, folder, N_PFS * 2 * N_VFS, 0, &status);
	printf("twice the functions: %.2f times as long (at most %.1f)\n", two / one, MAX_RATIO);
	return two / one > MAX_RATIO ? 1 : status;
}

static long rss_kb(void)
{
	_cleanup_free_ char *text = NULL;
	const char *line;
	struct err err = { 0 };

	if (file_read("/proc/self/status", 65536, &text, NULL, &err) < 0)
		return -1;
	line = strstr(text, "VmRSS:");
	return line ? strtol(line + 6, NULL, 10) : -1;
}

/* The agent's way: the same machine is read again and again. */
static int rescan(unsigned int n, const char *folder)
{
	char *dir = make_folder(folder);
	_cleanup_free_ char *root = xasprintf("%s/root", dir);
	struct hw_machine *machine = NULL;
	struct buf node = { 0 };
	struct err err = { 0 };
	long first = 0, last;

	add_node(&node, 8);
	make(root, &node);
	if (hw_read(root, &machine, &err) < 0)
		n = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (i == WARM_SCANS)
			first = rss_kb();
		if (hw_read_again(root, HW_PART_ALL, machine, &err) < 0)
			break;
		inventory_unref(topo_build(machine, NULL));
	}
	last = rss_kb();
	hw_free(machine);
	remove_folder(dir);
	if (err.code) {
		fprintf(stderr, "discover: %s\n", err.msg);
		return 2;
	}
	printf("%u scans: memory in use %ld kB after %d, %ld kB at the end\n", n, first, WARM_SCANS,
	       last);
	return first <= 0 || last - first > MAX_GROWTH_KB;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	unsigned int n;

	if (streq(command, "--rescan") && argc > 2 && parse_uint(argv[2], 10000000, &n) == 0)
		return rescan(n, argc > 3 ? argv[3] : "/dev/shm");
	if (streq(command, "--make-vfs") && argc > 2) {
		struct buf vfs = { 0 };

		add_vf_machine(&vfs, N_VFS);
		make(argv[2], &vfs);
		return 0;
	}
	if (streq(command, "--scan") && argc > 2) {
		struct times times;

		return scan(argv[2], &times) != N_PFS * (N_VFS + 1);
	}
	if (*command == '-') {
		fprintf(stderr, "discover: see the head of tests/bench/discover.c for how to use "
				"it\n");
		return 2;
	}
	return measure_all(*command ? command : "/dev/shm");
}

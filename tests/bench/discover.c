// SPDX-License-Identifier: Apache-2.0
/*
 * How long the machine is read and its topology built: 8 PFs with 128 VFs each below one root,
 * every function with a link and an RDMA device (budget in docs/design.md §13).  Prints the
 * fastest of some runs in milliseconds: "read R build B total T".
 *   discover [FOLDER]        a folder on a RAM disk to make the machine in, default /dev/shm
 */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/hw.h"
#include "topo/inventory.h"

#define N_PFS 8
#define N_VFS 128
#define RUNS 5

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void add_function(struct buf *b, unsigned int pf, unsigned int vf, unsigned int n)
{
	unsigned int devfn = vf + (vf ? 1 : 0);
	_cleanup_free_ char *bus_id =
		xasprintf("0000:%02x:%02x.%u", 0x10 + pf, devfn >> 3, devfn & 7);
	_cleanup_free_ char *dir =
		xasprintf("devices/pci0000:00/0000:00:%02x.0/%s", pf + 1, bus_id);

	buf_printf(b, "sys/bus/pci/devices/%s -> ../../../%s\n", bus_id, dir);
	buf_printf(b, "sys/%s/class = 0x020000\nsys/%s/vendor = 0x15b3\n", dir, dir);
	buf_printf(b, "sys/%s/device = 0x%04x\nsys/%s/numa_node = 0\n", dir, vf ? 0x101e : 0x1021,
		   dir);
	buf_printf(b, "sys/%s/driver -> ../../../../bus/pci/drivers/mlx5_core\n", dir);
	if (vf)
		buf_printf(b, "sys/%s/physfn -> ../0000:%02x:00.0\n", dir, 0x10 + pf);
	else
		buf_printf(b, "sys/%s/sriov_numvfs = %d\n", dir, N_VFS);
	buf_printf(b, "sys/class/net/eth%u -> ../../%s/net/eth%u\n", n, dir, n);
	buf_printf(b, "sys/%s/net/eth%u/mtu = 9000\nsys/%s/net/eth%u/operstate = up\n", dir, n, dir,
		   n);
	buf_printf(b, "sys/class/infiniband/mlx5_%u -> ../../%s/infiniband/mlx5_%u\n", n, dir, n);
	buf_printf(b, "sys/class/infiniband_verbs/uverbs%u/ibdev = mlx5_%u\n", n, n);
	buf_printf(b, "sys/class/infiniband_verbs/uverbs%u/dev = 231:%u\n", n, 192 + n);
	buf_printf(b, "sys/%s/infiniband/mlx5_%u/fw_ver = 28.39.3560\n", dir, n);
	buf_printf(b, "sys/%s/infiniband/mlx5_%u/ports/1/state = 4: ACTIVE\n", dir, n);
	buf_printf(b, "sys/%s/infiniband/mlx5_%u/ports/1/link_layer = Ethernet\n", dir, n);
	buf_printf(b, "sys/%s/infiniband/mlx5_%u/ports/1/gids/0 = fe80::%x\n", dir, n, n);
	buf_printf(b, "sys/%s/infiniband/mlx5_%u/ports/1/gid_attrs/types/0 = RoCE v2\n", dir, n);
}

static void add_machine(const char *file, const char *dir)
{
	struct buf b = { 0 };
	struct err err = { 0 };

	for (unsigned int pf = 0; pf < N_PFS; pf++) {
		for (unsigned int vf = 0; vf <= N_VFS; vf++)
			add_function(&b, pf, vf, pf * (N_VFS + 1) + vf);
		buf_printf(&b,
			   "sys/bus/pci/devices/0000:%02x:00.7 -> ../../../devices/pci0000:00/"
			   "0000:00:%02x.1/0000:%02x:00.7\n",
			   0x40 + pf, pf + 1, 0x40 + pf);
		for (const char *const *line =
			     (const char *const[]){ "class = 0x030200", "vendor = 0x10de",
						    "device = 0x2330", NULL };
		     *line; line++)
			buf_printf(&b, "sys/devices/pci0000:00/0000:00:%02x.1/0000:%02x:00.7/%s\n",
				   pf + 1, 0x40 + pf, *line);
	}
	if (file_write_atomic(file, b.data, b.len, 0600, 0, &err) < 0 ||
	    hw_snapshot_unpack(file, dir, &err) < 0) {
		fprintf(stderr, "discover: %s\n", err.msg);
		exit(2);
	}
	buf_done(&b);
}

int main(int argc, char **argv)
{
	_cleanup_free_ char *dir = xasprintf("%s/discover.XXXXXX", argc > 1 ? argv[1] : "/dev/shm");
	_cleanup_free_ char *file = NULL, *root = NULL;
	uint64_t best = UINT64_MAX, best_read = 0;
	int status = 0;

	if (!mkdtemp(dir)) {
		fprintf(stderr, "discover: cannot make %s: %s\n", dir, strerror(errno));
		return 2;
	}
	file = xasprintf("%s/machine", dir);
	root = xasprintf("%s/root", dir);
	add_machine(file, root);
	for (int i = 0; i < RUNS && status == 0; i++) {
		uint64_t start = clock_us(), read, end;
		struct hw_machine *machine = NULL;
		struct inventory *inv;
		struct err err = { 0 };

		if (hw_read(root, &machine, &err) < 0) {
			fprintf(stderr, "discover: %s\n", err.msg);
			status = 2;
			break;
		}
		read = clock_us();
		inv = topo_build(machine, NULL);
		end = clock_us();
		if (inv->n_nics != N_PFS * (N_VFS + 1)) {
			fprintf(stderr, "discover: %zu NICs found\n", inv->n_nics);
			status = 1;
		}
		if (end - start < best) {
			best = end - start;
			best_read = read - start;
		}
		hw_free(machine);
		inventory_unref(inv);
	}
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	if (status == 0)
		printf("read %.1f build %.1f total %.1f\n", (double)best_read / 1000,
		       (double)(best - best_read) / 1000, (double)best / 1000);
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_TEST_TOPO_MACHINE_H
#define TWINRAIL_TESTS_TEST_TOPO_MACHINE_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/machine.h"
#include "topo/inventory.h"
#include "topo/platform.h"

/* Machines written by tests: recordings that are put together, unpacked and read. */

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* A new folder where temporary files belong; the caller removes it with remove_tree(). */
static inline char *new_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = xasprintf("%s/twinrail-test.XXXXXX", tmp ? tmp : "/tmp");

	assert_non_null(mkdtemp(dir));
	return dir;
}

/* Unpack "recording" into a new directory; the caller removes it with remove_tree(). */
static inline char *unpack(const char *recording)
{
	char *dir = new_folder();
	_cleanup_free_ char *file = NULL;
	struct err err = { 0 };

	file = xasprintf("%s.machine", dir);
	assert_int_equal(file_write_atomic(file, recording, strlen(recording), 0600, 0, &err), 0);
	if (hw_snapshot_unpack(file, dir, &err) < 0)
		fail_msg("%s", err.msg);
	remove(file);
	return dir;
}

static inline void remove_tree(char *dir)
{
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

static inline struct hw_machine *read_machine(const char *recording)
{
	char *dir = unpack(recording);
	struct hw_machine *machine = NULL;
	struct err err = { 0 };
	int r = hw_read(dir, &machine, &err);

	remove_tree(dir);
	if (r < 0)
		fail_msg("%s", err.msg);
	return machine;
}

/* Reads and builds; takes the text of "recording". */
static inline struct inventory *build_with(struct buf *recording,
					   const struct topo_options *options)
{
	_cleanup_free_ char *text = buf_take(recording);
	struct hw_machine *machine = read_machine(text);
	struct inventory *inv = topo_build(machine, options);

	hw_free(machine);
	return inv;
}

static inline struct inventory *build_machine(struct buf *recording)
{
	return build_with(recording, NULL);
}

/* The caller frees the result. */
static inline struct platforms *parse_platforms(const char *text)
{
	struct platforms *platforms = NULL;
	struct err err = { 0 };

	if (platforms_parse(text, strlen(text), "test.yaml", &platforms, &err) < 0)
		fail_msg("%s", err.msg);
	return platforms;
}

/* A PCI function; "path" below sys/devices ends in its address. */
static inline void add_pci(struct buf *b, const char *path, unsigned int class, unsigned int vendor,
			   unsigned int device, int numa)
{
	buf_printf(b, "sys/bus/pci/devices/%s -> ../../../devices/%s\n", strrchr(path, '/') + 1,
		   path);
	buf_printf(b, "sys/devices/%s/class = 0x%06x\n", path, class);
	buf_printf(b, "sys/devices/%s/vendor = 0x%04x\n", path, vendor);
	buf_printf(b, "sys/devices/%s/device = 0x%04x\n", path, device);
	buf_printf(b, "sys/devices/%s/numa_node = %d\n", path, numa);
}

/* Configuration space with a PCI Express capability of this device/port type. */
static inline void add_port_type(struct buf *b, const char *path, unsigned int type)
{
	buf_printf(b, "sys/devices/%s/config : ", path);
	for (unsigned int at = 0; at < 0x44; at++)
		buf_printf(b, "%02x",
			   at == 0x06	? 0x10
			   : at == 0x34 ? 0x40
			   : at == 0x40 ? 0x10
			   : at == 0x42 ? type << 4 | 2
					: 0);
	buf_str(b, "\n");
}

/* A root port on the root bus; below, upstream and downstream ports of switches take turns. */
static inline void add_bridge(struct buf *b, const char *path, unsigned int vendor,
			      unsigned int device)
{
	unsigned int depth = 0;

	for (const char *p = strchr(path, '/'); p && (p = strchr(p + 1, '/'));)
		depth++;
	add_pci(b, path, 0x060400, vendor, device, 0);
	add_port_type(b, path, depth == 0 ? 4 : depth % 2 ? 5 : 6);
}

/* One of NVIDIA with its driver, which says nothing of it. */
static inline void add_silent_gpu(struct buf *b, const char *path, int numa)
{
	add_pci(b, path, 0x030200, 0x10de, 0x2330, numa);
	buf_printf(b, "sys/devices/%s/driver -> ../drivers/nvidia\n", path);
}

/* What the driver says of it. */
static inline void add_gpu_driver(struct buf *b, const char *bus_id, const char *information)
{
	buf_printf(b, "proc/driver/nvidia/gpus/%s/information = %s\n", bus_id, information);
}

static inline void add_gpu(struct buf *b, const char *path, int numa)
{
	add_silent_gpu(b, path, numa);
	add_gpu_driver(b, strrchr(path, '/') + 1, "Device Minor: 0");
}

static inline void add_netdev(struct buf *b, const char *path, const char *name)
{
	buf_printf(b, "sys/class/net/%s -> ../../devices/%s/net/%s\n", name, path, name);
	buf_printf(b, "sys/devices/%s/net/%s/mtu = 1500\n", path, name);
}

/* An RDMA NIC of Mellanox without verbs device. */
static inline void add_unopened_nic(struct buf *b, const char *path, unsigned int device, int numa,
				    const char *rdma)
{
	add_pci(b, path, 0x020000, 0x15b3, device, numa);
	buf_printf(b, "sys/class/infiniband/%s -> ../../devices/%s/infiniband/%s\n", rdma, path,
		   rdma);
	buf_printf(b, "sys/devices/%s/infiniband/%s/node_type = 1: CA\n", path, rdma);
}

/* "netdev" and "guid" may be NULL. */
static inline void add_nic(struct buf *b, const char *path, unsigned int device, int numa,
			   const char *rdma, const char *netdev, const char *guid)
{
	add_unopened_nic(b, path, device, numa, rdma);
	buf_printf(b, "sys/class/infiniband_verbs/uverbs_%s/ibdev = %s\n", rdma, rdma);
	buf_printf(b, "sys/class/infiniband_verbs/uverbs_%s/dev = 231:192\n", rdma);
	if (guid)
		buf_printf(b, "sys/devices/%s/infiniband/%s/sys_image_guid = %s\n", path, rdma,
			   guid);
	if (netdev)
		add_netdev(b, path, netdev);
}

/* VPD with a serial number and V3; either may be NULL. */
static inline void add_vpd(struct buf *b, const char *path, const char *sn, const char *v3)
{
	struct buf keywords = { 0 };
	const char *values[] = { sn, v3 }, *names[] = { "SN", "V3" };

	for (size_t i = 0; i < 2; i++)
		if (values[i])
			buf_printf(&keywords, "%s%c%s", names[i], (char)strlen(values[i]),
				   values[i]);
	buf_printf(b, "sys/devices/%s/vpd : 90%02x00", path, (unsigned int)keywords.len);
	for (size_t i = 0; i < keywords.len; i++)
		buf_printf(b, "%02x", (unsigned char)keywords.data[i]);
	buf_str(b, "78\n");
	buf_done(&keywords);
}

/* Group "n": a root complex with one switch, DSP 0 for a NIC, DSP 1 for a GPU. */
static inline char *group_path(unsigned int n, unsigned int port, const char *device)
{
	return xasprintf("pci%04x:00/%04x:00:00.0/%04x:01:00.0/%04x:02:%02x.0/%04x:%s", n, n, n, n,
			 port, n, device);
}

static inline void add_group(struct buf *b, unsigned int n)
{
	for (unsigned int port = 0; port < 2; port++) {
		_cleanup_free_ char *path = group_path(n, port, "x");

		*strrchr(path, '/') = '\0';
		add_bridge(b, path, 0x1000, 0xc030);
		if (port)
			continue;
		*strrchr(path, '/') = '\0';
		add_bridge(b, path, 0x1000, 0xc030);
		*strrchr(path, '/') = '\0';
		add_bridge(b, path, 0x8086, 1);
	}
}

static inline void add_group_gpu(struct buf *b, unsigned int n, const char *device)
{
	_cleanup_free_ char *path = group_path(n, 1, device);

	add_gpu(b, path, 0);
}

/* "device": "03:00.0" */
static inline char *add_group_nic(struct buf *b, unsigned int n, const char *device,
				  unsigned int id, const char *netdev, const char *guid)
{
	char *path = group_path(n, 0, device);
	_cleanup_free_ char *rdma = xasprintf("rocep%us%c", n, device[strlen(device) - 1]);
	_cleanup_free_ char *name = xasprintf("%s%c", rdma, device[1]);

	add_nic(b, path, id, 0, name, netdev, guid);
	return path;
}

/* A function to change the facts of. */
static inline struct hw_pci *pci_of(struct hw_machine *machine, const char *bus_id)
{
	for (size_t i = 0; i < machine->n_pci; i++)
		if (streq(machine->pci[i].bus_id, bus_id))
			return &machine->pci[i];
	fail_msg("no function %s", bus_id);
	return NULL;
}

static inline const struct topo_nic *nic_of(const struct inventory *inv, const char *bus_id)
{
	const struct topo_nic *nic = inventory_nic(inv, bus_id);

	if (!nic)
		fail_msg("no NIC %s", bus_id);
	return nic;
}

static inline bool has_warning(const struct inventory *inv, const char *code)
{
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, code))
			return true;
	return false;
}

static inline const char *warning_text(const struct inventory *inv, const char *code)
{
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, code))
			return inv->warnings[i].message;
	fail_msg("no warning %s", code);
	return NULL;
}

static inline void assert_string_or_null(const char *value, const char *expected)
{
	if (!streq_null(value, expected))
		fail_msg("\"%s\" instead of \"%s\"", value ? value : "(absent)",
			 expected ? expected : "(absent)");
}

#endif

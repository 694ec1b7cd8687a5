// SPDX-License-Identifier: Apache-2.0
/* GPUs of the three vendors, and the NUMA nodes. */
#include "hw/read.h"
#include "test_topo_machine.h"

#define NVIDIA "proc/driver/nvidia"
#define KFD "sys/class/kfd/kfd/topology/nodes"

/* Takes the text of "b". */
static struct hw_machine *read_buf(struct buf *b)
{
	_cleanup_free_ char *text = buf_take(b);

	return read_machine(text);
}

static const struct hw_gpu *gpu_of(const struct hw_machine *machine, const char *bus_id)
{
	for (size_t i = 0; i < machine->n_gpus; i++)
		if (streq(machine->gpus[i].bus_id, bus_id))
			return &machine->gpus[i];
	fail_msg("no GPU %s", bus_id);
	return NULL;
}

static void add_nvidia(struct buf *b, const char *name, const char *uuid, int minor)
{
	buf_printf(b,
		   NVIDIA "/gpus/%s/information = Model: \\t\\t NVIDIA H200\\nGPU UUID: \\t "
			  "%s\\nDevice Minor: \\t %d\n",
		   name, uuid, minor);
}

/* Addresses as libraries write them; texts that stand for no UUID. */
static void test_nvidia(void **state)
{
	static const char *const no_uuids[] = {
		"GPU-?\?\?\?\?\?\?\?-?\?\?\?", "GPU-", "Unknown Error", "N/A", "GPU-1234 (error)",
	};
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_nvidia(&b, "00000000:9B:00.0", "GPU-60191ee1-f437-565c-ab0f-914032019dc5", 2);
	add_nvidia(&b, "00010000:01:00.0", "GPU-00000001", 1);
	add_nvidia(&b, "0000:0a:00.0", "GPU-00000002", 0);
	add_nvidia(&b, "0000:9b:00.0", "GPU-00000003", 0); /* the first one again */
	buf_str(&b, NVIDIA "/gpus/x/information = y\n");
	for (size_t i = 0; i < ARRAY_SIZE(no_uuids); i++) {
		_cleanup_free_ char *name = xasprintf("0000:c%zu:00.0", i);

		add_nvidia(&b, name, no_uuids[i], -1);
	}
	machine = read_buf(&b);
	assert_int_equal(machine->n_gpus, 3 + ARRAY_SIZE(no_uuids));
	assert_string_equal(gpu_of(machine, "0000:9b:00.0")->uuid,
			    "GPU-60191ee1-f437-565c-ab0f-914032019dc5");
	assert_string_equal(gpu_of(machine, "00010000:01:00.0")->uuid, "GPU-00000001");
	assert_int_equal(gpu_of(machine, "0000:0a:00.0")->minor, 0);
	assert_int_equal(gpu_of(machine, "0000:0a:00.0")->n_partitions, HW_UNKNOWN);
	for (size_t i = 0; i < ARRAY_SIZE(no_uuids); i++) {
		_cleanup_free_ char *name = xasprintf("0000:c%zu:00.0", i);

		assert_null(gpu_of(machine, name)->uuid);
		assert_string_equal(gpu_of(machine, name)->model, "NVIDIA H200");
		assert_int_equal(gpu_of(machine, name)->minor, HW_UNKNOWN);
	}
	for (size_t i = 1; i < machine->n_gpus; i++)
		assert_true(strcmp(machine->gpus[i - 1].bus_id, machine->gpus[i].bus_id) < 0);
	hw_free(machine);
}

/* Read again after its driver was unloaded: what that said of the GPU is true no more. */
static void test_driver_unloaded(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine = NULL;
	struct err err = { 0 };
	char *dir, *later;

	(void)state;
	add_pci(&b, "pci0000:00/0000:0a:00.0", 0x030200, 0x10de, 0x2335, 0);
	add_nvidia(&b, "0000:0a:00.0", "GPU-00000001", 0);
	buf_str(&b, NVIDIA "/version = NVRM version: NVIDIA UNIX Open Kernel Module\n"
			   "sys/module/nvidia/version = 580.95.5\n"
			   "sys/module/nvidia_peermem/refcnt = 0\n");
	dir = unpack(b.data);
	buf_done(&b);
	assert_int_equal(hw_read(dir, &machine, &err), 0);
	assert_int_equal(machine->n_gpus, 1);
	assert_true(machine->nvidia_peermem && machine->nvidia_open);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *from = xasprintf("%s/%s", dir, i ? NVIDIA : "sys/module");

		later = xasprintf("%s/later%d", dir, i);
		assert_int_equal(rename(from, later), 0);
		free(later);
	}
	assert_int_equal(hw_read_again(dir, HW_PART_GPU, machine, &err), 0);
	assert_int_equal(machine->n_gpus, 0);
	assert_null(machine->nvidia_driver);
	assert_false(machine->nvidia_peermem || machine->nvidia_open);
	hw_free(machine);
	remove_tree(dir);
}

/* A number that is none, or that no device node has. */
static void test_odd_minors(void **state)
{
	static const char *const minors[] = { "x", "-7", "0x3", "99999999999", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct hw_machine *machine;
		struct buf b = { 0 };

		buf_printf(&b,
			   NVIDIA "/gpus/0000:0a:00.0/information = Model: X\\nDevice Minor: "
				  "%s\\nx: y\n",
			   minors[i]);
		machine = read_buf(&b);
		assert_int_equal(machine->n_gpus, 1);
		assert_int_equal(machine->gpus[0].minor, HW_UNKNOWN);
		hw_free(machine);
	}
}

static void test_nvidia_driver(void **state)
{
	static const struct {
		const char *recording;
		bool open, peermem;
	} cases[] = {
		{ "proc/version = x\n", false, false },
		{ NVIDIA "/version = NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
			 "570.1.2  Release Build\n",
		  true, false },
		{ NVIDIA "/version = NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.2\n",
		  false, false },
		{ "sys/module/nvidia_peermem/refcnt = 0\n", false, true },
		{ "sys/module/nv_peer_mem/refcnt = 0\n", false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hw_machine *machine = read_machine(cases[i].recording);

		assert_int_equal(machine->nvidia_open, cases[i].open);
		assert_int_equal(machine->nvidia_peermem, cases[i].peermem);
		hw_free(machine);
	}
}

/* Divided GPUs: by minor, not by the order of the addresses. */
static void test_mig(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_nvidia(&b, "0000:01:00.0", "GPU-1", 1);
	add_nvidia(&b, "0000:02:00.0", "GPU-2", 0);
	buf_str(&b, NVIDIA "/capabilities/gpu0/mig/gi7/access = DeviceFileMinor: 3\n" NVIDIA
			   "/capabilities/gpu0/mig/gi8/ci0/access = DeviceFileMinor: 4\n" NVIDIA
			   "/capabilities/gpu1/mig/config = DeviceFileMinor: 1\n");
	machine = read_buf(&b);
	assert_null(gpu_of(machine, "0000:01:00.0")->partition);
	assert_int_equal(gpu_of(machine, "0000:01:00.0")->n_partitions, HW_UNKNOWN);
	assert_string_equal(gpu_of(machine, "0000:02:00.0")->partition, "mig");
	assert_int_equal(gpu_of(machine, "0000:02:00.0")->n_partitions, 2);
	hw_free(machine);
}

static void add_kfd(struct buf *b, int node, unsigned int gpu_id, unsigned int location,
		    unsigned int domain, unsigned int minor)
{
	buf_printf(b, KFD "/%d/gpu_id = %u\n", node, gpu_id);
	buf_printf(b,
		   KFD "/%d/properties = cpu_cores_count 0\\nlocation_id %u\\ndomain "
		       "%u\\ndrm_render_minor %u\\nunique_id 1311768467463790320\\nnum_xcc 1\n",
		   node, location, domain, minor);
}

/* Older GPUs have no mode of division, and one node: they are whole. */
static void test_old_amd(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pci(&b, "pci0000:00/0000:05:00.0", 0x120000, 0x1002, 0x66a1, 0);
	add_kfd(&b, 1, 777, 0x0500, 0, 128);
	/* One part is left of one that was divided: it is divided all the same. */
	add_pci(&b, "pci0000:00/0000:06:00.0", 0x120000, 0x1002, 0x74a1, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:06:00.0/current_compute_partition = CPX\n");
	add_kfd(&b, 2, 778, 0x0600, 0, 129);
	machine = read_buf(&b);
	assert_int_equal(machine->n_gpus, 2);
	assert_null(machine->gpus[0].partition);
	assert_int_equal(machine->gpus[0].n_partitions, HW_UNKNOWN);
	assert_int_equal(machine->gpus[0].minor, 128);
	assert_string_equal(machine->gpus[1].partition, "cpx");
	assert_int_equal(machine->gpus[1].n_partitions, 1);
	hw_free(machine);
}

static void test_amd(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_gpu *gpu;

	(void)state;
	add_pci(&b, "pci0000:00/0000:05:00.0", 0x120000, 0x1002, 0x74a1, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:05:00.0/product_name = AMD Instinct MI300X\n"
		    "sys/devices/pci0000:00/0000:05:00.0/unique_id = 00aa00bb00cc00dd\n"
		    "sys/devices/pci0000:00/0000:05:00.0/current_compute_partition = SPX\n");
	/* Divided into four, in another domain; node 10 is seen before node 7. */
	add_pci(&b, "pci0001:00/0001:26:00.0", 0x120000, 0x1002, 0x74a1, 0);
	buf_str(&b, "sys/devices/pci0001:00/0001:26:00.0/current_compute_partition = CPX\n"
		    "sys/devices/pci0001:00/0001:26:00.0/unique_id ! EIO\n");
	buf_str(&b, KFD "/0/gpu_id = 0\n" KFD "/0/properties = location_id 1280\\ndomain 0\n");
	add_kfd(&b, 1, 777, 0x0500, 0, 128);
	for (unsigned int i = 0; i < 4; i++)
		add_kfd(&b, 7 + (int)i, 900 + i, i << 28 | 0x2600, 1, 136 + i);
	/* Not of this cgroup, of no function here, and nonsense. */
	buf_str(&b, KFD "/20/gpu_id ! EPERM\n" KFD "/20/properties ! EPERM\n" KFD
			"/22/gpu_id = 5\n" KFD "/22/properties = location_id many\n");
	add_kfd(&b, 21, 999, 0x7700, 0, 150);
	machine = read_buf(&b);
	assert_int_equal(machine->n_gpus, 2);
	gpu = gpu_of(machine, "0000:05:00.0");
	assert_string_equal(gpu->model, "AMD Instinct MI300X");
	assert_string_equal(gpu->uuid, "00aa00bb00cc00dd");
	assert_int_equal(gpu->minor, 128);
	assert_null(gpu->partition);
	assert_int_equal(gpu->n_partitions, HW_UNKNOWN);
	gpu = gpu_of(machine, "0001:26:00.0");
	assert_null(gpu->model);
	assert_string_equal(gpu->uuid, "123456789abcdef0");
	assert_int_equal(gpu->minor, 136);
	assert_string_equal(gpu->partition, "cpx");
	assert_int_equal(gpu->n_partitions, 4);
	hw_free(machine);
}

/* Without the compute driver there is DRM; displays of servers and other vendors are none. */
static void test_drm(void **state)
{
	static const struct {
		const char *path, *node;
		unsigned int class, vendor;
	} functions[] = {
		{ "pci0000:00/0000:03:00.0", "renderD130", 0x038000, 0x8086 },
		{ "pci0000:00/0000:04:00.0", "renderD131", 0x120000, 0x1002 },
		{ "pci0000:00/0000:05:00.0", "renderD132", 0x030000, 0x1a03 },
		{ "pci0000:00/0000:06:00.0", "renderD133", 0x030200, 0x10de },
		{ "pci0000:00/0000:07:00.0", "card4", 0x038000, 0x8086 },
	};
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		add_pci(&b, functions[i].path, functions[i].class, functions[i].vendor, 1, 0);
		buf_printf(&b, "sys/class/drm/%s -> ../../devices/%s/drm/%s\n", functions[i].node,
			   functions[i].path, functions[i].node);
	}
	buf_str(&b, "sys/class/drm/version = drm 1.1.0\n"
		    "sys/class/drm/renderD140 -> ../../devices/platform/xcp/drm/renderD140\n");
	machine = read_buf(&b);
	assert_int_equal(machine->n_gpus, 2);
	assert_int_equal(gpu_of(machine, "0000:03:00.0")->minor, 130);
	assert_int_equal(gpu_of(machine, "0000:04:00.0")->minor, 131);
	assert_null(gpu_of(machine, "0000:03:00.0")->uuid);
	hw_free(machine);
}

static void test_numa(void **state)
{
	struct hw_machine *machine =
		read_machine("sys/devices/system/node/node10/distance = 10 21 40\n"
			     "sys/devices/system/node/node10/cpulist =\n"
			     "sys/devices/system/node/node0/distance = 10 x\n"
			     "sys/devices/system/node/node0/cpulist = 4-7,12\n"
			     "sys/devices/system/node/node2/cpulist = 8\n"
			     "sys/devices/system/node/node2/distance = 21 10 40\n"
			     "sys/devices/system/node/node5/cpulist = 9\n"
			     "sys/devices/system/node/node5/distance = 0 10\n"
			     "sys/devices/system/node/online = 0,2,5,10\n"
			     "sys/devices/system/node/nodes/x = 1\n"
			     "sys/devices/system/cpu/cpu4/topology/physical_package_id = 1\n"
			     "sys/devices/system/cpu/cpu8/topology/physical_package_id = -7\n");

	(void)state;
	assert_int_equal(machine->n_numa, 4);
	assert_int_equal(machine->numa[0].node, 0);
	assert_int_equal(machine->numa[0].package, 1);
	assert_int_equal(machine->numa[0].n_distances, 0);
	assert_null(machine->numa[0].distances);
	assert_int_equal(machine->numa[1].node, 2);
	assert_int_equal(machine->numa[1].package, HW_UNKNOWN);
	assert_int_equal(machine->numa[1].n_distances, 3);
	assert_int_equal(machine->numa[1].distances[0], 21);
	assert_int_equal(machine->numa[2].node, 5);
	assert_int_equal(machine->numa[2].package, HW_UNKNOWN);
	assert_int_equal(machine->numa[2].n_distances, 0);
	assert_int_equal(machine->numa[3].node, 10);
	assert_int_equal(machine->numa[3].package, HW_UNKNOWN);
	assert_int_equal(machine->numa[3].distances[2], 40);
	hw_free(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nvidia),	   cmocka_unit_test(test_driver_unloaded),
		cmocka_unit_test(test_odd_minors), cmocka_unit_test(test_nvidia_driver),
		cmocka_unit_test(test_mig),	   cmocka_unit_test(test_amd),
		cmocka_unit_test(test_old_amd),	   cmocka_unit_test(test_drm),
		cmocka_unit_test(test_numa),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

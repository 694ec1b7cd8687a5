// SPDX-License-Identifier: Apache-2.0
/* What is known of GPUs, and the class of a node's topology. */
#include "test_topo_machine.h"

/* --- GPUs --- */

static void assert_gdr(const char *kernel, bool peermem, bool open, const char *driver,
		       const char *expected)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	struct inventory *inv;

	add_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_pci(&b, "pci0000:00/0000:00:02.0", 0x120000, 0x1002, 0x74a1, 0);
	machine = read_machine(b.data);
	buf_done(&b);
	free(machine->kernel_release);
	free(machine->nvidia_driver);
	machine->kernel_release = xstrdup_null(kernel);
	machine->nvidia_driver = xstrdup_null(driver);
	machine->nvidia_peermem = peermem;
	machine->nvidia_open = open;
	inv = topo_build(machine, NULL);
	assert_string_or_null(inv->gpus[0].gdr, expected);
	assert_null(inv->gpus[1].gdr); /* nobody says how AMD's driver was built */
	inventory_unref(inv);
	hw_free(machine);
}

static void test_gdr(void **state)
{
	(void)state;
	assert_gdr("6.1.0-57-amd64", true, true, "580.95.05", "peermem");
	assert_gdr("6.1.0-57-amd64", false, true, "580.95.05", "dmabuf");
	assert_gdr("5.12.0", false, true, "580.95.05", "dmabuf");
	assert_gdr("5.11.22-generic", false, true, "580.95.05", "none");
	assert_gdr("4.18.0-553.el8", false, true, "580.95.05", "none");
	assert_gdr("6.8.0", false, false, "535.104.05", "none");
	assert_gdr("5.4.0", true, false, "470.57.02", "peermem");
	assert_gdr(NULL, false, true, "580.95.05", NULL);
	assert_gdr("next", false, true, "580.95.05", NULL);
	assert_gdr("6", false, true, "580.95.05", NULL);
	/* No driver: nothing is known. */
	assert_gdr("6.1.0", false, false, NULL, NULL);
}

static void test_partitions(void **state)
{
	struct topo_options options = { .nvlink_domain = "4b1bd4cd.7" };
	struct buf b = { 0 };
	struct hw_machine *machine;
	struct inventory *inv;

	(void)state;
	add_silent_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_silent_gpu(&b, "pci0000:00/0000:00:02.0", 0);
	machine = read_machine(b.data);
	buf_done(&b);
	for (size_t i = 0; i < 2; i++)
		*array_push(machine->gpus, machine->n_gpus, machine->cap_gpus) = (struct hw_gpu){
			.bus_id = xasprintf("00000000:00:0%zu.0", i + 1),
			.minor = (int)i,
			.partition = i ? xstrdup("mig") : NULL,
			.n_partitions = i ? 7 : 0,
		};
	inv = topo_build(machine, &options);
	assert_null(inv->gpus[0].partition);
	assert_int_equal(inv->gpus[0].n_partitions, TOPO_UNKNOWN);
	assert_string_equal(inv->gpus[1].partition, "mig");
	assert_int_equal(inv->gpus[1].n_partitions, 7);
	assert_int_equal(inv->n_warnings, 1);
	assert_string_equal(inv->warnings[0].code, "gpu-partitioned");
	assert_string_equal(inv->warnings[0].object, "gpu-0000-00-02-0");
	assert_string_equal(inv->nvlink_domain, "4b1bd4cd.7");
	inventory_unref(inv);
	hw_free(machine);
}

/* A VF beside its PF is no GPU of the node; one that came into a virtual machine is. */
static void test_vfs_of_gpus(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_gpu(&b, "pci0000:00/0000:00:01.4", 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:00:01.4/physfn -> ../0000:00:01.0\n");
	add_pci(&b, "pci0000:00/0000:00:02.0", 0x120000, 0x1002, 0x74b5, 0);
	inv = build_machine(&b);
	assert_int_equal(inv->n_gpus, 2);
	assert_string_equal(inv->gpus[0].bus_id, "0000:00:01.0");
	assert_string_equal(inv->gpus[1].bus_id, "0000:00:02.0");
	inventory_unref(inv);
}

/* A GPU and a NIC that fell off the bus are shown, but no pair is made of them. */
static void test_broken(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_silent_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_nic(&b, "pci0000:00/0000:00:02.0", 0x1021, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:00:03.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	for (unsigned int i = 1; i <= 2; i++) {
		buf_printf(&b, "sys/devices/pci0000:00/0000:00:%02x.0/config : ", i);
		for (unsigned int k = 0; k < 64; k++)
			buf_str(&b, "ff");
		buf_str(&b, "\n");
	}
	inv = build_machine(&b);
	assert_true(has_warning(inv, "function-broken"));
	assert_false(has_warning(inv, "gpu-without-driver")); /* that says it all */
	assert_true(inv->gpus[0].broken);
	assert_true(inv->nics[0].broken);
	assert_false(inv->nics[1].broken);
	assert_false(inventory_pair(inv, 0, 0)->best);
	assert_true(inventory_pair(inv, 0, 1)->best);
	inventory_unref(inv);
}

/* --- classes --- */

static void assert_class(struct buf *b, enum topo_class expected)
{
	struct inventory *inv = build_machine(b);

	assert_int_equal(inv->topology_class, expected);
	inventory_unref(inv);
}

/* A GPU directly on this root port, a NIC below another one. */
static void on_root_port(struct buf *b, unsigned int vendor, unsigned int device, int numa)
{
	add_bridge(b, "pci0008:00/0008:00:00.0", vendor, device);
	add_gpu(b, "pci0008:00/0008:00:00.0/0008:01:00.0", numa);
	add_bridge(b, "pci0000:00/0000:00:00.0", vendor, device);
	add_nic(b, "pci0000:00/0000:00:00.0/0000:01:00.0", 0x1021, numa, "mlx5_0", NULL, NULL);
}

static void test_numa_class(void **state)
{
	static const unsigned int ports[] = { 0x22b1, 0x22b2, 0x22b8, 0x2f95, 0x2f96 };
	struct buf b = { 0 };

	(void)state;
	/* Both readings: Grace's root ports as well as Vera's; also without NUMA nodes. */
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		on_root_port(&b, 0x10de, ports[i], -1);
		assert_class(&b, CLASS_NUMA);
	}
	on_root_port(&b, 0x8086, 1, -1);
	assert_class(&b, CLASS_UNKNOWN);
	/* Paths over the CPU only. */
	on_root_port(&b, 0x8086, 1, 0);
	assert_class(&b, CLASS_NUMA);
}

static void test_switch_and_inline_class(void **state)
{
	struct buf b = { 0 };

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	assert_class(&b, CLASS_SWITCH);

	/* The switch inside a ConnectX carries its NIC and a second switch with the GPU. */
	add_bridge(&b, "pci0000:00/0000:00:00.0", 0x10de, 0x22b1);
	add_bridge(&b, "pci0000:00/0000:00:00.0/0000:01:00.0", 0x15b3, 0x197c);
	add_bridge(&b, "pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0", 0x15b3, 0x197c);
	add_bridge(&b, "pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:01.0", 0x15b3, 0x197c);
	add_nic(&b, "pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0/0000:03:00.0", 0x1023, 0,
		"mlx5_0", NULL, NULL);
	add_bridge(&b, "pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:01.0/0000:04:00.0", 0x1000,
		   0xc030);
	add_bridge(&b,
		   "pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:01.0/0000:04:00.0/0000:05:00.0",
		   0x1000, 0xc030);
	add_gpu(&b,
		"pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:01.0/0000:04:00.0/0000:05:00.0/"
		"0000:06:00.0",
		0);
	assert_class(&b, CLASS_INLINE);

	/* GPUs without NICs, NICs without GPUs, nothing. */
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	assert_class(&b, CLASS_UNKNOWN);
	add_group(&b, 0);
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	assert_class(&b, CLASS_UNKNOWN);
}

/* Domains of VMD: devices with names that can be published, but without standard attributes. */
static void test_long_domains(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_pci(&b, "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0", 0x060400, 0x8086, 1, 0);
	add_port_type(&b, "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0", 4);
	add_gpu(&b, "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0", 0);
	add_nic(&b, "pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e2:00.0", 0x1021, 0,
		"mlx5_0", NULL, NULL);
	add_nic(&b, "pci89abcdef:00/89abcdef:00:00.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	inv = build_machine(&b);
	assert_int_equal(inv->n_gpus, 1);
	assert_int_equal(inv->n_nics, 2);
	assert_string_equal(inv->gpus[0].name, "gpu-10000-e1-00-0");
	assert_null(inv->gpus[0].pcie_root);
	assert_string_equal(inv->nics[1].name, "nic-89abcdef-00-00-0");
	assert_null(inv->nics[1].pcie_root);
	for (size_t i = 0; i < 2; i++)
		assert_true(is_dns_label(inv->nics[i].name));
	/* What is near is near all the same. */
	assert_int_equal(inv->pairs[0].path, PATH_PHB);
	assert_true(has_warning(inv, "pcie-root-unknown"));
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gdr),	     cmocka_unit_test(test_partitions),
		cmocka_unit_test(test_numa_class),   cmocka_unit_test(test_switch_and_inline_class),
		cmocka_unit_test(test_long_domains), cmocka_unit_test(test_vfs_of_gpus),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

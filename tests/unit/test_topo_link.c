// SPDX-License-Identifier: Apache-2.0
/* PCI Express links that run below what both ends can do. */
#include "test_topo_machine.h"

#include "topo/link.h"

#define BRIDGE "pci0000:00/0000:00:01.0"
#define GEN5 32000
#define GEN4 16000
#define NOT HW_UNKNOWN

/* A GPU and a NIC of two functions' kinds below one port. */
static struct hw_machine *machine_of(void)
{
	struct hw_machine *machine;
	struct buf b = { 0 };

	add_bridge(&b, BRIDGE, 0x8086, 1);
	add_gpu(&b, BRIDGE "/0000:01:00.0", 0);
	add_nic(&b, BRIDGE "/0000:02:00.0", 0x1021, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:00:02.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	machine = read_machine(b.data);
	buf_done(&b);
	pci_of(machine, "0000:00:01.0")->link = (struct hw_pcie_link){ NOT, GEN5, NOT, 16 };
	return machine;
}

static void assert_degraded(struct hw_pcie_link link, enum tri nic, enum tri gpu)
{
	struct hw_machine *machine = machine_of();
	size_t warnings = (size_t)(nic == TRI_YES) + (size_t)(gpu == TRI_YES);
	struct inventory *inv;

	pci_of(machine, "0000:01:00.0")->link = link;
	pci_of(machine, "0000:02:00.0")->link = link;
	pci_of(machine, "0000:00:02.0")->link = link; /* no bridge above it */
	inv = topo_build(machine, NULL);
	assert_int_equal(nic_of(inv, "0000:02:00.0")->link.degraded, nic);
	assert_int_equal(inv->gpus[0].link.degraded, gpu);
	assert_int_equal(inv->gpus[0].link.width, link.width);
	assert_int_equal(nic_of(inv, "0000:00:02.0")->link.degraded, TRI_UNKNOWN);
	for (size_t i = 0; i < inv->n_warnings; i++)
		warnings -= streq(inv->warnings[i].code, "link-degraded");
	assert_int_equal(warnings, 0);
	inventory_unref(inv);
	hw_free(machine);
}

static void test_degraded(void **state)
{
	(void)state;
	assert_degraded((struct hw_pcie_link){ GEN5, GEN5, 16, 16 }, TRI_NO, TRI_NO);
	assert_degraded((struct hw_pcie_link){ GEN5, GEN5, 8, 16 }, TRI_YES, TRI_YES);
	/* An idle GPU runs slowly. */
	assert_degraded((struct hw_pcie_link){ 2500, GEN5, 16, 16 }, TRI_YES, TRI_NO);
	/* The device can no more, or the port can no more. */
	assert_degraded((struct hw_pcie_link){ GEN4, GEN4, 8, 8 }, TRI_NO, TRI_NO);
	assert_degraded((struct hw_pcie_link){ GEN5, 64000, 16, 32 }, TRI_NO, TRI_NO);
	/* One number is enough to know that it is, all are needed to know that it is not. */
	assert_degraded((struct hw_pcie_link){ NOT, GEN5, 4, 16 }, TRI_YES, TRI_YES);
	assert_degraded((struct hw_pcie_link){ NOT, GEN5, 16, 16 }, TRI_UNKNOWN, TRI_NO);
	assert_degraded((struct hw_pcie_link){ GEN5, GEN5, NOT, 16 }, TRI_UNKNOWN, TRI_UNKNOWN);
	assert_degraded((struct hw_pcie_link){ GEN4, NOT, 16, 16 }, TRI_UNKNOWN, TRI_NO);
	assert_degraded((struct hw_pcie_link){ NOT, NOT, NOT, NOT }, TRI_UNKNOWN, TRI_UNKNOWN);
}

static const char *warning_of(const struct inventory *inv, const char *object)
{
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, "link-degraded") &&
		    streq(inv->warnings[i].object, object))
			return inv->warnings[i].message;
	return NULL;
}

/* It says where, what it is and what it could be. */
static void test_warning(void **state)
{
	struct hw_machine *machine = machine_of();
	struct inventory *inv;
	const char *text;

	(void)state;
	pci_of(machine, "0000:02:00.0")->link = (struct hw_pcie_link){ GEN4, 64000, 8, 16 };
	inv = topo_build(machine, NULL);
	text = warning_of(inv, "nic-0000-02-00-0");
	assert_non_null(text);
	assert_non_null(strstr(text, "to 0000:00:01.0 runs at Gen4 x8, but both ends can do Gen5 "
				     "x16"));
	inventory_unref(inv);
	hw_free(machine);
}

/* A bridge that is not there, or tells nothing. */
static void test_unknown_end(void **state)
{
	struct hw_machine *machine = machine_of();
	struct hw_pci *gpu = pci_of(machine, "0000:01:00.0");

	(void)state;
	gpu->link = (struct hw_pcie_link){ GEN5, GEN5, 8, 16 };
	pci_of(machine, "0000:00:01.0")->link = (struct hw_pcie_link){ NOT, NOT, NOT, NOT };
	assert_int_equal(link_of(machine, gpu, true).degraded, TRI_UNKNOWN);
	free(gpu->path);
	gpu->path = xstrdup("/sys/devices/pci0000:00/0000:77:00.0/0000:01:00.0");
	assert_null(link_upstream(machine, gpu));
	free(gpu->path);
	gpu->path = NULL;
	assert_null(link_upstream(machine, gpu));
	gpu->path = xstrdup("0000:01:00.0");
	assert_null(link_upstream(machine, gpu));
	hw_free(machine);
}

/* A VF shows nothing of its own; two PFs of a card share the Data Direct function's link. */
static void test_vf_and_data_direct(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	struct inventory *inv;
	size_t n = 0;
	char *path;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	for (int i = 0; i < 2; i++) {
		path = add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023, NULL,
				     "0000:0000:0000:0001");
		add_vpd(&b, path, "SN", "A");
		free(path);
	}
	path = add_group_nic(&b, 0, "03:00.2", 0x101e, NULL, NULL);
	buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", path);
	free(path);
	path = group_path(1, 1, "05:00.0");
	add_pci(&b, path, 0x080100, 0x15b3, 0x2100, 0);
	add_vpd(&b, path, "DMA", "A");
	free(path);
	machine = read_machine(b.data);
	buf_done(&b);
	for (size_t i = 0; i < machine->n_pci; i++)
		machine->pci[i].link = (struct hw_pcie_link){ GEN5, GEN5, 16, 16 };
	pci_of(machine, "0001:05:00.0")->link.speed_mts = GEN5 / 2; /* it is no GPU: that counts */
	pci_of(machine, "0000:03:00.2")->link.width = 1;
	inv = topo_build(machine, NULL);
	assert_int_equal(nic_of(inv, "0000:03:00.2")->link.width, 16);
	assert_int_equal(nic_of(inv, "0000:03:00.2")->link.degraded, TRI_NO);
	assert_int_equal(nic_of(inv, "0000:03:00.0")->link.degraded, TRI_NO);
	for (size_t i = 0; i < inv->n_warnings; i++)
		n += streq(inv->warnings[i].code, "link-degraded");
	assert_int_equal(n, 1);
	assert_non_null(warning_of(inv, "0001:05:00.0"));
	inventory_unref(inv);
	hw_free(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_degraded),
		cmocka_unit_test(test_warning),
		cmocka_unit_test(test_unknown_end),
		cmocka_unit_test(test_vf_and_data_direct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

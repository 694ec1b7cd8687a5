// SPDX-License-Identifier: Apache-2.0
/* Access Control Services between GPUs and NICs, IOMMU groups. */
#include "test_topo_machine.h"

#include "topo/acs.h"

#define ON (HW_ACS_SOURCE_VALIDATION | HW_ACS_UPSTREAM_FORWARDING)
#define RR HW_ACS_P2P_REQUEST_REDIRECT
#define CR HW_ACS_P2P_COMPLETION_REDIRECT

/* Port 0000:02:00.0 to the NIC, 0000:02:01.0 to the GPU; all others let everything through. */
static enum tri redirect(int nic_port, int gpu_port)
{
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };
	enum tri value;

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	machine = read_machine(b.data);
	buf_done(&b);
	/* What lies above the place where traffic turns says nothing. */
	pci_of(machine, "0000:00:00.0")->acs = RR | CR;
	pci_of(machine, "0000:01:00.0")->acs = HW_UNKNOWN;
	pci_of(machine, "0000:02:00.0")->acs = nic_port;
	pci_of(machine, "0000:02:01.0")->acs = gpu_port;
	inv = topo_build(machine, NULL);
	value = inv->pairs[0].acs_redirect;
	inventory_unref(inv);
	hw_free(machine);
	return value;
}

static void test_redirect(void **state)
{
	(void)state;
	assert_int_equal(redirect(0, 0), TRI_NO);
	assert_int_equal(redirect(ON, ON), TRI_NO);
	/* As the kernel sets it when there is an IOMMU. */
	assert_int_equal(redirect(ON | RR | CR, ON | RR | CR), TRI_YES);
	/* Requests enter at the NIC's port, answers at the GPU's. */
	assert_int_equal(redirect(RR, 0), TRI_YES);
	assert_int_equal(redirect(0, CR), TRI_YES);
	assert_int_equal(redirect(ON | CR, ON | RR), TRI_NO);
	assert_int_equal(redirect(RR, HW_UNKNOWN), TRI_YES);
	assert_int_equal(redirect(HW_UNKNOWN, 0), TRI_UNKNOWN);
	assert_int_equal(redirect(0, HW_UNKNOWN), TRI_UNKNOWN);
}

/* Below different root ports those decide; different roots, and none at all, are not known. */
static void test_other_ways(void **state)
{
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };

	(void)state;
	add_bridge(&b, "pci0000:00/0000:00:01.0", 0x8086, 1);
	add_bridge(&b, "pci0000:00/0000:00:02.0", 0x8086, 1);
	add_gpu(&b, "pci0000:00/0000:00:01.0/0000:01:00.0", 0);
	add_nic(&b, "pci0000:00/0000:00:02.0/0000:02:00.0", 0x1021, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:00:03.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	add_gpu(&b, "pci0000:00/0000:00:04.0", 0);
	add_gpu(&b, "pci0001:00/0001:00:01.0", 0);
	machine = read_machine(b.data);
	buf_done(&b);
	pci_of(machine, "0000:00:01.0")->acs = RR;
	pci_of(machine, "0000:00:02.0")->acs = RR;
	inv = topo_build(machine, NULL);
	assert_string_equal(inv->gpus[0].bus_id, "0000:00:04.0");
	/* NICs 0000:00:03.0, 0000:02:00.0; GPUs 0000:00:04.0, 0000:01:00.0, 0001:00:01.0 */
	assert_int_equal(inventory_pair(inv, 0, 0)->acs_redirect, TRI_UNKNOWN);
	assert_int_equal(inventory_pair(inv, 0, 1)->acs_redirect, TRI_YES);
	assert_int_equal(inventory_pair(inv, 1, 0)->acs_redirect, TRI_NO);
	assert_int_equal(inventory_pair(inv, 1, 1)->acs_redirect, TRI_YES);
	assert_int_equal(inventory_pair(inv, 2, 1)->acs_redirect, TRI_UNKNOWN);
	inventory_unref(inv);
	hw_free(machine);
}

static void test_text(void **state)
{
	char text[ACS_TEXT_SIZE];

	(void)state;
	acs_text(ON | RR, text);
	assert_string_equal(text, "0010101");
	acs_text(0x7f, text);
	assert_string_equal(text, "1111111");
}

/* Root port, port of the Data Direct function, port of the GPU. */
static struct inventory *data_direct(int root, int dma, int gpu, int dma_group, int gpu_group)
{
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };
	char *path;

	add_group(&b, 0);
	add_group(&b, 1);
	for (int i = 0; i < 2; i++) {
		path = add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023, NULL,
				     "0000:0000:0000:0001");
		add_vpd(&b, path, "SN", "A");
		free(path);
	}
	add_group_gpu(&b, 1, "04:00.0");
	path = group_path(1, 0, "03:00.0");
	add_pci(&b, path, 0x080100, 0x15b3, 0x2100, 0);
	add_vpd(&b, path, "DMA", "A");
	free(path);
	machine = read_machine(b.data);
	buf_done(&b);
	pci_of(machine, "0001:00:00.0")->acs = root;
	pci_of(machine, "0001:02:00.0")->acs = dma;
	pci_of(machine, "0001:02:01.0")->acs = gpu;
	pci_of(machine, "0001:03:00.0")->iommu_group = dma_group;
	pci_of(machine, "0001:04:00.0")->iommu_group = gpu_group;
	inv = topo_build(machine, NULL);
	hw_free(machine);
	return inv;
}

static void assert_warnings(struct inventory *inv, const char *expected)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, "acs-unexpected") ||
		    streq(inv->warnings[i].code, "iommu-group"))
			buf_printf(&text, "%s %s;", inv->warnings[i].code, inv->warnings[i].object);
	assert_string_equal(text.data ? text.data : "", expected);
	buf_done(&text);
	inventory_unref(inv);
}

static void test_data_direct(void **state)
{
	struct inventory *inv = data_direct(0x1c, 0x19, 0x15, 7, 7);

	(void)state;
	assert_int_equal(inv->pairs[0].acs_redirect, TRI_NO);
	assert_int_equal(inv->gpus[0].iommu_group, 7);
	assert_warnings(inv, "");
	/* Bits that do not matter. */
	assert_warnings(data_direct(0x7e, 0x7b, 0x77, 7, HW_UNKNOWN), "");
	assert_warnings(data_direct(HW_UNKNOWN, HW_UNKNOWN, HW_UNKNOWN, HW_UNKNOWN, 3), "");
	assert_warnings(data_direct(0x1d, 0x1d, 0x1d, 7, 8),
			"acs-unexpected 0001:00:00.0;acs-unexpected 0001:02:00.0;"
			"acs-unexpected 0001:02:01.0;iommu-group 0001:03:00.0;");
	assert_warnings(data_direct(0x1c, 0x00, 0x15, 7, 7), "acs-unexpected 0001:02:00.0;");
	inv = data_direct(0x1c, 0x1d, 0x15, 7, 7);
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, "acs-unexpected")) {
			assert_non_null(strstr(inv->warnings[i].message, "0011101"));
			assert_non_null(strstr(inv->warnings[i].message, "xx110x1"));
		}
	assert_warnings(inv, "acs-unexpected 0001:02:00.0;");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_redirect),
		cmocka_unit_test(test_other_ways),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_data_direct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

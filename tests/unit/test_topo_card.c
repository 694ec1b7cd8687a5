// SPDX-License-Identifier: Apache-2.0
/* Cards: what test_topo.c leaves out, one rule each. */
#include "test_topo_machine.h"

#define GUID "0000:0000:0000:0001"

/* Two functions in one slot, of one chip by their GUIDs or serial number; NULL: none. */
static struct inventory *two(unsigned int vendor, const unsigned int devices[2],
			     const char *const guids[2], const char *sn)
{
	struct buf b = { 0 };

	add_group(&b, 0);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", devices[i], NULL, guids[i]);

		if (sn)
			add_vpd(&b, path, sn, NULL);
	}
	for (char *at = b.data; vendor != 0x15b3 && (at = strstr(at, "= 0x15b3"));)
		memcpy(at, vendor == 0x14e4 ? "= 0x14e4" : "= 0x8086", 8);
	return build_machine(&b);
}

/* Two device ids are two chips, whatever else they share. */
static void test_device_ids(void **state)
{
	const char *guids[] = { GUID, GUID };
	struct inventory *inv = two(0x15b3, (unsigned int[]){ 0x1021, 0x1023 }, guids, "SN");

	(void)state;
	assert_int_equal(inv->n_cards, 0);
	assert_non_null(strstr(warning_text(inv, "card-contradiction"), "device id differs"));
	inventory_unref(inv);
}

/* Only Mellanox gives all functions of a chip one sys_image_guid: others give each port its own. */
static void test_guids_of_other_vendors(void **state)
{
	const char *guids[] = { GUID, "0000:0000:0000:0002" };
	struct inventory *inv = two(0x14e4, (unsigned int[]){ 0x1750, 0x1750 }, guids, "SN");

	(void)state;
	assert_int_equal(inv->n_cards, 1);
	assert_string_equal(inv->cards[0].agreement[0], "slot");
	assert_string_equal(inv->cards[0].agreement[1], "vpd-sn");
	assert_int_equal(inv->n_warnings, 0);
	inventory_unref(inv);
	/* A serial number that differs is one board more, for them as well. */
	guids[1] = GUID;
	inv = two(0x14e4, (unsigned int[]){ 0x1750, 0x1750 }, guids, NULL);
	assert_int_equal(inv->n_cards, 1);
	inventory_unref(inv);
}

/*
 * A second chip in the slot of a card gets none of its own: what may be its halves is not handed
 * out, and the first card is not spoiled.
 */
static void test_second_card_in_slot(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	for (int i = 0; i < 4; i++) {
		char device[] = "03:00.0";

		device[6] = (char)('0' + i);
		free(add_group_nic(&b, 0, device, 0x1023, NULL,
				   i < 2 ? GUID : "0000:0000:0000:0002"));
	}
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 1);
	assert_non_null(strstr(warning_text(inv, "card-contradiction"), "card-0000-03-00"));
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(inv->nics[i].card, i < 2 ? 0 : TOPO_UNKNOWN);
		assert_int_equal(inv->nics[i].standalone, i < 2);
	}
	inventory_unref(inv);
}

/* A ConnectX-8 in group 0 with one VF, whose Data Direct function is beside the GPU in group 1. */
static struct inventory *data_direct_with_vf(const char *vf_v3)
{
	_cleanup_free_ char *pf = NULL, *vf = NULL, *dma = group_path(1, 1, "05:00.0");
	struct buf b = { 0 };

	add_group(&b, 0);
	add_group(&b, 1);
	add_group_gpu(&b, 1, "04:00.0");
	add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 1);
	add_vpd(&b, dma, "DMA", "A");
	pf = add_group_nic(&b, 0, "03:00.0", 0x1023, NULL, GUID);
	add_vpd(&b, pf, "SN", "A");
	vf = add_group_nic(&b, 0, "03:00.2", 0x101e, NULL, NULL);
	if (vf_v3)
		add_vpd(&b, vf, "SN", vf_v3);
	else
		buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", vf);
	return build_machine(&b);
}

/* The DMA of a VF comes from where that of its PF does. */
static void test_vf_has_the_dma_of_its_pf(void **state)
{
	struct inventory *inv = data_direct_with_vf(NULL);
	const struct topo_nic *vf = nic_of(inv, "0000:03:00.2");

	(void)state;
	assert_string_equal(vf->dma_bus_id, "0001:05:00.0");
	assert_string_equal(vf->pcie_root, "pci0001:00");
	assert_string_equal(vf->function_pcie_root, "pci0000:00");
	assert_string_equal(vf->pcie_switch, "0001:01:00.0");
	assert_int_equal(inventory_pair(inv, 0, (size_t)(vf - inv->nics))->path, PATH_PIX);
	assert_true(inventory_pair(inv, 0, (size_t)(vf - inv->nics))->via_data_direct);
	inventory_unref(inv);
}

/* Vital product data of a function of no known PF says nothing of whose it is. */
static void test_vf_is_not_matched(void **state)
{
	struct inventory *inv = data_direct_with_vf("A");
	const struct topo_nic *vf = nic_of(inv, "0000:03:00.2");

	(void)state;
	assert_string_equal(nic_of(inv, "0000:03:00.0")->dma_bus_id, "0001:05:00.0");
	assert_null(vf->dma_bus_id);
	assert_null(vf->pcie_root);
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_ids),
		cmocka_unit_test(test_guids_of_other_vendors),
		cmocka_unit_test(test_second_card_in_slot),
		cmocka_unit_test(test_vf_has_the_dma_of_its_pf),
		cmocka_unit_test(test_vf_is_not_matched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include "test_topo_machine.h"

#include "topo/build.h"

/* --- cards --- */

/* Two PFs in one slot with these keys; the inventory's first two NICs. */
static struct inventory *two_pfs(unsigned int device, const char *const guids[2],
				 const char *const sns[2], const char *const v3s[2])
{
	struct buf b = { 0 };

	add_group(&b, 0);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", device, NULL, guids[i]);

		if (sns[i] || v3s[i])
			add_vpd(&b, path, sns[i], v3s[i]);
	}
	return build_machine(&b);
}

static const char *const none[2] = { NULL, NULL };
static const char *const same[2] = { "0000:0000:0000:0001", "0000:0000:0000:0001" };
static const char *const differ[2] = { "0000:0000:0000:0001", "0000:0000:0000:0002" };

static void assert_card(struct inventory *inv, bool card, bool standalone, const char *warning)
{
	assert_int_equal(inv->n_nics, 2);
	assert_int_equal(inv->n_cards, card);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(inv->nics[i].card, card ? 0 : -1);
		assert_int_equal(inv->nics[i].pf_index, card ? (int)i : -1);
		assert_int_equal(inv->nics[i].pf_count, card ? 2 : -1);
		assert_int_equal(inv->nics[i].standalone, standalone);
	}
	if (card) {
		assert_string_equal(inv->cards[0].id, "card-0000-03-00");
		assert_ptr_equal(inventory_card(inv, "card-0000-03-00"), &inv->cards[0]);
	}
	assert_int_equal(inv->n_warnings > 0, warning != NULL);
	assert_true(!warning || has_warning(inv, warning));
	inventory_unref(inv);
}

static void test_card_keys(void **state)
{
	(void)state;
	assert_card(two_pfs(0x1021, same, none, none), true, true, NULL);
	assert_card(two_pfs(0x1021, same, same, same), true, true, NULL);
	assert_card(two_pfs(0x1021, none, same, none), true, true, NULL);
	/* V3 alone only confirms; a serial number for one of the two says nothing. */
	assert_card(two_pfs(0x1021, none, none, same), false, true, NULL);
	assert_card(two_pfs(0x1021, differ, none, none), false, true, NULL);
	assert_card(two_pfs(0x1021, (const char *[]){ "1", NULL }, none, none), false, true, NULL);
}

static void test_card_contradictions(void **state)
{
	(void)state;
	assert_card(two_pfs(0x1021, same, differ, none), false, true, "card-contradiction");
	assert_card(two_pfs(0x1021, same, same, differ), false, true, "card-contradiction");
	assert_card(two_pfs(0x1021, differ, same, same), false, true, "card-contradiction");
	/* Halves of what may be an atomic card are not handed out. */
	assert_card(two_pfs(0x1023, same, differ, none), false, false, "card-contradiction");
	assert_card(two_pfs(0x1023, none, none, none), false, false, "card-unknown");
	/* Without Data Direct functions on the node a ConnectX-8 is no atomic card. */
	assert_card(two_pfs(0x1023, same, same, same), true, true, NULL);
}

/* mlx5_ib failed on one PF: the other one may be half of an atomic card. */
static void test_sibling_without_rdma(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	char *path;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	free(add_group_nic(&b, 0, "03:00.0", 0x1023, NULL, same[0]));
	path = group_path(0, 0, "03:00.1");
	add_pci(&b, path, 0x020000, 0x15b3, 0x1023, 0);
	free(path);
	/* A VF in the slot is no sibling. */
	free(add_group_nic(&b, 1, "03:00.0", 0x1023, NULL, NULL));
	path = group_path(1, 0, "03:00.2");
	add_pci(&b, path, 0x020000, 0x15b3, 0x101e, 0);
	free(path);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 2);
	assert_false(inv->nics[0].standalone);
	assert_true(inv->nics[1].standalone);
	assert_int_equal(inv->n_warnings, 1);
	assert_true(has_warning(inv, "card-unknown"));
	inventory_unref(inv);
}

/* Two PFs in different slots that contradict each other: neither is handed out alone. */
static void test_contradiction_over_two_slots(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_free_ char *path = add_group_nic(&b, i, "03:00.0", 0x1023, NULL, same[0]);

		add_vpd(&b, path, differ[i], NULL);
	}
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 0);
	assert_true(has_warning(inv, "card-contradiction"));
	assert_false(inv->nics[0].standalone);
	assert_false(inv->nics[1].standalone);
	inventory_unref(inv);
}

static void test_card_over_two_domains(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, same[0]));
	free(add_group_nic(&b, 1, "03:00.0", 0x1021, NULL, same[0]));
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 1);
	assert_string_equal(inv->cards[0].agreement[0], "sys_image_guid");
	assert_null(inv->cards[0].agreement[1]);
	inventory_unref(inv);
}

/* A board with one serial number can carry two chips. */
static void test_one_board_two_chips(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "04:00.0" : "03:00.0", 0x1023, NULL, NULL);

		add_vpd(&b, path, "SN", NULL);
	}
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 0);
	assert_true(inv->nics[0].standalone && inv->nics[1].standalone);
	assert_int_equal(inv->n_warnings, 0);
	inventory_unref(inv);
}

/* --- Data Direct --- */

static char *add_data_direct(struct buf *b, unsigned int n, const char *device, const char *v3)
{
	char *path = group_path(n, 1, device);

	add_pci(b, path, 0x080100, 0x15b3, 0x2100, 0);
	if (v3)
		add_vpd(b, path, "DMA", v3);
	return path;
}

/* ConnectX-8 in group 0 whose Data Direct function is beside the GPU in group 1. */
static struct hw_machine *data_direct(const char *nic_v3, const char *dma_v3, const char *dma2_v3)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	add_group(&b, 0);
	add_group(&b, 1);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023, NULL, same[0]);

		add_vpd(&b, path, "SN", nic_v3);
	}
	add_group_gpu(&b, 1, "04:00.0");
	free(add_data_direct(&b, 1, "05:00.0", dma_v3));
	if (dma2_v3)
		free(add_data_direct(&b, 1, "06:00.0", dma2_v3));
	machine = read_machine(b.data);
	buf_done(&b);
	return machine;
}

static struct inventory *data_direct_inventory(const char *nic_v3, const char *dma_v3,
					       const char *dma2_v3, enum pcie_root_policy policy)
{
	struct hw_machine *machine = data_direct(nic_v3, dma_v3, dma2_v3);
	struct inventory *inv = topo_build(machine, &(struct topo_options){ .pcie_root = policy });

	hw_free(machine);
	return inv;
}

static void test_data_direct(void **state)
{
	struct inventory *inv = data_direct_inventory("A", "A", "B", PCIE_ROOT_AUTO);
	const struct topo_nic *nic = nic_of(inv, "0000:03:00.1");

	(void)state;
	assert_string_equal(nic->dma_bus_id, "0001:05:00.0");
	assert_string_equal(nic->pcie_root, "pci0001:00");
	assert_string_equal(nic->function_pcie_root, "pci0000:00");
	assert_string_equal(nic->pcie_switch, "0001:01:00.0");
	assert_false(nic->standalone);
	assert_true(inv->cards[0].atomic);
	assert_string_equal(inv->cards[0].dma_pcie_root, "pci0001:00");
	assert_int_equal(inv->topology_class, CLASS_DATA_DIRECT);
	assert_int_equal(inv->pairs[0].path, PATH_PIX);
	assert_true(inv->pairs[0].via_data_direct);
	assert_true(inv->pairs[0].best && inv->pairs[1].best);
	assert_int_equal(inv->n_warnings, 1);
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);
}

static void assert_no_root(struct inventory *inv, const char *warning)
{
	const struct topo_nic *nic = nic_of(inv, "0000:03:00.0");

	assert_null(nic->dma_bus_id);
	assert_null(nic->pcie_root);
	assert_null(nic->pcie_switch);
	assert_string_equal(nic->function_pcie_root, "pci0000:00");
	assert_int_equal(inv->pairs[0].path, PATH_UNKNOWN);
	assert_int_equal(nic->role, ROLE_UNKNOWN);
	assert_false(nic->standalone);
	assert_true(has_warning(inv, warning));
	inventory_unref(inv);
}

static void test_data_direct_lost(void **state)
{
	(void)state;
	assert_no_root(data_direct_inventory(NULL, "A", NULL, PCIE_ROOT_AUTO),
		       "data-direct-unmatched");
	assert_no_root(data_direct_inventory("B", "A", NULL, PCIE_ROOT_AUTO),
		       "data-direct-unmatched");
	assert_no_root(data_direct_inventory("A", NULL, NULL, PCIE_ROOT_AUTO),
		       "data-direct-unmatched");
	assert_no_root(data_direct_inventory("A", "A", "A", PCIE_ROOT_AUTO),
		       "data-direct-ambiguous");
}

/* "verbs": what the library says of both PFs. */
static void assert_told(const char *nic_v3, const char *dma_v3, const char *dma2_v3,
			const char *verbs, const char *expected, const char *warning)
{
	struct hw_machine *machine = data_direct(nic_v3, dma_v3, dma2_v3);
	struct inventory *inv;

	for (size_t i = 0; i < machine->n_rdma; i++)
		machine->rdma[i].data_direct = xstrdup(verbs);
	inv = topo_build(machine, NULL);
	for (size_t i = 0; i < 2; i++)
		assert_string_or_null(inv->nics[i].dma_bus_id, expected);
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (!streq(inv->warnings[i].code, "rail-unknown"))
			assert_string_equal(inv->warnings[i].code, warning ? warning : "none");
	assert_int_equal(warning && has_warning(inv, warning), warning != NULL);
	inventory_unref(inv);
	hw_free(machine);
}

/* The verbs library fills in what vital product data does not tell, and only a real function. */
static void test_data_direct_by_verbs(void **state)
{
	(void)state;
	assert_told(NULL, NULL, NULL, "0001:05:00.0", "0001:05:00.0", NULL);
	assert_told("A", "A", "A", "0001:06:00.0", "0001:06:00.0", NULL);
	assert_told("A", "A", "B", "0001:05:00.0", "0001:05:00.0", NULL);
	assert_told("A", "A", "B", "0001:06:00.0", "0001:05:00.0", "verbs-disagree");
	assert_told(NULL, NULL, NULL, "0001:04:00.0", NULL, "data-direct-unmatched");
	assert_told(NULL, NULL, NULL, "0001:07:00.0", NULL, "data-direct-unmatched");
}

/* Only one PF's vital product data tells the Data Direct function: not the whole card's. */
static void test_data_direct_of_half_a_card(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023, NULL, same[0]);

		add_vpd(&b, path, "SN", i ? NULL : "A");
	}
	free(add_data_direct(&b, 1, "05:00.0", "A"));
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 1);
	assert_string_equal(inv->nics[0].dma_bus_id, "0001:05:00.0");
	assert_null(inv->nics[1].dma_bus_id);
	assert_null(inv->cards[0].dma_bus_id);
	assert_null(inv->cards[0].dma_pcie_root);
	inventory_unref(inv);
}

/* As seen without CAP_SYS_ADMIN: one warning for the node. */
static void test_bridges_unknown(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *bridge = xasprintf("pci0000:00/0000:0%d:00.0", i);
		_cleanup_free_ char *below = xasprintf("%s/0000:1%d:00.0", bridge, i);
		_cleanup_free_ char *gpu = xasprintf("%s/0000:2%d:00.0", below, i);

		add_pci(&b, bridge, 0x060400, 0x8086, 1, 0);
		add_pci(&b, below, 0x060400, 0x8086, 2, 0);
		add_gpu(&b, gpu, 0);
	}
	inv = build_machine(&b);
	assert_null(inv->gpus[0].pcie_switch);
	assert_string_equal(inv->gpus[0].pcie_root, "pci0000:00");
	assert_int_equal(inv->n_warnings, 1);
	assert_true(has_warning(inv, "bridges-unknown"));
	inventory_unref(inv);
}

static void test_root_policy(void **state)
{
	struct inventory *inv = data_direct_inventory("A", "A", NULL, PCIE_ROOT_FUNCTION);

	(void)state;
	assert_string_equal(nic_of(inv, "0000:03:00.0")->pcie_root, "pci0000:00");
	assert_string_equal(nic_of(inv, "0000:03:00.0")->pcie_switch, "0001:01:00.0");
	inventory_unref(inv);
	inv = data_direct_inventory("A", "A", NULL, PCIE_ROOT_DATA_DIRECT);
	assert_string_equal(nic_of(inv, "0000:03:00.0")->pcie_root, "pci0001:00");
	inventory_unref(inv);
	inv = data_direct_inventory("B", "A", NULL, PCIE_ROOT_DATA_DIRECT);
	assert_null(nic_of(inv, "0000:03:00.0")->pcie_root);
	inventory_unref(inv);
	/* The list: both are there; neither when the effective one is not known. */
	inv = data_direct_inventory("A", "A", NULL, PCIE_ROOT_LIST);
	assert_string_equal(nic_of(inv, "0000:03:00.0")->pcie_root, "pci0001:00");
	assert_string_equal(nic_of(inv, "0000:03:00.0")->function_pcie_root, "pci0000:00");
	inventory_unref(inv);
	inv = data_direct_inventory("B", "A", NULL, PCIE_ROOT_LIST);
	assert_null(nic_of(inv, "0000:03:00.0")->pcie_root);
	inventory_unref(inv);
}

/* Without Data Direct the own root is the effective one, whatever it is called. */
static void test_root_policy_of_others(void **state)
{
	static const enum pcie_root_policy policies[] = { PCIE_ROOT_AUTO, PCIE_ROOT_FUNCTION,
							  PCIE_ROOT_LIST };
	struct topo_options options = { .pcie_root = PCIE_ROOT_DATA_DIRECT };
	struct buf b = { 0 };
	struct hw_machine *machine;
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	machine = read_machine(b.data);
	buf_done(&b);
	inv = topo_build(machine, &options);
	assert_null(inv->nics[0].pcie_root);
	inventory_unref(inv);
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		options.pcie_root = policies[i];
		inv = topo_build(machine, &options);
		assert_string_equal(inv->nics[0].pcie_root, "pci0000:00");
		assert_string_equal(inv->nics[0].function_pcie_root, "pci0000:00");
		inventory_unref(inv);
	}
	hw_free(machine);
}

/* One board, one serial number, two chips with two PFs each: two cards. */
static void test_one_board_two_cards(void **state)
{
	static const char *const devices[] = { "03:00.0", "03:00.1", "04:00.0", "04:00.1" };
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		_cleanup_free_ char *path = add_group_nic(&b, 0, devices[i], 0x1021, NULL, NULL);

		add_vpd(&b, path, "SN", "A");
	}
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 2);
	assert_string_equal(inv->cards[0].id, "card-0000-03-00");
	assert_string_equal(inv->cards[1].id, "card-0000-04-00");
	assert_int_equal(inv->cards[1].members[1], 3);
	assert_int_equal(inv->n_warnings, 0);
	inventory_unref(inv);
}

/* The other PF dropped off the bus: half of an atomic card is no NIC. */
static void test_half_a_card(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	free(add_group_nic(&b, 0, "03:00.0", 0x1023, NULL, same[0]));
	free(add_group_nic(&b, 0, "04:00.0", 0x1021, NULL, NULL));
	free(add_data_direct(&b, 1, "05:00.0", "A"));
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 0);
	assert_false(nic_of(inv, "0000:03:00.0")->standalone);
	assert_true(nic_of(inv, "0000:04:00.0")->standalone);
	assert_true(has_warning(inv, "card-incomplete"));
	inventory_unref(inv);
}

/* A board with two chips whose functions all carry one V3: nobody knows whose DMA it is. */
static void test_data_direct_shared(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "04:00.0" : "03:00.0", 0x1023, NULL, differ[i]);

		add_vpd(&b, path, "SN", "A");
	}
	free(add_data_direct(&b, 1, "05:00.0", "A"));
	inv = build_machine(&b);
	assert_true(has_warning(inv, "data-direct-ambiguous"));
	for (size_t i = 0; i < 2; i++) {
		assert_null(inv->nics[i].dma_bus_id);
		assert_null(inv->nics[i].pcie_root);
	}
	inventory_unref(inv);
}

/* --- the rest --- */

static void test_gid(void **state)
{
	struct topo_child child = { .netdev = (char[]){ "ipvl" }, .kind = (char[]){ "ipvlan" } };
	struct topo_nic nic = { .netdev = (char[]){ "eth" }, .children = &child };
	char v1[] = "IB/RoCE v1", v2[] = "RoCE v2", own[] = "eth", link[] = "Ethernet";
	char local[] = "fe80:0000:0000:0000:0000:0000:0000:0001", ula[] = "fd00::1";
	char local4[] = "0000:0000:0000:0000:0000:ffff:a9fe:0101";
	char v4[] = "0000:0000:0000:0000:0000:ffff:0afe:0101";
	struct topo_gid gids[] = { { 0, local, v1, own },	  { 1, local, v2, own },
				   { 2, ula, v1, own },		  { 3, ula, v2, NULL },
				   { 5, ula, v2, own },		  { 6, ula, v1, child.netdev },
				   { 7, ula, v2, child.netdev },  { 8, ula, v2, child.netdev },
				   { 9, local, v2, child.netdev } };
	struct topo_port port = { .link_layer = link, .gids = gids, .n_gids = 9 };

	(void)state;
	assert_int_equal(topo_choose_gid(&nic, &port), 5);
	nic.n_children = 1;
	assert_int_equal(topo_choose_gid(&nic, &port), 7);
	port.n_gids = 4;
	assert_int_equal(topo_choose_gid(&nic, &port), 3);
	port.n_gids = 2;
	assert_int_equal(topo_choose_gid(&nic, &port), 1);
	port.n_gids = 1;
	assert_int_equal(topo_choose_gid(&nic, &port), TOPO_UNKNOWN);
	/* 169.254.1.1 is no better than a link-local one where there is a real address. */
	gids[3].gid = local4;
	gids[4] = (struct topo_gid){ 5, v4, v2, NULL };
	port.n_gids = 5;
	assert_int_equal(topo_choose_gid(&nic, &port), 5);
	port.n_gids = 4;
	assert_int_equal(topo_choose_gid(&nic, &port), 3);
	port.n_gids = 9;
	memcpy(link, "InfiniBa", sizeof(link));
	assert_int_equal(topo_choose_gid(&nic, &port), TOPO_UNKNOWN);
	port.link_layer = NULL;
	assert_int_equal(topo_choose_gid(&nic, &port), TOPO_UNKNOWN);
}

/* In a virtual machine only the device id tells that it is a VF. */
static void test_vf_without_pf(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_nic(&b, "pci0000:00/0000:00:03.0", 0x101e, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:00:04.0", 0x1018, 0, "mlx5_1", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:00:05.0", 0x1021, 0, "mlx5_2", NULL, NULL);
	inv = build_machine(&b);
	assert_true(inv->nics[0].is_vf && inv->nics[0].standalone);
	assert_true(inv->nics[1].is_vf && inv->nics[1].standalone);
	assert_false(inv->nics[2].is_vf);
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_card_keys),
		cmocka_unit_test(test_card_contradictions),
		cmocka_unit_test(test_sibling_without_rdma),
		cmocka_unit_test(test_contradiction_over_two_slots),
		cmocka_unit_test(test_card_over_two_domains),
		cmocka_unit_test(test_one_board_two_chips),
		cmocka_unit_test(test_data_direct),
		cmocka_unit_test(test_data_direct_lost),
		cmocka_unit_test(test_data_direct_by_verbs),
		cmocka_unit_test(test_data_direct_of_half_a_card),
		cmocka_unit_test(test_half_a_card),
		cmocka_unit_test(test_bridges_unknown),
		cmocka_unit_test(test_root_policy),
		cmocka_unit_test(test_root_policy_of_others),
		cmocka_unit_test(test_one_board_two_cards),
		cmocka_unit_test(test_data_direct_shared),
		cmocka_unit_test(test_gid),
		cmocka_unit_test(test_vf_without_pf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

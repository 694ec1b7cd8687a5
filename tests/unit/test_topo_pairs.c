// SPDX-License-Identifier: Apache-2.0
/* Best pairs. */
#include "test_topo_machine.h"

#define CARD_GUID "0000:0000:0000:0001"

/* An atomic card of ten PFs is handed out whole: all ten are the GPU's. */
static void test_large_card(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	char *dma;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "06:00.0");
	for (unsigned int i = 0; i < 10; i++) {
		_cleanup_free_ char *device = xasprintf("03:%02x.%u", i / 8, i % 8);
		_cleanup_free_ char *path = group_path(0, 0, device);
		_cleanup_free_ char *rdma = xasprintf("mlx5_%u", i);

		add_nic(&b, path, 0x1023, 0, rdma, NULL, CARD_GUID);
		add_vpd(&b, path, "SN", "A");
	}
	dma = group_path(0, 1, "05:00.0");
	add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
	add_vpd(&b, dma, "DMA", "A");
	free(dma);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 10);
	assert_true(inv->n_cards == 1 && inv->cards[0].atomic);
	for (size_t i = 0; i < inv->n_nics; i++)
		assert_true(inventory_pair(inv, 0, i)->best);
	inventory_unref(inv);
}

static const struct topo_pair *pair_of(const struct inventory *inv, const char *gpu,
				       const char *nic)
{
	const struct topo_gpu *g = inventory_gpu(inv, gpu);
	const struct topo_nic *n = inventory_nic(inv, nic);

	assert_non_null(g);
	assert_non_null(n);
	return inventory_pair(inv, (size_t)(g - inv->gpus), (size_t)(n - inv->nics));
}

/* Two GPUs and two NICs behind one switch: dealt out in order, not all to the first. */
static void test_best_of_equals(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "05:00.0");
	add_group_gpu(&b, 0, "06:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	free(add_group_nic(&b, 0, "04:00.0", 0x1021, NULL, NULL));
	inv = build_machine(&b);
	assert_true(pair_of(inv, "gpu-0000-05-00-0", "0000:03:00.0")->best);
	assert_true(pair_of(inv, "0000:06:00.0", "nic-0000-04-00-0")->best);
	assert_false(pair_of(inv, "0000:05:00.0", "0000:04:00.0")->best);
	assert_int_equal(nic_of(inv, "0000:04:00.0")->best_gpu, 1);
	assert_int_equal(nic_of(inv, "0000:04:00.0")->best_path, PATH_PIX);
	assert_null(inventory_nic(inv, "nic-x"));
	assert_null(inventory_gpu(inv, "gpu-x"));
	assert_null(inventory_card(inv, "card-x"));
	assert_null(inventory_pair(inv, 2, 0));
	assert_null(inventory_pair(inv, 0, 2));
	inventory_unref(inv);
}

/* One NIC for two GPUs serves both; a NIC far away is not better because it is free. */
static void test_best_shared(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "05:00.0");
	add_group_gpu(&b, 0, "06:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	add_nic(&b, "pci0001:00/0001:03:00.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	inv = build_machine(&b);
	assert_true(pair_of(inv, "0000:05:00.0", "0000:03:00.0")->best);
	assert_true(pair_of(inv, "0000:06:00.0", "0000:03:00.0")->best);
	assert_false(pair_of(inv, "0000:06:00.0", "0001:03:00.0")->best);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->role, ROLE_STORAGE);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->best_path, PATH_NODE);
	inventory_unref(inv);
}

/* Of two that are equally near, the one of the GPU's NUMA node. */
static void test_same_numa_node(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "06:00.0");
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_free_ char *path = group_path(0, 0, i ? "04:00.0" : "03:00.0");

		add_nic(&b, path, 0x1021, i ? 0 : 1, i ? "mlx5_1" : "mlx5_0", NULL, NULL);
	}
	inv = build_machine(&b);
	assert_false(pair_of(inv, "0000:06:00.0", "0000:03:00.0")->best);
	assert_true(pair_of(inv, "0000:06:00.0", "0000:04:00.0")->best);
	inventory_unref(inv);
}

/* What is nobody's best says how far its nearest GPU is, and which, if it is only one. */
static void test_nearest_gpu(void **state)
{
	struct strlist exclude = { 0 };
	const struct topo_options options = { .exclude = &exclude };
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	strlist_add(&exclude, "extra*");
	for (unsigned int i = 0; i < 3; i++) {
		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
	}
	add_group_gpu(&b, 1, "05:00.0");
	free(add_group_nic(&b, 2, "03:00.0", 0x1021, "extra0", NULL));
	free(add_group_nic(&b, 1, "03:00.0", 0x1021, "extra1", NULL));
	add_nic(&b, "pci0008:00/0008:00:01.0", 0x1021, 0, "mlx5_8", "extra2", NULL);
	inv = build_with(&b, &options);
	assert_int_equal(nic_of(inv, "0002:03:00.0")->best_gpu, 3);
	assert_int_equal(nic_of(inv, "0002:03:00.0")->best_path, PATH_PIX);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->best_gpu, TOPO_UNKNOWN); /* two */
	assert_int_equal(nic_of(inv, "0001:03:00.0")->best_path, PATH_PIX);
	assert_int_equal(nic_of(inv, "0008:00:01.0")->best_gpu, TOPO_UNKNOWN);
	assert_int_equal(nic_of(inv, "0008:00:01.0")->best_path, PATH_NODE);
	for (size_t i = 0; i < inv->n_pairs; i++)
		assert_false(inv->pairs[i].best);
	inventory_unref(inv);
	strlist_done(&exclude);
}

/* GPUs and NICs on roots of their own: "gpus", "nics" are their NUMA nodes. */
static struct inventory *roots(const int *gpus, unsigned int n_gpus, const int *nics,
			       unsigned int n_nics, const struct topo_options *options)
{
	struct buf b = { 0 };

	for (unsigned int i = 0; i < n_gpus; i++) {
		_cleanup_free_ char *path = xasprintf("pci%04x:00/%04x:00:01.0", i, i);

		add_gpu(&b, path, gpus[i]);
	}
	for (unsigned int i = 0; i < n_nics; i++) {
		_cleanup_free_ char *path = xasprintf("pci%04x:00/%04x:00:01.0", i + 16, i + 16);
		_cleanup_free_ char *rdma = xasprintf("mlx5_%u", i);
		_cleanup_free_ char *link = xasprintf("eth%u", i);

		add_nic(&b, path, 0x1021, nics[i], rdma, link, NULL);
	}
	buf_str(&b, "twinrail/routes = default dev uplink\n");
	return build_with(&b, options);
}

/* "best": of each GPU the index of its NIC, or '-'. */
static void assert_best(struct inventory *inv, const char *best, bool warned)
{
	for (size_t g = 0; g < inv->n_gpus; g++)
		for (size_t n = 0; n < inv->n_nics; n++)
			if (inventory_pair(inv, g, n)->best != ((size_t)(best[g] - '0') == n))
				fail_msg("GPU %zu, NIC %zu: not %s", g, n, best);
	assert_int_equal(has_warning(inv, "best-unknown"), warned);
	inventory_unref(inv);
}

/* NUMA nodes alone pair only what is alone there. */
static void test_numa_only(void **state)
{
	struct strlist exclude = { 0 };
	const struct topo_options options = { .exclude = &exclude };
	struct inventory *inv;

	(void)state;
	assert_best(roots((int[]){ 0, 1 }, 2, (int[]){ 1, 0 }, 2, NULL), "10", false);
	assert_best(roots((int[]){ 0, 0 }, 2, (int[]){ 0, 0 }, 2, NULL), "--", true);
	assert_best(roots((int[]){ 0, 0 }, 2, (int[]){ 0 }, 1, NULL), "--", true);
	assert_best(roots((int[]){ 0 }, 1, (int[]){ 0, 0 }, 2, NULL), "-", true);
	assert_best(roots((int[]){ 0, 0, 1 }, 3, (int[]){ 0, 0, 1 }, 3, NULL), "--2", true);
	assert_best(roots((int[]){ 0 }, 1, (int[]){ 1 }, 1, NULL), "-", false);
	/* With the other one excluded it is alone. */
	strlist_add(&exclude, "eth1");
	assert_best(roots((int[]){ 0 }, 1, (int[]){ 0, 0 }, 2, &options), "0", false);
	inv = roots((int[]){ 0, 0 }, 2, (int[]){ 0, 0 }, 2, NULL);
	assert_non_null(strstr(warning_text(inv, "best-unknown"), "platform file"));
	assert_int_equal(inv->gpus[0].rail_group, TOPO_UNKNOWN);
	assert_int_equal(inv->nics[0].best_gpu, TOPO_UNKNOWN); /* both are equally near */
	assert_int_equal(inv->nics[0].best_path, PATH_NODE);
	inventory_unref(inv);
	strlist_done(&exclude);
}

/* A NIC at the switch of one GPU is not the best of another one that has none. */
static void test_best_of_another(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group(&b, 1);
	add_group_gpu(&b, 0, "04:00.0");
	add_group_gpu(&b, 1, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	inv = build_machine(&b);
	assert_true(pair_of(inv, "0000:04:00.0", "0000:03:00.0")->best);
	assert_false(pair_of(inv, "0001:04:00.0", "0000:03:00.0")->best);
	assert_false(has_warning(inv, "best-unknown"));
	inventory_unref(inv);
}

/* What may be the node's own or cannot be opened is nobody's best; nor is half an atomic card. */
static void test_best_is_handed_out(void **state)
{
	char *without_verbs;
	struct strlist exclude = { 0 };
	const struct topo_options options = { .exclude = &exclude };
	struct buf b = { 0 };
	struct inventory *inv;
	char *dma;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL));
	inv = build_machine(&b);
	assert_true(nic_of(inv, "0000:03:00.0")->withheld);
	assert_false(inv->pairs[0].best);
	inventory_unref(inv);

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	without_verbs = group_path(0, 0, "03:00.0");
	add_unopened_nic(&b, without_verbs, 0x1021, 0, "mlx5_0");
	free(without_verbs);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 1);
	assert_false(inv->nics[0].withheld || inv->pairs[0].best);
	inventory_unref(inv);

	strlist_add(&exclude, "0000:03:00.1");
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path =
			add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023, NULL, CARD_GUID);

		add_vpd(&b, path, "SN", "A");
	}
	dma = group_path(0, 1, "05:00.0");
	add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
	add_vpd(&b, dma, "DMA", "A");
	free(dma);
	inv = build_with(&b, &options);
	assert_true(inv->n_cards == 1 && inv->cards[0].atomic);
	assert_false(inv->pairs[0].best || inv->pairs[1].best);
	inventory_unref(inv);
	strlist_done(&exclude);
}

static void test_flat(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_gpu(&b, "pci0000:00/0000:00:04.0", -1);
	add_gpu(&b, "pci0000:00/0000:00:05.0", -1);
	add_nic(&b, "pci0000:00/0000:00:06.0", 0x101e, -1, "mlx5_0", "eth1", NULL);
	add_nic(&b, "pci0000:00/0000:00:07.0", 0x101e, -1, "mlx5_1", "eth2", NULL);
	buf_str(&b, "proc/cpuinfo = processor: 0\\nflags\\t\\t: fpu hypervisor lm\n");
	inv = build_machine(&b);
	assert_true(inv->virtual_machine);
	assert_int_equal(inv->topology_class, CLASS_FLAT);
	assert_true(has_warning(inv, "flat-topology"));
	for (size_t i = 0; i < inv->n_pairs; i++) {
		assert_int_equal(inv->pairs[i].path, PATH_PHB);
		assert_false(inv->pairs[i].best);
	}
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(inv->nics[i].rail, TOPO_UNKNOWN);
		assert_int_equal(inv->nics[i].role, ROLE_UNKNOWN);
		assert_int_equal(inv->nics[i].numa_node, TOPO_UNKNOWN);
		assert_true(inv->nics[i].is_vf);
		assert_true(inv->nics[i].standalone);
	}
	inventory_unref(inv);
}

/* Two GPUs and two NICs at these places, in a virtual machine or not; switches as in a group. */
static enum topo_class class_of(const char *const gpus[2], const char *const nics[2], bool virtual)
{
	struct buf b = { 0 };
	struct inventory *inv;
	enum topo_class class;

	add_group(&b, 0);
	for (int i = 0; i < 2; i++) {
		add_gpu(&b, gpus[i], -1);
		add_nic(&b, nics[i], 0x101e, -1, i ? "mlx5_1" : "mlx5_0", NULL, NULL);
	}
	buf_printf(&b, "proc/cpuinfo = processor: 0\\nflags\\t\\t: fpu%s lm\n",
		   virtual ? " hypervisor" : "");
	inv = build_machine(&b);
	class = inv->topology_class;
	assert_int_equal(has_warning(inv, "flat-topology"), class == CLASS_FLAT);
	inventory_unref(inv);
	return class;
}

/* Flat is only what says nothing at all: a second root or a switch anywhere does say something. */
static void test_not_flat(void **state)
{
	_cleanup_free_ char *gpu = group_path(0, 1, "08:00.0"), *nic = group_path(0, 0, "09:00.0");
	const char *gpus[2] = { "pci0000:00/0000:00:04.0", "pci0000:00/0000:00:05.0" };
	const char *nics[2] = { "pci0000:00/0000:00:06.0", "pci0000:00/0000:00:07.0" };

	(void)state;
	assert_int_equal(class_of(gpus, nics, true), CLASS_FLAT);
	assert_int_equal(class_of(gpus, nics, false), CLASS_UNKNOWN);
	gpus[1] = "pci0000:80/0000:80:05.0";
	assert_int_equal(class_of(gpus, nics, true), CLASS_UNKNOWN);
	gpus[1] = gpu;
	assert_int_equal(class_of(gpus, nics, true), CLASS_UNKNOWN);
	gpus[1] = "pci0000:00/0000:00:05.0";
	nics[0] = nic;
	assert_int_equal(class_of(gpus, nics, true), CLASS_UNKNOWN);
	nics[0] = "pci0000:80/0000:80:06.0";
	assert_int_equal(class_of(gpus, nics, true), CLASS_UNKNOWN);
}

/* A GPU, and a NIC with one VF, whose links are rdma0 and eth0v0. */
static struct inventory *with_vf(const char *more)
{
	struct buf b = { 0 };
	char *path;

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	path = add_group_nic(&b, 0, "03:00.0", 0x1021, "rdma0", NULL);
	buf_printf(&b, "sys/devices/%s/sriov_numvfs = 1\n", path);
	free(path);
	path = add_group_nic(&b, 0, "03:00.2", 0x101e, "eth0v0", NULL);
	buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", path);
	free(path);
	buf_str(&b, more);
	return build_machine(&b);
}

static void test_vf(void **state)
{
	struct inventory *inv = with_vf("twinrail/routes = default dev uplink\n");
	const struct topo_nic *vf, *pf;

	(void)state;
	pf = nic_of(inv, "0000:03:00.0");
	vf = nic_of(inv, "0000:03:00.2");
	assert_true(pf->standalone && !pf->is_vf);
	assert_int_equal(pf->num_vfs, 1);
	assert_string_equal(pf->children[0].netdev, "eth0v0");
	assert_string_equal(pf->children[0].kind, "vf");
	assert_true(vf->is_vf && !vf->standalone);
	assert_string_equal(vf->pf_bus_id, "0000:03:00.0");
	assert_int_equal(vf->rail, 0);
	assert_int_equal(vf->role, ROLE_RAIL);
	assert_int_equal(vf->best_gpu, 0);
	assert_int_equal(vf->best_path, PATH_PIX);
	assert_true(pair_of(inv, "0000:04:00.0", "0000:03:00.2")->best);
	assert_int_equal(inv->rail_count, 1);
	inventory_unref(inv);
}

/* The node's own VF: to hand out its PF would cut the node off just as well. */
static void test_own_vf(void **state)
{
	struct inventory *inv = with_vf("twinrail/routes = default dev eth0v0\n");

	(void)state;
	assert_true(topo_is_own(nic_of(inv, "0000:03:00.2")));
	assert_true(topo_is_own(nic_of(inv, "0000:03:00.0")));
	assert_string_equal(nic_of(inv, "0000:03:00.0")->role_source, "default-route");
	for (size_t i = 0; i < inv->n_pairs; i++)
		assert_false(inv->pairs[i].best);
	inventory_unref(inv);
}

/* "pf": device id of a PF without RDMA device, 0 for none; the VF's pcieRoot on such a node. */
static void assert_vf_root(unsigned int pf, const char *expected)
{
	_cleanup_free_ char *pf_path = group_path(0, 0, "03:00.0"),
			    *dma = group_path(1, 0, "03:00.0"), *vf = NULL;
	struct buf b = { 0 };
	struct inventory *inv;

	add_group(&b, 0);
	add_group(&b, 1);
	add_group_gpu(&b, 1, "04:00.0");
	add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
	if (pf)
		add_pci(&b, pf_path, 0x020000, 0x15b3, pf, 0);
	vf = add_group_nic(&b, 0, "03:00.2", 0x101e, "v0", NULL);
	if (pf)
		buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", vf);
	inv = build_machine(&b);
	assert_string_or_null(nic_of(inv, "0000:03:00.2")->pcie_root, expected);
	assert_int_equal(inv->pairs[0].path, expected ? PATH_NODE : PATH_UNKNOWN);
	assert_int_equal(has_warning(inv, "data-direct-unmatched"), !expected);
	inventory_unref(inv);
}

/* The DMA of a ConnectX-8's VF comes from elsewhere, too, also when its PF is no NIC here. */
static void test_vf_of_data_direct(void **state)
{
	(void)state;
	assert_vf_root(0x1023, NULL);
	assert_vf_root(0x1021, "pci0000:00");
	assert_vf_root(0, NULL); /* VFs of all chips have one id */
}

/* A storage NIC near a GPU is none of the GPU's best. */
static void test_storage_near_gpu(void **state)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: mine\n"
						"  match: {gpus: {ids: ['10de:2330']}}\n"
						"  roles: [{nics: [stor0], role: storage}]\n");
	const struct topo_options options = { .platforms = own };
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "stor0", NULL));
	free(add_group_nic(&b, 0, "05:00.0", 0x1021, "rdma0", NULL));
	inv = build_with(&b, &options);
	assert_int_equal(nic_of(inv, "0000:03:00.0")->role, ROLE_STORAGE);
	assert_false(pair_of(inv, "0000:04:00.0", "0000:03:00.0")->best);
	assert_true(pair_of(inv, "0000:04:00.0", "0000:05:00.0")->best);
	inventory_unref(inv);
	platforms_free(own);
}

/* A subfunction's RDMA device, which comes first by name, is not that of the PF. */
static void test_sf(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	const struct topo_nic *pf;
	char *path, *sf;

	(void)state;
	add_group(&b, 0);
	path = add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL);
	sf = xasprintf("%s/mlx5_core.sf.4", path);
	buf_printf(&b, "sys/class/infiniband/a0 -> ../../devices/%s/infiniband/a0\n", sf);
	buf_printf(&b, "sys/devices/%s/infiniband/a0/fw_ver = 1.2.3\n", sf);
	add_netdev(&b, sf, "a0s4");
	free(sf);
	free(path);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 1);
	pf = nic_of(inv, "0000:03:00.0");
	assert_string_equal(pf->rdma_device, "rocep0s03");
	assert_null(pf->firmware);
	assert_string_equal(pf->netdev, "eth0");
	assert_int_equal(pf->n_children, 1);
	assert_string_equal(pf->children[0].netdev, "a0s4");
	assert_string_equal(pf->children[0].kind, "sf");
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_large_card),
		cmocka_unit_test(test_best_of_equals),
		cmocka_unit_test(test_best_shared),
		cmocka_unit_test(test_same_numa_node),
		cmocka_unit_test(test_nearest_gpu),
		cmocka_unit_test(test_numa_only),
		cmocka_unit_test(test_best_of_another),
		cmocka_unit_test(test_best_is_handed_out),
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_not_flat),
		cmocka_unit_test(test_vf),
		cmocka_unit_test(test_own_vf),
		cmocka_unit_test(test_vf_of_data_direct),
		cmocka_unit_test(test_storage_near_gpu),
		cmocka_unit_test(test_sf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Rails, roles and best pairs. */
#include "test_topo_machine.h"

#define CARD_GUID "0000:0000:0000:0001"

/* --- rails and roles --- */

/* One GPU and one NIC per group; the NICs' links have these names (NULL: none). */
static struct inventory *named(const char *const *names, size_t n, const char *more)
{
	struct buf b = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, names[i], NULL));
	}
	buf_str(&b, more);
	return build_machine(&b);
}

static void assert_rails(struct inventory *inv, const int *rails, const char *source,
			 const char *warning)
{
	for (size_t i = 0; i < inv->n_nics; i++) {
		assert_int_equal(inv->nics[i].rail, rails[i]);
		assert_string_or_null(inv->nics[i].rail_source, rails[i] < 0 ? NULL : source);
		assert_int_equal(inv->nics[i].role, ROLE_RAIL);
		assert_int_equal(inv->gpus[i].rail_group, rails[i]);
	}
	assert_int_equal(inv->n_warnings, warning != NULL);
	assert_true(!warning || has_warning(inv, warning));
	inventory_unref(inv);
}

static void test_rails(void **state)
{
	(void)state;
	assert_rails(named((const char *[]){ "gpu1rdma0", "gpu0rdma0" }, 2, ""), (int[]){ 1, 0 },
		     "netdev-name", NULL);
	assert_rails(named((const char *[]){ "rdma1", "rdma2", "rdma0" }, 3, ""),
		     (int[]){ 1, 2, 0 }, "netdev-name", NULL);
	/* No names, or names of another kind, on an HGX H100: the order of the roots. */
	assert_rails(named((const char *[8]){ "rdmax", "eth1" }, 8, ""),
		     (int[]){ 0, 1, 2, 3, 4, 5, 6, 7 }, "root-order", NULL);
	/* On a machine we do not know nothing is guessed. */
	assert_rails(named((const char *[]){ "rdmax", "eth1" }, 2, ""), (int[]){ -1, -1 }, NULL,
		     "rail-unknown");
	assert_rails(named((const char *[]){ NULL, NULL }, 2, ""), (int[]){ -1, -1 }, NULL,
		     "rail-unknown");
	assert_rails(named((const char *[]){ "gpu0rdma0", "gpu0rdma1", "gpu1rdma0" }, 3, ""),
		     (int[]){ 0, 1, 2 }, "netdev-name", NULL);
	/* Contradictory names are no reason to guess. */
	assert_rails(named((const char *[]){ "gpu0rdma0", "gpu00rdma0" }, 2, ""), (int[]){ -1, -1 },
		     NULL, "rail-duplicate");
	/* A missing one takes nothing from the others; names are absolute. */
	assert_rails(named((const char *[]){ "rdma0", "rdma2" }, 2, ""), (int[]){ 0, 2 },
		     "netdev-name", "rail-gap");
	assert_rails(named((const char *[]){ "gpu2rdma1", "gpu0rdma1" }, 2, ""), (int[]){ 5, 1 },
		     "netdev-name", "rail-gap");
	assert_rails(named((const char *[]){ "rdma0", "rdma99999999999999999999" }, 2, ""),
		     (int[]){ 0, -1 }, "netdev-name", NULL);
}

/* Two of three cards lost a PF: rails and groups of what is there stay what they were. */
static void test_rails_around_a_gap(void **state)
{
	static const int rails[] = { 0, 2, 4, 5 }, groups[] = { 0, 1, 2, 2 };
	static const char *const devices[] = { "03:00.0", "03:00.1" };
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		_cleanup_free_ char *guid = xasprintf("0000:0000:0000:000%u", i + 1);

		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
		for (unsigned int k = 0; k < (i < 2 ? 1 : 2); k++) {
			_cleanup_free_ char *netdev = xasprintf("gpu%urdma%u", i, k);

			free(add_group_nic(&b, i, devices[k], 0x1021, netdev, guid));
		}
	}
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(inv->nics[i].rail, rails[i]);
		assert_int_equal(inv->nics[i].rail_group, groups[i]);
	}
	assert_true(has_warning(inv, "rail-gap"));
	inventory_unref(inv);
}

/* Two NICs that share a place among the groups although they are no card: no groups. */
static void test_no_groups_around_a_gap(void **state)
{
	static const char *const names[] = { "rdma0", "rdma1", "rdma4", "rdma5" };
	static const char *const devices[] = { "03:00.0", "03:00.1", "04:00.0", "05:00.0" };
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "06:00.0");
	for (unsigned int i = 0; i < 4; i++)
		free(add_group_nic(&b, 0, devices[i], 0x1021, names[i], i < 2 ? CARD_GUID : NULL));
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(inv->nics[i].rail, i < 2 ? i : i + 2);
		assert_int_equal(inv->nics[i].rail_group, TOPO_UNKNOWN);
	}
	inventory_unref(inv);
}

/* On a known platform one GPU has two NICs: the order of roots says nothing. */
static void test_irregular(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		add_group(&b, i);
		add_group_gpu(&b, i, "05:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, NULL, NULL));
	}
	free(add_group_nic(&b, 1, "04:00.0", 0x1021, NULL, NULL));
	inv = build_machine(&b);
	assert_string_equal(inv->platform, "hgx-h100");
	for (size_t i = 0; i < inv->n_nics; i++) {
		assert_int_equal(inv->nics[i].rail, TOPO_UNKNOWN);
		assert_int_equal(inv->nics[i].rail_group, TOPO_UNKNOWN);
		assert_int_equal(inv->nics[i].role, ROLE_RAIL);
	}
	assert_int_equal(inv->rail_count, 0);
	assert_int_equal(inv->n_warnings, 1);
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);
}

static void assert_platform(size_t n, unsigned int device, unsigned int last, const char *expected)
{
	struct buf b = { 0 };
	struct inventory *inv;

	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *path = xasprintf("pci0000:00/0000:00:%02zx.0", i + 1);

		add_pci(&b, path, 0x030200, 0x10de, i + 1 == n ? last : device, 0);
	}
	inv = build_machine(&b);
	assert_string_or_null(inv->platform, expected);
	inventory_unref(inv);
}

static void test_platforms(void **state)
{
	(void)state;
	assert_platform(8, 0x2330, 0x2330, "hgx-h100");
	assert_platform(7, 0x2330, 0x2330, NULL);
	assert_platform(8, 0x2330, 0x2335, NULL);
	assert_platform(8, 0x2335, 0x2335, "hgx-h200");
	assert_platform(8, 0x2901, 0x2901, "hgx-b200");
	assert_platform(4, 0x31c2, 0x31c3, "gb300");
	assert_platform(4, 0x2941, 0x2941, "gb200");
}

static void test_rail_of_child(void **state)
{
	struct inventory *inv =
		named((const char *[]){ "eth1", "eth0" }, 2,
		      "sys/class/net/gpu0ipvlan0 -> ../../devices/virtual/net/gpu0ipvlan0\n"
		      "sys/devices/virtual/net/gpu0ipvlan0/uevent = DEVTYPE=ipvlan\n"
		      "sys/devices/virtual/net/gpu0ipvlan0/lower_eth0 -> x\n"
		      "sys/class/net/gpu1ipvlan0 -> ../../devices/virtual/net/gpu1ipvlan0\n"
		      "sys/devices/virtual/net/gpu1ipvlan0/uevent = DEVTYPE=ipvlan\n"
		      "sys/devices/virtual/net/gpu1ipvlan0/lower_eth1 -> x\n");

	(void)state;
	assert_string_equal(inv->nics[0].children[0].netdev, "gpu1ipvlan0");
	assert_string_equal(inv->nics[0].children[0].kind, "ipvlan");
	assert_rails(inv, (int[]){ 1, 0 }, "netdev-name", NULL);
}

static void test_roles(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, NULL, NULL));
	}
	for (unsigned int i = 2; i < 4; i++)
		add_group(&b, i);
	/* A bond of two has the default route; one of them has a second port on the same card. */
	free(add_group_nic(&b, 2, "03:00.0", 0x1021, "eth0", CARD_GUID));
	free(add_group_nic(&b, 2, "03:00.1", 0x1021, "eth1", CARD_GUID));
	free(add_group_nic(&b, 3, "03:00.0", 0x1021, "eth2", NULL));
	free(add_group_nic(&b, 3, "04:00.0", 0x1021, "eth3", NULL));
	buf_str(&b, "sys/class/net/bond0 -> ../../devices/virtual/net/bond0\n"
		    "sys/devices/virtual/net/bond0/lower_eth0 -> x\n"
		    "sys/devices/virtual/net/bond0/lower_eth2 -> x\n"
		    "sys/class/net/br0 -> ../../devices/virtual/net/br0\n"
		    "sys/devices/virtual/net/br0/lower_bond0 -> x\n"
		    "sys/devices/virtual/net/bond0/lower_br0 -> x\n"
		    "twinrail/routes = default dev br0\n");
	inv = build_machine(&b);
	assert_int_equal(nic_of(inv, "0000:03:00.0")->role, ROLE_RAIL);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->role, ROLE_RAIL);
	assert_int_equal(nic_of(inv, "0002:03:00.0")->role, ROLE_FRONTEND);
	assert_int_equal(nic_of(inv, "0002:03:00.1")->role, ROLE_FRONTEND);
	assert_int_equal(nic_of(inv, "0003:03:00.0")->role, ROLE_FRONTEND);
	assert_int_equal(nic_of(inv, "0003:04:00.0")->role, ROLE_STORAGE);
	assert_int_equal(nic_of(inv, "0003:04:00.0")->rail, TOPO_UNKNOWN);
	inventory_unref(inv);
}

/* GPU and NIC with a rail, and two NICs far from it, one of them without a link. */
static struct inventory *two_far(const char *more, const struct topo_options *options)
{
	_cleanup_free_ char *text = NULL;
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };

	add_group(&b, 0);
	add_group(&b, 1);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "rdma0", NULL));
	free(add_group_nic(&b, 1, "03:00.0", 0x1021, "eth0", NULL));
	free(add_group_nic(&b, 1, "04:00.0", 0x1021, NULL, NULL));
	buf_str(&b, more);
	text = buf_take(&b);
	machine = read_machine(text);
	inv = topo_build(machine, options);
	hw_free(machine);
	return inv;
}

static void assert_withheld(struct inventory *inv, bool second, bool third)
{
	assert_int_equal(inv->n_nics, 3);
	assert_int_equal(inv->nics[0].role, ROLE_RAIL);
	assert_false(inv->nics[0].withheld);
	assert_int_equal(inv->nics[1].withheld, second);
	assert_int_equal(inv->nics[2].withheld, third);
	assert_int_equal(has_warning(inv, "own-nic-unknown"), second || third);
	inventory_unref(inv);
}

/* Not knowing which NIC is the node's own is no reason to hand it out. */
static void test_own_nic_unknown(void **state)
{
	struct strlist own = { 0 };
	const struct topo_options known = { .own_known = true, .own_nics = &own };
	struct inventory *inv;

	(void)state;
	assert_withheld(two_far("", NULL), true, false);
	assert_withheld(two_far("twinrail/routes = default dev eno1\n", NULL), false, false);
	assert_withheld(two_far("twinrail/routes ! EIO\n", &known), true, true);
	assert_withheld(two_far("", &known), false, false);

	/* What was the node's own stays so, with and without other routes. */
	strlist_add(&own, "0001:03:00.0");
	inv = two_far("twinrail/routes = default dev eno1\n", &known);
	assert_int_equal(inv->nics[1].role, ROLE_FRONTEND);
	assert_int_equal(inv->nics[2].role, ROLE_STORAGE);
	inventory_unref(inv);
	strlist_done(&own);
}

/* A link of a bond without any address, the parent of a VLAN in a bridge; a macvlan is neither. */
static void test_masters(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		_cleanup_free_ char *name = xasprintf("eth%u", i), *path = NULL;

		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
		path = add_group_nic(&b, i, "03:00.0", 0x1021, name, NULL);
		if (i == 0)
			buf_printf(&b,
				   "sys/devices/%s/net/eth0/master -> ../../virtual/net/bond0\n",
				   path);
	}
	buf_str(&b, "sys/class/net/vlan5 -> ../../devices/virtual/net/vlan5\n"
		    "sys/devices/virtual/net/vlan5/uevent = DEVTYPE=vlan\n"
		    "sys/devices/virtual/net/vlan5/lower_eth1 -> x\n"
		    "sys/devices/virtual/net/vlan5/master -> ../br0\n"
		    "sys/class/net/mv0 -> ../../devices/virtual/net/mv0\n"
		    "sys/devices/virtual/net/mv0/uevent = DEVTYPE=macvlan\n"
		    "sys/devices/virtual/net/mv0/lower_eth2 -> x\n");
	inv = build_machine(&b);
	assert_int_equal(nic_of(inv, "0000:03:00.0")->role, ROLE_FRONTEND);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->role, ROLE_FRONTEND);
	assert_int_equal(nic_of(inv, "0002:03:00.0")->role, ROLE_RAIL);
	inventory_unref(inv);
}

/* The default route on one PF of an atomic card: the whole card is the node's. */
static void test_frontend_card(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	char *dma;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *path = add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023,
							  i ? "gpu0rdma1" : "gpu0rdma0", CARD_GUID);

		add_vpd(&b, path, "SN", "A");
	}
	dma = group_path(0, 1, "05:00.0");
	add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
	add_vpd(&b, dma, "DMA", "A");
	free(dma);
	buf_str(&b, "twinrail/routes = default dev gpu0rdma1\n");
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 1);
	assert_true(inv->cards[0].atomic);
	assert_int_equal(inv->nics[0].role, ROLE_FRONTEND);
	assert_int_equal(inv->nics[1].role, ROLE_FRONTEND);
	assert_false(inv->pairs[0].best);
	inventory_unref(inv);
}

/* --- best pairs --- */

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
	add_group(&b, 1);
	add_group_gpu(&b, 0, "05:00.0");
	add_group_gpu(&b, 0, "06:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	free(add_group_nic(&b, 1, "03:00.0", 0x1021, NULL, NULL));
	inv = build_machine(&b);
	assert_true(pair_of(inv, "0000:05:00.0", "0000:03:00.0")->best);
	assert_true(pair_of(inv, "0000:06:00.0", "0000:03:00.0")->best);
	assert_false(pair_of(inv, "0000:06:00.0", "0001:03:00.0")->best);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->role, ROLE_STORAGE);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->best_path, PATH_NODE);
	inventory_unref(inv);
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

static void test_vf(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	const struct topo_nic *vf, *pf;
	char *path;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	path = add_group_nic(&b, 0, "03:00.0", 0x1021, "rdma0", NULL);
	buf_printf(&b, "sys/devices/%s/sriov_numvfs = 1\n", path);
	free(path);
	path = add_group_nic(&b, 0, "03:00.2", 0x101e, "eth0v0", NULL);
	buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", path);
	free(path);
	/* A second one has the default route: handing it out would cut the node off. */
	path = add_group_nic(&b, 0, "03:00.3", 0x101e, "eth0v1", NULL);
	buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", path);
	free(path);
	buf_str(&b, "twinrail/routes = default dev eth0v1\n");
	inv = build_machine(&b);
	assert_int_equal(nic_of(inv, "0000:03:00.3")->role, ROLE_FRONTEND);
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
	assert_true(pair_of(inv, "0000:04:00.0", "0000:03:00.2")->best);
	assert_int_equal(inv->rail_count, 1);
	inventory_unref(inv);
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
		cmocka_unit_test(test_rails),
		cmocka_unit_test(test_rails_around_a_gap),
		cmocka_unit_test(test_no_groups_around_a_gap),
		cmocka_unit_test(test_irregular),
		cmocka_unit_test(test_platforms),
		cmocka_unit_test(test_rail_of_child),
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_own_nic_unknown),
		cmocka_unit_test(test_masters),
		cmocka_unit_test(test_frontend_card),
		cmocka_unit_test(test_large_card),
		cmocka_unit_test(test_best_of_equals),
		cmocka_unit_test(test_best_shared),
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_vf),
		cmocka_unit_test(test_sf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

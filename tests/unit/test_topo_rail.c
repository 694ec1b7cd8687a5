// SPDX-License-Identifier: Apache-2.0
/* Rails and rail groups. */
#include "test_topo_machine.h"

#define CARD_GUID "0000:0000:0000:0001"

/* One GPU and one NIC per group; the NICs' links have these names (NULL: none). */
static struct inventory *named_with(const char *const *names, size_t n, const char *more,
				    const struct topo_options *options)
{
	struct buf b = { 0 };

	for (unsigned int i = 0; i < n; i++) {
		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, names[i], NULL));
	}
	buf_str(&b, more);
	if (!strstr(more, "twinrail/routes"))
		buf_str(&b, "twinrail/routes = default dev uplink\n");
	return build_with(&b, options);
}

static struct inventory *named(const char *const *names, size_t n, const char *more)
{
	return named_with(names, n, more, NULL);
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

/* Near a GPU stands the only NIC of a small machine, too: as long as no default route is known. */
static void test_no_route_yet(void **state)
{
	struct inventory *inv = named((const char *[]){ "eno1", "eno2" }, 2, "twinrail/routes =\n");

	(void)state;
	assert_int_equal(inv->nics[0].role, ROLE_RAIL);
	assert_true(inv->nics[0].withheld && inv->nics[1].withheld);
	assert_true(has_warning(inv, "own-nic-unknown"));
	inventory_unref(inv);
	inv = named((const char *[]){ "rdma0", "rdma1" }, 2, "twinrail/routes =\n");
	assert_false(inv->nics[0].withheld || inv->nics[1].withheld);
	inventory_unref(inv);
}

/* It is the same machine all the same, but its rails cannot be counted. */
static void test_lost_gpu(void **state)
{
	struct inventory *inv;
	struct buf b = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		add_group(&b, i);
		if (i != 3)
			add_group_gpu(&b, i, "04:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, NULL, NULL));
	}
	inv = build_machine(&b);
	assert_string_equal(inv->platform, "hgx-h100");
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(inv->nics[i].rail, TOPO_UNKNOWN);
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);

	/* Nor does a front end become something else. */
	for (unsigned int i = 1; i <= 3; i++) {
		_cleanup_free_ char *path = xasprintf("pci000%u:00/000%u:06:00.0", i, i);

		add_pci(&b, path, 0x030200, 0x10de, 0x2941, 0);
	}
	add_nic(&b, "pci0006:00/0006:09:00.0", 0x1021, 0, "mlx5_4", "eth0", NULL);
	add_nic(&b, "pci0016:00/0016:0b:00.0", 0x1021, 0, "mlx5_9", "eth1", NULL);
	add_nic(&b, "pci0000:00/0000:03:00.0", 0x1023, 0, "mlx5_0", "rdma0", NULL);
	inv = build_machine(&b);
	assert_string_equal(inv->platform, "oci-gb200");
	assert_int_equal(nic_of(inv, "0006:09:00.0")->role, ROLE_FRONTEND);
	assert_int_equal(nic_of(inv, "0016:0b:00.0")->role, ROLE_FRONTEND);
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

/* Patterns are each for links, or for what is made on them. */
static void test_names_of_the_other_kind(void **state)
{
	static const char *const names[] = { "gpu0rdma0", "rdma0" };

	(void)state;
	assert_rails(named((const char *[]){ "gpu0ipvlan0" }, 1, ""), (int[]){ -1 }, NULL,
		     "rail-unknown");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *child =
			xasprintf("sys/class/net/%s -> ../../devices/virtual/net/%s\n"
				  "sys/devices/virtual/net/%s/uevent = DEVTYPE=ipvlan\n"
				  "sys/devices/virtual/net/%s/lower_eth0 -> x\n",
				  names[i], names[i], names[i], names[i]);

		assert_rails(named((const char *[]){ "eth0" }, 1, child), (int[]){ -1 }, NULL,
			     "rail-unknown");
	}
}

/*
 * Two ConnectX-8 (groups 0, 1) whose Data Direct functions are beside the GPUs of groups 3 and 2,
 * on a platform that is cabled in the order of roots; "v3": of the second one.
 */
static struct inventory *crossed(const char *v3)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: ordered\n"
						"  match: {gpus: {ids: ['10de:2330']}}\n"
						"  atomicCards: []\n"
						"  railOrder: pcie-root\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv;
	struct buf b = { 0 };

	for (unsigned int i = 0; i < 4; i++)
		add_group(&b, i);
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_free_ char *nic = add_group_nic(&b, i, "03:00.0", 0x1023, NULL, NULL);
		_cleanup_free_ char *dma = group_path(3 - i, 1, "05:00.0");

		add_vpd(&b, nic, NULL, i ? v3 : "A");
		add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
		add_vpd(&b, dma, NULL, i ? "B" : "A");
		add_group_gpu(&b, 3 - i, "04:00.0");
	}
	buf_str(&b, "twinrail/routes = default dev uplink\n");
	inv = build_with(&b, &options);
	platforms_free(own);
	return inv;
}

/* The order that counts is that of the roots which the DMA comes from, not that of addresses. */
static void test_order_of_effective_roots(void **state)
{
	struct inventory *inv = crossed("B");

	(void)state;
	assert_int_equal(nic_of(inv, "0000:03:00.0")->rail, 1);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->rail, 0);
	assert_string_equal(nic_of(inv, "0000:03:00.0")->rail_source, "root-order");
	assert_int_equal(inventory_gpu(inv, "0002:04:00.0")->rail_group, 0);
	inventory_unref(inv);
	inv = crossed("C"); /* nobody knows where its DMA comes from */
	for (size_t i = 0; i < inv->n_nics; i++)
		assert_int_equal(inv->nics[i].rail, TOPO_UNKNOWN);
	assert_true(has_warning(inv, "data-direct-unmatched"));
	inventory_unref(inv);
}

/* A root that has no number has no place in their order. */
static void test_order_of_unknown_roots(void **state)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: ordered\n"
						"  match: {gpus: {ids: ['10de:2330']}}\n"
						"  railOrder: pcie-root\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv;
	struct buf b = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *root = i ? "platform/x/pci0001:00/0001:00" : "pci0000:00/0000:00";
		_cleanup_free_ char *gpu = xasprintf("%s:01.0", root);
		_cleanup_free_ char *nic = xasprintf("%s:02.0", root);

		add_gpu(&b, gpu, 0);
		add_nic(&b, nic, 0x1021, 0, i ? "mlx5_1" : "mlx5_0", NULL, NULL);
	}
	inv = build_with(&b, &options);
	assert_int_equal(inv->pairs[3].path, PATH_PHB);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(inv->nics[i].rail, TOPO_UNKNOWN);
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);
	platforms_free(own);
}

/* mlx5_N is numbered anew at each boot, with gaps for other ports: nothing depends on it. */
static void test_renumbered_devices(void **state)
{
	static const char *const before[] = { "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3" };
	static const char *const after[] = { "mlx5_5", "mlx5_0", "mlx5_9", "rocep4s0" };
	static const char *const netdevs[] = { "rdma2", "rdma0", "rdma3", "rdma1" };
	static const int rails[] = { 2, 0, 3, 1 };

	(void)state;
	for (int names = 0; names < 2; names++) { /* with names of links, and by order of roots */
		for (int boot = 0; boot < 2; boot++) {
			const char *const *devices = boot ? after : before;
			struct inventory *inv;
			struct buf b = { 0 };

			for (unsigned int i = 0; i < 8; i++) {
				_cleanup_free_ char *path = group_path(i, 0, "03:00.0");
				_cleanup_free_ char *rest = xasprintf("mlx5_%u", 20 - i);

				add_group(&b, i);
				add_group_gpu(&b, i, "04:00.0");
				if (names && i >= 4)
					continue;
				add_nic(&b, path, 0x1021, 0, i < 4 ? devices[i] : rest,
					names ? netdevs[i] : NULL, NULL);
			}
			inv = build_machine(&b);
			for (size_t i = 0; i < inv->n_nics; i++)
				assert_int_equal(inv->nics[i].rail, names ? rails[i] : (int)i);
			assert_int_equal(inv->rail_count, names ? 4 : 8);
			inventory_unref(inv);
		}
	}
}

static void test_rails_by_platform(void **state)
{
	struct platforms *own =
		parse_platforms("platforms:\n"
				"- name: mine\n"
				"  match: {gpus: {ids: ['10de:2330'], count: 3}}\n"
				"  railNames: ['fabric<N>', 'left<N>right<M>']\n"
				"- name: mapped\n"
				"  match: {gpus: {ids: ['10de:2330'], count: 2}}\n"
				"  railMap: {'00000001:03:00.0': 5, '0009:03:00.0': 0}\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv;

	(void)state;
	assert_rails(
		named_with((const char *[]){ "fabric1", "fabric2", "fabric0" }, 3, "", &options),
		(int[]){ 1, 2, 0 }, "netdev-name", NULL);
	assert_rails(named_with((const char *[]){ "left1right0", "left0right1", "fabric0" }, 3, "",
				&options),
		     (int[]){ 2, 1, -1 }, "netdev-name", "rail-gap");
	/* What the platform does not name is read as everywhere. */
	assert_rails(named_with((const char *[]){ "rdma1", "rdma2", "rdma0" }, 3, "", &options),
		     (int[]){ 1, 2, 0 }, "netdev-name", NULL);
	/* The map goes before names; an address that is not there is passed over. */
	inv = named_with((const char *[]){ "rdma0", "rdma1" }, 2, "", &options);
	assert_int_equal(inv->nics[0].rail, TOPO_UNKNOWN);
	assert_int_equal(inv->nics[1].rail, 5);
	assert_string_equal(inv->nics[1].rail_source, "config");
	assert_string_equal(inv->nics[1].role_source, "config");
	assert_string_equal(inv->nics[0].role_source, "distance");
	inventory_unref(inv);
	platforms_free(own);
}

/* The map is about PFs: a VF whose PF is there has the rail of that. */
static void test_map_of_vf(void **state)
{
	struct platforms *own =
		parse_platforms("platforms:\n"
				"- name: mapped\n"
				"  match: {gpus: {ids: ['10de:2330'], count: 1}}\n"
				"  railMap: {'0000:03:00.0': 0, '0000:03:00.2': 1}\n");
	const struct topo_options options = { .platforms = own };
	struct buf b = { 0 };
	struct inventory *inv;
	char *path;

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, NULL, NULL));
	path = add_group_nic(&b, 0, "03:00.2", 0x101e, NULL, NULL);
	buf_printf(&b, "sys/devices/%s/physfn -> ../0000:03:00.0\n", path);
	free(path);
	inv = build_with(&b, &options);
	assert_int_equal(nic_of(inv, "0000:03:00.0")->rail, 0);
	assert_int_equal(nic_of(inv, "0000:03:00.2")->rail, 0);
	assert_int_equal(inv->rail_count, 1);
	assert_false(has_warning(inv, "rail-gap"));
	inventory_unref(inv);
	platforms_free(own);
}

/* Two GPUs with two rails each: what the names that are left count must fit the platform. */
static void test_rails_per_gpu(void **state)
{
	struct platforms *own =
		parse_platforms("platforms:\n"
				"- name: two-each\n"
				"  match: {gpus: {ids: ['10de:2330'], count: '1-2'}}\n"
				"  rails: 4\n"
				"- name: odd\n"
				"  match: {gpus: {ids: ['10de:2330'], count: 3}}\n"
				"  rails: 4\n"
				"- name: open\n"
				"  match: {gpus: {ids: ['10de:2330'], count: '4-'}}\n"
				"  rails: 8\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv;

	(void)state;
	/* All links gpu<N>rdma1 are gone. */
	inv = named_with((const char *[]){ "gpu0rdma0", "gpu1rdma0" }, 2, "", &options);
	assert_int_equal(inv->nics[0].rail, 0);
	assert_int_equal(inv->nics[1].rail, 2);
	assert_true(has_warning(inv, "rail-missing"));
	inventory_unref(inv);
	/* More per GPU than the platform has, or a platform that has not equally many of each. */
	inv = named_with((const char *[]){ "gpu0rdma2", "gpu1rdma0" }, 2, "", &options);
	assert_int_equal(inv->nics[0].rail, TOPO_UNKNOWN);
	assert_int_equal(inv->nics[1].rail, TOPO_UNKNOWN);
	assert_non_null(strstr(warning_text(inv, "rail-unknown"), "two-each"));
	assert_false(has_warning(inv, "rail-missing"));
	inventory_unref(inv);
	inv = named_with((const char *[]){ "gpu0rdma0", "gpu1rdma0", "gpu2rdma0" }, 3, "",
			 &options);
	assert_int_equal(inv->rail_count, 0);
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);
	/* Nobody says how many GPUs that one has. */
	inv = named_with((const char *[]){ "gpu0rdma0", "gpu1rdma0", "gpu2rdma0", "gpu3rdma0" }, 4,
			 "", &options);
	assert_int_equal(inv->nics[3].rail, 3);
	inventory_unref(inv);
	platforms_free(own);
}

/* A VLAN and a VF with the name of a rail are none; a macvlan by a name of the platform is. */
static void test_names_of_children(void **state)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: mine\n"
						"  match: {gpus: {ids: ['10de:2330'], count: 1}}\n"
						"  railNames: ['mv<N>']\n");
	const struct topo_options options = { .platforms = own };
	static const char vlan[] = "sys/class/net/rdma3 -> ../../devices/virtual/net/rdma3\n"
				   "sys/devices/virtual/net/rdma3/uevent = DEVTYPE=vlan\n"
				   "sys/devices/virtual/net/rdma3/lower_eth0 -> x\n";
	static const char other_vlan[] = "sys/class/net/mv3 -> ../../devices/virtual/net/mv3\n"
					 "sys/devices/virtual/net/mv3/uevent = DEVTYPE=vlan\n"
					 "sys/devices/virtual/net/mv3/lower_eth0 -> x\n";
	static const char macvlan[] = "sys/class/net/mv3 -> ../../devices/virtual/net/mv3\n"
				      "sys/devices/virtual/net/mv3/uevent = DEVTYPE=macvlan\n"
				      "sys/devices/virtual/net/mv3/lower_eth0 -> x\n";

	(void)state;
	assert_rails(named((const char *[]){ "eth0" }, 1, vlan), (int[]){ -1 }, NULL,
		     "rail-unknown");
	assert_rails(named_with((const char *[]){ "eth0" }, 1, other_vlan, &options), (int[]){ -1 },
		     NULL, "rail-unknown");
	assert_rails(named_with((const char *[]){ "eth0" }, 1, macvlan, &options), (int[]){ 3 },
		     "netdev-name", "rail-gap");
	platforms_free(own);
}

/* VFs as Azure shows them: each in a PCI domain of its own, below the virtual machine bus. */
static struct inventory *domains(size_t n, unsigned int last)
{
	struct buf b = { 0 };

	for (unsigned int i = 1; i <= 8; i++) {
		_cleanup_free_ char *gpu =
			xasprintf("LNXSYSTM:00/VMBUS:00/g%u/pci%04x:00/%04x:00:00.0", i, i, i);

		add_gpu(&b, gpu, i > 4);
	}
	for (unsigned int i = 1; i <= n; i++) {
		unsigned int domain = i == n ? last : 0x100 + i;
		_cleanup_free_ char *rdma = xasprintf("mlx5_%u", (unsigned int)n - i);
		_cleanup_free_ char *nic =
			xasprintf("LNXSYSTM:00/VMBUS:00/n%u/pci%04x:00/%04x:00:%02x.0", i, domain,
				  domain, domain < 0x100 + i);

		add_nic(&b, nic, 0x101e, i > 4, rdma, NULL, NULL);
	}
	buf_str(&b, "sys/class/dmi/id/sys_vendor = Microsoft Corporation\n"
		    "sys/class/dmi/id/product_name = Virtual Machine\n");
	return build_machine(&b);
}

static void test_rails_by_domain(void **state)
{
	struct inventory *inv = domains(8, 0x108);

	(void)state;
	assert_string_equal(inv->platform, "azure-nd-h100-v5");
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(inv->nics[i].rail, i);
		assert_string_equal(inv->nics[i].rail_source, "pci-domain");
		assert_string_equal(inv->nics[i].role_source, "platform");
		/* Which GPU is on which rail that order does not tell. */
		assert_int_equal(inv->gpus[i].rail_group, TOPO_UNKNOWN);
	}
	assert_true(has_warning(inv, "best-unknown"));
	assert_false(has_warning(inv, "rail-missing"));
	inventory_unref(inv);

	inv = domains(7, 0x107); /* one is missing: which one cannot be told */
	assert_int_equal(inv->rail_count, 0);
	assert_non_null(strstr(warning_text(inv, "rail-missing"), "0 of 8 rails"));
	inventory_unref(inv);

	inv = domains(8, 0x107); /* two in one domain */
	assert_int_equal(inv->n_nics, 8);
	assert_int_equal(inv->rail_count, 0);
	inventory_unref(inv);
}

/* One NIC less than the platform has: names are absolute, but somebody should know. */
static void test_missing_rail(void **state)
{
	static const char *const names[8] = { "rdma0", "rdma1", "rdma2", "rdma3",
					      "rdma4", "rdma5", "rdma6", "eth0" };
	struct inventory *inv = named(names, 8, "");

	(void)state;
	assert_string_equal(inv->platform, "hgx-h100");
	assert_int_equal(inv->rail_count, 7);
	assert_int_equal(inv->nics[7].rail, TOPO_UNKNOWN);
	assert_non_null(strstr(warning_text(inv, "rail-missing"), "7 of 8 rails of hgx-h100"));
	inventory_unref(inv);
}

/* A NIC that is not handed out is cabled all the same. */
static void test_rails_of_excluded(void **state)
{
	struct strlist exclude = { 0 };
	const struct topo_options options = { .exclude = &exclude };
	struct inventory *inv;

	(void)state;
	strlist_add(&exclude, "0003:03:00.0");
	inv = named_with((const char *[8]){ NULL }, 8, "", &options);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(inv->nics[i].rail, i);
		assert_int_equal(inv->nics[i].excluded, i == 3);
		assert_int_equal(inventory_pair(inv, i, i)->best, i != 3);
	}
	inventory_unref(inv);
	strlist_done(&exclude);
}

/* Two GPUs are equally near to a NIC: the order of roots says nothing. */
static void test_shared_switch(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		add_group(&b, i);
		add_group_gpu(&b, i, "05:00.0");
		add_group_gpu(&b, i, "06:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, NULL, NULL));
		free(add_group_nic(&b, i, "04:00.0", 0x1021, NULL, NULL));
	}
	inv = build_machine(&b);
	assert_string_equal(inv->platform, "hgx-h100");
	assert_int_equal(inv->rail_count, 0);
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_route_yet),
		cmocka_unit_test(test_rails),
		cmocka_unit_test(test_lost_gpu),
		cmocka_unit_test(test_rails_around_a_gap),
		cmocka_unit_test(test_no_groups_around_a_gap),
		cmocka_unit_test(test_irregular),
		cmocka_unit_test(test_rail_of_child),
		cmocka_unit_test(test_names_of_the_other_kind),
		cmocka_unit_test(test_order_of_effective_roots),
		cmocka_unit_test(test_order_of_unknown_roots),
		cmocka_unit_test(test_renumbered_devices),
		cmocka_unit_test(test_rails_by_platform),
		cmocka_unit_test(test_map_of_vf),
		cmocka_unit_test(test_rails_per_gpu),
		cmocka_unit_test(test_names_of_children),
		cmocka_unit_test(test_rails_by_domain),
		cmocka_unit_test(test_missing_rail),
		cmocka_unit_test(test_rails_of_excluded),
		cmocka_unit_test(test_shared_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

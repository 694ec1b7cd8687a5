// SPDX-License-Identifier: Apache-2.0
/* Roles of NICs, and which are never handed out. */
#include "test_topo_machine.h"

#include <errno.h>

#include "topo/pattern.h"

#define CARD_GUID "0000:0000:0000:0001"

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
	add_nic(&b, "pci0004:00/0004:04:00.0", 0x1021, 0, "mlx5_4", "eth3", NULL);
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
	assert_int_equal(nic_of(inv, "0004:04:00.0")->role, ROLE_STORAGE);
	assert_int_equal(nic_of(inv, "0004:04:00.0")->rail, TOPO_UNKNOWN);
	assert_string_equal(nic_of(inv, "0000:03:00.0")->role_source, "distance");
	assert_string_equal(nic_of(inv, "0002:03:00.0")->role_source, "default-route");
	assert_string_equal(nic_of(inv, "0002:03:00.1")->role_source, "card");
	assert_string_equal(nic_of(inv, "0004:04:00.0")->role_source, "distance");
	inventory_unref(inv);
}

/*
 * GPU and NIC below two ports of one root complex are near enough (PHB) for what is far from all
 * GPUs to be there for storage: both ports of a card, none of which the node uses.
 */
static void test_storage_card(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_nic(&b, "pci0000:00/0000:00:02.0", 0x1021, 0, "mlx5_0", "rdma0", NULL);
	add_nic(&b, "pci0001:00/0001:00:01.0", 0x1021, 0, "mlx5_1", "eth1", CARD_GUID);
	add_nic(&b, "pci0001:00/0001:00:01.1", 0x1021, 0, "mlx5_2", "eth2", CARD_GUID);
	buf_str(&b, "twinrail/routes = default dev uplink\n");
	inv = build_machine(&b);
	assert_int_equal(inv->n_cards, 1);
	assert_int_equal(nic_of(inv, "0000:00:02.0")->role, ROLE_RAIL);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(inv->nics[i].role, ROLE_STORAGE);
		assert_string_equal(inv->nics[i].role_source, "distance");
	}
	inventory_unref(inv);
}

/* "gpus" of 8 GPUs of an HGX H100, each with a NIC at its switch, and a NIC on a root of its own. */
static struct inventory *hgx(unsigned int gpus)
{
	struct buf b = { 0 };

	for (unsigned int i = 0; i < 8; i++) {
		add_group(&b, i);
		if (i < gpus)
			add_group_gpu(&b, i, "04:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, NULL, NULL));
	}
	add_nic(&b, "pci0008:00/0008:00:01.0", 0x1021, 0, "stor", NULL, NULL);
	return build_machine(&b);
}

/* The NIC of a GPU that is gone did not become something else. */
static void test_nic_of_lost_gpu(void **state)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: hgx-h100\n"
						"  match: {dmiVendor: nobody}\n");
	const struct topo_options none = { .platforms = own };
	struct inventory *inv = hgx(8);
	struct buf b = { 0 };

	(void)state;
	assert_string_equal(inv->platform, "hgx-h100");
	assert_int_equal(nic_of(inv, "0008:00:01.0")->role, ROLE_STORAGE);
	inventory_unref(inv);
	inv = hgx(7);
	assert_string_equal(inv->platform, "hgx-h100");
	assert_int_equal(nic_of(inv, "0007:03:00.0")->role, ROLE_UNKNOWN);
	assert_int_equal(nic_of(inv, "0008:00:01.0")->role, ROLE_UNKNOWN);
	inventory_unref(inv);
	/* On a machine that is not known: the one at a switch may have lost its GPU. */
	for (unsigned int i = 0; i < 2; i++) {
		add_group(&b, i);
		free(add_group_nic(&b, i, "03:00.0", 0x1021, NULL, NULL));
	}
	add_group_gpu(&b, 0, "04:00.0");
	add_nic(&b, "pci0008:00/0008:00:01.0", 0x1021, 0, "stor", NULL, NULL);
	inv = build_with(&b, &none);
	assert_null(inv->platform);
	assert_int_equal(nic_of(inv, "0001:03:00.0")->role, ROLE_UNKNOWN);
	assert_int_equal(nic_of(inv, "0008:00:01.0")->role, ROLE_STORAGE);
	inventory_unref(inv);
	platforms_free(own);
}

/* GPU and NIC with a rail, and two NICs far from it, one of them without a link. */
static struct inventory *two_far(const char *more, const struct topo_options *options)
{
	_cleanup_free_ char *text = NULL;
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "rdma0", NULL));
	add_nic(&b, "pci0001:00/0001:03:00.0", 0x1021, 0, "mlx5_1", "eth0", NULL);
	add_nic(&b, "pci0001:00/0001:04:00.0", 0x1021, 0, "mlx5_2", NULL, NULL);
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
	assert_string_equal(inv->nics[1].role_source, "earlier");
	assert_int_equal(inv->nics[2].role, ROLE_STORAGE);
	inventory_unref(inv);
	strlist_done(&own);
}

/* Rails by the order of roots prove nothing about the node's own NIC; those by name do. */
static void test_rails_before_own_nic(void **state)
{
	static const struct {
		const char *prefix;
		bool withheld;
	} cases[] = { { "eth", true }, { "rdma", false } };

	(void)state;
	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		struct inventory *inv;
		struct buf b = { 0 };

		for (unsigned int i = 0; i < 8; i++) {
			_cleanup_free_ char *name = xasprintf("%s%u", cases[c].prefix, i);

			add_group(&b, i);
			add_group_gpu(&b, i, "04:00.0");
			free(add_group_nic(&b, i, "03:00.0", 0x1021, name, NULL));
		}
		inv = build_machine(&b);
		for (size_t i = 0; i < inv->n_nics; i++) {
			assert_int_equal(inv->nics[i].rail, i);
			assert_int_equal(inv->nics[i].withheld, cases[c].withheld);
		}
		assert_int_equal(has_warning(inv, "own-nic-unknown"), cases[c].withheld);
		inventory_unref(inv);
	}
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
	assert_string_equal(nic_of(inv, "0000:03:00.0")->role_source, "master");
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
	assert_string_equal(inv->nics[0].role_source, "card");
	assert_string_equal(inv->nics[1].role_source, "default-route");
	assert_false(inv->pairs[0].best);
	inventory_unref(inv);
}

/* --- addresses, VLANs, slaves --- */

/* Three GPUs, each with a NIC: eth0, eth1, eth2. */
static struct inventory *three(const char *more, const struct topo_options *options)
{
	struct buf b = { 0 };

	for (unsigned int i = 0; i < 3; i++) {
		_cleanup_free_ char *name = xasprintf("eth%u", i);

		add_group(&b, i);
		add_group_gpu(&b, i, "04:00.0");
		free(add_group_nic(&b, i, "03:00.0", 0x1021, name, NULL));
	}
	buf_str(&b, more);
	return build_with(&b, options);
}

/* "FR-": frontend, rail, unknown. */
static void assert_roles(struct inventory *inv, const char *roles, const char *source)
{
	for (size_t i = 0; i < 3; i++) {
		const struct topo_nic *nic = &inv->nics[i];

		assert_int_equal(nic->role, roles[i] == 'F' ? ROLE_FRONTEND : ROLE_RAIL);
		assert_string_equal(nic->role_source, roles[i] == 'F' ? source : "distance");
		assert_int_equal(topo_is_own(nic), roles[i] == 'F');
	}
	inventory_unref(inv);
}

#define NO_ROUTES "twinrail/routes =\n"

/* Kubernetes knows the node by an address, and no default route has to lead there. */
static void test_node_address(void **state)
{
	static const char addresses[] = "twinrail/addresses = eth0 10.0.0.1/24 scope global\\n"
					"eth1 10.0.0.2/24 scope global\\n"
					"eth2 fd00::0:5/64 scope global\n" NO_ROUTES;
	struct strlist node = { 0 };
	const struct topo_options options = { .node_addresses = &node };
	struct inventory *inv;

	(void)state;
	assert_roles(three(addresses, &options), "RRR", NULL);
	strlist_add(&node, "10.0.0.2");
	assert_roles(three(addresses, &options), "RFR", "node-address");
	strlist_add(&node, "fd00:0::5");
	inv = three(addresses, &options);
	assert_false(has_warning(inv, "own-nic-unknown"));
	assert_roles(inv, "RFF", "node-address");
	strlist_done(&node);
	/* A node that is known by an address, of whatever link, needs no default route. */
	strlist_add(&node, "10.0.9.1");
	assert_withheld(
		two_far("twinrail/addresses = eno1 10.0.9.1/24 scope global\n" NO_ROUTES, NULL),
		true, false);
	assert_withheld(
		two_far("twinrail/addresses = eno1 10.0.9.1/24 scope global\n" NO_ROUTES, &options),
		false, false);
	strlist_done(&node);
	strlist_add(&node, "10.0.0.9"); /* of no link */
	assert_roles(three(addresses, &options), "RRR", NULL);
	strlist_done(&node);
}

/* Two next hops, and another one of IPv6; the table of a rail is none of the node's. */
static void test_all_default_routes(void **state)
{
	(void)state;
	assert_roles(three("twinrail/routes = default nexthop via 10.0.0.1 dev eth0 nexthop via "
			   "10.0.1.1 dev eth1\n",
			   NULL),
		     "FFR", "default-route");
	assert_roles(three("twinrail/routes = default via fe80::1 dev eth2 metric 100\n", NULL),
		     "RRF", "default-route");
	assert_roles(three("twinrail/routes = default via 10.0.0.1 dev eth0\\n"
			   "default via 10.1.0.1 dev eth1 table 101\n"
			   "twinrail/rules = 100: from 10.1.0.5 lookup 101\n",
			   NULL),
		     "FRR", "default-route");
}

#define VLAN                                                                                       \
	"sys/class/net/vlan5 -> ../../devices/virtual/net/vlan5\n"                                 \
	"sys/devices/virtual/net/vlan5/uevent = DEVTYPE=vlan\n"                                    \
	"sys/devices/virtual/net/vlan5/lower_eth1 -> x\n"
#define IPVLAN                                                                                     \
	"sys/class/net/iv5 -> ../../devices/virtual/net/iv5\n"                                     \
	"sys/devices/virtual/net/iv5/uevent = DEVTYPE=ipvlan\n"                                    \
	"sys/devices/virtual/net/iv5/lower_eth1 -> x\n"

/* A VLAN with an address is in use; without one, or with a link-local one, it is not. */
static void test_vlan_parents(void **state)
{
	(void)state;
	assert_roles(
		three(VLAN NO_ROUTES "twinrail/addresses = vlan5 10.5.0.1/24 scope global\n", NULL),
		"RFR", "vlan-parent");
	assert_roles(three(VLAN NO_ROUTES "twinrail/addresses = vlan5 fd00:5::1/64 scope global\n",
			   NULL),
		     "RFR", "vlan-parent");
	assert_roles(
		three(VLAN NO_ROUTES "twinrail/addresses = vlan5 fe80::1/64 scope link\n", NULL),
		"RRR", NULL);
	assert_roles(three(VLAN, NULL), "RRR", NULL);
	assert_roles(three(VLAN "twinrail/routes = default dev vlan5\n", NULL), "RFR",
		     "default-route");
	/* The rail's own address is on a child: that is no use by the node. */
	assert_roles(three(IPVLAN NO_ROUTES "twinrail/addresses = iv5 fd00:5::1/64 scope global\n",
			   NULL),
		     "RRR", NULL);
	/* But the default route on it is. */
	assert_roles(three(IPVLAN "twinrail/routes = default dev iv5\n", NULL), "RFR",
		     "default-route");
}

/* The fast path of a Hyper-V link has that as its master. */
static void test_netvsc(void **state)
{
	static const char more[] =
		"sys/class/net/eth9 -> ../../devices/vmbus/net/eth9\n"
		"sys/devices/vmbus/net/eth9/mtu = 1500\n"
		"twinrail/links = eth1 master eth9\n" NO_ROUTES "twinrail/addresses =\n";

	(void)state;
	assert_roles(three(more, NULL), "RFR", "master");
}

static void test_long_chain_of_links(void **state)
{
	struct buf b = { 0 };

	(void)state;
	/* Each link on the next one, 200 deep, the last on eth2: recordings may say anything. */
	for (unsigned int i = 0; i < 200; i++) {
		buf_printf(&b, "sys/class/net/c%u -> ../../devices/virtual/net/c%u\n", i, i);
		buf_printf(&b, "sys/devices/virtual/net/c%u/mtu = 1\n", i);
		if (i < 199)
			buf_printf(&b, "sys/devices/virtual/net/c%u/lower_c%u -> x\n", i, i + 1);
	}
	buf_str(&b, "sys/devices/virtual/net/c199/lower_eth2 -> x\n"
		    "twinrail/routes = default dev c0\n");
	assert_roles(three(b.data, NULL), "RRF", "default-route");
	buf_done(&b);
}

/* --- what the platform file and the administrator say --- */

static void test_platform_roles(void **state)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: mine\n"
						"  match: {gpus: {ids: '10de:2330', count: 3}}\n"
						"  roles:\n"
						"  - {nics: 'eth1', role: storage}\n"
						"  - {nics: ['000?:03:00.0'], role: frontend}\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv = three("twinrail/routes = default dev eth2\n", &options);

	(void)state;
	assert_int_equal(inv->nics[0].role, ROLE_FRONTEND);
	assert_string_equal(inv->nics[0].role_source, "config");
	assert_false(topo_is_own(&inv->nics[0]));
	assert_int_equal(inv->nics[1].role, ROLE_STORAGE); /* the first that fits */
	assert_string_equal(inv->nics[1].role_source, "config");
	assert_string_equal(inv->nics[2].role_source, "default-route");
	inventory_unref(inv);
	platforms_free(own);
}

static struct inventory *excluding(const char *include, const char *exclude)
{
	struct strlist in = { 0 }, out = { 0 };
	const struct topo_options options = { .include = &in, .exclude = &out };
	struct inventory *inv;

	strlist_split(&in, include, ',');
	strlist_split(&out, exclude, ',');
	inv = three("twinrail/routes = default dev eth2\n", &options);
	strlist_done(&in);
	strlist_done(&out);
	return inv;
}

static void assert_excluded(const char *include, const char *exclude, const char *expected)
{
	struct inventory *inv = excluding(include, exclude);

	for (size_t i = 0; i < 3; i++)
		if (inv->nics[i].excluded != (expected[i] == 'x'))
			fail_msg("include \"%s\", exclude \"%s\": NIC %zu", include, exclude, i);
	inventory_unref(inv);
}

static void test_include_and_exclude(void **state)
{
	char address[] = "0000:03:00.0";
	const struct topo_nic without_link = { .bus_id = address };
	struct inventory *inv;

	(void)state;
	assert_excluded("", "", "...");
	assert_excluded("*", "", "...");
	assert_excluded("", "*", "xxx");
	assert_excluded("eth0,eth1", "", "..x");
	assert_excluded("eth?", "eth1", ".x.");
	assert_excluded("", "000[01]*,eth00", "...");
	assert_excluded("0001:03:00.0", "", "x.x");
	assert_excluded("", "0001:*:*", ".x.");
	assert_excluded("", "0002:03:00.?", "..x");
	assert_excluded("15b3:1021", "", "...");
	assert_excluded("", "15B3:*", "xxx");
	assert_excluded("", "15b3:1023", "...");
	assert_excluded("", "role=frontend", "..x");
	assert_excluded("role=r*", "", "..x");
	/* One without a link is any NIC, too, but has no name. */
	assert_true(nic_pattern_match("*", &without_link));
	assert_false(nic_pattern_match("?*", &without_link));
	/* The GPU whose NIC is excluded gets no other one as its own. */
	inv = excluding("", "eth0");
	assert_false(inventory_pair(inv, 0, 0)->best);
	assert_int_equal(inv->nics[0].role, ROLE_RAIL);
	inventory_unref(inv);
}

static void test_patterns(void **state)
{
	static const char *const good[] = {
		"eth0",	     "*",      "0000:03:00.0", "*:03:00.*",   "15b3:1021",    "1???:*",
		"role=rail", "role=*", "role=unknown", "enp3s0f0np0", "10000:01:00.0"
	};
	static const struct {
		const char *pattern, *error;
	} bad[] = {
		{ "", "is empty" },
		{ "role=rails", "names no role; give a PCI address" },
		{ "role=", "names no role" },
		{ "15b3:10211", "is no pair of hexadecimal ids" },
		{ ":1021", "is no pair" },
		{ "x5b3:1021", "is no pair" },
		{ "0000:03:00:0", "is no PCI address" },
		{ "0000:0g:00.0", "is no PCI address" },
		{ "0000:03:00.0.0", "is no PCI address" },
		{ "eth0 eth1", "cannot be the name of a link" },
		{ "a/b", "cannot be the name" },
		{ "name=x", "cannot be the name" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too long" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct err err = { 0 };

		if (nic_pattern_check(good[i], &err) < 0)
			fail_msg("%s", err.msg);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err err = { 0 };

		assert_int_equal(nic_pattern_check(bad[i].pattern, &err), -EINVAL);
		if (!strstr(err.msg, bad[i].error))
			fail_msg("\"%s\" lacks \"%s\"", err.msg, bad[i].error);
	}
}

static void test_globs(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} cases[] = {
		{ "", "", true },
		{ "", "a", false },
		{ "*", "", true },
		{ "**", "ab", true },
		{ "a*b", "ab", true },
		{ "a*b", "aXbXb", true },
		{ "a*b", "aXbX", false },
		{ "?", "", false },
		{ "?", "a", true },
		{ "a?c*", "abcd", true },
		{ "*a*a*a", "aa", false },
		{ "a", "A", false },
		{ "*.0", "0000:1.0", true },
		{ "*aab", "aaab", true },
		{ "a[b]", "ab", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (glob_match(cases[i].pattern, cases[i].text) != cases[i].match)
			fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roles),
		cmocka_unit_test(test_storage_card),
		cmocka_unit_test(test_nic_of_lost_gpu),
		cmocka_unit_test(test_own_nic_unknown),
		cmocka_unit_test(test_rails_before_own_nic),
		cmocka_unit_test(test_masters),
		cmocka_unit_test(test_frontend_card),
		cmocka_unit_test(test_node_address),
		cmocka_unit_test(test_all_default_routes),
		cmocka_unit_test(test_vlan_parents),
		cmocka_unit_test(test_netvsc),
		cmocka_unit_test(test_long_chain_of_links),
		cmocka_unit_test(test_platform_roles),
		cmocka_unit_test(test_include_and_exclude),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_globs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

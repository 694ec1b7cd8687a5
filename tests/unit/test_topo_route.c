// SPDX-License-Identifier: Apache-2.0
/* Whether packets from a rail's address leave by the rail, and the arithmetic of prefixes. */
#include "test_topo_machine.h"

#include "topo/prefix.h"

/* One GPU and its NIC, the link gpu0rdma0, with an ipvlan child on it. */
static struct inventory *rail(const char *addresses, const char *routes, const char *rules,
			      const struct topo_options *options)
{
	struct buf b = { 0 };

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "gpu0rdma0", NULL));
	buf_str(&b, "sys/class/net/gpu0ipvlan0 -> ../../devices/virtual/net/gpu0ipvlan0\n"
		    "sys/devices/virtual/net/gpu0ipvlan0/uevent = DEVTYPE=ipvlan\n"
		    "sys/devices/virtual/net/gpu0ipvlan0/lower_gpu0rdma0 -> x\n");
	if (addresses)
		buf_printf(&b, "twinrail/addresses = %s\n", addresses);
	if (routes)
		buf_printf(&b, "twinrail/routes = %s\n", routes);
	if (rules)
		buf_printf(&b, "twinrail/rules = %s\n", rules);
	return build_with(&b, options);
}

static void assert_routed(struct inventory *inv, enum tri routed)
{
	if (inv->nics[0].rail_routed != routed)
		fail_msg("%d instead of %d", inv->nics[0].rail_routed, routed);
	assert_int_equal(has_warning(inv, "rail-unrouted"), routed == TRI_NO);
	inventory_unref(inv);
}

#define RULES                                                                                      \
	"0: from all lookup local\\n100: from 10.1.0.5 lookup 101\\n32766: from all lookup main"
#define MAIN_RULES "0: from all lookup local\\n32766: from all lookup main"
#define FRONT "default via 10.0.0.1 dev eth9"

/* One address only, as on clouds: everybody else is behind the gateway of the rail's own table. */
static void test_host_address(void **state)
{
	static const char address[] = "gpu0rdma0 10.1.0.5/32 scope global";
	struct inventory *inv;

	(void)state;
	assert_routed(
		rail(address, FRONT "\\ndefault via 10.1.0.1 dev gpu0rdma0 table 101", RULES, NULL),
		TRI_YES);
	assert_routed(rail(address, FRONT "\\n10.1.0.0/21 dev gpu0rdma0 table 101", RULES, NULL),
		      TRI_YES);
	/* The table is there, but nothing leads to it. */
	assert_routed(rail(address, FRONT "\\ndefault via 10.1.0.1 dev gpu0rdma0 table 101",
			   MAIN_RULES, NULL),
		      TRI_NO);
	/* The rule is there, but not the table: the packets leave by the front-end. */
	assert_routed(rail(address, FRONT, RULES, NULL), TRI_NO);
	/* A rule for another rail. */
	assert_routed(rail(address, FRONT "\\ndefault via 10.1.0.1 dev gpu0rdma0 table 101",
			   "100: from 10.1.0.6 lookup 101\\n32766: from all lookup main", NULL),
		      TRI_NO);
	/* The network of the rail in the main table, without rules. */
	assert_routed(rail(address, FRONT "\\n10.1.0.0/21 dev gpu0rdma0", NULL, NULL), TRI_YES);
	/* Unusable, or of another link. */
	assert_routed(
		rail(address, FRONT "\\nunreachable default dev gpu0rdma0 table 101", RULES, NULL),
		TRI_NO);
	assert_routed(
		rail(address, FRONT "\\ndefault via 10.1.0.1 dev gpu1rdma0 table 101", RULES, NULL),
		TRI_NO);
	/* The cheaper, or the more specific route goes elsewhere. */
	assert_routed(rail(address,
			   "10.0.0.0/8 dev eth9 metric 5\\n10.0.0.0/8 dev gpu0rdma0 metric 10",
			   NULL, NULL),
		      TRI_NO);
	assert_routed(rail(address,
			   "10.0.0.0/9 dev eth9\\n10.128.0.0/9 dev eth9\\n"
			   "10.0.0.0/8 dev gpu0rdma0",
			   NULL, NULL),
		      TRI_NO);
	inv = rail(address, FRONT, RULES, NULL);
	assert_string_equal(inv->warnings[0].object, "nic-0000-03-00-0");
	assert_non_null(
		strstr(warning_text(inv, "rail-unrouted"), "from 10.1.0.5/32 on gpu0rdma0"));
	assert_non_null(strstr(warning_text(inv, "rail-unrouted"),
			       "ip route add default via <gateway> dev gpu0rdma0 table <n>"));
	inventory_unref(inv);
}

/* Rules that cannot be told may lead packets to the rail all the same. */
static void test_partial_rules(void **state)
{
	static const char address[] = "gpu0rdma0 10.1.0.5/32 scope global";

	(void)state;
	assert_routed(rail(address, FRONT, RULES "\\npartial", NULL), TRI_UNKNOWN);
	assert_routed(rail(address, FRONT, RULES "\\n-6 partial", NULL), TRI_NO);
	assert_routed(rail("gpu0rdma0 fd00:1::5/128 scope global", FRONT, "-6 partial", NULL),
		      TRI_UNKNOWN);
	assert_routed(rail(address, "10.1.0.0/21 dev gpu0rdma0", "partial", NULL), TRI_YES);
}

/* The child holds the address, IPv6. */
static void test_child_address(void **state)
{
	static const char address[] = "gpu0rdma0 fe80::1/64 scope link\\n"
				      "gpu0ipvlan0 fd00:1::5/128 scope global";
	struct inventory *inv;

	(void)state;
	assert_routed(rail(address,
			   "default via fe80::9 dev eth9\\n"
			   "default via fe80::1 dev gpu0ipvlan0 table 201",
			   "-6 0: from all lookup local\\n-6 100: from fd00:1::5 lookup 201\\n"
			   "-6 32766: from all lookup main",
			   NULL),
		      TRI_YES);
	inv = rail(address, "default via fe80::9 dev eth9", NULL, NULL);
	assert_non_null(strstr(warning_text(inv, "rail-unrouted"), "ip -6 route add default via "
								   "<gateway> dev gpu0ipvlan0"));
	assert_routed(inv, TRI_NO);
	/* Of the family of the address only. */
	assert_routed(rail(address, "10.1.0.0/16 dev gpu0ipvlan0", NULL, NULL), TRI_NO);
}

/* Others on the same link may be all of the rail, unless the platform says that they are not. */
static void test_link_with_others(void **state)
{
	static const char address[] = "gpu0rdma0 10.1.0.5/24 scope global";
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: mine\n"
						"  match: {gpus: {ids: '10de:2330', count: 1}}\n"
						"  routedRails: true\n");
	const struct topo_options options = { .platforms = own };

	(void)state;
	assert_routed(rail(address, FRONT "\\n10.1.0.0/24 dev gpu0rdma0", NULL, NULL), TRI_UNKNOWN);
	assert_routed(rail(address, FRONT "\\n10.1.0.0/24 dev gpu0rdma0", NULL, &options), TRI_NO);
	assert_routed(rail(address,
			   FRONT "\\n10.1.0.0/24 dev gpu0rdma0\\n"
				 "10.1.0.0/16 via 10.1.0.1 dev gpu0rdma0",
			   NULL, &options),
		      TRI_YES);
	/* Another rail in the same subnet: the packets leave there. */
	assert_routed(rail(address,
			   FRONT "\\n10.1.0.0/24 dev gpu1rdma0 metric 1\\n"
				 "10.1.0.0/24 dev gpu0rdma0 metric 2",
			   NULL, NULL),
		      TRI_NO);
	/* A part of what is on the link is no more than that. */
	assert_routed(rail(address,
			   FRONT "\\n10.1.0.0/24 dev gpu0rdma0\\n10.1.0.128/25 dev "
				 "gpu0rdma0",
			   NULL, &options),
		      TRI_NO);
	platforms_free(own);
}

static void test_unknown(void **state)
{
	(void)state;
	/* No IP facts; no address; a link-local one; a link that is no rail's. */
	assert_routed(rail(NULL, FRONT, NULL, NULL), TRI_UNKNOWN);
	assert_routed(rail("gpu0rdma0 10.1.0.5/32 scope global", NULL, NULL, NULL), TRI_UNKNOWN);
	assert_routed(rail("", FRONT, NULL, NULL), TRI_UNKNOWN);
	assert_routed(rail("gpu0rdma0 fe80::1/64 scope link", FRONT, NULL, NULL), TRI_UNKNOWN);
	assert_routed(rail("eth9 10.1.0.5/32 scope global", FRONT, NULL, NULL), TRI_UNKNOWN);
	/* The node's own NIC is asked for nothing. */
	assert_routed(
		rail("gpu0rdma0 10.1.0.5/32 scope global", "default dev gpu0rdma0", NULL, NULL),
		TRI_UNKNOWN);
}

/* One of two addresses is enough. */
static void test_two_addresses(void **state)
{
	(void)state;
	assert_routed(
		rail("gpu0rdma0 10.1.0.5/32 scope global\\ngpu0rdma0 10.2.0.5/32 scope global",
		     FRONT "\\n10.2.0.0/16 dev gpu0rdma0", NULL, NULL),
		TRI_YES);
}

static void test_prefixes(void **state)
{
	static const struct {
		const char *outer, *inner;
		bool contains;
	} cases[] = {
		{ "10.0.0.0/8", "10.1.2.3", true },    { "10.0.0.0/8", "11.1.2.3", false },
		{ "10.1.2.3", "10.0.0.0/8", false },   { "10.1.2.3", "10.1.2.3/32", true },
		{ "0.0.0.0/0", "10.1.2.3", true },     { "0.0.0.0/0", "::1", false },
		{ "10.1.0.0/21", "10.1.7.255", true }, { "10.1.0.0/21", "10.1.8.0", false },
		{ "fd00:1::/64", "fd00:1::5", true },  { "fd00:1::/63", "fd00:1:0:2::", false },
	};
	static const char *const bad[] = { "",	"10.0.0",    "10.0.0.0/33", "::/129",
					   "a", "10.0.0.0/", "10.0.0.0/-1" };
	struct ip_prefix p, q;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(ip_prefix_parse(cases[i].outer, &p));
		assert_true(ip_prefix_parse(cases[i].inner, &q));
		if (ip_prefix_contains(&p, &q) != cases[i].contains)
			fail_msg("%s in %s", cases[i].inner, cases[i].outer);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (ip_prefix_parse(bad[i], &p))
			fail_msg("\"%s\" was read", bad[i]);
	assert_true(ip_prefix_parse("10.1.2.3/21", &p));
	q = ip_prefix_first(&p);
	assert_memory_equal(q.bytes, "\x0a\x01\x00\x00", 4);
	assert_true(ip_prefix_is_host(&q) && !ip_prefix_is_host(&p));
	q = ip_prefix_last(&p);
	assert_memory_equal(q.bytes, "\x0a\x01\x07\xff", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_partial_rules), cmocka_unit_test(test_host_address),
		cmocka_unit_test(test_child_address), cmocka_unit_test(test_link_with_others),
		cmocka_unit_test(test_unknown),	      cmocka_unit_test(test_two_addresses),
		cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

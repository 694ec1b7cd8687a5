// SPDX-License-Identifier: Apache-2.0
/* Facts of NICs whose links are in pods. */
#include "test_topo_machine.h"

#include <errno.h>

#include "base/json.h"
#include "topo/facts.h"
#include "topo/output.h"

#define BOOT "6c1b1d2e-0c67-4a3c-9a7e-3f6a1f4d5b6c"
#define NIC "pci0000:00/0000:00:03.0"
#define SECOND "pci0000:00/0000:00:04.0"

struct hold {
	const char *bus_id; /* the only function that is held, "*": all; NULL: none */
	size_t asked;
};

static bool is_held(const char *bus_id, void *data)
{
	struct hold *hold = data;

	hold->asked++;
	return hold->bus_id && (streq(hold->bus_id, "*") || streq(hold->bus_id, bus_id));
}

struct parts {
	bool no_link, no_rdma, no_child, other_driver, gone, taken_name, port_down, representor;
	const char *link; /* its name; NULL: gpu0rdma0 */
	const char *child; /* its name; NULL: kid */
};

/* Two NICs; "parts" of the first are missing or others. */
static struct hw_machine *machine_of(struct parts parts)
{
	const char *link = parts.link ? parts.link : "gpu0rdma0";
	const char *child = parts.child ? parts.child : "kid";
	struct hw_machine *machine;
	struct buf b = { 0 };

	if (!parts.gone) {
		add_pci(&b, NIC, 0x020000, 0x15b3, 0x1021, 0);
		buf_printf(&b, "sys/devices/" NIC "/driver -> ../../../bus/pci/drivers/%s\n",
			   parts.other_driver ? "vfio-pci" : "mlx5_core");
	}
	if (!parts.gone && !parts.no_rdma) {
		buf_str(&b,
			"sys/class/infiniband/mlx5_0 -> ../../devices/" NIC "/infiniband/mlx5_0\n"
			"sys/devices/" NIC "/infiniband/mlx5_0/fw_ver = 28.40\n"
			"sys/devices/" NIC "/infiniband/mlx5_0/sys_image_guid = 0:0:0:1\n"
			"sys/devices/" NIC "/infiniband/mlx5_0/ports/1/link_layer = Ethernet\n"
			"sys/class/infiniband_verbs/uverbs7/ibdev = mlx5_0\n"
			"sys/class/infiniband_verbs/uverbs7/dev = 231:199\n");
		/* In a pod its GIDs have no link here. */
		buf_printf(&b,
			   "sys/devices/" NIC "/infiniband/mlx5_0/ports/1/state = %s\n"
			   "sys/devices/" NIC "/infiniband/mlx5_0/ports/1/phys_state = %s\n"
			   "sys/devices/" NIC "/infiniband/mlx5_0/ports/1/rate = %s\n",
			   parts.port_down ? "1: DOWN" : "4: ACTIVE",
			   parts.port_down ? "3: Disabled" : "5: LinkUp",
			   parts.port_down ? "40 Gb/sec (4X QDR)" : "400 Gb/sec (4X NDR)");
		if (!parts.no_link)
			buf_printf(&b,
				   "sys/devices/" NIC "/infiniband/mlx5_0/ports/1/gids/3 = "
				   "0000:0000:0000:0000:0000:ffff:0a01:0005\n"
				   "sys/devices/" NIC
				   "/infiniband/mlx5_0/ports/1/gid_attrs/types/3 = RoCE v2\n"
				   "sys/devices/" NIC
				   "/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3 = %s\n",
				   link);
	}
	if (!parts.gone && !parts.no_link) {
		add_netdev(&b, NIC, link);
		buf_printf(&b, "sys/devices/" NIC "/net/%s/operstate = up\n", link);
		buf_printf(&b, "sys/devices/" NIC "/net/%s/ifindex = 7\n", link);
	}
	if (parts.representor) {
		add_netdev(&b, NIC, "rep");
		buf_str(&b, "sys/devices/" NIC "/net/rep/phys_port_name = pf0vf0\n");
	}
	if (parts.taken_name)
		buf_str(&b, "sys/class/net/gpu0rdma0 -> ../../devices/virtual/net/gpu0rdma0\n"
			    "sys/devices/virtual/net/gpu0rdma0/mtu = 1400\n");
	if (!parts.no_child && !parts.no_link)
		buf_printf(&b,
			   "sys/class/net/%s -> ../../devices/virtual/net/%s\n"
			   "sys/devices/virtual/net/%s/uevent = DEVTYPE=ipvlan\n"
			   "sys/devices/virtual/net/%s/ifindex = 9\n"
			   "sys/devices/virtual/net/%s/lower_%s -> x\n",
			   child, child, child, child, child, link);
	add_nic(&b, SECOND, 0x1021, 0, "mlx5_1", "gpu1rdma0", NULL);
	buf_str(&b, "twinrail/routes = default dev uplink\n");
	machine = read_machine(b.data);
	buf_done(&b);
	return machine;
}

/* The topology as text, through the facts or without them ("facts" NULL). */
static char *topology(struct facts *facts, struct parts parts, struct hold *hold)
{
	struct hw_machine *machine = machine_of(parts);
	const struct hw_machine *view =
		facts ? facts_apply(facts, machine, is_held, hold) : machine;
	struct inventory *inv = topo_build(view, NULL);
	_cleanup_json_ json_t *json = topo_to_json(inv);

	inventory_unref(inv);
	hw_free(machine);
	return json_text(json);
}

/* With everything seen before, "parts" look like everything. */
static void assert_frozen(struct parts parts, bool expected)
{
	struct hold all = { .bus_id = "0000:00:03.0" };
	struct facts *facts = facts_new(BOOT);
	_cleanup_free_ char *full = topology(facts, (struct parts){ 0 }, &all);
	_cleanup_free_ char *truth = topology(NULL, parts, NULL);
	_cleanup_free_ char *seen = topology(facts, parts, &all);
	_cleanup_free_ char *again = topology(facts, parts, &all);

	assert_string_equal(seen, expected ? full : truth);
	assert_string_equal(again, seen);
	assert_string_not_equal(full, truth);
	facts_free(facts);
}

static void test_hidden(void **state)
{
	(void)state;
	assert_frozen((struct parts){ .no_link = true }, true);
	assert_frozen((struct parts){ .no_link = true, .no_rdma = true }, true);
	assert_frozen((struct parts){ .no_child = true, .no_rdma = true }, true);
	/* Only what was made on it is in a pod. */
	assert_frozen((struct parts){ .no_child = true }, true);
}

static void test_truth(void **state)
{
	(void)state;
	assert_frozen((struct parts){ .no_link = true, .no_rdma = true, .other_driver = true },
		      false);
	assert_frozen((struct parts){ .gone = true }, false);
	/* Its link is here, so it is in no pod: the driver was unloaded. */
	assert_frozen((struct parts){ .no_rdma = true }, false);
	/* A new name is no hidden link. */
	assert_frozen((struct parts){ .child = "other" }, false);
	assert_frozen((struct parts){ .link = "eth5" }, false);
}

static void test_not_held(void **state)
{
	static const struct parts hidden = { .no_link = true, .no_rdma = true };
	struct hold hold = { .bus_id = "0000:00:04.0" };
	struct facts *facts = facts_new(BOOT);
	_cleanup_free_ char *truth = topology(NULL, hidden, NULL), *seen = NULL, *late = NULL;

	(void)state;
	free(topology(facts, (struct parts){ 0 }, &hold));
	assert_int_equal(hold.asked, 0);
	seen = topology(facts, hidden, &hold);
	assert_int_equal(hold.asked, 1);
	assert_int_equal(facts_hidden(facts), 0);
	assert_string_equal(seen, truth);
	/* It is forgotten: a claim that comes later holds what is there. */
	hold.bus_id = "*";
	late = topology(facts, hidden, &hold);
	assert_string_equal(late, truth);
	facts_free(facts);
}

/* The name is another device's now: that one stays what it is. */
static void test_taken_name(void **state)
{
	struct parts parts = { .no_link = true, .taken_name = true };
	struct hold hold = { .bus_id = "*" };
	struct facts *facts = facts_new(BOOT);
	const struct hw_machine *view;
	struct hw_machine *machine;

	(void)state;
	free(topology(facts, (struct parts){ 0 }, &hold));
	machine = machine_of(parts);
	view = facts_apply(facts, machine, is_held, &hold);
	assert_int_equal(facts_hidden(facts), 1);
	assert_null(hw_find_netdev(view, "gpu0rdma0")->bus_id);
	assert_int_equal(view->n_netdevs, machine->n_netdevs + 1); /* the child */
	hw_free(machine);
	facts_free(facts);
}

/* What is seen of a held function counts: a port that is down, representors that went. */
static void test_what_is_seen(void **state)
{
	static const struct parts down = { .no_child = true, .port_down = true };
	struct hold hold = { .bus_id = "*" };
	struct facts *facts = facts_new(BOOT);
	struct hw_machine *machine;
	const struct hw_machine *view;

	(void)state;
	free(topology(facts, (struct parts){ .representor = true }, &hold));
	free(topology(facts, (struct parts){ 0 }, &hold));
	assert_int_equal(facts_hidden(facts), 0);
	machine = machine_of(down);
	view = facts_apply(facts, machine, is_held, &hold);
	assert_int_equal(facts_hidden(facts), 1);
	assert_non_null(hw_find_netdev(view, "kid"));
	assert_string_equal(view->rdma[0].name, "mlx5_0");
	assert_string_equal(view->rdma[0].ports[0].state, "DOWN");
	hw_free(machine);
	facts_free(facts);
}

/* The port went down in a pod; the RDMA device is seen here. */
static void test_down_in_pod(void **state)
{
	static const struct parts down = { .no_link = true, .port_down = true };
	struct hold hold = { .bus_id = "*" };
	struct facts *facts = facts_new(BOOT);
	_cleanup_free_ char *full = topology(facts, (struct parts){ 0 }, &hold), *back = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct hw_machine *machine = machine_of(down);
		const struct hw_rdma_port *port =
			&facts_apply(facts, machine, is_held, &hold)->rdma[0].ports[0];

		assert_string_equal(port->state, "DOWN");
		assert_string_equal(port->phys_state, "Disabled");
		assert_int_equal(port->rate_gbps, 40);
		assert_int_equal(port->n_gids, 1);
		assert_string_equal(port->gids[0].netdev, "gpu0rdma0");
		hw_free(machine);
	}
	back = topology(facts, (struct parts){ .no_link = true }, &hold);
	assert_string_equal(back, full);
	facts_free(facts);
}

/* One that never had a link is in a pod when it is missing. */
static void test_rdma_without_link(void **state)
{
	static const struct parts bare = { .no_link = true };
	static const struct parts hidden = { .no_link = true, .no_rdma = true };
	struct hold hold = { .bus_id = "*" };
	struct facts *facts = facts_new(BOOT);
	_cleanup_free_ char *full = topology(facts, bare, &hold);
	_cleanup_free_ char *seen = topology(facts, hidden, &hold);

	(void)state;
	assert_string_equal(seen, full);
	facts_free(facts);
}

/* A claim that is over: what is there counts again, also with another name. */
static void test_back(void **state)
{
	static const struct parts renamed = { .link = "gpu4rdma0" };
	struct hold hold = { .bus_id = "*" };
	struct facts *facts = facts_new(BOOT);
	_cleanup_free_ char *full = topology(facts, (struct parts){ 0 }, &hold);
	_cleanup_free_ char *hidden = topology(facts, (struct parts){ .no_link = true }, &hold);
	_cleanup_free_ char *truth = topology(NULL, renamed, NULL), *back = NULL, *then = NULL;

	(void)state;
	assert_string_equal(hidden, full);
	back = topology(facts, renamed, &hold);
	assert_string_equal(back, truth);
	then = topology(facts, (struct parts){ .no_link = true }, &hold);
	assert_string_equal(then, truth); /* as it was seen last */
	facts_free(facts);
}

static struct facts *reload(struct facts *facts, const char *boot_id, int expected)
{
	_cleanup_free_ char *text = facts_to_text(facts);
	_cleanup_json_ json_t *object = NULL;
	struct facts *other = facts_new(boot_id);
	struct err err = { 0 };

	assert_int_equal(json_parse(text, strlen(text), &object, &err), 0);
	assert_int_equal(facts_from_json(other, object, &err), expected);
	return other;
}

static void test_restart(void **state)
{
	static const struct parts hidden = { .no_link = true, .no_rdma = true };
	struct hold hold = { .bus_id = "*" };
	struct facts *facts = facts_new(BOOT), *second, *other;
	_cleanup_free_ char *full = topology(facts, (struct parts){ 0 }, &hold);
	_cleanup_free_ char *truth = topology(NULL, hidden, NULL), *text = NULL, *same = NULL;
	_cleanup_free_ char *seen = NULL, *boot = NULL;

	(void)state;
	assert_true(facts_changed(facts));
	text = facts_to_text(facts);
	assert_false(facts_changed(facts));
	assert_null(strstr(text, "5e:00:53")); /* no MAC address */
	free(topology(facts, (struct parts){ 0 }, &hold));
	assert_false(facts_changed(facts));
	free(topology(facts, hidden, &hold));
	assert_false(facts_changed(facts));

	second = reload(facts, BOOT, 0);
	seen = topology(second, hidden, &hold);
	assert_string_equal(seen, full);
	assert_int_equal(facts_hidden(second), 1);
	assert_false(facts_changed(second));
	same = facts_to_text(second);
	assert_string_equal(same, text);
	free(topology(second, (struct parts){ .gone = true }, &hold));
	assert_true(facts_changed(second));

	other = reload(facts, "00000000-0c67-4a3c-9a7e-3f6a1f4d5b6c", 0);
	boot = topology(other, hidden, &hold);
	assert_string_equal(boot, truth);
	facts_free(facts);
	facts_free(second);
	facts_free(other);
	assert_null(facts_free(NULL));
}

static void test_malformed(void **state)
{
	static const char *const texts[] = {
		"{}",
		"{\"version\":2,\"bootID\":\"" BOOT "\",\"functions\":{}}",
		"{\"version\":1,\"functions\":{}}",
		"{\"version\":1,\"bootID\":\"" BOOT "\",\"functions\":[]}",
		"{\"version\":1,\"bootID\":\"" BOOT "\",\"functions\":{\"x\":{}}}",
		"{\"version\":1,\"bootID\":\"" BOOT "\",\"functions\":{\"0000:00:03.0\":[]}}",
		"{\"version\":1,\"bootID\":\"" BOOT
		"\",\"functions\":{\"0000:00:02.0\":{},\"0000:00:03.0\":{\"netdevs\":[{}]}}}",
		"{\"version\":1,\"bootID\":\"" BOOT
		"\",\"functions\":{\"0000:00:03.0\":{\"rdma\":[{\"name\":\"a\"},7]}}}",
	};
	struct facts *facts = facts_new(BOOT);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_json_ json_t *object = NULL;
		struct err err = { 0 };

		assert_int_equal(json_parse(texts[i], strlen(texts[i]), &object, &err), 0);
		assert_int_equal(facts_from_json(facts, object, &err), -EINVAL);
		assert_true(err.msg[0] != '\0');
		assert_false(facts_changed(facts));
	}
	facts_free(facts);
}

/* Every member survives. */
static void test_round_trip(void **state)
{
	struct hw_netdev netdev = { .name = (char[]){ "a" },
				    .bus_id = (char[]){ "0000:00:03.0" },
				    .sf_parent = (char[]){ "0000:00:04.0" },
				    .oper_state = (char[]){ "up" },
				    .phys_switch_id = (char[]){ "01" },
				    .phys_port_name = (char[]){ "p0" },
				    .kind = (char[]){ "vlan" },
				    .master = (char[]){ "br0" },
				    .type = 32,
				    .ifindex = 5,
				    .mtu = 9000,
				    .speed_mbps = 400000,
				    .carrier = 0,
				    .dev_port = 1 };
	struct hw_gid gid = { 3, (char[]){ "fe80::1" }, (char[]){ "RoCE v2" }, (char[]){ "a" } };
	struct hw_rdma_port port = { .port = 2,
				     .state = (char[]){ "ACTIVE" },
				     .phys_state = (char[]){ "LinkUp" },
				     .link_layer = (char[]){ "InfiniBand" },
				     .rate_gbps = 800,
				     .lid = 17,
				     .sm_lid = 1,
				     .active_mtu = 4096,
				     .gids = &gid,
				     .n_gids = 1 };
	struct hw_rdma rdma = { .name = (char[]){ "mlx5_0" },
				.bus_id = (char[]){ "0000:00:03.0" },
				.sf_parent = (char[]){ "0000:00:04.0" },
				.node_guid = (char[]){ "1" },
				.sys_image_guid = (char[]){ "2" },
				.fw_ver = (char[]){ "3" },
				.board_id = (char[]){ "4" },
				.hca_type = (char[]){ "MT4131" },
				.data_direct = (char[]){ "0000:00:05.0" },
				.uverbs = (char[]){ "uverbs0" },
				.uverbs_major = 231,
				.uverbs_minor = 0,
				.ports = &port,
				.n_ports = 1 };
	struct hw_netdev netdev2;
	struct hw_rdma rdma2;
	_cleanup_json_ json_t *a = NULL, *b = NULL, *c = NULL, *d = NULL;

	(void)state;
	strlist_add(&netdev.lower, "x");
	strlist_add(&netdev.lower, "y");
	a = facts_netdev_to_json(&netdev);
	assert_int_equal(json_object_size(a), 15);
	assert_true(facts_netdev_from_json(a, &netdev2));
	b = facts_netdev_to_json(&netdev2);
	assert_true(json_equal(a, b));
	c = facts_rdma_to_json(&rdma);
	assert_int_equal(json_object_size(c), 13);
	assert_int_equal(json_object_size(json_array_get(json_object_get(c, "ports"), 0)), 9);
	assert_true(facts_rdma_from_json(c, &rdma2));
	d = facts_rdma_to_json(&rdma2);
	assert_true(json_equal(c, d));
	hw_netdev_done(&netdev2);
	hw_rdma_done(&rdma2);
	strlist_done(&netdev.lower);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden),	     cmocka_unit_test(test_truth),
		cmocka_unit_test(test_not_held),     cmocka_unit_test(test_taken_name),
		cmocka_unit_test(test_what_is_seen), cmocka_unit_test(test_back),
		cmocka_unit_test(test_down_in_pod),  cmocka_unit_test(test_rdma_without_link),
		cmocka_unit_test(test_restart),	     cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

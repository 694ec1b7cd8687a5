// SPDX-License-Identifier: Apache-2.0
/*
 * What made other drivers publish something wrong: one test each, from the files of a machine to
 * the devices of its slices.
 */
#include "fuzz/topo_check.h"
#include "test_topo_machine.h"

#define STANDARD "resource.kubernetes.io/"

/* Everything that is published, by name; the caller drops the reference. */
static json_t *published(const struct inventory *inv)
{
	struct publish_options options = { .driver = "twinrail.dev",
					   .node_name = "node1",
					   .kinds = PUBLISH_CARD | PUBLISH_NIC | PUBLISH_GPU,
					   .mirror = true };
	_cleanup_json_ json_t *specs = publish_specs(inv, &options);
	json_t *all = json_new_object();
	char *wrong = check_inventory(inv, CHECK_ALL);

	if (wrong)
		fail_msg("%s", wrong);
	for (size_t i = 0; i < json_array_size(specs); i++) {
		const json_t *devices = json_object_get(json_array_get(specs, i), "devices");

		for (size_t k = 0; k < json_array_size(devices); k++) {
			json_t *device = json_array_get(devices, k);

			json_set(all, json_path_string(device, "name"), json_incref(device));
		}
	}
	return all;
}

/* The value of an attribute whatever its type, or NULL. */
static const json_t *attribute(const json_t *all, const char *device, const char *key)
{
	const json_t *typed =
		json_object_get(json_object_get(json_object_get(all, device), "attributes"), key);
	const char *type;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)typed, type, value)
		return value;
	return NULL;
}

static void assert_attribute(const json_t *all, const char *device, const char *key,
			     const char *expected)
{
	const json_t *value = attribute(all, device, key);

	assert_string_or_null(value ? json_string_value(value) : NULL, expected);
}

static void assert_published(const json_t *all, const char *device, bool expected)
{
	if ((json_object_get(all, device) != NULL) != expected)
		fail_msg("%s is %spublished", device, expected ? "not " : "");
}

static void assert_warning(const struct inventory *inv, const char *code, const char *object,
			   const char *text)
{
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, code) && streq(inv->warnings[i].object, object) &&
		    strstr(inv->warnings[i].message, text))
			return;
	fail_msg("no warning %s of %s that says: %s", code, object, text);
}

/* The default route is on a link of its own, so that no NIC is kept back. */
static void add_uplink(struct buf *b)
{
	buf_str(b, "sys/class/net/up0 -> ../../devices/virtual/net/up0\n"
		   "sys/devices/virtual/net/up0/mtu = 1500\n"
		   "twinrail/routes = default via 10.0.0.1 dev up0\n");
}

/* Two groups of a GPU and a NIC with these links; the GPUs have no driver. */
static void add_groups(struct buf *b, const char *first, const char *second)
{
	for (unsigned int n = 0; n < 2; n++) {
		char *path;

		add_group(b, n);
		path = group_path(n, 1, "04:00.0");
		add_silent_gpu(b, path, 0);
		free(path);
		free(add_group_nic(b, n, "03:00.0", 0x1021, n ? second : first, NULL));
	}
}

static void add_machine(struct buf *b, const char *first, const char *second)
{
	add_groups(b, first, second);
	add_gpu_driver(b, "0000:04:00.0", "Device Minor: 0");
	add_gpu_driver(b, "0001:04:00.0", "Device Minor: 1");
}

/* "": two devices whose root is unknown would match each other. */
static void test_unknown_root_is_absent_not_empty(void **state)
{
	static const char vmbus[] = "LNXSYSTM:00/LNXSYBUS:00/PNP0A03:00/VMBUS:00/47505500-0001/"
				    "pci0101:00/0101:00:00.0";
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_nic(&b, vmbus, 0x101e, 0, "mlx5_0", "eth1", NULL);
	buf_str(&b, "sys/bus/pci/devices/0102:00:00.0 -> ../../../nowhere\n");
	inv = build_machine(&b);
	all = published(inv);
	assert_published(all, "nic-0101-00-00-0", true);
	assert_null(attribute(all, "nic-0101-00-00-0", STANDARD "pcieRoot"));
	assert_null(attribute(all, "nic-0101-00-00-0", "functionPcieRoot"));
	assert_attribute(all, "nic-0101-00-00-0", STANDARD "pciBusID", "0101:00:00.0");
	assert_true(has_warning(inv, "pcie-root-unknown"));
	json_decref(all);
	inventory_unref(inv);
}

/* -1 is what the kernel says for "not known"; node 0 of a machine with one node is known. */
static void test_numa_node(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_nic(&b, "pci0000:00/0000:01:00.0", 0x1021, -1, "mlx5_0", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:02:00.0", 0x1021, 0, "mlx5_1", NULL, NULL);
	buf_str(&b, "sys/devices/system/node/node0/distance = 10\n");
	inv = build_machine(&b);
	all = published(inv);
	assert_published(all, "nic-0000-01-00-0", true);
	assert_null(attribute(all, "nic-0000-01-00-0", STANDARD "numaNode"));
	assert_int_equal(
		json_integer_value(attribute(all, "nic-0000-02-00-0", STANDARD "numaNode")), 0);
	json_decref(all);
	inventory_unref(inv);
}

/* A directory lists its entries in any order; that of RDMA devices' numbers means nothing. */
static void test_order_of_directories(void **state)
{
	struct buf b = { 0 }, reversed = { 0 };
	struct strlist lines = { 0 };
	struct inventory *a, *c;
	json_t *x, *y;

	(void)state;
	add_uplink(&b);
	add_machine(&b, "eth1", "eth2");
	strlist_split(&lines, b.data, '\n');
	for (size_t i = lines.n; i > 0; i--)
		buf_printf(&reversed, "%s\n", lines.items[i - 1]);
	a = build_machine(&b);
	c = build_machine(&reversed);
	x = topo_to_json(a);
	y = topo_to_json(c);
	assert_true(json_equal(x, y));
	json_decref(x);
	json_decref(y);
	x = published(a);
	y = published(c);
	assert_true(json_equal(x, y));
	json_decref(x);
	json_decref(y);
	strlist_done(&lines);
	inventory_unref(a);
	inventory_unref(c);
}

/* A function that fell off the bus, and a PF whose list of VFs leads nowhere. */
static void test_one_bad_device_stops_nothing(void **state)
{
	static const char bad[] = "pci0000:60/0000:61:00.0";
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_machine(&b, "eth1", "eth2");
	buf_printf(&b,
		   "sys/bus/pci/devices/0000:61:00.0 -> ../../../devices/%s\n"
		   "sys/devices/%s/class ! EIO\nsys/devices/%s/vendor ! EIO\n"
		   "sys/devices/%s/device ! EIO\nsys/devices/%s/config ! EIO\n",
		   bad, bad, bad, bad, bad);
	buf_str(&b, "sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/"
		    "virtfn0 -> ../0000:03:00.7\n"
		    "sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/"
		    "sriov_numvfs = 1\n");
	inv = build_machine(&b);
	all = published(inv);
	assert_int_equal(json_object_size(all), 4);
	assert_true(has_warning(inv, "function-unreadable"));
	json_decref(all);
	inventory_unref(inv);
}

/* Links of representors and subfunctions are on the PF's own function, too. */
static void test_representor_does_not_replace_the_uplink(void **state)
{
	static const char pf[] = "pci0000:00/0000:01:00.0";
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_nic(&b, pf, 0x1021, 0, "mlx5_0", "zz0", NULL);
	buf_printf(&b, "sys/devices/%s/net/zz0/phys_port_name = p0\n", pf);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *name = xasprintf("aa%d", i);

		add_netdev(&b, pf, name);
		buf_printf(&b, "sys/devices/%s/net/%s/phys_port_name = pf0vf%d\n", pf, name, i);
		buf_printf(&b, "sys/devices/%s/net/%s/operstate = down\n", pf, name);
	}
	buf_printf(&b, "sys/class/net/sf0 -> ../../devices/%s/mlx5_core.sf.4/net/sf0\n", pf);
	inv = build_machine(&b);
	all = published(inv);
	assert_int_equal(json_object_size(all), 1);
	assert_attribute(all, "nic-0000-01-00-0", "dra.net/ifName", "zz0");
	assert_int_equal(json_integer_value(attribute(all, "nic-0000-01-00-0", "dra.net/mtu")),
			 1500);
	json_decref(all);
	inventory_unref(inv);
}

/* Names come from addresses: neither cut nor alike, also those of long domains. */
static void test_names_are_not_cut_and_do_not_collide(void **state)
{
	static const char *const paths[] = { "pci10000:00/10000:01:00.0", "pci0000:00/0000:01:00.0",
					     "pcifffffff0:00/fffffff0:01:00.0",
					     "pcifffffff1:00/fffffff1:01:00.0" };
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_free_ char *rdma = xasprintf("mlx5_%zu", i);

		add_nic(&b, paths[i], 0x1021, 0, rdma, NULL, NULL);
	}
	inv = build_machine(&b);
	all = published(inv);
	assert_int_equal(json_object_size(all), 4);
	assert_published(all, "nic-fffffff1-01-00-0", true);
	/* The standard attributes are for domains of four digits. */
	assert_null(attribute(all, "nic-10000-01-00-0", STANDARD "pciBusID"));
	json_decref(all);
	inventory_unref(inv);
}

/* What is no semantic version has no attribute of that type: the slice would be refused. */
static void test_driver_versions(void **state)
{
	static const struct {
		const char *text, *semver;
	} cases[] = {
		{ "580.65.06", NULL }, { "580.95.5", "580.95.5" },
		{ "570.1", NULL },     { "6.10.5.1", NULL },
		{ "N/A", NULL },       { "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b = { 0 };
		struct inventory *inv;
		json_t *all;

		add_uplink(&b);
		add_gpu(&b, "pci0000:00/0000:01:00.0", 0);
		buf_printf(&b, "sys/module/nvidia/version = %s\n", cases[i].text);
		inv = build_machine(&b);
		all = published(inv);
		assert_attribute(all, "gpu-0000-01-00-0", "driverVersion",
				 *cases[i].text ? cases[i].text : NULL);
		assert_attribute(all, "gpu-0000-01-00-0", "driverSemver", cases[i].semver);
		json_decref(all);
		inventory_unref(inv);
	}
}

/* Texts that stand for "no UUID yet", and a name that is longer than a value may be. */
static void test_placeholders_and_long_values(void **state)
{
	static const char *const uuids[] = { "GPU-????????"
					     "-????"
					     "-????"
					     "-????"
					     "-????????????",
					     "N/A", "Unknown Error", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(uuids); i++) {
		struct buf b = { 0 };
		struct inventory *inv;
		json_t *all;

		add_uplink(&b);
		add_groups(&b, "eth1", "eth2");
		add_gpu_driver(&b, "0001:04:00.0", "Device Minor: 1");
		buf_printf(&b,
			   "proc/driver/nvidia/gpus/0000:04:00.0/information = Model: %0*d\\n"
			   "GPU UUID: %s\\nDevice Minor: 0\n",
			   65, 0, uuids[i]);
		inv = build_machine(&b);
		all = published(inv);
		assert_int_equal(json_object_size(all), 4);
		assert_null(attribute(all, "gpu-0000-04-00-0", "uuid"));
		assert_null(attribute(all, "gpu-0000-04-00-0", "model"));
		assert_int_equal(json_integer_value(attribute(all, "gpu-0000-04-00-0", "minor")),
				 0);
		json_decref(all);
		inventory_unref(inv);
	}
}

/* A name says nothing about RDMA, and numbers of ids are published, not a data base's texts. */
static void test_rdma_is_not_a_name(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_nic(&b, "pci0000:00/0000:01:00.0", 0x1021, 0, "mlx5_7", "eth7", NULL);
	add_pci(&b, "pci0000:00/0000:02:00.0", 0x020000, 0x15b3, 0x1021, 0);
	add_netdev(&b, "pci0000:00/0000:02:00.0", "rdma0");
	inv = build_machine(&b);
	all = published(inv);
	assert_published(all, "nic-0000-02-00-0", false);
	assert_true(json_is_true(attribute(all, "nic-0000-01-00-0", "dra.net/rdma")));
	assert_attribute(all, "nic-0000-01-00-0", "dra.net/rdmaDevice", "mlx5_7");
	assert_attribute(all, "nic-0000-01-00-0", "vendor", "15b3");
	assert_attribute(all, "nic-0000-01-00-0", "deviceID", "1021");
	json_decref(all);
	inventory_unref(inv);
}

/* The MAC of IPoIB holds the GUID of the port, which need not be that of the node. */
static void test_ib_port_guid_differs_from_node_guid(void **state)
{
	static const char nic[] = "pci0000:00/0000:01:00.0";
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_nic(&b, nic, 0x1021, 0, "ibp1s0", "ib0", "0000:5e03:0000:0001");
	buf_printf(&b,
		   "sys/devices/%s/infiniband/ibp1s0/node_guid = 0000:5e03:0000:0001\n"
		   "sys/devices/%s/net/ib0/type = 32\n"
		   "sys/devices/%s/net/ib0/address = 00:00:10:49:fe:80:00:00:00:00:00:00:00:00:5e:"
		   "03:00:00:00:02\n"
		   "sys/devices/%s/infiniband/ibp1s0/ports/1/link_layer = InfiniBand\n",
		   nic, nic, nic, nic);
	inv = build_machine(&b);
	all = published(inv);
	assert_attribute(all, "nic-0000-01-00-0", "dra.net/ifName", "ib0");
	assert_true(json_is_true(attribute(all, "nic-0000-01-00-0", "dra.net/rdma")));
	assert_attribute(all, "nic-0000-01-00-0", "linkLayer", "InfiniBand");
	json_decref(all);
	inventory_unref(inv);
}

/* Functions without a link (EFA, InfiniBand in virtual machines), and VFs without a PF. */
static void test_functions_without_link_or_pf(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_pci(&b, "pci0000:00/0000:01:00.0", 0x020000, 0x1d0f, 0xefa2, 0);
	buf_str(&b,
		"sys/class/infiniband/rdmap1s0 -> "
		"../../devices/pci0000:00/0000:01:00.0/infiniband/rdmap1s0\n"
		"sys/devices/pci0000:00/0000:01:00.0/infiniband/rdmap1s0/node_type = 8: unknown\n"
		"sys/class/infiniband_verbs/uverbs0/ibdev = rdmap1s0\n"
		"sys/class/infiniband_verbs/uverbs0/dev = 231:192\n");
	add_nic(&b, "pci0000:00/0000:02:00.0", 0x101e, 0, "mlx5_0", NULL, NULL);
	inv = build_machine(&b);
	all = published(inv);
	assert_published(all, "nic-0000-01-00-0", true);
	assert_published(all, "nic-0000-02-00-0", true);
	assert_attribute(all, "nic-0000-01-00-0", "dra.net/ifName", "");
	assert_null(attribute(all, "nic-0000-01-00-0", "pfBusID"));
	assert_true(json_is_true(attribute(all, "nic-0000-02-00-0", "isVF")));
	json_decref(all);
	inventory_unref(inv);
}

/* What runs a virtual machine or has no driver at all would make its pod wait for ever. */
static void test_functions_that_cannot_be_used(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	add_machine(&b, "eth1", "eth2");
	add_pci(&b, "pci0000:60/0000:61:00.0", 0x020000, 0x15b3, 0x1021, 0);
	buf_str(&b, "sys/devices/pci0000:60/0000:61:00.0/driver -> "
		    "../../../bus/pci/drivers/vfio-pci\n");
	add_pci(&b, "pci0000:60/0000:62:00.0", 0x020000, 0x15b3, 0x1021, 0);
	/* an RDMA device that nobody can open */
	add_unopened_nic(&b, "pci0000:60/0000:63:00.0", 0x1021, 0, "mlx5_9");
	/* GPUs: for a virtual machine, without a driver, with one that says nothing */
	add_pci(&b, "pci0000:60/0000:64:00.0", 0x030200, 0x10de, 0x2330, 0);
	buf_str(&b, "sys/devices/pci0000:60/0000:64:00.0/driver -> "
		    "../../../bus/pci/drivers/vfio-pci\n");
	add_pci(&b, "pci0000:60/0000:65:00.0", 0x030200, 0x10de, 0x2330, 0);
	add_silent_gpu(&b, "pci0000:60/0000:66:00.0", 0);
	/* one with a verbs device that cannot be given to a container */
	add_unopened_nic(&b, "pci0000:60/0000:67:00.0", 0x1021, 0, "mlx5_10");
	buf_str(&b, "sys/class/infiniband_verbs/uverbs10/ibdev = mlx5_10\n");
	inv = build_machine(&b);
	all = published(inv);
	assert_int_equal(json_object_size(all), 4);
	assert_published(all, "nic-0000-61-00-0", false);
	assert_published(all, "nic-0000-62-00-0", false);
	assert_warning(inv, "nic-without-verbs", "nic-0000-63-00-0", "load ib_uverbs");
	assert_warning(inv, "gpu-without-driver", "gpu-0000-64-00-0", "bound to vfio-pci");
	assert_warning(inv, "gpu-without-driver", "gpu-0000-65-00-0", "it has no driver");
	assert_warning(inv, "gpu-without-driver", "gpu-0000-66-00-0", "is /proc/driver/nvidia");
	assert_warning(inv, "nic-without-verbs", "nic-0000-67-00-0", "number of uverbs10");
	json_decref(all);
	inventory_unref(inv);
}

/* Whoever has the default route stays with the node: every next hop, IPv6, what is below it. */
static void test_default_routes(void **state)
{
	static const struct {
		const char *routes;
		bool first, second; /* are published */
	} cases[] = {
		{ "default via 10.0.0.1 dev eth1", false, true },
		{ "default nexthop via 10.0.0.1 dev eth1 nexthop via 10.0.0.2 dev eth2", false,
		  false },
		{ "default via fe80::1 dev eth2 metric 1024", true, false },
		{ "default via 10.0.0.1 dev eth1 metric 10\\ndefault via 10.0.0.1 dev eth2 metric "
		  "20",
		  false, false },
		{ "default via 10.0.0.1 dev vlan7", false, true },
		{ "default via 10.0.0.1 dev bond0", true, false },
		{ "10.1.0.0/21 dev eth1\\ndefault via 10.0.0.1 dev up0", true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b = { 0 };
		struct inventory *inv;
		json_t *all;

		add_machine(&b, "eth1", "eth2");
		buf_str(&b, "sys/class/net/up0 -> ../../devices/virtual/net/up0\n"
			    "sys/class/net/vlan7 -> ../../devices/virtual/net/vlan7\n"
			    "sys/devices/virtual/net/vlan7/uevent = DEVTYPE=vlan\n"
			    "sys/devices/virtual/net/vlan7/lower_eth1 -> ../../../x\n"
			    "sys/class/net/bond0 -> ../../devices/virtual/net/bond0\n"
			    "sys/devices/virtual/net/bond0/uevent = DEVTYPE=bond\n"
			    "sys/devices/virtual/net/bond0/lower_eth2 -> ../../../x\n");
		buf_printf(&b, "twinrail/routes = %s\n", cases[i].routes);
		inv = build_machine(&b);
		all = published(inv);
		assert_published(all, "nic-0000-03-00-0", cases[i].first);
		assert_published(all, "nic-0001-03-00-0", cases[i].second);
		assert_int_equal(json_object_size(all), 2 + cases[i].first + cases[i].second);
		json_decref(all);
		inventory_unref(inv);
	}
}

/* The VF that a virtual machine's network card uses for speed is a slave of that card. */
static void test_slave_of_the_uplink(void **state)
{
	static const char path[] = "pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0/0000:03:00.0";
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_machine(&b, "enP1", "eth2");
	buf_str(&b, "sys/class/net/eth0 -> ../../devices/LNXSYSTM:00/VMBUS:00/net/eth0\n"
		    "twinrail/routes = default via 10.0.0.1 dev eth0\n");
	buf_printf(&b,
		   "sys/devices/%s/net/enP1/master -> "
		   "../../../../../../../LNXSYSTM:00/VMBUS:00/net/eth0\n",
		   path);
	inv = build_machine(&b);
	all = published(inv);
	assert_published(all, "nic-0000-03-00-0", false);
	assert_published(all, "nic-0001-03-00-0", true);
	json_decref(all);
	inventory_unref(inv);
}

/* Links are called after their card, GPUs after their place: NIC 0 need not be near GPU 0. */
static void test_crossed_names(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_uplink(&b);
	add_machine(&b, "gpu1rdma0", "gpu0rdma0");
	inv = build_machine(&b);
	assert_true(inventory_pair(inv, 0, 0)->best && inventory_pair(inv, 1, 1)->best);
	assert_false(inventory_pair(inv, 0, 1)->best || inventory_pair(inv, 1, 0)->best);
	assert_string_equal(inv->nics[0].netdev, "gpu1rdma0");
	assert_int_equal(inv->nics[0].rail, 1);
	inventory_unref(inv);
}

/* The minor number of a GPU, by which others call it, moves when another one is missing. */
static void test_gpu_names_do_not_move(void **state)
{
	(void)state;
	for (int minor = 0; minor < 2; minor++) {
		struct buf b = { 0 };
		struct inventory *inv;

		add_groups(&b, "eth1", "eth2");
		buf_printf(&b,
			   "proc/driver/nvidia/gpus/0001:04:00.0/information = Model: x\\n"
			   "GPU UUID: GPU-1\\nDevice Minor: %d\n",
			   minor);
		inv = build_machine(&b);
		assert_int_equal(inventory_gpu(inv, "gpu-0001-04-00-0")->minor, minor);
		inventory_unref(inv);
	}
}

/* A slice of more than 128 devices is refused, and with it all of them. */
static void test_a_thousand_vfs(void **state)
{
	struct hw_machine *m = xnew(struct hw_machine);
	struct inventory *inv;
	json_t *all;

	(void)state;
	for (unsigned int i = 0; i < 1024; i++) {
		char *bus_id = xasprintf("0000:%02x:%02x.%x", 1 + i / 256, i / 8 % 32, i % 8);

		*array_push(m->pci, m->n_pci, m->cap_pci) = (struct hw_pci){
			.bus_id = bus_id,
			.path = xasprintf("/sys/devices/pci0000:00/%s", bus_id),
			.vendor = 0x15b3,
			.device = 0x101e,
			.class = 0x020000,
			.numa_node = HW_UNKNOWN,
		};
		*array_push(m->rdma, m->n_rdma, m->cap_rdma) = (struct hw_rdma){
			.name = xasprintf("mlx5_%04u", i),
			.bus_id = xstrdup(bus_id),
			.uverbs = xasprintf("uverbs%u", i),
			.uverbs_major = 231,
			.uverbs_minor = (int)i,
		};
	}
	strlist_add(&m->default_routes, "eth0");
	inv = topo_build(m, NULL);
	assert_int_equal(inv->n_nics, 1024);
	all = published(inv);
	assert_int_equal(json_object_size(all), 1024);
	json_decref(all);
	inventory_unref(inv);
	hw_free(m);
}

/* Two chips in one slot would be two devices, and two counter sets, of one name. */
static void test_two_cards_in_one_slot(void **state)
{
	static const char *const guids[] = { "0:0:0:1", "0:0:0:1", "0:0:0:2", "0:0:0:2" };
	struct buf b = { 0 };
	struct inventory *inv;
	json_t *all;

	(void)state;
	add_uplink(&b);
	for (unsigned int i = 0; i < 4; i++) {
		_cleanup_free_ char *path = xasprintf("pci0000:00/0000:01:00.%u", i);
		_cleanup_free_ char *rdma = xasprintf("mlx5_%u", i);

		add_nic(&b, path, 0x1021, 0, rdma, NULL, guids[i]);
	}
	inv = build_machine(&b);
	all = published(inv);
	assert_int_equal(json_object_size(all), 4);
	assert_int_equal(inv->n_cards, 1);
	assert_true(has_warning(inv, "card-contradiction"));
	json_decref(all);
	inventory_unref(inv);
}

/* What a VF has of its PF must be its own: one that stands elsewhere is taken for a lone VF. */
static void test_vf_that_is_not_beside_its_pf(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;
	const struct topo_nic *vf;

	(void)state;
	add_uplink(&b);
	add_machine(&b, "eth1", "eth2");
	add_nic(&b, "pci0002:00/0002:01:00.1", 0x101e, 0, "mlx5_9", NULL, NULL);
	buf_str(&b, "sys/devices/pci0002:00/0002:01:00.1/physfn -> ../../pci0000:00/0000:00:00.0/"
		    "0000:01:00.0/0000:02:00.0/0000:03:00.0\n");
	inv = build_machine(&b);
	vf = nic_of(inv, "0002:01:00.1");
	assert_null(vf->pf_bus_id);
	assert_string_equal(vf->pcie_root, "pci0002:00");
	assert_true(has_warning(inv, "vf-contradiction"));
	json_decref(published(inv));
	inventory_unref(inv);
}

/* An atomic card goes to a GPU whole, but nobody says how near a PF of unknown place is. */
static void test_pf_of_unknown_place_is_nobody_s_best(void **state)
{
	static const char card[] = "pci0002:00/0002:00:00.0/0002:03:00";
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_uplink(&b);
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	add_bridge(&b, "pci0002:00/0002:00:00.0", 0x8086, 1);
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_free_ char *path = xasprintf("%s.%u", card, i);
		_cleanup_free_ char *rdma = xasprintf("mlx5_%u", i);

		add_nic(&b, path, 0x1023, 0, rdma, NULL, "0:0:0:9");
		add_vpd(&b, path, "SN", i ? NULL : "V3");
	}
	add_bridge(&b, "pci0003:00/0003:00:00.0", 0x8086, 1);
	add_pci(&b, "pci0003:00/0003:00:00.0/0003:03:00.0", 0x080100, 0x15b3, 0x2100, 0);
	add_vpd(&b, "pci0003:00/0003:00:00.0/0003:03:00.0", "SN", "V3");
	inv = build_machine(&b);
	json_decref(published(inv));
	for (size_t g = 0; g < inv->n_gpus; g++)
		for (size_t n = 0; n < inv->n_nics; n++)
			assert_false(inventory_pair(inv, g, n)->best &&
				     inventory_pair(inv, g, n)->path == PATH_UNKNOWN);
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unknown_root_is_absent_not_empty),
		cmocka_unit_test(test_numa_node),
		cmocka_unit_test(test_order_of_directories),
		cmocka_unit_test(test_one_bad_device_stops_nothing),
		cmocka_unit_test(test_representor_does_not_replace_the_uplink),
		cmocka_unit_test(test_names_are_not_cut_and_do_not_collide),
		cmocka_unit_test(test_driver_versions),
		cmocka_unit_test(test_placeholders_and_long_values),
		cmocka_unit_test(test_rdma_is_not_a_name),
		cmocka_unit_test(test_ib_port_guid_differs_from_node_guid),
		cmocka_unit_test(test_functions_without_link_or_pf),
		cmocka_unit_test(test_functions_that_cannot_be_used),
		cmocka_unit_test(test_default_routes),
		cmocka_unit_test(test_slave_of_the_uplink),
		cmocka_unit_test(test_crossed_names),
		cmocka_unit_test(test_gpu_names_do_not_move),
		cmocka_unit_test(test_a_thousand_vfs),
		cmocka_unit_test(test_two_cards_in_one_slot),
		cmocka_unit_test(test_vf_that_is_not_beside_its_pf),
		cmocka_unit_test(test_pf_of_unknown_place_is_nobody_s_best),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

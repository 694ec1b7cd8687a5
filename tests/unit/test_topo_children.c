// SPDX-License-Identifier: Apache-2.0
/* What is made on a NIC, what looks like one, and what should be one. */
#include "test_topo_machine.h"

#include "topo/build.h"

#define NIC "pci0000:00/0000:00:03.0"
#define SECOND "pci0000:00/0000:00:03.1"

static struct hw_rdma *rdma_of(struct hw_machine *machine, const char *name)
{
	for (size_t i = 0; i < machine->n_rdma; i++)
		if (streq(machine->rdma[i].name, name))
			return &machine->rdma[i];
	fail_msg("no RDMA device %s", name);
	return NULL;
}

static struct hw_netdev *netdev_of(struct hw_machine *machine, const char *name)
{
	for (size_t i = 0; i < machine->n_netdevs; i++)
		if (streq(machine->netdevs[i].name, name))
			return &machine->netdevs[i];
	fail_msg("no link %s", name);
	return NULL;
}

/* A link without hardware. */
static void add_virtual(struct buf *b, const char *name, const char *kind, const char *lower)
{
	buf_printf(b, "sys/class/net/%s -> ../../devices/virtual/net/%s\n", name, name);
	buf_printf(b, "sys/devices/virtual/net/%s/uevent = DEVTYPE=%s\n", name, kind);
	if (lower)
		buf_printf(b, "sys/devices/virtual/net/%s/lower_%s -> x\n", name, lower);
}

/* "netdev kind rdma bus;" of each child, in order. */
static void assert_children(const struct topo_nic *nic, const char *expected)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < nic->n_children; i++) {
		const struct topo_child *c = &nic->children[i];

		buf_printf(&text, "%s %s %s %s;", c->netdev ? c->netdev : "-", c->kind,
			   c->rdma_device ? c->rdma_device : "-", c->bus_id ? c->bus_id : "-");
	}
	assert_string_equal(text.data ? text.data : "", expected);
	buf_done(&text);
}

static void test_stacks(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "eth0", NULL);
	add_virtual(&b, "a", "vlan", "eth0");
	add_virtual(&b, "b", "macvlan", "a");
	add_virtual(&b, "c", "ipvlan", "eth0");
	add_virtual(&b, "d", "bond", "eth0"); /* the node's own; what is on it is not ours */
	add_virtual(&b, "e", "vlan", "d");
	add_virtual(&b, "f", "vlan", "g"); /* in a circle */
	add_virtual(&b, "g", "vlan", "f");
	add_virtual(&b, "h", "vlan", "missing");
	add_virtual(&b, "i", "veth", NULL);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 1);
	assert_children(&inv->nics[0], "a vlan - -;b macvlan - -;c ipvlan - -;");
	inventory_unref(inv);
}

/* VFs of a PF, as NICs and without an RDMA device; what is made on the latter is the PF's. */
static void test_vfs(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "eth0", NULL);
	add_nic(&b, "pci0000:00/0000:00:03.2", 0x101e, 0, "mlx5_2", "v0", NULL);
	buf_str(&b, "sys/devices/pci0000:00/0000:00:03.2/physfn -> ../0000:00:03.0\n");
	add_pci(&b, "pci0000:00/0000:00:03.3", 0x020000, 0x15b3, 0x101e, 0);
	buf_str(&b, "sys/devices/pci0000:00/0000:00:03.3/physfn -> ../0000:00:03.0\n");
	add_netdev(&b, "pci0000:00/0000:00:03.3", "v1");
	/* A VF whose PF is elsewhere: as in a virtual machine. */
	add_nic(&b, "pci0001:00/0001:00:00.2", 0x101e, 0, "mlx5_3", NULL, NULL);
	add_virtual(&b, "w0", "vlan", "v0");
	add_virtual(&b, "w1", "vlan", "v1");
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 3);
	assert_children(nic_of(inv, "0000:00:03.0"), "v0 vf mlx5_2 0000:00:03.2;"
						     "v1 vf - 0000:00:03.3;w1 vlan - -;");
	assert_children(nic_of(inv, "0000:00:03.2"), "w0 vlan - -;");
	assert_false(nic_of(inv, "0000:00:03.2")->standalone);
	assert_true(nic_of(inv, "0001:00:00.2")->standalone);
	assert_true(nic_of(inv, "0001:00:00.2")->is_vf);
	assert_null(nic_of(inv, "0001:00:00.2")->netdev);
	inventory_unref(inv);
}

static void assert_own(struct buf *b, const char *netdev)
{
	struct inventory *inv;

	buf_printf(b, "twinrail/routes = default via 10.0.0.1 dev %s\n", netdev);
	inv = build_machine(b);
	assert_int_equal(inv->n_nics, 1);
	assert_true(topo_is_own(&inv->nics[0]));
	inventory_unref(inv);
}

static void add_sf(struct buf *b, unsigned int n, const char *rdma, const char *netdev)
{
	_cleanup_free_ char *path = xasprintf(NIC "/mlx5_core.sf.%u", n);

	if (rdma)
		buf_printf(b,
			   "sys/class/infiniband/%s -> ../../devices/%s/infiniband/%s\n"
			   "sys/devices/%s/infiniband/%s/node_type = 1: CA\n",
			   rdma, path, rdma, path, rdma);
	if (netdev)
		add_netdev(b, path, netdev);
}

static struct inventory *build_sfs(struct buf *b, const char *named)
{
	struct hw_machine *machine = read_machine(b->data);
	struct hw_rdma_port port = { .port = 1, .rate_gbps = -1, .n_gids = 1 };
	struct hw_gid gid = { .index = 0 };
	struct inventory *inv;

	buf_done(b);
	for (size_t i = 0; i < machine->n_rdma; i++) {
		struct hw_rdma *rdma = &machine->rdma[i];

		if (rdma->bus_id)
			continue;
		free(rdma->sf_parent);
		rdma->sf_parent = xstrdup("0000:00:03.0");
	}
	if (named) {
		struct hw_rdma *rdma = rdma_of(machine, named);

		gid.gid = xstrdup("fe80::1");
		gid.netdev = xstrdup("sf1");
		port.gids = xcalloc(1, sizeof(gid));
		port.gids[0] = gid;
		rdma->ports = xcalloc(1, sizeof(port));
		rdma->ports[0] = port;
		rdma->n_ports = 1;
	}
	inv = topo_build(machine, NULL);
	hw_free(machine);
	return inv;
}

/* Subfunctions are no NICs of their own, and their RDMA device is not that of the PF. */
static void test_subfunctions(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "eth0", NULL);
	add_sf(&b, 4, "mlx5_4", "sf1");
	inv = build_sfs(&b, NULL); /* there is one of each */
	assert_int_equal(inv->n_nics, 1);
	assert_children(&inv->nics[0], "sf1 sf mlx5_4 -;");
	inventory_unref(inv);

	/* Of two the GIDs tell; one whose link nobody knows is listed alone. */
	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "eth0", NULL);
	add_sf(&b, 4, "mlx5_4", "sf0");
	add_sf(&b, 5, "mlx5_5", "sf1");
	inv = build_sfs(&b, "mlx5_4");
	assert_children(&inv->nics[0], "sf0 sf - -;sf1 sf mlx5_4 -;- sf mlx5_5 -;");
	inventory_unref(inv);

	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "gpu0ipvlan0", NULL);
	add_sf(&b, 4, "mlx5_4", NULL);
	inv = build_sfs(&b, NULL);
	assert_children(&inv->nics[0], "- sf mlx5_4 -;");
	inventory_unref(inv);
}

/* Representors come first by name and are not the NIC's link; the port that comes first is. */
static void test_representors_and_ports(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	struct inventory *inv;

	(void)state;
	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "z0", NULL);
	buf_str(&b, "sys/devices/" NIC "/net/z0/phys_port_name = p0\n");
	add_netdev(&b, NIC, "a_rep");
	buf_str(&b, "sys/devices/" NIC "/net/a_rep/phys_port_name = pf0vf0\n");
	add_netdev(&b, NIC, "c_rep");
	buf_str(&b, "sys/devices/" NIC "/net/c_rep/phys_port_name = c1pf0sf3\n"
		    "sys/devices/" NIC "/infiniband/mlx5_0/ports/1/state = 4: ACTIVE\n"
		    "sys/devices/" NIC "/infiniband/mlx5_0/ports/2/state = 4: ACTIVE\n"
		    "sys/devices/" NIC "/infiniband/mlx5_0/ports/3/state = 4: ACTIVE\n");
	/* One function with two ports, one RDMA device. */
	add_nic(&b, "pci0000:00/0000:00:04.0", 0x1003, 0, "mlx4_0", "b0", NULL);
	add_netdev(&b, "pci0000:00/0000:00:04.0", "b1");
	buf_str(&b,
		"sys/devices/pci0000:00/0000:00:04.0/infiniband/mlx4_0/ports/1/state = 4: ACTIVE\n"
		"sys/devices/pci0000:00/0000:00:04.0/infiniband/mlx4_0/ports/2/state = 4: "
		"ACTIVE\n");
	add_virtual(&b, "on_b1", "vlan", "b1");
	add_virtual(&b, "on_rep", "vlan", "a_rep");
	machine = read_machine(b.data);
	buf_done(&b);
	netdev_of(machine, "b0")->dev_port = 1;
	netdev_of(machine, "b1")->dev_port = 0;
	inv = topo_build(machine, NULL);
	hw_free(machine);
	assert_int_equal(inv->n_nics, 2);
	assert_string_equal(inv->nics[0].netdev, "z0");
	assert_children(&inv->nics[0], "");
	assert_int_equal(inv->nics[0].n_ports, 1); /* the others are the representors' */
	assert_int_equal(inv->nics[1].n_ports, 2);
	assert_string_equal(inv->nics[1].netdev, "b1");
	assert_children(&inv->nics[1], "b0 port - -;on_b1 vlan - -;");
	inventory_unref(inv);
}

/* A link without a PCI function, and one without an RDMA device: neither is a NIC. */
static void test_no_nics(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_virtual(&b, "lo", "x", NULL);
	add_pci(&b, "pci0000:00/0000:00:05.0", 0x020000, 0x8086, 0x1572, 0);
	add_netdev(&b, "pci0000:00/0000:00:05.0", "eno1");
	/* A ConnectX on a node without GPUs, and a VF of nobody: nothing to say. */
	add_pci(&b, NIC, 0x020000, 0x15b3, 0x1021, 0);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 0);
	assert_int_equal(inv->n_warnings, 0);
	inventory_unref(inv);
}

static const char *why_no_nic(const char *driver, unsigned int device, const char *text)
{
	static char message[512];
	struct buf b = { 0 };
	struct inventory *inv;

	add_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_pci(&b, NIC, 0x020000, 0x15b3, device, 0);
	if (driver)
		buf_printf(&b, "sys/devices/" NIC "/driver -> ../../../bus/pci/drivers/%s\n",
			   driver);
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 0);
	assert_int_equal(inv->n_warnings, text != NULL);
	message[0] = '\0';
	if (text) {
		assert_string_equal(inv->warnings[0].code, "nic-without-rdma");
		assert_string_equal(inv->warnings[0].object, "0000:00:03.0");
		snprintf(message, sizeof(message), "%s", inv->warnings[0].message);
		assert_non_null(strstr(message, text));
	}
	inventory_unref(inv);
	return message;
}

static void test_without_rdma(void **state)
{
	(void)state;
	why_no_nic("vfio-pci", 0x1021, "bound to vfio-pci");
	why_no_nic(NULL, 0x1021, "no driver");
	why_no_nic("mlx5_core", 0x1023, "mlx5_ib");
	why_no_nic("vfio-pci", 0x101e, NULL); /* a VF: made for a virtual machine */
}

/* The bond of both ports of one chip has one RDMA device, on the first function. */
/* What a link calls its port tells whether it is one of the card's own. */
static void test_names_of_ports(void **state)
{
	static const struct {
		const char *name;
		bool own;
	} cases[] = {
		{ NULL, true },	    { "p0", true },	 { "p12", true },     { "p0s1", true },
		{ "p10s12", true }, { "p", false },	 { "ps1", false },    { "p0s", false },
		{ "p0s1x", false }, { "pf0", false },	 { "pf0vf1", false }, { "c1pf0vf0", false },
		{ "p0sf3", false }, { "pf0sf3", false }, { "", false },	      { "0", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct hw_netdev link = { .phys_port_name =
							(char *)(uintptr_t)cases[i].name };

		if (topo_is_uplink(&link) != cases[i].own)
			fail_msg("%s", cases[i].name ? cases[i].name : "(none)");
	}
}

static void test_bond(void **state)
{
	struct buf b = { 0 };
	struct inventory *inv;

	(void)state;
	add_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_nic(&b, NIC, 0x1021, 0, "mlx5_bond_0", "eth0", NULL);
	add_pci(&b, SECOND, 0x020000, 0x15b3, 0x1021, 0);
	add_netdev(&b, SECOND, "eth1");
	add_nic(&b, "pci0000:00/0000:00:04.0", 0x1021, 0, "mlx5_2", "eth2", NULL);
	add_pci(&b, "pci0000:00/0000:00:05.0", 0x020000, 0x8086, 0x1572, 0);
	add_netdev(&b, "pci0000:00/0000:00:05.0", "eth3");
	/* in the slot of the first one, but not part of the bond */
	add_pci(&b, "pci0000:00/0000:00:03.7", 0x020000, 0x15b3, 0x1021, 0);
	add_netdev(&b, "pci0000:00/0000:00:03.7", "eth7");
	add_virtual(&b, "bond0", "bond", NULL);
	for (unsigned int i = 0; i < 4; i++) {
		static const char *const paths[] = { NIC, SECOND, "pci0000:00/0000:00:04.0",
						     "pci0000:00/0000:00:05.0" };

		buf_printf(&b, "sys/devices/%s/net/eth%u/master -> ../../../../virtual/net/bond0\n",
			   paths[i], i);
		buf_printf(&b, "sys/devices/virtual/net/bond0/lower_eth%u -> x\n", i);
	}
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 2);
	assert_string_equal(inv->nics[0].master, "bond0");
	assert_non_null(inv->nics[0].lag_members);
	assert_string_equal(inv->nics[0].lag_members[0], "eth1");
	assert_null(inv->nics[0].lag_members[1]);
	assert_null(inv->nics[1].lag_members);
	assert_int_equal(inv->nics[0].role, ROLE_FRONTEND);
	assert_int_equal(inv->nics[1].role, ROLE_FRONTEND);
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, "nic-without-rdma"))
			assert_string_equal(inv->warnings[i].object, "0000:00:03.7");
	assert_true(has_warning(inv, "nic-without-rdma"));
	inventory_unref(inv);
}

/* No link leads from these to the NIC's own one, but they live on the same function. */
static void test_own_ports_and_subfunctions(void **state)
{
	struct buf b = { 0 };

	(void)state;
	add_nic(&b, NIC, 0x1003, 0, "mlx4_0", "eth0", NULL);
	add_netdev(&b, NIC, "eth1");
	buf_str(&b, "sys/devices/" NIC "/net/eth1/dev_port = 1\n");
	assert_own(&b, "eth1");
	add_nic(&b, NIC, 0x1021, 0, "mlx5_0", "eth0", NULL);
	add_sf(&b, 4, NULL, "eth0s4");
	assert_own(&b, "eth0s4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_vfs),
		cmocka_unit_test(test_subfunctions),
		cmocka_unit_test(test_representors_and_ports),
		cmocka_unit_test(test_no_nics),
		cmocka_unit_test(test_without_rdma),
		cmocka_unit_test(test_names_of_ports),
		cmocka_unit_test(test_bond),
		cmocka_unit_test(test_own_ports_and_subfunctions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Links and RDMA devices: whose they are, and what is read of them. */
#include "hw/read.h"
#include "test_topo_machine.h"

#define BRIDGE "pci0000:00/0000:00:01.0"
#define FUNCTION BRIDGE "/0000:03:00.0"
#define NET "sys/devices/" FUNCTION "/net/eth0"
#define RDMA "sys/devices/" FUNCTION "/infiniband/mlx5_0"
#define SF FUNCTION "/mlx5_core.sf.4"

/* Takes the text of "b". */
static struct hw_machine *read_buf(struct buf *b)
{
	_cleanup_free_ char *text = buf_take(b);

	return read_machine(text);
}

static const struct hw_netdev *netdev_of(const struct hw_machine *machine, const char *name)
{
	const struct hw_netdev *netdev = hw_find_netdev(machine, name);

	if (!netdev)
		fail_msg("no link %s", name);
	return netdev;
}

static const struct hw_rdma *rdma_of(const struct hw_machine *machine, const char *name)
{
	for (size_t i = 0; i < machine->n_rdma; i++) {
		/* The array is sorted. */
		if (i)
			assert_true(strcmp(machine->rdma[i - 1].name, machine->rdma[i].name) < 0);
		if (streq(machine->rdma[i].name, name))
			return &machine->rdma[i];
	}
	fail_msg("no RDMA device %s", name);
	return NULL;
}

static void test_link(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_netdev *netdev;

	(void)state;
	add_netdev(&b, FUNCTION, "eth0");
	buf_str(&b, NET "/address = 00:00:5e:00:53:20\n" NET "/type = 1\n" NET "/ifindex = 7\n" NET
			"/speed = 400000\n" NET "/carrier = 1\n" NET "/dev_port = 1\n" NET
			"/phys_port_name = p0\n" NET "/phys_switch_id = 1234\n" NET
			"/operstate = up\n" NET "/uevent = INTERFACE=eth0\\nIFINDEX=5\n" NET
			"/lower_x -> ../x\n");
	machine = read_buf(&b);
	netdev = netdev_of(machine, "eth0");
	assert_string_equal(netdev->address, "00:00:5e:00:53:20");
	assert_int_equal(netdev->type, 1);
	assert_int_equal(netdev->ifindex, 5);
	assert_int_equal(netdev->speed_mbps, 400000);
	assert_int_equal(netdev->carrier, 1);
	assert_int_equal(netdev->dev_port, 1);
	assert_string_equal(netdev->phys_port_name, "p0");
	assert_string_equal(netdev->phys_switch_id, "1234");
	assert_string_equal(netdev->oper_state, "up");
	assert_null(netdev->kind);
	/* Hardware runs on no other link. */
	assert_int_equal(netdev->lower.n, 0);
	hw_free(machine);
}

/* A link that is down by an administrator, and one whose driver tells little. */
static void test_link_down(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_netdev *netdev;

	(void)state;
	add_netdev(&b, FUNCTION, "eth0");
	buf_str(&b, NET "/speed ! EINVAL\n" NET "/carrier ! EINVAL\n" NET "/ifindex = 7\n" NET
			"/phys_port_name ! EOPNOTSUPP\n" NET "/dev_id = 0x1\n" NET "/uevent =\n");
	add_netdev(&b, BRIDGE "/0000:04:00.0", "eth1");
	buf_str(&b, "sys/devices/" BRIDGE "/0000:04:00.0/net/eth1/speed = 0\n"
		    "sys/devices/" BRIDGE "/0000:04:00.0/net/eth1/uevent = IFINDEX=-3\n");
	machine = read_buf(&b);
	netdev = netdev_of(machine, "eth0");
	assert_int_equal(netdev->speed_mbps, HW_UNKNOWN);
	assert_int_equal(netdev->carrier, HW_UNKNOWN);
	assert_int_equal(netdev->ifindex, 7);
	assert_int_equal(netdev->dev_port, 1);
	assert_null(netdev->phys_port_name);
	netdev = netdev_of(machine, "eth1");
	assert_int_equal(netdev->speed_mbps, HW_UNKNOWN);
	assert_int_equal(netdev->ifindex, HW_UNKNOWN);
	assert_int_equal(netdev->dev_port, HW_UNKNOWN);
	assert_int_equal(machine->incomplete, 0);
	hw_free(machine);
}

/* Representors are on the PF's function; subfunctions and links of no function are not. */
static void test_owners(void **state)
{
	static const char *const names[] = { "pf0vf3", "c1pf0vf3", "pf0sf88" };
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pci(&b, FUNCTION, 0x020000, 0x15b3, 0x1021, 0);
	add_netdev(&b, FUNCTION, "eth0");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		add_netdev(&b, FUNCTION, names[i]);
		buf_printf(&b, "sys/devices/" FUNCTION "/net/%s/phys_port_name = %s\n", names[i],
			   names[i]);
	}
	add_netdev(&b, SF, "sf0");
	buf_str(&b, "sys/class/infiniband/mlx5_9 -> ../../devices/" SF "/infiniband/mlx5_9\n"
		    "sys/devices/" SF "/infiniband/mlx5_9/node_guid = 0000:0000:0000:0009\n"
		    "sys/class/net/wlan0 -> ../../devices/platform/soc/net/wlan0\n"
		    "sys/devices/platform/soc/net/wlan0/mtu = 1500\n");
	machine = read_buf(&b);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(netdev_of(machine, names[i])->bus_id, "0000:03:00.0");
		assert_string_equal(netdev_of(machine, names[i])->phys_port_name, names[i]);
	}
	assert_null(netdev_of(machine, "sf0")->bus_id);
	assert_string_equal(netdev_of(machine, "sf0")->sf_parent, "0000:03:00.0");
	assert_null(netdev_of(machine, "wlan0")->bus_id);
	assert_null(netdev_of(machine, "wlan0")->sf_parent);
	assert_null(rdma_of(machine, "mlx5_9")->bus_id);
	assert_string_equal(rdma_of(machine, "mlx5_9")->sf_parent, "0000:03:00.0");
	assert_string_equal(rdma_of(machine, "mlx5_9")->node_guid, "0000:0000:0000:0009");
	assert_false(rdma_of(machine, "mlx5_9")->software);
	hw_free(machine);
}

/* Dangling links and bad names are left out with a warning; values of 100 kB are unknown. */
static void test_odd_links(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	buf_str(&b, "sys/class/net/gone0 -> ../../devices/virtual/net/gone0\n"
		    "sys/class/net/loop0 -> ../../class/net/loop0\n"
		    "sys/class/net/bad\xff -> ../../devices/virtual/net/bad\n"
		    "sys/devices/virtual/net/bad/mtu = 1500\n"
		    "sys/class/infiniband/gone_0 -> ../../devices/gone/infiniband/gone_0\n"
		    "sys/class/infiniband/bad\xff -> ../../devices/virtual/net/bad\n");
	add_netdev(&b, FUNCTION, "eth0");
	buf_str(&b, NET "/operstate = ");
	for (int i = 0; i < 100 * 1000; i++)
		buf_str(&b, "u");
	buf_str(&b, "\n" NET "/address = \xc3\x28\n");
	machine = read_buf(&b);
	assert_int_equal(machine->n_netdevs, 1);
	assert_int_equal(machine->n_rdma, 0);
	assert_null(netdev_of(machine, "eth0")->oper_state);
	assert_null(netdev_of(machine, "eth0")->address);
	assert_int_equal(netdev_of(machine, "eth0")->mtu, 1500);
	assert_int_equal(machine->n_warnings, 6);
	for (size_t i = 1; i < machine->n_warnings; i++) {
		const char *code = machine->warnings[i].code;

		assert_true(utf8_valid(machine->warnings[i].object,
				       strlen(machine->warnings[i].object)));
		assert_true(streq(code, "netdev-unreadable") ||
			    streq(code, "rdma-device-unreadable"));
	}
	assert_int_equal(machine->incomplete, 0);
	hw_free(machine);
}

/* A PF with its link and RDMA device, and a VF that tells less. */
static void add_pf_and_vf(struct buf *b)
{
	add_nic(b, FUNCTION, 0x1021, 0, "mlx5_0", "eth0", "0000:0000:0000:0001");
	add_nic(b, BRIDGE "/0000:03:00.1", 0x101e, 0, "ibv_1", "eth1", NULL);
	buf_str(b, "sys/devices/" BRIDGE "/0000:03:00.1/physfn -> ../0000:03:00.0\n" RDMA
		   "/fw_ver = 28.39.3560\n" RDMA "/board_id = MT_0\n" RDMA
		   "/hca_type = MT4129\n" RDMA "/node_guid = 0000:0000:0000:00aa\n" RDMA
		   "/ports/1/state = 4: ACTIVE\n" RDMA "/ports/1/phys_state = 5: LinkUp\n" RDMA
		   "/ports/1/link_layer = Ethernet\n" RDMA "/ports/1/rate = 400 Gb/sec (4X NDR)\n"
		   "sys/devices/" BRIDGE "/0000:03:00.1/infiniband/ibv_1/ports/1/state = 1: DOWN\n"
		   "sys/devices/" BRIDGE "/0000:03:00.1/infiniband/ibv_1/ports/1/gids/0 = fe80::1\n"
		   "sys/devices/" BRIDGE
		   "/0000:03:00.1/infiniband/ibv_1/ports/1/gid_attrs/types/0 = RoCE v2\n"
		   "sys/devices/" BRIDGE "/0000:03:00.1/net/eth1/operstate = down\n");
}

static void test_vf(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_rdma *vf;

	(void)state;
	add_pf_and_vf(&b);
	machine = read_buf(&b);
	assert_int_equal(machine->n_rdma, 2);
	vf = rdma_of(machine, "ibv_1");
	assert_string_equal(vf->bus_id, "0000:03:00.1");
	assert_string_equal(vf->fw_ver, "28.39.3560");
	assert_string_equal(vf->board_id, "MT_0");
	assert_string_equal(vf->hca_type, "MT4129");
	assert_string_equal(vf->sys_image_guid, "0000:0000:0000:0001");
	assert_null(vf->node_guid); /* its own, and not read */
	assert_int_equal(vf->n_ports, 1);
	assert_string_equal(vf->ports[0].state, "DOWN");
	assert_string_equal(vf->ports[0].phys_state, "LinkUp");
	assert_string_equal(vf->ports[0].link_layer, "Ethernet");
	assert_int_equal(vf->ports[0].rate_gbps, 400);
	/* Nothing is known of addresses: the GIDs are read. */
	assert_int_equal(vf->ports[0].n_gids, 1);
	assert_string_equal(vf->ports[0].gids[0].type, "RoCE v2");
	assert_string_equal(netdev_of(machine, "eth1")->bus_id, "0000:03:00.1");
	assert_string_equal(netdev_of(machine, "eth1")->oper_state, "down");
	assert_int_equal(netdev_of(machine, "eth1")->mtu, 1500);
	hw_free(machine);
}

/* The GIDs of a VF that waits for its pod: not read. */
static void test_waiting_vf(void **state)
{
	static const struct {
		const char *addresses;
		size_t n_gids;
	} cases[] = {
		{ "lo 127.0.0.1/8 scope host\\neth0 10.0.0.1/24 scope global", 0 },
		{ "eth1 fe80::1/64 scope link", 0 },
		{ "eth1 10.0.0.1/24 scope global", 1 },
		{ "vlan5 10.0.0.1/24 scope global", 1 }, /* on eth1 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf b = { 0 };
		struct hw_machine *machine;

		add_pf_and_vf(&b);
		buf_printf(&b, "twinrail/addresses = %s\n", cases[i].addresses);
		buf_str(&b, "twinrail/routes = 10.0.0.0/24 dev eth0\n"
			    "sys/class/net/vlan5 -> ../../devices/virtual/net/vlan5\n"
			    "sys/devices/virtual/net/vlan5/lower_eth1 -> ../eth1\n");
		machine = read_buf(&b);
		assert_int_equal(rdma_of(machine, "ibv_1")->ports[0].n_gids, cases[i].n_gids);
		hw_free(machine);
	}
}

#define WAITS "twinrail/addresses = lo 127.0.0.1/8 scope host\ntwinrail/routes =\n"

/* What the PF does not tell of a VF that waits: LIDs of InfiniBand, and its port of several. */
static void test_waiting_vf_is_as_usual(void **state)
{
	static const char pf[] = RDMA "/ports/1/link_layer = InfiniBand\n";
	static const char vf[] = "sys/devices/" BRIDGE "/0000:03:00.1/infiniband/ibv_1/ports/";
	struct hw_machine *machine;

	(void)state;
	for (int infiniband = 0; infiniband < 2; infiniband++) {
		struct buf b = { 0 };
		const struct hw_rdma *rdma;

		add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", NULL, NULL);
		add_nic(&b, BRIDGE "/0000:03:00.1", 0x101e, 0, "ibv_1", NULL, NULL);
		buf_str(&b, "sys/devices/" BRIDGE "/0000:03:00.1/physfn -> ../0000:03:00.0\n");
		buf_str(&b, infiniband ? pf
				       : RDMA "/ports/1/state = 4: ACTIVE\n" RDMA
					      "/ports/2/state = 4: ACTIVE\n");
		buf_printf(&b, "%s1/state = 1: DOWN\n%s1/lid = 0x5\n%s1/link_layer = %s\n", vf, vf,
			   vf, infiniband ? "InfiniBand" : "Ethernet");
		buf_str(&b, WAITS);
		machine = read_buf(&b);
		rdma = rdma_of(machine, "ibv_1");
		assert_int_equal(rdma->n_ports, 1);
		assert_string_equal(rdma->ports[0].state, "DOWN");
		assert_int_equal(rdma->ports[0].lid, infiniband ? 5 : HW_UNKNOWN);
		assert_string_equal(rdma->ports[0].link_layer,
				    infiniband ? "InfiniBand" : "Ethernet");
		hw_free(machine);
	}
}

/* A VF is asked for its master when something runs on its link. */
static void test_vf_master(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pf_and_vf(&b);
	add_nic(&b, BRIDGE "/0000:03:00.2", 0x101e, 0, "ibv_2", "eth2", NULL);
	buf_str(&b, "sys/devices/" BRIDGE "/0000:03:00.2/physfn -> ../0000:03:00.0\n"
		    "sys/devices/" BRIDGE
		    "/0000:03:00.1/net/eth1/master -> ../../../../../virtual/net/bond0\n"
		    "sys/class/net/bond0 -> ../../devices/virtual/net/bond0\n"
		    "sys/class/net/vlan2 -> ../../devices/virtual/net/vlan2\n"
		    "sys/devices/virtual/net/bond0/lower_eth1 -> ../eth1\n"
		    "sys/devices/virtual/net/bond0/lower_gone -> ../gone\n"
		    "sys/devices/virtual/net/vlan2/lower_eth2 -> ../eth2\n");
	machine = read_buf(&b);
	assert_string_equal(netdev_of(machine, "eth1")->master, "bond0");
	assert_null(netdev_of(machine, "eth2")->master);
	assert_int_equal(machine->n_warnings, 0);
	hw_free(machine);
}

/* Of a VF with files that cannot be read the others are told, as of any device. */
static void test_vf_unreadable(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pf_and_vf(&b);
	add_nic(&b, BRIDGE "/0000:03:00.2", 0x101e, 0, "ibv_2", NULL, NULL);
	buf_str(&b, WAITS "sys/devices/" BRIDGE "/0000:03:00.2/physfn -> ../0000:03:00.0\n"
			  "sys/class/net/eth2 -> ../../devices/" BRIDGE "/0000:03:00.2/net/eth2\n"
			  "sys/devices/" BRIDGE "/0000:03:00.2/net/eth2/operstate = up\n"
			  "sys/devices/" BRIDGE "/0000:03:00.2/net/eth2/mtu ! EIO\n");
	add_nic(&b, BRIDGE "/0000:03:00.3", 0x101e, 0, "ibv_3", "eth3", NULL);
	buf_str(&b, "sys/devices/" BRIDGE "/0000:03:00.3/physfn -> ../0000:03:00.0\n"
		    "sys/devices/" BRIDGE "/0000:03:00.3/net/eth3/operstate ! EINVAL\n"
		    "sys/devices/" BRIDGE "/0000:03:00.3/infiniband/ibv_3/ports/1/state ! EIO\n");
	machine = read_buf(&b);
	assert_null(netdev_of(machine, "eth3")->oper_state);
	assert_int_equal(netdev_of(machine, "eth3")->mtu, 1500);
	assert_string_equal(netdev_of(machine, "eth2")->oper_state, "up");
	assert_int_equal(netdev_of(machine, "eth2")->mtu, HW_UNKNOWN);
	assert_int_equal(rdma_of(machine, "ibv_3")->n_ports, 1);
	assert_null(rdma_of(machine, "ibv_3")->ports[0].state);
	assert_string_equal(rdma_of(machine, "ibv_3")->ports[0].link_layer, "Ethernet");
	assert_int_equal(rdma_of(machine, "ibv_3")->ports[0].n_gids, 0);
	hw_free(machine);
}

/* The devices of a VF behind a link on the way, and those that are not there. */
static void test_vf_elsewhere(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pf_and_vf(&b);
	buf_str(&b, WAITS "sys/devices/alias -> " BRIDGE "\n"
			  "sys/class/net/eth3 -> ../../devices/alias/0000:03:00.1/net/eth1\n"
			  "sys/class/infiniband/ibv_3 -> "
			  "../../devices/alias/0000:03:00.1/infiniband/ibv_1\n"
			  "sys/class/net/eth4 -> ../../devices/" BRIDGE "/0000:03:00.1/net/eth4\n"
			  "sys/class/infiniband/ibv_4 -> ../../devices/" BRIDGE
			  "/0000:03:00.1/infiniband/ibv_4\n");
	machine = read_buf(&b);
	assert_string_equal(netdev_of(machine, "eth3")->oper_state, "down");
	assert_int_equal(netdev_of(machine, "eth3")->mtu, 1500);
	assert_string_equal(rdma_of(machine, "ibv_3")->ports[0].state, "DOWN");
	assert_null(hw_find_netdev(machine, "eth4"));
	assert_int_equal(machine->n_rdma, 3);
	assert_int_equal(machine->n_warnings, 2);
	assert_string_equal(machine->warnings[0].code, "netdev-unreadable");
	assert_string_equal(machine->warnings[0].object, "eth4");
	assert_string_equal(machine->warnings[1].code, "rdma-device-unreadable");
	assert_string_equal(machine->warnings[1].object, "ibv_4");
	hw_free(machine);
}

/* A table as on a running machine: most entries are zero, and an address that went left a hole. */
static void test_gid_table(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_rdma_port *port;

	(void)state;
	add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", "eth0", NULL);
	for (int i = 0; i < 256; i++) {
		bool used = i == 0 || i == 3 || i == 255;

		buf_printf(&b, RDMA "/ports/1/gids/%d = %s:0000:0000:0000:0000:0000:0000:0000\n", i,
			   used ? "fe80" : "0000");
		if (i == 3)
			buf_printf(&b,
				   RDMA "/ports/1/gid_attrs/types/%d = RoCE v2\n" RDMA
					"/ports/1/gid_attrs/ndevs/%d = eth0\n",
				   i, i);
		else
			buf_printf(&b, RDMA "/ports/1/gid_attrs/types/%d ! EINVAL\n", i);
	}
	machine = read_buf(&b);
	port = &rdma_of(machine, "mlx5_0")->ports[0];
	assert_int_equal(port->n_gids, 3);
	assert_int_equal(port->gids[0].index, 0);
	assert_null(port->gids[0].type);
	assert_int_equal(port->gids[1].index, 3);
	assert_string_equal(port->gids[1].type, "RoCE v2");
	assert_string_equal(port->gids[1].netdev, "eth0");
	assert_int_equal(port->gids[2].index, 255);
	hw_free(machine);
}

/* A VF whose PF has no RDMA device tells all itself. */
static void test_vf_alone(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_pci(&b, BRIDGE "/0000:02:00.0", 0x020000, 0x15b3, 0x1021, 0);
	add_nic(&b, FUNCTION, 0x101e, 0, "mlx5_0", NULL, "0000:0000:0000:0007");
	buf_str(&b, "sys/devices/" FUNCTION "/physfn -> ../0000:02:00.0\n" RDMA
		    "/fw_ver = 1.2.3\n" RDMA "/ports/1/link_layer = Ethernet\n");
	machine = read_buf(&b);
	assert_string_equal(machine->rdma[0].fw_ver, "1.2.3");
	assert_string_equal(machine->rdma[0].sys_image_guid, "0000:0000:0000:0007");
	assert_string_equal(machine->rdma[0].ports[0].link_layer, "Ethernet");
	hw_free(machine);
}

static void test_ports(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_rdma *rdma;

	(void)state;
	add_nic(&b, FUNCTION, 0x101b, 0, "mlx5_0", NULL, NULL);
	buf_str(&b,
		RDMA "/node_guid = 0000:0000:0000:0000\n" RDMA "/ports/10/state = 4: ACTIVE\n" RDMA
		     "/ports/2/state = 4: ACTIVE\n" RDMA "/ports/2/link_layer = InfiniBand\n" RDMA
		     "/ports/2/lid = 0x1f\n" RDMA "/ports/2/sm_lid = 0x0\n" RDMA
		     "/ports/1/link_layer = Ethernet\n" RDMA "/ports/1/lid = 0x5\n" RDMA
		     "/ports/10/link_layer = InfiniBand\n" RDMA "/ports/10/lid = 0xffff\n" RDMA
		     "/ports/10/rate = fast\n" RDMA "/ports/10/gids/0 ! EIO\n");
	machine = read_buf(&b);
	rdma = rdma_of(machine, "mlx5_0");
	assert_null(rdma->node_guid);
	assert_int_equal(rdma->n_ports, 3);
	assert_int_equal(rdma->ports[0].port, 1);
	assert_int_equal(rdma->ports[0].lid, HW_UNKNOWN);
	assert_int_equal(rdma->ports[1].port, 2);
	assert_int_equal(rdma->ports[1].lid, 0x1f);
	assert_int_equal(rdma->ports[1].sm_lid, HW_UNKNOWN);
	assert_int_equal(rdma->ports[2].port, 10);
	assert_int_equal(rdma->ports[2].lid, HW_UNKNOWN);
	assert_int_equal(rdma->ports[2].rate_gbps, HW_UNKNOWN);
	assert_int_equal(rdma->ports[2].n_gids, 0);
	hw_free(machine);
}

/* In switchdev mode each representor is a port: those of hundreds hide none of the first ones. */
static void test_many_ports(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;
	const struct hw_rdma *rdma;

	(void)state;
	add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", "eth0", NULL);
	for (unsigned int i = 1; i <= 300; i++)
		buf_printf(&b, RDMA "/ports/%u/state = 4: ACTIVE\n", i);
	machine = read_buf(&b);
	rdma = rdma_of(machine, "mlx5_0");
	assert_int_equal(rdma->n_ports, 255);
	assert_int_equal(rdma->ports[0].port, 1);
	assert_string_equal(rdma->ports[0].state, "ACTIVE");
	assert_int_equal(rdma->ports[254].port, 255);
	hw_free(machine);
}

/* Software devices name their link; one on a link of no function is of none. */
static void test_software(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_netdev(&b, FUNCTION, "eth0");
	buf_str(&b, "sys/class/net/dummy0 -> ../../devices/virtual/net/dummy0\n"
		    "sys/devices/virtual/net/dummy0/mtu = 1500\n"
		    "sys/class/infiniband/rxe0 -> ../../devices/virtual/infiniband/rxe0\n"
		    "sys/devices/virtual/infiniband/rxe0/parent = eth0\n"
		    "sys/class/infiniband/rxe1 -> ../../devices/virtual/infiniband/rxe1\n"
		    "sys/devices/virtual/infiniband/rxe1/parent = dummy0\n");
	machine = read_buf(&b);
	assert_true(rdma_of(machine, "rxe0")->software);
	assert_string_equal(rdma_of(machine, "rxe0")->parent, "eth0");
	assert_string_equal(rdma_of(machine, "rxe0")->bus_id, "0000:03:00.0");
	assert_true(rdma_of(machine, "rxe1")->software);
	assert_string_equal(rdma_of(machine, "rxe1")->parent, "dummy0");
	assert_null(rdma_of(machine, "rxe1")->bus_id);
	hw_free(machine);
}

static void add_uverbs(struct buf *b, const char *function, unsigned int n, const char *ibdev)
{
	buf_printf(b,
		   "sys/class/infiniband_verbs/uverbs%u -> "
		   "../../devices/%s/infiniband_verbs/uverbs%u\n",
		   n, function, n);
	buf_printf(b, "sys/devices/%s/infiniband_verbs/uverbs%u/dev = 231:%u\n", function, n,
		   192 + n);
	if (ibdev)
		buf_printf(b, "sys/devices/%s/infiniband_verbs/uverbs%u/ibdev = %s\n", function, n,
			   ibdev);
}

/* One device: the node beside it is its own.  Two: they are asked.  Numbers mean nothing. */
static void test_uverbs(void **state)
{
	struct buf b = { 0 };
	struct hw_machine *machine;

	(void)state;
	add_nic(&b, FUNCTION, 0x1021, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, BRIDGE "/0000:03:00.1", 0x1021, 0, "mlx5_1", NULL, NULL);
	add_nic(&b, BRIDGE "/0000:04:00.0", 0x1021, 0, "mlx5_2", NULL, NULL);
	buf_str(&b, "sys/class/infiniband/mlx5_3 -> ../../devices/" BRIDGE
		    "/0000:04:00.0/infiniband/mlx5_3\n"
		    "sys/devices/" BRIDGE "/0000:04:00.0/infiniband/mlx5_3/node_type = 1: CA\n");
	add_uverbs(&b, FUNCTION, 3, NULL);
	add_uverbs(&b, BRIDGE "/0000:03:00.1", 40, NULL);
	add_uverbs(&b, BRIDGE "/0000:04:00.0", 1, "mlx5_3");
	add_uverbs(&b, BRIDGE "/0000:04:00.0", 0, "mlx5_2");
	add_uverbs(&b, BRIDGE "/0000:05:00.0", 2, "mlx5_7"); /* of a device that is gone */
	machine = read_buf(&b);
	assert_string_equal(rdma_of(machine, "mlx5_0")->uverbs, "uverbs3");
	assert_int_equal(rdma_of(machine, "mlx5_0")->uverbs_minor, 195);
	assert_string_equal(rdma_of(machine, "mlx5_1")->uverbs, "uverbs40");
	assert_string_equal(rdma_of(machine, "mlx5_2")->uverbs, "uverbs0");
	assert_string_equal(rdma_of(machine, "mlx5_3")->uverbs, "uverbs1");
	assert_int_equal(rdma_of(machine, "mlx5_3")->uverbs_major, 231);
	hw_free(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),	     cmocka_unit_test(test_link_down),
		cmocka_unit_test(test_owners),	     cmocka_unit_test(test_odd_links),
		cmocka_unit_test(test_vf),	     cmocka_unit_test(test_waiting_vf),
		cmocka_unit_test(test_vf_alone),     cmocka_unit_test(test_ports),
		cmocka_unit_test(test_many_ports),   cmocka_unit_test(test_software),
		cmocka_unit_test(test_uverbs),	     cmocka_unit_test(test_vf_master),
		cmocka_unit_test(test_vf_elsewhere), cmocka_unit_test(test_vf_unreadable),
		cmocka_unit_test(test_gid_table),    cmocka_unit_test(test_waiting_vf_is_as_usual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hw/ip.h"
#include "hw/netlink.h"
#include "hw/read.h"
#include "test_topo_machine.h"

static void assert_text(const struct hw_machine *machine, enum hw_ip_text which,
			const char *expected)
{
	_cleanup_free_ char *text = hw_ip_print(machine, which);

	assert_string_equal(text, expected);
}

/* What "text" gives when it is printed again, in the order of the text. */
static void assert_again(enum hw_ip_text which, const char *text, const char *expected,
			 unsigned int warnings)
{
	struct hw_machine *machine = xnew(struct hw_machine);

	hw_ip_parse(which, text, machine);
	assert_text(machine, which, expected);
	assert_int_equal(machine->n_warnings, warnings);
	hw_free(machine);
}

static void test_addresses(void **state)
{
	(void)state;
	assert_again(HW_IP_ADDRESSES,
		     "gpu0rdma0 10.1.0.5/32 scope global\n\neth0\tfe80::1/64 scope link extra\r\n"
		     "eth1 10.0.0.1",
		     "gpu0rdma0 10.1.0.5/32 scope global\neth0 fe80::1/64 scope link\n"
		     "eth1 10.0.0.1/32\n",
		     0);
	assert_again(HW_IP_ADDRESSES,
		     "eth0 10.0.0.1/33\neth0 10.0.0/8\neth0\neth0 fd00::1/129\n\xff 10.0.0.1/8\n"
		     "eth0 10.0.0.2/8\neth0 10.0.0.1/-1\n",
		     "eth0 10.0.0.2/8\n", 1);
}

static void test_routes(void **state)
{
	(void)state;
	assert_again(HW_IP_ROUTES,
		     "default via fe80::1 dev eth0 metric 100\n"
		     "default nexthop via 10.0.0.1 dev a nexthop via 10.0.0.2 dev b\n"
		     "10.1.0.0/21 dev gpu0rdma0 table 101 metric 10\n"
		     "unreachable default dev lo\n"
		     "-6 default dev eth1\n"
		     "10.0.0.7 dev eth0 proto kernel scope link src 10.0.0.1\n"
		     "10.3.0.0/16 via inet6 fe80::9 dev eth0\n"
		     "local 10.0.0.1 dev eth0\nbroadcast 10.0.0.255 dev eth0\n"
		     "blackhole 10.9.0.0/16\n"
		     "fd00::/8 dev eth0 table main\n",
		     "-6 default metric 100 via fe80::1 dev eth0\n"
		     "default nexthop via 10.0.0.1 dev a nexthop via 10.0.0.2 dev b\n"
		     "10.1.0.0/21 table 101 metric 10 dev gpu0rdma0\n"
		     "unreachable default dev lo\n"
		     "-6 default dev eth1\n"
		     "10.0.0.7/32 dev eth0\n"
		     "10.3.0.0/16 via fe80::9 dev eth0\n"
		     "unreachable 10.9.0.0/16\n"
		     "fd00::/8 dev eth0\n",
		     0);
	/* as "ip route" prints several next hops */
	assert_again(HW_IP_ROUTES,
		     "default proto static metric 5 \n\tnexthop via 10.0.0.1 dev a weight 1 \n"
		     "\tnexthop via 10.0.0.2 dev b weight 1 \n",
		     "default metric 5 nexthop via 10.0.0.1 dev a nexthop via 10.0.0.2 dev b\n", 0);
	assert_again(HW_IP_ROUTES,
		     "nexthop dev a\n10.0.0.0/8 via x dev a\n-6\nunreachable\n10.0.0.0/8 dev a "
		     "table 0\n10.0.0.0/8 dev a metric x\nfrom here\ndefault via 10.0.0.1\n",
		     "", 1);
}

static void test_rules(void **state)
{
	(void)state;
	assert_again(HW_IP_RULES,
		     "100: from 10.1.0.5 lookup 101\n"
		     "-6 100: from all to fd00::/8 iif eth0 oif eth1 lookup main\n"
		     "32767: from all lookup default\n",
		     "100: from 10.1.0.5 lookup 101\n"
		     "-6 100: from all to fd00::/8 iif eth0 oif eth1 lookup 254\n"
		     "32767: from all lookup 253\n",
		     0);
	assert_again(
		HW_IP_RULES,
		"100 from all lookup 1\n1: from all\nx: from all lookup 1\n1: from x lookup 1\n"
		"1: from 10.0.0.1 to fd00::1 lookup 1\n-6\n-6 1: from 10.0.0.1 lookup 1\n",
		"", 1);
}

/*
 * Rules for what only other packets have are left out; of those for more than can be told it is
 * known that they exist.
 */
static void test_partial_rules(void **state)
{
	static const char *const partial[] = {
		"100: not from all fwmark 0xca6c lookup 51820",
		"100: from all lookup main suppress_prefixlength 0",
		"100: from all lookup main suppress_ifgroup 1",
		"1000: from all lookup [l3mdev-table]",
		"100: from all uidrange 0-99 lookup 5",
		"100: from all tos 0x10 lookup 5",
		"100: from 10.0.0.1 goto 200",
		"100: from 10.0.0.1 unreachable",
		"100: from all blackhole",
		"100: from all prohibit",
		"partial",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(partial); i++) {
		_cleanup_free_ char *six = xasprintf("-6 %s\n", partial[i]);

		assert_again(HW_IP_RULES, partial[i], "partial\n", 0);
		if (!strstr(six, "10.0"))
			assert_again(HW_IP_RULES, six, "-6 partial\n", 0);
	}
	assert_again(HW_IP_RULES, "1: from all lookup 2\npartial\n-6 partial\npartial\n",
		     "1: from all lookup 2\npartial\n-6 partial\n", 0);
	assert_again(HW_IP_RULES,
		     "100: from all fwmark 0x1/0xff lookup 5\n100: from all ipproto udp lookup 5\n"
		     "100: from all sport 1-9 lookup 5\n100: from all dport 4791 lookup 5\n"
		     "100: from all tun_id 7 lookup 5\n",
		     "", 0);
}

static void test_neighbours(void **state)
{
	static const char good[] = "10.1.0.1 dev gpu0rdma0 lladdr 00:00:5e:00:53:01 PERMANENT\n"
				   "fe80::1 dev a lladdr 00:00:5e:00:53:02 REACHABLE\n";

	(void)state;
	assert_again(HW_IP_NEIGHBOURS, good, good, 0);
	assert_again(HW_IP_NEIGHBOURS, "10.1.0.1 dev a FAILED\nx dev a lladdr b c\n10.0.0.1\n", "",
		     1);
}

static void test_bounds(void **state)
{
	struct hw_machine *machine = xnew(struct hw_machine);
	struct buf b = { 0 };

	(void)state;
	for (size_t i = 0; i < HW_MAX_NEIGHBOURS + 10; i++)
		buf_str(&b, "10.1.0.1 dev a lladdr 00:00:5e:00:53:01 PERMANENT\n");
	hw_ip_parse(HW_IP_NEIGHBOURS, b.data, machine);
	assert_int_equal(machine->ip.n_neighbours, HW_MAX_NEIGHBOURS);
	assert_int_equal(machine->n_warnings, 1);
	assert_string_equal(machine->warnings[0].code, "ip-too-many");
	buf_done(&b);
	hw_free(machine);
}

/* Links: only what sysfs does not tell, only of links that it has. */
static void test_links(void **state)
{
	struct hw_machine *machine = read_machine(
		"sys/class/net/eth0 -> ../../devices/virtual/net/eth0\n"
		"sys/class/net/bond0 -> ../../devices/virtual/net/bond0\n"
		"sys/devices/virtual/net/eth0/mtu = 1500\n"
		"sys/devices/virtual/net/bond0/uevent = DEVTYPE=bond\n"
		"twinrail/links = bond0 kind veth\\neth0 kind veth master bond0 lower a lower "
		"b lower a\\nghost kind x\\nbond0 lower eth0\n");

	(void)state;
	assert_text(machine, HW_IP_LINKS,
		    "bond0 kind bond lower eth0\neth0 kind veth master bond0 lower a lower b\n");
	assert_int_equal(machine->n_warnings, 1); /* of what is not there: a PCI bus */
	assert_false(machine->ip.known);
	hw_free(machine);
}

/* Reading parts again: what others found stays, and a lost root changes nothing. */
static void test_read_again(void **state)
{
	char *dir = unpack("sys/class/net/eth0 -> ../../devices/virtual/net/eth0\n"
			   "sys/devices/virtual/net/eth0/mtu = 1500\n"
			   "twinrail/links = eth0 kind veth\n"
			   "twinrail/routes = default dev eth0\\nwrong\n");
	_cleanup_free_ char *mtu = xasprintf("%s/sys/devices/virtual/net/eth0/mtu", dir);
	struct hw_machine *machine = NULL;
	struct err err = { 0 };
	size_t warnings;

	(void)state;
	assert_int_equal(hw_read(dir, &machine, &err), 0);
	warnings = machine->n_warnings;
	assert_true(warnings >= 1);
	assert_int_equal(file_write_atomic(mtu, "9000\n", 5, 0600, 0, &err), 0);
	assert_int_equal(hw_read_again(dir, HW_PART_RDMA, machine, &err), 0);
	assert_int_equal(machine->netdevs[0].mtu, 1500);
	assert_int_equal(hw_read_again(dir, HW_PART_NET, machine, &err), 0);
	assert_int_equal(machine->netdevs[0].mtu, 9000);
	assert_string_or_null(machine->netdevs[0].kind, "veth");
	assert_int_equal(machine->n_warnings, warnings);
	assert_int_equal(machine->default_routes.n, 1);
	remove_tree(dir);
	assert_int_equal(hw_read_again("/nonexistent", HW_PART_ALL, machine, &err), -ENOENT);
	assert_string_or_null(machine->netdevs[0].kind, "veth");
	assert_int_equal(machine->n_warnings, warnings);
	hw_free(machine);
}

static struct hw_machine *with_routes(const char *routes, const char *rules)
{
	_cleanup_free_ char *text =
		xasprintf("sys/class/net/in0 -> ../../devices/virtual/net/in0\n"
			  "sys/class/net/vrf0 -> ../../devices/virtual/net/vrf0\n"
			  "sys/devices/virtual/net/in0/mtu = 1500\n"
			  "sys/devices/virtual/net/vrf0/mtu = 1500\n"
			  "twinrail/links = vrf0 kind vrf\\nin0 master vrf0\n"
			  "twinrail/addresses = in0 10.0.0.1/8 scope global\n"
			  "twinrail/routes = %s\ntwinrail/rules = %s\n",
			  routes, rules);

	return read_machine(text);
}

static void assert_default(const char *routes, const char *rules, const char *expected)
{
	struct hw_machine *machine = with_routes(routes, rules);
	struct strlist names = { 0 };

	strlist_split(&names, expected, ' ');
	assert_true(machine->ip.known);
	assert_true(strlist_equal(&machine->default_routes, &names));
	strlist_done(&names);
	hw_free(machine);
}

/* Which links the node itself uses; hardware facts are not needed for it. */
static void test_default_routes(void **state)
{
	(void)state;
	assert_default("10.0.0.0/8 dev a", "", "");
	assert_default("default dev b metric 900\\ndefault via 10.0.0.1 dev a metric 100", "",
		       "a b");
	assert_default("default nexthop via 10.0.0.1 dev b nexthop via 10.0.0.2 dev a", "", "a b");
	assert_default("default via fe80::1 dev a", "", "a");
	assert_default("unreachable default dev lo\\n-6 unreachable default dev lo", "", "");
	assert_default("default dev lo", "", "");
	assert_default("unreachable default dev a", "", "");
	assert_default("0.0.0.0/1 dev b\\n128.0.0.0/1 dev a\\n10.0.0.0/2 dev c", "", "a b");
	assert_default("2000::/3 dev a\\nfc00::/7 dev b", "", "a");
	/* the table of one rail, of a rule for all packets, of a VRF */
	assert_default("default dev a table 101", "100: from 10.0.0.1 lookup 101", "");
	assert_default("default dev a table 101", "100: from all iif b lookup 101", "");
	assert_default("default dev a table 101", "-6 100: from all lookup 101", "");
	assert_default("default dev a table 101", "100: from all lookup 101", "a");
	assert_default("default dev a table default", "", "a");
	assert_default("default dev in0 table 77", "", "in0");
}

/* The printed text is sorted: the order in which the kernel tells does not matter. */
static void test_order(void **state)
{
	struct hw_machine *a = with_routes("10.2.0.0/16 dev x\\n10.1.0.0/16 dev y", "");
	struct hw_machine *b = with_routes("10.1.0.0/16 dev y\\n10.2.0.0/16 dev x", "");

	(void)state;
	assert_text(a, HW_IP_ROUTES, "10.1.0.0/16 dev y\n10.2.0.0/16 dev x\n");
	assert_text(b, HW_IP_ROUTES, "10.1.0.0/16 dev y\n10.2.0.0/16 dev x\n");
	hw_free(a);
	hw_free(b);
}

/* The kernel goes through rules by their priority, whatever order they were recorded in. */
static void test_order_of_rules(void **state)
{
	static const char *const lines[] = {
		"0: from all lookup 255",
		"100: from 10.1.0.5 lookup 101",
		"100: from 10.1.0.6 lookup 101",
		"100: from 10.1.0.6 iif eth1 lookup 101",
		"100: from 10.1.0.6 to 10.2.0.0/16 lookup 101",
		"32766: from all lookup 254",
		"-6 0: from all lookup 255",
		"-6 32766: from all lookup 254",
	};
	size_t n = ARRAY_SIZE(lines);

	(void)state;
	for (int turned = 0; turned < 2; turned++) {
		struct buf recording = { 0 }, expected = { 0 };
		struct hw_machine *machine;

		buf_str(&recording, "twinrail/rules = ");
		for (size_t i = 0; i < n; i++) {
			buf_printf(&recording, "%s%s", i ? "\\n" : "",
				   lines[turned ? n - 1 - i : i]);
			buf_printf(&expected, "%s\n", lines[i]);
		}
		buf_str(&recording, "\n");
		machine = read_machine(recording.data);
		assert_text(machine, HW_IP_RULES, expected.data);
		hw_free(machine);
		buf_done(&recording);
		buf_done(&expected);
	}
}

static int run(const char *command)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execlp("sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
									       : -1;
}

static void add_link(struct hw_machine *machine, const char *name, int ifindex, bool nic)
{
	*array_push(machine->netdevs, machine->n_netdevs, machine->cap_netdevs) =
		(struct hw_netdev){ .name = xstrdup(name),
				    .bus_id = nic ? xstrdup("0000:01:00.0") : NULL,
				    .ifindex = ifindex };
}

/* Root of a network namespace of its own; without root's rights in a user namespace. */
static bool enter_namespace(void)
{
	_cleanup_free_ char *map = xasprintf("0 %u 1", geteuid());
	_cleanup_close_ int fd = -1;

	if (unshare(CLONE_NEWNET) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map);
}

/* In a network namespace of its own: what the kernel tells there, as text, to "fd". */
static void show_kernel(int fd, const char *setup, int ifindex)
{
	struct hw_machine *machine = xnew(struct hw_machine);
	struct buf b = { 0 };

	if (!enter_namespace() || run("ip link add va type veth") != 0)
		_exit(77);
	if (run(setup) != 0)
		_exit(1);
	add_link(machine, "lo", 1, false);
	add_link(machine, "mv0", HW_UNKNOWN, false);
	add_link(machine, "va", ifindex, true);
	machine->part = HW_PART_IP;
	hw_netlink_read(machine);
	for (enum hw_ip_text i = 0; i < HW_IP_TEXTS; i++) {
		_cleanup_free_ char *text = hw_ip_print(machine, i);

		buf_str(&b, text);
	}
	buf_printf(&b, "known %d incomplete %u warnings %zu %s\n", machine->ip.known,
		   machine->incomplete, machine->n_warnings,
		   machine->n_warnings ? machine->warnings[0].code : "");
	for (size_t at = 0; at < b.len;) {
		ssize_t n = write(fd, b.data + at, b.len - at);

		if (n < 0)
			_exit(1);
		at += (size_t)n;
	}
	buf_done(&b);
	hw_free(machine);
	_exit(0);
}

/* NULL: this machine allows no namespaces, or has no veth or no "ip". */
static char *kernel_says(const char *setup, int ifindex)
{
	struct buf b = { 0 };
	char text[4096];
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		show_kernel(fds[1], setup, ifindex);
	close(fds[1]);
	while ((n = read(fds[0], text, sizeof(text))) > 0)
		buf_add(&b, text, (size_t)n);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		buf_done(&b);
		return NULL;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("status %#x", status);
	return buf_take(&b);
}

/* An emulator of another processor passes on what it knows of rtnetlink only. */
static bool is_emulated(void)
{
	struct nl_sock *sk = nl_socket_alloc();
	const struct fib_rule_hdr header = { 0 };
	int r;

	assert_int_equal(nl_connect(sk, NETLINK_ROUTE), 0);
	r = nl_send_simple(sk, RTM_GETRULE, NLM_F_DUMP, (void *)(uintptr_t)&header, sizeof(header));
	nl_socket_free(sk);
	return r == -NLE_OPNOTSUPP;
}

static void test_kernel(void **state)
{
	_cleanup_free_ char *text = kernel_says(
		"set -e; exec 2>/dev/null; ip link set veth0 name vb\n"
		"ip link set va addrgenmode none; ip link set vb addrgenmode none\n"
		"ip link add mv0 link va type macvlan; ip link set mv0 addrgenmode none\n"
		"ip link set va up; ip link set vb up; ip link set mv0 up\n"
		"ip addr add 10.1.0.5/32 dev va; ip addr add 10.2.0.1/24 dev vb\n"
		"ip addr add fd00::5/64 dev va nodad\n"
		"ip route add default nexthop via 10.2.0.2 dev vb nexthop dev va\n"
		"ip route add default via 10.2.0.9 dev vb table 101 metric 7\n"
		"ip route add unreachable 10.99.0.0/16\n"
		"ip -6 route add default via fd00::1 dev va metric 1024\n"
		"ip rule add from 10.1.0.5 lookup 101 pref 100\n"
		"ip rule add fwmark 1 lookup 50 pref 101\n"
		"ip rule add lookup 60 suppress_prefixlength 0 pref 102\n"
		"ip -6 rule add to fd00::/8 iif va lookup 600 pref 7\n"
		"ip neigh add 10.1.0.9 lladdr 02:00:00:00:00:01 dev va nud permanent\n"
		"ip neigh add 10.2.0.9 lladdr 02:00:00:00:00:02 dev vb nud permanent\n"
		"ip neigh add 10.3.0.9 lladdr 02:00:00:00:00:03 dev mv0 nud permanent\n",
		HW_UNKNOWN);

	(void)state;
	if (!text || is_emulated())
		skip();
	/* unsorted as netlink.c leaves it: each line is looked for */
	static const char *const lines[] = {
		"va 10.1.0.5/32 scope global\n",
		"va fd00::5/64 scope global\n",
		"vb 10.2.0.1/24 scope global\n",
		"default nexthop via 10.2.0.2 dev vb nexthop dev va\n",
		"default table 101 metric 7 via 10.2.0.9 dev vb\n",
		"unreachable 10.99.0.0/16\n",
		"-6 default metric 1024 via fd00::1 dev va\n",
		"100: from 10.1.0.5 lookup 101\n",
		"-6 7: from all to fd00::/8 iif va lookup 600\n",
		"32766: from all lookup 254\n",
		"10.1.0.9 dev va lladdr 02:00:00:00:00:01 PERMANENT\n",
		"10.3.0.9 dev mv0 lladdr 02:00:00:00:00:03 PERMANENT\n",
		"va kind veth\n",
		"mv0 kind macvlan lower va\n",
		"\npartial\n",
		"known 1 incomplete 0 warnings 0 \n",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strstr(text, lines[i]))
			fail_msg("no line %sin\n%s", lines[i], text);
	assert_null(strstr(text, "lookup 50\n"));
	assert_null(strstr(text, "lookup 60\n"));
	assert_null(strstr(text, "-6 partial"));
	assert_null(strstr(text, "10.2.0.9 dev vb lladdr"));
	assert_null(strstr(text, "table 255"));
}

/* Routes that name a next hop object and nothing else. */
static void test_nexthop_objects(void **state)
{
	_cleanup_free_ char *text = kernel_says(
		"exec 2>/dev/null; for i in lo va veth0; do ip link set $i up; done\n"
		"echo 0 > /proc/sys/net/ipv4/nexthop_compat_mode || exit 77\n"
		"ip addr add 10.2.0.1/24 dev va\n"
		"for i in 1 2 3 4 5 6 7 8 9; do\n" /* the carrier comes a little later */
		"ip nexthop add id 1 via 10.2.0.3 dev va && break; sleep 0.1; done; set -e\n"
		"ip nexthop add id 2 via 10.2.0.4 dev va\n"
		"ip nexthop add id 3 group 1/2; ip nexthop add id 4 blackhole\n"
		"ip route add default nhid 3; ip route add 10.77.0.0/16 nhid 1\n"
		"ip route add 10.78.0.0/16 nhid 4\n",
		HW_UNKNOWN);

	(void)state;
	if (!text || is_emulated())
		skip();
	assert_non_null(strstr(text, "default nexthop via 10.2.0.3 dev va nexthop via 10.2.0.4 dev "
				     "va\n"));
	assert_non_null(strstr(text, "10.77.0.0/16 via 10.2.0.3 dev va\n"));
	assert_non_null(strstr(text, "unreachable 10.78.0.0/16"));
	assert_non_null(strstr(text, "known 1 incomplete 0 warnings 0"));
}

/* sysfs shows other links than rtnetlink: the addresses would be put on the wrong ones. */
static void test_other_namespace(void **state)
{
	_cleanup_free_ char *text = kernel_says("ip addr add 10.0.0.1/8 dev va", 4711);

	(void)state;
	if (!text)
		skip();
	assert_string_equal(text, "known 0 incomplete 0 warnings 1 network-namespace\n");
}

static const char *before_addresses; /* run once, before addresses are asked for */

/* Instead of libnl's. */
int nl_send_auto(struct nl_sock *sk, struct nl_msg *msg)
{
	const char *command = before_addresses;

	if (command && nlmsg_hdr(msg)->nlmsg_type == RTM_GETADDR) {
		before_addresses = NULL;
		if (run(command) != 0)
			_exit(1);
	}
	nl_complete_msg(sk, msg);
	return nl_send(sk, msg);
}

/* What a reading said that was torn is not kept, neither what was left out nor what is no more. */
static void test_torn(void **state)
{
	_cleanup_free_ char *text = NULL;

	(void)state;
	before_addresses = "exec 2>/dev/null; set -e; ip link set va nomaster; ip link del mv0\n"
			   "ip link add link veth0 name mv0 type macvlan\n"
			   "ip link add late type veth; ip addr add 10.9.0.1/24 dev late\n";
	text = kernel_says("exec 2>/dev/null; set -e; ip link add br0 type bridge\n"
			   "ip link add vb type veth; ip link set va master br0\n"
			   "ip link add mv0 link vb type macvlan\n",
			   HW_UNKNOWN);
	before_addresses = NULL;
	if (!text || is_emulated())
		skip();
	assert_non_null(strstr(text, "late 10.9.0.1/24 scope global\n"));
	assert_non_null(strstr(text, "va kind veth\n"));
	assert_non_null(strstr(text, "mv0 kind macvlan lower veth0\n"));
	assert_non_null(strstr(text, "known 1 incomplete 0 warnings 0"));
}

/* A recording of a recording says the same: links and rules that only rtnetlink tells of. */
static void test_recorded_again(void **state)
{
	static const char links[] = "eth0 kind ipoib master bond0 lower ib0 lower ib1\n";
	static const char rules[] = "1: from all lookup 2\n-6 partial\n";
	const struct hw_snapshot_options options = { .raw = true };
	char *dir = unpack("sys/class/net/eth0 -> ../../devices/virtual/net/eth0\n"
			   "sys/devices/virtual/net/eth0/lower_ib0 -> x\n"
			   "sys/devices/virtual/net/eth0/mtu = 1500\n"
			   "twinrail/addresses =\ntwinrail/routes =\n"
			   "twinrail/links = eth0 kind ipoib master bond0 lower ib1\n"
			   "twinrail/rules = 1: from all lookup 2\\n-6 partial\n");
	_cleanup_free_ char *text = NULL;
	struct hw_machine *machine = NULL;
	struct err err = { 0 };
	size_t len;

	(void)state;
	assert_int_equal(hw_read(dir, &machine, &err), 0);
	assert_text(machine, HW_IP_LINKS, links);
	assert_text(machine, HW_IP_RULES, rules);
	assert_true(machine->ip.partial_rules[1]);
	hw_free(machine);
	assert_int_equal(hw_snapshot_record(dir, &options, &text, &len, &err), 0);
	remove_tree(dir);
	machine = read_machine(text);
	assert_text(machine, HW_IP_LINKS, links);
	assert_text(machine, HW_IP_RULES, rules);
	assert_false(machine->ip.partial_rules[0]);
	assert_true(machine->ip.partial_rules[1]);
	hw_free(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),	cmocka_unit_test(test_routes),
		cmocka_unit_test(test_rules),		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_partial_rules),	cmocka_unit_test(test_torn),
		cmocka_unit_test(test_recorded_again),	cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_links),		cmocka_unit_test(test_read_again),
		cmocka_unit_test(test_default_routes),	cmocka_unit_test(test_order),
		cmocka_unit_test(test_order_of_rules),	cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_nexthop_objects), cmocka_unit_test(test_other_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hw/watch.h"
#include "test_topo_machine.h"

#define NIC (HW_PART_NET | HW_PART_IP | HW_PART_RDMA)

/* A uevent as the kernel writes it; "rest": more of its strings, each ended by '\n'. */
static unsigned int uevent(const char *action, const char *path, const char *subsystem,
			   const char *rest, char cause[HW_CAUSE_MAX])
{
	char *text = xasprintf("%s@%s\nACTION=%s\nDEVPATH=%s\nSUBSYSTEM=%s\nSEQNUM=7\n%s", action,
			       path, action, path, subsystem, rest);
	size_t len = strlen(text);
	unsigned int parts;

	for (size_t i = 0; i < len; i++)
		if (text[i] == '\n')
			text[i] = '\0';
	parts = hw_watch_uevent(text, len, cause);
	free(text);
	return parts;
}

static void test_uevents(void **state)
{
	static const struct {
		const char *path, *subsystem, *rest;
		unsigned int parts;
	} cases[] = {
		{ "/devices/pci0000:00/0000:03:00.0", "pci", "", HW_PART_ALL & ~HW_PART_NODE },
		{ "/devices/pci0000:00/0000:03:00.0/net/eth0", "net", "", NIC },
		{ "/devices/virtual/net/veth1", "net", "", HW_PART_NET | HW_PART_IP },
		{ "/devices/pci0000:00/0000:03:00.0/infiniband/mlx5_0", "infiniband", "",
		  HW_PART_RDMA },
		{ "/devices/x/infiniband_verbs/uverbs0", "infiniband_verbs", "", HW_PART_RDMA },
		{ "/devices/pci0000:00/0000:03:00.0/mlx5_core.sf.2", "auxiliary", "", NIC },
		{ "/devices/virtual/misc/rdma_cm", "misc", "DEVNAME=infiniband/rdma_cm\n",
		  HW_PART_RDMA },
		{ "/devices/virtual/misc/fuse", "misc", "DEVNAME=fuse\n", 0 },
		{ "/devices/virtual/misc/fuse", "misc", "", 0 },
		{ "/devices/x/drm/renderD128", "drm", "", HW_PART_GPU },
		{ "/module/nvidia_peermem", "module", "", HW_PART_NODE | HW_PART_GPU },
		{ "/devices/system/node/node1", "node", "", HW_PART_NODE },
		{ "/devices/virtual/block/loop0", "block", "", 0 },
		{ "/devices/virtual/tty/tty1", "tty", "", 0 },
		{ "/kernel/slab/x/cgroup/y", "cgroup", "", 0 },
		{ "/devices/pci0000:00/0000:03:00.0/net/eth0/queues/rx-0", "queues", "", 0 },
	};
	char cause[HW_CAUSE_MAX] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (uevent("add", cases[i].path, cases[i].subsystem, cases[i].rest, cause) !=
		    cases[i].parts)
			fail_msg("%s", cases[i].path);
	assert_true(uevent("remove", "/devices/pci0000:00/0000:03:00.0", "pci", "", cause));
	assert_string_equal(cause, "uevent remove pci 0000:03:00.0");
}

/* What is no message of the kernel. */
static void test_bad_uevents(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} bad[] = {
#define BAD(text) { text, sizeof(text) }
		BAD("libudev\0SUBSYSTEM=pci\0ACTION=add\0DEVPATH=/x"),
		BAD("add@/x\0ACTION=add\0SUBSYSTEM=pci"),
		BAD("add@/x\0ACTION=add\0DEVPATH=/x"),
		BAD("@"),
		BAD(""),
		{ "", 0 },
	};
	char cause[HW_CAUSE_MAX] = "", big[4096];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(hw_watch_uevent(bad[i].text, bad[i].len, cause), 0);
	/* not ended by NUL: the last string would have no end */
	memset(big, '@', sizeof(big));
	assert_int_equal(hw_watch_uevent(big, sizeof(big), cause), 0);
	/* long words are cut */
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(uevent("add", big, "pci", "", cause), HW_PART_ALL & ~HW_PART_NODE);
	assert_true(strlen(cause) < HW_CAUSE_MAX);
}

static struct nl_msg *link_message(int type, unsigned char family, unsigned int flags,
				   const char *kind)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, 0);
	struct ifinfomsg ifi = { .ifi_family = family, .ifi_index = 7, .ifi_flags = flags };
	struct nlattr *info;

	assert_int_equal(nlmsg_append(msg, &ifi, sizeof(ifi), NLMSG_ALIGNTO), 0);
	nla_put_string(msg, IFLA_IFNAME, "eth7");
	info = kind ? nla_nest_start(msg, IFLA_LINKINFO) : NULL;
	if (kind) {
		nla_put_string(msg, IFLA_INFO_KIND, kind);
		nla_nest_end(msg, info);
	}
	return msg;
}

/* Takes over the message; every shorter one must be read without harm, too. */
static unsigned int parts_of(struct nl_msg *msg, char cause[HW_CAUSE_MAX])
{
	const struct nlmsghdr *h = nlmsg_hdr(msg);
	unsigned int events = 0, parts;
	char other[HW_CAUSE_MAX];

	for (size_t len = 0; len < h->nlmsg_len; len++) {
		struct nlmsghdr *cut = xmalloc(h->nlmsg_len);

		memcpy(cut, h, h->nlmsg_len);
		assert_int_equal(hw_watch_rtnetlink(cut, len, &events, other), 0);
		if (len >= sizeof(*cut)) {
			cut->nlmsg_len = (uint32_t)len;
			hw_watch_rtnetlink(cut, len, &events, other);
		}
		free(cut);
	}
	events = 0;
	parts = hw_watch_rtnetlink(h, h->nlmsg_len, &events, cause);
	assert_int_equal(events, parts != 0);
	nlmsg_free(msg);
	return parts;
}

static void test_links(void **state)
{
	char cause[HW_CAUSE_MAX];

	(void)state;
	assert_int_equal(parts_of(link_message(RTM_NEWLINK, AF_UNSPEC, 0, NULL), cause), NIC);
	assert_string_equal(cause, "link eth7");
	assert_int_equal(parts_of(link_message(RTM_DELLINK, AF_UNSPEC, 0, "ipvlan"), cause), NIC);
	assert_string_equal(cause, "link eth7 removed");
	assert_int_equal(parts_of(link_message(RTM_NEWLINK, AF_UNSPEC, 0, "bond"), cause), NIC);
	assert_int_equal(parts_of(link_message(RTM_NEWLINK, AF_UNSPEC, 0, "veth"), cause),
			 HW_PART_NET | HW_PART_IP);
	assert_int_equal(parts_of(link_message(RTM_NEWLINK, AF_UNSPEC, IFF_LOOPBACK, NULL), cause),
			 0);
	assert_int_equal(parts_of(link_message(RTM_NEWLINK, AF_BRIDGE, 0, NULL), cause), 0);
	assert_int_equal(parts_of(link_message(RTM_NEWNEIGH, AF_INET, 0, NULL), cause), 0);
}

static unsigned int route_parts(int type, unsigned char family, unsigned char kind,
				unsigned int flags, unsigned char dst_len, char cause[HW_CAUSE_MAX])
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, 0);
	struct rtmsg rtm = {
		.rtm_family = family, .rtm_type = kind, .rtm_flags = flags, .rtm_dst_len = dst_len
	};

	assert_int_equal(nlmsg_append(msg, &rtm, sizeof(rtm), NLMSG_ALIGNTO), 0);
	return parts_of(msg, cause);
}

static void test_routes(void **state)
{
	char cause[HW_CAUSE_MAX];
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_DELADDR, 0);
	struct ifaddrmsg ifa = { .ifa_family = AF_INET, .ifa_index = 0x7fffffff };

	(void)state;
	assert_int_equal(route_parts(RTM_NEWROUTE, AF_INET, RTN_UNICAST, 0, 0, cause), HW_PART_IP);
	assert_string_equal(cause, "default route");
	assert_int_equal(route_parts(RTM_DELROUTE, AF_INET6, RTN_UNICAST, 0, 64, cause),
			 HW_PART_IP);
	assert_string_equal(cause, "route removed");
	assert_int_equal(route_parts(RTM_NEWROUTE, AF_INET6, RTN_UNICAST, RTM_F_CLONED, 128, cause),
			 0);
	assert_int_equal(route_parts(RTM_NEWROUTE, AF_INET, RTN_LOCAL, 0, 32, cause), 0);
	assert_int_equal(route_parts(RTM_NEWROUTE, RTNL_FAMILY_IPMR, RTN_MULTICAST, 0, 32, cause),
			 0);
	assert_int_equal(nlmsg_append(msg, &ifa, sizeof(ifa), NLMSG_ALIGNTO), 0);
	assert_int_equal(parts_of(msg, cause), HW_PART_IP | HW_PART_RDMA);
	assert_string_equal(cause, "address of a link that is gone");
	assert_int_equal(parts_of(nlmsg_alloc_simple(RTM_NEWRULE, 0), cause), HW_PART_IP);
	assert_int_equal(parts_of(nlmsg_alloc_simple(RTM_DELNEXTHOP, 0), cause), HW_PART_IP);
}

/* A message that claims more than there is, and one whose attributes do. */
static void test_lengths(void **state)
{
	struct nl_msg *msg = link_message(RTM_NEWLINK, AF_UNSPEC, 0, NULL);
	struct nlmsghdr *h = nlmsg_hdr(msg);
	char cause[HW_CAUSE_MAX];
	unsigned int events = 0;
	uint32_t len = h->nlmsg_len;

	(void)state;
	h->nlmsg_len = 0xffffffff;
	assert_int_equal(hw_watch_rtnetlink(h, len, &events, cause), 0);
	h->nlmsg_len = 0;
	assert_int_equal(hw_watch_rtnetlink(h, len, &events, cause), 0);
	h->nlmsg_len = len;
	nlmsg_attrdata(h, sizeof(struct ifinfomsg))->nla_len = 0xffff;
	assert_int_equal(hw_watch_rtnetlink(h, len, &events, cause), NIC);
	nlmsg_free(msg);
}

/* The watch on this machine: another process cannot speak for the kernel. */
struct seen {
	struct loop *loop;
	struct hw_watch *watch;
	unsigned int told;
};

static void on_change(const struct hw_change *change, void *data)
{
	struct seen *seen = data;

	(void)change;
	seen->told++;
}

static void send_to_group(int protocol, unsigned int groups, const void *data, size_t len)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
	struct msghdr msg = {
		.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov, .msg_iovlen = 1
	};

	assert_true(fd >= 0);
	/* refused without rights: then there is nothing to receive, which is fine as well */
	if (sendmsg(fd, &msg, 0) < 0)
		print_message("# sending is not allowed here\n");
	close(fd);
}

static void test_senders(void **state)
{
	static const char text[] =
		"add@/devices/x\0ACTION=add\0DEVPATH=/devices/x\0SUBSYSTEM=infiniband";
	struct seen seen = { 0 };
	struct err err = { 0 };
	char cause[HW_CAUSE_MAX];

	(void)state;
	assert_int_equal(hw_watch_uevent(text, sizeof(text), cause), HW_PART_RDMA);
	assert_int_equal(loop_new(&seen.loop, &err), 0);
	if (hw_watch_new(seen.loop, on_change, &seen, &seen.watch, &err) < 0)
		fail_msg("%s", err.msg);
	send_to_group(NETLINK_KOBJECT_UEVENT, 1, text, sizeof(text));
	assert_false(hw_watch_pending(seen.watch) & HW_PART_RDMA);
	hw_watch_free(seen.watch);
	loop_free(seen.loop);
}

static int rdma_errno; /* asking for RDMA netlink gives it; 0: another socket takes its place */
static unsigned int rdma_asked;

/* Instead of the library's: there is an RDMA core. */
int access(const char *path, int mode)
{
	return streq(path, "/sys/class/infiniband")
		       ? 0
		       : (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		rdma_asked++;
		errno = rdma_errno;
		if (rdma_errno)
			return -1;
		protocol = NETLINK_ROUTE;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

static void stop(void *data)
{
	loop_quit(data, 0);
}

/* An address of the loopback device of a network namespace that is this process's own. */
static void change_address(unsigned int n)
{
	_cleanup_free_ char *address = xasprintf("127.0.1.%u/8", n + 1);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execlp("ip", "ip", "addr", "add", address, "dev", "lo", (char *)NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		_exit(77);
}

/* How often the socket is asked for when the kernel tells of something twice. */
static unsigned int asked_when_told(int first_errno, int second_errno)
{
	struct seen seen = { 0 };
	struct loop_timer *timer;
	struct err err = { 0 };

	rdma_asked = 0;
	rdma_errno = first_errno;
	assert_int_equal(loop_new(&seen.loop, &err), 0);
	if (hw_watch_new(seen.loop, on_change, &seen, &seen.watch, &err) < 0)
		fail_msg("%s", err.msg);
	timer = loop_timer_new(seen.loop, stop, seen.loop);
	for (unsigned int i = 0; i < 2; i++) {
		rdma_errno = second_errno;
		change_address(i);
		loop_timer_set(timer, HW_WATCH_LIMIT_US + 100 * 1000);
		assert_int_equal(loop_run(seen.loop), 0);
	}
	if (seen.told != 2)
		_exit(78);
	loop_timer_free(timer);
	hw_watch_free(seen.watch);
	loop_free(seen.loop);
	return rdma_asked;
}

/* The kernel tells what happens in a namespace of one's own; 77: there is none. */
static unsigned int asked_in_namespace(int first_errno, int second_errno)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) < 0)
			_exit(77);
		_exit((int)asked_when_told(first_errno, second_errno));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return (unsigned int)WEXITSTATUS(status);
}

/* One failure that goes away does not end the events of RDMA devices. */
static void test_rdma_asked(void **state)
{
	(void)state;
	if (asked_in_namespace(0, 0) == 77)
		skip();
	assert_int_equal(asked_in_namespace(0, 0), 1);
	assert_int_equal(asked_in_namespace(EMFILE, 0), 2);
	assert_int_equal(asked_in_namespace(EMFILE, ENOBUFS), 3);
	assert_int_equal(asked_in_namespace(EPROTONOSUPPORT, 0), 1);
	assert_int_equal(asked_in_namespace(EMFILE, EPROTONOSUPPORT), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uevents),	   cmocka_unit_test(test_bad_uevents),
		cmocka_unit_test(test_links),	   cmocka_unit_test(test_routes),
		cmocka_unit_test(test_lengths),	   cmocka_unit_test(test_senders),
		cmocka_unit_test(test_rdma_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Prints what the kernel tells user space, one line an event, as soon as it arrives:
 *	SECONDS.MICROSECONDS uevent ACTION SUBSYSTEM DEVPATH
 *	SECONDS.MICROSECONDS link|addr|route new|del ...
 * The time is the wall clock, as in the agent's log.
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <net/if.h> /* before linux/if.h, which then leaves out what is here */

#include <linux/if.h>

static char buf[256 * 1024];

static int netlink_open(int protocol, unsigned int groups)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = groups };
	int size = 4 << 20;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		err(1, "netlink socket of protocol %d", protocol);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		err(1, "buffer of the netlink socket");
	return fd;
}

static void print_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	printf("%lld.%06ld ", (long long)ts.tv_sec, ts.tv_nsec / 1000);
}

/* "add@/devices/...", then NAME=VALUE strings. */
static void print_uevent(const char *text, size_t n)
{
	const char *end = text + n, *subsystem = "-", *at = strchr(text, '@');

	for (const char *p = text; p < end; p += strlen(p) + 1)
		if (strncmp(p, "SUBSYSTEM=", 10) == 0)
			subsystem = p + 10;
	if (at)
		printf("uevent %.*s %s %s\n", (int)(at - text), text, subsystem, at + 1);
}

static const char *link_name(const struct nlmsghdr *h, const struct ifinfomsg *info)
{
	int n = (int)IFLA_PAYLOAD(h);

	for (const struct rtattr *a = IFLA_RTA(info); RTA_OK(a, n); a = RTA_NEXT(a, n))
		if (a->rta_type == IFLA_IFNAME)
			return RTA_DATA(a);
	return "-";
}

static void print_route_message(const struct nlmsghdr *h)
{
	const struct ifinfomsg *info = NLMSG_DATA(h);
	const struct ifaddrmsg *addr = NLMSG_DATA(h);
	const struct rtmsg *route = NLMSG_DATA(h);
	char name[IF_NAMESIZE];

	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		printf("link %s %s %s %s\n", h->nlmsg_type == RTM_NEWLINK ? "new" : "del",
		       link_name(h, info), info->ifi_flags & IFF_UP ? "up" : "down",
		       info->ifi_flags & IFF_LOWER_UP ? "carrier" : "no-carrier");
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		printf("addr %s %s\n", h->nlmsg_type == RTM_NEWADDR ? "new" : "del",
		       if_indextoname(addr->ifa_index, name) ? name : "-");
		break;
	default:
		printf("route %s /%u\n", h->nlmsg_type == RTM_NEWROUTE ? "new" : "del",
		       route->rtm_dst_len);
	}
}

static void receive(int fd, int is_route)
{
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, 0);
	int left = (int)n;

	if (n < 0)
		err(1, "events were lost");
	buf[n] = '\0';
	if (!is_route) {
		print_time();
		print_uevent(buf, (size_t)n);
		return;
	}
	for (const struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		print_time();
		print_route_message(h);
	}
}

int main(void)
{
	struct pollfd fds[2] = {
		{ .fd = netlink_open(NETLINK_KOBJECT_UEVENT, 1), .events = POLLIN },
		{ .fd = netlink_open(NETLINK_ROUTE, RTMGRP_LINK | RTMGRP_IPV4_IFADDR |
							    RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
							    RTMGRP_IPV6_ROUTE),
		  .events = POLLIN },
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	while (poll(fds, 2, -1) > 0)
		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				receive(fds[i].fd, i == 1);
	return 1;
}

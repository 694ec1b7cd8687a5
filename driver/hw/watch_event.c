// SPDX-License-Identifier: Apache-2.0
/* Which parts of a machine one message of the kernel can have changed. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/watch.h"

/* A link is also where addresses are; its state is in the RDMA port's, its name in the GIDs. */
#define PARTS_LINK (HW_PART_NET | HW_PART_IP)
#define PARTS_NIC (PARTS_LINK | HW_PART_RDMA)

static const struct {
	const char *subsystem;
	unsigned int parts;
} subsystems[] = {
	/* a driver that comes or goes takes its links, RDMA devices and GPUs with it */
	{ "pci", HW_PART_ALL & ~HW_PART_NODE },
	{ "auxiliary", PARTS_NIC }, /* subfunctions */
	{ "virtio", PARTS_NIC },
	{ "infiniband", HW_PART_RDMA },
	{ "infiniband_verbs", HW_PART_RDMA },
	{ "drm", HW_PART_GPU },
	{ "kfd", HW_PART_GPU },
	{ "module", HW_PART_NODE | HW_PART_GPU },
	{ "node", HW_PART_NODE },
	{ "cpu", HW_PART_NODE },
};

/* The value of "KEY=" in a uevent: strings that end with NUL; NULL without one. */
static const char *value_of(const char *message, size_t len, const char *key)
{
	size_t n = strlen(key);

	for (const char *s = message; s < message + len; s += strlen(s) + 1)
		if (strncmp(s, key, n) == 0)
			return s + n;
	return NULL;
}

static unsigned int parts_of(const char *subsystem, const char *path, const char *name)
{
	if (streq(subsystem, "net"))
		return starts_with(path, "/devices/virtual/") ? PARTS_LINK : PARTS_NIC;
	if (streq(subsystem, "misc")) /* the only one with a device that is handed out */
		return name && streq(name, "infiniband/rdma_cm") ? HW_PART_RDMA : 0;
	for (size_t i = 0; i < ARRAY_SIZE(subsystems); i++)
		if (streq(subsystem, subsystems[i].subsystem))
			return subsystems[i].parts;
	return 0;
}

unsigned int hw_watch_uevent(const void *message, size_t len, char cause[HW_CAUSE_MAX])
{
	const char *text = message, *subsystem, *path, *action;
	unsigned int parts;

	/* The kernel's begin with "ACTION@DEVPATH"; those of udev with "libudev". */
	if (len == 0 || text[len - 1] != '\0' || !strchr(text, '@'))
		return 0;
	subsystem = value_of(text, len, "SUBSYSTEM=");
	path = value_of(text, len, "DEVPATH=");
	action = value_of(text, len, "ACTION=");
	if (!subsystem || !path || !action)
		return 0;
	parts = parts_of(subsystem, path, value_of(text, len, "DEVNAME="));
	if (parts)
		snprintf(cause, HW_CAUSE_MAX, "uevent %.10s %.16s %.50s", action, subsystem,
			 strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	return parts;
}

/*
 * Links whose state is that of an RDMA port or which have GIDs of their own: what a driver made
 * without a kind, and what runs on such a link.  Others are of pods and tunnels.
 */
static bool may_be_nic(const char *kind)
{
	static const char *const kinds[] = { "",       "vlan",	"macvlan", "macvtap", "ipvlan",
					     "ipvtap", "ipoib", "bond",	   "team" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (streq(kind, kinds[i]))
			return true;
	return false;
}

static unsigned int on_link(struct nlmsghdr *h, char cause[HW_CAUSE_MAX])
{
	struct nlattr *tb[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];
	char name[IFNAMSIZ] = "", kind[32] = "";
	const struct ifinfomsg *ifi;

	if (nlmsg_parse(h, sizeof(*ifi), tb, IFLA_MAX, NULL) < 0)
		return PARTS_NIC;
	ifi = nlmsg_data(h);
	/* AF_BRIDGE: the forwarding of a port of a bridge */
	if (ifi->ifi_family != AF_UNSPEC || (ifi->ifi_flags & IFF_LOOPBACK))
		return 0;
	if (tb[IFLA_IFNAME])
		nla_strlcpy(name, tb[IFLA_IFNAME], sizeof(name));
	if (tb[IFLA_LINKINFO] &&
	    nla_parse_nested(info, IFLA_INFO_MAX, tb[IFLA_LINKINFO], NULL) >= 0 &&
	    info[IFLA_INFO_KIND])
		nla_strlcpy(kind, info[IFLA_INFO_KIND], sizeof(kind));
	snprintf(cause, HW_CAUSE_MAX, "link %s%s", name,
		 h->nlmsg_type == RTM_DELLINK ? " removed" : "");
	return may_be_nic(kind) ? PARTS_NIC : PARTS_LINK;
}

static unsigned int on_address(struct nlmsghdr *h, char cause[HW_CAUSE_MAX])
{
	const struct ifaddrmsg *ifa;
	char name[IFNAMSIZ];

	if (nlmsg_datalen(h) < (int)sizeof(*ifa))
		return HW_PART_IP | HW_PART_RDMA;
	ifa = nlmsg_data(h);
	snprintf(cause, HW_CAUSE_MAX, "address of %s",
		 if_indextoname(ifa->ifa_index, name) ? name : "a link that is gone");
	return HW_PART_IP | HW_PART_RDMA; /* a GID is an address */
}

static unsigned int on_route(struct nlmsghdr *h, char cause[HW_CAUSE_MAX])
{
	const struct rtmsg *rtm;

	if (nlmsg_datalen(h) < (int)sizeof(*rtm))
		return HW_PART_IP;
	rtm = nlmsg_data(h);
	/* Entries of a cache, of multicast routing; the node's own addresses are told as such. */
	if ((rtm->rtm_flags & RTM_F_CLONED) ||
	    (rtm->rtm_family != AF_INET && rtm->rtm_family != AF_INET6) ||
	    rtm->rtm_type == RTN_LOCAL || rtm->rtm_type == RTN_BROADCAST ||
	    rtm->rtm_type == RTN_ANYCAST || rtm->rtm_type == RTN_MULTICAST)
		return 0;
	snprintf(cause, HW_CAUSE_MAX, "%sroute%s", rtm->rtm_dst_len ? "" : "default ",
		 h->nlmsg_type == RTM_DELROUTE ? " removed" : "");
	return HW_PART_IP;
}

static unsigned int on_message(struct nlmsghdr *h, char cause[HW_CAUSE_MAX])
{
	switch (h->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		return on_link(h, cause);
	case RTM_NEWADDR:
	case RTM_DELADDR:
		return on_address(h, cause);
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		return on_route(h, cause);
	case RTM_NEWRULE:
	case RTM_DELRULE:
		snprintf(cause, HW_CAUSE_MAX, "rule");
		return HW_PART_IP;
	case RTM_NEWNEXTHOP:
	case RTM_DELNEXTHOP:
		snprintf(cause, HW_CAUSE_MAX, "next hop");
		return HW_PART_IP;
	default:
		return 0;
	}
}

unsigned int hw_watch_rtnetlink(const void *datagram, size_t len, unsigned int *events,
				char cause[HW_CAUSE_MAX])
{
	struct nlmsghdr *h = (struct nlmsghdr *)datagram;
	int left = (int)len;
	unsigned int parts = 0;

	while (nlmsg_ok(h, left)) {
		char text[HW_CAUSE_MAX] = "";
		unsigned int p = on_message(h, text);

		if (p && !parts)
			memcpy(cause, text, sizeof(text));
		parts |= p;
		*events += p != 0;
		h = nlmsg_next(h, &left);
	}
	return parts;
}

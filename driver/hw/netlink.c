// SPDX-License-Identifier: Apache-2.0
/* IP facts of the running kernel: one rtnetlink dump per kind, on a socket of its own. */
#include "hw/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/mem.h"
#include "hw/ip.h"
#include "hw/netlink_dump.h"
#include "hw/read.h"

#define TRIES 5 /* something changed while the kernel told */
#define MESSAGE_BYTES (32 * 1024) /* the kernel makes no longer ones for a dump */
#define MAX_DEPTH 8 /* of links on links: "bond0.100" */

char *hw_nl_address(int family, struct nlattr *attr)
{
	int len = family == AF_INET ? 4 : 16;
	char text[INET6_ADDRSTRLEN];

	if (!attr || nla_len(attr) != len || !inet_ntop(family, nla_data(attr), text, sizeof(text)))
		return NULL;
	return xstrdup(text);
}

uint32_t hw_nl_u32(struct nlattr *attr, uint32_t fallback)
{
	return attr && nla_len(attr) >= 4 ? nla_get_u32(attr) : fallback;
}

static int cmp_link(const void *a, const void *b)
{
	const struct hw_nl_link *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

const char *hw_nl_name(struct hw_nl_dump *d, int ifindex)
{
	const struct hw_nl_link key = { .ifindex = ifindex }, *link = NULL;

	if (d->n_links)
		link = bsearch(&key, d->links, d->n_links, sizeof(*d->links), cmp_link);
	if (!link)
		d->torn = true;
	return link ? link->name : NULL;
}

int hw_nl_version(int family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}

/*
 * Kinds whose IFLA_LINK is the link that carries them; that of a veth is its other end, that of a
 * tunnel only says which way it prefers.
 */
static bool is_carried(const char *kind)
{
	static const char *const kinds[] = { "vlan",   "macvlan", "macvtap",
					     "ipvlan", "ipvtap",  "ipoib" };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (streq(kind, kinds[i]))
			return true;
	return false;
}

static int on_link(struct nl_msg *msg, void *data)
{
	struct hw_nl_dump *d = data;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];
	struct hw_nl_link *link;

	if (nlmsg_parse(h, sizeof(struct ifinfomsg), tb, IFLA_MAX, NULL) < 0 || !tb[IFLA_IFNAME])
		return NL_OK;
	if (d->n_links >= HW_MAX_NETDEVS) {
		d->full = true;
		return NL_OK;
	}
	link = array_push(d->links, d->n_links, d->cap_links);
	*link = (struct hw_nl_link){ .ifindex = ((struct ifinfomsg *)nlmsg_data(h))->ifi_index };
	nla_strlcpy(link->name, tb[IFLA_IFNAME], sizeof(link->name));
	if (tb[IFLA_LINKINFO] &&
	    nla_parse_nested(info, IFLA_INFO_MAX, tb[IFLA_LINKINFO], NULL) >= 0 &&
	    info[IFLA_INFO_KIND])
		nla_strlcpy(link->kind, info[IFLA_INFO_KIND], sizeof(link->kind));
	link->master = (int)hw_nl_u32(tb[IFLA_MASTER], 0);
	if (is_carried(link->kind) && !tb[IFLA_LINK_NETNSID])
		link->lower = (int)hw_nl_u32(tb[IFLA_LINK], 0);
	return NL_OK;
}

/* When all names are known: add what sysfs did not tell of the links. */
static void add_link_facts(struct hw_nl_dump *d)
{
	qsort(d->links, d->n_links, sizeof(*d->links), cmp_link);
	for (size_t i = 0; i < d->n_links; i++) {
		struct hw_nl_link *link = &d->links[i];
		struct hw_netdev *netdev =
			(struct hw_netdev *)hw_find_netdev(d->machine, link->name);
		const char *master, *lower;

		if (!netdev)
			continue;
		link->added_kind = !netdev->kind && *link->kind;
		if (link->added_kind)
			netdev->kind = xstrdup(link->kind);
		master = link->master && !netdev->master ? hw_nl_name(d, link->master) : NULL;
		link->added_master = master != NULL;
		if (master)
			netdev->master = xstrdup(master);
		lower = link->lower ? hw_nl_name(d, link->lower) : NULL;
		link->added_lower = lower && !strlist_has(&netdev->lower, lower);
		if (link->added_lower)
			strlist_add(&netdev->lower, lower);
	}
}

/* A reading that is not used leaves nothing. */
static void take_back_link_facts(struct hw_nl_dump *d)
{
	for (size_t i = 0; i < d->n_links; i++) {
		const struct hw_nl_link *link = &d->links[i];
		struct hw_netdev *netdev =
			(struct hw_netdev *)hw_find_netdev(d->machine, link->name);

		if (link->added_kind)
			free(TAKE_PTR(netdev->kind));
		if (link->added_master)
			free(TAKE_PTR(netdev->master));
		if (link->added_lower)
			free(netdev->lower.items[--netdev->lower.n]);
	}
}

static const char *scope_name(unsigned char scope)
{
	return scope == RT_SCOPE_UNIVERSE ? "global"
	       : scope == RT_SCOPE_SITE	  ? "site"
	       : scope == RT_SCOPE_LINK	  ? "link"
	       : scope == RT_SCOPE_HOST	  ? "host"
					  : NULL;
}

static int on_address(struct nl_msg *msg, void *data)
{
	struct hw_nl_dump *d = data;
	struct hw_ip *ip = &d->machine->ip;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[IFA_MAX + 1];
	const struct ifaddrmsg *ifa;
	const char *name;
	char *address;

	if (nlmsg_parse(h, sizeof(*ifa), tb, IFA_MAX, NULL) < 0)
		return NL_OK;
	ifa = nlmsg_data(h);
	if (!hw_nl_version(ifa->ifa_family))
		return NL_OK;
	name = hw_nl_name(d, (int)ifa->ifa_index);
	if (name && ip->n_addresses >= HW_MAX_ADDRESSES)
		d->full = true;
	if (!name || ip->n_addresses >= HW_MAX_ADDRESSES)
		return NL_OK;
	/* IFA_LOCAL is our own end where IFA_ADDRESS is the other one's */
	address = hw_nl_address(ifa->ifa_family, tb[tb[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS]);
	if (address)
		*array_push(ip->addresses, ip->n_addresses, ip->cap_addresses) =
			(struct hw_address){
				.netdev = xstrdup(name),
				.address = address,
				.prefix = ifa->ifa_prefixlen,
				.scope = xstrdup_null(scope_name(ifa->ifa_scope)),
			};
	return NL_OK;
}

/* A NIC's own link, or one that runs on it. */
static bool is_nic_link(const struct hw_machine *machine, const char *name, int depth)
{
	const struct hw_netdev *netdev = hw_find_netdev(machine, name);

	if (!netdev || depth > MAX_DEPTH)
		return false;
	if (netdev->bus_id || netdev->sf_parent)
		return true;
	for (size_t i = 0; i < netdev->lower.n; i++)
		if (is_nic_link(machine, netdev->lower.items[i], depth + 1))
			return true;
	return false;
}

static int on_neighbour(struct nl_msg *msg, void *data)
{
	struct hw_nl_dump *d = data;
	struct hw_ip *ip = &d->machine->ip;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[NDA_MAX + 1];
	struct buf lladdr = { 0 };
	const struct ndmsg *ndm;
	const char *name;
	char *address;

	if (nlmsg_parse(h, sizeof(*ndm), tb, NDA_MAX, NULL) < 0)
		return NL_OK;
	ndm = nlmsg_data(h);
	if (!hw_nl_version(ndm->ndm_family) ||
	    !(ndm->ndm_state & (NUD_PERMANENT | NUD_REACHABLE)) || !tb[NDA_LLADDR] ||
	    nla_len(tb[NDA_LLADDR]) < 1 || nla_len(tb[NDA_LLADDR]) > 20)
		return NL_OK;
	name = hw_nl_name(d, ndm->ndm_ifindex);
	address = name && is_nic_link(d->machine, name, 0)
			  ? hw_nl_address(ndm->ndm_family, tb[NDA_DST])
			  : NULL;
	if (address && ip->n_neighbours >= HW_MAX_NEIGHBOURS) {
		d->full = true;
		free(address);
		address = NULL;
	}
	if (!address)
		return NL_OK;
	for (int i = 0; i < nla_len(tb[NDA_LLADDR]); i++)
		buf_printf(&lladdr, i ? ":%02x" : "%02x",
			   ((const unsigned char *)nla_data(tb[NDA_LLADDR]))[i]);
	*array_push(ip->neighbours, ip->n_neighbours, ip->cap_neighbours) = (struct hw_neighbour){
		.netdev = xstrdup(name),
		.address = address,
		.lladdr = buf_take(&lladdr),
		.state = xstrdup(ndm->ndm_state & NUD_PERMANENT ? "PERMANENT" : "REACHABLE"),
	};
	return NL_OK;
}

/* 0 or a negative number of libnl (NLE_…). */
static int request(struct hw_nl_dump *d, int type, nl_recvmsg_msg_cb_t fn)
{
	union {
		struct ifinfomsg link;
		struct ifaddrmsg address;
		struct rtmsg route;
		struct fib_rule_hdr rule;
		struct ndmsg neighbour;
		struct nhmsg nexthop;
	} header = { 0 };
	size_t len = type == RTM_GETLINK      ? sizeof(header.link)
		     : type == RTM_GETADDR    ? sizeof(header.address)
		     : type == RTM_GETROUTE   ? sizeof(header.route)
		     : type == RTM_GETRULE    ? sizeof(header.rule)
		     : type == RTM_GETNEXTHOP ? sizeof(header.nexthop)
					      : sizeof(header.neighbour);
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | NLM_F_DUMP);
	int r = msg ? nlmsg_append(msg, &header, len, NLMSG_ALIGNTO) : -NLE_NOMEM;

	if (r == 0 && type == RTM_GETLINK)
		r = nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
	if (r == 0)
		r = nl_socket_modify_cb(d->sk, NL_CB_VALID, NL_CB_CUSTOM, fn, d);
	if (r == 0)
		r = nl_send_auto(d->sk, msg);
	nlmsg_free(msg);
	return r < 0 ? r : nl_recvmsgs_default(d->sk);
}

static const struct {
	int type;
	nl_recvmsg_msg_cb_t fn;
	const char *code, *what;
} requests[] = {
	{ RTM_GETLINK, on_link, "links-unreadable", "links" },
	{ RTM_GETADDR, on_address, "addresses-unreadable", "addresses" },
	{ RTM_GETNEXTHOP, hw_nl_on_nexthop, "routes-unreadable", "next hops" },
	{ RTM_GETROUTE, hw_nl_on_route, "routes-unreadable", "routes" },
	{ RTM_GETRULE, hw_nl_on_rule, "rules-unreadable", "rules" },
	{ RTM_GETNEIGH, on_neighbour, "neighbours-unreadable", "neighbours" },
};

static void release(struct hw_nl_dump *d)
{
	for (size_t i = 0; i < d->n_nexthops; i++) {
		free(d->nexthops[i].gateway);
		free(d->nexthops[i].members);
	}
	free(d->nexthops);
	free(d->links);
	*d = (struct hw_nl_dump){ .sk = d->sk, .machine = d->machine };
}

static void forget(struct hw_nl_dump *d)
{
	take_back_link_facts(d);
	release(d);
	hw_clear_ip(d->machine);
}

/* All of it once; 0, or the error of libnl and which request gave it. */
static int read_all(struct hw_nl_dump *d, size_t *failed)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		int r = request(d, requests[i].type, requests[i].fn);

		/* Linux before 5.3 and kernels without IPv6 or policy routing */
		if (r == -NLE_OPNOTSUPP && requests[i].type != RTM_GETLINK)
			r = 0;
		if (r < 0) {
			*failed = i;
			return r;
		}
		if (requests[i].fn == on_link && d->n_links)
			add_link_facts(d);
	}
	return 0;
}

/*
 * sysfs shows the links of the namespace in which it was mounted: false when none of them is the
 * one that rtnetlink knows by that name.
 */
static bool same_namespace(struct hw_nl_dump *d)
{
	size_t known = 0;

	for (size_t i = 0; i < d->machine->n_netdevs; i++) {
		const struct hw_netdev *netdev = &d->machine->netdevs[i];
		const struct hw_nl_link key = { .ifindex = netdev->ifindex }, *link = NULL;

		if (streq(netdev->name, "lo") || netdev->ifindex == HW_UNKNOWN)
			continue;
		known++;
		if (d->n_links)
			link = bsearch(&key, d->links, d->n_links, sizeof(key), cmp_link);
		if (link && streq(link->name, netdev->name))
			return true;
	}
	return known == 0;
}

static int errno_of(int nle)
{
	return nle == -NLE_NOMEM       ? -ENOMEM
	       : nle == -NLE_PERM      ? -EPERM
	       : nle == -NLE_NOACCESS  ? -EACCES
	       : nle == -NLE_DUMP_INTR ? -EAGAIN
				       : -EIO;
}

void hw_netlink_read(struct hw_machine *machine)
{
	struct hw_nl_dump d = { .sk = nl_socket_alloc(), .machine = machine };
	size_t failed = 0;
	int r = d.sk ? nl_connect(d.sk, NETLINK_ROUTE) : -NLE_NOMEM;

	if (r == 0)
		r = nl_socket_set_msg_buf_size(d.sk, MESSAGE_BYTES);
	/* A request that is refused when it is sent counts in the library, but gets no answer. */
	if (r == 0)
		nl_socket_disable_seq_check(d.sk);
	for (int i = 0; r == 0 && i < TRIES; i++) {
		forget(&d);
		r = read_all(&d, &failed);
		if (r == 0 && !d.torn)
			break;
		if (r == -NLE_DUMP_INTR && i + 1 < TRIES)
			r = 0;
	}
	if (r < 0) {
		take_back_link_facts(&d);
		hw_unreadable(machine, requests[failed].code, "rtnetlink", requests[failed].what,
			      errno_of(r));
	}
	machine->ip.known = r == 0;
	if (r == 0 && !same_namespace(&d)) {
		forget(&d);
		hw_warn(machine, "network-namespace", "rtnetlink",
			"this process is in another network namespace than the links that /sys "
			"shows, so that routes and addresses are not known; run it in the host's "
			"(hostNetwork: true)");
	}
	if (d.torn)
		hw_warn(machine, "ip-unknown-link", "rtnetlink",
			"what is said of links that are not there is left out");
	if (d.full)
		hw_warn(machine, "ip-too-many", "rtnetlink",
			"more than can be held; the rest is left out");
	nl_socket_free(d.sk);
	release(&d);
}

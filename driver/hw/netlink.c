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
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "base/mem.h"
#include "hw/ip.h"
#include "hw/read.h"

#define TRIES 5 /* something changed while the kernel told */
#define MESSAGE_BYTES (32 * 1024) /* the kernel makes no longer ones for a dump */
#define MAX_NEXTHOPS 65536
#define MAX_DEPTH 8 /* of links on links: "bond0.100" */

struct link {
	int ifindex;
	char name[IFNAMSIZ];
};

/* A next hop object ("ip nexthop"); of a group only the members are known. */
struct nexthop {
	unsigned int id;
	int ifindex;
	char *gateway;
	bool blackhole;
	unsigned int *members;
	size_t n_members;
};

struct dump {
	struct nl_sock *sk;
	struct hw_machine *machine;
	struct link *links; /* by ifindex, once all are there */
	size_t n_links, cap_links;
	struct nexthop *nexthops; /* as the kernel tells them: by id */
	size_t n_nexthops, cap_nexthops;
	bool full; /* something was left out for a bound */
	bool torn; /* a message names a link that is not there: it came or went meanwhile */
};

/* "10.1.0.5" of an attribute; NULL without one or when its length is not that of the family. */
static char *address_of(int family, struct nlattr *attr)
{
	int len = family == AF_INET ? 4 : 16;
	char text[INET6_ADDRSTRLEN];

	if (!attr || nla_len(attr) != len || !inet_ntop(family, nla_data(attr), text, sizeof(text)))
		return NULL;
	return xstrdup(text);
}

static char *prefix_of(int family, struct nlattr *attr, unsigned int len)
{
	_cleanup_free_ char *address = address_of(family, attr);

	if (!address)
		return NULL;
	return len == (family == AF_INET ? 32 : 128) ? TAKE_PTR(address)
						     : xasprintf("%s/%u", address, len);
}

static uint32_t u32_of(struct nlattr *attr, uint32_t fallback)
{
	return attr && nla_len(attr) >= 4 ? nla_get_u32(attr) : fallback;
}

static int cmp_link(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

/* The name of a link, NULL when it is not there. */
static const char *name_of(struct dump *d, int ifindex)
{
	const struct link key = { .ifindex = ifindex }, *link = NULL;

	if (d->n_links)
		link = bsearch(&key, d->links, d->n_links, sizeof(*d->links), cmp_link);
	if (!link)
		d->torn = true;
	return link ? link->name : NULL;
}

static int version_of(int family)
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

/* What is needed of one message about a link. */
struct link_facts {
	char kind[32]; /* "" unknown */
	int master, lower; /* ifindex, 0 none */
	char name[IFNAMSIZ];
};

static bool parse_link(struct nlmsghdr *h, int *ifindex, struct link_facts *f)
{
	struct nlattr *tb[IFLA_MAX + 1], *info[IFLA_INFO_MAX + 1];

	if (nlmsg_parse(h, sizeof(struct ifinfomsg), tb, IFLA_MAX, NULL) < 0 || !tb[IFLA_IFNAME])
		return false;
	*ifindex = ((struct ifinfomsg *)nlmsg_data(h))->ifi_index;
	nla_strlcpy(f->name, tb[IFLA_IFNAME], sizeof(f->name));
	if (tb[IFLA_LINKINFO] &&
	    nla_parse_nested(info, IFLA_INFO_MAX, tb[IFLA_LINKINFO], NULL) >= 0 &&
	    info[IFLA_INFO_KIND])
		nla_strlcpy(f->kind, info[IFLA_INFO_KIND], sizeof(f->kind));
	f->master = (int)u32_of(tb[IFLA_MASTER], 0);
	if (is_carried(f->kind) && !tb[IFLA_LINK_NETNSID])
		f->lower = (int)u32_of(tb[IFLA_LINK], 0);
	return true;
}

static int on_link(struct nl_msg *msg, void *data)
{
	struct dump *d = data;
	struct link_facts f = { 0 };
	int ifindex;

	if (!parse_link(nlmsg_hdr(msg), &ifindex, &f))
		return NL_OK;
	if (d->n_links >= HW_MAX_NETDEVS) {
		d->full = true;
		return NL_OK;
	}
	*array_push(d->links, d->n_links, d->cap_links) = (struct link){ .ifindex = ifindex };
	memcpy(d->links[d->n_links - 1].name, f.name, sizeof(f.name));
	return NL_OK;
}

/* A second look at the links, when all names are known: what sysfs did not tell of them. */
static int on_link_facts(struct nl_msg *msg, void *data)
{
	struct dump *d = data;
	struct link_facts f = { 0 };
	struct hw_netdev *netdev;
	const char *name;
	int ifindex;

	if (!parse_link(nlmsg_hdr(msg), &ifindex, &f))
		return NL_OK;
	netdev = (struct hw_netdev *)hw_find_netdev(d->machine, f.name);
	if (!netdev)
		return NL_OK;
	if (!netdev->kind && *f.kind)
		netdev->kind = xstrdup(f.kind);
	name = f.master && !netdev->master ? name_of(d, f.master) : NULL;
	if (name)
		netdev->master = xstrdup(name);
	name = f.lower ? name_of(d, f.lower) : NULL;
	if (name && !strlist_has(&netdev->lower, name))
		strlist_add(&netdev->lower, name);
	return NL_OK;
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
	struct dump *d = data;
	struct hw_ip *ip = &d->machine->ip;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[IFA_MAX + 1];
	const struct ifaddrmsg *ifa;
	const char *name;
	char *address;

	if (nlmsg_parse(h, sizeof(*ifa), tb, IFA_MAX, NULL) < 0)
		return NL_OK;
	ifa = nlmsg_data(h);
	if (!version_of(ifa->ifa_family))
		return NL_OK;
	name = name_of(d, (int)ifa->ifa_index);
	if (name && ip->n_addresses >= HW_MAX_ADDRESSES)
		d->full = true;
	if (!name || ip->n_addresses >= HW_MAX_ADDRESSES)
		return NL_OK;
	/* IFA_LOCAL is our own end where IFA_ADDRESS is the other one's */
	address = address_of(ifa->ifa_family, tb[tb[IFA_LOCAL] ? IFA_LOCAL : IFA_ADDRESS]);
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

static int on_nexthop(struct nl_msg *msg, void *data)
{
	struct dump *d = data;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[NHA_MAX + 1], *group;
	struct nexthop *nexthop;
	const struct nhmsg *nhm;

	if (nlmsg_parse(h, sizeof(*nhm), tb, NHA_MAX, NULL) < 0 || !tb[NHA_ID])
		return NL_OK;
	if (d->n_nexthops >= MAX_NEXTHOPS) {
		d->full = true;
		return NL_OK;
	}
	nhm = nlmsg_data(h);
	nexthop = array_push(d->nexthops, d->n_nexthops, d->cap_nexthops);
	nexthop->id = u32_of(tb[NHA_ID], 0);
	nexthop->ifindex = (int)u32_of(tb[NHA_OIF], 0);
	nexthop->blackhole = tb[NHA_BLACKHOLE] != NULL;
	if (version_of(nhm->nh_family))
		nexthop->gateway = address_of(nhm->nh_family, tb[NHA_GATEWAY]);
	group = tb[NHA_GROUP];
	if (group) {
		size_t n = (size_t)nla_len(group) / sizeof(struct nexthop_grp);
		const struct nexthop_grp *members = nla_data(group);

		nexthop->members = n ? xcalloc(n, sizeof(*nexthop->members)) : NULL;
		nexthop->n_members = n;
		for (size_t i = 0; i < n; i++)
			nexthop->members[i] = members[i].id;
	}
	return NL_OK;
}

/* Takes over "gateway". */
static void add_hop(struct dump *d, const struct hw_route *route, int ifindex, char *gateway)
{
	struct hw_ip *ip = &d->machine->ip;
	const char *name = ifindex ? name_of(d, ifindex) : NULL;
	struct hw_route *hop;

	/* What no link carries leads nowhere; a default route is kept whatever the bound. */
	if ((!name && !route->unusable) || (ip->n_routes >= HW_MAX_ROUTES && route->destination)) {
		d->full = d->full || ip->n_routes >= HW_MAX_ROUTES;
		free(gateway);
		return;
	}
	hop = array_push(ip->routes, ip->n_routes, ip->cap_routes);
	*hop = *route;
	hop->destination = xstrdup_null(route->destination);
	hop->netdev = xstrdup_null(name);
	hop->gateway = gateway;
}

static const struct nexthop *find_nexthop(const struct dump *d, unsigned int id)
{
	for (size_t i = 0; i < d->n_nexthops; i++)
		if (d->nexthops[i].id == id)
			return &d->nexthops[i];
	return NULL;
}

/* Hops of an object; groups have no groups in them. */
static void add_nexthop(struct dump *d, const struct hw_route *route, unsigned int id, int depth)
{
	const struct nexthop *nexthop = find_nexthop(d, id);
	struct hw_route unusable = *route;

	if (!nexthop || depth > 1) {
		d->torn = true;
		return;
	}
	for (size_t i = 0; i < nexthop->n_members; i++)
		add_nexthop(d, route, nexthop->members[i], depth + 1);
	unusable.unusable = route->unusable || nexthop->blackhole;
	if (!nexthop->n_members)
		add_hop(d, &unusable, nexthop->ifindex, xstrdup_null(nexthop->gateway));
}

static char *gateway_of(int family, struct nlattr *const *tb)
{
	struct nlattr *via = tb[RTA_VIA];
	const struct rtvia *v;

	if (tb[RTA_GATEWAY])
		return address_of(family, tb[RTA_GATEWAY]);
	if (!via || nla_len(via) < (int)sizeof(*v) + 16)
		return NULL;
	v = nla_data(via); /* an IPv6 next hop of an IPv4 route */
	if (v->rtvia_family == AF_INET6) {
		char text[INET6_ADDRSTRLEN];

		return xstrdup_null(inet_ntop(AF_INET6, v->rtvia_addr, text, sizeof(text)));
	}
	return NULL;
}

static void add_multipath(struct dump *d, const struct hw_route *route, int family,
			  struct nlattr *attr)
{
	int left = nla_len(attr);
	const struct rtnexthop *hop = nla_data(attr);

	while (left >= (int)sizeof(*hop) && hop->rtnh_len >= sizeof(*hop) &&
	       hop->rtnh_len <= left) {
		struct nlattr *tb[RTA_MAX + 1];
		int len = hop->rtnh_len - (int)sizeof(*hop);
		int step = (int)RTNH_ALIGN(hop->rtnh_len);

		if (nla_parse(tb, RTA_MAX, (struct nlattr *)RTNH_DATA(hop), len, NULL) >= 0)
			add_hop(d, route, hop->rtnh_ifindex, gateway_of(family, tb));
		left -= step;
		hop = (const struct rtnexthop *)((const char *)hop + step);
	}
}

static int on_route(struct nl_msg *msg, void *data)
{
	struct dump *d = data;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[RTA_MAX + 1];
	struct hw_route route = { 0 };
	const struct rtmsg *rtm;
	_cleanup_free_ char *address = NULL;

	if (nlmsg_parse(h, sizeof(*rtm), tb, RTA_MAX, NULL) < 0)
		return NL_OK;
	rtm = nlmsg_data(h);
	route.family = version_of(rtm->rtm_family);
	if (!route.family || (rtm->rtm_flags & RTM_F_CLONED))
		return NL_OK;
	/* Routes to the node itself say nothing that its addresses do not. */
	route.unusable = rtm->rtm_type == RTN_UNREACHABLE || rtm->rtm_type == RTN_BLACKHOLE ||
			 rtm->rtm_type == RTN_PROHIBIT || rtm->rtm_type == RTN_THROW;
	if (rtm->rtm_type != RTN_UNICAST && !route.unusable)
		return NL_OK;
	route.table = u32_of(tb[RTA_TABLE], rtm->rtm_table);
	route.metric = u32_of(tb[RTA_PRIORITY], 0);
	if (tb[RTA_DST] && rtm->rtm_dst_len) {
		address = address_of(rtm->rtm_family, tb[RTA_DST]);
		if (!address)
			return NL_OK;
		route.destination = xasprintf("%s/%u", address, rtm->rtm_dst_len);
	}
	if (tb[RTA_MULTIPATH])
		add_multipath(d, &route, rtm->rtm_family, tb[RTA_MULTIPATH]);
	else if (tb[RTA_NH_ID] && !tb[RTA_OIF])
		add_nexthop(d, &route, u32_of(tb[RTA_NH_ID], 0), 0);
	else
		add_hop(d, &route, (int)u32_of(tb[RTA_OIF], 0), gateway_of(rtm->rtm_family, tb));
	free(route.destination);
	return NL_OK;
}

/* Whether the rule asks for more than struct hw_rule can say: then it is left out. */
static bool asks_for_more(const struct fib_rule_hdr *h, struct nlattr *const *tb)
{
	static const int selectors[] = { FRA_L3MDEV,   FRA_TUN_ID,	FRA_UID_RANGE,
					 FRA_IP_PROTO, FRA_SPORT_RANGE, FRA_DPORT_RANGE };

	for (size_t i = 0; i < ARRAY_SIZE(selectors); i++) {
		struct nlattr *attr = tb[selectors[i]];
		const unsigned char *bytes = attr ? nla_data(attr) : NULL;

		for (int k = 0; attr && k < nla_len(attr); k++)
			if (bytes[k])
				return true;
	}
	return (h->flags & FIB_RULE_INVERT) || h->tos || u32_of(tb[FRA_FWMARK], 0) ||
	       h->action != FR_ACT_TO_TBL;
}

static char *text_of(struct nlattr *attr)
{
	return attr ? xstrndup(nla_data(attr), (size_t)nla_len(attr)) : NULL;
}

static int on_rule(struct nl_msg *msg, void *data)
{
	struct dump *d = data;
	struct hw_ip *ip = &d->machine->ip;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[FRA_MAX + 1];
	const struct fib_rule_hdr *rule;

	if (nlmsg_parse(h, sizeof(*rule), tb, FRA_MAX, NULL) < 0)
		return NL_OK;
	rule = nlmsg_data(h);
	if (!version_of(rule->family) || asks_for_more(rule, tb))
		return NL_OK;
	if (ip->n_rules >= HW_MAX_RULES) {
		d->full = true;
		return NL_OK;
	}
	*array_push(ip->rules, ip->n_rules, ip->cap_rules) = (struct hw_rule){
		.family = version_of(rule->family),
		.priority = u32_of(tb[FRA_PRIORITY], 0),
		.table = u32_of(tb[FRA_TABLE], rule->table),
		.from = prefix_of(rule->family, tb[FRA_SRC], rule->src_len),
		.to = prefix_of(rule->family, tb[FRA_DST], rule->dst_len),
		.iif = text_of(tb[FRA_IIFNAME]),
		.oif = text_of(tb[FRA_OIFNAME]),
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
	struct dump *d = data;
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
	if (!version_of(ndm->ndm_family) || !(ndm->ndm_state & (NUD_PERMANENT | NUD_REACHABLE)) ||
	    !tb[NDA_LLADDR] || nla_len(tb[NDA_LLADDR]) < 1 || nla_len(tb[NDA_LLADDR]) > 20)
		return NL_OK;
	name = name_of(d, ndm->ndm_ifindex);
	address = name && is_nic_link(d->machine, name, 0)
			  ? address_of(ndm->ndm_family, tb[NDA_DST])
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
static int request(struct dump *d, int type, nl_recvmsg_msg_cb_t fn)
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
	{ RTM_GETLINK, on_link_facts, "links-unreadable", "links" },
	{ RTM_GETADDR, on_address, "addresses-unreadable", "addresses" },
	{ RTM_GETNEXTHOP, on_nexthop, "routes-unreadable", "next hops" },
	{ RTM_GETROUTE, on_route, "routes-unreadable", "routes" },
	{ RTM_GETRULE, on_rule, "rules-unreadable", "rules" },
	{ RTM_GETNEIGH, on_neighbour, "neighbours-unreadable", "neighbours" },
};

static void forget(struct dump *d)
{
	for (size_t i = 0; i < d->n_nexthops; i++) {
		free(d->nexthops[i].gateway);
		free(d->nexthops[i].members);
	}
	free(d->nexthops);
	free(d->links);
	*d = (struct dump){ .sk = d->sk, .machine = d->machine };
	hw_clear_ip(d->machine);
}

/* All of it once; 0, or the error of libnl and which request gave it. */
static int read_all(struct dump *d, size_t *failed)
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
			qsort(d->links, d->n_links, sizeof(*d->links), cmp_link);
	}
	return d->torn ? -NLE_DUMP_INTR : 0;
}

/*
 * sysfs shows the links of the namespace in which it was mounted: false when none of them is the
 * one that rtnetlink knows by that name.
 */
static bool same_namespace(struct dump *d)
{
	size_t known = 0;

	for (size_t i = 0; i < d->machine->n_netdevs; i++) {
		const struct hw_netdev *netdev = &d->machine->netdevs[i];
		const struct link key = { .ifindex = netdev->ifindex }, *link = NULL;

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
	struct dump d = { .sk = nl_socket_alloc(), .machine = machine };
	size_t failed = 0;
	int r = d.sk ? nl_connect(d.sk, NETLINK_ROUTE) : -NLE_NOMEM;

	if (r == 0)
		r = nl_socket_set_msg_buf_size(d.sk, MESSAGE_BYTES);
	for (int i = 0; r == 0 && i < TRIES; i++) {
		forget(&d);
		r = read_all(&d, &failed);
		if (r == -NLE_DUMP_INTR && i + 1 < TRIES)
			r = 0;
		else
			break;
	}
	if (r < 0)
		hw_unreadable(machine, requests[failed].code, "rtnetlink", requests[failed].what,
			      errno_of(r));
	machine->ip.known = r == 0;
	if (r == 0 && !same_namespace(&d)) {
		forget(&d);
		hw_warn(machine, "network-namespace", "rtnetlink",
			"this process is in another network namespace than the links that /sys "
			"shows, so that routes and addresses are not known; run it in the host's "
			"(hostNetwork: true)");
	}
	if (d.full)
		hw_warn(machine, "ip-too-many", "rtnetlink",
			"more than can be held; the rest is left out");
	nl_socket_free(d.sk);
	d.sk = NULL;
	for (size_t i = 0; i < d.n_nexthops; i++) {
		free(d.nexthops[i].gateway);
		free(d.nexthops[i].members);
	}
	free(d.nexthops);
	free(d.links);
}

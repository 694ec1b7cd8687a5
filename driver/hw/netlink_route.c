// SPDX-License-Identifier: Apache-2.0
/* Routes, their next hops, and rules of the running kernel. */
#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>

#include "base/mem.h"
#include "hw/ip.h"
#include "hw/netlink_dump.h"

int hw_nl_on_nexthop(struct nl_msg *msg, void *data)
{
	struct hw_nl_dump *d = data;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[NHA_MAX + 1], *group;
	struct hw_nl_nexthop *nexthop;
	const struct nhmsg *nhm;

	if (nlmsg_parse(h, sizeof(*nhm), tb, NHA_MAX, NULL) < 0 || !tb[NHA_ID])
		return NL_OK;
	if (d->n_nexthops >= HW_MAX_NEXTHOPS) {
		d->full = true;
		return NL_OK;
	}
	nhm = nlmsg_data(h);
	nexthop = array_push(d->nexthops, d->n_nexthops, d->cap_nexthops);
	nexthop->id = hw_nl_u32(tb[NHA_ID], 0);
	nexthop->ifindex = (int)hw_nl_u32(tb[NHA_OIF], 0);
	nexthop->blackhole = tb[NHA_BLACKHOLE] != NULL;
	if (hw_nl_version(nhm->nh_family))
		nexthop->gateway = hw_nl_address(nhm->nh_family, tb[NHA_GATEWAY]);
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
static void add_hop(struct hw_nl_dump *d, const struct hw_route *route, int ifindex, char *gateway)
{
	struct hw_ip *ip = &d->machine->ip;
	const char *name = ifindex ? hw_nl_name(d, ifindex) : NULL;
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

static const struct hw_nl_nexthop *find_nexthop(const struct hw_nl_dump *d, unsigned int id)
{
	for (size_t i = 0; i < d->n_nexthops; i++)
		if (d->nexthops[i].id == id)
			return &d->nexthops[i];
	return NULL;
}

/* Hops of an object; groups have no groups in them. */
static void add_nexthop(struct hw_nl_dump *d, const struct hw_route *route, unsigned int id,
			int depth)
{
	const struct hw_nl_nexthop *nexthop = find_nexthop(d, id);
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
		return hw_nl_address(family, tb[RTA_GATEWAY]);
	if (!via || nla_len(via) < (int)sizeof(*v) + 16)
		return NULL;
	v = nla_data(via); /* an IPv6 next hop of an IPv4 route */
	if (v->rtvia_family == AF_INET6) {
		char text[INET6_ADDRSTRLEN];

		return xstrdup_null(inet_ntop(AF_INET6, v->rtvia_addr, text, sizeof(text)));
	}
	return NULL;
}

static void add_multipath(struct hw_nl_dump *d, const struct hw_route *route, int family,
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

int hw_nl_on_route(struct nl_msg *msg, void *data)
{
	struct hw_nl_dump *d = data;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[RTA_MAX + 1];
	struct hw_route route = { 0 };
	const struct rtmsg *rtm;
	_cleanup_free_ char *address = NULL;

	if (nlmsg_parse(h, sizeof(*rtm), tb, RTA_MAX, NULL) < 0)
		return NL_OK;
	rtm = nlmsg_data(h);
	route.family = hw_nl_version(rtm->rtm_family);
	if (!route.family || (rtm->rtm_flags & RTM_F_CLONED))
		return NL_OK;
	/* Routes to the node itself say nothing that its addresses do not. */
	route.unusable = rtm->rtm_type == RTN_UNREACHABLE || rtm->rtm_type == RTN_BLACKHOLE ||
			 rtm->rtm_type == RTN_PROHIBIT || rtm->rtm_type == RTN_THROW;
	if (rtm->rtm_type != RTN_UNICAST && !route.unusable)
		return NL_OK;
	route.table = hw_nl_u32(tb[RTA_TABLE], rtm->rtm_table);
	route.metric = hw_nl_u32(tb[RTA_PRIORITY], 0);
	if (tb[RTA_DST] && rtm->rtm_dst_len) {
		address = hw_nl_address(rtm->rtm_family, tb[RTA_DST]);
		if (!address)
			return NL_OK;
		route.destination = xasprintf("%s/%u", address, rtm->rtm_dst_len);
	}
	if (tb[RTA_MULTIPATH])
		add_multipath(d, &route, rtm->rtm_family, tb[RTA_MULTIPATH]);
	else if (tb[RTA_NH_ID] && !tb[RTA_OIF])
		add_nexthop(d, &route, hw_nl_u32(tb[RTA_NH_ID], 0), 0);
	else
		add_hop(d, &route, (int)hw_nl_u32(tb[RTA_OIF], 0), gateway_of(rtm->rtm_family, tb));
	free(route.destination);
	return NL_OK;
}

static bool is_set(struct nlattr *attr)
{
	const unsigned char *bytes = attr ? nla_data(attr) : NULL;

	for (int i = 0; attr && i < nla_len(attr); i++)
		if (bytes[i])
			return true;
	return false;
}

static bool any_set(struct nlattr *const *tb, const int *attrs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_set(tb[attrs[i]]))
			return true;
	return false;
}

/*
 * The route of an RDMA connection is asked for without a mark, a protocol, ports and a tunnel
 * (rdma_resolve_addr() of the kernel), so a rule that wants one of these never applies to it.
 */
static bool is_for_others(const struct fib_rule_hdr *h, struct nlattr *const *tb)
{
	static const int others[] = { FRA_FWMARK, FRA_TUN_ID, FRA_IP_PROTO, FRA_SPORT_RANGE,
				      FRA_DPORT_RANGE };

	return !(h->flags & FIB_RULE_INVERT) && any_set(tb, others, ARRAY_SIZE(others));
}

/* -1, which is everywhere in the attribute, is none. */
static bool suppresses(struct nlattr *const *tb)
{
	return hw_nl_u32(tb[FRA_SUPPRESS_PREFIXLEN], UINT32_MAX) != UINT32_MAX ||
	       hw_nl_u32(tb[FRA_SUPPRESS_IFGROUP], UINT32_MAX) != UINT32_MAX;
}

/* Whether the rule asks for more than struct hw_rule can say. */
static bool is_partial(const struct fib_rule_hdr *h, struct nlattr *const *tb)
{
	static const int selectors[] = { FRA_L3MDEV, FRA_UID_RANGE };

	return (h->flags & FIB_RULE_INVERT) || h->tos || h->action != FR_ACT_TO_TBL ||
	       suppresses(tb) || any_set(tb, selectors, ARRAY_SIZE(selectors));
}

static char *prefix_of(int family, struct nlattr *attr, unsigned int len)
{
	_cleanup_free_ char *address = hw_nl_address(family, attr);

	if (!address)
		return NULL;
	return len == (family == AF_INET ? 32 : 128) ? TAKE_PTR(address)
						     : xasprintf("%s/%u", address, len);
}

static char *text_of(struct nlattr *attr)
{
	return attr ? xstrndup(nla_data(attr), (size_t)nla_len(attr)) : NULL;
}

int hw_nl_on_rule(struct nl_msg *msg, void *data)
{
	struct hw_nl_dump *d = data;
	struct hw_ip *ip = &d->machine->ip;
	struct nlmsghdr *h = nlmsg_hdr(msg);
	struct nlattr *tb[FRA_MAX + 1];
	const struct fib_rule_hdr *rule;

	if (nlmsg_parse(h, sizeof(*rule), tb, FRA_MAX, NULL) < 0)
		return NL_OK;
	rule = nlmsg_data(h);
	if (!hw_nl_version(rule->family) || is_for_others(rule, tb))
		return NL_OK;
	d->full = d->full || ip->n_rules >= HW_MAX_RULES;
	if (is_partial(rule, tb) || ip->n_rules >= HW_MAX_RULES) {
		ip->partial_rules[rule->family == AF_INET6] = true;
		return NL_OK;
	}
	*array_push(ip->rules, ip->n_rules, ip->cap_rules) = (struct hw_rule){
		.family = hw_nl_version(rule->family),
		.priority = hw_nl_u32(tb[FRA_PRIORITY], 0),
		.table = hw_nl_u32(tb[FRA_TABLE], rule->table),
		.from = prefix_of(rule->family, tb[FRA_SRC], rule->src_len),
		.to = prefix_of(rule->family, tb[FRA_DST], rule->dst_len),
		.iif = text_of(tb[FRA_IIFNAME]),
		.oif = text_of(tb[FRA_OIFNAME]),
	};
	return NL_OK;
}

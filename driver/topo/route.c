// SPDX-License-Identifier: Apache-2.0
/*
 * Do packets that carry a rail's address leave by the rail?  A rail whose address has no route of
 * its own is the usual cause of RDMA connections that cannot be made (ADDR_ERROR), while everything
 * else looks right.
 */
#include "base/mem.h"
#include "topo/build.h"
#include "topo/prefix.h"

enum { TABLE_DEFAULT = 253, TABLE_MAIN = 254, TABLE_LOCAL = 255 };

/* Texts are read once: a node with many pods has thousands of routes. */
struct route {
	const struct hw_route *hw;
	struct ip_prefix to; /* of no bits: everything */
};

struct rule {
	const struct hw_rule *hw;
	struct ip_prefix from, to;
};

struct tables {
	struct route *routes;
	struct rule *rules; /* as the kernel goes through them */
	size_t n_routes, n_rules;
};

/* One address of a rail. */
struct sender {
	const struct tables *tables;
	const char *netdev;
	struct ip_prefix address; /* its own bits; the prefix is what is on its link */
};

/* NULL is everything. */
static bool read_prefix(const char *text, int family, struct ip_prefix *ret)
{
	*ret = (struct ip_prefix){ .family = family };
	return !text || (ip_prefix_parse(text, ret) && ret->family == family);
}

static void read_tables(const struct hw_ip *ip, struct tables *t)
{
	t->routes = xcalloc(ip->n_routes, sizeof(*t->routes));
	t->rules = xcalloc(ip->n_rules, sizeof(*t->rules));
	for (size_t i = 0; i < ip->n_routes; i++) {
		struct route *route = &t->routes[t->n_routes];

		route->hw = &ip->routes[i];
		t->n_routes += read_prefix(route->hw->destination, route->hw->family, &route->to);
	}
	for (size_t i = 0; i < ip->n_rules; i++) {
		struct rule *rule = &t->rules[t->n_rules];

		rule->hw = &ip->rules[i];
		t->n_rules += read_prefix(rule->hw->from, rule->hw->family, &rule->from) &&
			      read_prefix(rule->hw->to, rule->hw->family, &rule->to);
	}
}

static struct ip_prefix host_of(const struct ip_prefix *address)
{
	struct ip_prefix host = *address;

	host.bits = host.family == 4 ? 32 : 128;
	return host;
}

/* The most specific route to "to" in a table, the one with the lowest metric; NULL: none. */
static const struct hw_route *look_up(const struct tables *t, unsigned int table,
				      const struct ip_prefix *to)
{
	const struct route *best = NULL;

	for (size_t i = 0; i < t->n_routes; i++) {
		const struct route *route = &t->routes[i];

		if (route->hw->table != table || !ip_prefix_contains(&route->to, to))
			continue;
		if (!best || route->to.bits > best->to.bits ||
		    (route->to.bits == best->to.bits && route->hw->metric < best->hw->metric))
			best = route;
	}
	return best ? best->hw : NULL;
}

static bool rule_applies(const struct rule *rule, const struct sender *s,
			 const struct ip_prefix *to)
{
	struct ip_prefix from = host_of(&s->address);

	return ip_prefix_contains(&rule->from, &from) && ip_prefix_contains(&rule->to, to) &&
	       (!rule->hw->iif || streq(rule->hw->iif, "lo")) &&
	       (!rule->hw->oif || streq(rule->hw->oif, s->netdev));
}

/* The link by which a packet from the sender's address to "to" leaves; NULL: it does not. */
static const char *leaves_by(const struct sender *s, const struct ip_prefix *to)
{
	static const unsigned int kernel[] = { TABLE_LOCAL, TABLE_MAIN, TABLE_DEFAULT };
	const struct tables *t = s->tables;
	const struct hw_route *route = NULL;
	bool any = false;

	for (size_t i = 0; i < t->n_rules && !route; i++) {
		any = any || t->rules[i].hw->family == to->family;
		if (rule_applies(&t->rules[i], s, to))
			route = look_up(t, t->rules[i].hw->table, to);
	}
	/* Recordings without rules have the kernel's own. */
	for (size_t i = 0; !any && i < ARRAY_SIZE(kernel) && !route; i++)
		route = look_up(t, kernel[i], to);
	return route && !route->unusable ? route->netdev : NULL;
}

static bool leaves_by_rail(const struct sender *s, const struct ip_prefix *to)
{
	const char *netdev = leaves_by(s, to);

	return netdev && streq(netdev, s->netdev);
}

/* Addresses of documentation (RFC 5737, RFC 3849) stand for "anywhere". */
static struct ip_prefix anywhere(int family)
{
	struct ip_prefix p;

	if (!ip_prefix_parse(family == 4 ? "198.51.100.1" : "2001:db8::1", &p))
		abort();
	return p;
}

/* The route goes beyond what is on the sender's link, and its packets take it. */
static bool takes_route(const struct sender *s, const struct route *route)
{
	const struct hw_route *hw = route->hw;
	struct ip_prefix edge;

	if (hw->family != s->address.family || !hw->netdev || !streq(hw->netdev, s->netdev) ||
	    hw->table == TABLE_LOCAL || ip_prefix_contains(&s->address, &route->to))
		return false;
	if (route->to.bits == 0) {
		edge = anywhere(route->to.family);
		return leaves_by_rail(s, &edge);
	}
	edge = ip_prefix_first(&route->to);
	if (leaves_by_rail(s, &edge))
		return true;
	edge = ip_prefix_last(&route->to);
	return leaves_by_rail(s, &edge);
}

/*
 * Yes: packets reach more than what is on the link.  No: they do not although the other nodes are
 * not on the link (one address only, or the platform file says so), or what is on the link is
 * reached by another link.  Otherwise the subnet of the rail may end where the link does: unknown.
 */
static enum tri check_sender(const struct sender *s, bool routed_rails)
{
	struct ip_prefix first = ip_prefix_first(&s->address), last = ip_prefix_last(&s->address);

	for (size_t i = 0; i < s->tables->n_routes; i++)
		if (takes_route(s, &s->tables->routes[i]))
			return TRI_YES;
	if (routed_rails || ip_prefix_is_host(&s->address))
		return TRI_NO;
	return leaves_by_rail(s, &first) || leaves_by_rail(s, &last) ? TRI_UNKNOWN : TRI_NO;
}

static bool is_link_of(const struct topo_nic *nic, const char *netdev)
{
	if (nic->netdev && streq(nic->netdev, netdev))
		return true;
	for (size_t i = 0; i < nic->n_children; i++)
		if (nic->children[i].netdev && streq(nic->children[i].netdev, netdev) &&
		    (streq(nic->children[i].kind, "ipvlan") ||
		     streq(nic->children[i].kind, "macvlan")))
			return true;
	return false;
}

static void warn_unrouted(struct builder *b, const struct topo_nic *nic,
			  const struct hw_address *address)
{
	const char *family = strchr(address->address, ':') ? "ip -6" : "ip";

	topo_warn(b, "rail-unrouted", nic->name,
		  "nothing but its own link is reached from %s/%d on %s, so RDMA connections to "
		  "other nodes fail (ADDR_ERROR); give the rail a table of its own: \"%s route add "
		  "default via <gateway> dev %s table <n>\" and \"%s rule add from %s lookup <n>\"",
		  address->address, address->prefix, address->netdev, family, address->netdev,
		  family, address->address);
}

/* One address that is routed is enough; the first that is not is named. */
static void check_nic(struct builder *b, const struct tables *tables, struct topo_nic *nic)
{
	const struct hw_ip *ip = &b->machine->ip;
	bool routed_rails = b->platform && b->platform->routed_rails == TRI_YES;
	const struct hw_address *unrouted = NULL;

	for (size_t i = 0; i < ip->n_addresses; i++) {
		const struct hw_address *address = &ip->addresses[i];
		struct sender s = { .tables = tables, .netdev = address->netdev };

		if (!is_link_of(nic, address->netdev) ||
		    (address->scope && !streq(address->scope, "global")) ||
		    !ip_prefix_parse(address->address, &s.address))
			continue;
		if (address->prefix >= 0 && address->prefix < s.address.bits)
			s.address.bits = address->prefix;
		switch (check_sender(&s, routed_rails)) {
		case TRI_YES:
			nic->rail_routed = TRI_YES;
			break;
		case TRI_NO:
			if (!ip->partial_rules[s.address.family == 6])
				unrouted = unrouted ? unrouted : address;
			break;
		default:
			break;
		}
	}
	if (unrouted && nic->rail_routed != TRI_YES) {
		nic->rail_routed = TRI_NO;
		warn_unrouted(b, nic, unrouted);
	}
}

void topo_check_routes(struct builder *b)
{
	struct tables tables = { 0 };

	if (!b->machine->ip.known)
		return;
	read_tables(&b->machine->ip, &tables);
	for (size_t i = 0; i < b->inv->n_nics; i++)
		if (b->inv->nics[i].role == ROLE_RAIL && b->nics[i].pf < 0)
			check_nic(b, &tables, &b->inv->nics[i]);
	free(tables.routes);
	free(tables.rules);
}

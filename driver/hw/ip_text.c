// SPDX-License-Identifier: Apache-2.0
/* The texts of ip.h: read and printed. */
#include "hw/ip.h"

#include <arpa/inet.h>

#include "base/mem.h"
#include "hw/read.h"

#define NAME_MAX_BYTES 63 /* the kernel's names have at most 15 */
#define TABLE_MAX 0xffffffffU
#define TABLE_DEFAULT 253
#define TABLE_MAIN 254
#define TABLE_LOCAL 255

static const char *const files[HW_IP_TEXTS] = {
	[HW_IP_ADDRESSES] = "twinrail/addresses", [HW_IP_ROUTES] = "twinrail/routes",
	[HW_IP_RULES] = "twinrail/rules",	  [HW_IP_NEIGHBOURS] = "twinrail/neighbours",
	[HW_IP_LINKS] = "twinrail/links",
};

const char *hw_ip_file(enum hw_ip_text which)
{
	return files[which];
}

/* What is read of one text. */
struct reader {
	struct hw_machine *machine;
	struct strlist words; /* of the line */
	struct hw_route route; /* the last one, without its next hops */
	bool route_valid;
	bool full; /* lines were left out for a bound */
};

/* The word after "key", NULL when it is not there. */
static const char *value_of(const struct strlist *words, size_t from, const char *key)
{
	for (size_t i = from; i + 1 < words->n; i++)
		if (streq(words->items[i], key))
			return words->items[i + 1];
	return NULL;
}

/* A link that is called as a word of the text is cannot be told from that. */
static bool is_name(const char *word)
{
	static const char *const keys[] = { "dev",    "via",	"nexthop", "metric", "table",
					    "scope",  "from",	"to",	   "iif",    "oif",
					    "lookup", "lladdr", "kind",	   "master", "lower" };

	for (size_t i = 0; word && i < ARRAY_SIZE(keys); i++)
		if (streq(word, keys[i]))
			return false;
	return word && strlen(word) <= NAME_MAX_BYTES && utf8_valid(word, strlen(word));
}

/* 4, 6, or 0 when it is no address. */
static int family_of(const char *address)
{
	unsigned char bytes[16];

	if (inet_pton(AF_INET, address, bytes) == 1)
		return 4;
	return inet_pton(AF_INET6, address, bytes) == 1 ? 6 : 0;
}

/* "10.1.0.5/32", also without the length; the family or 0. */
static int parse_prefix(const char *word, char **address, int *prefix)
{
	const char *slash = strchrnul(word, '/');
	_cleanup_free_ char *text = xstrndup(word, (size_t)(slash - word));
	int family = family_of(text), bits = family == 4 ? 32 : 128;
	unsigned int n = (unsigned int)bits;

	if (!family || (*slash && parse_uint(slash + 1, (unsigned int)bits, &n) < 0))
		return 0;
	*address = TAKE_PTR(text);
	*prefix = (int)n;
	return family;
}

static bool parse_table(const char *word, unsigned int *table)
{
	uint64_t n;

	if (!word || streq(word, "main"))
		*table = TABLE_MAIN;
	else if (streq(word, "default"))
		*table = TABLE_DEFAULT;
	else if (streq(word, "local"))
		*table = TABLE_LOCAL;
	else if (parse_u64(word, 10, &n) < 0 || n == 0 || n > TABLE_MAX)
		return false;
	else
		*table = (unsigned int)n;
	return true;
}

/* gpu0rdma0 10.1.0.5/32 scope global */
static bool parse_address(struct reader *r)
{
	struct hw_ip *ip = &r->machine->ip;
	const struct strlist *w = &r->words;
	const char *scope = value_of(w, 2, "scope");
	char *address;
	int prefix;

	if (w->n < 2 || !is_name(w->items[0]) || !parse_prefix(w->items[1], &address, &prefix))
		return false;
	if (ip->n_addresses >= HW_MAX_ADDRESSES) {
		r->full = true;
		free(address);
		return true;
	}
	*array_push(ip->addresses, ip->n_addresses, ip->cap_addresses) = (struct hw_address){
		.netdev = xstrdup(w->items[0]),
		.address = address,
		.prefix = prefix,
		.scope = xstrdup_null(is_name(scope) ? scope : NULL),
	};
	return true;
}

/* "… via 10.0.0.1 dev eth0 …" of the words from "from" to "to"; false: what is there is wrong. */
static bool parse_hop(struct reader *r, size_t from, size_t to)
{
	struct hw_ip *ip = &r->machine->ip;
	struct hw_route route = r->route;
	const char *dev = NULL, *via = NULL;

	for (size_t i = from; i + 1 < to; i++) {
		const char *word = r->words.items[i], *next = r->words.items[i + 1];

		if (streq(word, "dev")) {
			dev = next;
			i++;
		} else if (streq(word, "via") && !starts_with(next, "inet")) {
			via = next;
			i++;
		} else if (streq(word, "via") && i + 2 < to) {
			via = r->words.items[i + 2];
			i += 2;
		}
	}
	if ((!dev && !route.unusable) || (dev && !is_name(dev)) || (via && !family_of(via)))
		return false;
	if (ip->n_routes >= HW_MAX_ROUTES) {
		r->full = true;
		return true;
	}
	if (!route.family)
		route.family = via ? family_of(via) : 4;
	route.netdev = xstrdup_null(dev);
	route.gateway = xstrdup_null(via);
	route.destination = xstrdup_null(route.destination);
	*array_push(ip->routes, ip->n_routes, ip->cap_routes) = route;
	return true;
}

static bool parse_hops(struct reader *r, size_t from)
{
	const struct strlist *w = &r->words;
	bool ok = true;

	while (ok && from < w->n) {
		size_t to = from + 1;

		while (to < w->n && !streq(w->items[to], "nexthop"))
			to++;
		ok = parse_hop(r, from, to);
		from = to;
	}
	return ok;
}

/* Everything but the next hops into r->route; false: it is wrong. */
static bool parse_destination(struct reader *r, size_t *at)
{
	static const char *const unusable[] = { "unreachable", "blackhole", "prohibit", "throw" };
	const struct strlist *w = &r->words;
	const char *metric;
	int prefix, family;
	char *address;

	r->route = (struct hw_route){ 0 };
	if (*at < w->n && streq(w->items[*at], "-6")) {
		r->route.family = 6;
		++*at;
	}
	for (size_t i = 0; *at < w->n && !r->route.unusable && i < ARRAY_SIZE(unusable); i++)
		r->route.unusable = streq(w->items[*at], unusable[i]);
	*at += r->route.unusable;
	if (*at >= w->n)
		return false;
	metric = value_of(w, *at, "metric");
	if (!parse_table(value_of(w, *at, "table"), &r->route.table) ||
	    (metric && parse_uint(metric, TABLE_MAX, &r->route.metric) < 0))
		return false;
	if (!streq(w->items[*at], "default")) {
		family = parse_prefix(w->items[*at], &address, &prefix);
		if (!family)
			return false;
		r->route.family = family;
		r->route.destination = xasprintf("%s/%d", address, prefix);
		free(address);
	}
	++*at;
	return true;
}

/* Routes to the node itself say nothing that its addresses do not. */
static bool is_local(const char *word)
{
	return streq(word, "local") || streq(word, "broadcast") || streq(word, "anycast") ||
	       streq(word, "multicast");
}

static bool parse_route(struct reader *r)
{
	size_t at = 0;

	if (streq(r->words.items[0], "nexthop"))
		return r->route_valid && parse_hops(r, 0);
	free(r->route.destination);
	r->route.destination = NULL;
	r->route_valid = false;
	if (is_local(r->words.items[0]))
		return true;
	if (!parse_destination(r, &at))
		return false;
	r->route_valid = true;
	/* "ip route" puts the next hops of a route into lines of their own */
	if (!r->route.unusable && !value_of(&r->words, at, "dev") &&
	    !value_of(&r->words, at, "via"))
		return true;
	if (at == r->words.n)
		return parse_hop(r, at, at);
	for (size_t i = at; i < r->words.n; i++)
		if (streq(r->words.items[i], "nexthop")) {
			at = i; /* after "metric 100" */
			break;
		}
	return parse_hops(r, at);
}

static bool has_word(const struct strlist *words, size_t from, const char *const *known)
{
	for (; *known; known++)
		for (size_t i = from; i < words->n; i++)
			if (streq(words->items[i], *known))
				return true;
	return false;
}

/*
 * A rule that struct hw_rule cannot tell: true.  That such rules exist is kept, but for those that
 * ask for what packets of RDMA connections do not have, see netlink_route.c.
 */
static bool is_partial_rule(struct reader *r, size_t at, bool six)
{
	static const char *const others[] = {
		"fwmark", "ipproto", "sport", "dport", "tun_id", NULL
	};
	static const char *const partial[] = { "partial",
					       "not",
					       "tos",
					       "dsfield",
					       "uidrange",
					       "l3mdev",
					       "goto",
					       "nop",
					       "[l3mdev-table]",
					       "unreachable",
					       "prohibit",
					       "blackhole",
					       "suppress_prefixlength",
					       "suppress_ifgroup",
					       NULL };
	static const char *const inverted[] = { "not", NULL };
	const struct strlist *w = &r->words;

	if (has_word(w, at, others) && !has_word(w, at, inverted))
		return true;
	if (!has_word(w, at, partial))
		return false;
	r->machine->ip.partial_rules[six] = true;
	return true;
}

static bool parse_rule_selectors(struct reader *r, size_t at, struct hw_rule *rule)
{
	const struct strlist *w = &r->words;
	const struct {
		const char *key;
		char **value;
		bool is_prefix;
	} keys[] = { { "from", &rule->from, true },
		     { "to", &rule->to, true },
		     { "iif", &rule->iif, false },
		     { "oif", &rule->oif, false } };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = value_of(w, at, keys[i].key);
		char *address;
		int prefix, family;

		if (!value || (keys[i].is_prefix && streq(value, "all")))
			continue;
		if (keys[i].is_prefix) {
			family = parse_prefix(value, &address, &prefix);
			free(family ? address : NULL);
			if (!family || (rule->family && rule->family != family))
				return false;
			rule->family = family;
		}
		if (!is_name(value))
			return false;
		*keys[i].value = xstrdup(value);
	}
	if (!rule->family)
		rule->family = 4;
	return true;
}

static void rule_done(struct hw_rule *rule)
{
	free(rule->from);
	free(rule->to);
	free(rule->iif);
	free(rule->oif);
}

/* 100: from 10.1.0.5 lookup 101 */
static bool parse_rule(struct reader *r)
{
	struct hw_ip *ip = &r->machine->ip;
	const struct strlist *w = &r->words;
	struct hw_rule rule = { 0 };
	const char *table;
	size_t at = 0;

	if (streq(w->items[0], "-6")) {
		rule.family = 6;
		at++;
	}
	if (is_partial_rule(r, at, rule.family == 6))
		return true;
	if (at >= w->n || !ends_with(w->items[at], ":"))
		return false;
	w->items[at][strlen(w->items[at]) - 1] = '\0';
	if (parse_uint(w->items[at], TABLE_MAX, &rule.priority) < 0)
		return false;
	table = value_of(w, at, "lookup");
	if (!table || !parse_table(table, &rule.table) || !parse_rule_selectors(r, at, &rule)) {
		rule_done(&rule);
		return false;
	}
	if (ip->n_rules >= HW_MAX_RULES) {
		r->full = true;
		ip->partial_rules[rule.family == 6] = true;
		rule_done(&rule);
		return true;
	}
	*array_push(ip->rules, ip->n_rules, ip->cap_rules) = rule;
	return true;
}

/* 10.1.0.1 dev gpu0rdma0 lladdr 00:00:5e:00:53:01 PERMANENT */
static bool parse_neighbour(struct reader *r)
{
	struct hw_ip *ip = &r->machine->ip;
	const struct strlist *w = &r->words;
	const char *dev = value_of(w, 1, "dev"), *lladdr = value_of(w, 1, "lladdr");
	const char *state = w->items[w->n - 1];

	if (!family_of(w->items[0]) || !is_name(dev) || !is_name(lladdr) || w->n < 6 ||
	    !is_name(state))
		return false;
	if (ip->n_neighbours >= HW_MAX_NEIGHBOURS) {
		r->full = true;
		return true;
	}
	*array_push(ip->neighbours, ip->n_neighbours, ip->cap_neighbours) = (struct hw_neighbour){
		.netdev = xstrdup(dev),
		.address = xstrdup(w->items[0]),
		.lladdr = xstrdup(lladdr),
		.state = xstrdup(state),
	};
	return true;
}

/* What follows each "lower"; false: one is no name. */
static bool find_lower(const struct strlist *words, struct strlist *ret)
{
	for (size_t i = 1; i + 1 < words->n; i++) {
		if (!streq(words->items[i], "lower"))
			continue;
		if (!is_name(words->items[i + 1]))
			return false;
		strlist_add(ret, words->items[i + 1]);
	}
	return true;
}

/* eth0 kind ipvlan master vrf0 lower eth1; a link that sysfs does not show says nothing */
static bool parse_link(struct reader *r)
{
	const struct strlist *w = &r->words;
	struct hw_netdev *netdev = (struct hw_netdev *)hw_find_netdev(r->machine, w->items[0]);
	struct strlist lower = { 0 };
	bool ok = find_lower(w, &lower);
	const char *kind = value_of(w, 1, "kind"), *master = value_of(w, 1, "master");

	ok = ok && (kind || master || lower.n) && (!kind || is_name(kind)) &&
	     (!master || is_name(master));
	if (ok && netdev && !netdev->kind)
		netdev->kind = xstrdup_null(kind);
	if (ok && netdev && !netdev->master)
		netdev->master = xstrdup_null(master);
	for (size_t i = 0; ok && netdev && i < lower.n; i++)
		if (!strlist_has(&netdev->lower, lower.items[i]))
			strlist_add(&netdev->lower, lower.items[i]);
	strlist_done(&lower);
	return ok;
}

void hw_ip_parse(enum hw_ip_text which, const char *text, struct hw_machine *machine)
{
	static bool (*const parse[HW_IP_TEXTS])(struct reader *) = {
		[HW_IP_ADDRESSES] = parse_address, [HW_IP_ROUTES] = parse_route,
		[HW_IP_RULES] = parse_rule,	   [HW_IP_NEIGHBOURS] = parse_neighbour,
		[HW_IP_LINKS] = parse_link,
	};
	struct reader r = { .machine = machine };
	size_t wrong = 0, first = 0, number = 0;
	unsigned int part = machine->part;

	while (*text) {
		const char *end = strchrnul(text, '\n');
		_cleanup_free_ char *line = xstrndup(text, (size_t)(end - text));

		number++;
		text = *end ? end + 1 : end;
		for (char *p = line; *p; p++)
			if (*p == '\t' || *p == '\r')
				*p = ' ';
		strlist_split(&r.words, line, ' ');
		if (r.words.n && (!utf8_valid(line, strlen(line)) || !parse[which](&r)) && !wrong++)
			first = number;
		strlist_done(&r.words);
	}
	free(r.route.destination);
	machine->part = HW_PART_IP;
	if (wrong)
		hw_warn(machine, "ip-text", files[which],
			"%zu lines cannot be read and are left out; the first is line %zu", wrong,
			first);
	if (r.full)
		hw_warn(machine, "ip-too-many", files[which],
			"more lines than can be held; the rest is left out");
	machine->part = part;
}

static void print_hop(struct buf *b, const struct hw_route *route)
{
	if (route->gateway)
		buf_printf(b, " via %s", route->gateway);
	if (route->netdev)
		buf_printf(b, " dev %s", route->netdev);
}

static bool same_route(const struct hw_route *a, const struct hw_route *b)
{
	return a->family == b->family && a->table == b->table && a->metric == b->metric &&
	       a->unusable == b->unusable && streq_null(a->destination, b->destination);
}

/* Neighbours in the array that differ in nothing but the next hop are one line. */
static void print_routes(struct buf *b, const struct hw_ip *ip)
{
	for (size_t i = 0, n; i < ip->n_routes; i += n) {
		const struct hw_route *route = &ip->routes[i];

		for (n = 1; i + n < ip->n_routes && same_route(route, &ip->routes[i + n]); n++)
			;
		if (route->family == 6 && !route->destination)
			buf_str(b, "-6 ");
		if (route->unusable)
			buf_str(b, "unreachable ");
		buf_str(b, route->destination ? route->destination : "default");
		if (route->table != TABLE_MAIN)
			buf_printf(b, " table %u", route->table);
		if (route->metric)
			buf_printf(b, " metric %u", route->metric);
		for (size_t k = 0; k < n; k++) {
			if (n > 1)
				buf_str(b, " nexthop");
			print_hop(b, &route[k]);
		}
		buf_str(b, "\n");
	}
}

static void print_rule(struct buf *b, const struct hw_rule *rule)
{
	buf_printf(b, "%s%u: from %s", rule->family == 6 ? "-6 " : "", rule->priority,
		   rule->from ? rule->from : "all");
	if (rule->to)
		buf_printf(b, " to %s", rule->to);
	if (rule->iif)
		buf_printf(b, " iif %s", rule->iif);
	if (rule->oif)
		buf_printf(b, " oif %s", rule->oif);
	buf_printf(b, " lookup %u\n", rule->table);
}

static void print_link(struct buf *b, const struct hw_netdev *netdev)
{
	if (!netdev->kind && !netdev->master && netdev->lower.n == 0)
		return;
	buf_str(b, netdev->name);
	if (netdev->kind)
		buf_printf(b, " kind %s", netdev->kind);
	if (netdev->master)
		buf_printf(b, " master %s", netdev->master);
	for (size_t i = 0; i < netdev->lower.n; i++)
		buf_printf(b, " lower %s", netdev->lower.items[i]);
	buf_str(b, "\n");
}

char *hw_ip_print(const struct hw_machine *machine, enum hw_ip_text which)
{
	const struct hw_ip *ip = &machine->ip;
	struct buf b = { 0 };

	switch (which) {
	case HW_IP_ADDRESSES:
		for (size_t i = 0; i < ip->n_addresses; i++) {
			const struct hw_address *a = &ip->addresses[i];

			buf_printf(&b, "%s %s/%d%s%s\n", a->netdev, a->address, a->prefix,
				   a->scope ? " scope " : "", a->scope ? a->scope : "");
		}
		break;
	case HW_IP_ROUTES:
		print_routes(&b, ip);
		break;
	case HW_IP_RULES:
		for (size_t i = 0; i < ip->n_rules; i++)
			print_rule(&b, &ip->rules[i]);
		if (ip->partial_rules[0])
			buf_str(&b, "partial\n");
		if (ip->partial_rules[1])
			buf_str(&b, "-6 partial\n");
		break;
	case HW_IP_NEIGHBOURS:
		for (size_t i = 0; i < ip->n_neighbours; i++)
			buf_printf(&b, "%s dev %s lladdr %s %s\n", ip->neighbours[i].address,
				   ip->neighbours[i].netdev, ip->neighbours[i].lladdr,
				   ip->neighbours[i].state);
		break;
	case HW_IP_LINKS:
		for (size_t i = 0; i < machine->n_netdevs; i++)
			print_link(&b, &machine->netdevs[i]);
		break;
	case HW_IP_TEXTS:
		break;
	}
	return buf_take(&b);
}

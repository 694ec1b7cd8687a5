// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses, routes, rules and neighbours: of the running kernel by rtnetlink (netlink.c), of a
 * recorded machine from the texts below twinrail/ (ip_text.c).
 */
#include "hw/ip.h"

#include <errno.h>

#include "base/mem.h"
#include "hw/netlink.h"
#include "hw/read.h"

#define TEXT_MAX_BYTES (16 * 1024 * 1024)
#define TABLE_DEFAULT 253
#define TABLE_MAIN 254

/* True: it was recorded. */
static bool read_text(const struct hw_root *root, enum hw_ip_text which, struct hw_machine *machine)
{
	static const char *const code[HW_IP_TEXTS] = {
		[HW_IP_ADDRESSES] = "addresses-unreadable",
		[HW_IP_ROUTES] = "routes-unreadable",
		[HW_IP_RULES] = "rules-unreadable",
		[HW_IP_NEIGHBOURS] = "neighbours-unreadable",
		[HW_IP_LINKS] = "links-unreadable",
	};
	const char *path = hw_ip_file(which);
	_cleanup_free_ char *text = NULL;
	int r = hw_root_read(root, path, TEXT_MAX_BYTES, &text, NULL);

	if (r == 0)
		hw_ip_parse(which, text, machine);
	else if (r != -ENOENT)
		hw_unreadable(machine, code[which], path, strchr(path, '/') + 1, r);
	return r == 0;
}

static void read_recorded(const struct hw_root *root, struct hw_machine *machine)
{
	bool known[HW_IP_TEXTS];

	for (enum hw_ip_text i = 0; i < HW_IP_TEXTS; i++)
		known[i] = read_text(root, i, machine);
	machine->ip.known = known[HW_IP_ADDRESSES] && known[HW_IP_ROUTES];
}

/*
 * Tables that are asked for any packet: main and default (the kernel's own rules), and those of
 * rules without a selector.
 */
static bool is_asked_always(const struct hw_ip *ip, const struct hw_route *route)
{
	if (route->table == TABLE_MAIN || route->table == TABLE_DEFAULT)
		return true;
	for (size_t i = 0; i < ip->n_rules; i++) {
		const struct hw_rule *rule = &ip->rules[i];

		if (rule->table == route->table && rule->family == route->family && !rule->from &&
		    !rule->to && !rule->iif && !rule->oif)
			return true;
	}
	return false;
}

/* Whether the link belongs to a VRF, whose table then is the one of its routes. */
static bool is_in_vrf(const struct hw_machine *machine, const char *name)
{
	const struct hw_netdev *netdev = hw_find_netdev(machine, name);
	const struct hw_netdev *master =
		netdev && netdev->master ? hw_find_netdev(machine, netdev->master) : NULL;

	return master && master->kind && streq(master->kind, "vrf");
}

/* Also by halves, as some VPN clients do (0.0.0.0/1 and 128.0.0.0/1), or all that is global. */
static bool is_default(const struct hw_route *route)
{
	const char *slash = route->destination ? strchr(route->destination, '/') : NULL;
	unsigned int prefix;

	if (!route->destination)
		return true;
	return slash && parse_uint(slash + 1, 128, &prefix) == 0 &&
	       prefix <= (route->family == 4 ? 1 : 3);
}

/*
 * The links through which the node reaches the world: every default route counts, whatever its
 * metric.  The table of one rail, which only a rule for that rail's address leads to, does not.
 */
static void set_default_routes(struct hw_machine *machine)
{
	struct strlist *ret = &machine->default_routes;

	for (size_t i = 0; i < machine->ip.n_routes; i++) {
		const struct hw_route *route = &machine->ip.routes[i];

		if (!is_default(route) || route->unusable || !route->netdev ||
		    streq(route->netdev, "lo") || strlist_has(ret, route->netdev))
			continue;
		if (is_asked_always(&machine->ip, route) || is_in_vrf(machine, route->netdev))
			strlist_add(ret, route->netdev);
	}
	strlist_sort(ret);
}

static int cmp_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int cmp_number(unsigned int a, unsigned int b)
{
	return a < b ? -1 : a > b;
}

static int cmp_address(const void *a, const void *b)
{
	const struct hw_address *x = a, *y = b;
	int r = strcmp(x->netdev, y->netdev);

	r = r ? r : strcmp(x->address, y->address);
	return r ? r : x->prefix - y->prefix;
}

static int cmp_route(const void *a, const void *b)
{
	const struct hw_route *x = a, *y = b;
	int r = x->family - y->family;

	r = r ? r : cmp_number(x->table, y->table);
	r = r ? r : cmp_text(x->destination, y->destination);
	r = r ? r : cmp_number(x->metric, y->metric);
	r = r ? r : x->unusable - y->unusable;
	r = r ? r : cmp_text(x->netdev, y->netdev);
	return r ? r : cmp_text(x->gateway, y->gateway);
}

static int cmp_rule(const void *a, const void *b)
{
	const struct hw_rule *x = a, *y = b;
	int r = x->family - y->family;

	r = r ? r : cmp_number(x->priority, y->priority);
	r = r ? r : cmp_text(x->from, y->from);
	r = r ? r : cmp_text(x->to, y->to);
	r = r ? r : cmp_text(x->iif, y->iif);
	r = r ? r : cmp_text(x->oif, y->oif);
	return r ? r : cmp_number(x->table, y->table);
}

static int cmp_neighbour(const void *a, const void *b)
{
	const struct hw_neighbour *x = a, *y = b;
	int r = strcmp(x->netdev, y->netdev);

	return r ? r : strcmp(x->address, y->address);
}

static void sort(void *items, size_t n, size_t size, int (*cmp)(const void *, const void *))
{
	if (n > 1)
		qsort(items, n, size, cmp);
}

void hw_read_ip(const struct hw_root *root, struct hw_machine *machine)
{
	struct hw_ip *ip = &machine->ip;

	if (root->live)
		hw_netlink_read(machine);
	else
		read_recorded(root, machine);
	sort(ip->addresses, ip->n_addresses, sizeof(*ip->addresses), cmp_address);
	sort(ip->routes, ip->n_routes, sizeof(*ip->routes), cmp_route);
	sort(ip->rules, ip->n_rules, sizeof(*ip->rules), cmp_rule);
	sort(ip->neighbours, ip->n_neighbours, sizeof(*ip->neighbours), cmp_neighbour);
	set_default_routes(machine);
}

void hw_clear_ip(struct hw_machine *machine)
{
	struct hw_ip *ip = &machine->ip;

	for (size_t i = 0; i < ip->n_addresses; i++) {
		free(ip->addresses[i].netdev);
		free(ip->addresses[i].address);
		free(ip->addresses[i].scope);
	}
	for (size_t i = 0; i < ip->n_routes; i++) {
		free(ip->routes[i].destination);
		free(ip->routes[i].netdev);
		free(ip->routes[i].gateway);
	}
	for (size_t i = 0; i < ip->n_rules; i++) {
		free(ip->rules[i].from);
		free(ip->rules[i].to);
		free(ip->rules[i].iif);
		free(ip->rules[i].oif);
	}
	for (size_t i = 0; i < ip->n_neighbours; i++) {
		free(ip->neighbours[i].netdev);
		free(ip->neighbours[i].address);
		free(ip->neighbours[i].lladdr);
		free(ip->neighbours[i].state);
	}
	free(ip->addresses);
	free(ip->routes);
	free(ip->rules);
	free(ip->neighbours);
	*ip = (struct hw_ip){ 0 };
	strlist_done(&machine->default_routes);
}

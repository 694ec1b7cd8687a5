// SPDX-License-Identifier: Apache-2.0
/*
 * Recorded addresses, routes, rules, neighbours and links.  What was read is printed and read
 * again: that must be the same.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "fuzz.h"
#include "hw/ip.h"
#include "hw/machine.h"

static struct hw_machine *new_machine(void)
{
	static const char *const names[] = { "a", "eth0", "eth1", "gpu0rdma0", "vrf0" };
	struct hw_machine *m = xnew(struct hw_machine);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		*array_push(m->netdevs, m->n_netdevs, m->cap_netdevs) =
			(struct hw_netdev){ .name = xstrdup(names[i]) };
	return m;
}

static void check_filled(const char *text, const char *what)
{
	CHECK(!text || *text, "an empty %s", what);
}

static void check_facts(const struct hw_ip *ip)
{
	CHECK(ip->n_addresses <= HW_MAX_ADDRESSES && ip->n_routes <= HW_MAX_ROUTES &&
		      ip->n_rules <= HW_MAX_RULES && ip->n_neighbours <= HW_MAX_NEIGHBOURS,
	      "more than the bounds");
	for (size_t i = 0; i < ip->n_addresses; i++) {
		const struct hw_address *a = &ip->addresses[i];

		CHECK(a->netdev && a->address, "an address without link or address");
		CHECK(a->prefix >= 0 && a->prefix <= 128, "prefix %d", a->prefix);
		check_filled(a->scope, "scope");
	}
	for (size_t i = 0; i < ip->n_routes; i++) {
		const struct hw_route *route = &ip->routes[i];

		CHECK(route->family == 4 || route->family == 6, "family %d", route->family);
		check_filled(route->destination, "destination");
		check_filled(route->netdev, "link of a route");
		check_filled(route->gateway, "gateway");
	}
	for (size_t i = 0; i < ip->n_rules; i++)
		CHECK(ip->rules[i].family == 4 || ip->rules[i].family == 6, "family %d",
		      ip->rules[i].family);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum hw_ip_text which = size ? data[0] % HW_IP_TEXTS : HW_IP_ROUTES;
	_cleanup_free_ char *text =
		xstrndup(size ? (const char *)data + 1 : "", size ? size - 1 : 0);
	struct hw_machine *first = new_machine(), *second = new_machine();
	_cleanup_free_ char *printed = NULL, *again = NULL;

	hw_ip_parse(which, text, first);
	check_facts(&first->ip);
	printed = hw_ip_print(first, which);
	hw_ip_parse(which, printed, second);
	CHECK(second->n_warnings == 0, "what was printed cannot be read: %s", printed);
	again = hw_ip_print(second, which);
	CHECK(streq(printed, again), "read again it is another:\n%s\n%s", printed, again);
	hw_free(first);
	hw_free(second);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "base/mem.h"
#include "hw/read.h"

#define ROUTES_MAX (1024 * 1024)

static void add_default_route(struct hw_machine *machine, const char *netdev)
{
	if (!strlist_has(&machine->default_routes, netdev))
		strlist_add(&machine->default_routes, netdev);
}

/* Words "default … dev NAME", also several next hops, as "ip route" prints them. */
static void parse_recorded(struct hw_machine *machine, struct strlist *words)
{
	bool is_default = words->n > 0 && streq(words->items[0], "default");

	for (size_t i = 0; is_default && i + 1 < words->n; i++)
		if (streq(words->items[i], "dev"))
			add_default_route(machine, words->items[i + 1]);
}

/* /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask …, hexadecimal. */
static void parse_ipv4(struct hw_machine *machine, struct strlist *w)
{
	if (w->n >= 8 && streq(w->items[1], "00000000") && streq(w->items[7], "00000000"))
		add_default_route(machine, w->items[0]);
}

/*
 * /proc/net/ipv6_route: destination, prefix length, source, prefix length, next hop, metric,
 * counters, flags, device.  The kernel's own "unreachable default" is on lo.
 */
static void parse_ipv6(struct hw_machine *machine, struct strlist *w)
{
	if (w->n >= 10 && streq(w->items[0], "00000000000000000000000000000000") &&
	    streq(w->items[1], "00") && !streq(w->items[9], "lo"))
		add_default_route(machine, w->items[9]);
}

static void read_route_file(const struct hw_root *root, const char *path,
			    struct hw_machine *machine,
			    void (*parse)(struct hw_machine *, struct strlist *))
{
	_cleanup_free_ char *text = NULL;
	struct strlist lines = { 0 };
	int r = hw_root_read(root, path, ROUTES_MAX, &text, NULL);

	if (r < 0) {
		if (r != -ENOENT)
			hw_unreadable(machine, "routes-unreadable", path, "routes", r);
		return;
	}
	for (char *p = text; *p; p++)
		if (*p == '\t')
			*p = ' ';
	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n; i++) {
		struct strlist words = { 0 };

		strlist_split(&words, lines.items[i], ' ');
		parse(machine, &words);
		strlist_done(&words);
	}
	strlist_done(&lines);
}

void hw_read_ip(const struct hw_root *root, struct hw_machine *machine)
{
	if (root->live) {
		read_route_file(root, "proc/net/route", machine, parse_ipv4);
		read_route_file(root, "proc/net/ipv6_route", machine, parse_ipv6);
	} else {
		read_route_file(root, "twinrail/routes", machine, parse_recorded);
	}
}

void hw_clear_ip(struct hw_machine *machine)
{
	strlist_done(&machine->default_routes);
}

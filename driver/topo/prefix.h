/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_PREFIX_H
#define TWINRAIL_TOPO_PREFIX_H

#include <stdbool.h>

/* An IP network, or an address as one of 32 or 128 bits. */
struct ip_prefix {
	int family; /* 4 or 6 */
	unsigned char bytes[16]; /* all bits of the text, also those behind the prefix */
	int bits;
};

/* "10.1.0.0/21", "fd00::1"; false: it is neither. */
bool ip_prefix_parse(const char *text, struct ip_prefix *ret);

/* The largest prefix of a family is /32 or /128: one address. */
bool ip_prefix_is_host(const struct ip_prefix *prefix);

/* All addresses of "inner" are in "outer" (equal ones, too). */
bool ip_prefix_contains(const struct ip_prefix *outer, const struct ip_prefix *inner);

/* The lowest and the highest address, as prefixes of one address. */
struct ip_prefix ip_prefix_first(const struct ip_prefix *prefix);
struct ip_prefix ip_prefix_last(const struct ip_prefix *prefix);

#endif

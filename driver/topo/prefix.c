// SPDX-License-Identifier: Apache-2.0
#include "topo/prefix.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static int all_bits(int family)
{
	return family == 4 ? 32 : 128;
}

bool ip_prefix_parse(const char *text, struct ip_prefix *ret)
{
	const char *slash = strchrnul(text, '/');
	_cleanup_free_ char *address = xstrndup(text, (size_t)(slash - text));
	unsigned int bits;

	memset(ret, 0, sizeof(*ret));
	if (inet_pton(AF_INET, address, ret->bytes) == 1)
		ret->family = 4;
	else if (inet_pton(AF_INET6, address, ret->bytes) == 1)
		ret->family = 6;
	else
		return false;
	bits = (unsigned int)all_bits(ret->family);
	if (*slash && parse_uint(slash + 1, bits, &bits) < 0)
		return false;
	ret->bits = (int)bits;
	return true;
}

bool ip_prefix_is_host(const struct ip_prefix *prefix)
{
	return prefix->bits == all_bits(prefix->family);
}

bool ip_prefix_contains(const struct ip_prefix *outer, const struct ip_prefix *inner)
{
	size_t whole = (size_t)outer->bits / 8;
	unsigned int rest = (unsigned int)outer->bits % 8;
	unsigned char mask = (unsigned char)(0xff00U >> rest);

	if (outer->family != inner->family || outer->bits > inner->bits)
		return false;
	if (memcmp(outer->bytes, inner->bytes, whole) != 0)
		return false;
	return rest == 0 || (outer->bytes[whole] & mask) == (inner->bytes[whole] & mask);
}

/* The bits behind the prefix become "ones" or zeroes. */
static struct ip_prefix edge(const struct ip_prefix *prefix, bool ones)
{
	struct ip_prefix ret = *prefix;
	int all = all_bits(prefix->family);

	for (int bit = prefix->bits; bit < all; bit++) {
		unsigned char mask = (unsigned char)(0x80U >> (bit % 8));

		if (ones)
			ret.bytes[bit / 8] |= mask;
		else
			ret.bytes[bit / 8] &= (unsigned char)~mask;
	}
	ret.bits = all;
	return ret;
}

struct ip_prefix ip_prefix_first(const struct ip_prefix *prefix)
{
	return edge(prefix, false);
}

struct ip_prefix ip_prefix_last(const struct ip_prefix *prefix)
{
	return edge(prefix, true);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/bus_id.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

static size_t hex_run(const char *s)
{
	return strspn(s, "0123456789abcdef");
}

bool is_bus_id(const char *s)
{
	size_t domain = hex_run(s);

	if (domain < 4 || domain > 8 || s[domain] != ':')
		return false;
	s += domain + 1;
	return hex_run(s) == 2 && s[2] == ':' && hex_run(s + 3) == 2 && s[5] == '.' &&
	       s[6] >= '0' && s[6] <= '7' && s[7] == '\0';
}

bool is_standard_bus_id(const char *s)
{
	return is_bus_id(s) && s[4] == ':';
}

bool bus_id_same_slot(const char *a, const char *b)
{
	size_t n = strlen(a);

	return is_bus_id(a) && is_bus_id(b) && n == strlen(b) && strncmp(a, b, n - 1) == 0;
}

/* Whole inventories are sorted by address: no call of strspn(), which makes a table each time. */
static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One hexadecimal number of a PCI address and the character after it. */
static bool address_part(const char **p, uint64_t *ret)
{
	uint64_t v = 0;
	int n = 0, digit;

	for (; (digit = hex_value((*p)[n])) >= 0; n++) {
		if (n == 8)
			return false;
		v = v << 4 | (uint64_t)digit;
	}
	if (n == 0)
		return false;
	*p += n + ((*p)[n] != '\0');
	*ret = v;
	return true;
}

int bus_id_cmp(const char *a, const char *b)
{
	const char *p = a, *q = b;

	for (int i = 0; i < 4; i++) {
		uint64_t x, y;

		if (!address_part(&p, &x) || !address_part(&q, &y))
			return strcmp(a, b);
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

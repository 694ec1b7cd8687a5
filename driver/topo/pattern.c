// SPDX-License-Identifier: Apache-2.0
#include "topo/pattern.h"

#include <errno.h>
#include <stdio.h>

#define ROLE_PREFIX "role="

static const char hex_pattern[] = "0123456789abcdefABCDEF*?";

bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (*pattern && (*pattern == '?' || *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

static size_t count(const char *s, char c)
{
	size_t n = 0;

	for (; *s; s++)
		n += *s == c;
	return n;
}

/* A pattern of hexadecimal digits as the kernel writes them; "ret" has PATTERN_MAX_BYTES + 1. */
static void to_lower(const char *pattern, char *ret)
{
	size_t n = 0;

	for (; pattern[n] && n < PATTERN_MAX_BYTES; n++)
		ret[n] = (char)(pattern[n] | (pattern[n] >= 'A' && pattern[n] <= 'F' ? 0x20 : 0));
	ret[n] = '\0';
}

bool id_pattern_is_valid(const char *pattern)
{
	size_t first = strspn(pattern, hex_pattern), second;

	if (first == 0 || first > 4 || pattern[first] != ':')
		return false;
	second = strspn(pattern + first + 1, hex_pattern);
	return second > 0 && second <= 4 && !pattern[first + 1 + second];
}

bool id_pattern_match(const char *pattern, unsigned int vendor, unsigned int device)
{
	char text[32], low[PATTERN_MAX_BYTES + 1];

	snprintf(text, sizeof(text), "%04x:%04x", vendor, device);
	to_lower(pattern, low);
	return glob_match(low, text);
}

bool id_patterns_match(const struct strlist *patterns, unsigned int vendor, unsigned int device)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (id_pattern_match(patterns->items[i], vendor, device))
			return true;
	return false;
}

/* "0000:03:00.0": only what an address is made of. */
static bool address_pattern_is_valid(const char *pattern)
{
	return strspn(pattern, "0123456789abcdefABCDEF*?:.") == strlen(pattern) &&
	       count(pattern, ':') == 2 && count(pattern, '.') <= 1;
}

static bool role_pattern_is_valid(const char *word)
{
	for (int role = ROLE_UNKNOWN; role <= ROLE_STORAGE; role++)
		if (glob_match(word, topo_role_name((enum topo_role)role)))
			return true;
	return false;
}

bool nic_pattern_is_role(const char *pattern)
{
	return starts_with(pattern, ROLE_PREFIX);
}

int nic_pattern_check(const char *pattern, struct err *err)
{
	static const char allowed[] =
		"give a PCI address (0000:03:00.0), ids (15b3:1021), the name of a link or "
		"role=rail|frontend|storage|unknown, each with * and ?";
	const char *wrong = NULL;

	if (!*pattern)
		wrong = "is empty";
	else if (strlen(pattern) > PATTERN_MAX_BYTES)
		wrong = "is too long";
	else if (nic_pattern_is_role(pattern))
		wrong = role_pattern_is_valid(pattern + strlen(ROLE_PREFIX)) ? NULL
									     : "names no role";
	else if (count(pattern, ':') == 1)
		wrong = id_pattern_is_valid(pattern) ? NULL : "is no pair of hexadecimal ids";
	else if (count(pattern, ':') > 1)
		wrong = address_pattern_is_valid(pattern) ? NULL : "is no PCI address";
	else if (strpbrk(pattern, " \t\n\r/=,"))
		wrong = "cannot be the name of a link";
	if (!wrong)
		return 0;
	return err_set(err, ERR_INVALID, EINVAL, "\"%.64s\" %s; %s", pattern, wrong, allowed);
}

bool nic_pattern_match(const char *pattern, const struct topo_nic *nic)
{
	char low[PATTERN_MAX_BYTES + 1];

	if (nic_pattern_is_role(pattern))
		return glob_match(pattern + strlen(ROLE_PREFIX), topo_role_name(nic->role));
	switch (count(pattern, ':')) {
	case 0:
		return streq(pattern, "*") || (nic->netdev && glob_match(pattern, nic->netdev));
	case 1:
		return id_pattern_match(pattern, nic->vendor_id, nic->device_id);
	default:
		to_lower(pattern, low);
		return glob_match(low, nic->bus_id);
	}
}

bool nic_pattern_fits(const char *pattern, const struct inventory *inv)
{
	for (size_t i = 0; i < inv->n_nics; i++)
		if (nic_pattern_match(pattern, &inv->nics[i]))
			return true;
	return false;
}

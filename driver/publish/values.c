// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

/* A number without leading zeros; moves *s behind it. */
static bool semver_number(const char **s)
{
	const char *p = *s;

	if (!isdigit((unsigned char)*p) || (p[0] == '0' && isdigit((unsigned char)p[1])))
		return false;
	while (isdigit((unsigned char)*p))
		p++;
	*s = p;
	return true;
}

/* Identifiers separated by dots; "strict": numeric ones have no leading zeros. */
static bool semver_identifiers(const char **s, bool strict)
{
	for (;;) {
		const char *start = *s, *p = start;
		bool numeric = true;

		for (; isalnum((unsigned char)*p) || *p == '-'; p++)
			numeric = numeric && isdigit((unsigned char)*p);
		if (p == start || (strict && numeric && *start == '0' && p - start > 1))
			return false;
		*s = p;
		if (*p != '.')
			return true;
		(*s)++;
	}
}

bool is_semver(const char *s)
{
	for (int i = 0; i < 3; i++) {
		if (!semver_number(&s))
			return false;
		if (i < 2 && *s++ != '.')
			return false;
	}
	if (*s == '-') {
		s++;
		if (!semver_identifiers(&s, true))
			return false;
	}
	if (*s == '+') {
		s++;
		if (!semver_identifiers(&s, false))
			return false;
	}
	return *s == '\0';
}

char *quantity_text(uint64_t value)
{
	static const char *const suffix[] = { "", "k", "M", "G", "T", "P", "E" };
	size_t i = 0;

	while (value && value % 1000 == 0 && i + 1 < ARRAY_SIZE(suffix)) {
		value /= 1000;
		i++;
	}
	return xasprintf("%llu%s", (unsigned long long)value, suffix[i]);
}

static bool scale(__int128 *v, __int128 factor)
{
	return !__builtin_mul_overflow(*v, factor, v);
}

/* A suffix or exponent of resource.Quantity, applied to *v. */
static bool quantity_suffix(const char *s, __int128 *v)
{
	static const char decimal[] = "kMGTPE", binary[] = "KMGTPE";
	const char *at;
	int e;

	if (!*s)
		return true;
	if ((*s == 'e' || *s == 'E') && s[1]) {
		if (parse_int(s[1] == '+' ? s + 2 : s + 1, &e) < 0 || e < 0 || e > 18)
			return false;
		for (; e > 0; e--)
			if (!scale(v, 10))
				return false;
		return true;
	}
	at = s[1] == 'i' && !s[2] ? strchr(binary, *s) : s[1] ? NULL : strchr(decimal, *s);
	if (!at)
		return false;
	for (long i = at - (s[1] ? binary : decimal); i >= 0; i--)
		if (!scale(v, s[1] ? 1024 : 1000))
			return false;
	return true;
}

/* A whole non-negative quantity; all that counters and capacities of ours can be. */
static bool quantity_parse(const char *s, __int128 *ret)
{
	__int128 v = 0;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++) {
		if (!scale(&v, 10) || __builtin_add_overflow(v, (__int128)(*s - '0'), &v))
			return false;
	}
	if (!quantity_suffix(s, &v))
		return false;
	*ret = v;
	return true;
}

bool quantity_equal(const char *a, const char *b)
{
	__int128 x, y;

	if (streq(a, b))
		return true;
	return quantity_parse(a, &x) && quantity_parse(b, &y) && x == y;
}

static bool is_absent(const json_t *v)
{
	return !v || json_is_null(v) || (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static bool members_equal(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)a, key, v) {
		const json_t *w = json_object_get(b, key);

		if (streq(key, "value") && json_is_string(v) && json_is_string(w)) {
			if (!quantity_equal(json_string_value(v), json_string_value(w)))
				return false;
		} else if (!spec_equal(v, w)) {
			return false;
		}
	}
	json_object_foreach((json_t *)(uintptr_t)b, key, v)
		if (!is_absent(v) && !json_object_get(a, key))
			return false;
	return true;
}

bool spec_equal(const json_t *a, const json_t *b)
{
	if (is_absent(a) || is_absent(b))
		return is_absent(a) && is_absent(b);
	if (json_is_object(a) && json_is_object(b))
		return members_equal(a, b);
	if (!json_is_array(a) || !json_is_array(b))
		return json_equal(a, b);
	if (json_array_size(a) != json_array_size(b))
		return false;
	for (size_t i = 0; i < json_array_size(a); i++)
		if (!spec_equal(json_array_get(a, i), json_array_get(b, i)))
			return false;
	return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/mem.h"

bool streq_null(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	return streq(a, b);
}

bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

char *str_rstrip(char *s)
{
	size_t n = strlen(s);

	while (n > 0 && strchr(" \t\r\n", s[n - 1]))
		s[--n] = '\0';
	return s;
}

static bool is_colour(const char *s)
{
	size_t n;

	if (s[0] != '\033' || s[1] != '[')
		return false;
	n = strspn(s + 2, "0123456789;");
	return s[2 + n] == 'm';
}

/* Those of one character, U+0080 to U+009F, too. */
static bool is_control(const char *s, bool colours)
{
	unsigned char c = (unsigned char)s[0], next = (unsigned char)s[1];

	if (c == 0xc2)
		return next >= 0x80 && next <= 0x9f;
	return (c < 0x20 && c != '\n' && !(colours && is_colour(s))) || c == 0x7f;
}

char *str_printable(char *s, bool colours)
{
	for (char *p = s; *p; p++) {
		size_t n, len = 1;

		if (*p >= ' ' && *p < 0x7f)
			continue;
		n = strnlen(p, 4);
		while (len < n && !utf8_valid(p, len))
			len++;
		if (!utf8_valid(p, len) || is_control(p, colours)) {
			*p = '?'; /* what follows of it is not UTF-8 then */
			continue;
		}
		p += len - 1;
	}
	return s;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return INT_MAX;
}

int parse_u64(const char *s, int base, uint64_t *ret)
{
	uint64_t v = 0;

	if (base == 16 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	if (!*s)
		return -EINVAL;
	for (; *s; s++) {
		int d = digit_value(*s);

		if (d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return -ERANGE;
	}
	*ret = v;
	return 0;
}

int parse_uint(const char *s, unsigned int max, unsigned int *ret)
{
	uint64_t v;
	int r = parse_u64(s, 10, &v);

	if (r < 0)
		return r;
	if (v > max)
		return -ERANGE;
	*ret = (unsigned int)v;
	return 0;
}

int parse_int(const char *s, int *ret)
{
	bool negative = *s == '-';
	uint64_t v;
	int r = parse_u64(s + negative, 10, &v);

	if (r < 0)
		return r;
	if (v > INT_MAX)
		return -ERANGE;
	*ret = negative ? -(int)v : (int)v;
	return 0;
}

bool utf8_valid(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;

	while (p < end) {
		unsigned int n, cp, min;

		if (*p == 0)
			return false;
		if (*p < 0x80) {
			p++;
			continue;
		}
		if ((*p & 0xe0) == 0xc0) {
			n = 1;
			cp = *p & 0x1fU;
			min = 0x80;
		} else if ((*p & 0xf0) == 0xe0) {
			n = 2;
			cp = *p & 0x0fU;
			min = 0x800;
		} else if ((*p & 0xf8) == 0xf0) {
			n = 3;
			cp = *p & 0x07U;
			min = 0x10000;
		} else {
			return false;
		}
		if ((size_t)(end - p) <= n)
			return false;
		for (unsigned int i = 1; i <= n; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return false;
			cp = cp << 6 | (p[i] & 0x3fU);
		}
		if (cp < min || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
			return false;
		p += n + 1;
	}
	return true;
}

static bool label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* One label of "n" bytes. */
static bool label_ok(const char *s, size_t n)
{
	if (n == 0 || !label_char(s[0]) || !label_char(s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!label_char(s[i]) && s[i] != '-')
			return false;
	return true;
}

bool is_dns_label(const char *s)
{
	size_t n = strlen(s);

	return n <= 63 && label_ok(s, n);
}

bool is_dns_subdomain(const char *s)
{
	if (strlen(s) > 253)
		return false;
	for (;;) {
		const char *dot = strchrnul(s, '.');

		if (!label_ok(s, (size_t)(dot - s)))
			return false;
		if (!*dot)
			return true;
		s = dot + 1;
	}
}

bool is_uid(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");

	return n > 0 && n <= UID_MAX && s[n] == '\0' && s[0] != '-' && s[n - 1] != '-';
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (b->len + len + 1 > b->cap) {
		size_t cap = b->cap ? b->cap : 64;

		while (cap < b->len + len + 1)
			cap *= 2;
		b->data = xrealloc(b->data, cap, 1);
		b->cap = cap;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	_cleanup_free_ char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	buf_str(b, s);
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

char *buf_take(struct buf *b)
{
	char *s = b->data ? b->data : xstrdup("");

	*b = (struct buf){ 0 };
	return s;
}

void strlist_take(struct strlist *l, char *s)
{
	if (l->n + 1 >= l->cap) {
		l->cap = l->cap ? l->cap * 2 : 8;
		l->items = xrealloc(l->items, l->cap, sizeof(*l->items));
	}
	l->items[l->n++] = s;
	l->items[l->n] = NULL;
}

void strlist_add(struct strlist *l, const char *s)
{
	strlist_take(l, xstrdup(s));
}

bool strlist_has(const struct strlist *l, const char *s)
{
	for (size_t i = 0; i < l->n; i++)
		if (streq(l->items[i], s))
			return true;
	return false;
}

bool strlist_equal(const struct strlist *a, const struct strlist *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!streq(a->items[i], b->items[i]))
			return false;
	return true;
}

static int cmp_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void strlist_sort(struct strlist *l)
{
	if (l->n > 1)
		qsort(l->items, l->n, sizeof(*l->items), cmp_string);
}

void strlist_done(struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct strlist){ 0 };
}

void strlist_split(struct strlist *l, const char *s, char sep)
{
	while (*s) {
		const char *end = strchrnul(s, sep);

		if (end > s)
			strlist_take(l, xstrndup(s, (size_t)(end - s)));
		s = *end ? end + 1 : end;
	}
}

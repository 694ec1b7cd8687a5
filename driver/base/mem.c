// SPDX-License-Identifier: Apache-2.0
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *checked(void *p)
{
	if (!p) {
		static const char msg[] = "twinrail: out of memory\n";
		ssize_t n = write(STDERR_FILENO, msg, sizeof(msg) - 1);

		(void)n;
		abort();
	}
	return p;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n, size_t size)
{
	return checked(reallocarray(p, n ? n : 1, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

char *xstrdup_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

char *xvasprintf(const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	return checked(s);
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	s = xvasprintf(fmt, ap);
	va_end(ap);
	return s;
}

void *array_grow(void *a, size_t n, size_t *cap, size_t size)
{
	if (n >= *cap) {
		size_t wanted = *cap ? *cap * 2 : 8;

		a = xrealloc(a, wanted, size);
		*cap = wanted;
	}
	memset((char *)a + n * size, 0, size);
	return a;
}

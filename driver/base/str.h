/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_STR_H
#define TWINRAIL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool streq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* Equal, where NULL is equal to NULL only. */
bool streq_null(const char *a, const char *b);

static inline bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool ends_with(const char *s, const char *suffix);

/* Cut white space (also new lines) from the end, in place; returns "s". */
char *str_rstrip(char *s);

/*
 * For terminals, in place: "?" for each byte that is not UTF-8 and each control character but new
 * lines and, with "colours", their codes (ESC [ digits m).  Names and values from sysfs, or from a recording of somebody else, may hold
 * codes that write elsewhere on the screen.  Returns "s".
 */
char *str_printable(char *s, bool colours);

/*
 * Strict numbers: the whole string, no sign for the unsigned ones, no white space, no overflow.
 * "base" is 10 or 16 (16: an optional 0x is accepted).  0 or -EINVAL/-ERANGE; *ret is written on
 * success only.
 */
int parse_u64(const char *s, int base, uint64_t *ret) __attribute__((warn_unused_result));
int parse_uint(const char *s, unsigned int max, unsigned int *ret)
	__attribute__((warn_unused_result));
int parse_int(const char *s, int *ret) __attribute__((warn_unused_result));

/* Valid UTF-8 without NUL in the first "len" bytes. */
bool utf8_valid(const char *s, size_t len);

/* Checks of the API server (k8s.io/apimachinery validation): no allocation, no locale. */
bool is_dns_label(const char *s); /* RFC 1123 label, at most 63 bytes */
bool is_dns_subdomain(const char *s); /* RFC 1123 subdomain, at most 253 bytes */

/*
 * A Kubernetes UID that is safe as (part of) a file name and of a CDI device name: 1 to UID_MAX
 * ASCII letters, digits and '-', which is neither first nor last.  The API server makes UUIDs;
 * static pods have other ones.
 */
#define UID_MAX 63
bool is_uid(const char *s);

/* A growing string.  Zero-initialise; buf_done() frees; "data" is NULL or NUL-terminated. */
struct buf {
	char *data;
	size_t len, cap;
};

void buf_add(struct buf *b, const void *data, size_t len);
void buf_str(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_done(struct buf *b);

/* Hand the string over to the caller ("" when nothing was added). */
char *buf_take(struct buf *b);

/* A list of strings, NULL-terminated when not empty.  Zero-initialise. */
struct strlist {
	char **items;
	size_t n, cap;
};

void strlist_add(struct strlist *l, const char *s);
void strlist_take(struct strlist *l, char *s); /* the list becomes the owner of "s" */
bool strlist_has(const struct strlist *l, const char *s);
bool strlist_equal(const struct strlist *a, const struct strlist *b); /* in the same order */
void strlist_sort(struct strlist *l); /* by byte value */
void strlist_done(struct strlist *l);

/* Split at "sep"; empty parts are left out. */
void strlist_split(struct strlist *l, const char *s, char sep);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_PLATFORM_VALUE_H
#define TWINRAIL_TOPO_PLATFORM_VALUE_H

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

/*
 * Internal to the parser of the platform file: its values.  Each reader gives 0, or -EINVAL with
 * file, line, key, what is wrong and what is allowed.
 */
#define VALUE_MAX_LIST 256
#define VALUE_MAX_TEXT 256

struct value_parser {
	const char *file;
	struct err *err;
};

/* One value and where it stands. */
struct value {
	const char *key;
	const json_t *json, *lines;
};

/* Reads a value into a field of the type that its key has. */
typedef int value_read_fn(struct value_parser *p, const struct value *v, void *field);

struct value_key {
	const char *name;
	value_read_fn *read;
	size_t offset; /* of the field */
};

/* Always -EINVAL. */
int value_wrong(struct value_parser *p, const struct value *v, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
struct value value_element(const struct value *v, size_t i);

/* A mapping with these keys only, into the fields of the structure "into". */
int value_read_mapping(struct value_parser *p, const struct value *v, const struct value_key *keys,
		       size_t n, void *into);

/* A string that is not empty and has no control characters; NULL after an error. */
const char *value_text(struct value_parser *p, const struct value *v);
/* One text, or a list of texts which "check" (may be NULL) accepts. */
int value_read_texts(struct value_parser *p, const struct value *v, struct strlist *ret,
		     int (*check)(struct value_parser *p, const struct value *v, const char *text));
int value_read_int(struct value_parser *p, const struct value *v, int min, int max, int *ret);
/* The index of a word; "words" ends with NULL. */
int value_read_word(struct value_parser *p, const struct value *v, const char *const *words,
		    int *ret);

/* Into a struct strlist: texts, pairs of ids, patterns of NICs, patterns of PCI addresses. */
value_read_fn value_read_globs, value_read_ids, value_read_patterns, value_read_addresses;
value_read_fn value_read_range; /* struct platform_range */
value_read_fn value_read_yes_no, value_read_support; /* enum tri */

#endif

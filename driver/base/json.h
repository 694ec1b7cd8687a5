/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_JSON_H
#define TWINRAIL_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

#define _cleanup_json_ __attribute__((cleanup(json_decrefp)))

/* Parse strictly (duplicate keys, trailing bytes, bad UTF-8 are errors).  A new reference. */
int json_parse(const char *text, size_t len, json_t **ret, struct err *err)
	__attribute__((warn_unused_result));

/* Compact text with sorted keys: equal values give equal bytes.  malloc'ed. */
char *json_text(const json_t *value);
/* The same with two spaces of indentation and a final new line, for files people read. */
char *json_text_pretty(const json_t *value);

/* Borrowed; NULL when the path ("status.allocation.devices") leads nowhere. */
json_t *json_path(const json_t *value, const char *path);

/* Borrowed string at a path; NULL when it is not there or not a string. */
const char *json_path_string(const json_t *value, const char *path);

/*
 * New values that are never NULL: without memory the process ends, so that nothing is left out
 * silently.  A string that is not UTF-8 (names from the kernel need not be) keeps its ASCII bytes,
 * each other byte becomes "?".  The caller owns the reference.
 */
json_t *json_new_object(void);
json_t *json_new_array(void);
json_t *json_new_string(const char *value);
json_t *json_new_int(long long value);

/*
 * Set a member, append an element.  They take over the reference "value" and cannot fail: without
 * memory, or for a "value" that is NULL, the process ends.
 */
void json_set(json_t *object, const char *key, json_t *value);
void json_add(json_t *array, json_t *value);

/* The same with json_new_*(); a NULL string sets no member (an unknown fact is absent). */
void json_set_string(json_t *object, const char *key, const char *value);
void json_set_int(json_t *object, const char *key, long long value);
void json_set_known(json_t *object, const char *key, int value); /* -1 is unknown: no member */
void json_set_bool(json_t *object, const char *key, bool value);
void json_add_string(json_t *array, const char *value);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_YAML_H
#define TWINRAIL_BASE_YAML_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* Bounds of a document: bytes, levels of nesting, scalars and collections together. */
#define YAML_MAX_BYTES (1024 * 1024)
#define YAML_MAX_DEPTH 32
#define YAML_MAX_NODES 100000

/*
 * Read one YAML document as a JSON value (a new reference; an empty document is null).
 *
 * A plain scalar is null ("null", "~" or nothing), true, false, or a number where its text is a
 * number of JSON; everything else is a string, so that 0x15b3, 010, on and 2026-01-02 keep their
 * text (YAML 1.2, without its octal and hexadecimal numbers).  Quoted and block scalars are
 * strings.  Refused: several documents, anchors and aliases (a few lines could stand for
 * gigabytes), tags other than !!str, keys that are not scalars or come twice, and "\0".
 *
 * -EINVAL; the text names the line and the column, both counted from 1.
 */
int yaml_parse(const char *text, size_t len, json_t **ret, struct err *err)
	__attribute__((warn_unused_result));

/*
 * yaml_parse() that also tells where values stand, for errors about what they mean: *lines is a
 * tree of the same shape (a new reference; NULL for an empty document).  yaml_line() is the line of
 * a value, counted from 1, that of its key in a mapping; 0: it is not known.  yaml_lines_of() and
 * yaml_lines_at() step down to a member and an element; borrowed, NULL when it is not there.
 */
int yaml_parse_lines(const char *text, size_t len, json_t **ret, json_t **lines, struct err *err)
	__attribute__((warn_unused_result));
unsigned int yaml_line(const json_t *lines);
const json_t *yaml_lines_of(const json_t *lines, const char *key);
const json_t *yaml_lines_at(const json_t *lines, size_t i);

/* yaml_parse() of a whole file; the text names the file too. */
int yaml_read(const char *path, json_t **ret, struct err *err) __attribute__((warn_unused_result));

#endif

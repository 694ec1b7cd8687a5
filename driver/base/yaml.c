// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

struct reader {
	yaml_parser_t parser;
	unsigned int depth, nodes;
	bool with_lines;
	struct err *err;
};

__attribute__((format(printf, 3, 4))) static int fail_at(struct reader *r, yaml_mark_t mark,
							 const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	return err_set(r->err, ERR_INVALID, EINVAL, "not valid YAML: line %zu column %zu: %s",
		       mark.line + 1, mark.column + 1, text);
}

/* The next event; the caller deletes it. */
static int next_event(struct reader *r, yaml_event_t *event)
{
	const yaml_parser_t *p = &r->parser;

	if (yaml_parser_parse(&r->parser, event))
		return 0;
	if (p->error == YAML_READER_ERROR) /* has an offset only */
		return err_set(r->err, ERR_INVALID, EINVAL, "not valid YAML: byte %zu: %s",
			       p->problem_offset, p->problem ? p->problem : "cannot be read");
	if (p->context)
		return fail_at(r, p->problem_mark, "%s %s (begun at line %zu column %zu)",
			       p->problem, p->context, p->context_mark.line + 1,
			       p->context_mark.column + 1);
	return fail_at(r, p->problem_mark, "%s", p->problem ? p->problem : "cannot be read");
}

/* JSON's grammar: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool is_json_number(const char *s)
{
	static const char digits[] = "0123456789";
	size_t n;

	s += *s == '-';
	n = strspn(s, digits);
	if (n == 0 || (*s == '0' && n > 1))
		return false;
	s += n;
	if (*s == '.') {
		n = strspn(++s, digits);
		if (n == 0)
			return false;
		s += n;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '+' || *s == '-';
		n = strspn(s, digits);
		if (n == 0)
			return false;
		s += n;
	}
	return *s == '\0';
}

static int check_node(struct reader *r, const yaml_event_t *event, const yaml_char_t *anchor,
		      const yaml_char_t *tag)
{
	if (++r->nodes > YAML_MAX_NODES)
		return fail_at(r, event->start_mark, "more than %d values", YAML_MAX_NODES);
	if (anchor)
		return fail_at(r, event->start_mark, "anchors (&%s) are not supported", anchor);
	if (tag && (event->type != YAML_SCALAR_EVENT || !streq((const char *)tag, YAML_STR_TAG)))
		return fail_at(r, event->start_mark, "tag %s is not supported", tag);
	return 0;
}

static int read_scalar(struct reader *r, const yaml_event_t *event, json_t **ret)
{
	const char *s = (const char *)event->data.scalar.value;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !event->data.scalar.tag;
	size_t len = event->data.scalar.length;
	int code = check_node(r, event, event->data.scalar.anchor, event->data.scalar.tag);

	if (code < 0)
		return code;
	if (memchr(s, '\0', len))
		return fail_at(r, event->start_mark, "a string may not contain \\0");
	if (plain && (len == 0 || streq(s, "~") || streq(s, "null")))
		*ret = json_null();
	else if (plain && (streq(s, "true") || streq(s, "false")))
		*ret = json_boolean(s[0] == 't');
	else if (plain && is_json_number(s))
		*ret = json_loadb(s, len, JSON_DECODE_ANY, NULL);
	else
		*ret = json_stringn(s, len);
	if (!*ret)
		return fail_at(r, event->start_mark, "%.40s is out of range", s);
	return 0;
}

/*
 * Where values stand is a tree of their shape: [line, children], where "children" is an object or
 * an array of such nodes for a mapping or a sequence.
 */
static json_t *line_node(yaml_mark_t mark, json_t *children)
{
	json_t *node = json_new_array();

	json_add(node, json_new_int((long long)mark.line + 1));
	if (children)
		json_add(node, children);
	return node;
}

/* *children: what belongs into line_node(); NULL without lines and for a scalar. */
static int read_value(struct reader *r, const yaml_event_t *event, json_t **ret, json_t **children);

static int read_sequence(struct reader *r, json_t **ret, json_t **lines)
{
	_cleanup_json_ json_t *array = json_array();
	_cleanup_json_ json_t *nodes = r->with_lines ? json_new_array() : NULL;

	for (;;) {
		json_t *value, *children = NULL;
		yaml_event_t event;
		int code = next_event(r, &event);

		if (code < 0)
			return code;
		if (event.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&event);
			break;
		}
		code = read_value(r, &event, &value, &children);
		if (code == 0 && nodes)
			json_add(nodes, line_node(event.start_mark, children));
		yaml_event_delete(&event);
		if (code < 0)
			return code;
		json_array_append_new(array, value);
	}
	*ret = TAKE_PTR(array);
	*lines = TAKE_PTR(nodes);
	return 0;
}

/* One "key: value" of a mapping, whose key is "event"; "lines" is NULL or gets its node. */
static int read_member(struct reader *r, const yaml_event_t *event, json_t *object, json_t *lines)
{
	const char *key = (const char *)event->data.scalar.value;
	json_t *value, *children = NULL;
	yaml_event_t event_value;
	int code;

	if (event->type != YAML_SCALAR_EVENT)
		return fail_at(r, event->start_mark, "a key must be a plain word or a string");
	code = check_node(r, event, event->data.scalar.anchor, event->data.scalar.tag);
	if (code < 0)
		return code;
	if (memchr(key, '\0', event->data.scalar.length))
		return fail_at(r, event->start_mark, "a key may not contain \\0");
	if (json_object_get(object, key))
		return fail_at(r, event->start_mark, "key \"%.80s\" comes twice", key);
	code = next_event(r, &event_value);
	if (code < 0)
		return code;
	code = read_value(r, &event_value, &value, &children);
	yaml_event_delete(&event_value);
	if (code < 0)
		return code;
	json_object_set_new(object, key, value);
	if (lines)
		json_set(lines, key, line_node(event->start_mark, children));
	return 0;
}

static int read_mapping(struct reader *r, json_t **ret, json_t **lines)
{
	_cleanup_json_ json_t *object = json_object();
	_cleanup_json_ json_t *nodes = r->with_lines ? json_new_object() : NULL;

	for (;;) {
		yaml_event_t event;
		int code = next_event(r, &event);

		if (code < 0)
			return code;
		if (event.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&event);
			break;
		}
		code = read_member(r, &event, object, nodes);
		yaml_event_delete(&event);
		if (code < 0)
			return code;
	}
	*ret = TAKE_PTR(object);
	*lines = TAKE_PTR(nodes);
	return 0;
}

/* A value that begins with "event"; the event stays the caller's. */
static int read_value(struct reader *r, const yaml_event_t *event, json_t **ret, json_t **children)
{
	int code;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return read_scalar(r, event, ret);
	case YAML_SEQUENCE_START_EVENT:
		code = check_node(r, event, event->data.sequence_start.anchor,
				  event->data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		code = check_node(r, event, event->data.mapping_start.anchor,
				  event->data.mapping_start.tag);
		break;
	case YAML_ALIAS_EVENT:
		return fail_at(r, event->start_mark, "aliases (*%s) are not supported",
			       event->data.alias.anchor);
	default:
		return fail_at(r, event->start_mark, "a value is missing");
	}
	if (code < 0)
		return code;
	if (r->depth >= YAML_MAX_DEPTH)
		return fail_at(r, event->start_mark, "more than %d levels", YAML_MAX_DEPTH);
	r->depth++;
	code = event->type == YAML_MAPPING_START_EVENT ? read_mapping(r, ret, children)
						       : read_sequence(r, ret, children);
	r->depth--;
	return code;
}

/* Stream start, at most one document, stream end. */
static int read_stream(struct reader *r, json_t **ret, json_t **ret_lines)
{
	_cleanup_json_ json_t *value = NULL, *lines = NULL;
	bool more = true;

	while (more) {
		json_t *children = NULL;
		yaml_event_t event;
		int code = next_event(r, &event);

		if (code < 0)
			return code;
		if (event.type == YAML_STREAM_END_EVENT)
			more = false;
		else if (event.type == YAML_DOCUMENT_START_EVENT && value)
			code = fail_at(r, event.start_mark, "only one document is read");
		else if (event.type != YAML_STREAM_START_EVENT &&
			 event.type != YAML_DOCUMENT_START_EVENT &&
			 event.type != YAML_DOCUMENT_END_EVENT)
			code = read_value(r, &event, &value, &children);
		if (code == 0 && value && !lines && r->with_lines)
			lines = line_node(event.start_mark, children);
		yaml_event_delete(&event);
		if (code < 0)
			return code;
	}
	*ret = value ? TAKE_PTR(value) : json_null();
	*ret_lines = TAKE_PTR(lines);
	return 0;
}

static int parse(const char *text, size_t len, bool with_lines, json_t **ret, json_t **lines,
		 struct err *err)
{
	struct reader r = { .with_lines = with_lines, .err = err };
	int code;

	if (len > YAML_MAX_BYTES)
		return err_set(err, ERR_INVALID, EFBIG, "not valid YAML: longer than %d bytes",
			       YAML_MAX_BYTES);
	if (!yaml_parser_initialize(&r.parser))
		abort(); /* out of memory */
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	code = read_stream(&r, ret, lines);
	yaml_parser_delete(&r.parser);
	return code;
}

int yaml_parse(const char *text, size_t len, json_t **ret, struct err *err)
{
	json_t *lines;

	return parse(text, len, false, ret, &lines, err);
}

int yaml_parse_lines(const char *text, size_t len, json_t **ret, json_t **lines, struct err *err)
{
	return parse(text, len, true, ret, lines, err);
}

unsigned int yaml_line(const json_t *lines)
{
	return (unsigned int)json_integer_value(json_array_get(lines, 0));
}

const json_t *yaml_lines_of(const json_t *lines, const char *key)
{
	return json_object_get(json_array_get(lines, 1), key);
}

const json_t *yaml_lines_at(const json_t *lines, size_t i)
{
	return json_array_get(json_array_get(lines, 1), i);
}

int yaml_read(const char *path, json_t **ret, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = file_read(path, YAML_MAX_BYTES, &text, &len, err);

	if (r < 0)
		return r;
	r = yaml_parse(text, len, ret, err);
	return r < 0 ? err_wrap(err, "%s", path) : 0;
}

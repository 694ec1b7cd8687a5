// SPDX-License-Identifier: Apache-2.0
#include "topo/platform_value.h"

#include <errno.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "topo/pattern.h"
#include "topo/platform.h"

int value_wrong(struct value_parser *p, const struct value *v, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	return err_set(p->err, ERR_INVALID, EINVAL, "%s line %u: %.60s: %s", p->file,
		       yaml_line(v->lines), v->key, text);
}

struct value value_element(const struct value *v, size_t i)
{
	return (struct value){ v->key, json_array_get(v->json, i), yaml_lines_at(v->lines, i) };
}

static char *key_names(const struct value_key *keys, size_t n)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", keys[i].name);
	return buf_take(&b);
}

int value_read_mapping(struct value_parser *p, const struct value *v, const struct value_key *keys,
		       size_t n, void *into)
{
	const char *name;
	json_t *json;

	if (!json_is_object(v->json))
		return value_wrong(p, v, "is no mapping; write \"key: value\" lines below it");
	json_object_foreach((json_t *)(uintptr_t)v->json, name, json) {
		const struct value member = { name, json, yaml_lines_of(v->lines, name) };
		const struct value_key *key = NULL;
		int r;

		for (size_t i = 0; i < n; i++)
			if (streq(keys[i].name, name))
				key = &keys[i];
		if (!key) {
			_cleanup_free_ char *names = key_names(keys, n);

			return value_wrong(p, &member, "unknown key; allowed are %s", names);
		}
		r = key->read(p, &member, (char *)into + key->offset);
		if (r < 0)
			return r;
	}
	return 0;
}

const char *value_text(struct value_parser *p, const struct value *v)
{
	const char *s = json_string_value(v->json);

	if (!s) {
		value_wrong(p, v,
			    "is no text; give a text (in quotes, when it looks like a number)");
		return NULL;
	}
	if (!*s || strlen(s) > VALUE_MAX_TEXT) {
		value_wrong(p, v, "is empty or too long; give 1 to %d bytes", VALUE_MAX_TEXT);
		return NULL;
	}
	for (const char *c = s; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f) {
			value_wrong(p, v, "contains a control character; give plain text");
			return NULL;
		}
	}
	return s;
}

int value_read_texts(struct value_parser *p, const struct value *v, struct strlist *ret,
		     int (*check)(struct value_parser *p, const struct value *v, const char *text))
{
	size_t n = json_is_array(v->json) ? json_array_size(v->json) : 1;

	if (n == 0 || n > VALUE_MAX_LIST)
		return value_wrong(p, v, "has %zu elements; give 1 to %d", n, VALUE_MAX_LIST);
	for (size_t i = 0; i < n; i++) {
		const struct value one = json_is_array(v->json) ? value_element(v, i) : *v;
		const char *text = value_text(p, &one);
		int r = text ? 0 : -EINVAL;

		if (r == 0 && check)
			r = check(p, &one, text);
		if (r < 0)
			return r;
		if (strlist_has(ret, text))
			return value_wrong(p, &one, "\"%.64s\" comes twice; give it once", text);
		strlist_add(ret, text);
	}
	return 0;
}

int value_read_globs(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_texts(p, v, field, NULL);
}

static int check_id(struct value_parser *p, const struct value *v, const char *text)
{
	if (id_pattern_is_valid(text))
		return 0;
	return value_wrong(p, v,
			   "\"%.64s\" is no pair of ids; give vendor:device in hexadecimal "
			   "(\"10de:2330\"), with * and ?",
			   text);
}

int value_read_ids(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_texts(p, v, field, check_id);
}

static int check_pattern(struct value_parser *p, const struct value *v, const char *text)
{
	struct err err = { 0 };

	if (nic_pattern_check(text, &err) < 0)
		return value_wrong(p, v, "%s", err.msg);
	if (nic_pattern_is_role(text))
		return value_wrong(
			p, v,
			"\"%.64s\" asks for a role; give an address, ids or the name of a "
			"link",
			text);
	return 0;
}

int value_read_patterns(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_texts(p, v, field, check_pattern);
}

static int check_address(struct value_parser *p, const struct value *v, const char *text)
{
	if (strchr(text, ':') && strchr(text, ':') != strrchr(text, ':'))
		return check_pattern(p, v, text);
	return value_wrong(
		p, v, "\"%.64s\" is no PCI address; give one (0000:03:00.0), with * and ?", text);
}

int value_read_addresses(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_texts(p, v, field, check_address);
}

static bool parse_range(const char *text, struct platform_range *range)
{
	const char *dash = strchr(text, '-');
	_cleanup_free_ char *first = NULL;

	if (!dash)
		return false;
	first = xstrndup(text, (size_t)(dash - text));
	range->max = PLATFORM_MAX_COUNT;
	return parse_uint(first, PLATFORM_MAX_COUNT, &range->min) == 0 &&
	       (!dash[1] || parse_uint(dash + 1, PLATFORM_MAX_COUNT, &range->max) == 0) &&
	       range->min <= range->max;
}

int value_read_range(struct value_parser *p, const struct value *v, void *field)
{
	struct platform_range *range = field;
	json_int_t n = json_integer_value(v->json);

	if (json_is_integer(v->json) && n >= 0 && n <= PLATFORM_MAX_COUNT) {
		*range = (struct platform_range){ (unsigned int)n, (unsigned int)n };
		return 0;
	}
	if (json_is_string(v->json) && parse_range(json_string_value(v->json), range))
		return 0;
	return value_wrong(p, v,
			   "is no count; give a number (8) or a range (\"8-10\", \"1-\") up to %d",
			   PLATFORM_MAX_COUNT);
}

int value_read_int(struct value_parser *p, const struct value *v, int min, int max, int *ret)
{
	json_int_t n = json_integer_value(v->json);

	if (!json_is_integer(v->json) || n < min || n > max)
		return value_wrong(p, v, "is no number from %d to %d", min, max);
	*ret = (int)n;
	return 0;
}

int value_read_yes_no(struct value_parser *p, const struct value *v, void *field)
{
	if (!json_is_boolean(v->json))
		return value_wrong(p, v, "is neither true nor false; give one of them");
	*(enum tri *)field = json_is_true(v->json) ? TRI_YES : TRI_NO;
	return 0;
}

int value_read_word(struct value_parser *p, const struct value *v, const char *const *words,
		    int *ret)
{
	const char *s = json_string_value(v->json);
	struct buf b = { 0 };
	int r;

	*ret = 0;
	for (int i = 0; s && words[i]; i++) {
		if (streq(s, words[i])) {
			*ret = i;
			return 0;
		}
	}
	for (size_t i = 0; words[i]; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", words[i]);
	r = value_wrong(p, v, "\"%.40s\" is not allowed; give one of %s", s ? s : "this", b.data);
	buf_done(&b);
	return r;
}

int value_read_support(struct value_parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "unknown", "unsupported", "supported", NULL };
	int i, r = value_read_word(p, v, words, &i);

	if (r == 0)
		*(enum tri *)field = (enum tri)i;
	return r;
}

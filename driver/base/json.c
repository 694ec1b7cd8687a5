// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

int json_parse(const char *text, size_t len, json_t **ret, struct err *err)
{
	json_error_t e;
	json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);

	if (!v)
		return err_set(err, ERR_INVALID, EINVAL, "not valid JSON: line %d column %d: %s",
			       e.line, e.column, e.text);
	*ret = v;
	return 0;
}

static char *dump(const json_t *value, size_t flags)
{
	char *s = json_dumps(value, flags | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	if (!s)
		abort(); /* values of ours are always encodable; only memory can fail */
	return s;
}

char *json_text(const json_t *value)
{
	return dump(value, JSON_COMPACT);
}

char *json_text_pretty(const json_t *value)
{
	_cleanup_free_ char *s = dump(value, JSON_INDENT(2));

	return xasprintf("%s\n", s);
}

json_t *json_path(const json_t *value, const char *path)
{
	json_t *v = (json_t *)(uintptr_t)value;

	while (v && *path) {
		const char *dot = strchrnul(path, '.');
		_cleanup_free_ char *key = xstrndup(path, (size_t)(dot - path));

		v = json_object_get(v, key);
		path = *dot ? dot + 1 : dot;
	}
	return v;
}

const char *json_path_string(const json_t *value, const char *path)
{
	return json_string_value(json_path(value, path));
}

static json_t *checked(json_t *value)
{
	if (!value)
		abort(); /* only memory can fail */
	return value;
}

json_t *json_new_object(void)
{
	return checked(json_object());
}

json_t *json_new_array(void)
{
	return checked(json_array());
}

json_t *json_new_string(const char *value)
{
	_cleanup_free_ char *copy = NULL;

	if (!utf8_valid(value, strlen(value))) { /* e.g. the name of a network device */
		copy = xstrdup(value);
		for (char *p = copy; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
	}
	return checked(json_string(copy ? copy : value));
}

json_t *json_new_int(long long value)
{
	return checked(json_integer(value));
}

void json_set(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, checked(value)) < 0)
		abort(); /* out of memory, or a key of ours that is not UTF-8 */
}

void json_add(json_t *array, json_t *value)
{
	if (json_array_append_new(array, checked(value)) < 0)
		abort();
}

void json_set_string(json_t *object, const char *key, const char *value)
{
	if (value)
		json_set(object, key, json_new_string(value));
}

void json_set_int(json_t *object, const char *key, long long value)
{
	json_set(object, key, json_new_int(value));
}

void json_set_known(json_t *object, const char *key, int value)
{
	if (value != -1)
		json_set_int(object, key, value);
}

void json_set_bool(json_t *object, const char *key, bool value)
{
	json_set(object, key, json_boolean(value));
}

void json_add_string(json_t *array, const char *value)
{
	json_add(array, json_new_string(value));
}

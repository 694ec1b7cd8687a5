// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"

/* "yaml" reads as the value whose compact text is "json". */
static void reads(const char *yaml, const char *json)
{
	_cleanup_json_ json_t *value = NULL;
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };

	if (yaml_parse(yaml, strlen(yaml), &value, &err) < 0)
		fail_msg("%s: %s", yaml, err.msg);
	text = json_text(value);
	assert_string_equal(text, json);
}

/* "yaml" is refused with a text that contains "why". */
static void refuses(const char *yaml, size_t len, const char *why)
{
	json_t *value = NULL;
	struct err err = { 0 };

	assert_true(yaml_parse(yaml, len, &value, &err) < 0);
	assert_null(value);
	assert_int_equal(err.kind, ERR_INVALID);
	if (!strstr(err.msg, why))
		fail_msg("wanted \"%s\" in \"%s\"", why, err.msg);
}

static void test_collections(void **state)
{
	(void)state;
	reads("a: 1\nb:\n  - x\n  - y: [1, {c: d}]\n",
	      "{\"a\":1,\"b\":[\"x\",{\"y\":[1,{\"c\":\"d\"}]}]}");
	reads("{\"json\": [true, null, \"\\u00e9\"]}", "{\"json\":[true,null,\"\xc3\xa9\"]}");
	reads("a: {}\nb: []\n", "{\"a\":{},\"b\":[]}");
	reads("- - 1\n  - 2\n-\n", "[[1,2],null]");
	reads("a: |\n  one\n  two\nb: >-\n  one\n  two\n",
	      "{\"a\":\"one\\ntwo\\n\",\"b\":\"one two\"}");
	reads("1: a\ntrue: b\n", "{\"1\":\"a\",\"true\":\"b\"}");
	reads("# only a comment\n", "null");
	reads("", "null");
	reads("---\na: 1\n...\n", "{\"a\":1}");
	reads("\xef\xbb\xbf"
	      "a: 1\n",
	      "{\"a\":1}");
}

/* Where values stand: in a mapping the line of the key, in a sequence that of the element. */
static void test_lines(void **state)
{
	static const char yaml[] = "# one\na:\n  b: 1\n  c:\n  - x\n  - {d: 2,\n     e: [3]}\n";
	_cleanup_json_ json_t *value = NULL, *lines = NULL, *nothing = NULL, *no_lines = NULL;
	const json_t *a, *c, *second;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(yaml_parse_lines(yaml, strlen(yaml), &value, &lines, &err), 0);
	assert_int_equal(yaml_line(lines), 2);
	a = yaml_lines_of(lines, "a");
	c = yaml_lines_of(a, "c");
	second = yaml_lines_at(c, 1);
	assert_int_equal(yaml_line(a), 2);
	assert_int_equal(yaml_line(yaml_lines_of(a, "b")), 3);
	assert_int_equal(yaml_line(c), 4);
	assert_int_equal(yaml_line(yaml_lines_at(c, 0)), 5);
	assert_int_equal(yaml_line(second), 6);
	assert_int_equal(yaml_line(yaml_lines_of(second, "d")), 6);
	assert_int_equal(yaml_line(yaml_lines_of(second, "e")), 7);
	assert_int_equal(yaml_line(yaml_lines_at(yaml_lines_of(second, "e"), 0)), 7);
	assert_null(yaml_lines_of(second, "x"));
	assert_null(yaml_lines_at(c, 2));
	assert_int_equal(yaml_line(NULL), 0);
	assert_null(yaml_lines_of(yaml_lines_at(c, 0), "x")); /* a scalar has no members */

	assert_int_equal(yaml_parse_lines("", 0, &nothing, &no_lines, &err), 0);
	assert_null(no_lines);
	value = (json_decref(value), NULL);
	lines = (json_decref(lines), NULL);
	assert_true(yaml_parse_lines("a: [1\n", 6, &value, &lines, &err) < 0);
	assert_null(value);
	assert_null(lines);
}

static void test_scalars(void **state)
{
	(void)state;
	reads("[~, null, true, false]", "[null,null,true,false]");
	reads("[Null, TRUE, yes, no, on, off, y]",
	      "[\"Null\",\"TRUE\",\"yes\",\"no\",\"on\",\"off\",\"y\"]");
	reads("[0, -1, 42, 9223372036854775807]", "[0,-1,42,9223372036854775807]");
	reads("[1.5, -0.25, 2e3]", "[1.5,-0.25,2000.0]");
	/* identifiers that only look like numbers */
	reads("[0x15b3, 010, 0000, 1_000, +1, .5, 5., 1e, 2026-01-02, 0000:03:00.0, 1:30, .inf, "
	      ".nan]",
	      "[\"0x15b3\",\"010\",\"0000\",\"1_000\",\"+1\",\".5\",\"5.\",\"1e\",\"2026-01-02\","
	      "\"0000:03:00.0\",\"1:30\",\".inf\",\".nan\"]");
	reads("['1', \"true\", '', !!str 5, !!str true, 'it''s']",
	      "[\"1\",\"true\",\"\",\"5\",\"true\",\"it's\"]");
	reads("a:\nb: ''\n", "{\"a\":null,\"b\":\"\"}");
}

#define REFUSES(yaml, why) refuses(yaml, sizeof(yaml) - 1, why)

static void test_refused(void **state)
{
	(void)state;
	REFUSES("a: 1\nb: 2\na: 3\n", "line 3 column 1: key \"a\" comes twice");
	REFUSES("a: &x 1\nb: *x\n", "line 1 column 4: anchors (&x) are not supported");
	REFUSES("a: *x\n", "aliases (*x) are not supported");
	REFUSES("a: 1\n---\nb: 2\n", "line 2 column 1: only one document");
	REFUSES("a: !!int 1\n", "tag tag:yaml.org,2002:int is not supported");
	REFUSES("!foo {a: 1}\n", "tag !foo");
	REFUSES("a: !!map\n", "tag");
	REFUSES("? [1]\n: 2\n", "a key must be");
	REFUSES("a: 99999999999999999999\n",
		"line 1 column 4: 99999999999999999999 is out of range");
	REFUSES("a: 1e999\n", "out of range");
	REFUSES("a: \"x\\0y\"\n", "\\0");
	REFUSES("\"x\\0y\": 1\n", "\\0");
	REFUSES("a: [1, 2\nb: 3\n", "line 2");
	REFUSES("a:\n\t- 1\n", "line 2 column 1");
	REFUSES("a: b: c\n", "line 1 column 5");
	REFUSES("\"abc", "not valid YAML: line");
	REFUSES("a: \xff\xfe\n", "not valid YAML: byte 3");
	REFUSES("a: x\0y\n", "not valid YAML");
	REFUSES("%YAML 3.0\n---\na\n", "not valid YAML");
}

static void test_bounds(void **state)
{
	struct buf b = { 0 };
	json_t *value = NULL;

	(void)state;
	for (int i = 0; i < YAML_MAX_DEPTH; i++)
		buf_str(&b, "[");
	for (int i = 0; i < YAML_MAX_DEPTH; i++)
		buf_str(&b, "]");
	assert_int_equal(yaml_parse(b.data, b.len, &value, NULL), 0);
	json_decref(value);
	buf_done(&b);
	for (int i = 0; i < 5000; i++)
		buf_str(&b, "[");
	refuses(b.data, b.len, "more than 32 levels");
	buf_done(&b);
	for (int i = 0; i < 5000; i++)
		buf_str(&b, "{a: ");
	refuses(b.data, b.len, "more than 32 levels");
	buf_done(&b);

	for (int i = 0; i < YAML_MAX_NODES; i++)
		buf_str(&b, "- 1\n");
	refuses(b.data, b.len, "line 100000 column 3: more than 100000 values");
	b.len -= 4; /* the sequence counts too */
	assert_int_equal(yaml_parse(b.data, b.len, &value, NULL), 0);
	assert_int_equal(json_array_size(value), YAML_MAX_NODES - 1);
	json_decref(value);
	buf_done(&b);

	for (int i = 0; i < YAML_MAX_BYTES / 16 + 1; i++)
		buf_str(&b, "# 0123456789012\n");
	refuses(b.data, b.len, "longer than");
	b.len = YAML_MAX_BYTES;
	assert_int_equal(yaml_parse(b.data, b.len, &value, NULL), 0);
	json_decref(value);
	buf_done(&b);
}

static void test_file(void **state)
{
	char path[] = "/tmp/twinrail-test-yaml-XXXXXX";
	int fd = mkstemp(path);
	struct err err = { 0 };
	json_t *value = NULL;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a: 1\nb", 6), 6);
	assert_int_equal(yaml_read(path, &value, &err), -EINVAL);
	assert_non_null(strstr(err.msg, path));
	if (!strstr(err.msg, "line 2"))
		fail_msg("%s", err.msg);
	assert_int_equal(write(fd, ": 2\n", 4), 4);
	assert_int_equal(yaml_read(path, &value, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(value, "b")), 2);
	json_decref(value);
	assert_int_equal(ftruncate(fd, YAML_MAX_BYTES + 1), 0);
	assert_int_equal(yaml_read(path, &value, &err), -EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(yaml_read(path, &value, &err), -ENOENT);
	assert_non_null(strstr(err.msg, path));
	assert_true(yaml_parse("a: [", 4, &value, NULL) < 0); /* no text wanted */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collections), cmocka_unit_test(test_scalars),
		cmocka_unit_test(test_lines),	    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),	    cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

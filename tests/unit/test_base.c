// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

static void test_err(void **state)
{
	struct err err = { 0 };
	char longer[1000];

	(void)state;
	assert_int_equal(err_set(&err, ERR_CONFLICT, EBUSY, "claim %s is busy", "a/b"), -EBUSY);
	assert_int_equal(err.code, -EBUSY);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_string_equal(err.msg, "claim a/b is busy");
	assert_int_equal(err_wrap(&err, "call %d", 7), -EBUSY);
	assert_string_equal(err.msg, "call 7: claim a/b is busy");
	assert_int_equal(err_errno(&err, ERR_RETRY, -ENOENT, "cannot read %s", "x"), -ENOENT);
	assert_string_equal(err.msg, "cannot read x: No such file or directory");
	err_reset(&err);
	assert_int_equal(err.code, 0);
	assert_string_equal(err.msg, "");

	/* an error is never 0, and nobody needs to take the text */
	assert_int_equal(err_set(&err, ERR_INTERNAL, 0, "x"), -EINVAL);
	assert_int_equal(err_set(NULL, ERR_INVALID, EPERM, "x"), -EPERM);
	assert_true(err_wrap(NULL, "x") < 0);
	err_reset(NULL);

	/* too long: cut, terminated */
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	err_set(&err, ERR_INVALID, EINVAL, "%s", longer);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	err_wrap(&err, "head");
	assert_true(starts_with(err.msg, "head: xxx"));
	err_wrap(&err, "%s", longer);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	err_errno(&err, ERR_INVALID, EINVAL, "%s", longer);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);

	assert_string_equal(err_kind_name(ERR_NOT_FOUND), "not_found");
	assert_string_equal(err_kind_name(ERR_RETRY), "retry");
}

static void test_numbers(void **state)
{
	static const char *const bad[] = { "", "x", "1x", " 1", "1 ", "+1", "-1", "0x", "1.0" };
	uint64_t v = 7;
	unsigned int u;
	int i;

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(bad); n++)
		assert_int_equal(parse_u64(bad[n], 10, &v), -EINVAL);
	assert_int_equal(v, 7);
	assert_int_equal(parse_u64("0x", 16, &v), -EINVAL);
	assert_int_equal(parse_u64("0", 10, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(parse_u64("18446744073709551615", 10, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(parse_u64("18446744073709551616", 10, &v), -ERANGE);
	assert_int_equal(parse_u64("ffffffffffffffff", 16, &v), 0);
	assert_int_equal(parse_u64("0x15B3", 16, &v), 0);
	assert_int_equal(v, 0x15b3);
	assert_int_equal(parse_u64("10000000000000000", 16, &v), -ERANGE);
	assert_int_equal(parse_uint("255", 255, &u), 0);
	assert_int_equal(u, 255);
	assert_int_equal(parse_uint("256", 255, &u), -ERANGE);
	assert_int_equal(parse_int("-2147483647", &i), 0);
	assert_int_equal(i, -2147483647);
	assert_int_equal(parse_int("2147483648", &i), -ERANGE);
	assert_int_equal(parse_int("-", &i), -EINVAL);
	assert_int_equal(parse_int("--1", &i), -EINVAL);
}

static void test_strings(void **state)
{
	char text[] = "abc \t\r\n", blank[] = " \n", empty[] = "";

	(void)state;
	assert_string_equal(str_rstrip(text), "abc");
	assert_string_equal(str_rstrip(blank), "");
	assert_string_equal(str_rstrip(empty), "");
	assert_true(streq_null(NULL, NULL));
	assert_false(streq_null(NULL, "") || streq_null("", NULL));
	assert_true(streq_null("a", "a"));
	assert_true(starts_with("abc", "ab") && starts_with("abc", "") && !starts_with("a", "ab"));
	assert_true(ends_with("abc", "bc") && ends_with("abc", "") && !ends_with("c", "bc"));
}

static void test_utf8(void **state)
{
	static const char *const good[] = {
		"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xef\xbf\xbf"
	};
	static const char *const bad[] = { "\x80",	   "\xc3",
					   "\xc0\x80",	   "\xe0\x80\x80",
					   "\xed\xa0\x80", "\xf4\x90\x80\x80",
					   "\xff",	   "\xc3(",
					   "a\xe2\x82",	   "\xf8\x88\x80\x80\x80" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(utf8_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(utf8_valid(bad[i], strlen(bad[i])));
	assert_false(utf8_valid("a\0b", 3));
}

static void test_names(void **state)
{
	char label[65], domain[300];

	(void)state;
	memset(label, 'a', sizeof(label));
	label[63] = '\0';
	assert_true(is_dns_label(label) && is_dns_label("a") && is_dns_label("0-a"));
	label[63] = 'a';
	label[64] = '\0';
	assert_false(is_dns_label(label));
	assert_false(is_dns_label("") || is_dns_label("-a") || is_dns_label("a-"));
	assert_false(is_dns_label("A") || is_dns_label("a.b") || is_dns_label("a_b"));
	assert_true(is_dns_subdomain("a.b-c.d") && is_dns_subdomain("twinrail.dev"));
	assert_false(is_dns_subdomain("") || is_dns_subdomain("a..b") || is_dns_subdomain(".a"));
	assert_false(is_dns_subdomain("a.") || is_dns_subdomain("a.-b") || is_dns_subdomain("a/b"));
	/* RFC 1123 subdomain of apimachinery: the whole is bounded, a label is not */
	memset(domain, 'a', sizeof(domain));
	domain[253] = '\0';
	assert_true(is_dns_subdomain(domain));
	domain[253] = 'a';
	domain[254] = '\0';
	assert_false(is_dns_subdomain(domain));
}

static void test_buf(void **state)
{
	struct buf b = { 0 };
	char *s;

	(void)state;
	s = buf_take(&b);
	assert_string_equal(s, "");
	free(s);
	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%03d", i);
	buf_add(&b, "a\0b", 3);
	buf_str(&b, "");
	assert_int_equal(b.len, 3003);
	assert_int_equal(b.data[b.len], '\0');
	assert_memory_equal(b.data + 3000, "a\0b", 3);
	s = buf_take(&b);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	free(s);
	buf_add(&b, NULL, 0);
	assert_string_equal(b.data, "");
	buf_done(&b);
	buf_done(&b);
}

static void test_strlist(void **state)
{
	struct strlist l = { 0 };

	(void)state;
	strlist_sort(&l);
	strlist_split(&l, ",c,,a,b,", ',');
	assert_int_equal(l.n, 3);
	strlist_sort(&l);
	assert_string_equal(l.items[0], "a");
	assert_string_equal(l.items[2], "c");
	assert_null(l.items[3]);
	assert_true(strlist_has(&l, "b") && !strlist_has(&l, "d"));
	for (int i = 0; i < 100; i++)
		strlist_take(&l, xasprintf("%d", i));
	assert_int_equal(l.n, 103);
	assert_null(l.items[103]);
	strlist_done(&l);
	assert_null(l.items);
	strlist_split(&l, "", ',');
	assert_int_equal(l.n, 0);
	strlist_done(&l);
}

static void test_mem(void **state)
{
	struct item {
		int n;
		char pad[60];
	} *items = NULL, *taken;
	size_t n = 0, cap = 0;
	int fd = 5;

	(void)state;
	free(xmalloc(0));
	free(xcalloc(0, 0));
	for (int i = 0; i < 100; i++) {
		struct item *item = array_push(items, n, cap);

		assert_int_equal(item->n, 0);
		item->n = i + 1;
	}
	assert_int_equal(n, 100);
	assert_int_equal(items[99].n, 100);
	taken = TAKE_PTR(items);
	assert_null(items);
	free(taken);
	assert_null(xstrdup_null(NULL));
	assert_int_equal(TAKE_FD(fd), 5);
	assert_int_equal(fd, -1);
	closep(&fd);
}

static void test_uid(void **state)
{
	char text[UID_MAX + 2] = { 0 };

	(void)state;
	assert_true(is_uid("aaaaaaaa-0000-4000-8000-00000000000F"));
	assert_true(is_uid("1"));
	memset(text, 'x', UID_MAX);
	assert_true(is_uid(text));
	text[UID_MAX] = 'x';
	assert_false(is_uid(text));
	assert_false(is_uid(""));
	assert_false(is_uid("../x"));
	assert_false(is_uid("a/b"));
	assert_false(is_uid("-a"));
	assert_false(is_uid("a-"));
	assert_false(is_uid("a.b"));
	assert_false(is_uid("a_b"));
	assert_false(is_uid("\xc3\xa9"));
}

static void test_json(void **state)
{
	static const char text[] = "{\"b\":{\"c\":[1,\"x\"]},\"a\":\"y\"}";
	json_t *v = NULL;
	struct err err = { 0 };
	char *s;

	(void)state;
	assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
	s = json_text(v);
	assert_string_equal(s, "{\"a\":\"y\",\"b\":{\"c\":[1,\"x\"]}}"); /* sorted */
	free(s);
	s = json_text_pretty(v);
	assert_true(ends_with(s, "\n}\n"));
	free(s);
	assert_int_equal(json_array_size(json_path(v, "b.c")), 2);
	assert_string_equal(json_path_string(v, "a"), "y");
	assert_null(json_path_string(v, "b"));
	assert_null(json_path(v, "b.x.y"));
	assert_null(json_path(v, "a.x"));
	assert_null(json_path(NULL, "a"));
	assert_ptr_equal(json_path(v, ""), v);
	json_set_string(v, "s", "z");
	json_set_string(v, "none", NULL);
	json_set_int(v, "i", -5);
	json_set_bool(v, "t", true);
	assert_null(json_object_get(v, "none"));
	assert_int_equal(json_integer_value(json_object_get(v, "i")), -5);
	assert_true(json_is_true(json_object_get(v, "t")));
	/* a name from the kernel that is not UTF-8 */
	json_set_string(v, "s", "eth\xff\xc3\xa9");
	assert_string_equal(json_path_string(v, "s"), "eth???");
	json_set(v, "list", json_new_array());
	json_add(json_object_get(v, "list"), json_new_object());
	json_add(json_object_get(v, "list"), json_new_int(7));
	json_add_string(json_object_get(v, "list"), "eth\xff"); /* not lost */
	s = json_text(json_object_get(v, "list"));
	assert_string_equal(s, "[{},7,\"eth?\"]");
	free(s);
	json_decref(v);

	v = NULL;
	assert_true(json_parse("{\"a\":1,\"a\":2}", 13, &v, &err) < 0);
	assert_non_null(strstr(err.msg, "line 1 column"));
	assert_true(json_parse("{} x", 4, &v, &err) < 0);
	assert_true(json_parse("", 0, &v, NULL) < 0);
	assert_true(json_parse("{\"a\":\"\xff\"}", 9, &v, &err) < 0);
	assert_null(v);
}

static void test_clock(void **state)
{
	char text[TIME_RFC3339_MAX];
	uint64_t start = clock_us();

	(void)state;
	usleep(2000);
	assert_in_range(clock_us() - start, 2000, 2000000);
	assert_true(time_now_us() > 1700000000000000LL);
	time_rfc3339(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	time_rfc3339(1767323045678999LL, text);
	assert_string_equal(text, "2026-01-02T03:04:05.678Z");
}

/* What log_write() puts on stderr; the time is cut off. */
static char *logged(enum log_format format, const char *key, const char *value)
{
	int fds[2], saved = dup(STDERR_FILENO);
	char line[4096];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	log_init(format, LOG_LEVEL_INFO);
	log_debug("not shown", KV("a", "b"));
	log_info("a thing happened", KV(key, "%s", value), KV("n", "%d", 5));
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	n = read(fds[0], line, sizeof(line) - 1);
	close(fds[0]);
	assert_true(n > 30);
	line[n] = '\0';
	if (format == LOG_FORMAT_JSON) {
		_cleanup_json_ json_t *v = NULL;

		assert_int_equal(json_parse(line, (size_t)n, &v, NULL), 0);
		assert_non_null(json_path_string(v, "time"));
		json_object_del(v, "time");
		return json_text(v);
	}
	return xstrdup(line + strlen("2026-01-02T03:04:05.678Z "));
}

static void test_log(void **state)
{
	static const struct {
		const char *value, *text, *json;
	} cases[] = {
		{ "x/y", "x/y", "x/y" },
		{ "", "\"\"", "" },
		{ "two words", "\"two words\"", "two words" },
		{ "a=b", "\"a=b\"", "a=b" },
		{ "new\nline level=error", "\"new\\u000aline level=error\"",
		  "new\\nline level=error" },
		{ "q\"\\", "\"q\\\"\\\\\"", "q\\\"\\\\" },
		{ "\xc3\xa9", "\"\xc3\xa9\"", "\xc3\xa9" },
		{ "\xff\xc3\xa9", "\"???\"", "???" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = logged(LOG_FORMAT_TEXT, "k", cases[i].value);
		_cleanup_free_ char *json = logged(LOG_FORMAT_JSON, "k", cases[i].value);
		_cleanup_free_ char *wanted =
			xasprintf("info  a thing happened k=%s n=5\n", cases[i].text);
		_cleanup_free_ char *wanted_json =
			xasprintf("{\"k\":\"%s\",\"level\":\"info\",\"msg\":\"a thing happened\","
				  "\"n\":\"5\"}",
				  cases[i].json);

		assert_string_equal(text, wanted);
		assert_string_equal(json, wanted_json);
	}
	log_init(LOG_FORMAT_TEXT, LOG_LEVEL_INFO);
	assert_true(log_enabled(LOG_LEVEL_WARN) && !log_enabled(LOG_LEVEL_DEBUG));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_err),	cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_strings), cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_names),	cmocka_unit_test(test_buf),
		cmocka_unit_test(test_strlist), cmocka_unit_test(test_mem),
		cmocka_unit_test(test_json),	cmocka_unit_test(test_uid),
		cmocka_unit_test(test_clock),	cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cmd/options.h"

static const char *const formats[] = { "tree", "json", NULL };

static struct values {
	const char *root;
	bool verbose;
	unsigned int format, limit;
	uint64_t timeout;
} v;

static const struct option_def table[] = {
	OPTION_ROOT(&v.root),
	OPTION_VERBOSE(&v.verbose),
	{ "output", 'o', OPTION_CHOICE, &v.format, "FORMAT", "what is printed", formats, 0 },
	{ "link-limit", 0, OPTION_UINT, &v.limit, "N", "links at most", NULL, 64 },
	{ "timeout", 't', OPTION_DURATION, &v.timeout, "TIME", "how long to wait", NULL, 0 },
};

static const struct option_spec spec = {
	.command = "test",
	.operands = "[FILE]",
	.summary = "Tests the options.",
	.table = table,
	.n = ARRAY_SIZE(table),
	.max_operands = 1,
};

static struct options o;
static struct err err;

static int setup(void **state)
{
	(void)state;
	v = (struct values){ .root = "/", .limit = 8, .timeout = 20000000 };
	o = (struct options){ 0 };
	err_reset(&err);
	unsetenv("TWINRAIL_ROOT");
	unsetenv("TWINRAIL_LINK_LIMIT");
	unsetenv("TWINRAIL_CONFIG");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	options_done(&o);
	return 0;
}

/* The words of a command line after the command's name, as in a shell without quotes. */
static int parse(const char *line)
{
	static struct strlist words;
	int r;

	strlist_done(&words);
	strlist_add(&words, "test");
	strlist_split(&words, line, ' ');
	r = options_parse(&spec, (int)words.n, words.items, &o, &err);
	return r;
}

static void assert_error(const char *line, const char *text)
{
	assert_int_equal(parse(line), -EINVAL);
	if (!strstr(err.msg, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.msg);
}

static void assert_config_error(const char *yaml, const char *text)
{
	char file[] = "/tmp/test_options.XXXXXX";
	_cleanup_close_ int fd = mkstemp(file);
	_cleanup_free_ char *line = xasprintf("--config %s", file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, yaml, strlen(yaml)), strlen(yaml));
	if (text)
		assert_error(line, text);
	else
		assert_int_equal(parse(line), 0);
	unlink(file);
}

static void test_defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_string_equal(v.root, "/");
	assert_false(v.verbose);
	assert_int_equal(v.limit, 8);
	assert_int_equal(o.operands.n, 0);
}

static void test_command_line(void **state)
{
	(void)state;
	assert_int_equal(parse("-v file --root /x --output=json --link-limit 64 -t 500ms"), 0);
	assert_string_equal(v.root, "/x");
	assert_true(v.verbose);
	assert_int_equal(v.format, 1);
	assert_int_equal(v.limit, 64);
	assert_int_equal(v.timeout, 500000);
	assert_int_equal(o.operands.n, 1);
	assert_string_equal(o.operands.items[0], "file");
	options_done(&o);
	assert_int_equal(parse("--verbose=false -t 2h -- "), 0);
	assert_false(v.verbose);
	assert_int_equal(v.timeout, 7200000000);
}

static void test_bad_values(void **state)
{
	(void)state;
	assert_error("--nope", "unknown option --nope");
	assert_error("-x", "unknown option -x");
	assert_error("--root", "no value for --root");
	assert_error("-o", "no value for -o");
	assert_error("-o xml", "--output: \"xml\" is not valid; give tree or json");
	assert_error("--link-limit 65", "from 0 to 64");
	assert_error("--link-limit -1", "from 0 to 64");
	assert_error("--link-limit 1x", "from 0 to 64");
	assert_error("--timeout 5", "a number and ms, s, m or h");
	assert_error("--timeout s", "a number and ms, s, m or h");
	assert_error("--timeout 99999999999999999999h", "a number and ms, s, m or h");
	assert_error("--timeout 169h", "at most a week");
	assert_error("--verbose=maybe", "true or false");
	assert_error("a b", "unexpected argument \"b\"");
}

static void test_environment(void **state)
{
	(void)state;
	setenv("TWINRAIL_ROOT", "/env", 1);
	setenv("TWINRAIL_LINK_LIMIT", "", 1);
	assert_int_equal(parse(""), 0);
	assert_string_equal(v.root, "/env");
	assert_int_equal(v.limit, 8);
	options_done(&o);
	assert_int_equal(parse("--root /line"), 0);
	assert_string_equal(v.root, "/line");
	setenv("TWINRAIL_LINK_LIMIT", "many", 1);
	assert_error("", "TWINRAIL_LINK_LIMIT: \"many\"");
}

static void test_config(void **state)
{
	(void)state;
	setenv("TWINRAIL_ROOT", "/env", 1);
	assert_config_error("# comment\nroot: /file\nlink-limit: 3\nverbose: true\n", NULL);
	assert_string_equal(v.root, "/env");
	assert_int_equal(v.limit, 3);
	assert_true(v.verbose);
	options_done(&o);
	assert_config_error("", NULL);
	options_done(&o);
	assert_config_error("# nothing\n", NULL);
}

static void test_bad_config(void **state)
{
	(void)state;
	assert_config_error("root: /\nwhat: 1\n", ": what is not an option");
	assert_config_error("root: /\nroot: /\n", "line 2");
	assert_config_error("root: [a, b]\n", ": root has no single value");
	assert_config_error("\nlink-limit: x\n", ": link-limit: \"x\"");
	assert_config_error("- root\n", "want one mapping");
	assert_config_error("root\n", "want one mapping");
	assert_config_error("root: /\n---\nroot: /\n", "line 2");
	assert_config_error("[a]: b\n", "line 1");
	assert_config_error("root: 'x\n", "line");
	assert_config_error("root: \"a\\0b\"\n", "line 1");
	assert_int_equal(parse("--config /nonexistent/file"), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/file"));
}

static void test_help(void **state)
{
	_cleanup_free_ char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(parse("--root /x --help"), 1);
	assert_string_equal(v.root, "/");
	options_help(&spec, f);
	fclose(f);
	assert_non_null(strstr(text, "Usage: twinrail test [OPTION]... [FILE]\nTests the"));
	assert_non_null(strstr(text, "(default /)\n"));
	assert_non_null(strstr(text, "(tree or json; default tree)\n"));
	assert_non_null(strstr(text, "(default 20s)\n"));
	assert_non_null(strstr(text, "(default 8)\n"));
	assert_non_null(strstr(text, "  -t, --timeout TIME "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_command_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(test_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_help, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

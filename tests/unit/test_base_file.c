// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"

static char dir[] = "/tmp/twinrail-test-file-XXXXXX";

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

/* Number of names in the directory; a temporary file that was left would be one. */
static size_t count(void)
{
	struct strlist names = { 0 };
	size_t n;

	assert_int_equal(dir_list_at(AT_FDCWD, dir, &names), 0);
	n = names.n;
	strlist_done(&names);
	return n;
}

static void test_read_write(void **state)
{
	_cleanup_free_ char *path = in_dir("a"), *text = NULL;
	mode_t mask = umask(077);
	struct err err = { 0 };
	struct stat st;
	size_t len = 7;

	(void)state;
	assert_int_equal(
		file_write_atomic(path, "one\0two", 7, 0644, FILE_DURABLE | FILE_SYNC_DIR, &err),
		0);
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644); /* whatever the umask */
	assert_int_equal(file_read(path, 7, &text, &len, &err), 0);
	assert_int_equal(len, 7);
	assert_memory_equal(text, "one\0two", 8);
	assert_int_equal(count(), 1);
	free(TAKE_PTR(text));

	assert_int_equal(file_read(path, 6, &text, &len, &err), -EFBIG);
	assert_null(text);
	assert_non_null(strstr(err.msg, path));
	assert_int_equal(err.kind, ERR_INVALID);

	/* replaced, also by nothing at all */
	assert_int_equal(file_write_atomic(path, "", 0, 0600, 0, &err), 0);
	assert_int_equal(file_read(path, 0, &text, NULL, &err), 0);
	assert_string_equal(text, "");
	assert_int_equal(file_remove(path, FILE_SYNC_DIR, &err), 0);
	assert_int_equal(file_remove(path, 0, &err), 0); /* not there: fine */
	free(TAKE_PTR(text));
	assert_int_equal(file_read(path, 10, &text, NULL, &err), -ENOENT);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(count(), 0);
}

/* Files whose size the kernel does not tell, and what is no file. */
static void test_special(void **state)
{
	_cleanup_free_ char *text = NULL, *fifo = in_dir("fifo");
	size_t len = 0;

	(void)state;
	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/status", 65536, &text, &len), 0);
	assert_true(len > 100);
	assert_int_equal(text[len], '\0');
	free(TAKE_PTR(text));
	assert_int_equal(file_read_at(AT_FDCWD, "/dev/zero", 100000, &text, &len), -EOPNOTSUPP);
	assert_int_equal(file_read_at(AT_FDCWD, dir, 100, &text, &len), -EISDIR);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(file_read_at(AT_FDCWD, fifo, 100, &text, &len), -EOPNOTSUPP);
	assert_null(text);
	unlink(fifo);
}

static void test_write_fails(void **state)
{
	_cleanup_free_ char *nowhere = in_dir("no/such/file"), *sub = in_dir("sub");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(file_write_atomic(nowhere, "x", 1, 0600, 0, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/no/such/"));
	/* the target is a directory: nothing is left behind */
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_true(file_write_atomic(sub, "x", 1, 0600, 0, &err) < 0);
	assert_non_null(strstr(err.msg, sub));
	assert_int_equal(count(), 1);
	assert_true(file_remove(sub, 0, &err) < 0);
	rmdir(sub);
}

static void test_directories(void **state)
{
	_cleanup_free_ char *deep = in_dir("a/b/c"), *file = in_dir("f"), *below = in_dir("f/x");
	_cleanup_free_ char *a = in_dir("a"), *b = in_dir("a/b");
	struct strlist names = { 0 };
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(dir_make(deep, 0750, &err), 0);
	assert_int_equal(dir_make(deep, 0750, &err), 0);
	assert_int_equal(stat(b, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(dir_sync(deep, &err), 0);
	assert_int_equal(file_write_atomic(file, "", 0, 0600, 0, &err), 0);
	assert_true(dir_make(file, 0750, &err) < 0);
	assert_int_equal(dir_make(below, 0750, &err), -ENOTDIR);
	assert_true(dir_sync(below, &err) < 0);
	assert_true(dir_list_at(AT_FDCWD, file, &names) < 0);
	assert_int_equal(names.n, 0);

	/* sorted, without . and .. */
	assert_int_equal(dir_list_at(AT_FDCWD, dir, &names), 0);
	assert_int_equal(names.n, 2);
	assert_string_equal(names.items[0], "a");
	assert_string_equal(names.items[1], "f");
	strlist_done(&names);
	unlink(file);
	rmdir(deep);
	rmdir(b);
	rmdir(a);
}

static void test_stale(void **state)
{
	static const char *const names[] = { ".claim.01234567.tmp", ".claim2.json.89abcdef.tmp",
					     ".other.tmp", "claim.tmp", ".claim" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = in_dir(names[i]);

		assert_int_equal(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	}
	file_remove_stale(dir, "claim");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = in_dir(names[i]);

		assert_int_equal(access(path, F_OK) == 0, i >= 2);
		unlink(path);
	}
	file_remove_stale("/nowhere", "claim");
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_write),  cmocka_unit_test(test_special),
		cmocka_unit_test(test_write_fails), cmocka_unit_test(test_directories),
		cmocka_unit_test(test_stale),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

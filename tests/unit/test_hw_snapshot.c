// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test_topo_machine.h"

#include "hw/root.h"

static void assert_refused(const char *recording, const char *text)
{
	char dir[] = "/tmp/twinrail-test.XXXXXX", file[] = "/tmp/twinrail-test.XXXXXX";
	int fd = mkstemp(file);
	struct err err = { 0 };

	assert_true(fd >= 0);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(write(fd, recording, strlen(recording)), strlen(recording));
	close(fd);
	assert_int_not_equal(hw_snapshot_unpack(file, dir, &err), 0);
	if (!strstr(err.msg, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.msg);
	unlink(file);
	remove_tree(xstrdup(dir));
}

static void test_lines(void **state)
{
	char *dir = unpack("# comment\n\n"
			   "a/value = one two\n"
			   "a/lines = 1\\n2\\t\\\\\\s\n"
			   "a/empty =\n"
			   "a/with\\sspace = x\n"
			   "a/binary : 00ff41\n"
			   "a/no-bytes :\n"
			   "a/fails ! EINVAL\n"
			   "link -> a/value\n"
			   "b/up -> ../a\n");
	struct hw_root root;
	struct hw_dir b;
	_cleanup_free_ char *value = NULL, *lines = NULL, *binary = NULL, *empty = NULL;
	_cleanup_free_ char *through = NULL, *space = NULL, *none = NULL;
	char link[16];
	struct err err;
	size_t len;

	(void)state;
	assert_int_equal(hw_root_open(dir, &root, &err), 0);
	assert_int_equal(hw_root_read(&root, "a/value", 100, &value, NULL), 0);
	assert_string_equal(value, "one two\n");
	assert_int_equal(hw_root_read(&root, "a/lines", 100, &lines, NULL), 0);
	assert_string_equal(lines, "1\n2\t\\ \n");
	assert_int_equal(hw_root_read(&root, "a/empty", 100, &empty, &len), 0);
	assert_int_equal(len, 0);
	assert_int_equal(hw_root_read(&root, "a/binary", 100, &binary, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(binary, "\0\377A", 3);
	space = hw_attr(&root, "a", "with space");
	assert_string_equal(space, "x");
	assert_int_equal(hw_root_read(&root, "a/value", 3, &none, NULL), -EFBIG);
	/* A recorded error comes back, through a link too. */
	assert_int_equal(hw_root_read(&root, "a/fails", 100, &none, NULL), -EINVAL);
	assert_int_equal(hw_root_read(&root, "b/up/fails", 100, &none, NULL), -EINVAL);
	through = hw_attr(&root, "b/up", "value");
	assert_string_equal(through, "one two");
	assert_int_equal(hw_dir_open(&root, "b", &b), 0);
	assert_int_equal(readlinkat(b.fd, "up", link, sizeof(link)), 4);
	assert_memory_equal(link, "../a", 4);
	hw_dir_close(&b);
	hw_root_close(&root);
	remove_tree(dir);
}

/* Directories that nothing is in, that are named twice, and that cannot be listed. */
static void test_directories(void **state)
{
	char *dir = unpack("a/empty/\na/with\\sspace/\na/b/c = 1\na/b/\na/closed/ ! EACCES\n"
			   "a/closed/x = 1\na/link -> closed\n");
	struct strlist names = { 0 };
	struct hw_root root;
	struct err err;

	(void)state;
	assert_int_equal(hw_root_open(dir, &root, &err), 0);
	assert_int_equal(hw_list(&root, "a/empty", 1, &names), 0);
	assert_int_equal(names.n, 0);
	assert_int_equal(hw_list(&root, "a/closed", 1, &names), -EACCES);
	assert_int_equal(hw_list(&root, "a/link", 1, &names), -EACCES);
	assert_int_equal(hw_list(&root, "a/b", 1, &names), 0);
	assert_string_equal(names.items[0], "c");
	strlist_done(&names);
	assert_true(hw_exists(&root, "a/closed/x"));
	assert_true(hw_exists(&root, "a/with space"));
	hw_root_close(&root);
	remove_tree(dir);
}

static void test_refused(void **state)
{
	(void)state;
	assert_refused("a = 1\n../b = 1\n", "line 2: the path must be relative");
	assert_refused("/a = 1\n", "line 1: the path must be relative");
	assert_refused("a/../b = 1\n", "line 1: the path must be relative");
	assert_refused("a//b = 1\n", "line 1: the path must be relative");
	assert_refused("a/ = 1\n", "line 1: the path must be relative");
	assert_refused("../a/\n", "line 1: the path must be relative");
	assert_refused("/\n", "line 1: the path must be relative");
	assert_refused("a//\n", "line 1: the path must be relative");
	assert_refused("a/./ ! EIO\n", "line 1: the path must be relative");
	assert_refused("a/ ! EWRONG\n", "is not the name of an error");
	assert_refused("a\\q/\n", "unknown escape");
	assert_refused("a = 1\na/\n", "line 2: a/ lies below a file or link");
	assert_refused("a/\na = 1\n", "line 2: a is given twice");
	assert_refused("a/\na -> b\n", "line 2: a is given twice");
	assert_refused("./a = 1\n", "line 1: the path must be relative");
	assert_refused("a -> /etc/passwd\n", "must be relative and stay below");
	assert_refused("a -> ../x\n", "must be relative and stay below");
	assert_refused("a/b -> c/../../../x\n", "must be relative and stay below");
	assert_refused("a ->\n", "must be relative and stay below");
	/* Where ".." leads after another link cannot be told from the text. */
	assert_refused("a/b/c/d/x = 1\nl -> a/b/c/d\nz -> l/../../x\n",
		       "line 3: z: the link must be relative and stay below");
	assert_refused("a/b/x = 1\na/l -> b/../b\n", "with \"..\" at its beginning only");
	assert_refused("a/b/x = 1\na/l -> .././../a\n", "must be relative and stay below");
	assert_refused("\nword\n", "line 2: want \"path = value\"");
	assert_refused("a ? b\n", "line 1: want =, ->, : or !");
	assert_refused("a =b\n", "line 1: want =, ->, : or !");
	assert_refused("a - b\n", "line 1: want =, ->, : or !");
	assert_refused("a = \\q\n", "unknown escape");
	assert_refused("a = \\", "unknown escape");
	assert_refused("a : 0\n", "pairs of the digits");
	assert_refused("a : 0g\n", "pairs of the digits");
	assert_refused("a : 0A\n", "pairs of the digits");
	assert_refused("a ! EWRONG\n", "is not the name of an error");
	assert_refused("a = 1\na = 1\n", "line 2: a is given twice");
	assert_refused("a -> b\na -> c\n", "line 2: a is given twice");
	assert_refused("a = 1\na/b = 1\n", "line 2: a/b lies below a file or link");
	/* A link below a link could lead out of the directory. */
	assert_refused("d/x = 1\na/b/c -> ../../d\na/b/c/e -> ../../../x\n",
		       "line 3: a/b/c/e lies below a file or link");
	assert_refused("twinrail/errors = x\n", "line 1: twinrail/errors is made from");
}

/*
 * By its text "out" is a/b/c/secret, but "short" is the root: without openat2(), which would keep
 * it in the root, it leads to a file beside that.  What ends in the root is read by way of links.
 */
static void test_links_without_openat2(void **state)
{
	static const char crafted[] = "a/b/c/v = 1\na/b/c/short -> ../../..\n"
				      "out -> a/b/c/short/../secret\n";
	static const char fine[] = "x/y/z/v = 1\nx/up -> ../near\nl/m/in -> ../../deep/y/z\n"
				   "deep -> x\nnear = 2\n";
	_cleanup_free_ char *text = NULL, *near = NULL;
	struct hw_root root;
	struct err err;
	char *dir;

	(void)state;
	assert_refused(crafted, "line 3: out: the link must be relative and stay below");
	dir = unpack(fine);
	assert_int_equal(hw_root_open(dir, &root, &err), 0);
	root.no_openat2 = true;
	text = hw_attr(&root, "l/m/in", "v");
	assert_string_equal(text, "1");
	assert_int_equal(hw_root_read(&root, "deep/up", 10, &near, NULL), 0);
	assert_string_equal(near, "2\n");
	hw_root_close(&root);
	remove_tree(dir);
}

static void test_directory(void **state)
{
	char *dir = unpack("a = 1\n"), *file = xasprintf("%s/a", dir);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(hw_snapshot_unpack(file, dir, &err), -ENOTEMPTY);
	assert_non_null(strstr(err.msg, dir));
	assert_int_equal(hw_snapshot_unpack("/nonexistent/file", dir, &err), -ENOENT);
	free(file);
	remove_tree(dir);
}

static void assert_join(const char *dir, const char *target, const char *expected)
{
	_cleanup_free_ char *path = hw_path_join(dir, target);

	assert_string_equal(path, expected);
}

static void test_names(void **state)
{
	_cleanup_free_ char *bus_id = hw_path_bus_id("/sys/devices/pci0000:00/0000:00:01.0/net/e");

	(void)state;
	assert_join("sys/bus/pci/devices", "../../../devices/x", "/sys/devices/x");
	assert_join("sys/class/net", "/sys/devices/y", "/sys/devices/y");
	assert_join("a", "../../../b/./c//", "/b/c");
	assert_join("a", "..", "/");
	assert_string_equal(bus_id, "0000:00:01.0");
	assert_null(hw_path_bus_id("/sys/devices/virtual/net/lo"));
	assert_int_equal(hw_errno_from_name("EOPNOTSUPP"), EOPNOTSUPP);
	assert_int_equal(hw_errno_from_name("nope"), 0);
}

/* Part of a file fits: the kernel's answer is a short count without an error. */
static void test_disk_full(void **state)
{
	char dir[] = "/tmp/twinrail-test.XXXXXX";
	const struct rlimit small = { 64, RLIM_INFINITY };
	_cleanup_free_ char *file = NULL, *target = NULL, *text = NULL;
	struct rlimit before;
	struct err err = { 0 };
	int r;

	(void)state;
	assert_non_null(mkdtemp(dir));
	file = xasprintf("%s/machine", dir);
	target = xasprintf("%s/root", dir);
	text = xasprintf("sys/a = %0100d\n", 0);
	assert_int_equal(file_write_atomic(file, text, strlen(text), 0600, 0, &err), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	errno = EAGAIN;
	r = hw_snapshot_unpack(file, target, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -ENOSPC);
	assert_non_null(strstr(err.msg, "root/sys/a: No space left on device"));
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_links_without_openat2),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

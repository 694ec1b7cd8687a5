// SPDX-License-Identifier: Apache-2.0
/*
 * The reader of recordings: whatever it is given, it writes below its directory only, and says what
 * is wrong with a recording that it refuses.
 */
#include "tree.h"

/* The directory that stands beside the recording's is the only other thing there is. */
static void check_inside(const char *home, const char *beside)
{
	struct stat st;

	CHECK(stat(home, &st) == 0 && st.st_nlink == 4, "%ju links of %s", (uintmax_t)st.st_nlink,
	      home);
	CHECK(stat(beside, &st) == 0 && st.st_nlink == 2, "something was made in %s", beside);
	CHECK(rmdir(beside) == 0, "something was written into %s", beside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *dir = xasprintf("%s/tree", tree_home());
	_cleanup_free_ char *beside = xasprintf("%s/beside", tree_home());
	struct err err = { 0 };
	int r;

	CHECK(mkdir(beside, 0755) == 0, "%s", strerror(errno));
	r = tree_unpack(data, size, dir, &err);
	CHECK(r <= 0, "%d", r);
	CHECK((r == 0) == (err.msg[0] == '\0'), "%d with the text \"%s\"", r, err.msg);
	if (mkdir(dir, 0755) < 0)
		CHECK(errno == EEXIST, "%s", strerror(errno));
	check_inside(tree_home(), beside);
	tree_remove(dir);
	return 0;
}

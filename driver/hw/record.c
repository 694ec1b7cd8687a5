// SPDX-License-Identifier: Apache-2.0
#include "hw/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <sys/stat.h>

#include "base/mem.h"

#define MAX_LINKS 40 /* on one way, as in the kernel */

/* What is known of one path, from little to much: more replaces less. */
enum kind {
	KIND_PASSED, /* no link; perhaps on the way to something */
	KIND_DIR, /* a directory that was listed or looked for */
	KIND_FILE, /* it is there; nobody read it */
	KIND_FAILED, /* it is there; reading or listing it gave "errnum" */
	KIND_LINK, /* to "data" */
	KIND_VALUE,
};

struct node {
	char *path; /* first: compared by cmp_node(); relative to the root, without links */
	enum kind kind;
	bool is_dir; /* KIND_FAILED: listing it failed */
	int errnum;
	char *data;
	size_t len;
};

struct hw_recorder {
	void *nodes; /* a tree of <search.h> */
	char *root; /* absolute path of the root; NULL until it was needed */
};

struct hw_recorder *hw_recorder_new(void)
{
	return xnew(struct hw_recorder);
}

static void node_free(void *node)
{
	struct node *e = node;

	free(e->path);
	free(e->data);
	free(e);
}

struct hw_recorder *hw_recorder_free(struct hw_recorder *rec)
{
	if (rec) {
		tdestroy(rec->nodes, node_free);
		free(rec->root);
		free(rec);
	}
	return NULL;
}

static int cmp_node(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct node *find(const struct hw_recorder *rec, const char *path)
{
	struct node **found = tfind(&path, &rec->nodes, cmp_node);

	return found ? *found : NULL;
}

/* The entry of "path" if "kind" tells more than what is known of it, else NULL. */
static struct node *note(struct hw_recorder *rec, const char *path, enum kind kind)
{
	struct node *e = find(rec, path);

	if (e && e->kind >= kind)
		return NULL;
	if (!e) {
		e = xnew(struct node);
		e->path = xstrdup(path);
		if (!tsearch(e, &rec->nodes, cmp_node))
			abort(); /* only memory can fail */
	}
	e->kind = kind;
	return e;
}

/* Where "path", which has no link in it, leads as a link; NULL: it is none.  malloc'ed. */
static char *link_at(const struct hw_root *root, const char *path)
{
	const struct node *known = find(root->recorder, path);
	char target[PATH_MAX];
	struct node *e;
	ssize_t n;

	if (known)
		return known->kind == KIND_LINK ? xstrdup(known->data) : NULL;
	n = readlinkat(root->fd, path, target, sizeof(target));
	if (n < 0 && errno == EINVAL)
		note(root->recorder, path, KIND_PASSED);
	if (n <= 0 || n >= (ssize_t)sizeof(target))
		return NULL;
	e = note(root->recorder, path, KIND_LINK);
	e->data = xstrndup(target, (size_t)n);
	e->len = (size_t)n;
	return xstrdup(e->data);
}

/* The path of an open file or directory, as an absolute one; NULL without /proc. */
static char *path_of(int fd)
{
	_cleanup_free_ char *link = xasprintf("/proc/self/fd/%d", fd);
	char path[PATH_MAX];
	ssize_t n = readlink(link, path, sizeof(path));

	return n > 0 && n < (ssize_t)sizeof(path) ? xstrndup(path, (size_t)n) : NULL;
}

/* The directory "dirfd" relative to the root; NULL when it is not below it. */
static char *base_of(const struct hw_root *root, int dirfd)
{
	struct hw_recorder *rec = root->recorder;
	_cleanup_free_ char *path = NULL;
	size_t n;

	if (dirfd == root->fd)
		return xstrdup("");
	if (!rec->root)
		rec->root = path_of(root->fd);
	path = path_of(dirfd);
	n = rec->root ? strlen(rec->root) : 0;
	if (n == 1)
		n = 0; /* "/" */
	if (!path || !rec->root || strncmp(path, rec->root, n) != 0 || path[n] != '/')
		return NULL;
	return xstrdup(path + n + 1);
}

static void pop(struct buf *b)
{
	char *slash = b->len ? strrchr(b->data, '/') : NULL;

	b->len = slash ? (size_t)(slash - b->data) : 0;
	if (b->data)
		b->data[b->len] = '\0';
}

static void push(struct buf *b, const char *name, size_t n)
{
	if (b->len)
		buf_str(b, "/");
	buf_add(b, name, n);
}

/*
 * The path without links of "path" below "dirfd"; the last component is followed when "follow".
 * NULL when links run in a circle.  What it names need not exist.  malloc'ed.
 */
static char *resolve(const struct hw_root *root, int dirfd, const char *path, bool follow)
{
	_cleanup_free_ char *base = base_of(root, dirfd), *rest = xstrdup(path);
	struct buf at = { 0 };
	const char *p = rest;
	int links = 0;

	if (!base)
		return NULL;
	buf_str(&at, base);
	while (*(p += strspn(p, "/"))) {
		size_t n = strcspn(p, "/");
		_cleanup_free_ char *target = NULL, *longer = NULL;
		const char *after = p + n;

		if (n == 2 && p[0] == '.' && p[1] == '.') {
			pop(&at);
		} else if (n != 1 || p[0] != '.') {
			push(&at, p, n);
			if (follow || after[strspn(after, "/")])
				target = link_at(root, at.data);
		}
		if (!target) {
			p = after;
			continue;
		}
		if (++links > MAX_LINKS) {
			buf_done(&at);
			return NULL;
		}
		pop(&at);
		if (*target == '/')
			buf_done(&at);
		longer = xasprintf("%s%s", target, after);
		free(rest);
		p = rest = TAKE_PTR(longer);
	}
	return buf_take(&at);
}

/* "path" has no links.  True: it is there, and *ret_dir says whether it is a directory. */
static bool look(const struct hw_root *root, const char *path, bool *ret_dir)
{
	struct stat st;

	if (fstatat(root->fd, *path ? path : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	*ret_dir = S_ISDIR(st.st_mode);
	return true;
}

static void note_failed(const struct hw_root *root, const char *path, int r)
{
	bool is_dir;
	struct node *e = look(root, path, &is_dir) ? note(root->recorder, path, KIND_FAILED) : NULL;

	if (e) {
		e->is_dir = is_dir;
		e->errnum = -r;
	}
}

static void note_there(const struct hw_root *root, const char *path)
{
	bool is_dir;

	if (look(root, path, &is_dir))
		note(root->recorder, path, is_dir ? KIND_DIR : KIND_FILE);
}

void hw_record_file(const struct hw_root *root, int dirfd, const char *path, int r,
		    const void *data, size_t len)
{
	_cleanup_free_ char *real = resolve(root, dirfd, path, true);
	struct node *e;

	if (!real)
		return;
	if (r < 0) {
		note_failed(root, real, r);
		return;
	}
	e = note(root->recorder, real, KIND_VALUE);
	if (e) {
		e->data = xmalloc(len + 1);
		memcpy(e->data, data, len);
		e->data[len] = '\0';
		e->len = len;
	}
}

void hw_record_link(const struct hw_root *root, int dirfd, const char *path)
{
	_cleanup_free_ char *real = resolve(root, dirfd, path, false), *target = NULL;

	target = real ? link_at(root, real) : NULL;
	if (real && !target)
		note_there(root, real);
}

void hw_record_list(const struct hw_root *root, int dirfd, const char *path, int r,
		    const struct strlist *names)
{
	_cleanup_free_ char *real = resolve(root, dirfd, path, true);

	if (!real)
		return;
	if (r < 0) {
		note_failed(root, real, r);
		return;
	}
	note(root->recorder, real, KIND_DIR);
	for (size_t i = 0; i < names->n; i++) {
		_cleanup_free_ char *child =
			xasprintf("%s%s%s", real, *real ? "/" : "", names->items[i]);
		_cleanup_free_ char *target = link_at(root, child);
		bool is_dir;

		if (!target && look(root, child, &is_dir) && is_dir)
			note(root->recorder, child, KIND_DIR);
	}
}

void hw_record_exists(const struct hw_root *root, int dirfd, const char *path)
{
	_cleanup_free_ char *real = resolve(root, dirfd, path, true);

	if (real)
		note_there(root, real);
}

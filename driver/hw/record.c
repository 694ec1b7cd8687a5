// SPDX-License-Identifier: Apache-2.0
#include "hw/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <search.h>
#include <sys/stat.h>

#include "base/mem.h"

#define MAX_LINKS 40 /* on one way, as in the kernel */

struct node {
	char *path; /* first: compared by cmp_node(); relative to the root, without links */
	bool passed; /* no link; perhaps on the way to something, else of no interest */
	enum hw_recorded_kind kind; /* more replaces less */
	bool is_dir;
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

static void node_free(void *freed)
{
	struct node *node = freed;

	free(node->path);
	free(node->data);
	free(node);
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

int hw_record_cmp_path(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b || !*a || !*b)
		return (unsigned char)*a - (unsigned char)*b;
	return *a == '/' ? -1 : *b == '/' ? 1 : (unsigned char)*a - (unsigned char)*b;
}

static int cmp_node(const void *a, const void *b)
{
	return hw_record_cmp_path(*(char *const *)a, *(char *const *)b);
}

static struct node *find(const struct hw_recorder *rec, const char *path)
{
	struct node **found = tfind(&path, &rec->nodes, cmp_node);

	return found ? *found : NULL;
}

static struct node *add(struct hw_recorder *rec, const char *path)
{
	struct node *node = find(rec, path);

	if (!node) {
		node = xnew(struct node);
		*node = (struct node){ .path = xstrdup(path), .passed = true };
		if (!tsearch(node, &rec->nodes, cmp_node))
			abort(); /* only memory can fail */
	}
	return node;
}

/* The node of "path", made to be of "kind"; NULL when as much or more is known of it. */
static struct node *note(struct hw_recorder *rec, const char *path, enum hw_recorded_kind kind)
{
	struct node *node = add(rec, path);

	if (!node->passed && node->kind >= kind)
		return NULL;
	node->passed = false;
	node->kind = kind;
	return node;
}

/* Where "path", which has no link in it, leads as a link; NULL: it is none.  malloc'ed. */
static char *link_at(const struct hw_root *root, const char *path)
{
	const struct node *known = find(root->recorder, path);
	char target[PATH_MAX];
	struct node *node;
	ssize_t n;

	if (known)
		return !known->passed && known->kind == HW_RECORDED_LINK ? xstrdup(known->data)
									 : NULL;
	n = readlinkat(root->fd, path, target, sizeof(target));
	if (n < 0 && errno == EINVAL)
		add(root->recorder, path);
	if (n <= 0 || n >= (ssize_t)sizeof(target))
		return NULL;
	node = note(root->recorder, path, HW_RECORDED_LINK);
	node->data = xstrndup(target, (size_t)n);
	node->len = (size_t)n;
	return xstrdup(node->data);
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
	struct node *node =
		look(root, path, &is_dir) ? note(root->recorder, path, HW_RECORDED_FAILED) : NULL;

	if (node) {
		node->is_dir = is_dir;
		node->errnum = -r;
	}
}

static void note_there(const struct hw_root *root, const char *path)
{
	bool is_dir;

	if (look(root, path, &is_dir))
		note(root->recorder, path, is_dir ? HW_RECORDED_DIR : HW_RECORDED_FILE);
}

void hw_record_file(const struct hw_root *root, int dirfd, const char *path, int r,
		    const void *data, size_t len)
{
	_cleanup_free_ char *real = resolve(root, dirfd, path, true);
	struct node *node;
	const char *end;

	if (!real)
		return;
	if (r < 0) {
		/* Whoever follows no links fails at one; what it leads to does not. */
		if (r != -ELOOP)
			note_failed(root, real, r);
		return;
	}
	node = note(root->recorder, real, HW_RECORDED_VALUE);
	if (!node)
		return;
	node->data = xmalloc(len + 1);
	memcpy(node->data, data, len);
	node->data[len] = '\0';
	node->len = len;
	/* What all processors have in common is said of the first of up to some hundred. */
	end = streq(real, "proc/cpuinfo") ? strstr(node->data, "\n\n") : NULL;
	if (end) {
		node->len = (size_t)(end - node->data) + 1;
		node->data[node->len] = '\0';
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
	note(root->recorder, real, HW_RECORDED_DIR);
	for (size_t i = 0; i < names->n; i++) {
		_cleanup_free_ char *child =
			xasprintf("%s%s%s", real, *real ? "/" : "", names->items[i]);
		_cleanup_free_ char *target = link_at(root, child);
		bool is_dir;

		if (!target && look(root, child, &is_dir) && is_dir)
			note(root->recorder, child, HW_RECORDED_DIR);
	}
}

void hw_record_exists(const struct hw_root *root, int dirfd, const char *path)
{
	_cleanup_free_ char *real = resolve(root, dirfd, path, true);

	if (real)
		note_there(root, real);
}

void hw_recorder_add(struct hw_recorder *rec, const char *path, const char *text)
{
	struct node *node = note(rec, path, HW_RECORDED_VALUE);

	if (node) {
		node->data = xstrdup(text);
		node->len = strlen(text);
	}
}

struct each {
	void (*visit)(const struct hw_recorded *recorded, void *arg);
	void *arg;
	const struct node *dir; /* was seen, and nothing in it yet */
};

static void visit(struct each *each, const struct node *node)
{
	const struct hw_recorded recorded = {
		.path = node->path,
		.kind = node->kind,
		.is_dir = node->is_dir,
		.errnum = node->errnum,
		.data = node->data,
		.len = node->len,
	};

	each->visit(&recorded, each->arg);
}

static void flush_dir(struct each *each)
{
	if (each->dir)
		visit(each, each->dir);
	each->dir = NULL;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static void each_node(const void *at, VISIT order, void *arg)
{
	const struct node *node = *(struct node *const *)at;
	struct each *each = arg;

	if ((order != postorder && order != leaf) || node->passed || !*node->path)
		return;
	if (each->dir && !is_below(node->path, each->dir->path))
		flush_dir(each);
	each->dir = NULL;
	if (node->kind == HW_RECORDED_DIR)
		each->dir = node;
	else
		visit(each, node);
}

void hw_recorder_each(const struct hw_recorder *rec,
		      void (*visit_node)(const struct hw_recorded *recorded, void *arg), void *arg)
{
	struct each each = { .visit = visit_node, .arg = arg };

	twalk_r(rec->nodes, each_node, &each);
	flush_dir(&each);
}

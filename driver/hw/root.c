// SPDX-License-Identifier: Apache-2.0
#include "hw/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bus_id.h"
#include "base/file.h"
#include "base/mem.h"
#include "hw/record.h"

#define ATTR_MAX 4096
#define ERRORS_MAX (4 * 1024 * 1024)
#define IN_ROOT_TRIES 1000

/*
 * Open "path" below the root.  The links of a recorded machine come from who recorded it: none
 * leads out of the root.  Linux before 5.6 and some seccomp profiles know no openat2().
 */
static int open_below(const struct hw_root *root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT,
	};
	long fd = -1;

	if (root->live)
		return openat(root->fd, path, flags | O_CLOEXEC);
	/* EAGAIN: something was renamed anywhere meanwhile, so it cannot tell where ".." leads. */
	for (int i = 0; i < IN_ROOT_TRIES; i++) {
		fd = syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return openat(root->fd, path, flags | O_CLOEXEC);
	return (int)fd;
}

static int stat_below(const struct hw_root *root, const char *path, struct stat *st)
{
	_cleanup_close_ int fd = open_below(root, path, O_PATH);

	return fd < 0 ? -1 : fstat(fd, st);
}

int hw_errno_from_name(const char *name)
{
	for (int e = 1; e < 256; e++) {
		const char *known = strerrorname_np(e);

		if (known && streq(known, name))
			return e;
	}
	return 0;
}

static int cmp_error(const void *a, const void *b)
{
	const struct hw_root_error *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino == y->ino ? 0 : x->ino < y->ino ? -1 : 1;
}

/* Files are known by their inode, so that it does not matter through which links one is reached. */
static void load_errors(struct hw_root *root)
{
	_cleanup_free_ char *text = NULL;
	struct strlist lines = { 0 };

	if (file_read_at(root->fd, HW_ERRORS_FILE, ERRORS_MAX, &text, NULL) < 0)
		return;
	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n; i++) {
		char *space = strrchr(lines.items[i], ' ');
		struct stat st;
		int errnum;

		if (!space)
			continue;
		*space = '\0';
		errnum = hw_errno_from_name(space + 1);
		if (errnum && stat_below(root, lines.items[i], &st) == 0)
			*array_push(root->errors, root->n_errors, root->cap_errors) =
				(struct hw_root_error){ st.st_dev, st.st_ino, errnum };
	}
	strlist_done(&lines);
	if (root->n_errors)
		qsort(root->errors, root->n_errors, sizeof(*root->errors), cmp_error);
}

int hw_root_open(const char *root, struct hw_root *ret, struct err *err)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, ERR_INVALID, errno,
				 "cannot read directory %s; --root must name a directory with "
				 "sys/ and proc/",
				 root);
	*ret = (struct hw_root){ .fd = fd, .live = streq(root, "/") };
	if (!ret->live)
		load_errors(ret);
	return 0;
}

void hw_root_close(struct hw_root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	free(root->errors);
	*root = (struct hw_root){ .fd = -1 };
}

static int recorded_error(const struct hw_root *root, const char *path)
{
	const struct hw_root_error *found;
	struct stat st;

	if (root->n_errors == 0 || stat_below(root, path, &st) < 0)
		return 0;
	found = bsearch(&(struct hw_root_error){ st.st_dev, st.st_ino, 0 }, root->errors,
			root->n_errors, sizeof(*root->errors), cmp_error);
	return found ? -found->errnum : 0;
}

/* Such an error tells nothing about the file; others are facts of a machine. */
static int note_exhausted(const struct hw_root *root, int r)
{
	if (root->exhausted && (r == -EMFILE || r == -ENFILE || r == -ENOMEM))
		*root->exhausted = true;
	return r;
}

int hw_root_read(const struct hw_root *root, const char *path, size_t max, char **ret,
		 size_t *ret_len)
{
	_cleanup_close_ int fd = -1;
	size_t len = 0;
	int r = recorded_error(root, path);

	if (r == 0) {
		fd = open_below(root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
		r = fd < 0 ? -errno : file_read_fd(fd, max, ret, &len);
	}
	if (root->recorder)
		hw_record_file(root, root->fd, path, r, r < 0 ? NULL : *ret, len);
	if (r == 0 && ret_len)
		*ret_len = len;
	return note_exhausted(root, r);
}

char *hw_attr(const struct hw_root *root, const char *dir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name), *text = NULL;
	size_t len = 0; /* clang-tidy takes errno for 0 after a failed call */

	if (hw_root_read(root, path, ATTR_MAX, &text, &len) < 0 || !text || !utf8_valid(text, len))
		return NULL;
	str_rstrip(text);
	return *text ? TAKE_PTR(text) : NULL;
}

int hw_attr_int(const struct hw_root *root, const char *dir, const char *name, int fallback)
{
	_cleanup_free_ char *text = hw_attr(root, dir, name);
	int v;

	return text && parse_int(text, &v) == 0 ? v : fallback;
}

unsigned int hw_attr_hex(const struct hw_root *root, const char *dir, const char *name,
			 unsigned int fallback)
{
	_cleanup_free_ char *text = hw_attr(root, dir, name);
	uint64_t v;

	return text && parse_u64(text, 16, &v) == 0 && v <= UINT_MAX ? (unsigned int)v : fallback;
}

char *hw_link(const struct hw_root *root, const char *dir, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	char target[PATH_MAX];
	_cleanup_close_ int fd = open_below(root, path, O_PATH | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target));

	if (root->recorder)
		hw_record_link(root, root->fd, path);
	if (n <= 0 || n >= (ssize_t)sizeof(target) || !utf8_valid(target, (size_t)n))
		return NULL;
	return xstrndup(target, (size_t)n);
}

char *hw_link_base(const struct hw_root *root, const char *dir, const char *name)
{
	_cleanup_free_ char *target = hw_link(root, dir, name);
	const char *slash = target ? strrchr(target, '/') : NULL;
	const char *base = slash ? slash + 1 : target;

	return base && *base ? xstrdup(base) : NULL;
}

char *hw_path_join(const char *dir, const char *target)
{
	_cleanup_free_ char *joined =
		*target == '/' ? xstrdup(target) : xasprintf("%s/%s", dir, target);
	struct strlist parts = { 0 };
	struct buf b = { 0 };
	size_t n = 0; /* components that stay, moved to the front */

	strlist_split(&parts, joined, '/');
	for (size_t i = 0; i < parts.n; i++) {
		char *part = parts.items[i];

		if (streq(part, "."))
			continue;
		if (streq(part, "..")) {
			n -= n > 0;
			continue;
		}
		parts.items[i] = parts.items[n];
		parts.items[n++] = part;
	}
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "/%s", parts.items[i]);
	strlist_done(&parts);
	return b.len ? buf_take(&b) : xstrdup("/");
}

char *hw_link_path(const struct hw_root *root, const char *dir, const char *name)
{
	_cleanup_free_ char *target = hw_link(root, dir, name);

	return target ? hw_path_join(dir, target) : NULL;
}

int hw_list(const struct hw_root *root, const char *dir, size_t max, struct strlist *ret)
{
	struct strlist names = { 0 };
	int r = recorded_error(root, dir);

	if (r == 0) {
		int fd = open_below(root, dir, O_RDONLY | O_DIRECTORY);

		r = fd < 0 ? -errno : dir_list_fd(fd, &names);
	}
	if (r == 0 && names.n > max)
		r = -EFBIG;
	if (root->recorder)
		hw_record_list(root, root->fd, dir, r, &names);
	note_exhausted(root, r);
	if (r < 0)
		strlist_done(&names);
	else
		*ret = names;
	return r;
}

bool hw_exists(const struct hw_root *root, const char *path)
{
	struct stat st;

	if (root->recorder)
		hw_record_exists(root, root->fd, path);
	return stat_below(root, path, &st) == 0;
}

/* The address that is component "skip" from the end before ".../<class>/<name>". */
static char *address_above(const struct strlist *parts, size_t skip)
{
	size_t behind = 3 + skip;

	if (parts->n < behind || !is_bus_id(parts->items[parts->n - behind]))
		return NULL;
	return xstrdup(parts->items[parts->n - behind]);
}

/* The component directly above ".../<class>/<name>". */
static const char *owner(const struct strlist *parts)
{
	return parts->n >= 3 ? parts->items[parts->n - 3] : "";
}

char *hw_path_bus_id(const char *path)
{
	struct strlist parts = { 0 };
	char *found;

	strlist_split(&parts, path, '/');
	found = address_above(&parts, starts_with(owner(&parts), "virtio"));
	strlist_done(&parts);
	return found;
}

char *hw_path_sf_parent(const char *path)
{
	struct strlist parts = { 0 };
	char *found = NULL;

	strlist_split(&parts, path, '/');
	if (strstr(owner(&parts), ".sf."))
		found = address_above(&parts, 1);
	strlist_done(&parts);
	return found;
}

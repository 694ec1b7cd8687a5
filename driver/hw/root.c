// SPDX-License-Identifier: Apache-2.0
#include "hw/root.h"

#include <dirent.h>
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

#define ERRORS_MAX (4 * 1024 * 1024)
#define IN_ROOT_TRIES 1000

static int open_how(int dirfd, const char *path, int flags, unsigned int resolve)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.resolve = resolve,
	};

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/*
 * Open "path" below the root.  The links of a recorded machine come from who recorded it: none
 * leads out of the root.
 */
static int open_below(const struct hw_root *root, const char *path, int flags)
{
	int fd = -1;

	if (root->live || root->no_openat2)
		return openat(root->fd, path, flags | O_CLOEXEC);
	/* EAGAIN: something was renamed anywhere meanwhile, so it cannot tell where ".." leads. */
	for (int i = 0; i < IN_ROOT_TRIES; i++) {
		fd = open_how(root->fd, path, flags, RESOLVE_IN_ROOT);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
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

static bool lacks_openat2(int dirfd)
{
	_cleanup_close_ int fd = open_how(dirfd, ".", O_PATH, RESOLVE_IN_ROOT);

	return fd < 0 && (errno == ENOSYS || errno == EPERM);
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
	if (!ret->live) {
		ret->no_openat2 = lacks_openat2(fd);
		load_errors(ret);
	}
	return 0;
}

void hw_root_close(struct hw_root *root)
{
	if (root->fd >= 0)
		close(root->fd);
	free(root->errors);
	*root = (struct hw_root){ .fd = -1 };
}

/* That of the file or directory which was opened as "fd". */
static int recorded_error(const struct hw_root *root, int fd)
{
	const struct hw_root_error *found;
	struct stat st;

	if (root->n_errors == 0 || fstat(fd, &st) < 0)
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
	_cleanup_close_ int fd = open_below(root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	size_t len = 0;
	int r = fd < 0 ? -errno : recorded_error(root, fd);

	if (r == 0)
		r = file_read_fd(fd, max, ret, &len);
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

	if (hw_root_read(root, path, HW_ATTR_MAX, &text, &len) < 0 || !text ||
	    !utf8_valid(text, len))
		return NULL;
	str_rstrip(text);
	return *text ? TAKE_PTR(text) : NULL;
}

int hw_dir_open(const struct hw_root *root, const char *path, struct hw_dir *ret)
{
	int fd = -1;

	/* Most paths come from links that were resolved by their text: no more are on the way. */
	if (!root->live && !root->no_openat2)
		fd = open_how(root->fd, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
	if (fd < 0 && (root->live || root->no_openat2 || errno == ELOOP))
		fd = open_below(root, path, O_PATH | O_DIRECTORY);
	if (root->recorder)
		hw_record_exists(root, root->fd, path);
	if (fd < 0)
		return note_exhausted(root, -errno);
	*ret = (struct hw_dir){ .root = root, .path = path, .fd = fd };
	return 0;
}

void hw_dir_close(struct hw_dir *dir)
{
	closep(&dir->fd);
	dir->fd = -1;
}

bool hw_dir_gone(const struct hw_dir *dir)
{
	return !hw_exists(dir->root, dir->path);
}

bool hw_dir_has(const struct hw_dir *dir, const char *name)
{
	struct stat st;

	if (dir->root->recorder)
		hw_record_link(dir->root, dir->fd, name);
	return fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int open_in(const struct hw_dir *dir, const char *name, int flags)
{
	if (dir->root->live || dir->root->no_openat2)
		return openat(dir->fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	return open_how(dir->fd, name, flags, RESOLVE_NO_SYMLINKS);
}

int hw_dir_open_in(const struct hw_dir *dir, const char *name, struct hw_dir *ret)
{
	int fd = open_in(dir, name, O_PATH | O_DIRECTORY);

	if (dir->root->recorder)
		hw_record_exists(dir->root, dir->fd, name);
	if (fd < 0)
		return note_exhausted(dir->root, -errno);
	*ret = (struct hw_dir){ .root = dir->root, .path = name, .fd = fd };
	return 0;
}

/* One read(): an attribute of sysfs comes as a whole.  "whole": until the end or "size". */
static ssize_t read_file(const struct hw_dir *dir, const char *name, void *buf, size_t size,
			 bool whole)
{
	_cleanup_close_ int fd = open_in(dir, name, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	int r = fd < 0 ? -errno : recorded_error(dir->root, fd);
	size_t len = 0;
	ssize_t n;

	if (r < 0)
		return r;
	do {
		n = read(fd, (char *)buf + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
	} while (n < 0 || (whole && n > 0 && len < size));
	return (ssize_t)len;
}

static ssize_t note_read(struct hw_dir *dir, const char *name, const void *buf, ssize_t r)
{
	if (dir->root->recorder)
		hw_record_file(dir->root, dir->fd, name, r < 0 ? (int)r : 0, buf,
			       r < 0 ? 0 : (size_t)r);
	dir->missed = dir->missed || r == -ENOENT || r == -ENODEV;
	return r < 0 ? note_exhausted(dir->root, (int)r) : r;
}

ssize_t hw_dir_read(struct hw_dir *dir, const char *name, void *buf, size_t size)
{
	return note_read(dir, name, buf, read_file(dir, name, buf, size, true));
}

char *hw_dir_text_into(struct hw_dir *dir, const char *name, struct hw_text *buf)
{
	ssize_t n = read_file(dir, name, buf->text, sizeof(buf->text), false);

	if (n > HW_ATTR_MAX)
		n = -EFBIG;
	n = note_read(dir, name, buf->text, n);
	if (n <= 0 || !utf8_valid(buf->text, (size_t)n))
		return NULL;
	buf->text[n] = '\0';
	str_rstrip(buf->text);
	return buf->text[0] ? buf->text : NULL;
}

char *hw_dir_text(struct hw_dir *dir, const char *name)
{
	struct hw_text buf;

	return xstrdup_null(hw_dir_text_into(dir, name, &buf));
}

char *hw_attr_direct(const struct hw_root *root, const char *path, const char *name)
{
	struct hw_dir top = { .root = root, .path = ".", .fd = root->fd };
	size_t n = strlen(path), n_name = strlen(name);
	char file[PATH_MAX];

	if (n + 1 + n_name >= sizeof(file))
		return NULL;
	memcpy(file, path, n + 1);
	file[n] = '/';
	memcpy(file + n + 1, name, n_name + 1);
	return hw_dir_text(&top, file);
}

int hw_dir_int(struct hw_dir *dir, const char *name, int fallback)
{
	struct hw_text buf;
	const char *text = hw_dir_text_into(dir, name, &buf);
	int v;

	return text && parse_int(text, &v) == 0 ? v : fallback;
}

unsigned int hw_dir_hex(struct hw_dir *dir, const char *name, unsigned int fallback)
{
	struct hw_text buf;
	const char *text = hw_dir_text_into(dir, name, &buf);
	uint64_t v;

	return text && parse_u64(text, 16, &v) == 0 && v <= UINT_MAX ? (unsigned int)v : fallback;
}

struct link {
	char target[PATH_MAX];
};

/* NULL or link->target */
static char *read_link(const struct hw_dir *dir, const char *name, struct link *link)
{
	ssize_t n = readlinkat(dir->fd, name, link->target, sizeof(link->target));

	if (dir->root->recorder)
		hw_record_link(dir->root, dir->fd, name);
	if (n <= 0 || n >= (ssize_t)sizeof(link->target) || !utf8_valid(link->target, (size_t)n))
		return NULL;
	link->target[n] = '\0';
	return link->target;
}

char *hw_dir_link_base(const struct hw_dir *dir, const char *name)
{
	struct link link;
	const char *target = read_link(dir, name, &link);
	const char *slash = target ? strrchr(target, '/') : NULL;
	const char *base = slash ? slash + 1 : target;

	return base && *base ? xstrdup(base) : NULL;
}

char *hw_dir_link_path(const struct hw_dir *dir, const char *name)
{
	struct link link;
	const char *target = read_link(dir, name, &link);

	return target ? hw_path_join(dir->path, target) : NULL;
}

/* Append the components of "path" to the first "len" bytes of "out"; the new length. */
static size_t add_parts(char *out, size_t len, const char *path)
{
	while (*path) {
		const char *end = strchrnul(path, '/');
		size_t n = (size_t)(end - path);

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len > 0 && out[--len] != '/')
				;
		} else if (n > 1 || (n == 1 && path[0] != '.')) {
			out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
		}
		path = *end ? end + 1 : end;
	}
	return len;
}

char *hw_path_join(const char *dir, const char *target)
{
	char *out = xmalloc(strlen(dir) + strlen(target) + 3);
	size_t len = *target == '/' ? 0 : add_parts(out, 0, dir);

	len = add_parts(out, len, target);
	if (len == 0)
		out[len++] = '/';
	out[len] = '\0';
	return out;
}

/* Sorted; without "." and "..". */
static int read_names(int fd, size_t max, struct strlist *ret)
{
	_Alignas(struct dirent64) char buf[16 * 1024];
	ssize_t n;

	while ((n = getdents64(fd, buf, sizeof(buf))) > 0) {
		const struct dirent64 *d;

		for (ssize_t at = 0; at < n; at += d->d_reclen) {
			d = (const struct dirent64 *)(const void *)(buf + at);
			if (streq(d->d_name, ".") || streq(d->d_name, ".."))
				continue;
			if (ret->n == max)
				return -EFBIG;
			strlist_add(ret, d->d_name);
		}
	}
	if (n < 0)
		return -errno;
	strlist_sort(ret);
	return 0;
}

/* Takes over the descriptor; errno tells why it is negative. */
static int list_fd(const struct hw_root *root, int fd, size_t max, struct strlist *ret)
{
	int r = fd < 0 ? -errno : recorded_error(root, fd);

	if (r == 0)
		r = read_names(fd, max, ret);
	closep(&fd);
	return r;
}

static int note_list(const struct hw_root *root, int dirfd, const char *path, int r,
		     struct strlist *names, struct strlist *ret)
{
	if (root->recorder)
		hw_record_list(root, dirfd, path, r, names);
	if (r < 0)
		strlist_done(names);
	else
		*ret = *names;
	return note_exhausted(root, r);
}

int hw_list(const struct hw_root *root, const char *dir, size_t max, struct strlist *ret)
{
	struct strlist names = { 0 };
	int r = list_fd(root, open_below(root, dir, O_RDONLY | O_NOCTTY | O_NONBLOCK), max, &names);

	return note_list(root, root->fd, dir, r, &names, ret);
}

int hw_dir_list(struct hw_dir *dir, const char *name, size_t max, struct strlist *ret)
{
	struct strlist names = { 0 };
	int r = list_fd(dir->root, open_in(dir, name, O_RDONLY | O_NOCTTY | O_NONBLOCK), max,
			&names);

	return note_list(dir->root, dir->fd, name, r, &names, ret);
}

bool hw_exists(const struct hw_root *root, const char *path)
{
	struct stat st;

	if (root->recorder)
		hw_record_exists(root, root->fd, path);
	return stat_below(root, path, &st) == 0;
}

/* The last component of the first *n bytes of "path", which are cut to what is before it. */
static const char *last_part(const char *path, size_t *n, size_t *ret_len)
{
	size_t end = *n, start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/'; start--)
		;
	*n = start;
	*ret_len = end - start;
	return path + start;
}

static char *bus_id_at(const char *part, size_t len)
{
	_cleanup_free_ char *text = xstrndup(part, len);

	return is_bus_id(text) ? TAKE_PTR(text) : NULL;
}

/* "…/<owner>/<class>/<name>": the owner; *n is what is before it. */
static const char *owner(const char *path, size_t *n, size_t *ret_len)
{
	*n = strlen(path);
	last_part(path, n, ret_len);
	last_part(path, n, ret_len);
	return last_part(path, n, ret_len);
}

char *hw_path_bus_id(const char *path)
{
	size_t n, len;
	const char *part = owner(path, &n, &len);

	if (starts_with(part, "virtio"))
		part = last_part(path, &n, &len);
	return bus_id_at(part, len);
}

char *hw_path_sf_parent(const char *path)
{
	size_t n, len;
	const char *part = owner(path, &n, &len), *sf = memmem(part, len, ".sf.", 4);

	if (!sf)
		return NULL;
	part = last_part(path, &n, &len);
	return bus_id_at(part, len);
}

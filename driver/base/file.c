// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len)
{
	struct buf b = { 0 };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EOPNOTSUPP;
	for (;;) {
		char chunk[4096];
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int r = -errno;

			buf_done(&b);
			return r;
		}
		if (n == 0)
			break;
		if (b.len + (size_t)n > max) {
			buf_done(&b);
			return -EFBIG;
		}
		buf_add(&b, chunk, (size_t)n);
	}
	if (ret_len)
		*ret_len = b.len;
	*ret = buf_take(&b);
	return 0;
}

int file_read_at(int dirfd, const char *path, size_t max, char **ret, size_t *ret_len)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : file_read_fd(fd, max, ret, ret_len);
}

int file_read(const char *path, size_t max, char **ret, size_t *ret_len, struct err *err)
{
	int r = file_read_at(AT_FDCWD, path, max, ret, ret_len);

	if (r < 0)
		return err_errno(err, r == -ENOENT ? ERR_NOT_FOUND : ERR_INVALID, r,
				 "cannot read %s", path);
	return 0;
}

static int write_all(int fd, const char *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	if (slash == path)
		return xstrdup("/");
	return xstrndup(path, (size_t)(slash - path));
}

int dir_sync(const char *path, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot sync directory %s", path);
	return 0;
}

int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode, int flags,
		      struct err *err)
{
	_cleanup_free_ char *dir = dir_of(path), *tmp = NULL;
	const char *name = strrchr(path, '/');
	_cleanup_close_ int fd = -1;
	unsigned int nonce = 0;
	int r;

	if (getrandom(&nonce, sizeof(nonce), 0) < 0)
		nonce = (unsigned int)getpid();
	tmp = xasprintf("%s/.%s.%08x.tmp", dir, name ? name + 1 : path, nonce);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot write %s: a new file in %s", path,
				 dir);
	r = fchmod(fd, mode) < 0 ? -errno : 0; /* the umask may have cut it */
	if (r == 0)
		r = write_all(fd, data, len);
	if (r == 0 && flags & FILE_DURABLE && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	if (r < 0) {
		unlink(tmp);
		return err_errno(err, ERR_RETRY, r, "cannot write %s", path);
	}
	return flags & FILE_SYNC_DIR ? dir_sync(dir, err) : 0;
}

int file_remove(const char *path, int flags, struct err *err)
{
	_cleanup_free_ char *dir = dir_of(path);

	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, ERR_RETRY, errno, "cannot remove %s", path);
	return flags & FILE_SYNC_DIR ? dir_sync(dir, err) : 0;
}

int dir_make(const char *path, mode_t mode, struct err *err)
{
	_cleanup_free_ char *copy = xstrdup(path);
	struct stat st;

	for (char *p = copy + 1; *copy; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			return err_errno(err, ERR_RETRY, errno, "cannot make directory %s", copy);
		*p = c;
		if (c == '\0')
			break;
	}
	if (stat(path, &st) < 0)
		return err_errno(err, ERR_RETRY, errno, "cannot look at directory %s", path);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, ENOTDIR, "%s is not a directory", path);
	return 0;
}

int dir_list_fd(int fd, struct strlist *ret)
{
	struct dirent *d;
	DIR *dir;
	int r = 0;

	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	for (;;) {
		errno = 0;
		d = readdir(dir);
		if (!d) {
			r = -errno;
			break;
		}
		if (!streq(d->d_name, ".") && !streq(d->d_name, ".."))
			strlist_add(ret, d->d_name);
	}
	closedir(dir);
	strlist_sort(ret);
	return r;
}

int dir_list_at(int dirfd, const char *path, struct strlist *ret)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : dir_list_fd(fd, ret);
}

void file_remove_stale(const char *dir, const char *prefix)
{
	struct strlist names = { 0 };
	_cleanup_free_ char *start = xasprintf(".%s", prefix);

	if (dir_list_at(AT_FDCWD, dir, &names) == 0) {
		for (size_t i = 0; i < names.n; i++) {
			_cleanup_free_ char *path = xasprintf("%s/%s", dir, names.items[i]);

			if (starts_with(names.items[i], start) && ends_with(names.items[i], ".tmp"))
				unlink(path);
		}
	}
	strlist_done(&names);
}

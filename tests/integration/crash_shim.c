// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD library that kills the process after the N-th change it makes in some folders: opening
 * for writing, writing (half of it), fsync, rename, unlink.  Environment:
 *
 *   CRASH_DIRS  folders, separated by ':'
 *   CRASH_AT    N; 0: never
 *   CRASH_ARM   a file: counting begins when it exists
 *   CRASH_LOG   one line per change is appended to this file
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int changes;

static bool watched(const char *path)
{
	const char *dirs = getenv("CRASH_DIRS"), *arm = getenv("CRASH_ARM");

	if (!dirs || (arm && syscall(SYS_faccessat, AT_FDCWD, arm, F_OK) != 0))
		return false;
	while (*dirs) {
		size_t n = strcspn(dirs, ":");

		if (n > 0 && strncmp(path, dirs, n) == 0 && (path[n] == '/' || path[n] == '\0'))
			return true;
		dirs += n + (dirs[n] == ':');
	}
	return false;
}

static bool watched_fd(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n <= 0)
		return false;
	path[n] = '\0';
	return watched(path);
}

/* This change is the last one. */
static bool is_last(const char *what, const char *path)
{
	const char *at = getenv("CRASH_AT"), *log = getenv("CRASH_LOG");
	int n = atomic_fetch_add(&changes, 1) + 1;
	char line[PATH_MAX + 64];

	if (log) {
		int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT,
				      0600);
		int len = snprintf(line, sizeof(line), "%d %s %s\n", n, what, path);

		syscall(SYS_write, fd, line, len);
		syscall(SYS_close, fd);
	}
	return at && strtol(at, NULL, 10) == n;
}

static void die(void)
{
	syscall(SYS_kill, getpid(), SIGKILL);
	for (;;)
		pause();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int after(int result, const char *what, const char *path)
{
	if (watched(path) && is_last(what, path))
		die();
	return result;
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;
	int fd;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	fd = REAL(open)(path, flags, mode);
	return flags & (O_WRONLY | O_RDWR) ? after(fd, "open", path) : fd;
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int rename(const char *from, const char *to)
{
	return after(REAL(rename)(from, to), "rename", to);
}

int unlink(const char *path)
{
	return after(REAL(unlink)(path), "unlink", path);
}

int fsync(int fd)
{
	int r = REAL(fsync)(fd);
	char path[PATH_MAX];

	return watched_fd(fd, path) ? after(r, "fsync", path) : r;
}

ssize_t write(int fd, const void *data, size_t len)
{
	char path[PATH_MAX];

	if (watched_fd(fd, path) && is_last("write", path)) {
		REAL(write)(fd, data, len / 2);
		die();
	}
	return REAL(write)(fd, data, len);
}

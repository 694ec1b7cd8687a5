// SPDX-License-Identifier: Apache-2.0
/*
 * LD_PRELOAD library that halts the process where it opens a path that ends with SLOW_PATH, until
 * somebody has opened and closed the FIFO SLOW_FIFO for writing.  No FIFO: it goes on.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int __openat_2(int dirfd, const char *path, int flags);

static void halt(const char *path)
{
	const char *slow = getenv("SLOW_PATH"), *fifo = getenv("SLOW_FIFO");
	size_t n = strlen(path), m = slow ? strlen(slow) : 0;
	char c;
	int fd;

	if (!slow || !fifo || n < m || strcmp(path + n - m, slow) != 0)
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, fifo, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, &c, 1) > 0)
		;
	if (fd >= 0)
		close(fd);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	halt(path);
	return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

int __openat_2(int dirfd, const char *path, int flags)
{
	halt(path);
	return (int)syscall(SYS_openat, dirfd, path, flags, 0);
}

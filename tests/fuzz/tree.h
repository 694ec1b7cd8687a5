/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_FUZZ_TREE_H
#define TWINRAIL_TESTS_FUZZ_TREE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "fuzz.h"
#include "hw/hw.h"

/*
 * Recordings that are unpacked in memory (/dev/shm), each into a directory of its own below one
 * that belongs to this process: $TWINRAIL_FUZZ_DIR, else a new one.
 */
static inline int tree_remove_entry(const char *path, const struct stat *st, int type,
				    struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void tree_remove(const char *dir)
{
	CHECK(nftw(dir, tree_remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0, "%s: %s", dir,
	      strerror(errno));
}

static char tree_base[256];

static inline void tree_remove_base(void)
{
	rmdir(tree_base);
}

static inline const char *tree_home(void)
{
	const char *parent = getenv("TWINRAIL_FUZZ_DIR");

	if (*tree_base)
		return tree_base;
	snprintf(tree_base, sizeof(tree_base), "%s/twinrail-fuzz.XXXXXX",
		 parent ? parent : "/dev/shm");
	CHECK(mkdtemp(tree_base), "%s: %s", tree_base, strerror(errno));
	atexit(tree_remove_base);
	return tree_base;
}

/* Unpack "data" into the new directory "dir"; what hw_snapshot_unpack() says. */
static inline int tree_unpack(const uint8_t *data, size_t size, const char *dir, struct err *err)
{
	char file[64];
	int fd = memfd_create("recording", MFD_CLOEXEC), r;

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size, "%s", strerror(errno));
	CHECK(lseek(fd, 0, SEEK_SET) == 0, "%s", strerror(errno));
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	r = hw_snapshot_unpack(file, dir, err);
	close(fd);
	return r;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include "cmd/offline.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/topology_options.h"
#include "hw/hw.h"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

typedef int use_fn(const char *dir, void *arg, struct err *err);

/* Unpacked into a directory of its own for as long as it is used. */
static int use_unpacked(const char *file, use_fn *use, void *arg, struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	_cleanup_free_ char *dir = xasprintf("%s/twinrail.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	int r;

	if (!mkdtemp(dir))
		return err_errno(
			err, ERR_RETRY, errno,
			"cannot make directory %s to unpack %s; TMPDIR names another place", dir,
			file);
	r = hw_snapshot_unpack(file, dir, err);
	if (r == 0)
		r = use(dir, arg, err);
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return r;
}

/* Signals that would end the process do so when the directory is gone: it takes seconds at most. */
static int use_recording(const char *file, use_fn *use, void *arg, struct err *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	sigset_t set, before;
	int r;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	r = use_unpacked(file, use, arg, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* Every machine has sys/, be it empty: without it "root" is mistyped, or one directory off. */
static bool lacks_sys(const char *root)
{
	_cleanup_free_ char *sys = xasprintf("%s/sys", root);
	struct stat st;

	return lstat(sys, &st) < 0 && errno == ENOENT;
}

int offline_with_root(const char *root, use_fn *use, void *arg, struct err *err)
{
	struct stat st;
	mode_t mode = stat(root, &st) == 0 ? st.st_mode : 0;

	if (S_ISREG(mode))
		return use_recording(root, use, arg, err);
	if (S_ISDIR(mode) && lacks_sys(root))
		return err_set(err, ERR_INVALID, EINVAL,
			       "directory %s has no sys/: it is no machine; --root must name a "
			       "directory with sys/ and proc/, or a recorded machine",
			       root);
	return use(root, arg, err);
}

static int read_machine(const char *dir, void *arg, struct err *err)
{
	return hw_read(dir, arg, err);
}

/* No error: the same options are often those of other machines, too. */
static void tell_unused(const char *option, const char *pattern, void *command)
{
	fprintf(stderr, "twinrail %s: %s: \"%s\" fits no RDMA NIC of this machine\n",
		(const char *)command, option, pattern);
}

struct inventory *offline_inventory(const char *command, const char *root,
				    const struct topo_options *options)
{
	struct hw_machine *machine = NULL;
	struct inventory *inv;
	struct err err = { 0 };

	if (offline_with_root(root, read_machine, &machine, &err) < 0) {
		fprintf(stderr, "twinrail %s: %s\n", command, err.msg);
		return NULL;
	}
	inv = topo_build(machine, options);
	topology_unused_patterns(options, inv, tell_unused, (void *)(uintptr_t)command);
	hw_free(machine);
	return inv;
}

int offline_print(const char *command, const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
		return EXIT_OK;
	fprintf(stderr, "twinrail %s: cannot write to standard output: %s\n", command,
		strerror(errno));
	return EXIT_USAGE;
}

// SPDX-License-Identifier: Apache-2.0
#include "cmd/offline.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "hw/hw.h"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Unpacked into a directory of its own for as long as it is read. */
static int read_unpacked(const char *file, struct hw_machine **ret, struct err *err)
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
		r = hw_read(dir, ret, err);
	nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return r;
}

/* Signals that would end the process do so when the directory is gone: it takes seconds at most. */
static int read_recording(const char *file, struct hw_machine **ret, struct err *err)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	sigset_t set, before;
	int r;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, &before);
	r = read_unpacked(file, ret, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static int read_machine(const char *root, struct hw_machine **ret, struct err *err)
{
	struct stat st;
	bool file = stat(root, &st) == 0 && S_ISREG(st.st_mode);

	return file ? read_recording(root, ret, err) : hw_read(root, ret, err);
}

struct inventory *offline_inventory(const char *command, const char *root,
				    const struct topo_options *options)
{
	struct hw_machine *machine = NULL;
	struct inventory *inv;
	struct err err = { 0 };

	if (read_machine(root, &machine, &err) < 0) {
		fprintf(stderr, "twinrail %s: %s\n", command, err.msg);
		return NULL;
	}
	inv = topo_build(machine, options);
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

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/offline.h"
#include "cmd/options.h"
#include "hw/hw.h"

/* A device, pipe or terminal: it is not replaced by a file, as a plain one is. */
static int write_to(const char *path, const char *text, size_t len, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	size_t done = 0;

	if (fd < 0)
		return err_errno(err, ERR_INVALID, errno, "cannot open %s", path);
	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0 && errno != EINTR)
			return err_errno(err, ERR_RETRY, errno, "cannot write %s", path);
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

struct recording {
	struct hw_snapshot_options options;
	char *text;
	size_t len;
};

static int record_dir(const char *dir, void *arg, struct err *err)
{
	struct recording *recording = arg;

	return hw_snapshot_record(dir, &recording->options, &recording->text, &recording->len, err);
}

static int record(const char *root, const char *file, bool raw, struct err *err)
{
	struct recording recording = { .options.raw = raw };
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len;
	int r = offline_with_root(root, record_dir, &recording, err);

	if (r < 0)
		return r;
	text = recording.text;
	len = recording.len;
	if (!streq(file, "-") && stat(file, &st) == 0 && !S_ISREG(st.st_mode))
		return write_to(file, text, len, err);
	if (!streq(file, "-")) /* readable by others only when its owner says so */
		return file_write_atomic(file, text, len, 0600, 0, err);
	if (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0)
		return err_errno(err, ERR_RETRY, errno, "cannot write to standard output");
	return 0;
}

int cmd_snapshot(int argc, char **argv)
{
	const char *root = "/", *file = NULL;
	bool raw = false;
	const struct option_def table[] = {
		{ "raw", 0, OPTION_FLAG, &raw, NULL,
		  "keep addresses, GUIDs, serial numbers and names as they are", NULL, 0 },
		{ "unpack", 0, OPTION_STRING, &file, "FILE",
		  "unpack the recorded machine FILE into the directory DIR, a new or empty one",
		  NULL, 0 },
		OPTION_MACHINE(&root),
	};
	const struct option_spec spec = {
		.command = "snapshot",
		.operands = "FILE, or --unpack FILE DIR",
		.summary = "Record what twinrail reads of this machine as one text file; \"-\" is "
			   "standard output.",
		.more = "MAC and IP addresses, GUIDs, UUIDs, serial numbers and host names are "
			"replaced unless --raw is\ngiven: equal ones by equal ones, so the "
			"topology "
			"stays what it is.  Run as root, or vital\nproduct data and most of "
			"configuration space are missing.  \"twinrail topo --root FILE\" shows a\n"
			"recorded machine, as it does with the DIR of an unpacked one, and "
			"\"twinrail snapshot\n--root FILE\" records it again, a raw one without "
			"addresses.\n",
		.table = table,
		.n = ARRAY_SIZE(table),
		.min_operands = 1,
		.max_operands = 1,
	};
	struct options o = { 0 };
	struct err err = { 0 };
	int code = EXIT_OK, r;

	if (!options_begin(&spec, argc, argv, &o, &code))
		goto out;
	if (file)
		r = hw_snapshot_unpack(file, o.operands.items[0], &err);
	else
		r = record(root, o.operands.items[0], raw, &err);
	if (r == 0 && !file && streq(root, "/") && geteuid() != 0)
		fputs("twinrail snapshot: vital product data and most of configuration space are "
		      "missing: run as root\n",
		      stderr);
	if (r < 0) {
		fprintf(stderr, "twinrail snapshot: %s\n", err.msg);
		code = EXIT_USAGE;
	}
out:
	options_done(&o);
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * twinrail-hook: started by the container runtime (OCI createRuntime hook) before a container
 * starts; attaches the network devices of one claim.  It needs no running agent, and it fails
 * closed: a non-zero exit keeps the container from starting.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/plan.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* The runtime's state of one container: some hundred bytes, plus the annotations of the pod. */
#define STATE_BYTES_MAX (1024 * 1024)

static void usage(FILE *out)
{
	fputs("Usage: twinrail-hook --record FILE < STATE\n"
	      "Attach the network devices of a prepared claim to a container.\n\n"
	      "  --record FILE  the claim's record, <data dir>/claims/<uid>.json\n"
	      "  --version      show the version\n"
	      "  --help         show this text\n\n"
	      "STATE is the OCI runtime's state of the container (JSON).  Exit codes: 0 attached "
	      "or\n"
	      "nothing to do, 1 refused (the container must not start), 2 usage.\n",
	      out);
}

static int read_state(json_t **ret, struct err *err)
{
	struct buf b = { 0 };
	int r;

	for (;;) {
		char chunk[4096];
		ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || b.len + (size_t)n > STATE_BYTES_MAX) {
			r = n < 0 ? errno : EFBIG;
			buf_done(&b);
			return err_errno(err, ERR_INVALID, r,
					 "cannot read the container's state from standard input");
		}
		if (n == 0)
			break;
		buf_add(&b, chunk, (size_t)n);
	}
	r = json_parse(b.data ? b.data : "", b.len, ret, err);
	buf_done(&b);
	return r < 0 ? err_wrap(err, "container state on standard input") : 0;
}

static int attach(const char *record, struct err *err)
{
	_cleanup_json_ json_t *state = NULL;
	struct attach_plan plan;
	int r;

	r = read_state(&state, err);
	if (r < 0)
		return r;
	if (!json_path_string(state, "id"))
		return err_set(err, ERR_INVALID, EINVAL,
			       "the container state on standard input has no \"id\": "
			       "twinrail-hook is started by a container runtime only");
	return attach_plan_read(record, &plan, err);
}

int main(int argc, char **argv)
{
	const char *record = NULL;
	struct err err = { 0 };

	for (int i = 1; i < argc; i++) {
		if (streq(argv[i], "--help")) {
			usage(stdout);
			return 0;
		}
		if (streq(argv[i], "--version")) {
			puts("twinrail-hook " TWINRAIL_VERSION);
			return 0;
		}
		if (streq(argv[i], "--record") && i + 1 < argc) {
			record = argv[++i];
		} else {
			fprintf(stderr, "twinrail-hook: cannot use '%s' here\n", argv[i]);
			usage(stderr);
			return 2;
		}
	}
	if (!record) {
		usage(stderr);
		return 2;
	}
	if (attach(record, &err) < 0) {
		fprintf(stderr, "twinrail-hook: %s\n", err.msg);
		return 1;
	}
	return 0;
}

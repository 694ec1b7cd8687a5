// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "hw/hw.h"

int cmd_snapshot(int argc, char **argv)
{
	const char *file = NULL;
	const struct option_def table[] = {
		{ "unpack", 0, OPTION_STRING, &file, "FILE", "the recorded machine to unpack", NULL,
		  0 },
	};
	const struct option_spec spec = {
		.command = "snapshot",
		.operands = "DIR",
		.summary = "Unpack a recorded machine into DIR, a new or empty directory.",
		.more = "\"twinrail topo --root DIR\" then shows that machine.\n",
		.table = table,
		.n = ARRAY_SIZE(table),
		.min_operands = 1,
		.max_operands = 1,
	};
	struct options o = { 0 };
	struct err err = { 0 };
	int code = EXIT_OK;

	if (!options_begin(&spec, argc, argv, &o, &code))
		goto out;
	code = EXIT_USAGE;
	if (!file)
		fputs("twinrail snapshot: --unpack FILE is missing; \"twinrail snapshot --help\" "
		      "explains\n",
		      stderr);
	else if (hw_snapshot_unpack(file, o.operands.items[0], &err) < 0)
		fprintf(stderr, "twinrail snapshot: %s\n", err.msg);
	else
		code = EXIT_OK;
out:
	options_done(&o);
	return code;
}

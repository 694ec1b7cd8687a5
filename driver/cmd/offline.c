// SPDX-License-Identifier: Apache-2.0
#include "cmd/offline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "hw/hw.h"

struct inventory *offline_inventory(const char *command, const char *root,
				    const struct topo_options *options)
{
	struct hw_machine *machine;
	struct inventory *inv;
	struct err err = { 0 };

	if (hw_read(root, &machine, &err) < 0) {
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

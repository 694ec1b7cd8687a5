// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "agent", cmd_agent, "run the node driver (what the DaemonSet starts)" },
	{ "topo", cmd_topo, "show the topology of this node" },
	{ "explain", cmd_explain, "explain the path between a GPU and a NIC" },
	{ "slices", cmd_slices, "show the ResourceSlices this node would publish" },
	{ "snapshot", cmd_snapshot, "record this machine as a text file, or unpack one" },
};

static void usage(FILE *out)
{
	fputs("Usage: twinrail COMMAND [OPTION]...\n"
	      "Topology-aware DRA driver for GPUs and RDMA NICs.\n\n"
	      "Commands:\n",
	      out);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n\"twinrail COMMAND --help\" explains a command; --version shows the version.\n"
	      "Every option can be given as environment variable TWINRAIL_<OPTION> too.\n"
	      "Exit codes: 0 ok, 1 failed while running, 2 usage or cannot run.\n",
	      out);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		usage(stdout);
		return EXIT_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0) {
		puts("twinrail " TWINRAIL_VERSION);
		return EXIT_OK;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "twinrail: unknown command '%s'; \"twinrail --help\" lists the commands\n",
		argv[1]);
	return EXIT_USAGE;
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_CMD_H
#define TWINRAIL_CMD_CMD_H

/* The subcommands: argv[0] is the command's name; the result is the exit code of the program. */
int cmd_agent(int argc, char **argv);
int cmd_topo(int argc, char **argv);
int cmd_slices(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_explain(int argc, char **argv);

enum {
	EXIT_OK = 0,
	EXIT_WRONG = 1, /* a checked thing is wrong */
	EXIT_USAGE = 2, /* usage, or cannot run */
};

#endif

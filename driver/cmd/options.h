/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_OPTIONS_H
#define TWINRAIL_CMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

/*
 * Command line options of one subcommand, described by a table.  A value comes from, strongest
 * first: the command line, the environment variable TWINRAIL_<OPTION> (upper case, dashes as
 * underscores; an empty variable counts as not set), the YAML file of --config (option: value),
 * and the default, which is what the variable holds before options_parse().
 *
 *	static const char *root = "/";
 *	static unsigned int format;
 *	static const char *const formats[] = { "tree", "json", NULL };
 *	const struct option_def table[] = {
 *		OPTION_ROOT(&root),
 *		{ "output", 'o', OPTION_CHOICE, &format, "FORMAT", "what is printed", formats },
 *	};
 */
enum option_type {
	OPTION_FLAG, /* bool: "--name", "--name=true|false" */
	OPTION_STRING, /* const char *; owned by the struct options */
	OPTION_UINT, /* unsigned int, decimal, at most "max" */
	OPTION_DURATION, /* uint64_t microseconds: "20s", "500ms", "5m", "1h"; at most a week */
	OPTION_CHOICE, /* unsigned int: index into "words" */
};

struct option_def {
	const char *name; /* without the dashes */
	char letter; /* short form, 0: none */
	enum option_type type;
	void *value; /* holds the default; type as given above */
	const char *arg; /* "DIR": what --help calls the value; NULL for a flag */
	const char *help; /* one line, lower case, no full stop */
	const char *const *words; /* OPTION_CHOICE: NULL-terminated */
	unsigned int max; /* OPTION_UINT; 0: no limit of its own */
};

/* The options that several commands share. */
#define OPTION_ROOT(var)                                                                           \
	{                                                                                          \
		"root", 0, OPTION_STRING, (var), "DIR",                                            \
			"read DIR/sys, DIR/proc and DIR/dev instead of /", NULL, 0                 \
	}
#define OPTION_VERBOSE(var)                                                                        \
	{                                                                                          \
		"verbose", 'v', OPTION_FLAG, (var), NULL, "log debug messages too", NULL, 0        \
	}
#define OPTION_LOG_FORMAT(var)                                                                     \
	{                                                                                          \
		"log-format", 0, OPTION_CHOICE, (var), "FORMAT", "format of log lines",            \
			option_log_formats, 0                                                      \
	}
extern const char *const option_log_formats[]; /* same order as enum log_format */

/* A command: how it is called and what it understands.  --help and --config are always there. */
struct option_spec {
	const char *command; /* "topo" */
	const char *operands; /* "DIR", "" when there are none */
	const char *summary; /* the sentence below "Usage:" */
	const char *more; /* text below the options, NULL for none; ends with a new line */
	const struct option_def *table;
	size_t n;
	size_t min_operands, max_operands;
};

/* What parsing leaves: zero-initialise, options_done() frees. */
struct options {
	struct strlist strings; /* owns the OPTION_STRING values */
	struct strlist operands; /* what is not an option, in order */
	const char *config; /* --config FILE, NULL */
};

/*
 * Parse; store into the variables of the table.  0: go on.  1: --help was asked for, nothing was
 * stored.  -EINVAL or what reading the --config file gave, with a text that names the option,
 * variable or line.
 */
int options_parse(const struct option_spec *spec, int argc, char **argv, struct options *ret,
		  struct err *err) __attribute__((warn_unused_result));

/* The text of --help, with the defaults that the variables hold now. */
void options_help(const struct option_spec *spec, FILE *out);

/*
 * options_parse() for a command's main function: prints help to stdout or the error as one line to
 * stderr.  True: go on.  False: the command ends with *exit_code.
 */
bool options_begin(const struct option_spec *spec, int argc, char **argv, struct options *ret,
		   int *exit_code) __attribute__((warn_unused_result));

void options_done(struct options *o);

#endif

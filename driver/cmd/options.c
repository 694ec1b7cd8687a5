// SPDX-License-Identifier: Apache-2.0
#include "cmd/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "cmd/cmd.h"

#define DURATION_MAX_US (7ULL * 24 * 3600 * 1000000)

const char *const option_log_formats[] = { "text", "json", NULL };

static const struct duration_unit {
	const char *name;
	uint64_t us;
} duration_units[] = {
	{ "ms", 1000 },
	{ "s", 1000000 },
	{ "m", 60ULL * 1000000 },
	{ "h", 3600ULL * 1000000 },
};

static int parse_duration(const char *text, uint64_t *ret)
{
	size_t digits = strspn(text, "0123456789");
	_cleanup_free_ char *number = xstrndup(text, digits);
	uint64_t n, us;

	if (parse_u64(number, 10, &n) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(duration_units); i++) {
		if (!streq(text + digits, duration_units[i].name))
			continue;
		if (__builtin_mul_overflow(n, duration_units[i].us, &us) || us > DURATION_MAX_US)
			return -ERANGE;
		*ret = us;
		return 0;
	}
	return -EINVAL;
}

static int parse_bool(const char *text, bool *ret)
{
	if (streq(text, "true") || streq(text, "1"))
		*ret = true;
	else if (streq(text, "false") || streq(text, "0"))
		*ret = false;
	else
		return -EINVAL;
	return 0;
}

static int parse_choice(const char *text, const char *const *words, unsigned int *ret)
{
	for (unsigned int i = 0; words[i]; i++) {
		if (streq(text, words[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

/* "tree, json or matrix" */
static char *join_words(const char *const *words)
{
	struct buf b = { 0 };

	for (size_t i = 0; words[i]; i++)
		buf_printf(&b, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
	return buf_take(&b);
}

/* What a value must look like: the cure in an error. */
static char *wanted(const struct option_def *d)
{
	switch (d->type) {
	case OPTION_FLAG:
		return xstrdup("true or false");
	case OPTION_UINT:
		return d->max ? xasprintf("a whole number from 0 to %u", d->max)
			      : xstrdup("a whole number");
	case OPTION_DURATION:
		return xstrdup("a number and ms, s, m or h, at most a week");
	case OPTION_CHOICE:
		return join_words(d->words);
	case OPTION_STRING:
		break;
	}
	return xstrdup("a text");
}

/* "where" names the source of the value: "--root", "TWINRAIL_ROOT", "file.yaml line 3: root". */
static int store(const struct option_def *d, const char *text, const char *where,
		 struct options *ret, struct err *err)
{
	_cleanup_free_ char *must = NULL;
	int r = 0;

	switch (d->type) {
	case OPTION_FLAG:
		r = parse_bool(text, d->value);
		break;
	case OPTION_UINT:
		r = parse_uint(text, d->max ? d->max : UINT_MAX, d->value);
		break;
	case OPTION_DURATION:
		r = parse_duration(text, d->value);
		break;
	case OPTION_CHOICE:
		r = parse_choice(text, d->words, d->value);
		break;
	case OPTION_STRING:
		strlist_add(&ret->strings, text);
		*(const char **)d->value = ret->strings.items[ret->strings.n - 1];
		break;
	}
	if (r == 0)
		return 0;
	must = wanted(d);
	return err_set(err, ERR_INVALID, EINVAL, "%s: \"%.100s\" is not valid; give %s", where,
		       text, must);
}

static const struct option_def *find(const struct option_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->n; i++)
		if (streq(spec->table[i].name, name))
			return &spec->table[i];
	return NULL;
}

static char *env_name(const char *option)
{
	char *name = xasprintf("TWINRAIL_%s", option);

	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	return name;
}

/* The environment variable of an option; NULL when it is not set or empty. */
static const char *env_value(const char *option)
{
	_cleanup_free_ char *name = env_name(option);
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int read_environment(const struct option_spec *spec, struct options *ret, struct err *err)
{
	for (size_t i = 0; i < spec->n; i++) {
		const struct option_def *d = &spec->table[i];
		_cleanup_free_ char *name = env_name(d->name);
		const char *value = env_value(d->name);
		int r = value ? store(d, value, name, ret, err) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* The text of one value of the --config file as the command line would have it; NULL: none. */
static char *config_text(const json_t *value)
{
	if (json_is_string(value))
		return xstrdup(json_string_value(value));
	if (json_is_boolean(value))
		return xstrdup(json_is_true(value) ? "true" : "false");
	if (json_is_integer(value))
		return xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return NULL;
}

static int config_entry(const struct option_spec *spec, const char *file, const char *name,
			const json_t *value, struct options *ret, struct err *err)
{
	_cleanup_free_ char *where = xasprintf("%s: %.100s", file, name);
	_cleanup_free_ char *text = config_text(value);
	const struct option_def *d = find(spec, name);

	if (!d)
		return err_set(err, ERR_INVALID, EINVAL,
			       "%s is not an option of \"twinrail %s\"; \"twinrail %s --help\" "
			       "lists them",
			       where, spec->command, spec->command);
	if (!text)
		return err_set(err, ERR_INVALID, EINVAL,
			       "%s has no single value; write it as \"%s: value\"", where, name);
	return store(d, text, where, ret, err);
}

static int read_config(const struct option_spec *spec, const char *file, struct options *ret,
		       struct err *err)
{
	_cleanup_json_ json_t *config = NULL;
	const char *name;
	json_t *value;
	int r = yaml_read(file, &config, err);

	if (r < 0)
		return err_wrap(err, "--config");
	if (!json_is_object(config) && !json_is_null(config))
		return err_set(err, ERR_INVALID, EINVAL,
			       "--config: %s: want one mapping of \"option: value\" lines", file);
	json_object_foreach(config, name, value) {
		r = config_entry(spec, file, name, value, ret, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What getopt_long() found on the command line, before anything is stored. */
struct given {
	const struct option_def *def;
	const char *value;
};

struct command_line {
	struct given *given;
	size_t n, cap;
	const char *config;
	bool help;
};

enum { KEY_HELP = 256, KEY_CONFIG, KEY_FIRST };

static int unknown_option(const struct option_spec *spec, int c, char **argv, struct err *err)
{
	char letter[3] = { '-', (char)optopt, '\0' };
	const char *word = optopt > 0 && optopt < 128 ? letter : argv[optind - 1];
	bool missing = c == ':';

	if (missing && optopt >= 128)
		word = argv[optind - 1];
	return err_set(err, ERR_INVALID, EINVAL, "%s %.100s; \"twinrail %s --help\" explains",
		       missing ? "no value for" : "unknown option", word, spec->command);
}

static int scan(const struct option_spec *spec, int argc, char **argv, struct command_line *cl,
		struct err *err)
{
	_cleanup_free_ struct option *longs = xcalloc(spec->n + 3, sizeof(*longs));
	struct buf shorts = { 0 };
	int c, r = 0;

	buf_str(&shorts, ":h");
	longs[0] = (struct option){ "help", no_argument, NULL, KEY_HELP };
	longs[1] = (struct option){ "config", required_argument, NULL, KEY_CONFIG };
	for (size_t i = 0; i < spec->n; i++) {
		const struct option_def *d = &spec->table[i];
		bool flag = d->type == OPTION_FLAG;

		longs[i + 2] =
			(struct option){ d->name, flag ? optional_argument : required_argument,
					 NULL, KEY_FIRST + (int)i };
		if (d->letter)
			buf_printf(&shorts, "%c%s", d->letter, flag ? "" : ":");
	}
	optind = 0; /* start afresh, also in a second call */
	opterr = 0;
	while (r == 0 && (c = getopt_long(argc, argv, shorts.data, longs, NULL)) != -1) {
		const struct option_def *d = NULL;

		if (c == 'h' || c == KEY_HELP) {
			cl->help = true;
		} else if (c == KEY_CONFIG) {
			cl->config = optarg;
		} else if (c == '?' || c == ':') {
			r = unknown_option(spec, c, argv, err);
		} else if (c >= KEY_FIRST) {
			d = &spec->table[c - KEY_FIRST];
		} else {
			for (size_t i = 0; i < spec->n; i++)
				if (spec->table[i].letter == c)
					d = &spec->table[i];
		}
		if (d)
			*array_push(cl->given, cl->n, cl->cap) =
				(struct given){ d, optarg ? optarg : "true" };
	}
	buf_done(&shorts);
	return r;
}

static int check_operands(const struct option_spec *spec, const struct options *o, struct err *err)
{
	if (o->operands.n > spec->max_operands)
		return err_set(err, ERR_INVALID, EINVAL,
			       "unexpected argument \"%.100s\"; \"twinrail %s --help\" explains",
			       o->operands.items[spec->max_operands], spec->command);
	if (o->operands.n < spec->min_operands)
		return err_set(err, ERR_INVALID, EINVAL,
			       "missing argument; usage: twinrail %s [OPTION]... %s", spec->command,
			       spec->operands);
	return 0;
}

static int apply(const struct option_spec *spec, const struct command_line *cl, struct options *ret,
		 struct err *err)
{
	int r = 0;

	ret->config = cl->config ? cl->config : env_value("config");
	if (ret->config) {
		strlist_add(&ret->strings, ret->config);
		ret->config = ret->strings.items[ret->strings.n - 1];
		r = read_config(spec, ret->config, ret, err);
	}
	if (r == 0)
		r = read_environment(spec, ret, err);
	for (size_t i = 0; r == 0 && i < cl->n; i++) {
		_cleanup_free_ char *where = xasprintf("--%s", cl->given[i].def->name);

		r = store(cl->given[i].def, cl->given[i].value, where, ret, err);
	}
	return r < 0 ? r : check_operands(spec, ret, err);
}

int options_parse(const struct option_spec *spec, int argc, char **argv, struct options *ret,
		  struct err *err)
{
	struct command_line cl = { 0 };
	int r = scan(spec, argc, argv, &cl, err);

	if (r == 0 && cl.help) {
		r = 1;
	} else if (r == 0) {
		for (int i = optind; i < argc; i++)
			strlist_add(&ret->operands, argv[i]);
		r = apply(spec, &cl, ret, err);
	}
	free(cl.given);
	return r;
}

/* "default /", "" when there is none. */
static char *default_text(const struct option_def *d)
{
	const struct duration_unit *unit = &duration_units[0];
	const char *s;
	uint64_t us;

	switch (d->type) {
	case OPTION_FLAG:
		return xstrdup(*(bool *)d->value ? "default true" : "");
	case OPTION_STRING:
		s = *(const char **)d->value;
		return s && *s ? xasprintf("default %s", s) : xstrdup("");
	case OPTION_UINT:
		return xasprintf("default %u", *(unsigned int *)d->value);
	case OPTION_CHOICE:
		return xasprintf("default %s", d->words[*(unsigned int *)d->value]);
	case OPTION_DURATION:
		break;
	}
	us = *(uint64_t *)d->value;
	for (size_t i = 0; i < ARRAY_SIZE(duration_units); i++)
		if (us && us % duration_units[i].us == 0)
			unit = &duration_units[i];
	return xasprintf("default %" PRIu64 "%s", us / unit->us, unit->name);
}

static void help_line(const struct option_def *d, const char *rest, FILE *out)
{
	_cleanup_free_ char *words = d->words ? join_words(d->words) : NULL;
	_cleanup_free_ char *left =
		xasprintf("%s%s%s", d->name, d->arg ? " " : "", d->arg ? d->arg : "");

	if (d->letter)
		fprintf(out, "  -%c, --%-22s", d->letter, left);
	else
		fprintf(out, "      --%-22s", left);
	fprintf(out, " %s", d->help);
	if (words || *rest)
		fprintf(out, " (%s%s%s)", words ? words : "", words && *rest ? "; " : "", rest);
	fputc('\n', out);
}

void options_help(const struct option_spec *spec, FILE *out)
{
	static const struct option_def config = { .name = "config",
						  .arg = "FILE",
						  .help = "YAML file with \"option: value\" "
							  "lines" };
	static const struct option_def help = { .name = "help",
						.letter = 'h',
						.help = "show this text" };

	fprintf(out, "Usage: twinrail %s [OPTION]...%s%s\n%s\n\nOptions:\n", spec->command,
		*spec->operands ? " " : "", spec->operands, spec->summary);
	for (size_t i = 0; i < spec->n; i++) {
		_cleanup_free_ char *rest = default_text(&spec->table[i]);

		help_line(&spec->table[i], rest, out);
	}
	help_line(&config, "", out);
	help_line(&help, "", out);
	fputs("\nEvery option but --help can be given as environment variable TWINRAIL_<OPTION> "
	      "(dashes as\nunderscores), and all but --config in the file of --config; the "
	      "command line comes first,\nthen the environment, then the file.\n",
	      out);
	if (spec->more)
		fprintf(out, "\n%s", spec->more);
}

bool options_begin(const struct option_spec *spec, int argc, char **argv, struct options *ret,
		   int *exit_code)
{
	struct err err = { 0 };
	int r = options_parse(spec, argc, argv, ret, &err);

	if (r == 0)
		return true;
	if (r > 0)
		options_help(spec, stdout);
	else
		fprintf(stderr, "twinrail %s: %s\n", spec->command, err.msg);
	*exit_code = r > 0 ? EXIT_OK : EXIT_USAGE;
	return false;
}

void options_done(struct options *o)
{
	strlist_done(&o->strings);
	strlist_done(&o->operands);
	o->config = NULL;
}

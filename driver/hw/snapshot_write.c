// SPDX-License-Identifier: Apache-2.0
/* Writing a recorded machine; the format is described in snapshot.c. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "hw/anonymise.h"
#include "hw/ip.h"
#include "hw/machine.h"
#include "hw/read.h"
#include "hw/record.h"
#include "hw/snapshot.h"
#include "hw/verbs.h"

#define HEAD_MAX 1024

struct line {
	char *path; /* first: compared by cmp_line(); as it is written, without escapes */
	char *text;
};

struct writer {
	struct anonymiser *anonymiser; /* NULL: raw */
	struct line *lines;
	size_t n, cap;
	size_t len; /* of all lines */
	struct err *err;
	int r; /* the first error */
};

/* Spaces everywhere in a path, in a value where they would be cut or overlooked. */
static void add_escaped(struct buf *b, const char *s, size_t n, bool all_spaces)
{
	for (size_t i = 0; i < n; i++) {
		bool edge = i == 0 || i == n - 1;

		if (s[i] == '\n')
			buf_str(b, "\\n");
		else if (s[i] == '\t')
			buf_str(b, "\\t");
		else if (s[i] == '\\')
			buf_str(b, "\\\\");
		else if (s[i] == ' ' && (all_spaces || edge))
			buf_str(b, "\\s");
		else
			buf_add(b, s + i, 1);
	}
}

/* One or more lines of text that "path = value" gives back byte by byte. */
static bool is_text(const char *data, size_t len)
{
	if (len < 2 || data[len - 1] != '\n' || !utf8_valid(data, len))
		return false;
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)data[i] < 0x20 && data[i] != '\n' && data[i] != '\t') ||
		    data[i] == 0x7f)
			return false;
	return true;
}

static void add_value(struct buf *b, const char *data, size_t len)
{
	if (len == 0) {
		buf_str(b, " =");
	} else if (is_text(data, len)) {
		buf_str(b, " = ");
		add_escaped(b, data, len - 1, false);
	} else {
		buf_str(b, " : ");
		for (size_t i = 0; i < len; i++)
			buf_printf(b, "%02x", (unsigned char)data[i]);
	}
}

/* A link that leads out of the root ends at the root, as it does for the readers. */
static void add_target(struct buf *b, const char *path, const char *target)
{
	_cleanup_free_ char *dir = xstrdup(path), *full = NULL;
	struct buf relative = { 0 };
	char *slash = strrchr(dir, '/');

	buf_str(b, " -> ");
	if (hw_snapshot_target_ok(path, target)) {
		add_escaped(b, target, strlen(target), true);
		return;
	}
	*(slash ? slash : dir) = '\0';
	full = hw_path_join(dir, target);
	for (const char *p = path; (p = strchr(p, '/')); p++)
		buf_str(&relative, "../");
	buf_printf(&relative, "%s", full[1] ? full + 1 : ".");
	add_escaped(b, relative.data, relative.len, true);
	buf_done(&relative);
}

static char *line_of(struct anonymiser *a, const struct hw_recorded *rec, const char *path)
{
	_cleanup_free_ char *target = NULL;
	struct buf line = { 0 }, value = { 0 };

	add_escaped(&line, path, strlen(path), true);
	switch (rec->kind) {
	case HW_RECORDED_DIR:
		buf_str(&line, "/");
		break;
	case HW_RECORDED_FILE:
		buf_str(&line, " =");
		break;
	case HW_RECORDED_FAILED:
		buf_printf(&line, "%s ! %s", rec->is_dir ? "/" : "",
			   strerrorname_np(rec->errnum) ? strerrorname_np(rec->errnum) : "EIO");
		break;
	case HW_RECORDED_LINK:
		target = a ? anonymise_text(a, rec->data) : xstrdup(rec->data);
		add_target(&line, path, target);
		break;
	case HW_RECORDED_VALUE:
		if (a)
			anonymise_value(a, rec->path, rec->data, rec->len, &value);
		else
			buf_add(&value, rec->data, rec->len);
		add_value(&line, value.data, value.len);
		buf_done(&value);
		break;
	}
	buf_str(&line, "\n");
	return buf_take(&line);
}

static void write_line(const struct hw_recorded *rec, void *arg)
{
	struct writer *w = arg;
	struct line *line;
	size_t len;

	if (w->r < 0 || streq(rec->path, HW_ERRORS_FILE))
		return;
	if (!hw_snapshot_path_ok(rec->path)) {
		w->r = err_set(w->err, ERR_INVALID, ENAMETOOLONG,
			       "cannot record %.100s: the path is longer than 4095 bytes",
			       rec->path);
		return;
	}
	line = array_push(w->lines, w->n, w->cap);
	line->path = w->anonymiser ? anonymise_text(w->anonymiser, rec->path) : xstrdup(rec->path);
	line->text = line_of(w->anonymiser, rec, line->path);
	len = strlen(line->text);
	w->len += len;
	if (len > HW_SNAPSHOT_LINE_MAX)
		w->r = err_set(w->err, ERR_INVALID, EFBIG,
			       "cannot record %.100s: it is longer than %d MiB", rec->path,
			       HW_SNAPSHOT_LINE_MAX >> 20);
	else if (w->len > HW_SNAPSHOT_MAX - HEAD_MAX)
		w->r = err_set(w->err, ERR_INVALID, EFBIG,
			       "cannot record this machine: the recording would be longer than "
			       "%d MiB",
			       HW_SNAPSHOT_MAX >> 20);
}

static int cmp_line(const void *a, const void *b)
{
	return hw_record_cmp_path(*(char *const *)a, *(char *const *)b);
}

static void writer_done(struct writer *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->lines[i].path);
		free(w->lines[i].text);
	}
	free(w->lines);
}

/* Sorted once more: another name may have another place. */
static void join(struct writer *w, struct buf *out)
{
	if (w->n)
		qsort(w->lines, w->n, sizeof(*w->lines), cmp_line);
	for (size_t i = 0; i < w->n; i++)
		buf_str(out, w->lines[i].text);
}

/* Replacing depends on what there is elsewhere: a name may have a MAC address in it. */
static void learn(const struct hw_recorded *rec, void *arg)
{
	struct writer *w = arg;
	struct buf unused = { 0 };

	if (rec->kind == HW_RECORDED_VALUE)
		anonymise_value(w->anonymiser, rec->path, rec->data, rec->len, &unused);
	buf_done(&unused);
}

static void add_head(struct buf *out, const struct hw_machine *machine, bool raw, bool live)
{
	buf_printf(out, "# Machine recorded by twinrail " TWINRAIL_VERSION ".\n");
	if (!raw)
		buf_str(out, "# Anonymised: MAC and IP addresses, GUIDs, UUIDs, serial numbers "
			     "and host names are replaced, equal ones equally.\n");
	else
		buf_str(out, "# Raw: it has the addresses, GUIDs and serial numbers of the "
			     "machine.\n");
	if (machine->kernel_release)
		buf_printf(out, "# Kernel: %s\n", machine->kernel_release);
	if (raw && live) {
		char host[256] = "", date[32] = "";
		time_t now = time(NULL);
		struct tm tm;

		if (gethostname(host, sizeof(host) - 1) == 0)
			buf_printf(out, "# Host: %s\n", host);
		if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%FT%TZ", &tm))
			buf_printf(out, "# Date: %s\n", date);
	}
}

/* What the running kernel tells through sockets and the verbs library has no files. */
static void add_texts(struct hw_recorder *rec, const struct hw_machine *machine)
{
	_cleanup_free_ char *verbs = hw_verbs_print(machine);

	for (int i = 0; machine->ip.known && i < HW_IP_TEXTS; i++) {
		_cleanup_free_ char *text = hw_ip_print(machine, (enum hw_ip_text)i);

		hw_recorder_add(rec, hw_ip_file((enum hw_ip_text)i), text);
	}
	if (*verbs)
		hw_recorder_add(rec, HW_VERBS_FILE, verbs);
}

int hw_snapshot_record(const char *root, const struct hw_snapshot_options *options, char **ret,
		       size_t *ret_len, struct err *err)
{
	struct hw_machine *machine = xnew(struct hw_machine);
	struct hw_recorder *recorder = hw_recorder_new();
	struct writer w = { .err = err };
	bool live = streq(root, "/");
	struct buf out = { 0 };

	w.r = hw_read_recorded(root, HW_PART_ALL, recorder, machine, err);
	if (w.r == 0) {
		if (live)
			add_texts(recorder, machine);
		if (!options->raw) {
			w.anonymiser = anonymiser_new(options->seed);
			hw_recorder_each(recorder, learn, &w);
		}
		hw_recorder_each(recorder, write_line, &w);
	}
	if (w.r == 0) {
		add_head(&out, machine, options->raw, live);
		join(&w, &out);
		*ret_len = out.len;
		*ret = buf_take(&out);
	}
	writer_done(&w);
	anonymiser_free(w.anonymiser);
	hw_recorder_free(recorder);
	hw_free(machine);
	return w.r;
}

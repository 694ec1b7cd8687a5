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

struct writer {
	struct anonymiser *anonymiser; /* NULL: raw */
	struct buf out;
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

static void add_line(struct writer *w, const struct hw_recorded *rec)
{
	struct anonymiser *a = w->anonymiser;
	_cleanup_free_ char *path = a ? anonymise_text(a, rec->path) : xstrdup(rec->path);
	_cleanup_free_ char *target = NULL;
	struct buf value = { 0 };

	add_escaped(&w->out, path, strlen(path), true);
	switch (rec->kind) {
	case HW_RECORDED_DIR:
		buf_str(&w->out, "/");
		break;
	case HW_RECORDED_FILE:
		buf_str(&w->out, " =");
		break;
	case HW_RECORDED_FAILED:
		buf_printf(&w->out, "%s ! %s", rec->is_dir ? "/" : "",
			   strerrorname_np(rec->errnum) ? strerrorname_np(rec->errnum) : "EIO");
		break;
	case HW_RECORDED_LINK:
		target = a ? anonymise_text(a, rec->data) : xstrdup(rec->data);
		add_target(&w->out, path, target);
		break;
	case HW_RECORDED_VALUE:
		if (a)
			anonymise_value(a, rec->path, rec->data, rec->len, &value);
		else
			buf_add(&value, rec->data, rec->len);
		add_value(&w->out, value.data, value.len);
		buf_done(&value);
		break;
	}
	buf_str(&w->out, "\n");
}

static void write_line(const struct hw_recorded *rec, void *arg)
{
	struct writer *w = arg;
	size_t before = w->out.len;

	if (w->r < 0 || streq(rec->path, HW_ERRORS_FILE))
		return;
	if (!hw_snapshot_path_ok(rec->path))
		w->r = err_set(w->err, ERR_INVALID, ENAMETOOLONG,
			       "cannot record %.100s: the path is longer than 4095 bytes",
			       rec->path);
	else
		add_line(w, rec);
	if (w->out.len - before > HW_SNAPSHOT_LINE_MAX)
		w->r = err_set(w->err, ERR_INVALID, EFBIG,
			       "cannot record %.100s: it is longer than %d MiB", rec->path,
			       HW_SNAPSHOT_LINE_MAX >> 20);
	else if (w->out.len > HW_SNAPSHOT_MAX)
		w->r = err_set(w->err, ERR_INVALID, EFBIG,
			       "cannot record this machine: the recording would be longer than "
			       "%d MiB",
			       HW_SNAPSHOT_MAX >> 20);
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

static void add_head(struct writer *w, const struct hw_machine *machine, bool live)
{
	buf_printf(&w->out, "# Machine recorded by twinrail " TWINRAIL_VERSION ".\n");
	if (w->anonymiser)
		buf_str(&w->out, "# Anonymised: MAC and IP addresses, GUIDs, UUIDs, serial numbers "
				 "and host names are replaced, equal ones equally.\n");
	else
		buf_str(&w->out, "# Raw: it has the addresses, GUIDs and serial numbers of the "
				 "machine.\n");
	if (machine->kernel_release)
		buf_printf(&w->out, "# Kernel: %s\n", machine->kernel_release);
	if (!w->anonymiser && live) {
		char host[256] = "", date[32] = "";
		time_t now = time(NULL);
		struct tm tm;

		if (gethostname(host, sizeof(host) - 1) == 0)
			buf_printf(&w->out, "# Host: %s\n", host);
		if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%FT%TZ", &tm))
			buf_printf(&w->out, "# Date: %s\n", date);
	}
}

/* What the running kernel told through sockets has no files. */
static void add_texts(struct hw_recorder *rec, const struct hw_machine *machine)
{
	for (int i = 0; machine->ip.known && i < HW_IP_TEXTS; i++) {
		_cleanup_free_ char *text = hw_ip_print(machine, (enum hw_ip_text)i);

		hw_recorder_add(rec, hw_ip_file((enum hw_ip_text)i), text);
	}
}

int hw_snapshot_record(const char *root, const struct hw_snapshot_options *options, char **ret,
		       size_t *ret_len, struct err *err)
{
	struct hw_machine *machine = xnew(struct hw_machine);
	struct hw_recorder *recorder = hw_recorder_new();
	struct writer w = { .err = err };
	bool live = streq(root, "/");

	w.r = hw_read_recorded(root, HW_PART_ALL, recorder, machine, err);
	if (w.r == 0) {
		if (live)
			add_texts(recorder, machine);
		if (!options->raw) {
			w.anonymiser = anonymiser_new(options->seed);
			hw_recorder_each(recorder, learn, &w);
		}
		add_head(&w, machine, live);
		hw_recorder_each(recorder, write_line, &w);
	}
	if (w.r == 0) {
		*ret_len = w.out.len;
		*ret = buf_take(&w.out);
	}
	buf_done(&w.out);
	anonymiser_free(w.anonymiser);
	hw_recorder_free(recorder);
	hw_free(machine);
	return w.r;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Recorded machines: one text file with a line per file or link of the recorded tree.
 *
 *	path = value        a file with "value" and a new line; "path =" is an empty file
 *	path -> target      a symbolic link, relative as in sysfs: ".." at its beginning only
 *	path : hex          a binary file, two digits per byte
 *	path ! ERRNO        a file whose reading fails, e.g. EINVAL
 *	path/               a directory, which may be empty
 *	path/ ! ERRNO       a directory that cannot be listed
 *	# comment           as are empty lines
 *
 * Paths are relative to the root ("sys/class/net/…").  In paths, values and targets "\n", "\t",
 * "\s" (space) and "\\" stand for what a line cannot hold; other bytes stand for themselves.
 * Directories come from the paths of what is in them, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/hw.h"
#include "hw/root.h"
#include "hw/snapshot.h"

struct unpacker {
	const char *file, *dir;
	size_t line;
	char *made; /* where the last file or link is: all of it is directories */
	struct buf errors; /* content of HW_ERRORS_FILE */
};

__attribute__((format(printf, 3, 4))) static int fail(const struct unpacker *u, struct err *err,
						      const char *fmt, ...)
{
	_cleanup_free_ char *msg = NULL;
	va_list ap;

	va_start(ap, fmt);
	msg = xvasprintf(fmt, ap);
	va_end(ap);
	return err_set(err, ERR_INVALID, EINVAL, "%s line %zu: %s", u->file, u->line, msg);
}

/* Undo the escapes in place; false when there is an unknown one. */
static bool unescape(char *s)
{
	static const char letters[] = "nts\\", bytes[] = "\n\t \\";
	char *out = s;

	for (; *s; s++) {
		if (*s == '\\') {
			const char *known = s[1] ? strchr(letters, s[1]) : NULL;

			if (!known)
				return false;
			*out++ = bytes[known - letters];
			s++;
		} else {
			*out++ = *s;
		}
	}
	*out = '\0';
	return true;
}

bool hw_snapshot_path_ok(const char *path)
{
	const char *p = path;

	if (!*path || strlen(path) >= 4096)
		return false;
	for (;;) {
		size_t n = strcspn(p, "/");

		if (n == 0 || n > 255 || (n == 1 && p[0] == '.') ||
		    (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (!p[n])
			return true;
		p += n + 1;
	}
}

bool hw_snapshot_target_ok(const char *path, const char *target)
{
	bool down = false;
	long depth = 0;

	if (!*target || *target == '/' || strlen(target) >= 4096)
		return false;
	for (const char *p = path; *p; p++)
		depth += *p == '/';
	for (const char *p = target; *p; p += strcspn(p, "/"), p += *p == '/') {
		size_t n = strcspn(p, "/");
		bool up = n == 2 && p[0] == '.' && p[1] == '.';

		if (up && (down || depth-- == 0))
			return false;
		down = down || (!up && n > 0 && !(n == 1 && p[0] == '.'));
	}
	return true;
}

/* How much of "full" is known to be directories: the components that are those of u->made. */
static size_t known_length(const struct unpacker *u, const char *full)
{
	size_t n = strlen(u->dir);

	for (size_t i = n; u->made && full[i]; i++) {
		if (full[i] == '/' && (u->made[i] == '/' || !u->made[i]))
			n = i;
		if (full[i] != u->made[i])
			break;
	}
	return n;
}

/*
 * Make the directories above "full", which begins with u->dir.  None of them may be a link: a link
 * below a link could lead out of the directory although its text looks harmless.
 */
static int make_parents(struct unpacker *u, const char *full, struct err *err)
{
	char *copy = xstrdup(full);

	for (char *p = copy + known_length(u, full) + 1; (p = strchr(p, '/')); *p++ = '/') {
		struct stat st;
		int r = 0;

		*p = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST)
			r = err_errno(err, ERR_RETRY, errno, "cannot make directory %s", copy);
		else if (lstat(copy, &st) < 0 || !S_ISDIR(st.st_mode))
			r = fail(u, err, "%s lies below a file or link", full + strlen(u->dir) + 1);
		if (r < 0) {
			free(copy);
			return r;
		}
	}
	*strrchr(copy, '/') = '\0';
	free(u->made);
	u->made = copy;
	return 0;
}

/*
 * O_EXCL: nothing that exists is written.  Links are made last, so that no path leads through one.
 */
static int write_file(struct unpacker *u, const char *path, const void *data, size_t len,
		      struct err *err)
{
	_cleanup_free_ char *full = xasprintf("%s/%s", u->dir, path);
	_cleanup_close_ int fd = -1;
	int r = make_parents(u, full, err);
	ssize_t n;

	if (r < 0)
		return r;
	fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST)
		return fail(u, err, "%s is given twice", path);
	n = fd < 0 ? -1 : write(fd, data, len);
	if (n == (ssize_t)len)
		return 0;
	/* Less than asked, without an error, is what a full disk takes. */
	return err_errno(err, ERR_RETRY, n < 0 ? errno : ENOSPC, "%s line %zu: cannot write %s",
			 u->file, u->line, full);
}

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

static int write_hex(struct unpacker *u, const char *path, const char *hex, struct err *err)
{
	struct buf b = { 0 };
	int r = 0;

	for (; *hex; hex += 2) {
		int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);
		char byte;

		if (high < 0 || low < 0) {
			r = fail(u, err, "%s: want pairs of the digits 0-9a-f", path);
			break;
		}
		byte = (char)(high << 4 | low);
		buf_add(&b, &byte, 1);
	}
	if (r == 0)
		r = write_file(u, path, b.data ? b.data : "", b.len, err);
	buf_done(&b);
	return r;
}

static int write_value(struct unpacker *u, const char *path, const char *value, struct err *err)
{
	_cleanup_free_ char *text = *value ? xasprintf("%s\n", value) : xstrdup("");

	return write_file(u, path, text, strlen(text), err);
}

static int note_errno(struct unpacker *u, const char *path, const char *name, struct err *err)
{
	if (hw_errno_from_name(name) == 0)
		return fail(u, err, "%s: \"%.40s\" is not the name of an error, e.g. EINVAL", path,
			    name);
	buf_printf(&u->errors, "%s %s\n", path, name);
	return 0;
}

static int write_errno(struct unpacker *u, const char *path, const char *name, struct err *err)
{
	int r = note_errno(u, path, name, err);

	return r < 0 ? r : write_file(u, path, "", 0, err);
}

static int write_link(struct unpacker *u, const char *path, const char *target, struct err *err)
{
	_cleanup_free_ char *full = xasprintf("%s/%s", u->dir, path);
	int r;

	if (!hw_snapshot_target_ok(path, target))
		return fail(u, err,
			    "%s: the link must be relative and stay below the root, with \"..\" at "
			    "its beginning only",
			    path);
	r = make_parents(u, full, err);
	if (r < 0)
		return r;
	if (symlink(target, full) == 0)
		return 0;
	if (errno == EEXIST)
		return fail(u, err, "%s is given twice", path);
	return err_errno(err, ERR_RETRY, errno, "cannot make link %s", full);
}

static int fail_escape(const struct unpacker *u, struct err *err)
{
	return fail(u, err, "unknown escape; known are \\n, \\t, \\s and \\\\");
}

static int fail_path(const struct unpacker *u, struct err *err)
{
	return fail(u, err, "the path must be relative and without \".\", \"..\" and \"//\"");
}

enum pass { PASS_FILES, PASS_LINKS };

/* "path" ends in a slash; "name" is that of an error, NULL for none. */
static int write_dir(struct unpacker *u, const char *path, const char *name, struct err *err)
{
	_cleanup_free_ char *dir = xstrndup(path, strlen(path) - 1);
	_cleanup_free_ char *below = xasprintf("%s/%s", u->dir, path);
	int r;

	if (!hw_snapshot_path_ok(dir))
		return fail_path(u, err);
	r = make_parents(u, below, err);
	return r < 0 || !name ? r : note_errno(u, dir, name, err);
}

static int unpack_line(struct unpacker *u, char *line, enum pass pass, struct err *err)
{
	char *op = strchr(line, ' '), *value;
	char kind;

	if (line[0] == '\0' || line[0] == '#')
		return 0;
	if (!op && ends_with(line, "/")) {
		if (!unescape(line))
			return fail_escape(u, err);
		return pass == PASS_FILES ? write_dir(u, line, NULL, err) : 0;
	}
	if (!op)
		return fail(u, err,
			    "want \"path = value\", \"path -> target\", \"path : hex\", "
			    "\"path ! ERRNO\" or \"path/\"");
	*op++ = '\0';
	kind = op[0];
	value = op + (starts_with(op, "->") ? 2 : 1);
	if (!kind || !strchr("=:!-", kind) || (kind == '-' && op[1] != '>') ||
	    (*value && *value != ' '))
		return fail(u, err, "want =, ->, : or ! after the path");
	value += *value == ' ';
	if (!unescape(line) || !unescape(value))
		return fail_escape(u, err);
	if (kind == '!' && ends_with(line, "/"))
		return pass == PASS_FILES ? write_dir(u, line, value, err) : 0;
	if (!hw_snapshot_path_ok(line))
		return fail_path(u, err);
	if (streq(line, HW_ERRORS_FILE))
		return fail(u, err, "%s is made from the \"path ! ERRNO\" lines", line);
	if ((kind == '-') != (pass == PASS_LINKS))
		return 0;
	switch (kind) {
	case '-':
		return write_link(u, line, value, err);
	case ':':
		return write_hex(u, line, value, err);
	case '!':
		return write_errno(u, line, value, err);
	default:
		return write_value(u, line, value, err);
	}
}

static int unpack_lines(struct unpacker *u, const char *text, enum pass pass, struct err *err)
{
	u->line = 0;
	while (*text) {
		size_t n = strcspn(text, "\n");
		_cleanup_free_ char *line = NULL;
		int r;

		u->line++;
		if (n > HW_SNAPSHOT_LINE_MAX)
			return fail(u, err, "longer than %d bytes", HW_SNAPSHOT_LINE_MAX);
		line = xstrndup(text, n);
		r = unpack_line(u, line, pass, err);
		if (r < 0)
			return r;
		text += n + (text[n] == '\n');
	}
	return 0;
}

static int check_empty(const char *dir, struct err *err)
{
	struct strlist names = { 0 };
	int r = dir_list_at(AT_FDCWD, dir, &names);
	bool empty = names.n == 0;

	strlist_done(&names);
	if (r < 0)
		return err_errno(err, ERR_INVALID, r, "cannot list directory %s", dir);
	if (!empty)
		return err_set(err, ERR_INVALID, ENOTEMPTY,
			       "directory %s is not empty; name a new or empty one", dir);
	return 0;
}

int hw_snapshot_unpack(const char *file, const char *dir, struct err *err)
{
	struct unpacker u = { .file = file, .dir = dir };
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r = file_read(file, HW_SNAPSHOT_MAX, &text, &len, err);

	if (r < 0)
		return r;
	if (strlen(text) != len)
		return err_set(err, ERR_INVALID, EINVAL,
			       "%s has a NUL byte; it is not a recorded machine", file);
	r = dir_make(dir, 0755, err);
	if (r == 0)
		r = check_empty(dir, err);
	if (r == 0)
		r = unpack_lines(&u, text, PASS_FILES, err);
	if (r == 0)
		r = unpack_lines(&u, text, PASS_LINKS, err);
	if (r == 0 && u.errors.len)
		r = write_file(&u, HW_ERRORS_FILE, u.errors.data, u.errors.len, err);
	buf_done(&u.errors);
	free(u.made);
	return r;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

static enum log_format log_format_now = LOG_FORMAT_TEXT;
static enum log_level log_level_now = LOG_LEVEL_INFO;

void log_init(enum log_format format, enum log_level level)
{
	log_format_now = format;
	log_level_now = level;
}

bool log_enabled(enum log_level level)
{
	return level <= log_level_now;
}

const struct log_kv *log_kv_fmt(struct log_kv *kv, const char *key, const char *fmt, ...)
{
	va_list ap;

	kv->key = key;
	va_start(ap, fmt);
	vsnprintf(kv->value, sizeof(kv->value), fmt, ap);
	va_end(ap);
	return kv;
}

/* A JSON string; bytes that are not UTF-8 must not reach the log collector. */
static void add_json_string(struct buf *b, const char *s)
{
	bool utf8 = utf8_valid(s, strlen(s));

	buf_str(b, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(b, "\\u%04x", c);
		else if (c >= 0x80 && !utf8)
			buf_str(b, "?");
		else
			buf_add(b, s, 1);
	}
	buf_str(b, "\"");
}

/* Plain where that is unambiguous, quoted otherwise: a value can never forge a line or a key. */
static void add_text_value(struct buf *b, const char *s)
{
	bool plain = *s != '\0';

	for (const char *p = s; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f || *p == '"' ||
		    *p == '=' || *p == '\\')
			plain = false;
	if (plain)
		buf_str(b, s);
	else
		add_json_string(b, s);
}

void log_write(enum log_level level, const char *msg, ...)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	bool json = log_format_now == LOG_FORMAT_JSON;
	char now[TIME_RFC3339_MAX];
	const struct log_kv *kv;
	struct buf b = { 0 };
	ssize_t n;
	va_list ap;

	time_rfc3339(time_now_us(), now);
	if (json) {
		buf_printf(&b, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", now, names[level]);
		add_json_string(&b, msg);
	} else {
		buf_printf(&b, "%s %-5s %s", now, names[level], msg);
	}
	va_start(ap, msg);
	while ((kv = va_arg(ap, const struct log_kv *))) {
		if (json) {
			buf_str(&b, ",");
			add_json_string(&b, kv->key);
			buf_str(&b, ":");
			add_json_string(&b, kv->value);
		} else {
			buf_printf(&b, " %s=", kv->key);
			add_text_value(&b, kv->value);
		}
	}
	va_end(ap);
	buf_str(&b, json ? "}\n" : "\n");
	n = write(STDERR_FILENO, b.data, b.len);
	(void)n; /* there is nowhere to report it */
	buf_done(&b);
}

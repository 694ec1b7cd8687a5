/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_LOG_H
#define TWINRAIL_BASE_LOG_H

#include <stdbool.h>

/*
 * One event is one line on stderr, written by one write(2):
 *   text  2026-01-02T03:04:05.678Z info  claim prepared claim=ns/name uid=… ms=3.2
 *   json  {"time":"…","level":"info","msg":"claim prepared","claim":"ns/name",…}
 * Messages are constant lower-case phrases; what varies goes into key=value pairs:
 *   log_info("claim prepared", KV("claim", "%s/%s", ns, name), KV("ms", "%.1f", ms));
 * Library code logs at debug level only; whoever handles an error logs it once.
 */

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

void log_init(enum log_format format, enum log_level level);
bool log_enabled(enum log_level level);

struct log_kv {
	const char *key;
	char value[512];
};

const struct log_kv *log_kv_fmt(struct log_kv *kv, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define KV(key, ...) log_kv_fmt(&(struct log_kv){ 0 }, key, __VA_ARGS__)

/* The pairs end with NULL. */
void log_write(enum log_level level, const char *msg, ...) __attribute__((sentinel));

#define log_at(level, ...)                                                                         \
	do {                                                                                       \
		if (log_enabled(level))                                                            \
			log_write(level, __VA_ARGS__, NULL);                                       \
	} while (0)
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif

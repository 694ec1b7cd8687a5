/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_ERR_H
#define TWINRAIL_BASE_ERR_H

#include <stdarg.h>

/*
 * Errors.  A function returns 0 or a negative errno.  A function that can fail for a reason a
 * person must read takes a last parameter "struct err *err": a value owned by the caller, which
 * names the object, the cause and the cure.  Nothing is allocated, so nothing leaks and setting an
 * error cannot fail.  "err" may be NULL where the caller does not want the text.
 */

enum err_kind {
	ERR_NONE = 0,
	ERR_INVALID, /* the input is wrong; retrying is useless until it changes */
	ERR_NOT_FOUND, /* the named object does not exist */
	ERR_CONFLICT, /* somebody else changed or holds the object; read again and retry */
	ERR_RETRY, /* a passing fault: retry later */
	ERR_PERMANENT, /* refused for good, e.g. missing rights */
	ERR_INTERNAL, /* a bug of ours or of a library */
};

struct err {
	int code; /* negative errno, 0 when no error is set */
	enum err_kind kind;
	char msg[512];
};

/* Fill "err" and return -|errnum|.  "errnum" may have either sign. */
int err_set(struct err *err, enum err_kind kind, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* As err_set(), and append ": <strerror>" to the text. */
int err_errno(struct err *err, enum err_kind kind, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Put "<context>: " before the text that is there; return err->code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#if defined(__clang_analyzer__) && !defined(ERR_C)
/* The analyzer sees one file at a time: tell it that what these return is always an error. */
#define err_set(...) (err_set(__VA_ARGS__), -1)
#define err_errno(...) (err_errno(__VA_ARGS__), -1)
#define err_wrap(...) (err_wrap(__VA_ARGS__), -1)
#endif

void err_reset(struct err *err);

/* "invalid", "not_found", …: the word for logs. */
const char *err_kind_name(enum err_kind kind);

#endif

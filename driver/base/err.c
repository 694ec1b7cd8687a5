// SPDX-License-Identifier: Apache-2.0
#define ERR_C
#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 5, 0))) static int
err_fill(struct err *err, enum err_kind kind, int errnum, bool append, const char *fmt, va_list ap)
{
	int code = errnum > 0 ? -errnum : errnum;

	if (code == 0)
		code = -EINVAL;
	if (!err)
		return code;
	err->code = code;
	err->kind = kind;
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	if (append) {
		char text[128];
		size_t len = strlen(err->msg);

		snprintf(err->msg + len, sizeof(err->msg) - len, ": %s",
			 strerror_r(-code, text, sizeof(text)));
	}
	return code;
}

int err_set(struct err *err, enum err_kind kind, int errnum, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = err_fill(err, kind, errnum, false, fmt, ap);
	va_end(ap);
	return r;
}

int err_errno(struct err *err, enum err_kind kind, int errnum, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = err_fill(err, kind, errnum, true, fmt, ap);
	va_end(ap);
	return r;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char old[sizeof(((struct err *)0)->msg)];
	va_list ap;
	size_t len;

	if (!err)
		return -EINVAL;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", old);
	return err->code;
}

void err_reset(struct err *err)
{
	if (err)
		*err = (struct err){ 0 };
}

const char *err_kind_name(enum err_kind kind)
{
	switch (kind) {
	case ERR_NONE:
		return "none";
	case ERR_INVALID:
		return "invalid";
	case ERR_NOT_FOUND:
		return "not_found";
	case ERR_CONFLICT:
		return "conflict";
	case ERR_RETRY:
		return "retry";
	case ERR_PERMANENT:
		return "permanent";
	case ERR_INTERNAL:
		return "internal";
	}
	return "internal";
}

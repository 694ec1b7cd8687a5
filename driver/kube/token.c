// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "kube/internal.h"

/* kubelet replaces the mounted token long before it expires; the Go clients look once a minute. */
#define TOKEN_MAX_AGE_US (60 * 1000000ULL)

/* What may stand in a header. */
static bool token_valid(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (*s <= 0x20 || *s >= 0x7f)
			return false;
	return true;
}

static int token_read(struct kube *kube, struct err *err)
{
	const char *path = kube->config.token_file;
	char *token = NULL;
	size_t len;
	int r = file_read(path, KUBE_SECRET_MAX, &token, &len, err);

	if (r < 0)
		return r;
	str_rstrip(token);
	if (!token_valid(token)) {
		explicit_bzero(token, len);
		free(token);
		return err_set(err, ERR_INVALID, EINVAL,
			       "%s holds no token: one line of printable text is expected", path);
	}
	kube->token_us = clock_us();
	if (streq_null(token, kube->token)) {
		explicit_bzero(token, len);
		free(token);
		return 0;
	}
	if (kube->token)
		explicit_bzero(kube->token, strlen(kube->token));
	free(kube->token);
	kube->token = token;
	kube->token_serial++;
	return 0;
}

int kube_token(struct kube *kube, const char **ret, struct err *err)
{
	int r;

	*ret = kube->config.token;
	if (!kube->config.token_file)
		return 0;
	if (!kube->token || clock_us() - kube->token_us >= TOKEN_MAX_AGE_US) {
		r = token_read(kube, err);
		/* A file that is away for a moment does not make the old token wrong. */
		if (r < 0 && !kube->token && !kube->config.token)
			return r;
	}
	if (kube->token)
		*ret = kube->token;
	return 0;
}

bool kube_token_renew(struct kube *kube, unsigned long serial)
{
	if (!kube->config.token_file)
		return false;
	if (kube->token_serial == serial && token_read(kube, NULL) < 0)
		return false;
	return kube->token_serial != serial;
}

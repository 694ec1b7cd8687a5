// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "kube/internal.h"

json_t *kube_parse(const char *text, size_t len, struct err *err)
{
	json_error_t e;
	json_t *v = json_loadb(text, len, JSON_ALLOW_NUL, &e);

	if (!v)
		err_set(err, ERR_RETRY, EPROTO, "the answer is not JSON: line %d column %d: %s",
			e.line, e.column, e.text);
	return v;
}

uint64_t kube_backoff_us(unsigned int attempt)
{
	uint64_t us = 100000;

	while (attempt-- > 0 && us < 10000000)
		us *= 2;
	if (us > 10000000)
		us = 10000000;
	return us / 2 + arc4random_uniform((uint32_t)(us / 2) + 1);
}

/* No answer, or half of one. */
static int transport_err(const struct transfer *t, CURLcode result, const char *what,
			 struct err *err)
{
	const char *text = t->error[0] ? t->error : curl_easy_strerror(result);
	const char *server = t->kube->base;

	if (t->too_long)
		return err_set(err, ERR_PERMANENT, EFBIG, "%s: the answer is longer than %zu bytes",
			       what, t->in_max);
	switch (result) {
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(err, ERR_RETRY, ETIMEDOUT, "%s: no answer from %s in time: %s", what,
			       server, text);
	case CURLE_PEER_FAILED_VERIFICATION:
		return err_set(err, ERR_PERMANENT, EKEYREJECTED,
			       "%s: the certificate of %s is not trusted: %s; check the CA", what,
			       server, text);
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR:
		return err_set(err, ERR_PERMANENT, EKEYREJECTED,
			       "%s: cannot use the CA or the client certificate for %s: %s", what,
			       server, text);
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return err_set(err, ERR_INVALID, EINVAL, "%s: %s", what, text);
	case CURLE_OUT_OF_MEMORY:
	case CURLE_FAILED_INIT:
	case CURLE_BAD_FUNCTION_ARGUMENT:
		return err_set(err, ERR_INTERNAL, EIO, "%s: libcurl: %s", what, text);
	default:
		return err_set(err, ERR_RETRY, ECONNRESET, "%s: cannot talk to %s: %s", what,
			       server, text);
	}
}

static int status_err(const struct transfer *t, const char *what, const json_t *body,
		      struct err *err)
{
	const char *message = json_path_string(body, "message");
	const char *reason = json_path_string(body, "reason");
	const char *token_file = t->kube->config.token_file;

	if (!message)
		message = "no reason given";
	switch (t->status) {
	case 404:
		return err_set(err, ERR_NOT_FOUND, ENOENT, "%s: %s", what, message);
	case 409:
		return err_set(err, ERR_CONFLICT,
			       streq_null(reason, "AlreadyExists") ? EEXIST : EBUSY, "%s: %s", what,
			       message);
	case 401:
		return err_set(err, ERR_PERMANENT, EACCES,
			       "%s: the API server does not accept who we are (401): %s; check %s",
			       what, message, token_file ? token_file : "the credentials");
	case 403:
		return err_set(err, ERR_PERMANENT, EPERM,
			       "%s: not allowed (403): %s; check the ClusterRole and the admission "
			       "policies",
			       what, message);
	case 410:
		return err_set(err, ERR_RETRY, ESTALE, "%s: %s", what, message);
	case 408:
	case 429:
		return err_set(err, ERR_RETRY, EAGAIN, "%s: the API server is busy (%d): %s", what,
			       t->status, message);
	default:
		break;
	}
	if (t->status >= 500)
		return err_set(err, ERR_RETRY, EREMOTEIO, "%s: the API server failed (%d): %s",
			       what, t->status, message);
	if (t->status >= 400)
		return err_set(err, ERR_INVALID, EINVAL, "%s: refused (%d): %s", what, t->status,
			       message);
	return err_set(err, ERR_PERMANENT, EPROTO,
		       "%s: status %d, which an API server does not send; check the address %s",
		       what, t->status, t->kube->base);
}

int kube_reply_err(const struct transfer *t, CURLcode result, const char *method, const char *path,
		   const json_t *body, struct err *err)
{
	char what[192];

	/* Verb and object; the query (selectors, managers) would only fill the line. */
	snprintf(what, sizeof(what), "%s %.*s", method, (int)strcspn(path, "?"), path);
	if (result != CURLE_OK)
		return transport_err(t, result, what, err);
	if (t->status < 200 || t->status > 299)
		return status_err(t, what, body, err);
	return 0;
}

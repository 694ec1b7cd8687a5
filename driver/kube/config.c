// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "kube/internal.h"

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

static void free_secret(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	free(s);
}

void kube_config_done(struct kube_config *config)
{
	free(config->server);
	free(config->ca_file);
	free(config->ca_data);
	free(config->token_file);
	free_secret(config->token);
	free(config->cert_data);
	free_secret(config->key_data);
	free(config->tls_server_name);
	free(config->user_agent);
	*config = (struct kube_config){ 0 };
}

static bool is_this_machine(const char *host)
{
	return streq(host, "localhost") || streq(host, "127.0.0.1") || streq(host, "[::1]");
}

int kube_check_server(const char *server, bool *ret_plain, struct err *err)
{
	char *scheme = NULL, *host = NULL, *user = NULL, *query = NULL;
	CURLU *url = curl_url();
	CURLUcode r;
	int code = 0;

	if (!url)
		abort(); /* out of memory */
	r = curl_url_set(url, CURLUPART_URL, server, 0);
	if (r == CURLUE_OK)
		r = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
	if (r == CURLUE_OK)
		r = curl_url_get(url, CURLUPART_HOST, &host, 0);
	curl_url_get(url, CURLUPART_USER, &user, 0);
	curl_url_get(url, CURLUPART_QUERY, &query, 0);
	if (r != CURLUE_OK)
		code = err_set(err, ERR_INVALID, EINVAL, "server \"%s\" is not an address: %s",
			       server, curl_url_strerror(r));
	else if (user || query)
		code = err_set(err, ERR_INVALID, EINVAL,
			       "server %s: an address without user and query is expected", host);
	else if (!streq(scheme, "https") && !(streq(scheme, "http") && is_this_machine(host)))
		code = err_set(err, ERR_INVALID, EINVAL,
			       "server \"%s\" must begin with https:// (http only to 127.0.0.1, "
			       "[::1] and localhost, e.g. kubectl proxy)",
			       server);
	else
		*ret_plain = streq(scheme, "http");
	curl_free(scheme);
	curl_free(host);
	curl_free(user);
	curl_free(query);
	curl_url_cleanup(url);
	return code;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *kube_base64_text(const char *s)
{
	struct buf b = { 0 };
	unsigned int bits = 0, n = 0, pad = 0;

	for (; *s; s++) {
		int v = base64_value(*s);

		if (strchr(" \t\r\n", *s))
			continue;
		if (*s == '=') {
			pad++;
			continue;
		}
		if (v < 0 || pad > 0)
			goto fail;
		bits = bits << 6 | (unsigned int)v;
		if (++n % 4 != 1) {
			char c = (char)(bits >> (6 - (n - 1) % 4 * 2));

			if (c == '\0')
				goto fail;
			buf_add(&b, &c, 1);
		}
	}
	if ((n + pad) % 4 != 0 || pad > 2)
		goto fail;
	return buf_take(&b);
fail:
	buf_done(&b);
	return NULL;
}

int kube_config_account(const char *dir, const char *host, const char *port,
			struct kube_config *ret, struct err *err)
{
	struct kube_config c = { 0 };
	unsigned int number;
	bool bracket;

	if (!host || !*host || !port || !*port)
		return err_set(err, ERR_INVALID, ENOENT,
			       "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: "
			       "this is not a pod; use --kubeconfig FILE");
	if (parse_uint(port, 65535, &number) < 0 || number == 0)
		return err_set(err, ERR_INVALID, EINVAL,
			       "KUBERNETES_SERVICE_PORT \"%s\" is not a port", port);
	bracket = strchr(host, ':') && host[0] != '[';
	c.server = xasprintf("https://%s%s%s:%u", bracket ? "[" : "", host, bracket ? "]" : "",
			     number);
	c.ca_file = xasprintf("%s/ca.crt", dir);
	c.token_file = xasprintf("%s/token", dir);
	if (access(c.ca_file, R_OK) < 0 || access(c.token_file, R_OK) < 0) {
		int r = err_errno(err, ERR_INVALID, errno,
				  "cannot read the service account in %s; the pod needs "
				  "automountServiceAccountToken",
				  dir);

		kube_config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

int kube_config_in_cluster(struct kube_config *ret, struct err *err)
{
	return kube_config_account(ACCOUNT_DIR, getenv("KUBERNETES_SERVICE_HOST"),
				   getenv("KUBERNETES_SERVICE_PORT"), ret, err);
}

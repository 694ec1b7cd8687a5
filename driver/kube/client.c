// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/internal.h"

#define DEFAULT_TIMEOUT_US (10 * 1000000ULL)
#define APPLY_RETRY_US (30 * 1000000ULL)

/* Where requests go: the server's address, or the name its certificate has. */
static int set_base(struct kube *kube, struct err *err)
{
	const struct kube_config *c = &kube->config;
	_cleanup_free_ char *route = NULL;
	size_t len = strlen(c->server);
	char *host = NULL, *port = NULL, *base = NULL;
	CURLU *url;
	CURLUcode r;

	while (len > 0 && c->server[len - 1] == '/')
		len--;
	kube->base = xstrndup(c->server, len);
	if (!c->tls_server_name)
		return 0;
	url = curl_url();
	if (!url)
		abort(); /* out of memory */
	r = curl_url_set(url, CURLUPART_URL, kube->base, 0);
	if (r == CURLUE_OK)
		r = curl_url_get(url, CURLUPART_HOST, &host, 0);
	if (r == CURLUE_OK)
		r = curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
	if (r == CURLUE_OK)
		r = curl_url_set(url, CURLUPART_HOST, c->tls_server_name, 0);
	if (r == CURLUE_OK)
		r = curl_url_get(url, CURLUPART_URL, &base, 0);
	if (r == CURLUE_OK) {
		route = xasprintf("%s:%s:%s:%s", c->tls_server_name, port, host, port);
		kube->connect_to = curl_slist_append(NULL, route);
		free(kube->base);
		len = strlen(base);
		while (len > 0 && base[len - 1] == '/')
			len--;
		kube->base = xstrndup(base, len);
	}
	curl_free(host);
	curl_free(port);
	curl_free(base);
	curl_url_cleanup(url);
	if (r != CURLUE_OK)
		return err_set(err, ERR_INVALID, EINVAL, "server %s with tls-server-name %s: %s",
			       c->server, c->tls_server_name, curl_url_strerror(r));
	return 0;
}

int kube_new(struct loop *loop, const struct kube_config *config, struct kube **ret,
	     struct err *err)
{
	struct kube *kube;
	bool plain;
	int r;

	if (!config->server)
		return err_set(err, ERR_INVALID, EINVAL, "no address of an API server is given");
	r = kube_check_server(config->server, &plain, err);
	if (r < 0)
		return r;
	if (!plain && !config->ca_file && !config->ca_data)
		return err_set(err, ERR_INVALID, EINVAL,
			       "no CA is given for %s; TLS is always verified", config->server);
	kube = xnew(struct kube);
	kube->loop = loop;
	kube->plain = plain;
	kube->config = (struct kube_config){
		.server = xstrdup(config->server),
		.ca_file = xstrdup_null(config->ca_file),
		.ca_data = xstrdup_null(config->ca_data),
		.token_file = xstrdup_null(config->token_file),
		.token = xstrdup_null(config->token),
		.cert_data = xstrdup_null(config->cert_data),
		.key_data = xstrdup_null(config->key_data),
		.tls_server_name = xstrdup_null(config->tls_server_name),
		.user_agent = xstrdup(config->user_agent ? config->user_agent
							 : "twinrail/" TWINRAIL_VERSION),
	};
	r = set_base(kube, err);
	if (r == 0)
		r = kube_multi_init(kube, err);
	if (r < 0) {
		kube_free(kube);
		return r;
	}
	*ret = kube;
	return 0;
}

static void request_unlink(struct kube_request *q)
{
	if (q->prev)
		q->prev->next = q->next;
	else
		q->kube->requests = q->next;
	if (q->next)
		q->next->prev = q->prev;
	q->prev = q->next = NULL;
}

static void request_free(struct kube_request *q)
{
	transfer_stop(&q->t);
	loop_timer_free(q->timer);
	free(q->method);
	free(q->path);
	free(q->content_type);
	free(q->body);
	free(q);
}

struct kube *kube_free(struct kube *kube)
{
	if (!kube)
		return NULL;
	while (kube->watches) /* first: they own requests */
		kube_watch_free(kube->watches);
	while (kube->requests)
		kube_cancel(kube->requests);
	if (kube->busy > 0) { /* called from a callback: its caller does the rest */
		kube->dead = true;
		return NULL;
	}
	kube_multi_done(kube);
	curl_slist_free_all(kube->connect_to);
	free(kube->base);
	if (kube->token)
		explicit_bzero(kube->token, strlen(kube->token));
	free(kube->token);
	kube_config_done(&kube->config);
	free(kube);
	return NULL;
}

/* The last word on a request; the handle is void from here on. */
static void deliver(struct kube_request *q, const struct kube_reply *reply)
{
	struct kube *kube = q->kube;

	kube_enter(kube);
	request_unlink(q);
	q->delivering = true;
	q->fn(reply, q->data);
	request_free(q);
	kube_leave(kube);
}

static void attempt(struct kube_request *q);

/* After a back-off, or to tell about a request that could not be sent. */
static void on_timer(void *data)
{
	struct kube_request *q = data;

	if (q->local.code < 0)
		deliver(q, &(struct kube_reply){ .err = q->local });
	else
		attempt(q);
}

static void set_timer(struct kube_request *q, uint64_t delay_us)
{
	if (!q->timer)
		q->timer = loop_timer_new(q->kube->loop, on_timer, q);
	loop_timer_set(q->timer, delay_us);
}

static void attempt(struct kube_request *q)
{
	struct transfer_start start = {
		.method = q->method,
		.path = q->path,
		.content_type = q->content_type,
		.body = q->body,
		.timeout_us = q->timeout_us,
	};

	if (transfer_start(&q->t, &start, &q->local) < 0) {
		err_wrap(&q->local, "%s %.*s", q->method, (int)strcspn(q->path, "?"), q->path);
		set_timer(q, 0);
	}
}

static void request_done(struct transfer *t, CURLcode result)
{
	struct kube_request *q = container_of(t, struct kube_request, t);
	struct kube_reply reply = { 0 };
	_cleanup_json_ json_t *body = NULL;
	uint64_t delay_us;
	struct err parse = { 0 };

	if (result == CURLE_OK && t->in.len > 0)
		body = kube_parse(t->in.data, t->in.len, &parse);
	buf_done(&t->in);
	reply.status = t->status;
	reply.body = body;
	kube_reply_err(t, result, q->method, q->path, body, &reply.err);
	if (reply.err.code == 0 && parse.code < 0) {
		reply.err = parse;
		err_wrap(&reply.err, "%s %.*s", q->method, (int)strcspn(q->path, "?"), q->path);
	}
	if (reply.status == 401 && !q->fresh_token && kube_token_renew(q->kube, t->token_serial)) {
		q->fresh_token = true;
		attempt(q);
		return;
	}
	if (reply.err.kind == ERR_RETRY) {
		delay_us = kube_backoff_us(q->attempt);
		if (delay_us < t->retry_after_us)
			delay_us = t->retry_after_us;
		if (clock_us() + delay_us < q->give_up_us) {
			q->attempt++;
			log_debug("request is repeated", KV("error", "%s", reply.err.msg),
				  KV("delay_ms", "%llu", (unsigned long long)delay_us / 1000));
			set_timer(q, delay_us);
			return;
		}
	}
	deliver(q, &reply);
}

struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, kube_reply_fn *fn,
			       void *data)
{
	struct kube_request *q = xnew(struct kube_request);

	q->kube = q->t.kube = kube;
	q->t.done = request_done;
	q->t.in_max = KUBE_BODY_MAX;
	q->method = xstrdup(call->method);
	q->path = xstrdup(call->path);
	q->content_type = xstrdup(call->content_type ? call->content_type : "application/json");
	q->body = call->body ? json_text(call->body) : NULL;
	q->timeout_us = call->timeout_us ? call->timeout_us : DEFAULT_TIMEOUT_US;
	q->give_up_us = clock_us() + call->retry_us;
	q->fn = fn;
	q->data = data;
	q->next = kube->requests;
	if (q->next)
		q->next->prev = q;
	kube->requests = q;
	attempt(q);
	return q;
}

void kube_cancel(struct kube_request *request)
{
	if (!request || request->delivering)
		return;
	request_unlink(request);
	request_free(request);
}

struct kube_request *kube_apply(struct kube *kube, const char *path, const char *manager,
				const json_t *body, kube_reply_fn *fn, void *data)
{
	_cleanup_free_ char *full = xasprintf("%s?fieldManager=%s&force=true", path, manager);
	struct kube_call call = {
		.method = "PATCH",
		.path = full,
		.content_type = "application/apply-patch+yaml", /* JSON is YAML */
		.body = body,
		.retry_us = APPLY_RETRY_US,
	};

	return kube_send(kube, &call, fn, data);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "kube/internal.h"

/*
 * curl's multi interface on our loop: curl tells which sockets it waits for and when it wants to
 * be called at the latest; we tell it what happened and then look at what has come and ended.
 */

/*
 * A peer that died silently is noticed after 25 s: two keepalive probes, or data of ours, are not
 * acknowledged.  The kernel watches over that while we sleep.  All requests share one HTTP/2
 * connection, so this also bounds how long they can fail after the death of an API server.
 */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_INTERVAL_S 5
#define UNACKNOWLEDGED_MS 25000

#define MAX_CONNECTIONS 16L /* where the server has HTTP/1.1 only */
#define CONNECT_TIMEOUT_MS 5000L
#define RETRY_AFTER_MAX_S 300

void kube_enter(struct kube *kube)
{
	kube->busy++;
}

void kube_leave(struct kube *kube)
{
	if (--kube->busy == 0 && kube->dead)
		kube_free(kube);
}

/* Give back what belongs to curl; the answer stays. */
static void transfer_close(struct transfer *t)
{
	if (!t->easy)
		return;
	curl_multi_remove_handle(t->kube->multi, t->easy);
	curl_easy_cleanup(t->easy);
	t->easy = NULL;
	curl_slist_free_all(t->headers);
	t->headers = NULL;
	if (t->prev)
		t->prev->next = t->next;
	else
		t->kube->transfers = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->prev = t->next = NULL;
	t->readable = false;
}

void transfer_stop(struct transfer *t)
{
	transfer_close(t);
	buf_done(&t->in);
}

static void transfer_end(struct transfer *t, CURLcode result)
{
	curl_off_t seconds = 0;
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > RETRY_AFTER_MAX_S)
		seconds = RETRY_AFTER_MAX_S;
	t->status = (int)status;
	t->retry_after_us = (uint64_t)seconds * 1000000;
	transfer_close(t);
	t->done(t, result);
}

/* Call back for all that has come, then for what has ended; the callbacks may change anything. */
static void dispatch(struct kube *kube)
{
	kube_enter(kube);
	while (!kube->dead) {
		struct transfer *t = kube->transfers;
		CURLMsg *msg;
		int left;

		while (t && !t->readable)
			t = t->next;
		if (t) {
			t->readable = false;
			t->data(t);
			continue;
		}
		msg = curl_multi_info_read(kube->multi, &left);
		if (!msg)
			break;
		if (msg->msg == CURLMSG_DONE) {
			CURLcode result = msg->data.result;

			curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
			transfer_end(t, result);
		}
	}
	kube_leave(kube);
}

static void on_socket(int fd, uint32_t events, void *data)
{
	struct kube *kube = ((struct kube_socket *)data)->kube;
	int mask = 0, running;

	if (events & EPOLLIN)
		mask |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		mask |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		mask |= CURL_CSELECT_ERR;
	curl_multi_socket_action(kube->multi, fd, mask, &running);
	dispatch(kube);
}

static void on_timer(void *data)
{
	struct kube *kube = data;
	int running;

	curl_multi_socket_action(kube->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	dispatch(kube);
}

static void socket_free(struct kube_socket *s)
{
	loop_remove_fd(s->source);
	if (s->prev)
		s->prev->next = s->next;
	else
		s->kube->sockets = s->next;
	if (s->next)
		s->next->prev = s->prev;
	free(s);
}

/* curl: wait for this socket. */
static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
	struct kube_socket *s = socket_data;
	struct kube *kube = data;
	uint32_t events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			socket_free(s);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		events |= EPOLLOUT;
	if (s) {
		loop_set_fd(s->source, events);
		return 0;
	}
	s = xnew(struct kube_socket);
	s->kube = kube;
	if (loop_add_fd(kube->loop, fd, events, on_socket, s, &s->source, NULL) < 0) {
		free(s);
		return -1; /* ends the transfers with an error, which is retried */
	}
	s->next = kube->sockets;
	if (s->next)
		s->next->prev = s;
	kube->sockets = s;
	curl_multi_assign(kube->multi, fd, s);
	return 0;
}

/* curl: call me in so many milliseconds. */
static int watch_clock(CURLM *multi, long timeout_ms, void *data)
{
	struct kube *kube = data;

	(void)multi;
	if (timeout_ms < 0)
		loop_timer_stop(kube->timer);
	else
		loop_timer_set(kube->timer, (uint64_t)timeout_ms * 1000);
	return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct transfer *t = user;
	size_t len = size * n;

	if (t->in.len + len > t->in_max) {
		t->too_long = true;
		return 0;
	}
	buf_add(&t->in, data, len);
	if (t->data)
		t->readable = true;
	return len;
}

static size_t on_header(char *data, size_t size, size_t n, void *user)
{
	struct transfer *t = user;

	(void)data;
	t->answered = true;
	return size * n;
}

static int on_new_socket(void *data, curl_socket_t fd, curlsocktype purpose)
{
	int ms = UNACKNOWLEDGED_MS;

	(void)data;
	(void)purpose;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	return CURL_SOCKOPT_OK;
}

static void add_header(struct transfer *t, const char *name, const char *value)
{
	_cleanup_free_ char *line = xasprintf("%s: %s", name, value);
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (!list)
		abort(); /* out of memory */
	t->headers = list;
}

static void set_blob(CURL *easy, CURLoption option, const char *text)
{
	struct curl_blob blob = {
		.data = (void *)(uintptr_t)text,
		.len = strlen(text),
		.flags = CURL_BLOB_NOCOPY, /* lives in kube->config */
	};

	curl_easy_setopt(easy, option, &blob);
}

/* The cluster's CA and nothing else: not the system's. */
static void set_tls(const struct kube *kube, CURL *easy)
{
	const struct kube_config *c = &kube->config;

	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
	if (c->ca_data)
		set_blob(easy, CURLOPT_CAINFO_BLOB, c->ca_data);
	if (c->cert_data && c->key_data) {
		set_blob(easy, CURLOPT_SSLCERT_BLOB, c->cert_data);
		set_blob(easy, CURLOPT_SSLKEY_BLOB, c->key_data);
	}
}

static void set_request(struct transfer *t, const struct transfer_start *start)
{
	_cleanup_free_ char *url = xasprintf("%s%s", t->kube->base, start->path);

	curl_easy_setopt(t->easy, CURLOPT_URL, url);
	curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)(start->timeout_us / 1000));
	if (start->body) {
		curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, start->body);
		curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE,
				 (curl_off_t)strlen(start->body));
		add_header(t, "Content-Type", start->content_type);
		add_header(t, "Expect", ""); /* no waiting for "100 Continue" */
	}
	if (!streq(start->method, "GET"))
		curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, start->method);
	add_header(t, "Accept", "application/json");
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

static void set_common(struct transfer *t)
{
	struct kube *kube = t->kube;
	CURL *easy = t->easy;

	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	curl_easy_setopt(easy, CURLOPT_SHARE, kube->share);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* never wait for a resolver thread */
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, kube->plain ? "http" : "https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); /* one handshake, not one for each */
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECT_TO, kube->connect_to);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_new_socket);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, kube->config.user_agent);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, t);
	set_tls(kube, easy);
}

int transfer_start(struct transfer *t, const struct transfer_start *start, struct err *err)
{
	struct kube *kube = t->kube;
	const char *token = NULL;
	int r = kube_token(kube, &token, err);

	if (r < 0)
		return r;
	buf_done(&t->in);
	t->too_long = t->answered = t->readable = false;
	t->status = 0;
	t->retry_after_us = 0;
	t->error[0] = '\0';
	t->token_serial = kube->token_serial;
	t->easy = curl_easy_init();
	if (!t->easy)
		abort(); /* out of memory */
	if (token) {
		_cleanup_free_ char *bearer = xasprintf("Bearer %s", token);

		add_header(t, "Authorization", bearer);
	}
	set_common(t);
	set_request(t, start);
	t->next = kube->transfers;
	if (t->next)
		t->next->prev = t;
	kube->transfers = t;
	if (curl_multi_add_handle(kube->multi, t->easy) != CURLM_OK) {
		transfer_stop(t);
		return err_set(err, ERR_INTERNAL, EIO, "libcurl does not take the request");
	}
	return 0;
}

int kube_multi_init(struct kube *kube, struct err *err)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, ERR_INTERNAL, EIO, "cannot initialise libcurl");
	kube->multi = curl_multi_init();
	kube->share = curl_share_init();
	if (!kube->multi || !kube->share)
		abort(); /* out of memory */
	kube->timer = loop_timer_new(kube->loop, on_timer, kube);
	curl_share_setopt(kube->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	curl_multi_setopt(kube->multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
	curl_multi_setopt(kube->multi, CURLMOPT_SOCKETDATA, kube);
	curl_multi_setopt(kube->multi, CURLMOPT_TIMERFUNCTION, watch_clock);
	curl_multi_setopt(kube->multi, CURLMOPT_TIMERDATA, kube);
	curl_multi_setopt(kube->multi, CURLMOPT_MAXCONNECTS, MAX_CONNECTIONS);
	curl_multi_setopt(kube->multi, CURLMOPT_MAX_HOST_CONNECTIONS, MAX_CONNECTIONS);
	return 0;
}

void kube_multi_done(struct kube *kube)
{
	if (!kube->multi)
		return;
	curl_multi_setopt(kube->multi, CURLMOPT_SOCKETFUNCTION, NULL);
	curl_multi_setopt(kube->multi, CURLMOPT_TIMERFUNCTION, NULL);
	curl_multi_cleanup(kube->multi);
	curl_share_cleanup(kube->share);
	while (kube->sockets)
		socket_free(kube->sockets);
	loop_timer_free(kube->timer);
	curl_global_cleanup();
}

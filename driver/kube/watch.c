// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/internal.h"

/*
 * A watch is in one of three states: listing ("list" is set), watching ("t.easy" is set), or
 * waiting for its timer after an error.  The server ends each WATCH after "timeoutSeconds"; then
 * the next one goes on at the last version seen.
 */

#define LIST_TIMEOUT_US (30 * 1000000ULL)
/* client-go takes 5 to 10 minutes; by chance, so that nodes do not reconnect together. */
#define WATCH_MIN_S 290U
#define WATCH_MAX_S 580U
#define WATCH_GRACE_S 30U
/* The API server sends the header of a WATCH at once. */
#define ANSWER_TIMEOUT_US (30 * 1000000ULL)
/* A WATCH that ends sooner counts as failed, or a broken server would keep us spinning. */
#define WATCH_SHORT_US 1000000ULL

struct kube_watch {
	struct transfer t;
	struct kube *kube;
	char *path, *query;
	char *version; /* resourceVersion to go on from; NULL: list first */
	struct kube_watch_ops ops;
	void *data;
	struct kube_request *list;
	struct loop_timer *timer;
	unsigned int attempt;
	uint64_t started_us;
	struct err failure; /* found in the events of the running WATCH */
	unsigned int epoch; /* counted up by each stop: what was read before is void */
	unsigned int busy;
	bool dead;
	struct kube_watch *prev, *next;
};

static void watch_start(struct kube_watch *w);

static void watch_stop(struct kube_watch *w)
{
	w->epoch++;
	kube_cancel(w->list);
	w->list = NULL;
	transfer_stop(&w->t);
	loop_timer_stop(w->timer);
}

static void set_version(struct kube_watch *w, const char *version)
{
	char *copy = version && *version ? xstrdup(version) : NULL;

	free(w->version);
	w->version = copy;
}

static void watch_unref(struct kube_watch *w)
{
	if (--w->busy > 0 || !w->dead)
		return;
	loop_timer_free(w->timer);
	free(w->path);
	free(w->query);
	free(w->version);
	free(w);
}

/* Tell about an error and try again after a back-off, with a new list when "relist" is set. */
static void watch_failed(struct kube_watch *w, const struct err *err, bool relist,
			 uint64_t retry_after_us)
{
	uint64_t delay_us = kube_backoff_us(w->attempt);

	watch_stop(w);
	if (relist)
		set_version(w, NULL);
	w->attempt++;
	loop_timer_set(w->timer, delay_us > retry_after_us ? delay_us : retry_after_us);
	if (w->ops.failed)
		w->ops.failed(err, w->data);
}

/* The error that an ERROR event or a refused WATCH carries; true when only a new list helps. */
static bool is_expired(int code)
{
	return code == 410;
}

/* One event; false when the WATCH is to be ended: w->failure tells why. */
static bool handle_event(struct kube_watch *w, const char *line, size_t len)
{
	_cleanup_json_ json_t *event = kube_parse(line, len, &w->failure);
	const char *type = json_path_string(event, "type");
	const char *version = json_path_string(event, "object.metadata.resourceVersion");
	json_t *object = json_object_get(event, "object");

	if (!event)
		return false;
	if (!type || !json_is_object(object)) {
		err_set(&w->failure, ERR_RETRY, EPROTO, "an event has no type or no object");
		return false;
	}
	if (streq(type, "ERROR")) {
		const json_t *code = json_object_get(object, "code");
		const char *message = json_path_string(object, "message");

		err_set(&w->failure, ERR_RETRY,
			is_expired((int)json_integer_value(code)) ? ESTALE : EREMOTEIO,
			"the API server ended it: %s", message ? message : "no reason given");
		return false;
	}
	if (!version) {
		err_set(&w->failure, ERR_RETRY, EPROTO, "an object has no resourceVersion");
		return false;
	}
	set_version(w, version);
	w->attempt = 0;
	if (streq(type, "ADDED") || streq(type, "MODIFIED") || streq(type, "DELETED")) {
		if (w->ops.changed)
			w->ops.changed(type, object, w->data);
	}
	return true; /* BOOKMARK, and types to come, only move the version */
}

/* Lines of a WATCH that is answered with 200. */
static void handle_lines(struct kube_watch *w)
{
	struct buf in = w->t.in;
	unsigned int epoch = w->epoch;
	size_t done = 0;
	bool more = true;

	w->t.in = (struct buf){ 0 };
	while (more && w->epoch == epoch) {
		const char *start = in.data + done;
		const char *end = memchr(start, '\n', in.len - done);

		if (!end)
			break;
		done += (size_t)(end - start) + 1;
		if (end > start)
			more = handle_event(w, start, (size_t)(end - start));
	}
	if (w->epoch == epoch) {
		size_t left = in.len - done;

		if (more && left > KUBE_EVENT_MAX) {
			err_set(&w->failure, ERR_RETRY, EFBIG, "an event is longer than %u bytes",
				KUBE_EVENT_MAX);
			more = false;
		}
		if (more && left > 0)
			buf_add(&w->t.in, in.data + done, left);
		if (!more)
			err_wrap(&w->failure, "WATCH %s", w->path);
		if (!more)
			watch_failed(w, &w->failure, true, 0);
	}
	buf_done(&in);
}

static void on_data(struct transfer *t)
{
	struct kube_watch *w = container_of(t, struct kube_watch, t);
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		return; /* the text of an error: on_done() reads it */
	w->busy++;
	handle_lines(w);
	watch_unref(w);
}

static void on_done(struct transfer *t, CURLcode result)
{
	struct kube_watch *w = container_of(t, struct kube_watch, t);
	_cleanup_json_ json_t *body = NULL;
	bool short_lived = clock_us() - w->started_us < WATCH_SHORT_US;
	struct err err = { 0 };

	w->busy++;
	if (t->status == 200 && !short_lived) /* connecting took long: no */
		w->attempt = 0;
	if (result == CURLE_OK && t->status != 200)
		body = kube_parse(t->in.data ? t->in.data : "", t->in.len, NULL);
	if (kube_reply_err(t, result, "WATCH", w->path, body, &err) < 0) {
		if (t->status == 401)
			kube_token_renew(w->kube, t->token_serial);
		watch_failed(w, &err, is_expired(t->status), t->retry_after_us);
	} else if (short_lived) {
		err_set(&err, ERR_RETRY, ECONNRESET, "WATCH %s: the API server ended it at once",
			w->path);
		watch_failed(w, &err, false, 0);
	} else {
		watch_start(w);
	}
	watch_unref(w);
}

static void on_list(const struct kube_reply *reply, void *data)
{
	static const struct err no_list = {
		.code = -EPROTO,
		.kind = ERR_RETRY,
		.msg = "the answer to a LIST is not a list with a resourceVersion",
	};
	struct kube_watch *w = data;
	const char *version = json_path_string(reply->body, "metadata.resourceVersion");
	json_t *items = json_object_get(reply->body, "items");
	unsigned int epoch = w->epoch;

	w->list = NULL;
	w->busy++;
	if (reply->err.code < 0) {
		watch_failed(w, &reply->err, true, 0);
	} else if (!version || !(json_is_array(items) || json_is_null(items))) {
		watch_failed(w, &no_list, true, 0);
	} else {
		_cleanup_json_ json_t *none = json_array(); /* Go writes an empty list as null */

		set_version(w, version);
		if (w->ops.listed)
			w->ops.listed(json_is_array(items) ? items : none, w->data);
		if (w->epoch == epoch)
			watch_start(w);
	}
	watch_unref(w);
}

static void start_list(struct kube_watch *w)
{
	_cleanup_free_ char *path =
		xasprintf("%s%s%s", w->path, w->query ? "?" : "", w->query ? w->query : "");
	struct kube_call call = { .method = "GET", .path = path, .timeout_us = LIST_TIMEOUT_US };

	w->list = kube_send(w->kube, &call, on_list, w);
}

static void start_watch(struct kube_watch *w)
{
	unsigned int seconds = WATCH_MIN_S + arc4random_uniform(WATCH_MAX_S - WATCH_MIN_S + 1);
	_cleanup_free_ char *path = xasprintf(
		"%s?%s%swatch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=%s",
		w->path, w->query ? w->query : "", w->query ? "&" : "", seconds, w->version);
	struct transfer_start start = {
		.method = "GET",
		.path = path,
		.timeout_us = (seconds + WATCH_GRACE_S) * 1000000ULL,
	};
	struct err err = { 0 };

	w->started_us = clock_us();
	err_reset(&w->failure);
	loop_timer_set(w->timer, ANSWER_TIMEOUT_US);
	if (transfer_start(&w->t, &start, &err) < 0) {
		err_wrap(&err, "WATCH %s", w->path);
		watch_failed(w, &err, false, 0);
	}
}

static void watch_start(struct kube_watch *w)
{
	if (w->version)
		start_watch(w);
	else
		start_list(w);
}

/* The end of a back-off, or the time by which a WATCH must have been answered. */
static void on_timer(void *data)
{
	struct kube_watch *w = data;
	struct kube *kube = w->kube;
	struct err err = { 0 };

	kube_enter(kube);
	w->busy++;
	if (!w->t.easy) {
		watch_start(w);
	} else if (!w->t.answered) {
		err_set(&err, ERR_RETRY, ETIMEDOUT, "WATCH %s: no answer from %s", w->path,
			kube->base);
		watch_failed(w, &err, false, 0);
	}
	watch_unref(w);
	kube_leave(kube);
}

struct kube_watch *kube_watch_new(struct kube *kube, const char *path, const char *query,
				  const struct kube_watch_ops *ops, void *data)
{
	struct kube_watch *w = xnew(struct kube_watch);

	w->kube = w->t.kube = kube;
	w->t.data = on_data;
	w->t.done = on_done;
	w->t.in_max = 2 * KUBE_EVENT_MAX; /* on_data() checks more closely */
	w->path = xstrdup(path);
	w->query = query && *query ? xstrdup(query) : NULL;
	w->ops = *ops;
	w->data = data;
	w->timer = loop_timer_new(kube->loop, on_timer, w);
	w->next = kube->watches;
	if (w->next)
		w->next->prev = w;
	kube->watches = w;
	start_list(w);
	return w;
}

void kube_watch_relist(struct kube_watch *watch)
{
	watch_stop(watch);
	set_version(watch, NULL);
	start_list(watch);
}

struct kube_watch *kube_watch_free(struct kube_watch *watch)
{
	if (!watch || watch->dead)
		return NULL;
	watch_stop(watch);
	if (watch->prev)
		watch->prev->next = watch->next;
	else
		watch->kube->watches = watch->next;
	if (watch->next)
		watch->next->prev = watch->prev;
	watch->dead = true;
	watch->busy++;
	watch_unref(watch);
	return NULL;
}

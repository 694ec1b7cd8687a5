/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PUBLISH_SERVER_H
#define TEST_PUBLISH_SERVER_H

/*
 * An API server for ResourceSlices with its client, the loop's timers and the clock, played in
 * simulated time.  It takes the place of kube/, loop/ and base/clock.c in the test program, so
 * every order of events can be produced and nothing waits.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"
#include "loop/loop.h"

struct loop_timer {
	loop_timer_fn *fn;
	void *data;
	uint64_t due;
	bool armed;
	struct loop_timer *next;
};

struct kube_request {
	char *method, *path;
	json_t *body;
	uint64_t due;
	kube_reply_fn *fn;
	void *data;
};

struct kube_watch {
	struct kube_watch_ops ops;
	void *data;
	bool listing;
	uint64_t list_due;
	json_t *list; /* the snapshot that is on its way */
	long long sent; /* events up to this version have been delivered */
};

struct fault {
	const char *method;
	int status;
	bool lost; /* it was done all the same, the answer got lost */
	int times;
};

static struct {
	uint64_t now;
	json_t *objects; /* name → object */
	json_t *events; /* [{due, version, type, object}] */
	long long version;
	unsigned int names;
	const char *node_uid; /* NULL: there is no such node */

	struct kube_request *request;
	struct kube_watch *watch;
	struct loop_timer *timers;

	uint64_t watch_delay, list_delay;
	struct fault fault;
	bool drop_counters, drop_capacity;
	bool drop_lists; /* without a word */
	bool refuse_lists; /* as with the feature gate off: 422 */
	const char *refusal; /* what a fault of 422 says */
	void (*on_commit)(void);
	json_t *log; /* ["POST", "PUT 00000-…", …] */
	unsigned int n_lists, n_node_reads;
} server;

uint64_t clock_us(void)
{
	return server.now;
}

int64_t time_now_us(void)
{
	return (int64_t)server.now;
}

void time_rfc3339(int64_t us, char out[TIME_RFC3339_MAX])
{
	snprintf(out, TIME_RFC3339_MAX, "T+%.3fs", (double)us / 1e6);
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *data)
{
	struct loop_timer *t = xnew(struct loop_timer);

	(void)loop;
	*t = (struct loop_timer){ .fn = fn, .data = data, .next = server.timers };
	server.timers = t;
	return t;
}

void loop_timer_set(struct loop_timer *t, uint64_t delay_us)
{
	t->armed = true;
	t->due = server.now + delay_us;
}

void loop_timer_stop(struct loop_timer *t)
{
	t->armed = false;
}

struct loop_timer *loop_timer_free(struct loop_timer *t)
{
	for (struct loop_timer **p = &server.timers; t && *p; p = &(*p)->next) {
		if (*p == t) {
			*p = t->next;
			break;
		}
	}
	free(t);
	return NULL;
}

static void deliver(json_t *event)
{
	struct kube_watch *w = server.watch;
	long long version = json_integer_value(json_object_get(event, "version"));

	if (!w || w->listing || version <= w->sent)
		return;
	w->sent = version;
	w->ops.changed(json_path_string(event, "type"), json_object_get(event, "object"), w->data);
}

/* Every change: a new version and an event for the watch. */
static void commit(const char *name, json_t *object, const char *type)
{
	json_t *event = json_object();
	char version[32];

	snprintf(version, sizeof(version), "%lld", ++server.version);
	json_set_string(json_object_get(object, "metadata"), "resourceVersion", version);
	json_set_int(event, "due", (long long)(server.now + server.watch_delay));
	json_set_int(event, "version", server.version);
	json_set_string(event, "type", type);
	json_object_set_new(event, "object", json_deep_copy(object));
	if (streq(type, "DELETED"))
		json_object_del(server.objects, name);
	else
		json_object_set_new(server.objects, name, object);
	if (server.on_commit)
		server.on_commit();
	if (server.watch_delay) {
		json_array_append_new(server.events, event);
	} else {
		deliver(event);
		json_decref(event);
	}
}

static void server_delete(const char *name)
{
	_cleanup_json_ json_t *object = json_incref(json_object_get(server.objects, name));

	if (object)
		commit(name, object, "DELETED");
}

static void server_wipe(void)
{
	while (json_object_size(server.objects))
		server_delete(json_object_iter_key(json_object_iter(server.objects)));
}

static void server_create(json_t *object)
{
	json_t *metadata = json_object_get(object, "metadata");
	_cleanup_free_ char *name = NULL, *uid = xasprintf("uid-%u", ++server.names);

	if (json_object_get(metadata, "name"))
		name = xstrdup(json_path_string(object, "metadata.name"));
	else
		name = xasprintf("%s%05u", json_path_string(object, "metadata.generateName"),
				 server.names);
	json_set_string(metadata, "name", name);
	json_set_string(metadata, "uid", uid);
	commit(name, object, "ADDED");
}

/* Somebody's own change of a stored slice. */
static void server_edit(const char *name, const char *path, json_t *value)
{
	json_t *object = json_deep_copy(json_object_get(server.objects, name));
	_cleanup_free_ char *parent = xstrdup(path);
	char *dot = strrchr(parent, '.');

	*dot = '\0';
	json_object_set_new(json_path(object, parent), dot + 1, value);
	commit(name, object, "MODIFIED");
}

static void drop_lists(json_t *attributes)
{
	const char *key;
	json_t *value;

	json_object_foreach(attributes, key, value) {
		json_object_del(value, "ints");
		json_object_del(value, "strings");
	}
}

static void drop_fields(json_t *object)
{
	json_t *spec = json_object_get(object, "spec"), *device;
	size_t i;

	if (server.drop_counters)
		json_object_del(spec, "sharedCounters");
	json_array_foreach(json_object_get(spec, "devices"), i, device) {
		if (server.drop_counters)
			json_object_del(device, "consumesCounters");
		if (server.drop_capacity)
			json_object_del(device, "capacity");
		if (server.drop_lists)
			drop_lists(json_object_get(device, "attributes"));
	}
}

static int do_put(const char *name, const json_t *body, json_t **answer)
{
	json_t *old = json_object_get(server.objects, name);
	json_t *object;

	if (!old)
		return 404;
	if (!streq_null(json_path_string(old, "metadata.resourceVersion"),
			json_path_string(body, "metadata.resourceVersion")) ||
	    !streq_null(json_path_string(old, "metadata.uid"),
			json_path_string(body, "metadata.uid")))
		return 409;
	object = json_deep_copy(body);
	drop_fields(object);
	*answer = json_incref(object);
	commit(name, object, "MODIFIED");
	return 200;
}

static int do_delete(const char *name, const json_t *body)
{
	json_t *old = json_object_get(server.objects, name);

	if (!old)
		return 404;
	if (!streq_null(json_path_string(old, "metadata.resourceVersion"),
			json_path_string(body, "preconditions.resourceVersion")) ||
	    !streq_null(json_path_string(old, "metadata.uid"),
			json_path_string(body, "preconditions.uid")))
		return 409;
	server_delete(name);
	return 200;
}

static int do_request(const struct kube_request *r, json_t **answer)
{
	const char *name = strrchr(r->path, '/') + 1;

	if (starts_with(r->path, "/api/v1/nodes/")) {
		server.n_node_reads++;
		if (!server.node_uid)
			return 404;
		*answer = json_pack("{s:{s:s,s:s}}", "metadata", "name", name, "uid",
				    server.node_uid);
		return 200;
	}
	if (streq(r->method, "DELETE"))
		return do_delete(name, r->body);
	if (server.refuse_lists && devices_have_lists(json_path(r->body, "spec.devices")))
		return 422;
	if (streq(r->method, "PUT"))
		return do_put(name, r->body, answer);
	*answer = json_deep_copy(r->body);
	drop_fields(*answer);
	json_incref(*answer);
	server_create(*answer);
	return 201;
}

static enum err_kind kind_of(int status)
{
	switch (status) {
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return ERR_CONFLICT;
	case 400:
	case 422:
		return ERR_INVALID;
	case 401:
	case 403:
		return ERR_PERMANENT;
	default:
		return ERR_RETRY;
	}
}

static void request_free(struct kube_request *r)
{
	free(r->method);
	free(r->path);
	json_decref(r->body);
	free(r);
}

static void run_request(void)
{
	struct kube_request *r = server.request;
	struct fault *f = &server.fault;
	bool faulty = f->times > 0 && streq(f->method, r->method);
	struct kube_reply reply = { 0 };
	json_t *answer = NULL;
	char entry[256];

	snprintf(entry, sizeof(entry), "%s %s", r->method, strrchr(r->path, '/') + 1);
	json_array_append_new(server.log, json_string(entry));
	if (faulty)
		f->times--;
	if (!faulty || f->lost)
		reply.status = do_request(r, &answer);
	if (faulty)
		reply.status = f->lost ? 0 : f->status;
	if (reply.status / 100 == 2)
		reply.body = answer;
	else
		err_set(&reply.err, kind_of(reply.status), EIO, "%s: HTTP %d%s", entry,
			reply.status,
			reply.status != 422 ? ""
			: faulty	    ? server.refusal ? server.refusal : ""
					    : " ResourceSlice.resource.k8s.io \"x\" is invalid: "
					      "spec.devices[0].attributes[resource.kubernetes.io/pcieRoot]: "
					      "Invalid value: \"\": must specify one of: `int`, `bool`");
	server.request = NULL;
	r->fn(&reply, r->data);
	json_decref(answer);
	request_free(r);
}

struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, kube_reply_fn *fn,
			       void *data)
{
	struct kube_request *r = xnew(struct kube_request);

	(void)kube;
	if (server.request)
		abort(); /* one at a time */
	*r = (struct kube_request){ .method = xstrdup(call->method),
				    .path = xstrdup(call->path),
				    .body = json_deep_copy(call->body),
				    .due = server.now + 1000,
				    .fn = fn,
				    .data = data };
	server.request = r;
	return r;
}

void kube_cancel(struct kube_request *r)
{
	if (r == server.request)
		server.request = NULL;
	request_free(r);
}

/* The snapshot is taken now and arrives later. */
void kube_watch_relist(struct kube_watch *w)
{
	const char *name;
	json_t *object;

	server.n_lists++;
	json_decref(w->list);
	w->list = json_array();
	json_object_foreach(server.objects, name, object)
		json_array_append_new(w->list, json_deep_copy(object));
	w->listing = true;
	w->list_due = server.now + server.list_delay;
	w->sent = server.version;
}

struct kube_watch *kube_watch_new(struct kube *kube, const char *path, const char *query,
				  const struct kube_watch_ops *ops, void *data)
{
	struct kube_watch *w = xnew(struct kube_watch);

	(void)kube;
	if (!streq(path, "/apis/resource.k8s.io/v1/resourceslices") ||
	    !streq(query, "fieldSelector=spec.driver%3Dtwinrail.dev%2Cspec.nodeName%3Dnode1"))
		abort();
	w->ops = *ops;
	w->data = data;
	server.watch = w;
	kube_watch_relist(w);
	return w;
}

struct kube_watch *kube_watch_free(struct kube_watch *w)
{
	if (w)
		json_decref(w->list);
	free(w);
	server.watch = NULL;
	return NULL;
}

static void run_list(struct kube_watch *w)
{
	_cleanup_json_ json_t *list = TAKE_PTR(w->list);
	size_t i = 0;

	w->listing = false;
	w->ops.listed(list, w->data);
	/* Events that came meanwhile are delivered by their time, or now when that is over. */
	while (i < json_array_size(server.events) && !server.watch->listing) {
		_cleanup_json_ json_t *event = json_incref(json_array_get(server.events, i));

		if ((uint64_t)json_integer_value(json_object_get(event, "due")) > server.now)
			break;
		json_array_remove(server.events, i);
		deliver(event);
	}
}

/* The next thing that is due until "end"; false when there is none. */
static bool run_next(uint64_t end)
{
	struct kube_watch *w = server.watch;
	json_t *first = json_array_get(server.events, 0);
	uint64_t event_due =
		first ? (uint64_t)json_integer_value(json_object_get(first, "due")) : UINT64_MAX;
	uint64_t due = end + 1;
	struct loop_timer *timer = NULL;
	enum { NONE, REQUEST, LIST, EVENT, TIMER } what = NONE;

	if (server.request && server.request->due < due)
		due = server.request->due, what = REQUEST;
	if (w && w->listing && w->list_due < due)
		due = w->list_due, what = LIST;
	if (w && !w->listing && event_due < due)
		due = event_due, what = EVENT;
	for (struct loop_timer *t = server.timers; t; t = t->next)
		if (t->armed && t->due < due)
			due = t->due, what = TIMER, timer = t;
	if (what == NONE)
		return false;
	if (due > server.now)
		server.now = due;
	if (what == REQUEST) {
		run_request();
	} else if (what == LIST) {
		run_list(w);
	} else if (what == EVENT) {
		_cleanup_json_ json_t *event = json_incref(first);

		json_array_remove(server.events, 0);
		deliver(event);
	} else {
		timer->armed = false;
		timer->fn(timer->data);
	}
	return true;
}

static void run_for(double seconds)
{
	uint64_t end = server.now + (uint64_t)(seconds * 1e6);

	while (run_next(end))
		;
	server.now = end;
}

static void server_start(void)
{
	memset(&server, 0, sizeof(server));
	server.now = 1000000;
	server.version = 100;
	server.objects = json_object();
	server.events = json_array();
	server.log = json_array();
	server.node_uid = "node-uid-1";
	server.watch_delay = 2000;
	server.list_delay = 1000;
}

static void server_stop(void)
{
	json_decref(server.objects);
	json_decref(server.events);
	json_decref(server.log);
}

#endif

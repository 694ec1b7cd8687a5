/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PREPARE_DOUBLES_H
#define TEST_PREPARE_DOUBLES_H

/* Test doubles of rpc/ and kube/ on a real event loop: the linker takes these instead. */

#include "base/log.h"
#include "kube/kube.h"
#include "loop/loop.h"
#include "rpc/dra.h"
#include "unit/test_prepare_machine.h"

#define DRIVER "twinrail.dev"

struct dra_call {
	struct dra_claim claims[4];
	size_t n;
	char *answers[4]; /* "request device cdi,cdi;…", or "error: text" */
	bool finished, failed, cancelled;
};

/* The fake API server: objects by path; a path without one answers 404. */
static json_t *api_objects;
static int api_status; /* not 0: answer everything with it */
static bool api_away; /* answer nothing */
static struct strlist api_log;
static struct loop *loop;

struct kube_request {
	char *path;
	kube_reply_fn *fn;
	void *data;
	struct kube_request *next;
};
static struct kube_request *api_requests; /* not answered */

static void api_forget(struct kube_request *request)
{
	struct kube_request **p = &api_requests;

	while (*p != request)
		p = &(*p)->next;
	*p = request->next;
	free(request->path);
	free(request);
}

static void api_answer(void *data)
{
	struct kube_request *request = api_requests, *r = data;
	struct kube_reply reply = { .status = api_status };

	while (request && request != r)
		request = request->next;
	if (!request || api_away)
		return; /* cancelled, or nobody is there */
	reply.body = json_object_get(api_objects, request->path);
	if (!api_status)
		reply.status = reply.body ? 200 : 404;
	if (reply.status != 200) {
		err_set(&reply.err, reply.status == 404 ? ERR_NOT_FOUND : ERR_PERMANENT, EIO,
			"GET %s: status %d", request->path, reply.status);
		reply.body = NULL;
	}
	kube_reply_fn *fn = request->fn;
	void *fn_data = request->data;

	api_forget(request);
	fn(&reply, fn_data);
}

struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, kube_reply_fn *fn,
			       void *data)
{
	struct kube_request *r = xnew(struct kube_request);

	(void)kube;
	assert_string_equal(call->method, "GET");
	strlist_add(&api_log, call->path);
	r->path = xstrdup(call->path);
	r->fn = fn;
	r->data = data;
	r->next = api_requests;
	api_requests = r;
	loop_post(loop, api_answer, r);
	return r;
}

void kube_cancel(struct kube_request *request)
{
	api_forget(request);
}

static void api_back(void)
{
	api_away = false;
	for (struct kube_request *r = api_requests; r; r = r->next)
		loop_post(loop, api_answer, r);
}

size_t dra_call_claims(const struct dra_call *call, const struct dra_claim **ret)
{
	*ret = call->claims;
	return call->n;
}

void dra_call_answer(struct dra_call *call, size_t i, const struct dra_device *devices,
		     size_t n_devices, const char *error)
{
	struct buf b = { 0 };

	assert_true(i < call->n);
	assert_null(call->answers[i]);
	if (error)
		buf_printf(&b, "error: %s", error);
	for (size_t k = 0; !error && k < n_devices; k++) {
		assert_string_equal(devices[k].pool, "node1");
		buf_printf(&b, "%s%s %s ", k ? ";" : "", devices[k].request, devices[k].device);
		for (size_t c = 0; devices[k].cdi_ids && devices[k].cdi_ids[c]; c++)
			buf_printf(&b, "%s%s", c ? "," : "", devices[k].cdi_ids[c]);
	}
	call->answers[i] = buf_take(&b);
}

bool dra_call_cancelled(const struct dra_call *call)
{
	return call->cancelled;
}

void dra_call_finish(struct dra_call *call)
{
	for (size_t i = 0; i < call->n; i++)
		assert_non_null(call->answers[i]);
	assert_false(call->finished);
	call->finished = true;
	loop_quit(loop, 0);
}

void dra_call_fail(struct dra_call *call, const struct err *err)
{
	assert_true(err->code < 0);
	assert_false(call->finished);
	call->finished = call->failed = true;
	loop_quit(loop, 0);
}

static void call_init(struct dra_call *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(call->answers); i++) {
		free(call->answers[i]);
		free(call->claims[i].namespace);
		free(call->claims[i].name);
		free(call->claims[i].uid);
	}
	*call = (struct dra_call){ 0 };
}

static void call_add(struct dra_call *call, const char *name, const char *uid)
{
	call->claims[call->n++] = (struct dra_claim){ xstrdup("ns"), xstrdup(uid), xstrdup(name) };
}

static void on_watchdog(void *data)
{
	(void)data;
	fail_msg("nothing happened for 20 s");
}

static void run_until(const bool *flag)
{
	struct loop_timer *watchdog = loop_timer_new(loop, on_watchdog, NULL);

	loop_timer_set(watchdog, 20000000);
	while (!*flag)
		loop_run(loop);
	loop_timer_free(watchdog);
}

static void on_pause(void *data)
{
	*(bool *)data = true;
	loop_quit(loop, 0);
}

static void run_for(uint64_t us)
{
	bool over = false;
	struct loop_timer *timer = loop_timer_new(loop, on_pause, &over);

	loop_timer_set(timer, us);
	run_until(&over);
	loop_timer_free(timer);
}

static char *claim_path(const char *name)
{
	return xasprintf("/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/%s", name);
}

/* Takes over "object". */
static void api_put_claim(const char *name, json_t *object)
{
	_cleanup_free_ char *path = claim_path(name);

	json_object_set_new(api_objects, path, object);
}

static void api_put(const char *name, const char *uid, const char *results)
{
	api_put_claim(name, claim_object(name, uid, results));
}

static void api_delete(const char *name)
{
	_cleanup_free_ char *path = claim_path(name);

	json_object_del(api_objects, path);
}

/* Result "i" of a stored claim; borrowed. */
static json_t *api_result(const char *name, size_t i)
{
	_cleanup_free_ char *path = claim_path(name);
	json_t *claim = json_object_get(api_objects, path);

	return json_array_get(json_path(claim, "status.allocation.devices.results"), i);
}

static void doubles_start(void)
{
	assert_int_equal(loop_new(&loop, NULL), 0);
	api_objects = json_object();
	api_status = 0;
	api_away = false;
}

static void doubles_stop(void)
{
	assert_null(api_requests); /* all were answered or cancelled */
	loop = loop_free(loop);
	json_decref(api_objects);
	strlist_done(&api_log);
}

#endif

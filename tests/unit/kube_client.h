/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_KUBE_CLIENT_H
#define TWINRAIL_TESTS_KUBE_CLIENT_H

/* A client and the fake API server: what the tests of requests share. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "kube/internal.h"
#include "unit/fakeapi.h"

#define NODES "/api/v1/nodes"
#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

struct ctx {
	struct fakeapi api;
	struct loop *loop;
	struct kube *kube;
	struct kube_request *other; /* what a callback cancels */
	/* the last reply */
	int calls, wanted;
	int status;
	struct err err;
	json_t *body;
};

static char dir[] = "/tmp/twinrail-test-kube-XXXXXX";

static inline void record(const struct kube_reply *reply, void *data)
{
	struct ctx *c = data;

	c->calls++;
	c->status = reply->status;
	c->err = reply->err;
	json_decref(c->body);
	c->body = json_incref(reply->body);
	if (c->calls >= c->wanted)
		loop_quit(c->loop, 0);
}

static inline void give_up(void *data)
{
	loop_quit(data, -ETIMEDOUT);
}

/* Run the loop until loop_quit() or for "ms"; 0 or -ETIMEDOUT. */
static inline int run(struct ctx *c, unsigned int ms)
{
	struct loop_timer *timer = loop_timer_new(c->loop, give_up, c->loop);
	int r;

	loop_timer_set(timer, ms * 1000ULL);
	r = loop_run(c->loop);
	loop_timer_free(timer);
	return r;
}

static inline void call(struct ctx *c, const struct kube_call *what)
{
	c->calls = 0;
	c->wanted = 1;
	assert_non_null(kube_send(c->kube, what, record, c));
	assert_int_equal(c->calls, 0);
	assert_int_equal(run(c, 30000), 0);
	assert_int_equal(c->calls, 1);
}

static inline void get(struct ctx *c, const char *path)
{
	call(c, &(struct kube_call){ .method = "GET", .path = path });
}

static inline void fault(struct ctx *c, const char *json)
{
	fakeapi_do(&c->api, "POST", "/_fault", json);
}

static inline void new_client(struct ctx *c, const struct kube_config *config)
{
	struct err err = { 0 };

	kube_free(c->kube);
	c->kube = NULL;
	if (kube_new(c->loop, config, &c->kube, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline int setup_group(void **state)
{
	struct ctx *c = xnew(struct ctx);

	if (!mkdtemp(dir))
		return -1;
	fakeapi_start(&c->api, NULL, NULL);
	*state = c;
	return 0;
}

static inline int teardown_group(void **state)
{
	struct ctx *c = *state;

	fakeapi_stop(&c->api);
	free(c);
	rmdir(dir);
	return 0;
}

static inline int setup(void **state)
{
	struct ctx *c = *state;

	fakeapi_do(&c->api, "DELETE", "/_fault", NULL);
	fakeapi_do(&c->api, "DELETE", "/_log", NULL);
	fakeapi_do(&c->api, "DELETE", NODES, NULL);
	fakeapi_do(&c->api, "POST", NODES, "{\"metadata\":{\"name\":\"n1\"}}");
	assert_int_equal(loop_new(&c->loop, NULL), 0);
	new_client(c, &(struct kube_config){ .server = c->api.url });
	return 0;
}

static inline int teardown(void **state)
{
	struct ctx *c = *state;

	json_decref(c->body);
	c->body = NULL;
	c->kube = kube_free(c->kube);
	c->loop = loop_free(c->loop);
	return 0;
}

#endif

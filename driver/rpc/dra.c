// SPDX-License-Identifier: Apache-2.0
#include "rpc/dra.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "rpc/codec.h"
#include "rpc/listener.h"
#include "rpc/registration.h"
#include "rpc/server.h"

/*
 * Kubelet has a handful of calls open; more than this is somebody else.  For each of the two calls:
 * Prepares that wait must not keep Unprepare from releasing what they wait for.
 */
#define CALLS_MAX 256

struct dra_call {
	struct dra_server *server; /* valid while "rpc" is set */
	/* NULL: the server went away before the handler was done, nobody hears the answer. */
	struct rpc_call *rpc;
	struct arena *arena;
	enum dra_op op;
	struct dra_claim *claims;
	size_t n;
	struct codec_reply *reply;
	uint64_t start_us;
	struct dra_call *prev, *next; /* in server->calls */
};

struct dra_server {
	struct loop *loop;
	struct dra_server_config config; /* its strings are used at the start only */
	uint8_t *info; /* the answer to GetInfo */
	size_t info_len;
	struct rpc_server *rpc;
	struct listener *service;
	struct registration *registration;
	struct dra_call *calls; /* those the handlers have */
	size_t n_calls[2]; /* by enum dra_op */

	bool stopping;
	bool expired; /* the grace period is over */
	struct loop_timer *grace;
	void (*done)(void *data);
	void *done_data;
};

static const char *const op_name[] = { "prepare", "unprepare" };

static enum rpc_status status_of(enum err_kind kind)
{
	switch (kind) {
	case ERR_INVALID:
		return RPC_INVALID_ARGUMENT;
	case ERR_NOT_FOUND:
		return RPC_NOT_FOUND;
	case ERR_CONFLICT:
		return RPC_ABORTED;
	case ERR_RETRY:
		return RPC_UNAVAILABLE;
	case ERR_PERMANENT:
		return RPC_FAILED_PRECONDITION;
	case ERR_INTERNAL:
		return RPC_INTERNAL;
	case ERR_NONE:
		break;
	}
	return RPC_UNKNOWN;
}

static void rpc_fail(struct rpc_call *rpc, const struct err *err)
{
	rpc_call_fail(rpc, status_of(err->kind), err->msg);
}

/*
 * Calls.
 */

static void call_free(struct dra_call *call)
{
	arena_free(call->arena);
	free(call);
}

static void call_link(struct dra_server *server, struct dra_call *call)
{
	call->next = server->calls;
	if (call->next)
		call->next->prev = call;
	server->calls = call;
	server->n_calls[call->op]++;
}

static void call_unlink(struct dra_call *call)
{
	if (call->prev)
		call->prev->next = call->next;
	else
		call->server->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
	call->prev = call->next = NULL;
	call->server->n_calls[call->op]--;
}

static void call_end(struct dra_call *call)
{
	if (call->rpc)
		call_unlink(call);
	call_free(call);
}

static void call_fail(struct dra_call *call, enum rpc_status status, const char *text)
{
	log_debug("call failed", KV("op", "%s", op_name[call->op]), KV("claims", "%zu", call->n),
		  KV("status", "%d", (int)status), KV("error", "%s", text));
	if (call->rpc)
		rpc_call_fail(call->rpc, status, text);
	call_end(call);
}

/* On the loop's thread: the handler's turn. */
static void on_call(void *data)
{
	struct dra_call *call = data;
	struct dra_server *server = call->server;
	bool full = server->n_calls[call->op] >= CALLS_MAX;

	call_link(server, call);
	if (server->expired)
		call_fail(call, RPC_UNAVAILABLE, "the driver is stopping");
	else if (full)
		call_fail(call, RPC_RESOURCE_EXHAUSTED, "too many calls at once");
	else if (call->op == DRA_PREPARE)
		server->config.prepare(call, server->config.data);
	else
		server->config.unprepare(call, server->config.data);
}

#define METHOD_ARG(api, op) ((api) << 1 | (op))

/* On the completion queue's thread. */
static void handle_claims(struct rpc_call *rpc, const struct rpc_method *method,
			  const uint8_t *request, size_t len, void *data)
{
	struct dra_server *server = data;
	struct dra_call *call = xnew(struct dra_call);
	struct err err = { 0 };

	call->server = server;
	call->rpc = rpc;
	call->op = method->arg & 1;
	call->start_us = clock_us();
	call->arena = arena_new();
	if (codec_claims(call->arena, request, len, &call->claims, &call->n, &err) < 0) {
		rpc_fail(rpc, &err);
		call_free(call);
		return;
	}
	call->reply =
		codec_reply_new(call->arena, call->op, method->arg >> 1, call->claims, call->n);
	if (call->n == 0) { /* what liveness probes ask */
		rpc_call_reply(rpc, NULL, 0);
		call_free(call);
		return;
	}
	loop_post(server->loop, on_call, call);
}

size_t dra_call_claims(const struct dra_call *call, const struct dra_claim **ret)
{
	*ret = call->claims;
	return call->n;
}

void dra_call_answer(struct dra_call *call, size_t i, const struct dra_device *devices,
		     size_t n_devices, const char *error)
{
	codec_reply_set(call->reply, i, devices, n_devices, error);
}

bool dra_call_cancelled(const struct dra_call *call)
{
	return !call->rpc || rpc_call_cancelled(call->rpc);
}

void dra_call_finish(struct dra_call *call)
{
	assert(codec_reply_complete(call->reply));
	log_debug("call answered", KV("op", "%s", op_name[call->op]), KV("claims", "%zu", call->n),
		  KV("us", "%llu", (unsigned long long)(clock_us() - call->start_us)));
	if (call->rpc) {
		size_t len;
		uint8_t *message = codec_reply_pack(call->reply, &len);

		rpc_call_reply(call->rpc, message, len);
	}
	call_end(call);
}

void dra_call_fail(struct dra_call *call, const struct err *err)
{
	call_fail(call, status_of(err->kind), err->msg);
}

/*
 * Registration.
 */

/* On the completion queue's thread. */
static void handle_info(struct rpc_call *rpc, const struct rpc_method *method,
			const uint8_t *request, size_t len, void *data)
{
	const struct dra_server *server = data;
	struct err err = { 0 };
	uint8_t *copy;

	(void)method;
	if (codec_info_request(request, len, &err) < 0) {
		rpc_fail(rpc, &err);
		return;
	}
	copy = xmalloc(server->info_len);
	memcpy(copy, server->info, server->info_len);
	rpc_call_reply(rpc, copy, server->info_len);
}

struct status {
	struct dra_server *server;
	bool ok;
	char *error;
};

static void on_status(void *data)
{
	struct status *status = data;
	struct dra_server *server = status->server;

	if (!server->stopping) {
		registration_status(server->registration, status->ok);
		server->config.registered(status->ok, status->error, server->config.data);
	}
	free(status->error);
	free(status);
}

/* On the completion queue's thread. */
static void handle_status(struct rpc_call *rpc, const struct rpc_method *method,
			  const uint8_t *request, size_t len, void *data)
{
	struct dra_server *server = data;
	struct err err = { 0 };
	struct status *status;
	char *error;
	bool ok;

	(void)method;
	if (codec_registration_status(request, len, &ok, &error, &err) < 0) {
		rpc_fail(rpc, &err);
		return;
	}
	status = xnew(struct status);
	*status = (struct status){ server, ok, error };
	loop_post(server->loop, on_status, status);
	rpc_call_reply(rpc, NULL, 0);
}

/*
 * The server.
 */

#define DRA(version, method, api, op)                                                              \
	{                                                                                          \
		"/k8s.io.kubelet.pkg.apis.dra." version ".DRAPlugin/" method, handle_claims,       \
			METHOD_ARG(api, op)                                                        \
	}

static const struct rpc_method methods[] = {
	{ "/pluginregistration.Registration/GetInfo", handle_info, 0 },
	{ "/pluginregistration.Registration/NotifyRegistrationStatus", handle_status, 0 },
	DRA("v1", "NodePrepareResources", DRA_V1, DRA_PREPARE),
	DRA("v1", "NodeUnprepareResources", DRA_V1, DRA_UNPREPARE),
	DRA("v1beta1", "NodePrepareResources", DRA_V1BETA1, DRA_PREPARE),
	DRA("v1beta1", "NodeUnprepareResources", DRA_V1BETA1, DRA_UNPREPARE),
};

/* Kubelet takes the first that it knows. */
static const char *const versions[] = { "v1.DRAPlugin", "v1beta1.DRAPlugin", NULL };

static void on_accepted(int fd, void *data)
{
	struct dra_server *server = data;

	rpc_server_add_connection(server->rpc, fd);
}

static void on_failed(const struct err *err, void *data)
{
	struct dra_server *server = data;

	server->config.failed(err, server->config.data);
}

static void close_sockets(struct dra_server *server)
{
	server->registration = registration_free(server->registration);
	server->service = listener_free(server->service);
}

static struct dra_server *server_free(struct dra_server *server)
{
	close_sockets(server);
	rpc_server_free(server->rpc);
	loop_timer_free(server->grace);
	free(server->info);
	free(server);
	return NULL;
}

static void on_grace_over(void *data)
{
	struct dra_server *server = data;

	server->expired = true;
	while (server->calls) {
		struct dra_call *call = server->calls;

		log_debug("call left behind", KV("op", "%s", op_name[call->op]));
		rpc_call_fail(call->rpc, RPC_UNAVAILABLE, "the driver is stopping");
		call_unlink(call);
		call->rpc = NULL;
	}
	rpc_server_cancel_calls(server->rpc);
}

static void on_down(void *data)
{
	struct dra_server *server = data;
	void (*done)(void *data) = server->done;
	void *done_data = server->done_data;

	server_free(server);
	done(done_data);
}

static int open_sockets(struct dra_server *server, struct err *err)
{
	struct listener_config config = { .path = server->config.service_path,
					  .accepted = on_accepted,
					  .failed = on_failed,
					  .data = server };
	_cleanup_free_ char *copy = xstrdup(config.path);
	int r = dir_make(dirname(copy), 0750, err);

	if (r < 0)
		return r;
	r = listener_new(server->loop, &config, &server->service, err);
	if (r < 0)
		return err_wrap(err, "service socket");
	/* Kubelet calls as soon as it sees this one. */
	config.path = server->config.registration_path;
	r = registration_new(server->loop, &config, &server->registration, err);
	if (r < 0)
		return err_wrap(err, "registration socket");
	return 0;
}

int dra_server_new(struct loop *loop, const struct dra_server_config *config,
		   struct dra_server **ret, struct err *err)
{
	struct dra_server *server = xnew(struct dra_server);
	int r;

	server->loop = loop;
	server->config = *config;
	server->grace = loop_timer_new(loop, on_grace_over, server);
	server->info = codec_plugin_info(config->driver_name, config->service_path, versions,
					 &server->info_len);
	r = rpc_server_new(loop, methods, ARRAY_SIZE(methods), server, &server->rpc, err);
	if (r >= 0)
		r = open_sockets(server, err);
	if (r < 0) {
		server_free(server);
		return r;
	}
	*ret = server;
	return 0;
}

void dra_server_stop(struct dra_server *server, uint64_t grace_us, void (*done)(void *data),
		     void *data)
{
	assert(!server->stopping);
	server->stopping = true;
	server->done = done;
	server->done_data = data;
	close_sockets(server);
	loop_timer_set(server->grace, grace_us);
	rpc_server_stop(server->rpc, on_down, server);
}

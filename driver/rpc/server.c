// SPDX-License-Identifier: Apache-2.0
#include "rpc/server.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "rpc/codec.h"

/*
 * What one thread writes before it gives a tag to gRPC is seen by the thread that gets the tag
 * back.  ThreadSanitizer cannot know, since the library between is not instrumented.
 */
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#else
#define __tsan_acquire(addr) ((void)(addr))
#define __tsan_release(addr) ((void)(addr))
#endif

/* What gRPC gives back when an operation is done; "ok" is false when it failed. */
struct tag {
	void (*fn)(struct tag *tag, bool ok);
};

struct rpc_server {
	struct loop *loop;
	const struct rpc_method *methods;
	size_t n_methods;
	void *data;
	grpc_server *server;
	grpc_server_credentials *creds;
	grpc_completion_queue *cq;
	pthread_t thread;
	atomic_int calls; /* rpc_calls; until the stop there is always one, the armed */
	/* One for gRPC's server, one for all calls: at zero nothing can happen any more. */
	atomic_int live;
	struct tag down_tag;
	sem_t down; /* posted at zero */
	bool stopped;
	void (*on_down)(void *data);
	void *on_down_data;
};

struct rpc_call {
	struct rpc_server *server;
	/* One for the armed request, later for the owner, and one for each batch in gRPC. */
	atomic_int refs;
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *request, *reply;
	const struct rpc_method *method;
	int cancelled; /* written by gRPC until "closed" comes back */
	atomic_bool gone; /* then: the client gave up */
	struct tag armed, closed, received, sent;
};

static void server_unref(struct rpc_server *server)
{
	if (atomic_fetch_sub(&server->live, 1) > 1)
		return;
	if (server->on_down)
		loop_post(server->loop, server->on_down, server->on_down_data);
	sem_post(&server->down);
}

/*
 * The server is stopping and no call is left.  Close the connections: gRPC's own graceful way
 * waits until each client has answered a ping, for up to 20 s when one is asleep.
 */
static void last_call_over(struct rpc_server *server)
{
	grpc_server_cancel_all_calls(server->server);
	server_unref(server);
}

static void call_unref(struct rpc_call *call)
{
	struct rpc_server *server = call->server;

	if (atomic_fetch_sub(&call->refs, 1) > 1)
		return;
	if (call->call)
		grpc_call_unref(call->call);
	grpc_call_details_destroy(&call->details);
	grpc_metadata_array_destroy(&call->metadata);
	grpc_byte_buffer_destroy(call->request);
	grpc_byte_buffer_destroy(call->reply);
	free(call);
	if (atomic_fetch_sub(&server->calls, 1) == 1)
		last_call_over(server);
}

/* False: a bug of ours or of the library.  The operation's slot is lost, so end the call. */
static bool start_batch(struct rpc_call *call, const grpc_op *ops, size_t n, struct tag *tag)
{
	grpc_call_error e;

	atomic_fetch_add(&call->refs, 1);
	__tsan_release(tag);
	e = grpc_call_start_batch(call->call, ops, n, tag, NULL);
	if (e == GRPC_CALL_OK)
		return true;
	log_debug("gRPC refused a batch", KV("error", "%s", grpc_call_error_to_string(e)));
	grpc_call_cancel(call->call, NULL);
	call_unref(call);
	return false;
}

static void on_sent(struct tag *tag, bool ok)
{
	(void)ok;
	call_unref(container_of(tag, struct rpc_call, sent));
}

/* Send the status, before it the message if there is one, and give up the owner's reference. */
static void finish(struct rpc_call *call, int status, const char *text)
{
	grpc_slice details = grpc_slice_from_copied_string(text);
	grpc_op ops[3] = { { .op = GRPC_OP_SEND_INITIAL_METADATA } };
	size_t n = 1;

	if (call->reply) {
		ops[n].op = GRPC_OP_SEND_MESSAGE;
		ops[n++].data.send_message.send_message = call->reply;
	}
	ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[n].data.send_status_from_server.status = (grpc_status_code)status;
	ops[n++].data.send_status_from_server.status_details = &details;
	start_batch(call, ops, n, &call->sent);
	grpc_slice_unref(details);
	call_unref(call);
}

void rpc_call_reply(struct rpc_call *call, uint8_t *message, size_t len)
{
	grpc_slice slice = len ? grpc_slice_from_copied_buffer((const char *)message, len)
			       : grpc_empty_slice();

	free(message);
	call->reply = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	finish(call, GRPC_STATUS_OK, "");
}

void rpc_call_fail(struct rpc_call *call, enum rpc_status status, const char *text)
{
	_cleanup_free_ char *valid = codec_text(text);

	finish(call, (int)status, valid);
}

static void on_closed(struct tag *tag, bool ok)
{
	struct rpc_call *call = container_of(tag, struct rpc_call, closed);

	(void)ok;
	atomic_store(&call->gone, call->cancelled != 0);
	call_unref(call);
}

bool rpc_call_cancelled(const struct rpc_call *call)
{
	return atomic_load(&call->gone);
}

static void on_received(struct tag *tag, bool ok)
{
	struct rpc_call *call = container_of(tag, struct rpc_call, received);
	grpc_byte_buffer_reader reader;
	grpc_slice request;

	/* NULL: the client ended the call without a message, or sent too long a one. */
	if (!ok || !call->request) {
		rpc_call_fail(call, RPC_INVALID_ARGUMENT, "there is no request message");
	} else if (!grpc_byte_buffer_reader_init(&reader, call->request)) {
		rpc_call_fail(call, RPC_INVALID_ARGUMENT, "the request message cannot be read");
	} else {
		request = grpc_byte_buffer_reader_readall(&reader);
		grpc_byte_buffer_reader_destroy(&reader);
		call->method->handle(call, call->method, GRPC_SLICE_START_PTR(request),
				     GRPC_SLICE_LENGTH(request), call->server->data);
		grpc_slice_unref(request);
	}
	call_unref(call);
}

static const struct rpc_method *find_method(const struct rpc_server *server, grpc_slice path)
{
	for (size_t i = 0; i < server->n_methods; i++)
		if (grpc_slice_str_cmp(path, server->methods[i].path) == 0)
			return &server->methods[i];
	return NULL;
}

static void arm(struct rpc_server *server);

static void on_armed(struct tag *tag, bool ok)
{
	struct rpc_call *call = container_of(tag, struct rpc_call, armed);
	grpc_op closed = { .op = GRPC_OP_RECV_CLOSE_ON_SERVER };
	grpc_op message = { .op = GRPC_OP_RECV_MESSAGE };

	if (!ok) { /* the server is stopping */
		call_unref(call);
		return;
	}
	/* Without an armed request an unknown method would hang until the client's deadline. */
	arm(call->server);
	closed.data.recv_close_on_server.cancelled = &call->cancelled;
	start_batch(call, &closed, 1, &call->closed);
	call->method = find_method(call->server, call->details.method);
	if (!call->method) {
		size_t len = GRPC_SLICE_LENGTH(call->details.method);
		_cleanup_free_ char *text =
			xasprintf("unknown method %.*s", (int)(len < 256 ? len : 256),
				  (const char *)GRPC_SLICE_START_PTR(call->details.method));

		rpc_call_fail(call, RPC_UNIMPLEMENTED, text);
		return;
	}
	message.data.recv_message.recv_message = &call->request;
	if (!start_batch(call, &message, 1, &call->received))
		call_unref(call);
}

/* Ask gRPC for the next call. */
static void arm(struct rpc_server *server)
{
	struct rpc_call *call = xnew(struct rpc_call);

	call->server = server;
	atomic_fetch_add(&server->calls, 1);
	atomic_init(&call->refs, 1);
	call->armed.fn = on_armed;
	call->closed.fn = on_closed;
	call->received.fn = on_received;
	call->sent.fn = on_sent;
	grpc_call_details_init(&call->details);
	grpc_metadata_array_init(&call->metadata);
	__tsan_release(&call->armed);
	if (grpc_server_request_call(server->server, &call->call, &call->details, &call->metadata,
				     server->cq, server->cq, &call->armed) != GRPC_CALL_OK) {
		log_debug("gRPC takes no request");
		call_unref(call);
	}
}

static void *cq_thread(void *data)
{
	struct rpc_server *server = data;

	for (;;) {
		grpc_event ev = grpc_completion_queue_next(
			server->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
		struct tag *tag = ev.tag;

		if (ev.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (ev.type != GRPC_OP_COMPLETE)
			continue;
		__tsan_acquire(tag);
		tag->fn(tag, ev.success);
	}
}

static void on_down(struct tag *tag, bool ok)
{
	(void)ok;
	/* Not the end: a call whose connection broke may still be somebody's. */
	server_unref(container_of(tag, struct rpc_server, down_tag));
}

static void log_grpc(gpr_log_func_args *args)
{
	log_debug("grpc", KV("text", "%s", args->message),
		  KV("at", "%s:%d", args->file, args->line));
}

/* The one place that knows gRPC's logging, which later versions of the library replaced. */
static void redirect_log(void)
{
	gpr_set_log_function(log_grpc);
	if (!getenv("GRPC_VERBOSITY"))
		gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
}

static grpc_server *make_server(void)
{
	grpc_arg args[] = {
		{ GRPC_ARG_INTEGER,
		  (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  { .integer = RPC_MESSAGE_MAX } },
		{ GRPC_ARG_INTEGER,
		  (char *)GRPC_ARG_MAX_CONCURRENT_STREAMS,
		  { .integer = RPC_STREAMS_MAX } },
		{ GRPC_ARG_INTEGER, (char *)GRPC_ARG_ENABLE_CHANNELZ, { .integer = 0 } },
		/* Kubelet sends no pings by itself; one that did must not be sent away. */
		{ GRPC_ARG_INTEGER, (char *)GRPC_ARG_HTTP2_MAX_PING_STRIKES, { .integer = 0 } },
	};
	grpc_channel_args list = { ARRAY_SIZE(args), args };

	return grpc_server_create(&list, NULL);
}

int rpc_server_new(struct loop *loop, const struct rpc_method *methods, size_t n_methods,
		   void *data, struct rpc_server **ret, struct err *err)
{
	struct rpc_server *server = xnew(struct rpc_server);
	sigset_t all, old;
	int r;

	server->loop = loop;
	server->methods = methods;
	server->n_methods = n_methods;
	server->data = data;
	server->down_tag.fn = on_down;
	sem_init(&server->down, 0, 0);
	atomic_init(&server->live, 2);
	redirect_log();

	/* Signals belong to the main thread; gRPC's threads inherit the mask. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	grpc_init();
	server->cq = grpc_completion_queue_create_for_next(NULL);
	server->creds = grpc_insecure_server_credentials_create();
	server->server = make_server();
	grpc_server_register_completion_queue(server->server, server->cq, NULL);
	grpc_server_start(server->server);
	r = pthread_create(&server->thread, NULL, cq_thread, server);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0) {
		/* Nobody would ever answer: the process has to end, which frees the rest. */
		return err_errno(err, ERR_RETRY, r, "cannot start the thread of the gRPC server");
	}
	pthread_setname_np(server->thread, "grpc-cq");
	arm(server);
	*ret = server;
	return 0;
}

void rpc_server_add_connection(struct rpc_server *server, int fd)
{
	grpc_server_add_channel_from_fd(server->server, fd, server->creds);
}

void rpc_server_stop(struct rpc_server *server, void (*down)(void *data), void *data)
{
	server->stopped = true;
	server->on_down = down;
	server->on_down_data = data;
	__tsan_release(&server->down_tag);
	grpc_server_shutdown_and_notify(server->server, server->cq, &server->down_tag);
}

void rpc_server_cancel_calls(struct rpc_server *server)
{
	grpc_server_cancel_all_calls(server->server);
}

struct rpc_server *rpc_server_free(struct rpc_server *server)
{
	if (!server)
		return NULL;
	if (!server->stopped)
		rpc_server_stop(server, NULL, NULL);
	while (sem_wait(&server->down) < 0 && errno == EINTR)
		;
	grpc_server_destroy(server->server);
	grpc_completion_queue_shutdown(server->cq);
	pthread_join(server->thread, NULL);
	grpc_completion_queue_destroy(server->cq);
	grpc_server_credentials_release(server->creds);
	grpc_shutdown_blocking();
	sem_destroy(&server->down);
	free(server);
	return NULL;
}

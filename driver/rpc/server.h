/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_RPC_SERVER_H
#define TWINRAIL_RPC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"

/*
 * A gRPC server for unary calls over connections that the caller accepted.  One thread serves the
 * completion queue: it runs the handlers, which must not block.
 */
struct rpc_server;
struct rpc_call;

struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	/*
	 * On the completion queue's thread.  "request" lives until the handler returns.  The
	 * handler takes over the call: it, or whom it hands the call on to, ends it by
	 * rpc_call_reply() or rpc_call_fail().
	 */
	void (*handle)(struct rpc_call *call, const struct rpc_method *method,
		       const uint8_t *request, size_t len, void *data);
	int arg; /* for the handler */
};

/* A longer message is answered RESOURCE_EXHAUSTED. */
#define RPC_MESSAGE_MAX (1u << 20)
/* More calls at once on one connection wait in the client. */
#define RPC_STREAMS_MAX 64

/* Status codes of gRPC. */
enum rpc_status {
	RPC_UNKNOWN = 2,
	RPC_INVALID_ARGUMENT = 3,
	RPC_NOT_FOUND = 5,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_FAILED_PRECONDITION = 9,
	RPC_ABORTED = 10,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14,
};

/* The methods must outlive the server.  Their handlers get "data". */
int rpc_server_new(struct loop *loop, const struct rpc_method *methods, size_t n_methods,
		   void *data, struct rpc_server **ret, struct err *err)
	__attribute__((warn_unused_result));

/* Serve a connected, non-blocking socket; the server becomes its owner.  Not after the stop. */
void rpc_server_add_connection(struct rpc_server *server, int fd);

/* Take no more calls; on_down() runs on the loop's thread when all calls have been ended by their
 * owners and all connections are closed. */
void rpc_server_stop(struct rpc_server *server, void (*on_down)(void *data), void *data);

/* End all calls on the wire.  Their owners still have to end them here. */
void rpc_server_cancel_calls(struct rpc_server *server);

/* All calls must have been ended.  Waits; NULL is fine; returns NULL. */
struct rpc_server *rpc_server_free(struct rpc_server *server);

/* The following may be called on any thread. */

/* Answer OK; takes over the malloc'ed message, NULL when it is empty.  The call is gone after. */
void rpc_call_reply(struct rpc_call *call, uint8_t *message, size_t len);
/* The client has given the call up, or is gone: nobody hears the answer. */
bool rpc_call_cancelled(const struct rpc_call *call);
/* The call is gone afterwards. */
void rpc_call_fail(struct rpc_call *call, enum rpc_status status, const char *text);

#endif

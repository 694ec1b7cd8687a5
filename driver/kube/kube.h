/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_KUBE_KUBE_H
#define TWINRAIL_KUBE_KUBE_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"

/*
 * A thin client of the Kubernetes API on the event loop (curl's multi interface): nothing here
 * blocks, all callbacks run on the loop's thread.  Connections are kept alive and shared, TLS is
 * always verified, the token file is read again at least once a minute and after a 401, bodies
 * are bounded.
 */
struct kube;

struct kube_config {
	char *server; /* "https://10.96.0.1:443" */
	char *ca_file, *ca_data; /* PEM: a path, or the text */
	char *token_file, *token;
	char *cert_data, *key_data; /* PEM text of a client certificate */
	char *tls_server_name; /* the name in the server's certificate; NULL: its address */
	char *user_agent;
};

/* From KUBERNETES_SERVICE_HOST/PORT and the service account's mounted files. */
int kube_config_in_cluster(struct kube_config *ret, struct err *err)
	__attribute__((warn_unused_result));
/* The current context of a kubeconfig file; clusters without a CA or with http are refused. */
int kube_config_file(const char *path, struct kube_config *ret, struct err *err)
	__attribute__((warn_unused_result));
void kube_config_done(struct kube_config *config);

int kube_new(struct loop *loop, const struct kube_config *config, struct kube **ret,
	     struct err *err) __attribute__((warn_unused_result));
/*
 * Cancels all requests and watches (no callbacks); their handles are void then.  May be called from
 * a callback.  NULL is fine; returns NULL.
 */
struct kube *kube_free(struct kube *kube);

/*
 * "status" is the HTTP status, 0 when there was no answer.  On 2xx err.code is 0 and "body" the
 * object (NULL when empty); otherwise err.kind tells: NOT_FOUND (404), CONFLICT (409), INVALID
 * (400, 422), PERMANENT (401 after a fresh token, 403), RETRY (408, 429, 5xx, network), and
 * err.msg names verb, object and the server's own reason.  "body" is borrowed: incref to keep.
 */
struct kube_reply {
	int status;
	json_t *body;
	struct err err;
};
typedef void kube_reply_fn(const struct kube_reply *reply, void *data);

/* In flight; becomes invalid when its callback has been called or kube_cancel() was. */
struct kube_request;

struct kube_call {
	const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
	const char *path; /* "/apis/resource.k8s.io/v1/resourceslices/x?query" */
	const char *content_type; /* NULL: application/json */
	const json_t *body; /* NULL: none; copied before kube_send() returns */
	uint64_t timeout_us; /* one attempt; 0: 10 s */
	uint64_t retry_us; /* repeat ERR_RETRY failures with back-off this long; 0: once */
};

/* Never calls "fn" before it returns. */
struct kube_request *kube_send(struct kube *kube, const struct kube_call *call, kube_reply_fn *fn,
			       void *data);
/* No callback comes any more.  From its own callback it does nothing; NULL is fine. */
void kube_cancel(struct kube_request *request);

/* PATCH with server-side apply by "manager", repeated up to 30 s; the path has no query. */
struct kube_request *kube_apply(struct kube *kube, const char *path, const char *manager,
				const json_t *body, kube_reply_fn *fn, void *data);

/*
 * LIST then WATCH, for ever: reconnects with back-off, lists again after 410, bookmarks handled.
 * "listed" gets the array "items" of a full list (everything seen before is void); "changed" one
 * event of type ADDED, MODIFIED or DELETED; "failed" each error of an attempt (for the log, and
 * to say why nothing is published).  Values are borrowed; each callback may be NULL and may free or
 * relist the watch.  "query" is NULL or what follows the "?": "fieldSelector=spec.driver=x".
 */
struct kube_watch;
struct kube_watch_ops {
	void (*listed)(json_t *items, void *data);
	void (*changed)(const char *type, json_t *object, void *data);
	void (*failed)(const struct err *err, void *data);
};
struct kube_watch *kube_watch_new(struct kube *kube, const char *path, const char *query,
				  const struct kube_watch_ops *ops, void *data);
void kube_watch_relist(struct kube_watch *watch);
struct kube_watch *kube_watch_free(struct kube_watch *watch); /* NULL is fine; returns NULL */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_RPC_DRA_H
#define TWINRAIL_RPC_DRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/loop.h"

/*
 * What kubelet sees: the registration service on one unix socket, DRAPlugin v1 and v1beta1 on
 * another (docs/design.md §9).  gRPC lives behind this header; handlers run on the loop's thread.
 */
struct dra_server;
struct dra_call;

struct dra_claim {
	char *namespace, *uid, *name;
};

/* One prepared device of a claim; all strings are copied by dra_call_answer(). */
struct dra_device {
	const char *request; /* base request name, without "/sub" */
	const char *pool, *device;
	const char *share_id; /* NULL: none */
	const char *const *cdi_ids; /* NULL-terminated, or NULL */
};

struct dra_server_config {
	const char *driver_name;
	const char *service_path; /* absolute, at most 107 bytes */
	const char *registration_path; /* absolute, at most 107 bytes */
	/* NodePrepareResources / NodeUnprepareResources; takes over the call. */
	void (*prepare)(struct dra_call *call, void *data);
	void (*unprepare)(struct dra_call *call, void *data);
	/* Kubelet's NotifyRegistrationStatus. */
	void (*registered)(bool ok, const char *error, void *data);
	/* A socket stopped serving for good: the process should end. */
	void (*failed)(const struct err *err, void *data);
	void *data;
};

/* Binds and serves the service socket, then the registration socket. */
int dra_server_new(struct loop *loop, const struct dra_server_config *config,
		   struct dra_server **ret, struct err *err) __attribute__((warn_unused_result));

/* Removes the sockets' files (own ones only) and stops taking calls; calls that run may finish
 * within "grace_us", then done(data) is called and the server is freed. */
void dra_server_stop(struct dra_server *server, uint64_t grace_us, void (*done)(void *data),
		     void *data);

size_t dra_call_claims(const struct dra_call *call, const struct dra_claim **ret);

/* Answer claim "i": devices, or an error text (then devices are ignored).  For Unprepare devices
 * are none. */
void dra_call_answer(struct dra_call *call, size_t i, const struct dra_device *devices,
		     size_t n_devices, const char *error);
/* Nobody waits for the answer any more: end the call soon, it counts among those that are open. */
bool dra_call_cancelled(const struct dra_call *call);
/* Send; the call is gone afterwards.  A claim without answer is a bug (asserted). */
void dra_call_finish(struct dra_call *call);
/* Fail the whole call with a gRPC status made of err->kind; the call is gone afterwards. */
void dra_call_fail(struct dra_call *call, const struct err *err);

/*
 * A driver name that the API server accepts and with which the sockets below fit: a DNS subdomain
 * of at most 36 characters (docs/design.md §7).  ERR_INVALID.
 */
int dra_driver_name_check(const char *name, struct err *err) __attribute__((warn_unused_result));

/*
 * Socket names of docs/design.md §9: with a pod UID the rolling-update names, else the plain ones.
 * "plugin_dir" is the driver's own data directory, <kubelet>/plugins/<driver>.
 * ERR_INVALID names the driver name when a path does not fit into a socket address.
 */
int dra_socket_paths(const char *driver_name, const char *plugin_dir, const char *registry_dir,
		     const char *pod_uid, char **ret_service, char **ret_registration,
		     struct err *err) __attribute__((warn_unused_result));

#endif

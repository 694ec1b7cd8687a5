/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_RPC_REGISTRATION_H
#define TWINRAIL_RPC_REGISTRATION_H

#include "rpc/listener.h"
#include "rpc/server.h"

/*
 * The registration socket.  Kubelets of Kubernetes 1.34 do not try again after a failed
 * registration until the socket is a new one: so make a new one while kubelet has not confirmed.
 */
struct registration;

#define REGISTRATION_FIRST_US 30000000u /* kubelet has had this long since the start */
#define REGISTRATION_AGAIN_US 60000000u

int registration_new(struct loop *loop, const struct listener_config *config,
		     struct registration **ret, struct err *err)
	__attribute__((warn_unused_result));

/* Kubelet has said whether the driver is registered. */
void registration_status(struct registration *registration, bool ok);

/* Removes the socket.  NULL is fine; returns NULL. */
struct registration *registration_free(struct registration *registration);

#endif

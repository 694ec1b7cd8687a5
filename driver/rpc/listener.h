/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_RPC_LISTENER_H
#define TWINRAIL_RPC_LISTENER_H

#include "base/err.h"
#include "loop/loop.h"

/*
 * A listening unix socket that only root and our own user may use.  It is made again when its
 * file disappears.  It takes its path over from a predecessor, running or dead, but never removes
 * the file of a successor that listens on it; when that one dies, the path is ours again within a
 * few seconds.
 */
struct listener;

struct listener_config {
	const char *path; /* absolute, at most 107 bytes; copied */
	/* A connected, non-blocking socket; the callback becomes its owner. */
	void (*accepted)(int fd, void *data);
	/* The listener does not work any more. */
	void (*failed)(const struct err *err, void *data);
	void *data;
};

/* ERR_INVALID, ERR_PERMANENT or ERR_CONFLICT name the path. */
int listener_new(struct loop *loop, const struct listener_config *config, struct listener **ret,
		 struct err *err) __attribute__((warn_unused_result));

/* Remove the file and make a new socket, for those who watch the directory.  Connections stay. */
void listener_renew(struct listener *listener);

/* Removes the file if it is still ours.  NULL is fine; returns NULL. */
struct listener *listener_free(struct listener *listener);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_RPC_CODEC_H
#define TWINRAIL_RPC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "rpc/dra.h"

/*
 * Kubelet's messages as bytes and as plain structs; protobuf-c lives behind this header.  All
 * functions may be called on any thread, one at a time per arena.
 */

/* Memory of one call: what is taken from it is freed with it. */
struct arena;
struct arena *arena_new(void);
void *arena_alloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));
struct arena *arena_free(struct arena *arena); /* NULL is fine; returns NULL */

enum dra_api { DRA_V1, DRA_V1BETA1 };
enum dra_op { DRA_PREPARE, DRA_UNPREPARE };

/* Kubelet sends the claims of one pod: at most 32 requests' worth in practice. */
#define CODEC_CLAIMS_MAX 256

/*
 * Decode a NodePrepareResourcesRequest or NodeUnprepareResourcesRequest of any version (the four
 * messages are the same on the wire).  A claim that is listed twice comes out once.  Strings live
 * in the arena; uid, name and namespace are checked so that they can be used in file names and
 * URLs.  ERR_INVALID otherwise.
 */
int codec_claims(struct arena *arena, const uint8_t *data, size_t len, struct dra_claim **ret,
		 size_t *ret_n, struct err *err) __attribute__((warn_unused_result));

/* The answer to such a request, one entry per claim; lives in the arena. */
struct codec_reply;
struct codec_reply *codec_reply_new(struct arena *arena, enum dra_op op, enum dra_api api,
				    const struct dra_claim *claims, size_t n);
/* Copies; a later call for the same claim replaces what was set. */
void codec_reply_set(struct codec_reply *reply, size_t i, const struct dra_device *devices,
		     size_t n_devices, const char *error);
/* Every claim has an answer. */
bool codec_reply_complete(const struct codec_reply *reply);
/* malloc'ed bytes. */
uint8_t *codec_reply_pack(const struct codec_reply *reply, size_t *ret_len);

/* PluginInfo; "versions" ends with NULL.  malloc'ed bytes. */
uint8_t *codec_plugin_info(const char *name, const char *endpoint, const char *const *versions,
			   size_t *ret_len);
/* InfoRequest: it has no fields, but must be a message.  ERR_INVALID. */
int codec_info_request(const uint8_t *data, size_t len, struct err *err)
	__attribute__((warn_unused_result));
/* RegistrationStatus; *ret_error is malloc'ed, "" when there is none.  ERR_INVALID. */
int codec_registration_status(const uint8_t *data, size_t len, bool *ret_ok, char **ret_error,
			      struct err *err) __attribute__((warn_unused_result));

/* malloc'ed copy of a text for the wire: valid UTF-8, which gRPC peers insist on. */
char *codec_text(const char *s);

#endif

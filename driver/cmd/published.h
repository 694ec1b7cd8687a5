/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_PUBLISHED_H
#define TWINRAIL_CMD_PUBLISHED_H

#include "base/err.h"
#include "cmd/options.h"
#include "cmd/topology_options.h"
#include "publish/publish.h"

/* The options that say what is published: those of "agent", and of "slices" to see it offline. */
struct published {
	const char *node_name, *driver_name, *publish;
	unsigned int gpu, mirror; /* indexes into the words of published.c */
	struct topology_options topology;
};

#define PUBLISHED_DEFAULT                                                                          \
	{                                                                                          \
		.driver_name = "twinrail.dev", .publish = "card,nic"                               \
	}

extern const char *const published_gpu_words[];
extern const char *const published_mirror_words[];

/* Rows of an option table; clang-format has no notion of them. */
/* clang-format off */
#define PUBLISHED_OPTIONS(p)                                                                       \
	{ "node-name", 0, OPTION_STRING, &(p)->node_name, "NAME",                                  \
	  "this node's name in the cluster", NULL, 0 },                                            \
	{ "driver-name", 0, OPTION_STRING, &(p)->driver_name, "NAME",                              \
	  "driver name and attribute domain, at most 36 characters", NULL, 0 },                    \
	{ "publish", 0, OPTION_STRING, &(p)->publish, "LIST",                                      \
	  "kinds of devices to publish: card,nic,pf,gpu", NULL, 0 },                               \
	{ "gpu", 0, OPTION_CHOICE, &(p)->gpu, "WHO",                                               \
	  "who serves GPUs: this driver, or the vendor's (off)",             \
	  published_gpu_words, 0 },                                                                \
	{ "mirror", 0, OPTION_CHOICE, &(p)->mirror, "WORD", "publish dra.net/ attributes too",     \
	  published_mirror_words, 0 },                                                             \
	TOPOLOGY_OPTIONS(&(p)->topology)
/* clang-format on */

/*
 * Check the values, those of topology_check() too; *ret borrows their strings.  ERR_INVALID names
 * option, value and cure.
 */
int published_check(struct published *p, struct publish_options *ret, struct err *err)
	__attribute__((warn_unused_result));

#endif

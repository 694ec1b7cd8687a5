/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_TOPOLOGY_OPTIONS_H
#define TWINRAIL_CMD_TOPOLOGY_OPTIONS_H

#include "base/err.h"
#include "cmd/options.h"
#include "topo/platform.h"

/*
 * The options that say how a machine is understood: of "agent", and of the commands that show a
 * machine.  Zero-initialise, parse with the rows of TOPOLOGY_OPTIONS, then topology_check() and
 * topology_read_platforms(); topology_options_done() frees.
 */
struct topology_options {
	unsigned int pcie_root, numa; /* indexes into the words of topology_options.c */
	const char *nic_include, *nic_exclude, *platform_file, *nvlink_domain, *node_ip;

	/* Of topology_check(). */
	struct strlist include, exclude, node_addresses;
	/* Of topology_read_platforms(). */
	char *platform_text;
	struct platforms *platforms;
	struct err platforms_error;
};

extern const char *const topology_pcie_root_words[]; /* order of enum pcie_root_policy */
extern const char *const topology_numa_words[];

/* Rows of an option table; clang-format has no notion of them. */
/* clang-format off */
#define TOPOLOGY_OPTIONS(t)                                                                        \
	{ "pcie-root", 0, OPTION_CHOICE, &(t)->pcie_root, "POLICY",                                \
	  "root of a NIC whose DMA comes from elsewhere", topology_pcie_root_words, 0 },           \
	{ "numa", 0, OPTION_CHOICE, &(t)->numa, "FORM",                                            \
	  "NUMA node as one number, or with the equally near ones", topology_numa_words, 0 },      \
	{ "nic-include", 0, OPTION_STRING, &(t)->nic_include, "LIST",                              \
	  "hand out only these NICs: address, vendor:device, link, role=..., with * and ?",        \
	  NULL, 0 },                                                                               \
	{ "nic-exclude", 0, OPTION_STRING, &(t)->nic_exclude, "LIST",                              \
	  "never hand out these NICs; patterns as of --nic-include", NULL, 0 },                    \
	{ "platform-file", 0, OPTION_STRING, &(t)->platform_file, "FILE",                          \
	  "what is known of machines, before what the program knows", NULL, 0 },                   \
	{ "nvlink-domain", 0, OPTION_STRING, &(t)->nvlink_domain, "ID",                            \
	  "NVLink domain of this node: cluster UUID, \".\", clique id", NULL, 0 },                 \
	{ "node-ip", 0, OPTION_STRING, &(t)->node_ip, "LIST",                                      \
	  "addresses of this node: their NICs are never handed out", NULL, 0 }
/* clang-format on */

/* Check the values.  ERR_INVALID names option, value and cure. */
int topology_check(struct topology_options *t, struct err *err) __attribute__((warn_unused_result));

/*
 * Read --platform-file (again), when there is one.  1: it says something else than before.  0: it
 * does not.  -EINVAL or what reading it gave: what was in force before stays, and the next
 * topologies have a warning.
 */
int topology_read_platforms(struct topology_options *t, struct err *err)
	__attribute__((warn_unused_result));

/* Both, for a command that cannot go on without; false: the reason is on stderr. */
bool topology_load(const char *command, struct topology_options *t);

/* What topo_build() is to know; borrows from "t".  Members that "t" has no say in are not set. */
void topology_set(const struct topology_options *t, struct topo_options *to);

/* Call "tell" for each pattern of --nic-include and --nic-exclude that fits no NIC of "inv". */
void topology_unused_patterns(const struct topo_options *to, const struct inventory *inv,
			      void (*tell)(const char *option, const char *pattern, void *data),
			      void *data);

void topology_options_done(struct topology_options *t);

#endif

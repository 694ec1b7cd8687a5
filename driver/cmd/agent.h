/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_AGENT_H
#define TWINRAIL_CMD_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/agent_facts.h"
#include "cmd/options.h"
#include "cmd/published.h"
#include "hw/watch.h"
#include "kube/kube.h"
#include "loop/loop.h"
#include "prepare/prepare.h"
#include "publish/publish.h"
#include "rpc/dra.h"
#include "topo/inventory.h"

/* What the parts of the agent command share; private to cmd/agent*.c. */

struct agent_options {
	struct published published;
	const char *pod_uid;
	const char *plugins_dir, *registry_dir, *cdi_dir, *data_dir;
	const char *kubeconfig, *root;
	uint64_t rescan_us;
	unsigned int log_format; /* enum log_format */
	bool verbose;
};

#define AGENT_OPTIONS_DEFAULT                                                                      \
	{                                                                                          \
		.published = PUBLISHED_DEFAULT, .plugins_dir = "/var/lib/kubelet/plugins",         \
		.registry_dir = "/var/lib/kubelet/plugins_registry", .cdi_dir = "/var/run/cdi",    \
		.root = "/", .rescan_us = 5 * 60 * 1000000ULL,                                     \
	}

/* Of agent_discover.c. */
struct discovery {
	struct agent_facts *facts;
	struct hw_machine *machine; /* what was read last, for reading parts of it again */
	struct hw_watch *watch; /* NULL: no events, the root is a recorded one */
	struct hw_change held; /* a change whose reading was overtaken by another; parts 0: none */
	unsigned int owed; /* parts that could not be read although something asked for it */
	uint64_t rescan_us, retry_us; /* retry_us: the last delay, 0 after success */
	struct loop_timer *rescan_timer, *retry_timer;
	struct strlist own_nics; /* addresses of all NICs that the node used since the start */
	bool own_known; /* it has had a default route since the start */
	bool complete; /* the machine behind the inventory could be read in full */
	bool unreadable, no_root, patterns_told; /* logged already */
	char *logged; /* the inventory that was logged last, as text */
};

struct agent {
	struct agent_options options;
	struct publish_options publish;
	char *data_dir;
	uint64_t start_us;
	struct loop *loop;
	struct kube *kube;
	struct dra_server *server;
	struct preparer *preparer;
	struct publisher *publisher;
	struct inventory *inventory;
	struct discovery discovery;
	struct loop_timer *publish_timer;
	int publish_lock; /* descriptor of <data dir>/publish.lock, -1 */
	bool stopping, waiting_for_lock;
	int exit_code; /* when it has stopped */
};

/* agent_options.c: as options_begin(). */
bool agent_parse_options(int argc, char **argv, struct agent_options *options,
			 struct options *parsed, int *exit_code);

/*
 * agent_discover.c: read the hardware, and again at each event of the kernel and every --rescan;
 * never fails, tries again.  discover_all() reads all of it now; "cause" is for the log.
 */
void discover_start(struct agent *a);
void discover_stop(struct agent *a);
void discover_all(struct agent *a, const char *cause);

/*
 * agent_publish.c: publish as soon as no other instance of the driver on this node does; never
 * fails, tries again.
 */
void publish_start(struct agent *a);
void publish_stop(struct agent *a);

#endif

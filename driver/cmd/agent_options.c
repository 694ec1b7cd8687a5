// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/mem.h"
#include "cmd/agent.h"

bool agent_parse_options(int argc, char **argv, struct agent_options *o, struct options *parsed,
			 int *exit_code)
{
	const struct option_def table[] = {
		PUBLISHED_OPTIONS(&o->published),
		{ "pod-uid", 0, OPTION_STRING, &o->pod_uid, "UID",
		  "own pod's uid: sockets get names that allow rolling updates", NULL, 0 },
		{ "plugins-dir", 0, OPTION_STRING, &o->plugins_dir, "DIR",
		  "kubelet's directory of plugin data", NULL, 0 },
		{ "registry-dir", 0, OPTION_STRING, &o->registry_dir, "DIR",
		  "kubelet's directory of registration sockets", NULL, 0 },
		{ "data-dir", 0, OPTION_STRING, &o->data_dir, "DIR",
		  "journal and service socket [plugins-dir/driver-name]", NULL, 0 },
		{ "cdi-dir", 0, OPTION_STRING, &o->cdi_dir, "DIR",
		  "where CDI specs of claims are written", NULL, 0 },
		{ "kubeconfig", 0, OPTION_STRING, &o->kubeconfig, "FILE",
		  "how to reach the API server [the pod's service account]", NULL, 0 },
		{ "rescan", 0, OPTION_DURATION, &o->rescan_us, "TIME",
		  "how often all hardware is read again; at most 1m without kernel events", NULL,
		  0 },
		OPTION_ROOT(&o->root),
		OPTION_VERBOSE(&o->verbose),
		OPTION_LOG_FORMAT(&o->log_format),
	};
	const struct option_spec spec = {
		.command = "agent",
		.operands = "",
		.summary = "Run the node driver: publish this node's devices, prepare claims.",
		.more = "The kernel's events of devices, links, addresses and routes are followed "
			"at once, except\nwith --root.  SIGHUP reads the hardware again; SIGTERM "
			"stops after running calls.\n",
		.table = table,
		.n = ARRAY_SIZE(table),
	};

	return options_begin(&spec, argc, argv, parsed, exit_code);
}

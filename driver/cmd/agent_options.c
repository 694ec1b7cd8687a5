// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "base/mem.h"
#include "cmd/agent.h"

static const char *const gpu_words[] = { "off", "own", NULL };
static const char *const pcie_root_words[] = { "auto", "function", "data-direct", NULL };
static const char *const on_off_words[] = { "on", "off", NULL };

bool agent_parse_options(int argc, char **argv, struct agent_options *o, struct options *parsed,
			 int *exit_code)
{
	const struct option_def table[] = {
		{ "node-name", 0, OPTION_STRING, &o->node_name, "NAME",
		  "this node's name in the cluster", NULL, 0 },
		{ "driver-name", 0, OPTION_STRING, &o->driver_name, "NAME",
		  "driver name and attribute domain, at most 36 characters", NULL, 0 },
		{ "pod-uid", 0, OPTION_STRING, &o->pod_uid, "UID",
		  "own pod's uid: sockets get names that allow rolling updates", NULL, 0 },
		{ "publish", 0, OPTION_STRING, &o->publish, "LIST",
		  "kinds of devices to publish: card,nic,pf,gpu", NULL, 0 },
		{ "gpu", 0, OPTION_CHOICE, &o->gpu, "WHO",
		  "own: publish and prepare GPUs too; off: leave them to the vendor's driver",
		  gpu_words, 0 },
		{ "pcie-root", 0, OPTION_CHOICE, &o->pcie_root, "POLICY",
		  "whose PCIe root a Data Direct card publishes", pcie_root_words, 0 },
		{ "mirror", 0, OPTION_CHOICE, &o->mirror, "WORD", "publish dra.net/ attributes too",
		  on_off_words, 0 },
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
		OPTION_ROOT(&o->root),
		OPTION_VERBOSE(&o->verbose),
		OPTION_LOG_FORMAT(&o->log_format),
	};
	const struct option_spec spec = {
		.command = "agent",
		.operands = "",
		.summary = "Run the node driver: publish this node's devices, prepare claims.",
		.more = "SIGHUP reads the hardware again; SIGTERM stops after running calls.\n",
		.table = table,
		.n = ARRAY_SIZE(table),
	};

	return options_begin(&spec, argc, argv, parsed, exit_code);
}

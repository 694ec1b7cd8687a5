// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/offline.h"
#include "cmd/topology_options.h"
#include "topo/inventory.h"
#include "topo/output.h"

enum output { OUTPUT_TREE, OUTPUT_JSON, OUTPUT_MATRIX, OUTPUT_SVG, OUTPUT_DOT };

static const char *const outputs[] = { "tree", "json", "matrix", "svg", "dot", NULL };

static char *render(const struct inventory *inv, unsigned int output, bool verbose)
{
	unsigned int flags = verbose ? TREE_VERBOSE : 0;
	_cleanup_json_ json_t *json = NULL;

	switch (output) {
	case OUTPUT_JSON:
		json = topo_to_json(inv);
		return json_text_pretty(json);
	case OUTPUT_MATRIX:
		return topo_to_matrix(inv);
	case OUTPUT_SVG:
		return topo_to_svg(inv);
	case OUTPUT_DOT:
		return topo_to_dot(inv);
	default:
		if (isatty(STDOUT_FILENO) && !getenv("NO_COLOR"))
			flags |= TREE_COLOUR;
		return topo_to_tree(inv, flags);
	}
}

static int show(const char *root, const char *node_name, unsigned int output,
		struct topology_options *topology, bool verbose)
{
	struct topo_options options = { .node_name = node_name };
	_cleanup_(inventory_unrefp) struct inventory *inv = NULL;
	_cleanup_free_ char *text = NULL;

	if (!topology_load("topo", topology))
		return EXIT_USAGE;
	topology_set(topology, &options);
	inv = offline_inventory("topo", root, &options);
	if (!inv)
		return EXIT_USAGE;
	text = render(inv, output, verbose);
	if (inv->n_gpus == 0 && inv->n_nics == 0)
		fprintf(stderr, "twinrail topo: no GPU and no RDMA NIC found below %s%s\n", root,
			streq(root, "/") ? "; --root shows a recorded machine" : "");
	return offline_print("topo", text);
}

int cmd_topo(int argc, char **argv)
{
	const char *root = "/", *node_name = NULL;
	unsigned int output = OUTPUT_TREE, log_format = LOG_FORMAT_TEXT;
	struct topology_options topology = { 0 };
	bool verbose = false;
	const struct option_def table[] = {
		{ "output", 'o', OPTION_CHOICE, &output, "FORMAT", "what is printed", outputs, 0 },
		TOPOLOGY_OPTIONS(&topology),
		{ "node-name", 0, OPTION_STRING, &node_name, "NAME", "name shown for this node",
		  NULL, 0 },
		OPTION_MACHINE(&root),
		{ "verbose", 'v', OPTION_FLAG, &verbose, NULL,
		  "show firmware, PCI ids and all bridges, log debug messages (why no platform "
		  "matches)",
		  NULL, 0 },
		OPTION_LOG_FORMAT(&log_format),
	};
	const struct option_spec spec = {
		.command = "topo",
		.operands = "",
		.summary = "Show GPUs, NICs, cards and rails of this node and which belong "
			   "together.",
		.table = table,
		.n = ARRAY_SIZE(table),
	};
	struct options o = { 0 };
	int code = EXIT_OK;

	if (options_begin(&spec, argc, argv, &o, &code)) {
		if (node_name && !*node_name)
			node_name = NULL;
		log_init((enum log_format)log_format, verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
		code = show(root, node_name, output, &topology, verbose);
	}
	topology_options_done(&topology);
	options_done(&o);
	return code;
}

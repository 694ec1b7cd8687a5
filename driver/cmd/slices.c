// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/offline.h"
#include "cmd/published.h"

static json_t *list_of(json_t *slices)
{
	json_t *list = json_object();

	json_set_string(list, "apiVersion", "v1");
	json_set_string(list, "kind", "List");
	json_object_set_new(list, "items", slices);
	return list;
}

static int show(const char *root, struct published *p)
{
	struct topo_options to = { .node_name = p->node_name };
	_cleanup_(inventory_unrefp) struct inventory *inv = NULL;
	struct publish_options po = { 0 };
	_cleanup_json_ json_t *list = NULL;
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };

	if (published_check(p, &po, &err) < 0) {
		fprintf(stderr, "twinrail slices: %s\n", err.msg);
		return EXIT_USAGE;
	}
	if (!topology_load("slices", &p->topology))
		return EXIT_USAGE;
	topology_set(&p->topology, &to);
	inv = offline_inventory("slices", root, &to);
	if (!inv)
		return EXIT_USAGE;
	if (publish_effective_kinds(inv, po.kinds) != po.kinds)
		fprintf(stderr,
			"twinrail slices: functions of atomic cards (pf) are left out: the "
			"scheduler "
			"cannot search cards and functions of more than %d cards\n",
			PUBLISH_PF_MAX_CARDS);
	list = list_of(publish_slices(inv, &po));
	text = json_text_pretty(list);
	return offline_print("slices", text);
}

int cmd_slices(int argc, char **argv)
{
	static const char *const outputs[] = { "json", NULL };
	struct published p = PUBLISHED_DEFAULT;
	const char *root = "/";
	unsigned int output = 0, log_format = LOG_FORMAT_TEXT;
	bool verbose = false;
	const struct option_def table[] = {
		PUBLISHED_OPTIONS(&p),
		{ "output", 'o', OPTION_CHOICE, &output, "FORMAT", "what is printed", outputs, 0 },
		OPTION_MACHINE(&root),
		OPTION_VERBOSE(&verbose),
		OPTION_LOG_FORMAT(&log_format),
	};
	const struct option_spec spec = {
		.command = "slices",
		.operands = "",
		.summary = "Show the ResourceSlices that this node would publish, as a List.",
		.table = table,
		.n = ARRAY_SIZE(table),
	};
	struct options o = { 0 };
	int code = EXIT_OK;

	if (options_begin(&spec, argc, argv, &o, &code)) {
		log_init((enum log_format)log_format, verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
		if (!p.node_name)
			p.node_name = "node";
		code = show(root, &p);
	}
	topology_options_done(&p.topology);
	options_done(&o);
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/* "twinrail explain GPU NIC": why two devices are as near or far as they are. */
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/offline.h"
#include "cmd/topology_options.h"
#include "topo/output.h"

static const char *const outputs[] = { "text", "json", NULL };

static void complain(const struct inventory *inv, bool gpu, const char *wanted)
{
	size_t n = gpu ? inv->n_gpus : inv->n_nics;

	fprintf(stderr, "twinrail explain: ");
	if (gpu ? topo_find_nic(inv, wanted) >= 0 : topo_find_gpu(inv, wanted) >= 0) {
		fprintf(stderr, "'%s' is a %s: give the GPU first, then the NIC\n", wanted,
			gpu ? "NIC" : "GPU");
		return;
	}
	fprintf(stderr, "this node has no %s '%s'; ", gpu ? "GPU" : "NIC", wanted);
	if (n == 0)
		fputs("it has none at all", stderr);
	else
		fputs("it has", stderr);
	for (size_t i = 0; i < n && i < 32; i++)
		fprintf(stderr, "%s %s", i ? "," : "", gpu ? inv->gpus[i].name : inv->nics[i].name);
	if (n > 32)
		fprintf(stderr, " and %zu more", n - 32);
	fputc('\n', stderr);
}

static int explain(const struct inventory *inv, const struct strlist *operands, bool json)
{
	int gpu = topo_find_gpu(inv, operands->items[0]),
	    nic = topo_find_nic(inv, operands->items[1]);
	_cleanup_json_ json_t *object = NULL;
	_cleanup_free_ char *text = NULL;
	int code;

	if (gpu < 0 || nic < 0) {
		complain(inv, gpu < 0, operands->items[gpu < 0 ? 0 : 1]);
		return EXIT_USAGE;
	}
	if (json) {
		object = topo_explain_json(inv, (size_t)gpu, (size_t)nic);
		text = json_text_pretty(object);
	} else {
		text = topo_explain(inv, (size_t)gpu, (size_t)nic,
				    isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
	}
	code = offline_print("explain", text);
	if (code == EXIT_OK && inventory_pair(inv, (size_t)gpu, (size_t)nic)->path > PATH_PHB)
		code = EXIT_WRONG;
	return code;
}

int cmd_explain(int argc, char **argv)
{
	const char *root = "/";
	unsigned int output = 0, log_format = LOG_FORMAT_TEXT;
	struct topology_options topology = { 0 };
	struct topo_options to = { 0 };
	bool verbose = false;
	const struct option_def table[] = {
		{ "output", 'o', OPTION_CHOICE, &output, "FORMAT", "what is printed", outputs, 0 },
		TOPOLOGY_OPTIONS(&topology),
		OPTION_MACHINE(&root),
		OPTION_VERBOSE(&verbose),
		OPTION_LOG_FORMAT(&log_format),
	};
	const struct option_spec spec = {
		.command = "explain",
		.operands = "GPU NIC",
		.summary = "Explain the path between a GPU and a NIC, bridge by bridge.",
		.more = "A device is given by any name that \"twinrail topo\" shows: its own, that "
			"of its card,\nPCI address, link, RDMA device, UUID, or GPU0 and NIC0 of "
			"the "
			"matrix.\n"
			"Exit codes: 0 within one root complex (PIX, PXB, PHB), 1 farther or "
			"unknown, 2 cannot tell.\n",
		.table = table,
		.n = ARRAY_SIZE(table),
		.min_operands = 2,
		.max_operands = 2,
	};
	_cleanup_(inventory_unrefp) struct inventory *inv = NULL;
	struct options o = { 0 };
	int code = EXIT_OK;

	if (options_begin(&spec, argc, argv, &o, &code)) {
		log_init((enum log_format)log_format, verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
		if (topology_load("explain", &topology)) {
			topology_set(&topology, &to);
			inv = offline_inventory("explain", root, &to);
		}
		code = inv ? explain(inv, &o.operands, output == 1) : EXIT_USAGE;
	}
	topology_options_done(&topology);
	options_done(&o);
	return code;
}

// SPDX-License-Identifier: Apache-2.0
/* "twinrail explain GPU NIC": why two devices are as near or far as they are. */
#include <stdio.h>
#include <unistd.h>

#include "base/bus_id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/offline.h"
#include "cmd/topology_options.h"
#include "topo/output.h"

static const char *const outputs[] = { "text", "json", NULL };

/* All that a GPU or NIC is called by. */
static bool is_called(const char *name, const char *bus_id, const char *const *others,
		      const char *wanted)
{
	if (streq(name, wanted) || streq(bus_id, wanted) ||
	    (is_bus_id(wanted) && bus_id_cmp(bus_id, wanted) == 0))
		return true;
	for (size_t i = 0; i < 2; i++)
		if (others[i] && streq(others[i], wanted))
			return true;
	return false;
}

static int find_gpu(const struct inventory *inv, const char *wanted)
{
	for (size_t i = 0; i < inv->n_gpus; i++) {
		const struct topo_gpu *gpu = &inv->gpus[i];
		const char *const others[] = { gpu->uuid, NULL };

		if (is_called(gpu->name, gpu->bus_id, others, wanted))
			return (int)i;
	}
	return -1;
}

static int find_nic(const struct inventory *inv, const char *wanted)
{
	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		const char *const others[] = { nic->netdev, nic->rdma_device };

		if (is_called(nic->name, nic->bus_id, others, wanted))
			return (int)i;
	}
	return -1;
}

static void complain(const struct inventory *inv, const char *what, const char *wanted)
{
	bool gpus = streq(what, "GPU");
	size_t n = gpus ? inv->n_gpus : inv->n_nics;

	fprintf(stderr, "twinrail explain: this node has no %s '%s'; ", what, wanted);
	if (n == 0)
		fputs("it has none at all", stderr);
	else
		fputs("it has", stderr);
	for (size_t i = 0; i < n && i < 32; i++)
		fprintf(stderr, "%s %s", i ? "," : "",
			gpus ? inv->gpus[i].name : inv->nics[i].name);
	if (n > 32)
		fprintf(stderr, " and %zu more", n - 32);
	fputc('\n', stderr);
}

static int explain(const struct inventory *inv, const struct strlist *operands, bool json)
{
	int gpu = find_gpu(inv, operands->items[0]), nic = find_nic(inv, operands->items[1]);
	_cleanup_json_ json_t *object = NULL;
	_cleanup_free_ char *text = NULL;
	int code;

	if (gpu < 0 || nic < 0) {
		complain(inv, gpu < 0 ? "GPU" : "NIC", operands->items[gpu < 0 ? 0 : 1]);
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
		OPTION_ROOT(&root),
		OPTION_VERBOSE(&verbose),
		OPTION_LOG_FORMAT(&log_format),
	};
	const struct option_spec spec = {
		.command = "explain",
		.operands = "GPU NIC",
		.summary = "Explain the path between a GPU and a NIC, bridge by bridge.",
		.more = "A device is given by its name (\"twinrail topo\"), PCI address, link, "
			"RDMA "
			"device or UUID.\n"
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

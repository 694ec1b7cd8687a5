// SPDX-License-Identifier: Apache-2.0
/* The table of path classes, in the manner of "nvidia-smi topo -m". */
#include "base/mem.h"
#include "base/str.h"
#include "topo/output.h"

/* VFs with a visible PF have its paths: their columns would say the same again. */
static bool is_shown(const struct inventory *inv, const struct topo_nic *nic)
{
	return !nic->pf_bus_id || !inventory_nic(inv, nic->pf_bus_id);
}

static void cell(struct buf *out, const char *text, int width)
{
	buf_printf(out, "%-*s  ", width, text);
}

/* No white space at the end of lines. */
static void end_line(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->len--;
	buf_str(out, "\n");
}

static void number(struct buf *out, int value, int width)
{
	_cleanup_free_ char *text = value >= 0 ? xasprintf("%d", value) : xstrdup("-");

	cell(out, text, width);
}

/* "GPU0"…, "NIC0"…: short heads, whose full names stand in the legend. */
static void print_heads(const struct inventory *inv, struct buf *out)
{
	size_t shown = 0;

	cell(out, "", 6);
	for (size_t n = 0; n < inv->n_nics; n++) {
		_cleanup_free_ char *head = NULL;

		if (!is_shown(inv, &inv->nics[n]))
			continue;
		head = xasprintf("NIC%zu", shown++);
		cell(out, head, 7);
	}
	cell(out, "NUMA", 4);
	buf_str(out, "rail group\n");
}

static void print_row(const struct inventory *inv, size_t g, struct buf *out)
{
	_cleanup_free_ char *head = xasprintf("GPU%zu", g);

	cell(out, head, 6);
	for (size_t n = 0; n < inv->n_nics; n++) {
		const struct topo_pair *pair = inventory_pair(inv, g, n);
		_cleanup_free_ char *text = NULL;

		if (!is_shown(inv, &inv->nics[n]))
			continue;
		text = xasprintf("%s%s", path_class_name(pair->path), pair->best ? "*" : "");
		cell(out, text, 7);
	}
	number(out, inv->gpus[g].numa_node, 4);
	number(out, inv->gpus[g].rail_group, 10);
	end_line(out);
}

static void print_rails(const struct inventory *inv, struct buf *out)
{
	cell(out, "rail", 6);
	for (size_t n = 0; n < inv->n_nics; n++) {
		const struct topo_nic *nic = &inv->nics[n];

		if (is_shown(inv, nic))
			number(out, nic->rail, 7);
	}
	end_line(out);
	cell(out, "NUMA", 6);
	for (size_t n = 0; n < inv->n_nics; n++)
		if (is_shown(inv, &inv->nics[n]))
			number(out, inv->nics[n].numa_node, 7);
	end_line(out);
}

static void print_names(const struct inventory *inv, struct buf *out)
{
	size_t shown = 0;

	buf_str(out, "\n");
	for (size_t g = 0; g < inv->n_gpus; g++) {
		buf_printf(out, "GPU%zu: %s  %s", g, inv->gpus[g].name,
			   inv->gpus[g].model ? inv->gpus[g].model : "");
		end_line(out);
	}
	for (size_t n = 0; n < inv->n_nics; n++) {
		const struct topo_nic *nic = &inv->nics[n];

		if (!is_shown(inv, nic))
			continue;
		buf_printf(out, "NIC%zu: %s  %s  %s  %s\n", shown++, nic->name,
			   nic->netdev ? nic->netdev : "-",
			   nic->rdma_device ? nic->rdma_device : "-", topo_role_name(nic->role));
	}
	buf_str(out, "\n"
		     "PIX   one switch            PXB   several switches\n"
		     "PHB   one root complex      NODE  one NUMA node\n"
		     "SYS   between NUMA nodes    *     best NICs of that GPU\n");
}

char *topo_to_matrix(const struct inventory *inv)
{
	struct buf out = { 0 };

	print_heads(inv, &out);
	for (size_t g = 0; g < inv->n_gpus; g++)
		print_row(inv, g, &out);
	print_rails(inv, &out);
	print_names(inv, &out);
	return str_printable(buf_take(&out), false);
}

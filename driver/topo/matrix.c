// SPDX-License-Identifier: Apache-2.0
/* The table of path classes, in the manner of "nvidia-smi topo -m". */
#include "base/mem.h"
#include "base/str.h"
#include "topo/output.h"

/* What people call a NIC: its link, else its RDMA device. */
static const char *short_name(const struct topo_nic *nic)
{
	if (nic->netdev)
		return nic->netdev;
	return nic->rdma_device ? nic->rdma_device : nic->name;
}

static int column_width(const struct topo_nic *nic)
{
	int width = (int)strlen(short_name(nic));

	return width < 8 ? 8 : width;
}

static void number(struct buf *out, int value)
{
	if (value >= 0)
		buf_printf(out, "  %-10d", value);
	else
		buf_printf(out, "  %-10s", "-");
}

static void rail_row(const struct inventory *inv, struct buf *out)
{
	buf_printf(out, "%-20s", "rail");
	for (size_t n = 0; n < inv->n_nics; n++) {
		const struct topo_nic *nic = &inv->nics[n];
		_cleanup_free_ char *rail = nic->rail >= 0 ? xasprintf("%d", nic->rail)
							   : xstrdup(topo_role_name(nic->role));

		buf_printf(out, "  %-*s", column_width(nic), rail);
	}
	buf_str(out, "\n");
}

char *topo_to_matrix(const struct inventory *inv)
{
	struct buf out = { 0 };
	struct strlist lines = { 0 };
	char *text;

	buf_printf(&out, "%-20s", "");
	for (size_t n = 0; n < inv->n_nics; n++)
		buf_printf(&out, "  %-*s", column_width(&inv->nics[n]), short_name(&inv->nics[n]));
	buf_str(&out, "  NUMA        rail group\n");
	for (size_t g = 0; g < inv->n_gpus; g++) {
		buf_printf(&out, "%-20s", inv->gpus[g].name);
		for (size_t n = 0; n < inv->n_nics; n++) {
			const struct topo_pair *pair = inventory_pair(inv, g, n);
			_cleanup_free_ char *cell = xasprintf("%s%s", path_class_name(pair->path),
							      pair->best ? "*" : "");

			buf_printf(&out, "  %-*s", column_width(&inv->nics[n]), cell);
		}
		number(&out, inv->gpus[g].numa_node);
		number(&out, inv->gpus[g].rail_group);
		buf_str(&out, "\n");
	}
	rail_row(inv, &out);
	/* No white space at the end of lines. */
	text = buf_take(&out);
	strlist_split(&lines, text, '\n');
	free(text);
	for (size_t i = 0; i < lines.n; i++)
		buf_printf(&out, "%s\n", str_rstrip(lines.items[i]));
	strlist_done(&lines);
	buf_str(&out, "\n"
		      "PIX   one switch            PXB   several switches\n"
		      "PHB   one root complex      NODE  one NUMA node\n"
		      "SYS   between NUMA nodes    *     best NICs of that GPU\n");
	return buf_take(&out);
}

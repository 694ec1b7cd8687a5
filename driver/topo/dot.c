// SPDX-License-Identifier: Apache-2.0
/* A graph for Graphviz: roots, switches and cards as clusters, best pairs as edges. */
#include "base/mem.h"
#include "base/str.h"
#include "topo/nest.h"
#include "topo/output.h"

/* The text between the quotes of a dot string. */
static void quote(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_str(out, "\\");
		buf_add(out, (unsigned char)*text < 0x20 ? " " : text, 1);
	}
}

static void indent(struct buf *out, int depth)
{
	for (int i = 0; i < depth; i++)
		buf_str(out, "\t");
}

static void device(const struct inventory *inv, const struct nest *nest, int depth, struct buf *out)
{
	bool is_gpu = nest->kind == NEST_GPU;
	const struct topo_gpu *gpu = is_gpu ? &inv->gpus[nest->index] : NULL;
	const struct topo_nic *nic = is_gpu ? NULL : &inv->nics[nest->index];

	indent(out, depth);
	buf_printf(out, "\"%s\" [shape=%s, label=\"%s", is_gpu ? gpu->name : nic->name,
		   is_gpu ? "box3d" : "box", is_gpu ? gpu->name : nic->name);
	if (is_gpu && gpu->model) {
		buf_str(out, "\\n");
		quote(out, gpu->model);
	}
	if (!is_gpu && nic->netdev) {
		buf_str(out, "\\n");
		quote(out, nic->netdev);
	}
	if (!is_gpu && nic->rdma_device) {
		buf_str(out, "\\n");
		quote(out, nic->rdma_device);
	}
	if (!is_gpu && nic->rail >= 0)
		buf_printf(out, "\\nrail %d", nic->rail);
	else if (!is_gpu)
		buf_printf(out, "\\n%s%s", nic->role == ROLE_UNKNOWN ? "role " : "",
			   topo_role_name(nic->role));
	buf_str(out, "\"];\n");
}

static void cluster(const struct inventory *inv, const struct nest *nest, int depth, int *number,
		    struct buf *out)
{
	const struct topo_card *card = nest->kind == NEST_CARD ? &inv->cards[nest->index] : NULL;

	indent(out, depth);
	buf_printf(out, "subgraph cluster%d {\n", (*number)++);
	indent(out, depth + 1);
	buf_str(out, "label=\"");
	if (nest->kind == NEST_ROOT) {
		quote(out, nest->root ? nest->root : "PCI root unknown");
	} else if (nest->kind == NEST_BRIDGE) {
		buf_printf(out, "switch %s", nest->bridge->bus_id);
	} else if (card) {
		buf_str(out, card->id);
		if (card->dma_bus_id)
			buf_printf(out, "\\nDMA by %s", card->dma_bus_id);
	}
	buf_printf(out, "\"; style=%s;\n", card ? "dashed" : "solid");
	for (size_t i = 0; i < nest->n; i++) {
		const struct nest *child = nest->children[i];

		if (child->kind == NEST_GPU || child->kind == NEST_NIC)
			device(inv, child, depth + 1, out);
		else
			cluster(inv, child, depth + 1, number, out);
	}
	indent(out, depth);
	buf_str(out, "}\n");
}

char *topo_to_dot(const struct inventory *inv)
{
	struct nest *top = nest_build(inv, false);
	struct buf out = { 0 };
	int number = 0;

	buf_str(&out, "graph topology {\n\tnode [fontname=\"sans-serif\"];\n"
		      "\tgraph [fontname=\"sans-serif\"];\n"
		      "\tedge [fontname=\"sans-serif\"];\n");
	for (size_t i = 0; i < top->n; i++)
		cluster(inv, top->children[i], 1, &number, &out);
	for (size_t i = 0; i < inv->n_pairs; i++) {
		const struct topo_pair *pair = &inv->pairs[i];

		if (pair->best && nest_stands_alone(inv, &inv->nics[pair->nic]))
			buf_printf(&out, "\t\"%s\" -- \"%s\" [label=\"%s\"];\n",
				   inv->gpus[pair->gpu].name, inv->nics[pair->nic].name,
				   path_class_name(pair->path));
	}
	buf_str(&out, "}\n");
	nest_free(top);
	return buf_take(&out);
}

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_OUTPUT_H
#define TWINRAIL_TOPO_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>

#include "topo/inventory.h"

/*
 * An inventory as texts.  All are malloc'ed, end with a new line, and depend on nothing but the
 * inventory: equal machines give equal bytes.
 */

/* The "NodeTopology" of docs/topology.schema.json; new reference. */
json_t *topo_to_json(const struct inventory *inv);

enum {
	TREE_COLOUR = 1, /* ANSI colours */
	TREE_VERBOSE = 2 /* firmware, board, PCI ids, all bridges */
};

/* Root complex → switch → device, each NIC where its DMA comes from.  "flags": TREE_…, or-ed. */
char *topo_to_tree(const struct inventory *inv, unsigned int flags);

/* Path classes of all GPUs and NICs as a table with a legend, as "nvidia-smi topo -m" shows them. */
char *topo_to_matrix(const struct inventory *inv);

/* A picture (SVG 1.1) without scripts, fonts or references. */
char *topo_to_svg(const struct inventory *inv);

/* A graph for Graphviz. */
char *topo_to_dot(const struct inventory *inv);

/*
 * The index of the device that is called so by any of the outputs: name, PCI address, link, RDMA
 * device, UUID, "GPU0" and "NIC0" of the matrix; also a card (its first PF), a bond (its first
 * link), a child's link or RDMA device (the NIC below it).  -1: none.
 */
int topo_find_gpu(const struct inventory *inv, const char *wanted);
int topo_find_nic(const struct inventory *inv, const char *wanted);

/* Why a GPU and a NIC (indexes) are as near or far as they are, hop by hop. */
char *topo_explain(const struct inventory *inv, size_t gpu, size_t nic, bool colour);
json_t *topo_explain_json(const struct inventory *inv, size_t gpu, size_t nic);

/* "Gen5 x16"; of a degraded link "Gen3 x8 of Gen5 x16".  NULL when nothing is known; malloc'ed. */
char *topo_link_text(const struct topo_link *link);

#endif

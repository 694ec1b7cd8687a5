/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_NUMA_H
#define TWINRAIL_TOPO_NUMA_H

#include "hw/machine.h"
#include "topo/inventory.h"

/* Kubernetes' deviceattribute library takes no greater one for a node's number. */
#define NUMA_NODE_MAX 1023

/* The node as the attribute resource.kubernetes.io/numaNode can have it; others are unknown. */
int numa_node_known(int node);

/*
 * The list form of that attribute, by the rule of Kubernetes' deviceattribute library: the node,
 * then in ascending order the nodes that are as near to it as any other one, by its row of the
 * distance table.  A position in that row is taken for a node's number.  Nodes that are known to
 * be on another socket are left out.  Only the node itself, when the row is not known or does not
 * reach it.  malloc'ed; NULL with *ret_n 0 for an unknown node.
 */
int *numa_nodes_near(const struct hw_machine *machine, int node, size_t *ret_n);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "topo/numa.h"

#include "base/mem.h"

int numa_node_known(int node)
{
	return node >= 0 && node <= NUMA_NODE_MAX ? node : TOPO_UNKNOWN;
}

static const struct hw_numa *find(const struct hw_machine *machine, int node)
{
	for (size_t i = 0; i < machine->n_numa; i++)
		if (machine->numa[i].node == node)
			return &machine->numa[i];
	return NULL;
}

static int socket_of(const struct hw_machine *machine, int node)
{
	const struct hw_numa *numa = find(machine, node);

	return numa && numa->package >= 0 ? numa->package : TOPO_UNKNOWN;
}

/* The smallest distance to another node; TOPO_UNKNOWN when there is none. */
static int least_distance(const struct hw_numa *numa)
{
	int least = TOPO_UNKNOWN;

	for (size_t i = 0; i < numa->n_distances; i++)
		if ((int)i != numa->node && (least < 0 || numa->distances[i] < least))
			least = numa->distances[i];
	return least;
}

int *numa_nodes_near(const struct hw_machine *machine, int node, size_t *ret_n)
{
	const struct hw_numa *numa = find(machine, node);
	int *nodes, socket, least;
	size_t n = 0;

	*ret_n = 0;
	if (numa_node_known(node) < 0)
		return NULL;
	nodes = xcalloc(numa ? numa->n_distances + 1 : 1, sizeof(int));
	nodes[n++] = node;
	*ret_n = n;
	if (!numa || (size_t)node >= numa->n_distances)
		return nodes;
	socket = socket_of(machine, node);
	least = least_distance(numa);
	for (size_t i = 0; i < numa->n_distances; i++) {
		int other = (int)i <= NUMA_NODE_MAX ? socket_of(machine, (int)i) : TOPO_UNKNOWN;

		if ((int)i == node || numa->distances[i] != least)
			continue;
		if (socket < 0 || other < 0 || socket == other)
			nodes[n++] = (int)i;
	}
	*ret_n = n;
	return nodes;
}

// SPDX-License-Identifier: Apache-2.0
/* NUMA nodes that are equally near, by the distance table. */
#include "test_topo_machine.h"

#include "topo/numa.h"

#define MAX 16

/* A machine whose node "node" has this row; sockets by node, -1 unknown. */
static struct hw_machine machine_of(struct hw_numa *numa, int node, const char *row,
				    const int *sockets, size_t n_sockets)
{
	struct strlist words = { 0 };

	strlist_split(&words, row, ' ');
	for (size_t i = 0; i < n_sockets; i++)
		numa[i] = (struct hw_numa){ .node = (int)i, .package = sockets[i] };
	numa[node].distances = xcalloc(words.n + 1, sizeof(int));
	numa[node].n_distances = words.n;
	for (size_t i = 0; i < words.n; i++)
		assert_int_equal(parse_int(words.items[i], &numa[node].distances[i]), 0);
	strlist_done(&words);
	return (struct hw_machine){ .numa = numa, .n_numa = n_sockets };
}

static void assert_near(int node, const char *row, const int *sockets, size_t n_sockets,
			const char *expected)
{
	struct hw_numa numa[MAX] = { 0 };
	struct hw_machine machine = machine_of(numa, node, row, sockets, n_sockets);
	struct buf text = { 0 };
	size_t n;
	int *nodes = numa_nodes_near(&machine, node, &n);

	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "%s%d", i ? "," : "", nodes[i]);
	assert_string_equal(text.data ? text.data : "", expected);
	buf_done(&text);
	free(nodes);
	free(numa[node].distances);
}

static const int one_socket[8], two_sockets[8] = { 0, 0, 0, 0, 1, 1, 1, 1 };
static const int unknown[8] = { -1, -1, -1, -1, -1, -1, -1, -1 };

static void test_rule(void **state)
{
	static const int no_own[8] = { 0, 0, 0, 0, 1, 1, -1, 1 };
	static const int no_other[8] = { 0, 0, 0, 0, 1, -1, 1, 1 };

	(void)state;
	/* The vector of KEP-6072. */
	assert_near(6, "32 32 32 32 12 12 10 12", two_sockets, 8, "6,4,5,7");
	/* Nearest of all, but on another socket. */
	assert_near(0, "10 12 12 12 12 32 32 32", two_sockets, 8, "0,1,2,3");
	assert_near(0, "10 32 32 32 12 32 32 32", two_sockets, 8, "0");
	/* What has no CPUs has no socket: it stays; without an own socket nothing is left out. */
	assert_near(6, "12 32 32 32 12 12 10 12", no_other, 8, "6,4,5,7");
	assert_near(6, "12 32 32 32 12 12 10 12", no_own, 8, "6,0,4,5,7");
	assert_near(6, "12 32 32 32 12 12 10 12", unknown, 8, "6,0,4,5,7");
	assert_near(1, "12 10 12", one_socket, 3, "1,0,2");
	/* Smaller than the distance to itself: only others count. */
	assert_near(0, "10 9 9", one_socket, 3, "0,1,2");
}

static void test_nothing_to_compare(void **state)
{
	(void)state;
	assert_near(0, "10", one_socket, 1, "0");
	assert_near(0, "", one_socket, 1, "0");
	/* The row ends before the node: positions are no numbers there. */
	assert_near(6, "10 12 12", one_socket, 8, "6");
}

static void test_unknown_nodes(void **state)
{
	struct hw_machine machine = { 0 };
	size_t n = 1;
	int *nodes;

	(void)state;
	assert_int_equal(numa_node_known(-1), TOPO_UNKNOWN);
	assert_int_equal(numa_node_known(0), 0);
	assert_int_equal(numa_node_known(1023), 1023);
	assert_int_equal(numa_node_known(1024), TOPO_UNKNOWN);
	assert_null(numa_nodes_near(&machine, -1, &n));
	assert_int_equal(n, 0);
	assert_null(numa_nodes_near(&machine, 1024, &n));
	nodes = numa_nodes_near(&machine, 3, &n); /* no table */
	assert_int_equal(n, 1);
	assert_int_equal(nodes[0], 3);
	free(nodes);
}

/* Filled when it is wanted, and never with what the attribute cannot have. */
static void test_in_the_inventory(void **state)
{
	struct topo_options options = { .numa_lists = true };
	struct hw_numa numa[2] = { 0 };
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };
	int row[2] = { 10, 20 };

	(void)state;
	add_gpu(&b, "pci0000:00/0000:00:01.0", 0);
	add_gpu(&b, "pci0000:00/0000:00:02.0", 1024);
	add_nic(&b, "pci0000:00/0000:00:03.0", 0x1021, 0, "mlx5_0", NULL, NULL);
	add_nic(&b, "pci0000:00/0000:00:04.0", 0x1021, 4000, "mlx5_1", NULL, NULL);
	machine = read_machine(b.data);
	buf_done(&b);
	free(machine->numa);
	numa[0] = (struct hw_numa){ 0, -1, row, 2 };
	numa[1] = (struct hw_numa){ 1, -1, NULL, 0 };
	machine->numa = numa;
	machine->n_numa = 2;
	inv = topo_build(machine, &options);
	assert_int_equal(inv->gpus[0].n_numa_nodes, 2);
	assert_int_equal(inv->gpus[0].numa_nodes[1], 1);
	assert_int_equal(inv->nics[0].n_numa_nodes, 2);
	assert_int_equal(inv->gpus[1].numa_node, TOPO_UNKNOWN);
	assert_int_equal(inv->gpus[1].n_numa_nodes, 0);
	assert_int_equal(inv->nics[1].numa_node, TOPO_UNKNOWN);
	inventory_unref(inv);
	inv = topo_build(machine, NULL);
	assert_int_equal(inv->gpus[0].n_numa_nodes, 0);
	assert_int_equal(inv->gpus[0].numa_node, 0);
	inventory_unref(inv);
	machine->numa = NULL;
	machine->n_numa = 0;
	hw_free(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_nothing_to_compare),
		cmocka_unit_test(test_unknown_nodes),
		cmocka_unit_test(test_in_the_inventory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * What holds for every machine, on random ones.  TWINRAIL_TEST_SEED=<number> begins with another
 * machine than the usual first one, TWINRAIL_TEST_SEEDS=<number> sets how many there are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuzz/topo_check.h"
#include "fuzz/topo_random.h"

#define FIRST_SEED 20260901
#define USUAL_MACHINES 1000

static uint64_t number_of(const char *variable, uint64_t fallback)
{
	const char *text = getenv(variable);
	uint64_t v;

	return text && parse_u64(text, 10, &v) == 0 ? v : fallback;
}

static uint64_t first_seed(void)
{
	return number_of("TWINRAIL_TEST_SEED", FIRST_SEED);
}

/* The count of other tests with seeds stands for a slow run: valgrind. */
static uint64_t last_seed(void)
{
	uint64_t n = number_of("TWINRAIL_TEST_SEEDS", 0);

	return first_seed() + (n ? n * 20 : USUAL_MACHINES);
}

static struct hw_machine *machine_of(uint64_t seed)
{
	struct chance chance = { .seed = seed };

	return machine_random(&chance);
}

/* The policy is part of the machine here: another seed, another one. */
static struct inventory *build(const struct hw_machine *machine, uint64_t seed)
{
	struct topo_options options = {
		.pcie_root = (enum pcie_root_policy)(seed % 4),
		.numa_lists = seed % 8 >= 4,
		.node_name = "node1",
		.own_known = seed % 2,
	};

	return topo_build(machine, &options);
}

static void fail_at(uint64_t seed, const char *text)
{
	fail_msg("machine %llu: %s; again: TWINRAIL_TEST_SEED=%llu", (unsigned long long)seed, text,
		 (unsigned long long)seed);
}

static void test_what_always_holds(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed(); seed < last_seed(); seed++) {
		struct hw_machine *machine = machine_of(seed);
		struct inventory *inv = build(machine, seed);
		char *wrong = check_inventory(inv, CHECK_ALL);

		if (wrong)
			fail_at(seed, wrong);
		inventory_unref(inv);
		hw_free(machine);
	}
}

/* All that is said, as one text; "rdmaDevice" may be left out. */
static void forget(json_t *value, const char *name)
{
	const char *key;
	json_t *v;
	size_t i;

	if (json_is_object(value)) {
		json_object_del(value, name);
		json_object_foreach(value, key, v)
			forget(v, name);
	}
	if (json_is_array(value))
		json_array_foreach(value, i, v)
			forget(v, name);
}

static char *all_of(const struct inventory *inv, bool rdma_names)
{
	struct publish_options options = { .driver = "twinrail.dev",
					   .node_name = "node1",
					   .kinds = PUBLISH_CARD | PUBLISH_NIC | PUBLISH_GPU |
						    PUBLISH_PF,
					   .root_list = true,
					   .numa_list = true,
					   .mirror = true };
	_cleanup_json_ json_t *all = json_new_array();

	json_add(all, topo_to_json(inv));
	json_add(all, publish_specs(inv, &options));
	if (!rdma_names) {
		forget(all, "rdmaDevice");
		forget(all, "dra.net/rdmaDevice");
	}
	return json_text_pretty(all);
}

static void assert_same_answer(uint64_t seed, const struct hw_machine *changed, bool rdma_names)
{
	struct hw_machine *machine = machine_of(seed);
	struct inventory *a = build(machine, seed), *b = build(changed, seed);
	_cleanup_free_ char *before = all_of(a, rdma_names), *after = all_of(b, rdma_names);

	if (!streq(before, after)) {
		size_t at = 0, from;

		while (before[at] == after[at])
			at++;
		from = at < 200 ? 0 : at - 200;
		print_error("before: %.400s\nafter: %.400s\n", before + from, after + from);
		fail_at(seed, "the answer is another one");
	}
	inventory_unref(a);
	inventory_unref(b);
	hw_free(machine);
}

static void shuffle(struct chance *c, struct strlist *list)
{
	for (size_t i = list->n; i > 1; i--) {
		size_t k = below(c, (unsigned int)i);
		char *moved = list->items[i - 1];

		list->items[i - 1] = list->items[k];
		list->items[k] = moved;
	}
}

/* Lists of links come as the kernel gives them; devices and IP facts are sorted. */
static void test_order_of_lists(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed(); seed < last_seed(); seed++) {
		struct hw_machine *machine = machine_of(seed);
		struct chance chance = { .seed = ~seed };

		shuffle(&chance, &machine->default_routes);
		for (size_t i = 0; i < machine->n_netdevs; i++)
			shuffle(&chance, &machine->netdevs[i].lower);
		assert_same_answer(seed, machine, true);
		hw_free(machine);
	}
}

/* The numbers of RDMA devices depend on the order in which their driver found them. */
static void test_renumbered_rdma_devices(void **state)
{
	(void)state;
	for (uint64_t seed = first_seed(); seed < last_seed(); seed++) {
		struct hw_machine *machine = machine_of(seed);
		struct chance chance = { .seed = ~seed };
		struct strlist numbers = { 0 };

		for (size_t i = 0; i < machine->n_rdma; i++)
			strlist_take(&numbers, xasprintf("mlx5_%zu", i * 3));
		shuffle(&chance, &numbers);
		for (size_t i = 0; i < machine->n_rdma; i++) {
			char *name = machine->rdma[i].name;

			if (!starts_with(name, "mlx5_"))
				continue;
			free(name);
			machine->rdma[i].name = xstrdup(numbers.items[i]);
		}
		machine_sort(machine);
		assert_same_answer(seed, machine, false);
		strlist_done(&numbers);
		hw_free(machine);
	}
}

/* The machines are not all alike: what the checks are about does occur. */
static void test_machines_have_everything(void **state)
{
	size_t cards = 0, atomic = 0, best = 0, rails = 0, vfs = 0, children = 0, frontends = 0;
	size_t direct = 0, flat = 0, contradictions = 0, no_root = 0;

	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 300; seed++) {
		struct hw_machine *machine = machine_of(seed);
		struct inventory *inv = build(machine, 0);

		for (size_t i = 0; i < inv->n_cards; i++)
			atomic += inv->cards[i].atomic;
		for (size_t i = 0; i < inv->n_nics; i++) {
			vfs += inv->nics[i].is_vf;
			children += inv->nics[i].n_children;
			frontends += inv->nics[i].role == ROLE_FRONTEND;
			direct += inv->nics[i].dma_bus_id != NULL;
			no_root += inv->nics[i].pcie_root == NULL;
		}
		for (size_t i = 0; i < inv->n_pairs; i++)
			best += inv->pairs[i].best;
		for (size_t i = 0; i < inv->n_warnings; i++)
			contradictions += streq(inv->warnings[i].code, "card-contradiction");
		cards += inv->n_cards;
		rails += inv->rail_count > 0;
		flat += inv->topology_class == CLASS_FLAT;
		inventory_unref(inv);
		hw_free(machine);
	}
	print_message("%zu cards, %zu atomic, %zu best pairs, %zu machines with rails, %zu VFs, "
		      "%zu children, %zu of the node, %zu Data Direct, %zu flat, "
		      "%zu contradictions, %zu without pcieRoot\n",
		      cards, atomic, best, rails, vfs, children, frontends, direct, flat,
		      contradictions, no_root);
	assert_true(cards > 50 && atomic > 5 && best > 100 && rails > 30 && vfs > 50);
	assert_true(children > 20 && frontends > 20 && direct > 20 && contradictions > 20);
	assert_true(flat > 0 && no_root > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines_have_everything),
		cmocka_unit_test(test_what_always_holds),
		cmocka_unit_test(test_order_of_lists),
		cmocka_unit_test(test_renumbered_rdma_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

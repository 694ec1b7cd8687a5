// SPDX-License-Identifier: Apache-2.0
/* The publisher against a simulated API server: every order of events, no waiting. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/log.h"
#include "publish/internal.h"
#include "unit/test_publish_machine.h"
#include "unit/test_publish_server.h"

#define NICS PUBLISH_NIC
#define CARDS (PUBLISH_CARD | PUBLISH_NIC | PUBLISH_PF)

static struct publisher *publisher;
static struct publish_options options;
static json_t *history; /* all contents that were ever wanted */
static struct machine machines[8];
static size_t n_machines;

static void start_publisher(unsigned int kinds)
{
	struct err err = { 0 };

	options = (struct publish_options){
		.driver = "twinrail.dev", .node_name = "node1", .kinds = kinds, .mirror = true
	};
	assert_int_equal(publisher_new(NULL, NULL, &options, &publisher, &err), 0);
}

static struct machine *new_machine(void)
{
	assert_true(n_machines < ARRAY_SIZE(machines));
	return &machines[n_machines++];
}

/* The devices of a pool as one text. */
static char *content_of(const json_t *specs)
{
	_cleanup_json_ json_t *all = json_array();
	const json_t *spec;
	size_t i;

	json_array_foreach(specs, i, spec) {
		json_array_append(all, json_object_get(spec, "devices"));
		json_array_append(all, json_object_get(spec, "sharedCounters"));
	}
	return json_text(all);
}

static void set_machine(struct machine *m)
{
	for (unsigned int no_pf = 0; no_pf < 2; no_pf++) {
		struct publish_options o = options;
		_cleanup_json_ json_t *specs = NULL;
		_cleanup_free_ char *content = NULL;

		o.kinds &= no_pf ? ~(unsigned int)PUBLISH_PF : ~0U;
		specs = publish_specs(&m->inv, &o);
		content = content_of(specs);
		json_array_append_new(history, json_string(content));
	}
	publisher_set(publisher, &m->inv);
}

/* The specs of the pool's highest generation in their order, when they are complete. */
static json_t *complete_pool(long long *generation)
{
	json_t *specs = json_array();
	struct strlist names = { 0 };
	long long highest = 0, count = 0;
	const char *name;
	json_t *object;

	json_object_foreach(server.objects, name, object) {
		long long g = json_integer_value(json_path(object, "spec.pool.generation"));

		if (g > highest)
			highest = g;
		strlist_add(&names, name);
	}
	strlist_sort(&names);
	for (size_t i = 0; i < names.n; i++) {
		json_t *spec = json_path(json_object_get(server.objects, names.items[i]), "spec");

		spec = json_object_get(json_object_get(server.objects, names.items[i]), "spec");
		if (json_integer_value(json_path(spec, "pool.generation")) != highest)
			continue;
		count = json_integer_value(json_path(spec, "pool.resourceSliceCount"));
		json_array_append(specs, spec);
	}
	strlist_done(&names);
	if (generation)
		*generation = highest;
	if (highest == 0 || (long long)json_array_size(specs) != count) {
		json_decref(specs);
		return NULL;
	}
	return specs;
}

/* What a scheduler may see: never a mixture of two contents. */
static void check_not_mixed(void)
{
	_cleanup_json_ json_t *specs = complete_pool(NULL);
	_cleanup_free_ char *content = NULL;
	const json_t *known;
	size_t i;

	if (!specs)
		return;
	content = content_of(specs);
	json_array_foreach(history, i, known)
		if (streq(json_string_value(known), content))
			return;
	fail_msg("a complete pool has a content that nobody wanted: %s", content);
}

/* Exactly the wanted slices, all of one generation, owned by the node. */
static long long check_published(struct machine *m, unsigned int kinds)
{
	struct publish_options o = options;
	_cleanup_json_ json_t *wanted = NULL, *specs = NULL;
	long long generation = 0;
	const char *name;
	json_t *object;

	o.kinds = kinds;
	wanted = publish_specs(&m->inv, &o);
	specs = complete_pool(&generation);
	assert_non_null(specs);
	assert_int_equal(json_object_size(server.objects), json_array_size(wanted));
	assert_int_equal(json_array_size(specs), json_array_size(wanted));
	for (size_t i = 0; i < json_array_size(wanted); i++)
		assert_true(
			slice_same_content(json_array_get(specs, i), json_array_get(wanted, i)));
	json_object_foreach(server.objects, name, object) {
		const json_t *owner =
			json_array_get(json_path(object, "metadata.ownerReferences"), 0);

		assert_true(strstr(name, "-twinrail.dev-node1-") != NULL);
		assert_string_equal(json_path_string(object, "spec.nodeName"), "node1");
		if (!owner && server.on_commit == NULL)
			continue; /* made by others, taken over */
		assert_string_equal(json_path_string(owner, "uid"), server.node_uid);
		assert_string_equal(json_path_string(owner, "kind"), "Node");
		assert_true(json_is_true(json_object_get(owner, "controller")));
	}
	return generation;
}

static unsigned int count(const char *prefix)
{
	unsigned int n = 0;
	const json_t *entry;
	size_t i;

	json_array_foreach(server.log, i, entry)
		n += starts_with(json_string_value(entry), prefix);
	return n;
}

static unsigned int writes(void)
{
	return count("POST") + count("PUT") + count("DELETE");
}

static const char *slice_name(size_t index)
{
	const char *name;
	json_t *object;
	size_t i;

	json_object_foreach(server.objects, name, object)
		if (slice_index(name, &i) == 0 && i == index)
			return name;
	return NULL;
}

static int setup(void **state)
{
	(void)state;
	server_start();
	server.on_commit = check_not_mixed;
	history = json_array();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	publisher = publisher_free(publisher);
	for (; n_machines > 0; n_machines--) {
		int refs = machines[n_machines - 1].inv.refs;

		machine_done(&machines[n_machines - 1]);
		assert_int_equal(refs, 1000);
	}
	server_stop();
	json_decref(history);
	return 0;
}

/* A pool of "n" NICs, published and at rest; the log is empty. */
static struct machine *published(size_t n)
{
	struct machine *m = new_machine();

	machine_nics(m, n);
	start_publisher(NICS);
	set_machine(m);
	run_for(1);
	check_published(m, NICS);
	json_array_clear(server.log);
	return m;
}

static void test_first_publish(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	machine_nics(m, 8);
	start_publisher(NICS);
	set_machine(m);
	run_for(0.1);
	assert_int_equal(check_published(m, NICS), 1);
	assert_int_equal(server.n_node_reads, 1);
	assert_int_equal(writes(), 1);
	/* Then silence, but for the lists every five minutes. */
	run_for(3600);
	assert_int_equal(writes(), 1);
	assert_in_range(server.n_lists, 12, 15);
	publisher = publisher_free(publisher);
	run_for(10);
	assert_int_equal(json_object_size(server.objects), 1);
}

static void test_nothing_before_the_inventory(void **state)
{
	(void)state;
	start_publisher(NICS);
	run_for(1000);
	assert_int_equal(json_array_size(server.log), 0);
}

static void test_a_node_without_devices_has_a_slice(void **state)
{
	struct machine *m = published(0);

	(void)state;
	assert_int_equal(check_published(m, NICS), 1);
	assert_null(json_path(json_object_get(server.objects, slice_name(0)), "devices"));
}

static void test_equal_is_not_written(void **state)
{
	struct machine *m = published(200), *same = new_machine();

	(void)state;
	machine_nics(same, 200);
	set_machine(same);
	run_for(10);
	assert_int_equal(writes(), 0);
	/* A restart, too. */
	publisher_free(publisher);
	start_publisher(NICS);
	set_machine(m);
	run_for(400);
	assert_int_equal(writes(), 0);
	assert_int_equal(check_published(m, NICS), 1);
}

static void test_one_changed_slice_keeps_the_generation(void **state)
{
	struct machine *m;

	(void)state;
	published(200);
	m = new_machine();
	machine_nics(m, 200);
	m->inv.nics[150].role = ROLE_STORAGE;
	set_machine(m);
	run_for(1);
	assert_int_equal(check_published(m, NICS), 1);
	assert_int_equal(writes(), 1);
	assert_int_equal(count("PUT 00001-"), 1);
}

static void test_two_changed_slices_begin_a_generation(void **state)
{
	struct machine *m;

	(void)state;
	published(300);
	m = new_machine();
	machine_nics(m, 300);
	m->inv.nics[0].role = ROLE_STORAGE;
	m->inv.nics[299].role = ROLE_STORAGE;
	set_machine(m);
	run_for(1);
	assert_int_equal(check_published(m, NICS), 2);
	assert_int_equal(writes(), 3);
	assert_int_equal(count("PUT"), 3);
}

static void test_growing_and_shrinking(void **state)
{
	struct machine *more, *fewer;

	(void)state;
	published(128);
	more = new_machine();
	machine_nics(more, 129);
	set_machine(more);
	run_for(1);
	assert_int_equal(check_published(more, NICS), 2);
	assert_true(starts_with(json_string_value(json_array_get(server.log, 0)), "PUT 00000-"));
	assert_string_equal(json_string_value(json_array_get(server.log, 1)),
			    "POST resourceslices");
	json_array_clear(server.log);
	fewer = new_machine();
	machine_nics(fewer, 3);
	set_machine(fewer);
	run_for(1);
	assert_int_equal(check_published(fewer, NICS), 3);
	assert_true(starts_with(json_string_value(json_array_get(server.log, 0)), "DELETE 00001-"));
	assert_true(starts_with(json_string_value(json_array_get(server.log, 1)), "PUT 00000-"));
	assert_int_equal(writes(), 2);
}

static void test_back_after_a_wipe(void **state)
{
	struct machine *m = published(200);

	(void)state;
	server_wipe();
	run_for(1);
	assert_int_equal(check_published(m, NICS), 1);
	assert_int_equal(count("POST"), 2);
	assert_int_equal(writes(), 2);
	/* The Node was made anew: its slices vanish, the new ones name the new Node. */
	server.node_uid = "node-uid-2";
	server_wipe();
	run_for(1);
	check_published(m, NICS);
}

static void test_a_wipe_event_by_event(void **state)
{
	struct machine *m = published(300);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		server_delete(slice_name(i));
		run_for(0.25); /* the rest goes while the first is being made again */
	}
	run_for(2);
	check_published(m, NICS);
}

static void test_back_after_a_deletion_by_hand(void **state)
{
	struct machine *m = published(200);

	(void)state;
	server_delete(slice_name(0));
	run_for(1);
	check_published(m, NICS);
	assert_int_equal(count("POST"), 1);
}

/* Somebody writes all the time; that must not put the repair off. */
static void test_no_starvation(void **state)
{
	struct machine *m = published(200);

	(void)state;
	server_delete(slice_name(1));
	for (int i = 0; i < 10; i++) {
		server_edit(slice_name(0), "metadata.labels", json_pack("{s:i}", "a", i));
		run_for(0.1);
	}
	check_published(m, NICS);
}

static void test_edits_by_hand_are_undone(void **state)
{
	struct machine *m = published(200);

	(void)state;
	server.on_commit = NULL;
	server_edit(slice_name(1), "spec.devices", json_array());
	run_for(1);
	check_published(m, NICS);
	assert_int_equal(writes(), 1);
	server_edit(slice_name(0), "spec.pool.generation", json_integer(7));
	run_for(1);
	check_published(m, NICS);
	server_edit(slice_name(0), "spec.allNodes", json_true());
	run_for(1);
	check_published(m, NICS);
	/* Labels are not ours. */
	json_array_clear(server.log);
	server_edit(slice_name(0), "metadata.labels", json_pack("{s:s}", "a", "b"));
	run_for(1);
	assert_int_equal(writes(), 0);
	server_edit(slice_name(0), "spec.devices", json_array());
	run_for(1);
	check_published(m, NICS);
	assert_string_equal(json_path_string(json_object_get(server.objects, slice_name(0)),
					     "metadata.labels.a"),
			    "b");
}

static void test_obsolete_slices_are_deleted_first(void **state)
{
	static const struct {
		const char *name, *pool;
	} foreign[] = {
		{ "node1-twinrail.dev-abcde", "node1" }, /* the naming of other libraries */
		{ "0000f-twinrail.dev-node1-abcde", "node1" }, /* beyond the last */
		{ "00000-twinrail.dev-node1-abcde", "node1" }, /* a second one */
		{ "00000-twinrail.dev-node1-other", "node1/gpus" }, /* a pool nobody wants */
	};
	struct machine *m = new_machine();

	(void)state;
	server.on_commit = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		server_create(json_pack("{s:{s:s},s:{s:s,s:s,s:{s:s,s:i,s:i}}}", "metadata", "name",
					foreign[i].name, "spec", "driver", "twinrail.dev",
					"nodeName", "node1", "pool", "name", foreign[i].pool,
					"generation", 4, "resourceSliceCount", 3));
	machine_nics(m, 8);
	start_publisher(NICS);
	set_machine(m);
	run_for(1);
	check_published(m, NICS);
	/* One of the two with index 0 is taken over. */
	assert_int_equal(count("DELETE"), 3);
	assert_int_equal(count("POST"), 0);
	assert_true(starts_with(json_string_value(json_array_get(server.log, 2)), "DELETE"));
}

static void test_an_interrupted_update_goes_on(void **state)
{
	struct machine *m;

	(void)state;
	published(300);
	m = new_machine();
	machine_nics(m, 300);
	m->inv.nics[0].role = m->inv.nics[299].role = ROLE_STORAGE;
	set_machine(m);
	while (count("PUT") < 1)
		assert_true(run_next(UINT64_MAX - 1));
	publisher_free(publisher);
	start_publisher(NICS);
	set_machine(m);
	run_for(1);
	assert_int_equal(check_published(m, NICS), 2);
	assert_int_equal(count("PUT"), 3);
}

static void test_conflict(void **state)
{
	struct machine *m;

	(void)state;
	published(8);
	m = new_machine();
	machine_nics(m, 9);
	server.fault = (struct fault){ "PUT", 409, false, 3 };
	set_machine(m);
	run_for(0.05);
	assert_int_equal(count("PUT"), 2); /* once at once, then with back-off */
	run_for(5);
	check_published(m, NICS);
	assert_int_equal(count("PUT"), 4);
}

static void test_update_races_with_deletion(void **state)
{
	struct machine *m;

	(void)state;
	published(8);
	m = new_machine();
	machine_nics(m, 9);
	server.watch_delay = 5000000;
	set_machine(m); /* the PUT is under way */
	server_wipe();
	run_for(2);
	check_published(m, NICS);
	assert_int_equal(count("POST"), 1);
}

/* Refused content is sent again with each full list only, as policies may change. */
static void test_invalid_is_tried_slowly(void **state)
{
	struct machine *m = new_machine(), *other;

	(void)state;
	machine_nics(m, 8);
	start_publisher(NICS);
	server.fault = (struct fault){ "POST", 422, false, 1000 };
	set_machine(m);
	run_for(299);
	assert_int_equal(count("POST"), 1);
	set_machine(m);
	run_for(700);
	assert_int_equal(count("POST"), 4);
	server.fault.times = 0;
	other = new_machine();
	machine_nics(other, 9);
	set_machine(other);
	run_for(1);
	check_published(other, NICS);
}

static void test_invalid_may_become_valid(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	machine_nics(m, 8);
	start_publisher(NICS);
	server.fault = (struct fault){ "POST", 422, false, 1000 };
	set_machine(m);
	run_for(10);
	server.fault.times = 0;
	run_for(280);
	assert_int_equal(count("POST"), 1);
	run_for(20);
	check_published(m, NICS);
}

static void test_forbidden_is_tried_slowly(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	machine_nics(m, 8);
	start_publisher(NICS);
	server.fault = (struct fault){ "POST", 403, false, 1000 };
	set_machine(m);
	run_for(299);
	assert_in_range(count("POST"), 9, 11);
	server.fault.times = 0;
	run_for(31);
	check_published(m, NICS);
}

static void test_passing_faults(void **state)
{
	static const int statuses[] = { 429, 500, 503, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct machine *m = new_machine();

		machine_nics(m, 300);
		start_publisher(NICS);
		server.fault = (struct fault){ "POST", statuses[i], false, 4 };
		set_machine(m);
		run_for(0.1);
		assert_int_equal(count("POST"), 1);
		run_for(15);
		check_published(m, NICS);
		publisher = publisher_free(publisher);
		server_wipe();
		json_array_clear(server.log);
	}
}

/* The POST was done, its answer got lost. */
static void test_lost_answer(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	machine_nics(m, 300);
	start_publisher(NICS);
	server.watch_delay = 5000000; /* only a list tells */
	server.fault = (struct fault){ "POST", 0, true, 2 };
	set_machine(m);
	run_for(10);
	check_published(m, NICS);
	assert_int_equal(count("POST"), 3);
	assert_int_equal(count("DELETE"), 0);
}

static void test_node_appears_late(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	server.node_uid = NULL;
	machine_nics(m, 8);
	start_publisher(NICS);
	set_machine(m);
	run_for(10);
	assert_int_equal(writes(), 0);
	assert_in_range(server.n_node_reads, 4, 10);
	server.node_uid = "node-uid-1";
	run_for(30);
	check_published(m, NICS);
}

static void test_a_late_watch_makes_no_doubles(void **state)
{
	struct machine *m, *n;

	(void)state;
	server.watch_delay = 20000000;
	m = published(300);
	run_for(0.5);
	n = new_machine();
	machine_nics(n, 301);
	set_machine(n);
	run_for(60);
	check_published(n, NICS);
	assert_int_equal(writes(), 1);
	set_machine(m);
	run_for(0.5);
	server_wipe();
	run_for(22);
	check_published(m, NICS);
}

/* The list was made before our write and arrives after it. */
static void test_a_late_list_makes_no_doubles(void **state)
{
	struct machine *m = published(8), *n = new_machine();

	(void)state;
	machine_nics(n, 200);
	server.list_delay = 50000;
	server.watch_delay = 1000000;
	kube_watch_relist(server.watch);
	set_machine(n);
	run_for(10);
	check_published(n, NICS);
	assert_int_equal(count("POST"), 1);
	assert_int_equal(writes(), 2);
	(void)m;
}

/* The watch tells of the end of a slice before the answer to its creation is here. */
static void delete_new_slice(void)
{
	server.on_commit = NULL;
	server_delete(slice_name(0));
}

static void test_deleted_while_it_is_created(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	server.watch_delay = 0;
	server.on_commit = delete_new_slice;
	machine_nics(m, 8);
	start_publisher(NICS);
	set_machine(m);
	run_for(2);
	check_published(m, NICS);
	assert_int_equal(count("POST"), 2);
}

static void test_dropped_counters(void **state)
{
	unsigned int without = CARDS & ~(unsigned int)PUBLISH_PF;
	struct machine *m = new_machine();
	unsigned int n;

	(void)state;
	machine_cards(m, 4);
	start_publisher(CARDS);
	set_machine(m);
	run_for(1);
	assert_int_equal(check_published(m, CARDS), 1); /* the gate is on */

	server.drop_counters = true;
	server_wipe();
	run_for(2);
	check_published(m, without);
	n = writes();
	run_for(1000);
	assert_int_equal(writes(), n);
	server_wipe();
	run_for(2);
	check_published(m, without);
	/* After a restart it tries once more. */
	publisher_free(publisher);
	start_publisher(CARDS);
	json_array_clear(server.log);
	set_machine(m);
	run_for(1000);
	check_published(m, without);
	assert_int_equal(writes(), 2);
}

/* "n" NICs whose DMA comes from elsewhere, with lists. */
static struct machine *list_machine(size_t n)
{
	struct machine *m = new_machine();

	machine_nics(m, n);
	publisher_free(publisher);
	start_publisher(NICS);
	options.root_list = true;
	publisher_free(publisher);
	assert_int_equal(publisher_new(NULL, NULL, &options, &publisher, &(struct err){ 0 }), 0);
	return m;
}

static const char *stored_root(const char *type)
{
	const json_t *object = json_object_get(server.objects, slice_name(0));
	const json_t *device = json_array_get(json_path(object, "spec.devices"), 0);
	const json_t *value = json_object_get(json_object_get(device, "attributes"),
					      "resource.kubernetes.io/pcieRoot");
	const json_t *v = json_object_get(value, type);

	return json_string_value(json_is_array(v) ? json_array_get(v, 0) : v);
}

/* The gate is off: one value each, no loop; after a restart it tries once more. */
static void test_lists_without_their_gate(void **state)
{
	struct machine *m = list_machine(8);

	(void)state;
	server.on_commit = NULL;
	set_machine(m);
	run_for(1);
	assert_string_equal(stored_root("strings"), "pci0009:00");

	for (int silent = 0; silent < 2; silent++) {
		server.drop_lists = silent;
		server.refuse_lists = !silent;
		server_wipe();
		run_for(2);
		m = list_machine(9);
		json_array_clear(server.log);
		set_machine(m);
		run_for(5);
		assert_string_equal(stored_root("string"), "pci0009:00");
		assert_null(stored_root("strings"));
		assert_int_equal(writes(), 2);
		run_for(1000);
		assert_int_equal(writes(), 2);
	}
}

/* Another reason to refuse a slice with lists, also one that names attributes, is not the gate. */
static void test_lists_refused_for_other_reasons(void **state)
{
	static const char *const texts[] = {
		" spec.devices[0].attributes[dra.net/ifName].string: Too long: may not be more "
		"than 64",
		" spec.devices[0].attributes[resource.kubernetes.io/pcieRoot].strings[1]: Too long",
		" spec.devices[0].attributes: Too many: 40: must have at most 32 items",
		" admission webhook \"attributes.example.com\" denied the request: no attributes",
	};
	struct machine *m = list_machine(8);

	(void)state;
	server.on_commit = NULL;
	set_machine(m);
	run_for(1);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		server.refusal = texts[i];
		server.fault = (struct fault){ "POST", 422, false, 1000 };
		server_wipe();
		run_for(400);
		server.fault.times = 0;
		run_for(400);
		if (!stored_root("strings"))
			fail_msg("no lists any more after \"%s\"", texts[i]);
	}
}

static void test_other_dropped_fields_make_no_loop(void **state)
{
	struct machine *m = new_machine();

	(void)state;
	server.on_commit = NULL;
	server.drop_capacity = true;
	machine_nics(m, 8);
	start_publisher(NICS);
	set_machine(m);
	run_for(1000);
	assert_int_equal(writes(), 1);
	server_edit(slice_name(0), "metadata.labels", json_pack("{s:s}", "a", "b"));
	run_for(1000);
	assert_int_equal(writes(), 2);
}

static void test_names_are_checked(void **state)
{
	struct publish_options o = { .driver = "Twin Rail", .node_name = "node1" };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(publisher_new(NULL, NULL, &o, &publisher, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "Twin Rail"));
	publisher = NULL;
	assert_null(publisher_free(NULL));
}

/* Anything in any order: in the end the pool is right, and it never was a mixture. */
static void test_random_histories(void **state)
{
	static const size_t sizes[] = { 0, 3, 128, 129, 257 };
	const char *more = getenv("TWINRAIL_TEST_SEEDS");
	unsigned int seeds = 5;
	struct machine *m[ARRAY_SIZE(sizes)];

	(void)state;
	if (more)
		assert_int_equal(parse_uint(more, 1000000, &seeds), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		m[i] = new_machine();
		machine_nics(m[i], sizes[i]);
	}
	for (unsigned int seed = 1; seed <= seeds; seed++) {
		size_t current = seed % ARRAY_SIZE(sizes);

		srandom(seed);
		server.on_commit = NULL;
		server_wipe();
		json_array_clear(server.events);
		json_array_clear(history);
		server.on_commit = check_not_mixed;
		start_publisher(NICS);
		set_machine(m[current]);
		for (int step = 0; step < 20; step++) {
			static const char *const methods[] = { "POST", "PUT", "DELETE", "GET" };
			static const int statuses[] = { 409, 500, 429, 0 };
			const char *name;

			run_for((double)(random() % 1000) / 2000);
			switch (random() % 6) {
			case 0:
			case 1:
				current = (size_t)random() % ARRAY_SIZE(sizes);
				set_machine(m[current]);
				break;
			case 2:
				name = slice_name((size_t)random() % 4);
				if (name)
					server_delete(name);
				break;
			case 3:
				server_wipe();
				break;
			case 4:
				server.fault =
					(struct fault){ methods[random() % 4],
							statuses[random() % 4], random() % 2, 1 };
				break;
			default:
				server.watch_delay = (uint64_t)random() % 400000;
				server.list_delay = (uint64_t)random() % 400000;
				break;
			}
		}
		server.fault.times = 0;
		run_for(10);
		check_published(m[current], NICS);
		publisher = publisher_free(publisher);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_first_publish),
		T(test_nothing_before_the_inventory),
		T(test_a_node_without_devices_has_a_slice),
		T(test_equal_is_not_written),
		T(test_one_changed_slice_keeps_the_generation),
		T(test_two_changed_slices_begin_a_generation),
		T(test_growing_and_shrinking),
		T(test_back_after_a_wipe),
		T(test_a_wipe_event_by_event),
		T(test_back_after_a_deletion_by_hand),
		T(test_no_starvation),
		T(test_edits_by_hand_are_undone),
		T(test_obsolete_slices_are_deleted_first),
		T(test_an_interrupted_update_goes_on),
		T(test_conflict),
		T(test_update_races_with_deletion),
		T(test_invalid_is_tried_slowly),
		T(test_invalid_may_become_valid),
		T(test_forbidden_is_tried_slowly),
		T(test_passing_faults),
		T(test_lost_answer),
		T(test_node_appears_late),
		T(test_a_late_watch_makes_no_doubles),
		T(test_a_late_list_makes_no_doubles),
		T(test_deleted_while_it_is_created),
		T(test_dropped_counters),
		T(test_lists_without_their_gate),
		T(test_lists_refused_for_other_reasons),
		T(test_other_dropped_fields_make_no_loop),
		T(test_names_are_checked),
		T(test_random_histories),
	};

	log_init(LOG_FORMAT_TEXT, getenv("V") ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

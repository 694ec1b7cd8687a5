// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "publish/internal.h"
#include "unit/test_publish_machine.h"

#define ALL_KINDS (PUBLISH_CARD | PUBLISH_NIC | PUBLISH_GPU | PUBLISH_PF)

static struct publish_options options_of(unsigned int kinds)
{
	return (struct publish_options){
		.driver = "twinrail.dev", .node_name = "node1", .kinds = kinds, .mirror = true
	};
}

static const char *string_of(const json_t *device, const char *key)
{
	return json_string_value(json_object_get(
		json_object_get(json_object_get(device, "attributes"), key), "string"));
}

static const json_t *attribute(const json_t *device, const char *key)
{
	return json_object_get(json_object_get(device, "attributes"), key);
}

/* TOPO_UNKNOWN: there is no such attribute, or it is no "int". */
static long long int_of(const json_t *device, const char *key)
{
	const json_t *v = json_object_get(attribute(device, key), "int");

	return v ? json_integer_value(v) : TOPO_UNKNOWN;
}

static const json_t *device_at(const json_t *specs, size_t slice, size_t i)
{
	return json_array_get(json_object_get(json_array_get(specs, slice), "devices"), i);
}

static bool is_identifier(const char *s, size_t n)
{
	if (n == 0 || n > 32 || (*s >= '0' && *s <= '9'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
			    s[i]))
			return false;
	return true;
}

/* The API server's rules for one attribute, and ours: nothing empty but in the mirror. */
static void check_attribute(const char *key, const json_t *value)
{
	const char *slash = strchr(key, '/');
	const char *name = slash ? slash + 1 : key;
	bool mirror = starts_with(key, "dra.net/");
	const char *type;
	json_t *v;

	assert_true(is_identifier(name, strlen(name)));
	assert_int_equal(json_object_size(value), 1);
	json_object_foreach((json_t *)(uintptr_t)value, type, v) {
		if (json_is_string(v)) {
			assert_true(streq(type, "string") || streq(type, "version"));
			assert_true(json_string_length(v) <= 64);
			assert_true(mirror || json_string_length(v) > 0);
		} else if (json_is_array(v)) {
			assert_true(streq(type, "ints") || streq(type, "strings"));
			assert_true(json_array_size(v) >= 2);
		} else if (json_is_integer(v)) {
			assert_string_equal(type, "int");
			assert_true(json_integer_value(v) >= 0);
		} else {
			assert_true(json_is_boolean(v));
			assert_string_equal(type, "bool");
		}
	}
}

static void check_device(const json_t *device)
{
	static const char *const mirror[] = { "ifName",	 "rdma", "rdmaDevice", "pciAddress",
					      "virtual", "mtu",	 "state",      "type" };
	const json_t *attributes = json_object_get(device, "attributes");
	size_t n = json_object_size(attributes) +
		   json_object_size(json_object_get(device, "capacity"));
	const char *key;
	json_t *value;

	assert_true(is_dns_label(json_path_string(device, "name")));
	assert_true(n <= 32); /* attributes and capacities together: a limit of the API */
	json_object_foreach((json_t *)(uintptr_t)attributes, key, value)
		check_attribute(key, value);
	for (size_t i = 0; i < ARRAY_SIZE(mirror); i++) {
		char name[64];

		snprintf(name, sizeof(name), "dra.net/%s", mirror[i]);
		assert_int_equal(json_object_get(attributes, name) != NULL,
				 !streq(string_of(device, "type"), "gpu"));
	}
}

/* Every counter that is consumed exists and has that much. */
static void check_consumed(const json_t *specs, const json_t *device)
{
	const json_t *entry, *spec, *set;
	size_t i, j, k;

	json_array_foreach(json_object_get(device, "consumesCounters"), i, entry) {
		const json_t *found = NULL;
		const char *name;
		json_t *value;

		json_array_foreach(specs, j, spec) {
			json_array_foreach(json_object_get(spec, "sharedCounters"), k, set)
				if (streq(json_path_string(set, "name"),
					  json_path_string(entry, "counterSet")))
					found = set;
		}
		assert_non_null(found);
		assert_true(json_object_size(json_object_get(entry, "counters")) > 0);
		json_object_foreach(json_object_get(entry, "counters"), name, value) {
			assert_true(is_dns_label(name));
			assert_true(json_equal(
				value, json_object_get(json_object_get(found, "counters"), name)));
		}
	}
}

/* What the API server and the allocator ask of a pool. */
static void check_specs(const json_t *specs)
{
	struct strlist names = { 0 }, sets = { 0 };
	const json_t *spec, *device, *set;
	size_t i, j;

	json_array_foreach(specs, i, spec) {
		const json_t *devices = json_object_get(spec, "devices");
		bool counting = false;

		assert_int_equal(json_integer_value(json_path(spec, "pool.resourceSliceCount")),
				 json_array_size(specs));
		assert_string_equal(json_path_string(spec, "pool.name"), "node1");
		assert_null(json_path(spec, "pool.generation"));
		assert_string_equal(json_path_string(spec, "nodeName"), "node1");
		assert_false(devices && json_object_get(spec, "sharedCounters"));
		json_array_foreach(devices, j, device) {
			check_device(device);
			check_consumed(specs, device);
			counting = counting || json_object_get(device, "consumesCounters");
			assert_false(strlist_has(&names, json_path_string(device, "name")));
			strlist_add(&names, json_path_string(device, "name"));
		}
		assert_true(json_array_size(devices) <= (size_t)(counting ? 64 : 128));
		assert_true(json_array_size(json_object_get(spec, "sharedCounters")) <= 8);
		json_array_foreach(json_object_get(spec, "sharedCounters"), j, set) {
			assert_true(is_dns_label(json_path_string(set, "name")));
			assert_false(strlist_has(&sets, json_path_string(set, "name")));
			strlist_add(&sets, json_path_string(set, "name"));
		}
	}
	strlist_done(&names);
	strlist_done(&sets);
}

static void test_fullest_device_fits(void **state)
{
	struct publish_options o = options_of(ALL_KINDS);
	struct machine m;

	(void)state;
	machine_cards(&m, 4);
	add_full_nic(&m, "0020:01:00.0")->card = 4;
	/* A card that is not atomic: its functions are NICs with a cardId. */
	m.inv.cards = xrealloc(m.inv.cards, 6, sizeof(*m.inv.cards));
	m.inv.cards[m.inv.n_cards++] =
		(struct topo_card){ .id = text(&m, "card-0020-01-00"),
				    .n_members = 1,
				    .members = machine_block(&m, xcalloc(1, sizeof(int))) };
	m.inv.cards[4].members[0] = (int)m.inv.n_nics - 1;
	for (int mirror = 0; mirror < 2; mirror++) {
		_cleanup_json_ json_t *specs = NULL;
		const json_t *nic;

		o.mirror = mirror;
		specs = publish_specs(&m.inv, &o);
		nic = device_at(specs, 0, 4);
		assert_string_equal(json_path_string(nic, "name"), "nic-0020-01-00-0");
		if (mirror) {
			check_specs(specs);
			/* 22 of ours and of the standard, 8 of the mirror, the bandwidth: one place
			 * is left for the GPU's key of another vendor. */
			assert_int_equal(json_object_size(json_object_get(nic, "attributes")), 30);
		} else {
			assert_int_equal(json_object_size(json_object_get(nic, "attributes")), 25);
			assert_string_equal(string_of(nic, "ifName"), "eth8");
			assert_null(attribute(nic, "dra.net/ifName"));
		}
		assert_string_equal(string_of(nic, "cardId"), "card-0020-01-00");
		assert_string_equal(json_path_string(nic, "capacity.bandwidth.value"), "400G");
	}
	machine_done(&m);
}

static void test_unknown_is_absent(void **state)
{
	static const char *const known[] = { "dra.net/ifName",
					     "dra.net/mtu",
					     "dra.net/pciAddress",
					     "dra.net/rdma",
					     "dra.net/rdmaDevice",
					     "dra.net/state",
					     "dra.net/type",
					     "dra.net/virtual",
					     "resource.kubernetes.io/pciBusID",
					     "type",
					     "vendor",
					     "deviceID",
					     "standalone",
					     "isVF" };
	struct publish_options o = options_of(ALL_KINDS);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m = { .inv = { .refs = 1000 } };
	const json_t *nic;

	(void)state;
	add_nic(&m, "0000:03:00.0");
	add_gpu(&m, "0000:04:00.0");
	specs = publish_specs(&m.inv, &o);
	check_specs(specs);
	nic = device_at(specs, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_non_null(attribute(nic, known[i]));
	assert_int_equal(json_object_size(json_object_get(nic, "attributes")), ARRAY_SIZE(known));
	assert_null(json_object_get(nic, "capacity"));
	assert_string_equal(string_of(nic, "dra.net/ifName"), "");
	assert_true(json_is_false(json_object_get(attribute(nic, "dra.net/rdma"), "bool")));
	/* pciBusID, type, vendor, deviceID, and the minor number by which it is found */
	assert_int_equal(json_object_size(json_object_get(device_at(specs, 0, 1), "attributes")),
			 5);
	machine_done(&m);
}

static void test_card_says_what_its_functions_agree_on(void **state)
{
	struct publish_options o = options_of(PUBLISH_CARD);
	_cleanup_json_ json_t *specs = NULL, *other = NULL;
	struct machine m;
	const json_t *card;

	(void)state;
	machine_cards(&m, 1);
	specs = publish_specs(&m.inv, &o);
	assert_int_equal(json_array_size(specs), 1);
	card = device_at(specs, 0, 0);
	assert_string_equal(json_path_string(card, "name"), "card-0000-03-00");
	assert_string_equal(string_of(card, "type"), "card");
	assert_string_equal(string_of(card, "cardId"), "card-0000-03-00");
	assert_string_equal(string_of(card, "resource.kubernetes.io/pciBusID"), "0000:03:00.0");
	assert_string_equal(string_of(card, "resource.kubernetes.io/pcieRoot"), "pci0010:00");
	assert_string_equal(string_of(card, "dra.net/ifName"), "");
	assert_true(json_is_true(json_object_get(attribute(card, "dra.net/rdma"), "bool")));
	assert_true(json_is_true(json_object_get(attribute(card, "standalone"), "bool")));
	assert_int_equal(json_integer_value(json_object_get(attribute(card, "pfCount"), "int")), 2);
	assert_null(attribute(card, "pfIndex"));
	assert_null(attribute(card, "rail")); /* two functions, two rails */
	assert_non_null(attribute(card, "railGroup"));
	assert_string_equal(json_path_string(card, "capacity.bandwidth.value"), "800G");
	assert_null(json_object_get(card, "consumesCounters"));

	/* Half a card is down, and hangs below another root. */
	m.inv.nics[1].oper_state = text(&m, "down");
	m.inv.nics[1].ports[0].state = text(&m, "DOWN");
	m.inv.nics[1].pcie_root = NULL;
	m.inv.nics[1].hairpin = TRI_UNKNOWN;
	m.inv.cards[0].dma_bus_id = text(&m, "%s", m.inv.nics[0].dma_bus_id);
	m.inv.nics[1].dma_bus_id = NULL;
	other = publish_specs(&m.inv, &o);
	card = device_at(other, 0, 0);
	assert_null(attribute(card, "resource.kubernetes.io/pcieRoot"));
	assert_null(attribute(card, "hairpin"));
	assert_null(attribute(card, "dmaBusID"));
	assert_null(attribute(card, "linkGbps"));
	assert_null(json_object_get(card, "capacity"));
	assert_string_equal(string_of(card, "dra.net/state"), "down");
	machine_done(&m);
}

/* What is not the same of both is no fact of the card; of MTU and distance the worse and nearer. */
static void test_card_without_agreement(void **state)
{
	static const char *const absent[] = { "pcieSwitch", "resource.kubernetes.io/numaNode",
					      "railGroup",  "role",
					      "crossRail",  "linkLayer" };
	struct publish_options o = options_of(PUBLISH_CARD);
	_cleanup_json_ json_t *specs = NULL, *other = NULL;
	struct topo_nic *nic;
	struct machine m;
	const json_t *card;

	(void)state;
	machine_cards(&m, 1);
	specs = publish_specs(&m.inv, &o);
	card = device_at(specs, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (!attribute(card, absent[i]))
			fail_msg("%s is not there", absent[i]);
	assert_string_equal(string_of(card, "pathClass"), "PXB");
	nic = &m.inv.nics[1];
	nic->pcie_switch = text(&m, "0000:77:00.0");
	nic->numa_node = 7;
	nic->rail_group = 7;
	nic->role = ROLE_STORAGE;
	nic->cross_rail = TRI_SUPPORTED;
	nic->ports[0].link_layer = text(&m, "InfiniBand");
	nic->rdma_device = NULL;
	nic->best_path = PATH_PIX;
	nic->mtu = 1500;
	other = publish_specs(&m.inv, &o);
	card = device_at(other, 0, 0);
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (attribute(card, absent[i]))
			fail_msg("%s is there", absent[i]);
	assert_string_equal(string_of(card, "pathClass"), "PIX");
	assert_int_equal(json_integer_value(json_object_get(attribute(card, "dra.net/mtu"), "int")),
			 1500);
	assert_true(json_is_false(json_object_get(attribute(card, "dra.net/rdma"), "bool")));
	machine_done(&m);
}

static void test_rdma_of_the_mirror_follows_the_role(void **state)
{
	const struct {
		enum topo_role role;
		bool rdma;
	} cases[] = {
		{ ROLE_UNKNOWN, true },
		{ ROLE_RAIL, true },
		{ ROLE_STORAGE, false },
	};
	struct publish_options o = options_of(PUBLISH_NIC);
	struct machine m;

	(void)state;
	machine_nics(&m, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_json_ json_t *specs = NULL;
		const json_t *nic;

		m.inv.nics[0].role = cases[i].role;
		specs = publish_specs(&m.inv, &o);
		nic = device_at(specs, 0, 0);
		assert_int_equal(
			json_is_true(json_object_get(attribute(nic, "dra.net/rdma"), "bool")),
			cases[i].rdma);
		assert_int_equal(attribute(nic, "role") != NULL, cases[i].role != ROLE_UNKNOWN);
	}
	machine_done(&m);
}

static void test_strings_are_never_cut(void **state)
{
	struct publish_options o = options_of(PUBLISH_GPU);
	char model[66];
	struct machine m = { .inv = { .refs = 1000 } };

	(void)state;
	add_gpu(&m, "0000:04:00.0")->driver_version = text(&m, "6.12.12");
	memset(model, 'x', sizeof(model));
	for (size_t n = 64; n <= 65; n++) {
		_cleanup_json_ json_t *specs = NULL;
		const json_t *gpu;

		model[n] = '\0';
		m.inv.gpus[0].model = model;
		specs = publish_specs(&m.inv, &o);
		gpu = device_at(specs, 0, 0);
		if (n == 64)
			assert_string_equal(string_of(gpu, "model"), model);
		else
			assert_null(attribute(gpu, "model"));
		model[n] = 'x';
		assert_string_equal(string_of(gpu, "driverVersion"), "6.12.12");
		assert_string_equal(json_string_value(json_object_get(
					    attribute(gpu, "driverSemver"), "version")),
				    "6.12.12");
	}
	m.inv.gpus[0].model = NULL;
	machine_done(&m);
}

static void test_odd_addresses_have_no_standard_attributes(void **state)
{
	struct publish_options o = options_of(PUBLISH_NIC);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m = { .inv = { .refs = 1000 } };
	const json_t *nic;

	(void)state;
	add_full_nic(&m, "10000:03:00.0");
	specs = publish_specs(&m.inv, &o);
	check_specs(specs);
	nic = device_at(specs, 0, 0);
	assert_null(attribute(nic, "resource.kubernetes.io/pciBusID"));
	assert_null(attribute(nic, "resource.kubernetes.io/pcieRoot"));
	assert_non_null(attribute(nic, "resource.kubernetes.io/numaNode"));
	assert_string_equal(string_of(nic, "dra.net/pciAddress"), "10000:03:00.0");
	machine_done(&m);
}

static void test_vf(void **state)
{
	struct publish_options o = options_of(PUBLISH_NIC);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m = { .inv = { .refs = 1000 } };
	struct topo_nic *vf;

	(void)state;
	vf = add_full_nic(&m, "0000:03:00.2");
	vf->is_vf = true;
	vf->pf_bus_id = text(&m, "0000:03:00.0");
	add_full_nic(&m, "0000:04:00.2")->standalone = false; /* a VF whose PF is visible */
	specs = publish_specs(&m.inv, &o);
	check_specs(specs);
	assert_int_equal(json_array_size(json_object_get(json_array_get(specs, 0), "devices")), 1);
	assert_string_equal(string_of(device_at(specs, 0, 0), "pfBusID"), "0000:03:00.0");
	assert_null(attribute(device_at(specs, 0, 0), "pfCount"));
	machine_done(&m);
}

static void test_counters_where_kinds_overlap(void **state)
{
	struct publish_options o = options_of(PUBLISH_CARD | PUBLISH_PF);
	_cleanup_json_ json_t *specs = NULL, *alone = NULL;
	const char *expected[] = { "card-0000-03-00",  "card-0001-03-00",  "nic-0000-03-00-0",
				   "nic-0000-03-00-1", "nic-0001-03-00-0", "nic-0001-03-00-1" };
	const json_t *sets, *used;
	struct machine m;

	(void)state;
	machine_cards(&m, 2);
	m.inv.nics[1].num_vfs = 16;
	specs = publish_specs(&m.inv, &o);
	check_specs(specs);
	assert_int_equal(json_array_size(specs), 2);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(json_path_string(device_at(specs, 0, i), "name"), expected[i]);
	sets = json_object_get(json_array_get(specs, 1), "sharedCounters");
	assert_int_equal(json_array_size(sets), 2);
	assert_string_equal(json_path_string(json_array_get(sets, 0), "name"), "card-0000-03-00");
	assert_string_equal(
		json_path_string(json_array_get(sets, 0), "counters.nic-0000-03-00-1.value"), "16");
	used = json_array_get(json_object_get(device_at(specs, 0, 0), "consumesCounters"), 0);
	assert_int_equal(json_object_size(json_object_get(used, "counters")), 2);
	used = json_array_get(json_object_get(device_at(specs, 0, 3), "consumesCounters"), 0);
	assert_int_equal(json_object_size(json_object_get(used, "counters")), 1);
	assert_string_equal(json_path_string(used, "counters.nic-0000-03-00-1.value"), "16");
	assert_true(json_is_false(
		json_object_get(attribute(device_at(specs, 0, 3), "standalone"), "bool")));

	/* Functions alone overlap with nothing. */
	o.kinds = PUBLISH_PF;
	alone = publish_specs(&m.inv, &o);
	assert_int_equal(json_array_size(alone), 1);
	assert_null(json_object_get(device_at(alone, 0, 0), "consumesCounters"));
	assert_string_equal(string_of(device_at(alone, 0, 0), "type"), "pf");
	machine_done(&m);
}

/* What the node itself uses is never handed out: no function, no card, no counters. */
static void test_frontends_are_not_published(void **state)
{
	struct publish_options o = options_of(PUBLISH_CARD | PUBLISH_PF | PUBLISH_NIC);
	_cleanup_json_ json_t *cards = NULL, *nics = NULL, *none = NULL;
	const json_t *sets;
	struct machine m;

	(void)state;
	machine_cards(&m, 2);
	m.inv.nics[0].role = ROLE_FRONTEND;
	cards = publish_specs(&m.inv, &o);
	check_specs(cards);
	assert_string_equal(json_path_string(device_at(cards, 0, 0), "name"), "card-0001-03-00");
	assert_string_equal(json_path_string(device_at(cards, 0, 1), "name"), "nic-0001-03-00-0");
	assert_string_equal(json_path_string(device_at(cards, 0, 2), "name"), "nic-0001-03-00-1");
	assert_null(device_at(cards, 0, 3));
	sets = json_object_get(json_array_get(cards, 1), "sharedCounters");
	assert_int_equal(json_array_size(sets), 1);
	machine_done(&m);

	machine_nics(&m, 2);
	m.inv.nics[0].role = ROLE_FRONTEND;
	nics = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(nics, 0, 0), "name"), m.inv.nics[1].name);
	assert_null(device_at(nics, 0, 1));
	m.inv.nics[1].withheld = true;
	none = publish_specs(&m.inv, &o);
	assert_null(device_at(none, 0, 0));
	machine_done(&m);
}

/* What the administrator excludes is not there either, and a card only as a whole. */
static void test_excluded_are_not_published(void **state)
{
	struct publish_options o = options_of(PUBLISH_CARD | PUBLISH_PF | PUBLISH_NIC);
	_cleanup_json_ json_t *cards = NULL, *nics = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 2);
	m.inv.nics[1].excluded = true;
	cards = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(cards, 0, 0), "name"), "card-0001-03-00");
	assert_null(device_at(cards, 0, 3));
	machine_done(&m);

	machine_nics(&m, 2);
	m.inv.nics[0].excluded = true;
	nics = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(nics, 0, 0), "name"), m.inv.nics[1].name);
	assert_null(device_at(nics, 0, 1));
	machine_done(&m);
}

/* Nor what does not answer. */
static void test_broken_are_not_published(void **state)
{
	struct publish_options o = options_of(PUBLISH_GPU | PUBLISH_NIC | PUBLISH_CARD);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 2);
	m.inv.nics[1].broken = true;
	m.inv.gpus[1].broken = true;
	specs = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(specs, 0, 0), "name"), "card-0001-03-00");
	assert_string_equal(json_path_string(device_at(specs, 0, 1), "name"), m.inv.gpus[0].name);
	assert_null(device_at(specs, 0, 2));
	machine_done(&m);
}

/* Prepare knows NVIDIA's device nodes only. */
static void test_gpus_that_cannot_be_served(void **state)
{
	struct publish_options o = options_of(PUBLISH_GPU);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m = { .inv = { .refs = 1000 } };

	(void)state;
	add_gpu(&m, "0000:03:00.0")->vendor = "amd";
	add_gpu(&m, "0000:04:00.0")->vendor = "intel";
	add_gpu(&m, "0000:05:00.0");
	specs = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(specs, 0, 0), "name"), "gpu-0000-05-00-0");
	assert_null(device_at(specs, 0, 1));
	machine_done(&m);
}

/* Its driver does not have it: neither UUID nor minor number leads to a device of the container. */
static void test_gpus_without_driver_are_not_published(void **state)
{
	struct publish_options o = options_of(PUBLISH_GPU);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m = { .inv = { .refs = 1000 } };

	(void)state;
	add_gpu(&m, "0000:03:00.0")->minor = TOPO_UNKNOWN;
	add_gpu(&m, "0000:04:00.0")->minor = 0;
	add_gpu(&m, "0000:05:00.0");
	m.inv.gpus[2].minor = TOPO_UNKNOWN;
	m.inv.gpus[2].uuid = text(&m, "GPU-1");
	specs = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(specs, 0, 0), "name"), "gpu-0000-04-00-0");
	assert_string_equal(json_path_string(device_at(specs, 0, 1), "name"), "gpu-0000-05-00-0");
	assert_null(device_at(specs, 0, 2));
	machine_done(&m);
}

/* No process could open it; a card is as good as the worst of its functions. */
static void test_nics_without_verbs_are_not_published(void **state)
{
	struct publish_options o = options_of(ALL_KINDS & ~(unsigned int)PUBLISH_GPU);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 1);
	m.inv.nics[1].uverbs = NULL;
	add_nic(&m, "0001:00:00.0")->uverbs = NULL;
	add_nic(&m, "0001:01:00.0");
	specs = publish_specs(&m.inv, &o);
	assert_string_equal(json_path_string(device_at(specs, 0, 0), "name"), "nic-0001-01-00-0");
	assert_null(device_at(specs, 0, 1));
	machine_done(&m);
}

static void test_no_functions_beside_five_cards(void **state)
{
	struct machine m;

	(void)state;
	machine_cards(&m, 4);
	assert_int_equal(publish_effective_kinds(&m.inv, ALL_KINDS), ALL_KINDS);
	machine_done(&m);
	machine_cards(&m, 5);
	assert_int_equal(publish_effective_kinds(&m.inv, ALL_KINDS), ALL_KINDS & ~PUBLISH_PF);
	m.inv.cards[4].atomic = false;
	assert_int_equal(publish_effective_kinds(&m.inv, ALL_KINDS), ALL_KINDS);
	machine_done(&m);
}

static void test_slices_are_split(void **state)
{
	const struct {
		size_t nics, slices;
	} cases[] = { { 0, 1 }, { 1, 1 }, { 128, 1 }, { 129, 2 }, { 300, 3 } };
	struct publish_options o = options_of(PUBLISH_NIC);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_json_ json_t *specs = NULL;
		struct machine m;

		machine_nics(&m, cases[i].nics);
		specs = publish_specs(&m.inv, &o);
		check_specs(specs);
		assert_int_equal(json_array_size(specs), cases[i].slices);
		machine_done(&m);
	}
}

static void test_counting_slices_are_smaller(void **state)
{
	struct publish_options o = options_of(PUBLISH_CARD | PUBLISH_NIC | PUBLISH_PF);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 4);
	for (size_t i = 0; i < 60; i++) {
		char bus_id[32];

		snprintf(bus_id, sizeof(bus_id), "0100:%02zx:00.0", i);
		add_full_nic(&m, bus_id);
	}
	specs = publish_specs(&m.inv, &o);
	check_specs(specs);
	assert_int_equal(json_array_size(specs), 3); /* 72 devices in two, counters in one */
	machine_done(&m);
}

static size_t values_of(const json_t *device)
{
	const char *key, *type;
	json_t *value, *v;
	size_t n = 0;

	json_object_foreach(json_object_get(device, "attributes"), key, value)
		json_object_foreach(value, type, v)
			n += json_is_array(v) ? json_array_size(v) : 1;
	return n;
}

/* Two roots where they differ; one value is a scalar; at most 64 such devices in a slice. */
static void test_lists(void **state)
{
	static int nodes[] = { 6, 4, 5, 7 }, many[NUMA_LIST_MAX + 1];
	struct publish_options o = options_of(PUBLISH_NIC | PUBLISH_GPU);
	_cleanup_json_ json_t *specs = NULL, *scalars = NULL;
	_cleanup_free_ char *roots = NULL, *numa = NULL;
	const json_t *first, *second, *gpu;
	struct machine m;
	struct topo_gpu *g;

	(void)state;
	machine_nics(&m, 66);
	o.root_list = o.numa_list = true;
	for (size_t i = 0; i < 66; i++) {
		m.inv.nics[i].numa_nodes = i ? nodes : many;
		m.inv.nics[i].n_numa_nodes = i == 1 ? 4 : i ? 1 : ARRAY_SIZE(many);
	}
	m.inv.nics[0].pcie_root = m.inv.nics[0].function_pcie_root;
	g = add_gpu(&m, "0100:00:00.0");
	g->pcie_root = text(&m, "pci0009:00");
	g->numa_node = 6;
	g->numa_nodes = nodes;
	g->n_numa_nodes = 4;
	specs = publish_specs(&m.inv, &o);
	check_specs(specs);
	assert_int_equal(json_array_size(specs), 2);
	assert_int_equal(json_array_size(json_object_get(json_array_get(specs, 0), "devices")), 64);
	first = device_at(specs, 0, 0);
	second = device_at(specs, 0, 1);
	gpu = device_at(specs, 1, 2);
	assert_string_equal(string_of(first, "resource.kubernetes.io/pcieRoot"), "pci0000:00");
	assert_int_equal(int_of(first, "resource.kubernetes.io/numaNode"),
			 0); /* too many to publish */
	roots = json_text(attribute(second, "resource.kubernetes.io/pcieRoot"));
	numa = json_text(attribute(second, "resource.kubernetes.io/numaNode"));
	assert_string_equal(roots, "{\"strings\":[\"pci0009:00\",\"pci0000:00\"]}");
	assert_string_equal(numa, "{\"ints\":[6,4,5,7]}");
	assert_string_equal(string_of(second, "functionPcieRoot"), "pci0000:00");
	assert_string_equal(string_of(gpu, "resource.kubernetes.io/pcieRoot"), "pci0009:00");
	assert_int_equal(json_array_size(json_object_get(
				 attribute(gpu, "resource.kubernetes.io/numaNode"), "ints")),
			 4);
	/* 48 values a device, with the longest list that is published */
	m.inv.nics[1].numa_nodes = many;
	m.inv.nics[1].n_numa_nodes = NUMA_LIST_MAX;
	json_decref(specs);
	specs = publish_specs(&m.inv, &o);
	assert_in_range(values_of(device_at(specs, 0, 1)), NUMA_LIST_MAX + 24, 48);

	o.root_list = o.numa_list = false;
	scalars = publish_specs(&m.inv, &o);
	assert_false(devices_have_lists(json_object_get(json_array_get(scalars, 0), "devices")));
	assert_int_equal(json_array_size(scalars), 1);
	machine_done(&m);
}

/* A card has a list when its functions agree on it. */
static void test_lists_of_cards(void **state)
{
	static int nodes[] = { 0, 1 }, others[] = { 0, 2 };
	struct publish_options o = options_of(PUBLISH_CARD);
	_cleanup_json_ json_t *specs = NULL, *again = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 1);
	o.root_list = o.numa_list = true;
	for (size_t i = 0; i < 2; i++) {
		m.inv.nics[i].numa_nodes = nodes;
		m.inv.nics[i].n_numa_nodes = 2;
	}
	specs = publish_specs(&m.inv, &o);
	assert_non_null(json_object_get(
		attribute(device_at(specs, 0, 0), "resource.kubernetes.io/pcieRoot"), "strings"));
	assert_non_null(json_object_get(
		attribute(device_at(specs, 0, 0), "resource.kubernetes.io/numaNode"), "ints"));
	m.inv.nics[1].numa_nodes = others;
	m.inv.nics[1].function_pcie_root = text(&m, "pci0002:00");
	again = publish_specs(&m.inv, &o);
	assert_string_equal(string_of(device_at(again, 0, 0), "resource.kubernetes.io/pcieRoot"),
			    "pci0010:00");
	assert_int_equal(int_of(device_at(again, 0, 0), "resource.kubernetes.io/numaNode"), 0);
	machine_done(&m);
}

/* A divided GPU is its parts: somebody else's. */
static void test_divided_gpus_are_not_published(void **state)
{
	struct publish_options o = options_of(PUBLISH_GPU);
	_cleanup_json_ json_t *specs = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 2);
	m.inv.gpus[0].partition = text(&m, "mig");
	specs = publish_specs(&m.inv, &o);
	assert_int_equal(json_array_size(json_object_get(json_array_get(specs, 0), "devices")), 1);
	assert_string_equal(json_path_string(device_at(specs, 0, 0), "name"), m.inv.gpus[1].name);
	machine_done(&m);
}

static void test_same_machine_same_bytes(void **state)
{
	struct publish_options o = options_of(ALL_KINDS);
	_cleanup_free_ char *first = NULL, *again = NULL;
	_cleanup_json_ json_t *a = NULL, *b = NULL;
	struct machine m;

	(void)state;
	machine_cards(&m, 3);
	a = publish_slices(&m.inv, &o);
	b = publish_slices(&m.inv, &o);
	first = json_text(a);
	again = json_text(b);
	assert_string_equal(first, again);
	machine_done(&m);
}

static void test_kind_words(void **state)
{
	unsigned int kinds = 0;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(publish_parse_kinds("card,nic,pf,gpu", &kinds, &err), 0);
	assert_int_equal(kinds, ALL_KINDS);
	assert_int_equal(publish_parse_kinds("nic", &kinds, &err), 0);
	assert_int_equal(kinds, PUBLISH_NIC);
	assert_int_equal(publish_parse_kinds("card,vf", &kinds, &err), -EINVAL);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.msg, "'vf'"));
	assert_non_null(strstr(err.msg, "card, nic, pf, gpu"));
	assert_int_equal(publish_parse_kinds("", &kinds, NULL), -EINVAL);
	assert_int_equal(publish_parse_kinds(",", &kinds, NULL), -EINVAL);
	assert_int_equal(kinds, PUBLISH_NIC);
}

static void test_semver(void **state)
{
	static const char *const good[] = { "0.0.0", "6.12.12", "1.2.3-rc.1", "1.0.0-0a.b-c+001.x",
					    "1.0.0+build" };
	static const char *const bad[] = { "",	     "580.95.05", "1.2",      "1.2.3.4",
					   "v1.2.3", "1.2.3-",	  "1.2.3-01", "1.2.3-a..b",
					   "1.2.3+", "1.2.3 ",	  "01.2.3",   "1.2.x",
					   "1..2",   "1.2.3-a_b" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(is_semver(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(is_semver(bad[i]));
}

static void test_quantities(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} cases[] = {
		{ "1", "1", true },
		{ "1000", "1k", true },
		{ "800G", "800e9", true },
		{ "800G", "800E9", true },
		{ "1024", "1Ki", true },
		{ "1E", "1000P", true },
		{ "1k", "1Ki", false },
		{ "1", "2", false },
		{ "1x", "1x", true },
		{ "1x", "1", false },
		{ "99999999999999999999999999999999999999999", "1", false },
		{ "9e18", "9E", true },
		{ "", "0", false },
		{ "1e99", "1", false },
	};
	static const struct {
		uint64_t value;
		const char *text;
	} texts[] = {
		{ 0, "0" },
		{ 1, "1" },
		{ 1000, "1k" },
		{ 1500, "1500" },
		{ 800000000000, "800G" },
		{ 1000000000000, "1T" },
		{ UINT64_MAX, "18446744073709551615" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(quantity_equal(cases[i].a, cases[i].b), cases[i].equal);
		assert_int_equal(quantity_equal(cases[i].b, cases[i].a), cases[i].equal);
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_free_ char *s = quantity_text(texts[i].value);

		assert_string_equal(s, texts[i].text);
	}
}

static bool equal_texts(const char *a, const char *b)
{
	_cleanup_json_ json_t *x = json_loads(a, JSON_DECODE_ANY, NULL);
	_cleanup_json_ json_t *y = json_loads(b, JSON_DECODE_ANY, NULL);

	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(spec_equal(x, y), spec_equal(y, x));
	return spec_equal(x, y);
}

static void test_comparison(void **state)
{
	(void)state;
	assert_true(equal_texts("{\"a\":1}", "{\"a\":1,\"b\":[],\"c\":{},\"d\":null}"));
	assert_false(equal_texts("{\"a\":1}", "{\"a\":1,\"b\":false}"));
	assert_true(equal_texts("{\"c\":{\"value\":\"1k\"}}", "{\"c\":{\"value\":\"1000\"}}"));
	assert_false(equal_texts("{\"c\":{\"name\":\"1k\"}}", "{\"c\":{\"name\":\"1000\"}}"));
	assert_false(equal_texts("[1,2]", "[2,1]"));
	assert_false(equal_texts("[1]", "[1,1]"));
	assert_false(equal_texts("{\"a\":\"1\"}", "{\"a\":1}"));
	assert_true(spec_equal(NULL, NULL));
}

static void test_slice_names(void **state)
{
	struct publish_options o = options_of(PUBLISH_NIC);
	_cleanup_free_ char *name = slice_generate_name(&o, 26);
	size_t i = 0;

	(void)state;
	assert_string_equal(name, "0001a-twinrail.dev-node1-");
	assert_int_equal(slice_index("0001a-twinrail.dev-node1-abcde", &i), 0);
	assert_int_equal(i, 26);
	assert_int_equal(slice_index("123456-x", &i), 0);
	assert_int_equal(i, 0x123456);
	assert_int_equal(slice_index("node1-twinrail.dev-abcde", &i), -EINVAL);
	assert_int_equal(slice_index("0001A-x", &i), -EINVAL);
	assert_int_equal(slice_index("001a-x", &i), -EINVAL);
	assert_int_equal(slice_index("0001a", &i), -EINVAL);
	assert_int_equal(slice_index("000000000001a-x", &i), -EINVAL);
	assert_int_equal(slice_index("", &i), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fullest_device_fits),
		cmocka_unit_test(test_unknown_is_absent),
		cmocka_unit_test(test_card_says_what_its_functions_agree_on),
		cmocka_unit_test(test_card_without_agreement),
		cmocka_unit_test(test_rdma_of_the_mirror_follows_the_role),
		cmocka_unit_test(test_strings_are_never_cut),
		cmocka_unit_test(test_odd_addresses_have_no_standard_attributes),
		cmocka_unit_test(test_vf),
		cmocka_unit_test(test_counters_where_kinds_overlap),
		cmocka_unit_test(test_frontends_are_not_published),
		cmocka_unit_test(test_excluded_are_not_published),
		cmocka_unit_test(test_broken_are_not_published),
		cmocka_unit_test(test_gpus_that_cannot_be_served),
		cmocka_unit_test(test_gpus_without_driver_are_not_published),
		cmocka_unit_test(test_nics_without_verbs_are_not_published),
		cmocka_unit_test(test_no_functions_beside_five_cards),
		cmocka_unit_test(test_slices_are_split),
		cmocka_unit_test(test_counting_slices_are_smaller),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_lists_of_cards),
		cmocka_unit_test(test_divided_gpus_are_not_published),
		cmocka_unit_test(test_same_machine_same_bytes),
		cmocka_unit_test(test_kind_words),
		cmocka_unit_test(test_semver),
		cmocka_unit_test(test_quantities),
		cmocka_unit_test(test_comparison),
		cmocka_unit_test(test_slice_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

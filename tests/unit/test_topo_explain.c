// SPDX-License-Identifier: Apache-2.0
/* Why a GPU and a NIC are near or far; runs in the project's folder. */
#include "test_topo_machine.h"

#include <glob.h>

#include "base/json.h"
#include "fuzz/topo_check.h"
#include "topo/output.h"

/* The explanation of the first GPU and NIC of a machine; takes the text of "recording". */
static char *explained(struct buf *recording, json_t **json)
{
	struct inventory *inv = build_machine(recording);
	char *text;

	assert_true(inv->n_gpus > 0 && inv->n_nics > 0);
	text = topo_explain(inv, 0, 0, false);
	*json = topo_explain_json(inv, 0, 0);
	inventory_unref(inv);
	return text;
}

/* "reason" and the texts must be there, and the bridges in this order, each with its side. */
static void assert_explained(struct buf *recording, const char *path, const char *reason,
			     const char *const *bridges, const char *const *texts)
{
	_cleanup_json_ json_t *json = NULL;
	_cleanup_free_ char *text = explained(recording, &json);
	const json_t *array;
	size_t n = 0;

	assert_string_equal(json_path_string(json, "path"), path);
	if (!strstr(json_path_string(json, "reason"), reason))
		fail_msg("\"%s\" instead of \"%s\"", json_path_string(json, "reason"), reason);
	assert_non_null(strstr(text, reason));
	array = json_path(json, "bridges");
	for (; bridges && bridges[n]; n++) {
		const json_t *bridge = json_array_get(array, n);
		_cleanup_free_ char *got = NULL;

		assert_non_null(bridge);
		got = xasprintf("%s %s", json_path_string(bridge, "busID"),
				json_path_string(bridge, "side"));
		assert_string_equal(got, bridges[n]);
		assert_non_null(strstr(text, json_path_string(bridge, "busID")));
	}
	assert_int_equal(json_array_size(array), n);
	for (size_t i = 0; texts && texts[i]; i++)
		if (!strstr(text, texts[i]))
			fail_msg("no \"%s\" in\n%s", texts[i], text);
}

static void test_one_switch(void **state)
{
	struct buf b = { 0 };

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL));
	buf_str(&b, "twinrail/routes = default dev uplink\n");
	assert_explained(&b, "PIX", "0000:01:00.0, is part of a switch; no further switch",
			 (const char *[]){ "0000:02:01.0 gpu", "0000:01:00.0 common",
					   "0000:02:00.0 nic", NULL },
			 (const char *[]){ "eth0", "PIX, 3 bridges between them",
					   "is a best NIC of this GPU", NULL });
}

static void test_two_switches(void **state)
{
	static const char *const paths[] = {
		"pci0000:00/0000:00:01.0",
		"pci0000:00/0000:00:01.0/0000:01:00.0",
		"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0",
		"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
		"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/0000:04:00.0",
		"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0",
	};
	struct buf b = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		add_bridge(&b, paths[i], 0x1000, 0xc030);
	add_gpu(&b,
		"pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0/0000:04:00.0/"
		"0000:05:00.0",
		0);
	add_nic(&b, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:06:00.0", 0x1021, 0,
		"mlx5_0", NULL, NULL);
	assert_explained(&b, "PXB", "the GPU is behind a further switch, 0000:03:00.0",
			 (const char *[]){ "0000:04:00.0 gpu", "0000:03:00.0 gpu",
					   "0000:02:00.0 gpu", "0000:01:00.0 common",
					   "0000:02:01.0 nic", NULL },
			 NULL);
}

/* "gpu_numa" and "nic_numa" of two devices without switches on these roots. */
static void two_roots(struct buf *b, const char *gpu, int gpu_numa, const char *nic, int nic_numa)
{
	_cleanup_free_ char *gpu_port = xasprintf("%s/%s:01.0", gpu, gpu + 3);
	_cleanup_free_ char *nic_port = xasprintf("%s/%s:02.0", nic, nic + 3);
	_cleanup_free_ char *gpu_path = xasprintf("%s/0000:10:00.0", gpu_port);
	_cleanup_free_ char *nic_path = xasprintf("%s/0000:20:00.0", nic_port);

	add_bridge(b, gpu_port, 0x8086, 1);
	add_bridge(b, nic_port, 0x8086, 1);
	add_gpu(b, gpu_path, gpu_numa);
	add_nic(b, nic_path, 0x1021, nic_numa, "mlx5_0", "eth0", NULL);
}

static void test_no_switch(void **state)
{
	struct buf b = { 0 };

	(void)state;
	two_roots(&b, "pci0000:00", 0, "pci0000:00", 0);
	assert_explained(&b, "PHB", "both are below root complex pci0000:00 without a switch",
			 (const char *[]){ "0000:00:01.0 gpu", "0000:00:02.0 nic", NULL }, NULL);
	two_roots(&b, "pci0000:00", 0, "pci0000:40", 0);
	assert_explained(&b, "NODE", "(pci0000:00, pci0000:40) of NUMA node 0",
			 (const char *[]){ "0000:00:01.0 gpu", "0000:40:02.0 nic", NULL }, NULL);
	two_roots(&b, "pci0000:00", 0, "pci0000:40", 1);
	assert_explained(&b, "SYS", "the GPU is at NUMA node 0, the NIC at NUMA node 1",
			 (const char *[]){ "0000:00:01.0 gpu", "0000:40:02.0 nic", NULL },
			 (const char *[]){ "this GPU has no best NIC", NULL });
	two_roots(&b, "pci0000:00", 0, "pci0000:40", -1);
	assert_explained(&b, "unknown", "does not tell the NUMA node of nic-0000-20-00-0",
			 (const char *[]){ "0000:00:01.0 gpu", "0000:40:02.0 nic", NULL }, NULL);
}

/* A bridge whose configuration space cannot be read may be part of a switch, or not. */
static void test_unknown_bridge(void **state)
{
	struct buf b = { 0 };

	(void)state;
	add_bridge(&b, "pci0000:00/0000:00:01.0", 0x8086, 1);
	add_pci(&b, "pci0000:00/0000:00:01.0/0000:01:00.0", 0x060400, 0x1000, 0xc030, 0);
	add_gpu(&b, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0", 0);
	add_nic(&b, "pci0000:00/0000:00:01.0/0000:01:00.0/0000:03:00.0", 0x1021, 0, "mlx5_0", NULL,
		NULL);
	assert_explained(&b, "unknown", "the kind of bridge 0000:01:00.0 cannot be read",
			 (const char *[]){ "0000:01:00.0 common", NULL }, NULL);
}

/* A GPU and a NIC at one switch, with this in its explanation. */
static void assert_note(const char *more, const struct topo_options *options, const char *note)
{
	struct buf b = { 0 };
	struct inventory *inv;
	_cleanup_free_ char *gpu = group_path(0, 1, "04:00.0"), *text = NULL;

	add_group(&b, 0);
	add_silent_gpu(&b, gpu, 0);
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL));
	buf_str(&b, more);
	inv = build_with(&b, options);
	text = topo_explain(inv, 0, 0, false);
	if (!strstr(text, note))
		fail_msg("no \"%s\" in\n%s", note, text);
	inventory_unref(inv);
}

/* What no process can open is not handed out; what the driver describes is. */
static void test_without_verbs(void **state)
{
	_cleanup_free_ char *text = NULL, *without = NULL, *half = NULL, *dma = NULL;
	struct inventory *inv;
	struct buf b = { 0 };

	(void)state;
	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL));
	buf_str(&b, "twinrail/routes = default dev uplink\n");
	inv = build_machine(&b);
	text = topo_explain(inv, 0, 0, false);
	assert_null(strstr(text, "not handed out"));
	free(inv->nics[0].uverbs);
	inv->nics[0].uverbs = NULL;
	without = topo_explain(inv, 0, 0, false);
	assert_non_null(strstr(without, "nic-0000-03-00-0 is not handed out: its RDMA device has "
					"no verbs device"));
	inventory_unref(inv);

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	for (int i = 0; i < 2; i++)
		free(add_group_nic(&b, 0, i ? "03:00.1" : "03:00.0", 0x1023, NULL,
				   "0000:0000:0000:0001"));
	dma = group_path(0, 1, "05:00.0");
	add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
	inv = build_machine(&b);
	assert_true(inv->n_cards == 1 && inv->cards[0].atomic);
	free(inv->nics[1].uverbs);
	inv->nics[1].uverbs = NULL;
	half = topo_explain(inv, 0, 0, false);
	assert_non_null(strstr(half, "nic-0000-03-00-0 is not handed out: its card is handed out "
				     "whole, and nic-0000-03-00-1 is not: its RDMA device"));
	inventory_unref(inv);
}

static void test_not_handed_out(void **state)
{
	static const char uplink[] = "twinrail/routes = default dev uplink\n";
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: mine\n"
						"  match: {gpus: {ids: ['10de:2330']}}\n"
						"  roles: [{nics: [eth0], role: frontend}]\n");
	struct strlist exclude = { 0 };
	const struct topo_options named = { .platforms = own }, excluded = { .exclude = &exclude };
	static const char nic[] = "sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:00.0/"
				  "0000:03:00.0/config : ffffffffffffffffffffffffffffffff"
				  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
				  "ffffffffffffffffffffffffffffffff\n"
				  "twinrail/routes = default dev uplink\n";
	static const char gpu[] = "sys/devices/pci0000:00/0000:00:00.0/0000:01:00.0/0000:02:01.0/"
				  "0000:04:00.0/config : ffffffffffffffffffffffffffffffff"
				  "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
				  "ffffffffffffffffffffffffffffffff\n";

	(void)state;
	assert_note("twinrail/routes = default dev eth0\n", NULL,
		    "nic-0000-03-00-0 is not handed out: the node uses it, default-route");
	assert_note(uplink, &named,
		    "nic-0000-03-00-0 is not handed out: the platform file says it is a front end");
	assert_note("", NULL,
		    "nic-0000-03-00-0 is not handed out: the node itself may use it, whose own NIC "
		    "is not known yet");
	assert_note(nic, NULL, "nic-0000-03-00-0 is not handed out: it does not answer");
	assert_note(gpu, NULL, "gpu-0000-04-00-0 is not handed out: it does not answer");
	assert_note(uplink, NULL,
		    "gpu-0000-04-00-0 is not handed out: the NVIDIA driver says nothing of it");
	strlist_add(&exclude, "eth0");
	assert_note(uplink, &excluded,
		    "nic-0000-03-00-0 is not handed out: the administrator excludes it");
	strlist_done(&exclude);
	platforms_free(own);
}

/* --- access control --- */

#define RR HW_ACS_P2P_REQUEST_REDIRECT
#define CR HW_ACS_P2P_COMPLETION_REDIRECT

/*
 * GPU and NIC at one switch, whose ports have these control bits; root port and upstream port have
 * others.  "told": texts that must be there, then NULL, then those that must not.
 */
static void assert_acs(int gpu_port, int nic_port, const char *const *told, size_t n)
{
	struct hw_machine *machine;
	struct inventory *inv;
	struct buf b = { 0 };
	_cleanup_free_ char *text = NULL, *wrong = NULL;
	bool wanted = true;

	add_group(&b, 0);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL));
	machine = read_machine(b.data);
	buf_done(&b);
	pci_of(machine, "0000:00:00.0")->acs = RR | CR;
	pci_of(machine, "0000:01:00.0")->acs = RR;
	pci_of(machine, "0000:02:01.0")->acs = gpu_port;
	pci_of(machine, "0000:02:00.0")->acs = nic_port;
	inv = topo_build(machine, NULL);
	text = topo_explain(inv, 0, 0, false);
	wrong = check_explained(inv, 0, 0);
	if (wrong)
		fail_msg("%s in\n%s", wrong, text);
	for (size_t i = 0; i < n; i++) {
		if (!told[i])
			wanted = false;
		else if (!strstr(text, told[i]) == wanted)
			fail_msg("%s \"%s\" in\n%s", wanted ? "no" : "a", told[i], text);
	}
	inventory_unref(inv);
	hw_free(machine);
}

#define ASSERT_ACS(gpu, nic, ...)                                                                  \
	assert_acs(gpu, nic, (const char *[]){ __VA_ARGS__ },                                      \
		   ARRAY_SIZE(((const char *[]){ __VA_ARGS__ })))

static void test_acs(void **state)
{
	(void)state;
	/* As Data Direct wants it: each port has a bit, and none that counts on its side. */
	ASSERT_ACS(RR, CR, "0000:02:01.0  1000:c030  ACS 0000100 lets the GPU's answers through",
		   "nearest common bridge  ACS 0000100 does not concern this path",
		   "0000:02:00.0  1000:c030  ACS 0001000 lets the NIC's requests through",
		   "ACS lets peer-to-peer traffic between them through: only 0000:02:00.0 (the "
		   "NIC's requests, P2P Request Redirect) and 0000:02:01.0 (the GPU's answers, P2P "
		   "Completion Redirect) could send it up to the root",
		   NULL, "slower");
	ASSERT_ACS(RR, RR, "0000:02:00.0  1000:c030  ACS 0000100 sends the NIC's requests up",
		   "ACS of 0000:02:00.0 (the NIC's requests, P2P Request Redirect) sends "
		   "peer-to-peer traffic between them up to the root: slower",
		   NULL, "sends the GPU's");
	ASSERT_ACS(CR, HW_UNKNOWN,
		   "0000:02:01.0  1000:c030  ACS 0001000 sends the GPU's answers up",
		   "0000:02:00.0  1000:c030  ACS is not known", "slower", NULL, "run as root");
	ASSERT_ACS(0, HW_UNKNOWN, "0000:02:00.0  1000:c030  ACS is not known",
		   "up to the root is not known: that of 0000:02:00.0 (the NIC's requests, P2P "
		   "Request Redirect) cannot be read; run as root",
		   NULL, "slower");
}

/* All pairs of all recorded machines: what is said of bridges is what is said of the pair. */
static void test_recorded_machines(void **state)
{
	unsigned int seen[TRI_YES + 1] = { 0 };
	glob_t found;

	(void)state;
	assert_int_equal(glob("tests/fixtures/*.machine", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct hw_machine *machine = NULL;
		struct inventory *inv;
		struct err err = { 0 };
		char *dir = new_folder();

		if (hw_snapshot_unpack(found.gl_pathv[i], dir, &err) < 0 ||
		    hw_read(dir, &machine, &err) < 0)
			fail_msg("%s", err.msg);
		remove_tree(dir);
		inv = topo_build(machine, NULL);
		for (size_t k = 0; k < inv->n_pairs; k++) {
			const struct topo_pair *p = &inv->pairs[k];
			char *wrong = check_explained(inv, (size_t)p->gpu, (size_t)p->nic);

			if (wrong)
				fail_msg("%s: %s and %s: %s", found.gl_pathv[i],
					 inv->gpus[p->gpu].name, inv->nics[p->nic].name, wrong);
			seen[p->acs_redirect]++;
		}
		inventory_unref(inv);
		hw_free(machine);
	}
	globfree(&found);
	assert_true(seen[TRI_UNKNOWN] && seen[TRI_NO] && seen[TRI_YES]);
}

/* Two NICs; the second has an ipvlan link and is part of a card of its own chip's two PFs. */
static void test_find(void **state)
{
	static const char *const nics[][2] = {
		{ "nic-0000-03-00-0", "0" },
		{ "0000:03:00.0", "0" },
		{ "00000000:03:00.0", "0" },
		{ "eth0", "0" },
		{ "NIC0", "0" },
		{ "NIC1", "1" },
		{ "card-0001-03-00", "1" },
		{ "eth2", "2" },
		{ "ipv0", "0" },
		{ "NIC3", "-1" },
		{ "NIC", "-1" },
		{ "nothing", "-1" },
		{ "gpu-0000-04-00-0", "-1" },
	};
	struct inventory *inv;
	struct buf b = { 0 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		add_group(&b, i);
	add_group_gpu(&b, 0, "04:00.0");
	free(add_group_nic(&b, 0, "03:00.0", 0x1021, "eth0", NULL));
	free(add_group_nic(&b, 1, "03:00.0", 0x1021, "eth1", "0000:0000:0000:0001"));
	free(add_group_nic(&b, 1, "03:00.1", 0x1021, "eth2", "0000:0000:0000:0001"));
	buf_str(&b, "sys/class/net/ipv0 -> ../../devices/virtual/net/ipv0\n"
		    "sys/devices/virtual/net/ipv0/uevent = DEVTYPE=ipvlan\n"
		    "sys/devices/virtual/net/ipv0/lower_eth0 -> ../eth0\n");
	inv = build_machine(&b);
	assert_int_equal(inv->n_nics, 3);
	for (size_t i = 0; i < ARRAY_SIZE(nics); i++) {
		_cleanup_free_ char *found = xasprintf("%d", topo_find_nic(inv, nics[i][0]));

		if (!streq(found, nics[i][1]))
			fail_msg("%s is %s", nics[i][0], found);
	}
	assert_int_equal(topo_find_gpu(inv, "gpu-0000-04-00-0"), 0);
	assert_int_equal(topo_find_gpu(inv, "0000:04:00.0"), 0);
	assert_int_equal(topo_find_gpu(inv, "GPU0"), 0);
	assert_int_equal(topo_find_gpu(inv, "GPU1"), -1);
	assert_int_equal(topo_find_gpu(inv, "eth0"), -1);
	inventory_unref(inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_switch),
		cmocka_unit_test(test_two_switches),
		cmocka_unit_test(test_no_switch),
		cmocka_unit_test(test_unknown_bridge),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_without_verbs),
		cmocka_unit_test(test_not_handed_out),
		cmocka_unit_test(test_acs),
		cmocka_unit_test(test_recorded_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

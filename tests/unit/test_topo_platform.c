// SPDX-License-Identifier: Apache-2.0
/* The platform file: what is read of it, which entry a machine is, what that says. */
#include "test_topo_machine.h"

#include <errno.h>

/* --- reading --- */

#define ENTRY "platforms:\n- name: a\n  match: {virtual: true}\n"

static void assert_wrong(const char *text, const char *expected)
{
	struct platforms *platforms = NULL;
	struct err err = { 0 };

	if (platforms_parse(text, strlen(text), "test.yaml", &platforms, &err) == 0)
		fail_msg("accepted: %s", text);
	assert_null(platforms);
	assert_int_equal(err.code, -EINVAL);
	if (!strstr(err.msg, expected))
		fail_msg("\"%s\" lacks \"%s\"", err.msg, expected);
}

static void test_errors_of_shape(void **state)
{
	(void)state;
	assert_wrong("platforms: [\n", "test.yaml: not valid YAML: line 2");
	assert_wrong("- a\n", "test.yaml line 1: the file: is no mapping");
	assert_wrong("platform: []\n",
		     "test.yaml line 1: platform: unknown key; allowed are platforms");
	assert_wrong("# one\nplatforms: {}\n", "test.yaml line 2: platforms: is no list");
	assert_wrong("platforms:\n- a\n", "test.yaml line 2: platforms: is no mapping");
	assert_wrong("platforms:\n- name: a\n", "line 2: platforms: an entry lacks its match");
	assert_wrong("platforms:\n\n- match: {virtual: true}\n",
		     "line 3: platforms: an entry lacks its name");
	assert_wrong(ENTRY "- name: a\n  match: {virtual: true}\n",
		     "line 4: platforms: two entries are called a");
	assert_wrong(ENTRY "  colour: red\n",
		     "line 4: colour: unknown key; allowed are name, match");
	assert_wrong("platforms:\n- name: A_b\n", "line 2: name: is no name");
	assert_wrong("platforms:\n- name: 5\n", "line 2: name: is no name");
	assert_wrong("platforms:\n- name: a\n  name: b\n", "line 3 column 3: key \"name\" comes");
	assert_wrong("platforms:\n- name: a\n  match: {}\n", "line 3: match: has no condition");
}

static void assert_wrong_match(const char *text, const char *expected)
{
	_cleanup_free_ char *yaml =
		xasprintf("platforms:\n- name: a\n  match:\n    virtual: true\n    %s\n", text);
	_cleanup_free_ char *wanted = xasprintf("test.yaml line %s", expected);

	assert_wrong(yaml, wanted);
}

static void test_errors_of_match(void **state)
{
	(void)state;
	assert_wrong_match("gpus: [x]", "5: gpus: is no mapping");
	assert_wrong_match("gpus: {count: 8}", "5: gpus: has no ids");
	assert_wrong_match("gpus: {ids: []}", "5: ids: has 0 elements");
	assert_wrong_match("gpus:\n      ids:\n      - \"10de:2330\"\n      - 10de",
			   "8: ids: \"10de\" is "
			   "no pair");
	assert_wrong_match("gpus: {ids: \"10de:23300\"}", "5: ids: \"10de:23300\" is no pair");
	assert_wrong_match("gpus: {ids: \"g0de:2330\"}", "5: ids: \"g0de:2330\" is no pair");
	assert_wrong_match("gpus: {ids: [\"1:2\", \"1:2\"]}", "5: ids: \"1:2\" comes twice");
	assert_wrong_match("gpus: {ids: 2330}", "5: ids: is no text");
	assert_wrong_match("gpus: {ids: \"1:2\", n: 1}",
			   "5: n: unknown key; allowed are ids, count");
	assert_wrong_match("nics: {ids: \"1:2\", count: -1}", "5: count: is no count");
	assert_wrong_match("nics: {ids: \"1:2\", count: 9-8}", "5: count: is no count");
	assert_wrong_match("nics: {ids: \"1:2\", count: 5000}", "5: count: is no count");
	assert_wrong_match("nics: {ids: \"1:2\", count: \"x\"}", "5: count: is no count");
	assert_wrong_match("nics: {ids: \"1:2\", count: true}", "5: count: is no count");
	assert_wrong_match("dataDirect: 1", "5: dataDirect: is neither true nor false");
	assert_wrong_match("dmiVendor: \"\"", "5: dmiVendor: is empty");
	assert_wrong_match("dmiVendor: \"a\\tb\"", "5: dmiVendor: contains a control character");
	assert_wrong_match("dmiProduct: [[a]]", "5: dmiProduct: is no text");
	assert_wrong_match("functions: eth0", "5: functions: \"eth0\" is no PCI address");
	assert_wrong_match("functions: [\"0000:0x:00.0\"]", "5: functions: \"0000:0x:00.0\" is no");
}

static void assert_wrong_fact(const char *text, const char *expected)
{
	_cleanup_free_ char *yaml = xasprintf(ENTRY "  %s\n", text);
	_cleanup_free_ char *wanted = xasprintf("test.yaml line 4: %s", expected);

	assert_wrong(yaml, wanted);
}

static void test_errors_of_facts(void **state)
{
	(void)state;
	assert_wrong_fact("topologyClass: tree", "topologyClass: \"tree\" is not allowed; give one "
						 "of switch, inline");
	assert_wrong_fact("topologyClass: []", "topologyClass: is empty");
	assert_wrong_fact("rails: 0", "rails: is no number from 1 to 1024");
	assert_wrong_fact("rails: 2000", "rails: is no number");
	assert_wrong_fact("rails: 1.5", "rails: is no number");
	assert_wrong_fact("railNames: gpu", "railNames: \"gpu\" is no name of links");
	assert_wrong_fact("railNames: \"<N><M>\"", "railNames: \"<N><M>\" is no");
	assert_wrong_fact("railNames: \"a<M>b<N>\"", "railNames: \"a<M>b<N>\" is no");
	assert_wrong_fact("railNames: \"a<N>b<X>\"", "railNames: \"a<N>b<X>\" is no");
	assert_wrong_fact("railNames: \"a<N>b<N>\"", "railNames: \"a<N>b<N>\" is no");
	assert_wrong_fact("railOrder: slot", "railOrder: \"slot\" is not allowed; give one of "
					     "pcie-root, pci-domain");
	assert_wrong(ENTRY "  railOrder: pci-domain\n",
		     "line 2: platforms: railOrder pci-domain needs");
	assert_wrong_fact("railMap: []", "railMap: is no map");
	assert_wrong_fact("railMap: {\"03:00.0\": 1}", "03:00.0: is no PCI address");
	assert_wrong_fact("railMap: {\"0000:03:00.0\": -1}", "0000:03:00.0: is no number from 0");
	assert_wrong_fact("railMap: {\"0000:03:00.0\": 1, \"0000:04:00.0\": 1}",
			  "0000:04:00.0: rail 1 is also that of 0000:03:00.0");
	assert_wrong_fact("railMap: {\"0000:03:00.0\": 1, \"00000000:03:00.0\": 2}",
			  "00000000:03:00.0: is the same NIC as 0000:03:00.0");
	assert_wrong_fact("routedRails: yes", "routedRails: is neither true nor false");
	assert_wrong_fact("roles: {}", "roles: is no list");
	assert_wrong_fact("roles: [{role: storage}]", "roles: needs both keys");
	assert_wrong_fact("roles: [{nics: eth0}]", "roles: needs both keys");
	assert_wrong_fact("roles: [{nics: eth0, role: unknown}]",
			  "role: \"unknown\" is not allowed");
	assert_wrong_fact("roles: [{nics: \"role=rail\", role: storage}]",
			  "nics: \"role=rail\" asks for a role");
	assert_wrong_fact("roles: [{nics: \"a b\", role: storage}]", "nics: \"a b\" cannot be");
	assert_wrong_fact("atomicCards: mlx5", "atomicCards: \"mlx5\" is no pair of ids");
	assert_wrong_fact("hairpin: true", "hairpin: \"this\" is not allowed; give one of unknown");
	assert_wrong_fact("crossRail: no", "crossRail: \"no\" is not allowed");
	assert_wrong_fact("nvlinkDomainSize: 0", "nvlinkDomainSize: is no number");
	assert_wrong_fact("gdr: none", "gdr: \"none\" is not allowed; give one of dmabuf, peermem");
	assert_wrong_fact("environment: [A]", "environment: is no map");
	assert_wrong_fact("environment: {1A: b}", "1A: is no name of a variable");
	assert_wrong_fact("environment: {A: 52}", "A: is no text; give a text (in quotes");
}

static void test_bounds(void **state)
{
	struct buf b = { 0 };
	char name[400];

	(void)state;
	buf_str(&b, "platforms:\n");
	for (unsigned int i = 0; i < 257; i++)
		buf_printf(&b, "- {name: p%u, match: {virtual: true}}\n", i);
	assert_wrong(b.data, "line 1: platforms: is no list of at most 256 entries");
	buf_done(&b);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	buf_printf(&b, ENTRY "  environment: {A: %s}\n", name);
	assert_wrong(b.data, "A: is empty or too long");
	buf_done(&b);
}

static void test_empty_files(void **state)
{
	static const char *const texts[] = { "", "# nothing\n", "platforms: []\n" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct platforms *p = parse_platforms(texts[i]);

		assert_int_equal(p->n, 0);
		platforms_free(p);
	}
}

static void test_everything(void **state)
{
	struct platforms *p = parse_platforms("platforms:\n"
					      "- name: all-keys\n"
					      "  match:\n"
					      "    gpus: {ids: \"10de:*\", count: 1-2}\n"
					      "    nics: {ids: [\"15b3:1021\"], count: \"3-\"}\n"
					      "    functions: \"0000:*:00.0\"\n"
					      "    dmiVendor: [A*, B]\n"
					      "    dmiProduct: \"C?\"\n"
					      "    virtual: false\n"
					      "    dataDirect: true\n"
					      "  topologyClass: [switch, inline]\n"
					      "  rails: 4\n"
					      "  railNames: x<N>y<M>\n"
					      "  railOrder: pci-domain\n"
					      "  railMap: {\"0000:03:00.0\": 7}\n"
					      "  routedRails: true\n"
					      "  roles:\n"
					      "  - {nics: [eth*, \"15b3:*\"], role: storage}\n"
					      "  - {nics: \"0000:04:*\", role: rail}\n"
					      "  atomicCards: [\"15b3:1023\"]\n"
					      "  hairpin: supported\n"
					      "  crossRail: unsupported\n"
					      "  nvlinkDomainSize: 72\n"
					      "  gdr: dmabuf\n"
					      "  environment: {NCCL_IB_TC: \"52\"}\n");
	const struct platform *e = &p->items[0];

	(void)state;
	assert_int_equal(p->n, 1);
	assert_string_equal(e->name, "all-keys");
	assert_string_equal(e->match.gpu_ids.items[0], "10de:*");
	assert_int_equal(e->match.gpu_count.max, 2);
	assert_int_equal(e->match.nic_count.min, 3);
	assert_true(e->match.nic_count.max > 1000);
	assert_string_equal(e->match.functions.items[0], "0000:*:00.0");
	assert_int_equal(e->match.dmi_vendor.n, 2);
	assert_string_equal(e->match.dmi_product.items[0], "C?");
	assert_int_equal(e->match.virtual_machine, TRI_NO);
	assert_int_equal(e->match.data_direct, TRI_YES);
	assert_int_equal(e->classes, 1U << CLASS_SWITCH | 1U << CLASS_INLINE);
	assert_int_equal(e->rails, 4);
	assert_string_equal(e->rail_names.items[0], "x<N>y<M>");
	assert_int_equal(e->rail_order, RAIL_ORDER_PCI_DOMAIN);
	assert_string_equal(e->rail_map[0].bus_id, "0000:03:00.0");
	assert_int_equal(e->rail_map[0].rail, 7);
	assert_int_equal(e->routed_rails, TRI_YES);
	assert_int_equal(e->n_roles, 2);
	assert_int_equal(e->roles[0].role, ROLE_STORAGE);
	assert_int_equal(e->roles[1].role, ROLE_RAIL);
	assert_int_equal(platform_atomic_card(e, 0x15b3, 0x1023), TRI_YES);
	assert_int_equal(platform_atomic_card(e, 0x15b3, 0x1021), TRI_NO);
	assert_int_equal(platform_atomic_card(NULL, 0x15b3, 0x1023), TRI_UNKNOWN);
	assert_int_equal(e->hairpin, TRI_SUPPORTED);
	assert_int_equal(e->cross_rail, TRI_UNSUPPORTED);
	assert_int_equal(e->nvlink_domain_size, 72);
	assert_string_equal(e->gdr, "dmabuf");
	assert_string_equal(e->environment.items[0], "NCCL_IB_TC=52");
	assert_string_equal(platform_source(e), "config");
	platforms_free(p);
}

/* --- which entry --- */

/* "gpus" of this device, one NIC of "nic" per GPU, each below a root port of its own. */
struct shape {
	unsigned int gpu_vendor, gpu, n_gpus, last_gpu;
	unsigned int nic_vendor, nic;
	const char *vendor, *more;
};

static void add_efa(struct buf *b, const char *path, unsigned int device, const char *rdma)
{
	add_pci(b, path, 0x020000, 0x1d0f, device, 0);
	buf_printf(b, "sys/class/infiniband/%s -> ../../devices/%s/infiniband/%s\n", rdma, path,
		   rdma);
	buf_printf(b, "sys/devices/%s/infiniband/%s/node_type = 7: unspecified\n", path, rdma);
}

static struct inventory *shaped(const struct shape *s, const struct topo_options *options)
{
	struct buf b = { 0 };

	for (unsigned int i = 0; i < s->n_gpus; i++) {
		_cleanup_free_ char *gpu = xasprintf("pci%04x:00/%04x:00:01.0", i, i);
		_cleanup_free_ char *nic = xasprintf("pci%04x:00/%04x:00:02.0", i, i);
		_cleanup_free_ char *rdma = xasprintf("rdmadev%u", i);
		bool last = i + 1 == s->n_gpus && s->last_gpu;

		add_pci(&b, gpu, s->gpu_vendor == 0x1002 ? 0x120000 : 0x030200, s->gpu_vendor,
			last ? s->last_gpu : s->gpu, 0);
		if (s->nic && s->nic_vendor == 0x15b3)
			add_nic(&b, nic, s->nic, 0, rdma, NULL, NULL);
		else if (s->nic)
			add_efa(&b, nic, s->nic, rdma);
	}
	if (s->vendor)
		buf_printf(&b, "sys/class/dmi/id/sys_vendor = %s\n", s->vendor);
	buf_str(&b, s->more ? s->more : "");
	return build_with(&b, options);
}

#define HYPERVISOR "proc/cpuinfo = processor: 0\\nflags\\t\\t: fpu hypervisor lm\n"
#define AZURE "sys/class/dmi/id/product_name = Virtual Machine\n"

static void test_shipped_entries(void **state)
{
	static const struct {
		struct shape shape;
		const char *platform;
	} cases[] = {
		{ { 0x10de, 0x2330, 8, 0, 0x15b3, 0x1021, NULL, NULL }, "hgx-h100" },
		{ { 0x10de, 0x2330, 8, 0, 0, 0, "NVIDIA", NULL }, "hgx-h100" },
		/* One that lost a GPU is the same machine, one with half of them is another. */
		{ { 0x10de, 0x2330, 7, 0, 0x15b3, 0x1021, NULL, NULL }, "hgx-h100" },
		{ { 0x10de, 0x31c2, 3, 0, 0x15b3, 0x1023, "Google", NULL }, "gce-a4x-max" },
		{ { 0x10de, 0x2330, 4, 0, 0x15b3, 0x1021, NULL, NULL }, NULL },
		{ { 0x10de, 0x2330, 9, 0, 0x15b3, 0x1021, NULL, NULL }, NULL },
		{ { 0x10de, 0x2330, 8, 0x2335, 0x15b3, 0x1021, NULL, NULL }, NULL },
		{ { 0x10de, 0x2335, 8, 0, 0x15b3, 0x1021, NULL, NULL }, "hgx-h200" },
		{ { 0x10de, 0x2901, 8, 0, 0x15b3, 0x1021, NULL, NULL }, "hgx-b200" },
		/* Somebody's virtual machine may be cabled in any way. */
		{ { 0x10de, 0x2330, 8, 0, 0x15b3, 0x101e, "QEMU", NULL }, NULL },
		{ { 0x10de, 0x2330, 8, 0, 0x15b3, 0x101e, NULL, HYPERVISOR }, NULL },
		{ { 0x10de, 0x2335, 8, 0, 0x15b3, 0x1021, "Google", NULL }, "gce-a3-ultra" },
		{ { 0x10de, 0x2901, 8, 0, 0x15b3, 0x1021, "Google", NULL }, "gce-a4" },
		{ { 0x10de, 0x2941, 4, 0, 0x15b3, 0x101e, "Google", NULL }, "gce-a4x" },
		{ { 0x10de, 0x31c2, 4, 0, 0x15b3, 0x1023, "Google", NULL }, "gce-a4x-max" },
		{ { 0x10de, 0x31c2, 4, 0x31c3, 0x15b3, 0x1023, NULL, NULL }, "gb300" },
		{ { 0x10de, 0x2941, 4, 0, 0x15b3, 0x1021, NULL, NULL }, "gb200-cx7" },
		{ { 0x10de, 0x2941, 4, 0, 0x15b3, 0x1023, NULL, NULL }, "gb200" },
		{ { 0x10de, 0x2330, 8, 0, 0x1d0f, 0xefa2, "Amazon EC2", NULL }, "aws-p5" },
		{ { 0x10de, 0x2330, 8, 0, 0x15b3, 0x101e, "Microsoft Corporation", AZURE },
		  "azure-nd-h100-v5" },
		{ { 0x10de, 0x31c2, 4, 0, 0x15b3, 0x101e, "Microsoft Corporation", AZURE },
		  "azure-gb300" },
		{ { 0x1002, 0x74a1, 8, 0, 0x15b3, 0x1021, NULL, NULL }, "mi300x" },
		{ { 0x10de, 0x20b0, 8, 0, 0x15b3, 0x101b, NULL, NULL }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct inventory *inv = shaped(&cases[i].shape, NULL);

		assert_int_equal(inv->n_gpus, cases[i].shape.n_gpus);
		if (!streq_null(inv->platform, cases[i].platform))
			fail_msg("case %zu: %s instead of %s", i,
				 inv->platform ? inv->platform : "-",
				 cases[i].platform ? cases[i].platform : "-");
		inventory_unref(inv);
	}
}

/* Oracle's trays show themselves by the addresses of their front-end ports. */
static void test_oci(void **state)
{
	static const struct {
		unsigned int gpu, nic;
		bool both;
		const char *platform;
	} cases[] = {
		{ 0x2941, 0x1023, true, "oci-gb200" },
		{ 0x2941, 0x1023, false, "gb200" },
		{ 0x2941, 0x1021, true, "gb200-cx7" },
		{ 0x31c2, 0x1023, true, "oci-gb300" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct shape s = { 0x10de, cases[i].gpu, 4,    0,
					 0x15b3, cases[i].nic, NULL, NULL };
		struct shape with = s;
		struct inventory *inv;
		struct buf b = { 0 };

		add_nic(&b, "pci0006:00/0006:09:00.0", 0x101d, 0, "mlx5_4", "eth0", NULL);
		if (cases[i].both)
			add_nic(&b, "pci0016:00/0016:0b:00.0", 0x101d, 1, "mlx5_9", "eth1", NULL);
		with.more = b.data;
		inv = shaped(&with, NULL);
		assert_string_equal(inv->platform, cases[i].platform);
		if (starts_with(inv->platform, "oci")) {
			assert_int_equal(nic_of(inv, "0006:09:00.0")->role, ROLE_FRONTEND);
			assert_string_equal(nic_of(inv, "0006:09:00.0")->role_source, "platform");
			assert_false(topo_is_own(nic_of(inv, "0006:09:00.0")));
		}
		inventory_unref(inv);
		buf_done(&b);
	}
}

/* An own entry goes first; one with the name of a shipped one stands in its place. */
static void test_own_entries(void **state)
{
	static const struct shape h100 = { 0x10de, 0x2330, 8, 0, 0x15b3, 0x1021, NULL, NULL };
	static const struct shape a4x = { 0x10de, 0x2941, 4, 0, 0x15b3, 0x101e, "Google", NULL };
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: gb200\n"
						"  match: {gpus: {ids: \"10de:2941\"}}\n"
						"  hairpin: unsupported\n"
						"- name: mine\n"
						"  match: {gpus: {ids: \"10DE:23*\"}}\n"
						"  crossRail: supported\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv;

	(void)state;
	inv = shaped(&h100, &options);
	assert_string_equal(inv->platform, "mine");
	assert_int_equal(inv->nics[0].cross_rail, TRI_SUPPORTED);
	assert_string_equal(inv->nics[0].cross_rail_source, "config");
	assert_int_equal(inv->nics[0].hairpin, TRI_UNKNOWN);
	assert_null(inv->nics[0].hairpin_source);
	inventory_unref(inv);
	/* In the place of the shipped gb200, the wider entry is behind that of A4X. */
	inv = shaped(&a4x, &options);
	assert_string_equal(inv->platform, "gce-a4x");
	inventory_unref(inv);
	inv = shaped(&(struct shape){ 0x10de, 0x2941, 2, 0, 0, 0, NULL, NULL }, &options);
	assert_string_equal(inv->platform, "gb200");
	inventory_unref(inv);
	platforms_free(own);
}

/* --- what it says --- */

static void test_facts(void **state)
{
	static const struct shape a3 = { 0x10de, 0x2335, 8, 0, 0x15b3, 0x1021, "Google", NULL };
	static const struct shape x = { 0x10de, 0x20b0, 1, 0, 0x15b3, 0x101b, NULL, NULL };
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: small\n"
						"  match: {gpus: {ids: \"10de:20b0\"}}\n"
						"  topologyClass: [switch, inline]\n"
						"  rails: 2\n"
						"  gdr: dmabuf\n");
	const struct topo_options options = { .platforms = own };
	struct inventory *inv = shaped(&a3, NULL);

	(void)state;
	assert_int_equal(inv->nvlink_domain_size, 8);
	assert_string_equal(inv->environment[0], "NCCL_IB_TC=52");
	assert_null(inv->environment[3]);
	assert_int_equal(inv->nics[0].hairpin, TRI_SUPPORTED);
	assert_string_equal(inv->nics[0].hairpin_source, "platform");
	assert_false(has_warning(inv, "rail-missing")); /* rail-unknown says it */
	assert_true(has_warning(inv, "rail-unknown"));
	inventory_unref(inv);

	inv = shaped(&x, &options);
	assert_null(inv->environment);
	assert_int_equal(inv->nvlink_domain_size, TOPO_UNKNOWN);
	assert_string_equal(inv->gpus[0].gdr, "dmabuf");
	assert_int_equal(inv->nics[0].role, ROLE_RAIL);
	assert_int_equal(inv->topology_class, CLASS_UNKNOWN);
	assert_false(has_warning(inv, "platform-mismatch"));
	inventory_unref(inv);
	inv = shaped(&(struct shape){ 0x10de, 0x20b0, 1, 0, 0, 0, NULL, NULL }, &options);
	assert_non_null(strstr(warning_text(inv, "rail-missing"), "0 of 2 rails of small"));
	inventory_unref(inv);
	platforms_free(own);
}

static void test_class_mismatch(void **state)
{
	struct platforms *own = parse_platforms("platforms:\n"
						"- name: other\n"
						"  match: {gpus: {ids: \"10de:2330\"}}\n"
						"  topologyClass: [inline, data-direct]\n"
						"- name: same\n"
						"  match: {gpus: {ids: \"10de:2335\"}}\n"
						"  topologyClass: switch\n");
	const struct topo_options options = { .platforms = own };

	(void)state;
	for (unsigned int device = 0x2330; device <= 0x2335; device += 5) {
		_cleanup_free_ char *path = group_path(0, 1, "04:00.0");
		struct inventory *inv;
		struct buf b = { 0 };

		add_group(&b, 0);
		add_pci(&b, path, 0x030200, 0x10de, device, 0);
		add_gpu_driver(&b, "0000:04:00.0", "Device Minor: 0");
		free(add_group_nic(&b, 0, "03:00.0", 0x1021, "rdma0", NULL));
		inv = build_with(&b, &options);
		assert_int_equal(inv->topology_class, CLASS_SWITCH);
		if (device == 0x2330)
			assert_non_null(strstr(warning_text(inv, "platform-mismatch"),
					       "other as inline or data-direct, but the PCI tree "
					       "shows switch"));
		else
			assert_int_equal(inv->n_warnings, 0);
		inventory_unref(inv);
	}
	platforms_free(own);
}

/* Two PFs of one chip; the platform file may say that they go together, or that they do not. */
static void test_atomic_cards(void **state)
{
	static const struct {
		const char *key;
		unsigned int chip;
		bool data_direct, atomic;
	} cases[] = {
		{ "", 0x1021, false, false },
		{ "  atomicCards: [\"15b3:1021\"]\n", 0x1021, false, true },
		{ "  atomicCards: [\"15b3:1023\"]\n", 0x1021, false, false },
		{ "", 0x1023, true, true },
		{ "  atomicCards: []\n", 0x1023, true, false },
		{ "  atomicCards: [\"15b3:1021\"]\n", 0x1023, true, false },
		{ "  atomicCards: [\"15b3:10*\"]\n", 0x1023, false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = xasprintf("platforms:\n- name: mine\n"
						      "  match: {gpus: {ids: \"10de:2330\"}}\n%s",
						      cases[i].key);
		struct platforms *own = parse_platforms(text);
		const struct topo_options options = { .platforms = own };

		for (unsigned int n = 1; n <= 2; n++) { /* one PF may have dropped off the bus */
			struct inventory *inv;
			struct buf b = { 0 };

			add_group(&b, 0);
			add_group_gpu(&b, 0, "04:00.0");
			for (unsigned int k = 0; k < n; k++) {
				_cleanup_free_ char *path =
					add_group_nic(&b, 0, k ? "03:00.1" : "03:00.0",
						      cases[i].chip, NULL, "0000:0000:0000:0001");

				add_vpd(&b, path, "SN", "A");
			}
			if (cases[i].data_direct) {
				_cleanup_free_ char *dma = group_path(0, 1, "05:00.0");

				add_pci(&b, dma, 0x080100, 0x15b3, 0x2100, 0);
				add_vpd(&b, dma, "DMA", "A");
			}
			inv = build_with(&b, &options);
			assert_int_equal(inv->n_cards, n - 1);
			if (n == 2)
				assert_int_equal(inv->cards[0].atomic, cases[i].atomic);
			if (inv->nics[0].standalone == cases[i].atomic)
				fail_msg("case %zu with %u PFs", i, n);
			inventory_unref(inv);
		}
		platforms_free(own);
	}
}

/* A bad file does not change what is known, and is not forgotten. */
static void test_bad_file(void **state)
{
	static const struct shape h100 = { 0x10de, 0x2330, 8, 0, 0x15b3, 0x1021, NULL, NULL };
	const struct topo_options options = { .platforms_error = "f.yaml line 3: x: unknown key" };
	struct inventory *inv = shaped(&h100, &options);

	(void)state;
	assert_string_equal(inv->platform, "hgx-h100");
	assert_non_null(
		strstr(warning_text(inv, "platform-file"), "f.yaml line 3: x: unknown key"));
	inventory_unref(inv);
}

/* Every shipped entry says something that is possible, and none hides another. */
static void test_shipped_data(void **state)
{
	static const char *const names[] = {
		"hgx-h100",	    "hgx-h200",	   "hgx-b200",	"gce-a3-ultra", "gce-a4",
		"gce-a4x",	    "gce-a4x-max", "oci-gb200", "oci-gb300",	"azure-gb300",
		"azure-nd-h100-v5", "aws-p5",	   "gb200-cx7", "gb200",	"gb300",
		"mi300x",
	};
	const struct platforms *shipped = platforms_shipped();

	(void)state;
	assert_ptr_equal(shipped, platforms_shipped());
	assert_int_equal(shipped->n, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool found = false;

		for (size_t k = 0; k < shipped->n; k++)
			found = found || streq(shipped->items[k].name, names[i]);
		if (!found)
			fail_msg("%s is missing", names[i]);
		assert_true(shipped->items[i].shipped);
		assert_string_equal(platform_source(&shipped->items[i]), "platform");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors_of_shape), cmocka_unit_test(test_errors_of_match),
		cmocka_unit_test(test_errors_of_facts), cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_empty_files),	cmocka_unit_test(test_everything),
		cmocka_unit_test(test_shipped_entries), cmocka_unit_test(test_oci),
		cmocka_unit_test(test_own_entries),	cmocka_unit_test(test_facts),
		cmocka_unit_test(test_class_mismatch),	cmocka_unit_test(test_bad_file),
		cmocka_unit_test(test_atomic_cards),	cmocka_unit_test(test_shipped_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

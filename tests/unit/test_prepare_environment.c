// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prepare/environment.h"
#include "prepare/resolve.h"
#include "unit/test_prepare_machine.h"

#define CLAIMS_MAX 8

struct pod {
	char *dir; /* with the vendor's CDI specification */
	struct claim *claims[CLAIMS_MAX];
	struct record *records[CLAIMS_MAX];
	size_t n;
	struct strlist env;
	const char *why;
};

/* As nvidia-ctk writes it, for the GPUs of the machine. */
static void vendor_spec(const char *dir, const struct inventory *inv)
{
	_cleanup_free_ char *path = xasprintf("%s/nvidia.yaml", dir);
	struct buf b = { 0 };

	buf_str(&b, "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n");
	for (size_t i = 0; i < inv->n_gpus; i++)
		buf_printf(&b,
			   "- name: %s\n  containerEdits:\n    deviceNodes:\n"
			   "    - path: /dev/nvidia%d\n",
			   inv->gpus[i].uuid, inv->gpus[i].minor);
	put_file(path, "%s", b.data);
	buf_done(&b);
}

static void pod_init(struct pod *p, const struct inventory *inv)
{
	*p = (struct pod){ .dir = temp_dir() };
	vendor_spec(p->dir, inv);
}

static void pod_done(struct pod *p)
{
	for (size_t i = 0; i < p->n; i++) {
		claim_free(p->claims[i]);
		record_free(p->records[i]);
	}
	strlist_done(&p->env);
	temp_dir_done(p->dir);
}

static void pod_claim(struct pod *p, const struct inventory *inv, const char *results)
{
	_cleanup_free_ char *name = xasprintf("c%zu", p->n), *uid = xasprintf("uid-%zu", p->n);
	const char *const dirs[] = { p->dir, NULL };
	const struct resolve_options options = { "twinrail.dev", "node1", dirs };
	_cleanup_json_ json_t *o = claim_object(name, uid, results);
	struct err err = { 0 };

	assert_int_equal(claim_parse(o, "twinrail.dev", uid, &p->claims[p->n], &err), 0);
	if (resolve_claim(p->claims[p->n], inv, &options, &p->records[p->n], &err) < 0)
		fail_msg("%s", err.msg);
	p->n++;
}

static const char *pod_env(struct pod *p, const struct inventory *inv, const json_t *object,
			   const char *name)
{
	strlist_done(&p->env);
	p->why = environment_build((const struct claim *const *)p->claims,
				   (const struct record *const *)p->records, p->n, object, inv,
				   &p->env);
	for (size_t i = 0; i < p->env.n; i++)
		if (starts_with(p->env.items[i], name) && p->env.items[i][strlen(name)] == '=')
			return p->env.items[i] + strlen(name) + 1;
	return "(none)";
}

static void one_card_and_gpu(void **state)
{
	struct machine m;
	struct pod p;

	(void)state;
	machine_gb300(&m, 4);
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv, "gpu=gpu-0011-06-00-0 nic=card-0001-03-00");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_2:1,mlx5_3:1");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "NCCL_IB_HCA"), "=mlx5_2:1,mlx5_3:1");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "TWINRAIL_PAIRS"),
			    "gpu-0011-06-00-0=nic-0001-03-00-0+nic-0001-03-00-1");
	assert_int_equal(p.env.n, 3);
	pod_done(&p);
	machine_done(&m);
}

/* Kubelet lists the claims in random order; the lists follow the GPUs. */
static void four_claims_any_order(void **state)
{
	static const char *const claims[] = {
		"gpu=gpu-0000-41-00-0 nic=nic-0000-40-00-0",
		"gpu=gpu-0000-11-00-0 nic=nic-0000-10-00-0",
		"nic=nic-0000-30-00-0 gpu=gpu-0000-31-00-0",
		"gpu=gpu-0000-21-00-0 nic=nic-0000-20-00-0",
	};
	struct machine m;

	(void)state;
	machine_hgx(&m, 8);
	for (size_t shift = 0; shift < 4; shift++) {
		struct pod p;

		pod_init(&p, &m.inv);
		for (size_t i = 0; i < 4; i++)
			pod_claim(&p, &m.inv, claims[(i + shift) % 4]);
		assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"),
				    "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
		assert_string_equal(pod_env(&p, &m.inv, NULL, "TWINRAIL_PAIRS"),
				    "gpu-0000-11-00-0=nic-0000-10-00-0,"
				    "gpu-0000-21-00-0=nic-0000-20-00-0,"
				    "gpu-0000-31-00-0=nic-0000-30-00-0,"
				    "gpu-0000-41-00-0=nic-0000-40-00-0");
		pod_done(&p);
	}
	machine_done(&m);
}

/* GPUs of crossed order: each NIC goes to its own GPU, and the list follows the GPUs. */
static enum path_class path_crossed(size_t gpu, size_t nic, int *hops)
{
	*hops = 2;
	return gpu + nic == 7 ? PATH_PIX : PATH_SYS;
}

static void crossed(void **state)
{
	struct machine m;
	struct pod p;

	(void)state;
	machine_hgx(&m, 8);
	machine_finish(&m, path_crossed);
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv,
		  "g=gpu-0000-11-00-0 g=gpu-0000-21-00-0 n=nic-0000-70-00-0 "
		  "n=nic-0000-80-00-0");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_7:1,mlx5_6:1");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "TWINRAIL_PAIRS"),
			    "gpu-0000-11-00-0=nic-0000-80-00-0,gpu-0000-21-00-0=nic-0000-70-00-0");
	pod_done(&p);
	machine_done(&m);
}

/* Both NICs are nearest to the same GPU: each GPU still gets one. */
static enum path_class path_greedy(size_t gpu, size_t nic, int *hops)
{
	(void)nic;
	*hops = gpu == 0 ? 2 : 4;
	return gpu == 0 ? PATH_PIX : PATH_PXB;
}

static void shared_fairly(void **state)
{
	struct machine m;
	struct pod p;

	(void)state;
	machine_hgx(&m, 8);
	machine_finish(&m, path_greedy);
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv,
		  "g=gpu-0000-11-00-0 g=gpu-0000-21-00-0 n=nic-0000-10-00-0 "
		  "n=nic-0000-20-00-0 n=nic-0000-30-00-0");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "TWINRAIL_PAIRS"),
			    "gpu-0000-11-00-0=nic-0000-10-00-0+nic-0000-30-00-0,"
			    "gpu-0000-21-00-0=nic-0000-20-00-0");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"),
			    "mlx5_0:1,mlx5_2:1,mlx5_1:1");
	pod_done(&p);

	/* one NIC for two GPUs: both use it, it is listed once */
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv, "g=gpu-0000-11-00-0 g=gpu-0000-21-00-0 n=nic-0000-10-00-0");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "TWINRAIL_PAIRS"),
			    "gpu-0000-11-00-0=nic-0000-10-00-0,gpu-0000-21-00-0=nic-0000-10-00-0");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_0:1");
	pod_done(&p);
	machine_done(&m);
}

static void ports(void **state)
{
	struct topo_port two[2] = { { .port = 1 }, { .port = 2 } };
	struct machine m;
	struct pod p;

	(void)state;
	machine_hgx(&m, 2);
	m.inv.nics[0].ports = two;
	m.inv.nics[0].n_ports = 2;
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv, "n=nic-0000-10-00-0");
	two[1].state = text(&m, "ACTIVE");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_0:2");
	two[1].state = text(&m, "DOWN");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_0:1");
	m.inv.nics[0].n_ports = 0;
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_0:1");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "TWINRAIL_PAIRS"), "(none)");
	pod_done(&p);
	machine_done(&m);
}

static void left_out(void **state)
{
	struct machine m;
	struct pod p;

	(void)state;
	machine_hgx(&m, 2);
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv, "g=gpu-0000-11-00-0");
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "(none)");
	assert_null(p.why);
	pod_claim(&p, &m.inv, "n=nic-0000-10-00-0");
	p.records[1]->devices[0].admin_access = true; /* watches, does not hold */
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "(none)");
	p.records[1]->devices[0].admin_access = false;
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "mlx5_0:1");
	p.claims[1]->n_consumers = 2;
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "(none)");
	assert_non_null(p.why);
	p.claims[1]->n_consumers = 1; /* a group of pods */
	free(TAKE_PTR(p.claims[1]->pod_name));
	assert_string_equal(pod_env(&p, &m.inv, NULL, "UCX_NET_DEVICES"), "(none)");
	assert_non_null(p.why);
	pod_done(&p);
	machine_done(&m);
}

static void needs_pod(void **state)
{
	struct machine m;
	struct pod p;

	(void)state;
	machine_hgx(&m, 4);
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv, "g=gpu-0000-11-00-0 n=nic-0000-10-00-0 n=nic-0000-20-00-0");
	assert_false(environment_needs_pod((const struct claim *const *)p.claims, 1));
	pod_claim(&p, &m.inv, "n/x=nic-0000-30-00-0 m=nic-0000-40-00-0");
	assert_true(environment_needs_pod((const struct claim *const *)&p.claims[1], 1));
	assert_true(environment_needs_pod((const struct claim *const *)p.claims, 2));
	p.claims[1]->n_consumers = 2;
	assert_false(environment_needs_pod((const struct claim *const *)p.claims, 2));
	assert_false(environment_needs_pod(NULL, 0));
	pod_done(&p);
	machine_done(&m);
}

/* c0 is template-made (named in the status), c1 is named in the spec. */
static void containers(void **state)
{
	static const struct {
		const char *init, *containers;
		bool lists;
	} rows[] = {
		{ "[]", "[[{\"name\":\"a\"},{\"name\":\"b\"}]]", true },
		{ "[]", "[[{\"name\":\"b\"},{\"name\":\"a\"}],[]]", true },
		{ "[[{\"name\":\"a\"}]]", "[[{\"name\":\"b\"},{\"name\":\"a\"}],[]]", false },
		{ "[]", "[[{\"name\":\"a\"}],[{\"name\":\"b\"}]]", false },
		{ "[]", "[[{\"name\":\"a\",\"request\":\"x\"},{\"name\":\"b\"}]]", true },
		{ "[]",
		  "[[{\"name\":\"a\",\"request\":\"x\"},{\"name\":\"a\",\"request\":\"y\"}],"
		  "[{\"name\":\"a\"}]]",
		  true },
		{ "[]", "[[{\"name\":\"a\",\"request\":\"x\"}],[{\"name\":\"a\"}]]", false },
		{ "[]", "[[{\"name\":\"other\"}],[{\"name\":\"a\"},{\"name\":\"b\"}]]", true },
	};
	struct machine m;
	struct pod p;

	(void)state;
	machine_hgx(&m, 4);
	pod_init(&p, &m.inv);
	pod_claim(&p, &m.inv, "x=nic-0000-10-00-0 y/z=nic-0000-20-00-0");
	pod_claim(&p, &m.inv, "n=nic-0000-30-00-0");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_json_ json_t *object = json_loads(
			"{\"spec\":{\"resourceClaims\":[{\"name\":\"a\","
			"\"resourceClaimTemplateName\":\"t\"},{\"name\":\"b\","
			"\"resourceClaimName\":\"c1\"}]},\"status\":{\"resourceClaimStatuses\":"
			"[{\"name\":\"a\",\"resourceClaimName\":\"c0\"}]}}",
			0, NULL);
		const char *const keys[] = { "initContainers", "containers" };
		const char *const lists[] = { rows[i].init, rows[i].containers };

		for (size_t k = 0; k < 2; k++) {
			_cleanup_json_ json_t *uses = json_loads(lists[k], 0, NULL);
			json_t *list = json_array(), *use;
			size_t n;

			json_array_foreach(uses, n, use)
				json_array_append_new(
					list, json_pack("{s:{s:O}}", "resources", "claims", use));
			json_object_set_new(json_path(object, "spec"), keys[k], list);
		}
		if (streq(pod_env(&p, &m.inv, object, "UCX_NET_DEVICES"), "(none)") ==
		    rows[i].lists)
			fail_msg("row %zu: %s", i, p.why ? p.why : "no reason");
		assert_int_equal(p.why == NULL, rows[i].lists);
	}
	/* a pod that does not name a claim, e.g. one of extended resources */
	assert_string_equal(pod_env(&p, &m.inv, json_true(), "UCX_NET_DEVICES"), "(none)");
	pod_done(&p);
	machine_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_card_and_gpu),
		cmocka_unit_test(four_claims_any_order),
		cmocka_unit_test(crossed),
		cmocka_unit_test(shared_fairly),
		cmocka_unit_test(ports),
		cmocka_unit_test(left_out),
		cmocka_unit_test(needs_pod),
		cmocka_unit_test(containers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

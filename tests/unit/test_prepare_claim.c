// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/test_prepare_machine.h"

#define DRIVER "twinrail.dev"
#define CONFIG(fields) "{\"apiVersion\":\"twinrail.dev/v1\",\"kind\":\"NicConfig\"" fields "}"
#define ALLOW ",\"halfPairPolicy\":\"Allow\""
#define REFUSE ",\"halfPairPolicy\":\"Refuse\""

static void own_results_only(void **state)
{
	_cleanup_json_ json_t *o = claim_object("c", UID_A, "nic/big=nic-0000-10-00-0 gpu=gpu-1");
	json_t *results = json_path(o, "status.allocation.devices.results");
	_cleanup_(claim_freep) struct claim *c = NULL;
	struct err err = { 0 };

	(void)state;
	json_array_append_new(results,
			      json_pack("{s:s,s:s,s:s,s:s}", "driver", "gpu.nvidia.com", "request",
					"vendor", "pool", "p", "device", "gpu-7"));
	json_object_set_new(json_array_get(results, 1), "adminAccess", json_true());
	json_object_set_new(json_array_get(results, 1), "shareID", json_string(UID_B));
	assert_int_equal(claim_parse(o, DRIVER, UID_A, &c, &err), 0);
	assert_string_equal(c->namespace, "ns");
	assert_string_equal(c->name, "c");
	assert_int_equal(c->n_results, 2);
	assert_string_equal(c->results[0].request, "nic/big");
	assert_false(c->results[0].admin_access);
	assert_null(c->results[0].share_id);
	assert_string_equal(c->results[1].device, "gpu-1");
	assert_true(c->results[1].admin_access);
	assert_string_equal(c->results[1].share_id, UID_B);
	assert_int_equal(c->n_consumers, 1);
	assert_string_equal(c->pod_name, "pod");
	assert_string_equal(c->pod_uid, POD_UID);
}

/* What a change of a good claim does. */
struct change {
	const char *path, *value; /* JSON */
	enum err_kind kind; /* ERR_NONE: still good */
	const char *text;
};

static void set_path(json_t *o, const char *path, const char *value)
{
	const char *dot = strrchr(path, '.');
	_cleanup_free_ char *parent = xstrndup(path, dot ? (size_t)(dot - path) : 0);
	json_t *p = json_path(o, parent);

	if (json_is_array(p))
		p = json_array_get(p, 0);
	json_object_set_new(p, dot ? dot + 1 : path, json_loads(value, JSON_DECODE_ANY, NULL));
}

static void malformed(void **state)
{
#define RESULTS "status.allocation.devices.results"
#define LONG "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\""
	static const struct change changes[] = {
		{ "metadata.labels", "{}", ERR_NONE, "" },
		{ "metadata.uid", "\"" UID_B "\"", ERR_CONFLICT, "ns/c: it was replaced" },
		{ "metadata.name", "7", ERR_INVALID, "not a ResourceClaim" },
		{ "metadata.namespace", "\"../x\"", ERR_INVALID, "not a ResourceClaim" },
		{ "status", "{}", ERR_RETRY, "not allocated" },
		{ "status.allocation", "null", ERR_RETRY, "not allocated" },
		{ "status.allocation.devices", "{}", ERR_NONE, "" },
		{ RESULTS, "{}", ERR_INVALID, "not a list" },
		{ RESULTS ".driver", "7", ERR_INVALID, "result 0: \"driver\"" },
		{ RESULTS ".request", "\"a/b/c\"", ERR_INVALID, "not a request name" },
		{ RESULTS ".request", "\"a_b\"", ERR_INVALID, "not a request name" },
		{ RESULTS ".request", "\"../../x\"", ERR_INVALID, "not a request name" },
		{ RESULTS ".request", LONG, ERR_INVALID, "not a request name" },
		{ RESULTS ".pool", "\"\"", ERR_INVALID, "\"pool\"" },
		{ RESULTS ".device", "null", ERR_INVALID, "\"device\"" },
		{ RESULTS ".shareID", "\"../x\"", ERR_INVALID, "shareID" },
		{ "status.allocation.devices.config", "{}", ERR_INVALID, "\"config\"" },
		{ "status.reservedFor", "{}", ERR_INVALID, "reservedFor" },
		{ "status.reservedFor.name", "\"../x\"", ERR_INVALID, "reservedFor" },
		{ "status.reservedFor.resource", "\"podgroups\"", ERR_NONE, "" },
		{ "status.reservedFor", "[]", ERR_NONE, "" },
		{ "status.reservedFor", "null", ERR_NONE, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		_cleanup_json_ json_t *o = claim_object("c", UID_A, "nic=nic-0000-10-00-0");
		_cleanup_(claim_freep) struct claim *c = NULL;
		struct err err = { 0 };
		int r;

		set_path(o, changes[i].path, changes[i].value);
		r = claim_parse(o, DRIVER, UID_A, &c, &err);
		if (err.kind != changes[i].kind || !strstr(err.msg, changes[i].text))
			fail_msg("%s = %s: %s", changes[i].path, changes[i].value, err.msg);
		assert_int_equal(r == 0, changes[i].kind == ERR_NONE);
	}
}

static void too_many(void **state)
{
	_cleanup_json_ json_t *o = claim_object("c", UID_A, "nic=nic-0000-10-00-0");
	json_t *results = json_path(o, RESULTS);
	struct claim *c = NULL;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < CLAIM_RESULTS_MAX; i++)
		json_array_append(results, json_array_get(results, 0));
	assert_true(claim_parse(o, DRIVER, UID_A, &c, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
	json_array_remove(results, 0);
	assert_int_equal(claim_parse(o, DRIVER, UID_A, &c, &err), 0);
	assert_int_equal(c->n_results, CLAIM_RESULTS_MAX);
	claim_free(c);
}

/* Up to two configs; what the requests "a/x" and "b" get. */
static void config_merge(void **state)
{
	static const struct {
		const char *source[2], *requests[2], *parameters[2];
		enum half_pair_policy a, b;
	} rows[] = {
		{ { 0 }, { 0 }, { 0 }, HALF_PAIR_UNSET, HALF_PAIR_UNSET },
		{ { "FromClass" }, { "[]" }, { CONFIG(ALLOW) }, HALF_PAIR_ALLOW, HALF_PAIR_ALLOW },
		{ { "FromClaim" },
		  { "[\"a\"]" },
		  { CONFIG(ALLOW) },
		  HALF_PAIR_ALLOW,
		  HALF_PAIR_UNSET },
		{ { "FromClaim" },
		  { "[\"a/x\"]" },
		  { CONFIG(ALLOW) },
		  HALF_PAIR_ALLOW,
		  HALF_PAIR_UNSET },
		{ { "FromClaim" },
		  { "[\"a/y\"]" },
		  { CONFIG(ALLOW) },
		  HALF_PAIR_UNSET,
		  HALF_PAIR_UNSET },
		/* class, then claim, in whatever order they are listed */
		{ { "FromClaim", "FromClass" },
		  { "[]", "[]" },
		  { CONFIG(ALLOW), CONFIG(REFUSE) },
		  HALF_PAIR_ALLOW,
		  HALF_PAIR_ALLOW },
		/* later wins within a source */
		{ { "FromClaim", "FromClaim" },
		  { "[]", "[\"b\"]" },
		  { CONFIG(ALLOW), CONFIG(REFUSE) },
		  HALF_PAIR_ALLOW,
		  HALF_PAIR_REFUSE },
		/* a field that is not set leaves the earlier value */
		{ { "FromClass", "FromClaim" },
		  { "[]", "[]" },
		  { CONFIG(ALLOW), CONFIG() },
		  HALF_PAIR_ALLOW,
		  HALF_PAIR_ALLOW },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_json_ json_t *o = claim_object("c", UID_A, "a/x=nic-1 b=nic-2");
		_cleanup_(claim_freep) struct claim *c = NULL;
		struct err err = { 0 };

		for (size_t k = 0; k < 2 && rows[i].source[k]; k++)
			claim_config(o, rows[i].source[k], rows[i].requests[k],
				     rows[i].parameters[k]);
		if (claim_parse(o, DRIVER, UID_A, &c, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_int_equal(c->results[0].config.half_pair, rows[i].a);
		assert_int_equal(c->results[1].config.half_pair, rows[i].b);
	}
}

static void config_strict(void **state)
{
	static const struct {
		const char *parameters, *text;
	} rows[] = {
		{ "{}", "use apiVersion twinrail.dev/v1" },
		{ "[]", "use apiVersion" },
		{ "{\"apiVersion\":\"twinrail.dev/v2\",\"kind\":\"NicConfig\"}", "v2" },
		{ "{\"apiVersion\":\"twinrail.dev/v1\",\"kind\":\"GpuConfig\"}", "GpuConfig" },
		{ CONFIG(",\"halfpairpolicy\":\"Allow\""), "unknown field \"halfpairpolicy\"" },
		{ CONFIG(",\"halfPairPolicy\":\"allow\""), "use Refuse or Allow" },
		{ CONFIG(",\"halfPairPolicy\":true"), "use Refuse or Allow" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_json_ json_t *o = claim_object("c", UID_A, "a=nic-1");
		struct claim *c = NULL;
		struct err err = { 0 };

		claim_config(o, "FromClaim", "[]", rows[i].parameters);
		assert_true(claim_parse(o, DRIVER, UID_A, &c, &err) < 0);
		assert_int_equal(err.kind, ERR_INVALID);
		if (!strstr(err.msg, rows[i].text) || !strstr(err.msg, "ns/c") ||
		    !strstr(err.msg, "opaque config 0"))
			fail_msg("row %zu: %s", i, err.msg);
	}
}

static void config_of_others(void **state)
{
	_cleanup_json_ json_t *o = claim_object("c", UID_A, "a=nic-1");
	_cleanup_(claim_freep) struct claim *c = NULL;
	struct err err = { 0 };

	(void)state;
	claim_config(o, "FromClaim", "[]", "{\"kind\":\"GpuConfig\"}");
	json_object_set_new(
		json_path(json_array_get(json_path(o, "status.allocation.devices.config"), 0),
			  "opaque"),
		"driver", json_string("gpu.nvidia.com"));
	assert_int_equal(claim_parse(o, DRIVER, UID_A, &c, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_results_only), cmocka_unit_test(malformed),
		cmocka_unit_test(too_many),	    cmocka_unit_test(config_merge),
		cmocka_unit_test(config_strict),    cmocka_unit_test(config_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

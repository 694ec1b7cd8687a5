// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "dra/v1/dra_v1.pb-c.h"
#include "dra/v1beta1/dra_v1beta1.pb-c.h"
#include "pluginregistration/v1/registration.pb-c.h"
#include "rpc/codec.h"

#define V1(x) k8s__io__kubelet__pkg__apis__dra__v1__##x
#define V1BETA1(x) k8s__io__kubelet__pkg__apis__dra__v1beta1__##x
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodePrepareResourcesResponse v1_prepared;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1__NodeUnprepareResourcesResponse v1_unprepared;
typedef K8s__Io__Kubelet__Pkg__Apis__Dra__V1beta1__NodePrepareResourcesResponse v1beta1_prepared;

/* One length-prefixed field; "len" of the value below 128. */
static void field(struct buf *b, unsigned int number, const void *data, size_t len)
{
	uint8_t head[2] = { (uint8_t)(number << 3 | 2), (uint8_t)len };

	buf_add(b, head, 2);
	buf_add(b, data, len);
}

/* Append a claim to a request. */
static void claim(struct buf *request, const char *namespace, const char *uid, const char *name)
{
	struct buf b = { 0 };

	field(&b, 1, namespace, strlen(namespace));
	field(&b, 2, uid, strlen(uid));
	field(&b, 3, name, strlen(name));
	field(request, 1, b.data, b.len);
	buf_done(&b);
}

static int decode(const struct buf *request, struct arena *arena, struct dra_claim **claims,
		  size_t *n, struct err *err)
{
	return codec_claims(arena, (const uint8_t *)request->data, request->len, claims, n, err);
}

static void assert_refused(const struct buf *request, const char *text)
{
	struct arena *arena = arena_new();
	struct dra_claim *claims;
	struct err err = { 0 };
	size_t n;

	assert_true(decode(request, arena, &claims, &n, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
	if (!strstr(err.msg, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.msg);
	arena_free(arena);
}

static void assert_claim_refused(const char *namespace, const char *uid, const char *name,
				 const char *text)
{
	struct buf b = { 0 };

	claim(&b, namespace, uid, name);
	assert_refused(&b, text);
	buf_done(&b);
}

static void test_claims(void **state)
{
	struct arena *arena = arena_new();
	struct dra_claim *claims;
	struct err err = { 0 };
	struct buf b = { 0 };
	size_t n = 99;

	(void)state;
	assert_int_equal(decode(&b, arena, &claims, &n, &err), 0);
	assert_int_equal(n, 0);
	claim(&b, "default", "uid-1", "claim-a");
	claim(&b, "kube-system", "0c2d5e9e-91c4-44c0-8b1c-3f3f4d3b6f10", "claim.b");
	field(&b, 15, "from the future", 15);
	assert_int_equal(decode(&b, arena, &claims, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_string_equal(claims[0].namespace, "default");
	assert_string_equal(claims[0].uid, "uid-1");
	assert_string_equal(claims[0].name, "claim-a");
	assert_string_equal(claims[1].namespace, "kube-system");
	assert_string_equal(claims[1].name, "claim.b");
	buf_done(&b);
	arena_free(arena);
}

static void test_claims_same_twice(void **state)
{
	struct arena *arena = arena_new();
	struct dra_claim *claims;
	struct err err = { 0 };
	struct buf b = { 0 };
	size_t n;

	(void)state;
	claim(&b, "default", "uid-1", "a");
	claim(&b, "default", "uid-2", "b");
	claim(&b, "default", "uid-1", "a");
	assert_int_equal(decode(&b, arena, &claims, &n, &err), 0);
	assert_int_equal(n, 2);
	claim(&b, "default", "uid-1", "another");
	assert_refused(&b, "same uid uid-1");
	buf_done(&b);
	arena_free(arena);
}

static void test_claims_bounds(void **state)
{
	struct arena *arena = arena_new();
	struct dra_claim *claims;
	struct err err = { 0 };
	struct buf b = { 0 };
	char longest[65] = { 0 };
	size_t n;

	(void)state;
	for (int i = 0; i < CODEC_CLAIMS_MAX; i++) {
		char uid[16];

		snprintf(uid, sizeof(uid), "u%d", i);
		claim(&b, "default", uid, "c");
	}
	assert_int_equal(decode(&b, arena, &claims, &n, &err), 0);
	assert_int_equal(n, CODEC_CLAIMS_MAX);
	claim(&b, "default", "one-more", "c");
	assert_refused(&b, "257 claims");
	buf_done(&b);
	arena_free(arena);

	memset(longest, 'a', 64);
	assert_claim_refused("default", "", "c", "claim 0: uid");
	assert_claim_refused("default", longest, "c", "uid");
	assert_claim_refused("default", "../../etc/x", "c", "uid");
	assert_claim_refused("default", "..", "c", "uid");
	assert_claim_refused("default", "a/b", "c", "uid");
	assert_claim_refused("default", "a.b", "c", "uid"); /* what prepare/ cannot take either */
	assert_claim_refused("default", "a-", "c", "uid");
	assert_claim_refused("", "u", "c", "claim u: namespace");
	assert_claim_refused(longest, "u", "c", "namespace");
	assert_claim_refused("a/b", "u", "c", "namespace");
	assert_claim_refused("default", "u", "", "claim u: name");
	assert_claim_refused("default", "u", "c?x=y", "name");
}

static void test_claims_bad_strings(void **state)
{
	const struct {
		const char *data;
		size_t len;
	} bad[] = { { "\xff\xfe", 2 }, { "a\0b", 3 }, { "\xc0\x80", 2 }, { "\xed\xa0\x80", 3 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (unsigned int number = 1; number <= 3; number++) {
			struct buf c = { 0 }, b = { 0 };

			for (unsigned int k = 1; k <= 3; k++)
				if (k == number)
					field(&c, k, bad[i].data, bad[i].len);
				else
					field(&c, k, "x", 1);
			field(&b, 1, c.data, c.len);
			assert_refused(&b, "not valid UTF-8");
			buf_done(&b);
			buf_done(&c);
		}
}

static void test_claims_garbage(void **state)
{
	struct buf good = { 0 }, b = { 0 };
	uint8_t *many;
	uint32_t seed = 1;

	(void)state;
	buf_add(&b, "\x0a\xff", 2);
	assert_refused(&b, "is not a");
	buf_done(&b);

	/* Every cut and many flips: refused or served, but nothing else. */
	claim(&good, "default", "uid-1", "claim-a");
	claim(&good, "default", "uid-2", "claim-b");
	for (size_t round = 0; round < 20000; round++) {
		_cleanup_free_ uint8_t *copy = xmalloc(good.len + 1);
		struct arena *arena = arena_new();
		size_t n, len = round < good.len ? round : good.len;
		struct dra_claim *claims;
		struct err err;

		memcpy(copy, good.data, len);
		for (int i = 0; round >= good.len && i < 3; i++) {
			seed = seed * 1103515245 + 12345;
			copy[(seed >> 8) % (len + 1)] ^= (uint8_t)(seed >> 24);
		}
		if (codec_claims(arena, copy, len, &claims, &n, &err) == 0)
			assert_true(n <= 2);
		arena_free(arena);
	}
	buf_done(&good);

	/* A message of half a million empty claims is refused before it takes 30 MB. */
	many = xmalloc(1 << 20);
	for (size_t i = 0; i < 1 << 20; i += 2) {
		many[i] = 0x0a;
		many[i + 1] = 0;
	}
	b = (struct buf){ (char *)many, 1 << 20, 1 << 20 };
	assert_refused(&b, "is not a");
	free(many);
}

static const char *const cdi[] = { "twinrail.dev/claim=u1-nic", "nvidia.com/gpu=0", NULL };
static const struct dra_device devices[] = {
	{ "nic", "node-1", "nic-0000-1b-00-0", "9d4c", cdi },
	{ "gpu", "node-1", "gpu-0000-1a-00-0", NULL, NULL },
};
static struct dra_claim claims2[] = { { (char *)"ns", (char *)"u1", (char *)"c1" },
				      { (char *)"ns", (char *)"u2", (char *)"c2" } };

static void test_prepare_reply(void **state)
{
	struct arena *arena = arena_new();
	struct codec_reply *reply = codec_reply_new(arena, DRA_PREPARE, DRA_V1, claims2, 2);
	_cleanup_free_ uint8_t *bytes = NULL;
	v1_prepared *m;
	size_t len;

	(void)state;
	assert_false(codec_reply_complete(reply));
	codec_reply_set(reply, 0, devices, 2, NULL);
	assert_false(codec_reply_complete(reply));
	codec_reply_set(reply, 1, devices, 2, "cut inside a character \xe2\x86");
	assert_true(codec_reply_complete(reply));
	bytes = codec_reply_pack(reply, &len);
	m = V1(node_prepare_resources_response__unpack)(NULL, len, bytes);
	assert_non_null(m);
	assert_int_equal(m->n_claims, 2);
	assert_string_equal(m->claims[0]->key, "u1");
	assert_int_equal(m->claims[0]->value->n_devices, 2);
	assert_string_equal(m->claims[0]->value->error, "");
	assert_int_equal(m->claims[0]->value->devices[0]->n_request_names, 1);
	assert_string_equal(m->claims[0]->value->devices[0]->request_names[0], "nic");
	assert_string_equal(m->claims[0]->value->devices[0]->pool_name, "node-1");
	assert_string_equal(m->claims[0]->value->devices[0]->device_name, "nic-0000-1b-00-0");
	assert_int_equal(m->claims[0]->value->devices[0]->n_cdi_device_ids, 2);
	assert_string_equal(m->claims[0]->value->devices[0]->cdi_device_ids[1], "nvidia.com/gpu=0");
	assert_string_equal(m->claims[0]->value->devices[0]->share_id, "9d4c");
	assert_int_equal(m->claims[0]->value->devices[1]->_share_id_case, 0);
	assert_int_equal(m->claims[0]->value->devices[1]->n_cdi_device_ids, 0);
	assert_string_equal(m->claims[1]->key, "u2");
	assert_int_equal(m->claims[1]->value->n_devices, 0);
	assert_string_equal(m->claims[1]->value->error, "cut inside a character ??");
	V1(node_prepare_resources_response__free_unpacked)(m, NULL);
	arena_free(arena);
}

static void test_prepare_reply_v1beta1(void **state)
{
	struct arena *arena = arena_new();
	struct codec_reply *reply = codec_reply_new(arena, DRA_PREPARE, DRA_V1BETA1, claims2, 1);
	_cleanup_free_ uint8_t *bytes = NULL;
	v1beta1_prepared *m;
	size_t len;

	(void)state;
	codec_reply_set(reply, 0, devices, 2, NULL);
	bytes = codec_reply_pack(reply, &len);
	m = V1BETA1(node_prepare_resources_response__unpack)(NULL, len, bytes);
	assert_non_null(m);
	assert_int_equal(m->claims[0]->value->n_devices, 2);
	assert_string_equal(m->claims[0]->value->devices[0]->device_name, "nic-0000-1b-00-0");
	/* No share_id: it would come out as an unknown field. */
	assert_int_equal(m->claims[0]->value->devices[0]->base.n_unknown_fields, 0);
	V1BETA1(node_prepare_resources_response__free_unpacked)(m, NULL);
	arena_free(arena);
}

static void test_unprepare_reply(void **state)
{
	struct arena *arena = arena_new();
	struct codec_reply *reply = codec_reply_new(arena, DRA_UNPREPARE, DRA_V1, claims2, 2);
	_cleanup_free_ uint8_t *bytes = NULL;
	v1_unprepared *m;
	size_t len;

	(void)state;
	codec_reply_set(reply, 1, NULL, 0, "the link did not come back");
	assert_false(codec_reply_complete(reply));
	codec_reply_set(reply, 0, NULL, 0, "to be replaced");
	codec_reply_set(reply, 0, NULL, 0, NULL);
	bytes = codec_reply_pack(reply, &len);
	m = V1(node_unprepare_resources_response__unpack)(NULL, len, bytes);
	assert_non_null(m);
	assert_int_equal(m->n_claims, 2);
	assert_non_null(m->claims[0]->value);
	assert_string_equal(m->claims[0]->value->error, "");
	assert_string_equal(m->claims[1]->value->error, "the link did not come back");
	V1(node_unprepare_resources_response__free_unpacked)(m, NULL);
	arena_free(arena);
}

/* One decoder serves both requests of both versions. */
static void test_requests_are_alike(void **state)
{
	const ProtobufCMessageDescriptor *all[] = {
		&V1(node_prepare_resources_request__descriptor),
		&V1(node_unprepare_resources_request__descriptor),
		&V1BETA1(node_prepare_resources_request__descriptor),
		&V1BETA1(node_unprepare_resources_request__descriptor),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const ProtobufCMessageDescriptor *claim_desc = all[i]->fields[0].descriptor;

		assert_int_equal(all[i]->n_fields, 1);
		assert_int_equal(all[i]->fields[0].id, 1);
		assert_int_equal(claim_desc->n_fields, 3);
		for (unsigned int f = 0; f < 3; f++) {
			const ProtobufCFieldDescriptor *first =
				&((const ProtobufCMessageDescriptor *)all[0]->fields[0].descriptor)
					 ->fields[f];

			assert_string_equal(claim_desc->fields[f].name, first->name);
			assert_int_equal(claim_desc->fields[f].id, first->id);
		}
	}
}

static void test_registration(void **state)
{
	const char *const versions[] = { "v1.DRAPlugin", "v1beta1.DRAPlugin", NULL };
	size_t len;
	_cleanup_free_ uint8_t *bytes =
		codec_plugin_info("twinrail.dev", "/x.sock", versions, &len);
	Pluginregistration__PluginInfo *m =
		pluginregistration__plugin_info__unpack(NULL, len, bytes);
	struct err err = { 0 };
	char *error = NULL;
	bool ok = false;

	(void)state;
	assert_string_equal(m->type, "DRAPlugin");
	assert_string_equal(m->name, "twinrail.dev");
	assert_string_equal(m->endpoint, "/x.sock");
	assert_int_equal(m->n_supported_versions, 2);
	assert_string_equal(m->supported_versions[0], "v1.DRAPlugin");
	pluginregistration__plugin_info__free_unpacked(m, NULL);

	assert_int_equal(codec_info_request(NULL, 0, &err), 0);
	assert_true(codec_info_request((const uint8_t *)"\xff", 1, &err) < 0);
	assert_int_equal(
		codec_registration_status((const uint8_t *)"\x08\x01", 2, &ok, &error, &err), 0);
	assert_true(ok);
	assert_string_equal(error, "");
	freep(&error);
	assert_int_equal(codec_registration_status((const uint8_t *)"\x12\x03"
								    "bad",
						   5, &ok, &error, &err),
			 0);
	assert_false(ok);
	assert_string_equal(error, "bad");
	freep(&error);
	assert_true(codec_registration_status((const uint8_t *)"\x12\x01\xff", 3, &ok, &error,
					      &err) < 0);
}

static void test_text(void **state)
{
	static const char *const t[][2] = {
		{ "plain", "plain" },
		{ "a\nb\x1b[31m", "a?b?[31m" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		  "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\xc3\xa9 cut \xe2\x82", "\xc3\xa9 cut ??" },
		{ "\xc3\xa9 \xc3: \xc3\xa9", "\xc3\xa9 ?: \xc3\xa9" },
		{ "\xff", "?" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_free_ char *text = codec_text(t[i][0]);

		assert_string_equal(text, t[i][1]);
	}
}

static void test_sha256(void **state)
{
	/* FIPS 180-4 examples, and lengths around the padding's limits made with sha256sum. */
	const struct {
		size_t n;
		const char *text, *sum;
	} t[] = {
		{ 0, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ 3, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ 56, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ 55, NULL, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 63, NULL, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ 64, NULL, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 200, NULL, "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		_cleanup_free_ char *text = xmalloc(t[i].n + 1);
		char hex[2 * SHA256_SIZE + 1];
		uint8_t sum[SHA256_SIZE];

		memset(text, 'a', t[i].n);
		sha256(t[i].text ? t[i].text : text, t[i].n, sum);
		for (size_t k = 0; k < SHA256_SIZE; k++)
			snprintf(hex + 2 * k, 3, "%02x", sum[k]);
		assert_string_equal(hex, t[i].sum);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_claims_same_twice),
		cmocka_unit_test(test_claims_bounds),
		cmocka_unit_test(test_claims_bad_strings),
		cmocka_unit_test(test_claims_garbage),
		cmocka_unit_test(test_prepare_reply),
		cmocka_unit_test(test_prepare_reply_v1beta1),
		cmocka_unit_test(test_unprepare_reply),
		cmocka_unit_test(test_requests_are_alike),
		cmocka_unit_test(test_registration),
		cmocka_unit_test(test_sha256),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

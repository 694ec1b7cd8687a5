// SPDX-License-Identifier: Apache-2.0
#include "unit/kube_client.h"

static void test_get(void **state)
{
	struct ctx *c = *state;
	json_t *log;

	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);
	assert_int_equal(c->err.code, 0);
	assert_string_equal(json_path_string(c->body, "metadata.name"), "n1");
	log = fakeapi_call(&c->api, "GET", "/_log", NULL);
	assert_string_equal(
		json_path_string(json_array_get(log, json_array_size(log) - 1), "userAgent"),
		"twinrail/" TWINRAIL_VERSION);
	json_decref(log);
}

static void test_not_found(void **state)
{
	struct ctx *c = *state;

	get(c, NODES "/n2?x=y");
	assert_int_equal(c->status, 404);
	assert_int_equal(c->err.kind, ERR_NOT_FOUND);
	assert_int_equal(c->err.code, -ENOENT);
	assert_string_equal(c->err.msg, "GET /api/v1/nodes/n2: nodes \"n2\" not found");
}

static void test_write(void **state)
{
	struct ctx *c = *state;
	json_t *node;
	struct kube_call what = { .method = "POST", .path = NODES };

	what.body = node = json_pack("{s:{s:s},s:{s:s}}", "metadata", "name", "n2", "spec",
				     "podCIDR", "10.0.0.0/24");
	call(c, &what);
	assert_int_equal(c->status, 201);
	call(c, &what);
	assert_int_equal(c->err.kind, ERR_CONFLICT);
	assert_int_equal(c->err.code, -EEXIST);
	json_decref(node);

	what = (struct kube_call){ .method = "PUT", .path = NODES "/n2" };
	what.body = node =
		json_pack("{s:{s:s,s:s}}", "metadata", "name", "n2", "resourceVersion", "1");
	call(c, &what);
	assert_int_equal(c->status, 409);
	assert_int_equal(c->err.kind, ERR_CONFLICT);
	assert_int_equal(c->err.code, -EBUSY);
	assert_non_null(strstr(c->err.msg, "the object has been modified"));
	json_decref(node);

	call(c, &(struct kube_call){ .method = "DELETE", .path = NODES "/n2" });
	assert_int_equal(c->status, 200);
	call(c, &(struct kube_call){ .method = "DELETE", .path = NODES "/n2" });
	assert_int_equal(c->err.kind, ERR_NOT_FOUND);
}

static void test_large_body(void **state)
{
	struct ctx *c = *state;
	char *text = xcalloc(1, (2 << 20) + 1);
	struct kube_call what = { .method = "POST", .path = NODES };
	json_t *node;

	memset(text, 'x', 2 << 20);
	what.body = node = json_pack("{s:{s:s},s:s}", "metadata", "name", "big", "filler", text);
	call(c, &what);
	assert_int_equal(c->status, 201);
	assert_int_equal(json_string_length(json_object_get(c->body, "filler")), 2 << 20);
	json_decref(node);
	free(text);
}

static void test_apply(void **state)
{
	struct ctx *c = *state;
	json_t *body = json_pack("{s:{s:s},s:{s:i}}", "metadata", "name", "n1", "spec", "x", 1);

	c->calls = 0;
	c->wanted = 1;
	kube_apply(c->kube, NODES "/n1", "twinrail", body, record, c);
	json_decref(body);
	assert_int_equal(run(c, 10000), 0);
	assert_int_equal(c->status, 200);
	assert_int_equal(json_integer_value(json_path(c->body, "spec.x")), 1);
}

/* status → kind and errno, as kube.h promises */
static void test_statuses(void **state)
{
	static const struct {
		int status;
		enum err_kind kind;
		int code;
	} cases[] = {
		{ 400, ERR_INVALID, -EINVAL },	 { 401, ERR_PERMANENT, -EACCES },
		{ 403, ERR_PERMANENT, -EPERM },	 { 404, ERR_NOT_FOUND, -ENOENT },
		{ 405, ERR_INVALID, -EINVAL },	 { 408, ERR_RETRY, -EAGAIN },
		{ 409, ERR_CONFLICT, -EBUSY },	 { 410, ERR_RETRY, -ESTALE },
		{ 422, ERR_INVALID, -EINVAL },	 { 429, ERR_RETRY, -EAGAIN },
		{ 500, ERR_RETRY, -EREMOTEIO },	 { 503, ERR_RETRY, -EREMOTEIO },
		{ 302, ERR_PERMANENT, -EPROTO },
	};
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char json[128];

		snprintf(json, sizeof(json),
			 "{\"match\":\"n1\",\"status\":%d,\"message\":\"because of %d\"}",
			 cases[i].status, cases[i].status);
		fault(c, json);
		get(c, NODES "/n1");
		snprintf(json, sizeof(json), "because of %d", cases[i].status);
		assert_int_equal(c->status, cases[i].status);
		assert_int_equal(c->err.kind, cases[i].kind);
		assert_int_equal(c->err.code, cases[i].code);
		if (cases[i].status >= 400)
			assert_non_null(strstr(c->err.msg, json));
		assert_non_null(strstr(c->err.msg, "GET /api/v1/nodes/n1: "));
	}
}

static void test_retry(void **state)
{
	struct ctx *c = *state;
	struct kube_call what = { .method = "GET", .path = NODES "/n1", .retry_us = 20000000 };
	uint64_t start = clock_us();

	fault(c, "{\"match\":\"n1\",\"status\":500,\"times\":3}");
	call(c, &what);
	assert_int_equal(c->status, 200);
	assert_in_range(clock_us() - start, 350000, 3000000); /* (100 + 200 + 400 ms) / 2 .. */

	/* the server's wish counts */
	start = clock_us();
	fault(c, "{\"match\":\"n1\",\"status\":429,\"retryAfter\":2}");
	call(c, &what);
	assert_int_equal(c->status, 200);
	assert_in_range(clock_us() - start, 2000000, 4000000);

	/* it wishes for more than we have: told at once */
	start = clock_us();
	fault(c, "{\"match\":\"n1\",\"status\":429,\"retryAfter\":100}");
	call(c, &what);
	assert_int_equal(c->status, 429);
	assert_int_equal(c->err.kind, ERR_RETRY);
	assert_true(clock_us() - start < 1000000);

	/* what cannot get better is not repeated */
	fakeapi_do(&c->api, "DELETE", "/_log", NULL);
	fault(c, "{\"match\":\"n1\",\"status\":422,\"times\":2}");
	call(c, &what);
	assert_int_equal(c->err.kind, ERR_INVALID);
	call(c, &(struct kube_call){ .method = "GET", .path = NODES "/n1" });
	assert_int_equal(c->status, 422);
}

static void test_backoff(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_in_range(kube_backoff_us(0), 50000, 100000);
		assert_in_range(kube_backoff_us(3), 400000, 800000);
		assert_in_range(kube_backoff_us(7), 5000000, 10000000);
		assert_in_range(kube_backoff_us(4000000000U), 5000000, 10000000);
	}
}

static void test_bad_answers(void **state)
{
	struct ctx *c = *state;
	struct kube_call what = { .method = "GET", .path = NODES "/n1", .timeout_us = 300000 };
	uint64_t start = clock_us();

	fault(c, "{\"match\":\"n1\",\"hang\":true}");
	call(c, &what);
	assert_int_equal(c->status, 0);
	assert_int_equal(c->err.kind, ERR_RETRY);
	assert_int_equal(c->err.code, -ETIMEDOUT);
	assert_in_range(clock_us() - start, 290000, 2000000);

	fault(c, "{\"match\":\"n1\",\"truncate\":true}");
	get(c, NODES "/n1");
	assert_int_equal(c->err.kind, ERR_RETRY);
	assert_null(c->body);

	fault(c, "{\"match\":\"n1\",\"raw\":\"<html>hello</html>\"}");
	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);
	assert_int_equal(c->err.kind, ERR_RETRY);
	assert_int_equal(c->err.code, -EPROTO);
	assert_non_null(strstr(c->err.msg, "not JSON"));

	/* a proxy's error page */
	fault(c, "{\"match\":\"n1\",\"raw\":\"<html>bad gateway</html>\",\"status\":502}");
	get(c, NODES "/n1");
	assert_int_equal(c->status, 502);
	assert_int_equal(c->err.kind, ERR_RETRY);

	fault(c, "{\"match\":\"n1\",\"size\":17000000}");
	get(c, NODES "/n1");
	assert_int_equal(c->err.kind, ERR_PERMANENT);
	assert_int_equal(c->err.code, -EFBIG);

	fault(c, "{\"match\":\"n1\",\"size\":15000000}");
	get(c, NODES "/n1");
	assert_int_equal(c->err.code, 0);

	fault(c, "{\"match\":\"n1\",\"close\":true,\"times\":2}");
	get(c, NODES "/n1");
	assert_int_equal(c->status, 0);
	assert_int_equal(c->err.kind, ERR_RETRY);
	fakeapi_do(&c->api, "DELETE", "/_fault", NULL);

	fault(c, "{\"match\":\"n1\",\"raw\":\"\"}");
	get(c, NODES "/n1");
	assert_int_equal(c->err.code, 0);
	assert_null(c->body);

	/* what other people's objects may hold */
	fault(c, "{\"match\":\"n1\",\"raw\":\"{\\\"a\\\":\\\"x\\\\u0000y\\\",\\\"a\\\":1}\"}");
	get(c, NODES "/n1");
	assert_int_equal(c->err.code, 0);
	assert_int_equal(json_integer_value(json_object_get(c->body, "a")), 1);
}

static void test_nobody_there(void **state)
{
	struct ctx *c = *state;

	new_client(c, &(struct kube_config){ .server = (char *)"http://127.0.0.1:1" });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 0);
	assert_int_equal(c->err.kind, ERR_RETRY);
	assert_non_null(strstr(c->err.msg, "http://127.0.0.1:1"));
}

static void test_one_connection(void **state)
{
	struct ctx *c = *state;
	long before = fakeapi_stat(&c->api, "connections");

	for (int i = 0; i < 100; i++)
		get(c, NODES "/n1");
	/* ours, and the one that asks */
	assert_int_equal(fakeapi_stat(&c->api, "connections") - before, 2);
}

/* The server closes idle connections: the next request must not notice. */
static void test_stale_connection(void **state)
{
	struct ctx *c = *state;

	get(c, NODES "/n1");
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"down\"}");
	usleep(500000);
	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);
}

static void test_parallel(void **state)
{
	struct ctx *c = *state;

	c->calls = 0;
	c->wanted = 40;
	for (int i = 0; i < 40; i++)
		kube_send(c->kube, &(struct kube_call){ .method = "GET", .path = NODES "/n1" },
			  record, c);
	assert_int_equal(run(c, 20000), 0);
	assert_int_equal(c->calls, 40);
	assert_int_equal(c->status, 200);
}

static void cancel_other(const struct kube_reply *reply, void *data)
{
	struct ctx *c = data;

	kube_cancel(c->other);
	c->other = NULL;
	record(reply, data);
}

static void must_not_come(const struct kube_reply *reply, void *data)
{
	(void)reply;
	(void)data;
	fail();
}

static void test_cancel(void **state)
{
	static const struct kube_call what = { .method = "GET", .path = NODES "/n1" };
	struct kube_call repeat = { .method = "GET", .path = NODES "/x", .retry_us = 9000000 };
	struct ctx *c = *state;

	/* before anything was sent, in flight, and in a back-off */
	kube_cancel(kube_send(c->kube, &what, must_not_come, c));
	kube_cancel(NULL);
	fault(c, "{\"match\":\"n1\",\"hang\":true}");
	c->other = kube_send(c->kube, &what, must_not_come, c);
	assert_int_equal(run(c, 100), -ETIMEDOUT);
	kube_cancel(c->other);
	fault(c, "{\"match\":\"nodes/x\",\"status\":429,\"retryAfter\":5}");
	c->other = kube_send(c->kube, &repeat, must_not_come, c);
	assert_int_equal(run(c, 300), -ETIMEDOUT);
	kube_cancel(c->other);

	/* two answers that come together: the first callback cancels the second, and the reverse */
	for (int i = 0; i < 20; i++) {
		c->calls = 0;
		c->wanted = 1;
		c->other = kube_send(c->kube, &what, must_not_come, c);
		fault(c, "{\"match\":\"n1\",\"delay\":0.05}");
		kube_send(c->kube, &(struct kube_call){ .method = "GET", .path = SLICES },
			  cancel_other, c);
		assert_int_equal(run(c, 10000), 0);
		assert_int_equal(run(c, 60), -ETIMEDOUT);
	}
}

static void cancel_self(const struct kube_reply *reply, void *data)
{
	struct ctx *c = data;

	kube_cancel(c->other);
	record(reply, data);
}

static void free_client(const struct kube_reply *reply, void *data)
{
	struct ctx *c = data;

	c->kube = kube_free(c->kube);
	record(reply, data);
}

static void send_another(const struct kube_reply *reply, void *data)
{
	struct ctx *c = data;

	assert_int_equal(reply->status, 200);
	kube_send(c->kube, &(struct kube_call){ .method = "GET", .path = NODES "/n2" }, record, c);
}

static void test_in_callback(void **state)
{
	static const struct kube_call what = { .method = "GET", .path = NODES "/n1" };
	struct ctx *c = *state;

	c->calls = 0;
	c->wanted = 1;
	c->other = kube_send(c->kube, &what, cancel_self, c);
	assert_int_equal(run(c, 10000), 0);

	c->calls = 0;
	kube_send(c->kube, &what, send_another, c);
	assert_int_equal(run(c, 10000), 0);
	assert_int_equal(c->status, 404);

	c->calls = 0;
	for (int i = 0; i < 5; i++)
		kube_send(c->kube, &what, must_not_come, c);
	c->kube = kube_free(c->kube); /* with requests in flight */
	new_client(c, &(struct kube_config){ .server = c->api.url });
	kube_send(c->kube, &what, free_client, c);
	assert_int_equal(run(c, 10000), 0);
	assert_null(c->kube);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_get),
		TEST(test_not_found),
		TEST(test_write),
		TEST(test_large_body),
		TEST(test_apply),
		TEST(test_statuses),
		TEST(test_retry),
		cmocka_unit_test(test_backoff),
		TEST(test_bad_answers),
		TEST(test_nobody_there),
		TEST(test_one_connection),
		TEST(test_stale_connection),
		TEST(test_parallel),
		TEST(test_cancel),
		TEST(test_in_callback),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}

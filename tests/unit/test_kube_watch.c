// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/json.h"
#include "kube/internal.h"
#include "unit/fakeapi.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define QUERY "fieldSelector=spec.nodeName=n1"

/* What a callback does beside recording. */
enum action { NOTHING, FREE, RELIST, FREE_CLIENT };

struct ctx {
	struct fakeapi api;
	struct loop *loop;
	struct kube *kube;
	struct kube_watch *watch;
	enum action on_listed, on_changed, on_failed;
	struct buf seen; /* "L2" a list of two, "A:name", "M:name", "D:name", "F" a failure */
	const char *wanted;
	struct err err;
};

static void act(struct ctx *c, enum action *action)
{
	enum action what = *action;

	*action = NOTHING;
	if (what == FREE)
		c->watch = kube_watch_free(c->watch);
	else if (what == RELIST)
		kube_watch_relist(c->watch);
	else if (what == FREE_CLIENT)
		c->kube = kube_free(c->kube);
	if (what == FREE_CLIENT)
		c->watch = NULL;
}

static void see(struct ctx *c, const char *what)
{
	buf_printf(&c->seen, "%s%s", c->seen.len ? " " : "", what);
	if (c->wanted && streq(c->wanted, c->seen.data))
		loop_quit(c->loop, 0);
}

static void on_listed(json_t *items, void *data)
{
	char text[32];

	snprintf(text, sizeof(text), "L%zu", json_array_size(items));
	see(data, text);
	act(data, &((struct ctx *)data)->on_listed);
}

static void on_changed(const char *type, json_t *object, void *data)
{
	char text[128];

	snprintf(text, sizeof(text), "%c:%s", type[0], json_path_string(object, "metadata.name"));
	see(data, text);
	act(data, &((struct ctx *)data)->on_changed);
	assert_non_null(json_path_string(object, "metadata.name"));
}

static void on_failed(const struct err *err, void *data)
{
	struct ctx *c = data;

	c->err = *err;
	assert_true(err->code < 0);
	see(c, "F");
	act(c, &c->on_failed);
}

static const struct kube_watch_ops ops = { on_listed, on_changed, on_failed };

static void give_up(void *data)
{
	loop_quit(data, -ETIMEDOUT);
}

static int run(struct ctx *c, unsigned int ms)
{
	struct loop_timer *timer = loop_timer_new(c->loop, give_up, c->loop);
	int r;

	loop_timer_set(timer, ms * 1000ULL);
	r = loop_run(c->loop);
	loop_timer_free(timer);
	return r;
}

/* Run until exactly "wanted" has been seen since the last call. */
static void expect(struct ctx *c, const char *wanted)
{
	c->wanted = wanted;
	if (!c->seen.data || !streq(c->seen.data, wanted))
		run(c, 20000);
	if (!c->seen.data || !streq(c->seen.data, wanted))
		fail_msg("wanted \"%s\", saw \"%s\" (%s)", wanted, c->seen.data ? c->seen.data : "",
			 c->err.msg);
	buf_done(&c->seen);
	c->wanted = NULL;
}

static void expect_nothing(struct ctx *c, unsigned int ms)
{
	run(c, ms);
	if (c->seen.data)
		fail_msg("wanted nothing, saw \"%s\" (%s)", c->seen.data, c->err.msg);
}

static void make(struct ctx *c, const char *name, const char *node)
{
	_cleanup_free_ char *body = xasprintf(
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeName\":\"%s\"}}", name, node);

	fakeapi_do(&c->api, "POST", SLICES, body);
}

static void control(struct ctx *c, const char *op)
{
	_cleanup_free_ char *body = xasprintf("{\"op\":\"%s\"}", op);

	fakeapi_do(&c->api, "POST", "/_control", body);
}

static void fault(struct ctx *c, const char *json)
{
	fakeapi_do(&c->api, "POST", "/_fault", json);
}

/* Wait until the server has the WATCH. */
static void wait_watching(struct ctx *c)
{
	for (int i = 0; i < 500; i++) {
		run(c, 20);
		if (fakeapi_stat(&c->api, "watches") > 0)
			return;
	}
	fail_msg("no WATCH came");
}

static void start(struct ctx *c)
{
	c->watch = kube_watch_new(c->kube, SLICES, QUERY, &ops, c);
	assert_null(c->seen.data);
}

/* How many requests the log has whose path contains "text"; *last: the path of the last one. */
static size_t count_requests(struct ctx *c, const char *text, char last[512])
{
	json_t *log = fakeapi_call(&c->api, "GET", "/_log", NULL), *entry;
	size_t i, n = 0;

	json_array_foreach(log, i, entry) {
		const char *path = json_path_string(entry, "path");

		if (!strstr(path, text))
			continue;
		n++;
		if (last)
			snprintf(last, 512, "%s", path);
	}
	json_decref(log);
	return n;
}

static int setup_group(void **state)
{
	struct ctx *c = xnew(struct ctx);

	fakeapi_start(&c->api, NULL, NULL);
	*state = c;
	return 0;
}

static int teardown_group(void **state)
{
	struct ctx *c = *state;

	fakeapi_stop(&c->api);
	free(c);
	return 0;
}

static int setup(void **state)
{
	struct ctx *c = *state;

	fakeapi_do(&c->api, "DELETE", "/_fault", NULL);
	fakeapi_do(&c->api, "DELETE", SLICES, NULL);
	control(c, "drop_watches");
	while (fakeapi_stat(&c->api, "watches") > 0)
		usleep(10000);
	fakeapi_do(&c->api, "DELETE", "/_log", NULL);
	make(c, "a", "n1");
	make(c, "other", "n2");
	c->on_listed = c->on_changed = c->on_failed = NOTHING;
	assert_int_equal(loop_new(&c->loop, NULL), 0);
	assert_int_equal(
		kube_new(c->loop, &(struct kube_config){ .server = c->api.url }, &c->kube, NULL),
		0);
	return 0;
}

static int teardown(void **state)
{
	struct ctx *c = *state;

	c->watch = kube_watch_free(c->watch);
	c->kube = kube_free(c->kube);
	c->loop = loop_free(c->loop);
	buf_done(&c->seen);
	return 0;
}

static void test_changes(void **state)
{
	struct ctx *c = *state;

	start(c);
	expect(c, "L1");
	wait_watching(c);
	make(c, "b", "n1");
	make(c, "c", "n2");
	fakeapi_do(&c->api, "PATCH", SLICES "/a", "{\"spec\":{\"x\":1}}");
	fakeapi_do(&c->api, "DELETE", SLICES "/a", NULL);
	expect(c, "A:b M:a D:a");
	/* many in one go */
	for (int i = 0; i < 50; i++)
		fakeapi_do(&c->api, "PATCH", SLICES "/b",
			   i % 2 ? "{\"spec\":{\"x\":1}}" : "{\"spec\":{\"x\":2}}");
	fakeapi_do(&c->api, "DELETE", SLICES "/b", NULL);
	run(c, 500);
	assert_int_equal(c->seen.len, 50 * 4 + 3);
	buf_done(&c->seen);
}

static void test_empty_list(void **state)
{
	struct ctx *c = *state;

	fakeapi_do(&c->api, "DELETE", SLICES, NULL);
	fault(c, "{\"match\":\"GET .*slices\",\"raw\":"
		 "\"{\\\"metadata\\\":{\\\"resourceVersion\\\":\\\"5\\\"},\\\"items\\\":null}\"}");
	start(c);
	expect(c, "L0");
}

/* Version 5 is older than the server remembers. */
static void test_expired(void **state)
{
	struct ctx *c = *state;

	control(c, "compact");
	fault(c, "{\"match\":\"GET .*slices\",\"raw\":"
		 "\"{\\\"metadata\\\":{\\\"resourceVersion\\\":\\\"5\\\"},\\\"items\\\":[]}\"}");
	start(c);
	expect(c, "L0 F L1");
	assert_int_equal(c->err.code, -ESTALE);
	wait_watching(c);

	control(c, "expire_watches");
	expect(c, "F L1");
	wait_watching(c);
	make(c, "b", "n1");
	expect(c, "A:b");

	/* the other form: status 410 */
	fault(c, "{\"match\":\"watch=true\",\"status\":410}");
	control(c, "drop_watches");
	expect(c, "F F L2");
	assert_int_equal(c->err.code, -ESTALE);
}

/* A cut connection: go on where we were, without a new list. */
static void test_dropped(void **state)
{
	struct ctx *c = *state;
	char last[512], version[64];

	start(c);
	expect(c, "L1");
	wait_watching(c);
	control(c, "drop_watches");
	make(c, "b", "n1"); /* nobody watches now */
	expect(c, "F A:b");
	wait_watching(c);

	/* a bookmark moves the version */
	control(c, "bookmark");
	snprintf(version, sizeof(version), "resourceVersion=%ld",
		 fakeapi_stat(&c->api, "resourceVersion"));
	expect_nothing(c, 200);
	control(c, "drop_watches");
	expect(c, "F");
	wait_watching(c);
	assert_int_equal(count_requests(c, "watch=true", last), 3);
	assert_non_null(strstr(last, version));
	assert_non_null(strstr(last, "allowWatchBookmarks=true"));
	assert_non_null(strstr(last, "timeoutSeconds="));
	assert_non_null(strstr(last, SLICES "?" QUERY "&"));
	assert_int_equal(count_requests(c, "slices", NULL) - count_requests(c, "watch=true", NULL),
			 4); /* three POSTs and one LIST */
}

static void test_restart(void **state)
{
	struct ctx *c = *state;

	start(c);
	expect(c, "L1");
	wait_watching(c);
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"down\",\"seconds\":0.7}");
	run(c, 1500); /* some failures */
	assert_non_null(c->seen.data);
	assert_int_equal(strspn(c->seen.data, "F "), c->seen.len);
	assert_in_range(c->seen.len, 1, 19); /* back-off: few of them */
	buf_done(&c->seen);
	wait_watching(c);
	buf_done(&c->seen);
	make(c, "b", "n1");
	expect(c, "A:b");
}

/* Watching, and an event has come: the next back-off is a short one again. */
static void settle(struct ctx *c)
{
	wait_watching(c);
	control(c, "bookmark");
	expect_nothing(c, 50);
}

static void test_failures(void **state)
{
	struct ctx *c = *state;

	/* the list */
	fault(c, "{\"match\":\"GET .*slices\",\"status\":500,\"times\":2}");
	start(c);
	expect(c, "F F L1");
	settle(c);

	/* the watch is refused: no new list, but each time a word */
	fault(c, "{\"match\":\"watch=true\",\"status\":403,\"message\":\"not you\",\"times\":2}");
	control(c, "drop_watches");
	expect(c, "F F F");
	assert_int_equal(c->err.kind, ERR_PERMANENT);
	assert_non_null(strstr(c->err.msg, "WATCH " SLICES));
	assert_non_null(strstr(c->err.msg, "not you"));
	settle(c);

	/* garbage, and an event without an object: a new list */
	fault(c, "{\"match\":\"watch=true\",\"raw\":\"{]\\n\"}");
	control(c, "drop_watches");
	expect(c, "F F L1");
	settle(c);
	fault(c, "{\"match\":\"watch=true\",\"raw\":\"{\\\"type\\\":\\\"ADDED\\\"}\\n\"}");
	control(c, "drop_watches");
	expect(c, "F F L1");
	settle(c);

	/* one event of 6 and of 20 MB */
	fault(c, "{\"match\":\"watch=true\",\"size\":6000000}");
	control(c, "drop_watches");
	expect(c, "F F L1");
	settle(c);
	fault(c, "{\"match\":\"watch=true\",\"size\":20000000}");
	control(c, "drop_watches");
	expect(c, "F F L1");
	settle(c);

	/* ends at once, again and again: not a tight loop */
	fakeapi_do(&c->api, "DELETE", "/_log", NULL);
	fault(c, "{\"match\":\"watch=true\",\"raw\":\"\\n\",\"times\":0}");
	control(c, "drop_watches");
	run(c, 1000);
	assert_in_range(count_requests(c, "watch=true", NULL), 2, 6);
	fakeapi_do(&c->api, "DELETE", "/_fault", NULL);
	buf_done(&c->seen);
}

/* The server ends a WATCH by itself after "timeoutSeconds": nobody is told. */
static void test_ends(void **state)
{
	struct ctx *c = *state;

	fault(c, "{\"match\":\"watch=true\",\"raw\":\"\\n\",\"delay\":1.1}");
	start(c);
	expect(c, "L1");
	expect_nothing(c, 1500);
	wait_watching(c);
	make(c, "b", "n1");
	expect(c, "A:b");
}

static void test_relist(void **state)
{
	struct ctx *c = *state;

	start(c);
	kube_watch_relist(c->watch); /* while listing */
	expect(c, "L1");
	wait_watching(c);
	kube_watch_relist(c->watch); /* while watching */
	expect(c, "L1");
	wait_watching(c);
	c->on_changed = RELIST;
	make(c, "b", "n1");
	expect(c, "A:b L2");
	fault(c, "{\"match\":\"GET .*slices\",\"status\":500}");
	c->on_failed = RELIST;
	kube_watch_relist(c->watch);
	expect(c, "F L2");
	c->on_listed = RELIST;
	kube_watch_relist(c->watch);
	expect(c, "L2 L2");
	fault(c, "{\"match\":\"GET .*slices\",\"status\":500}");
	kube_watch_relist(c->watch);
	expect(c, "F");
	kube_watch_relist(c->watch); /* while waiting */
	expect(c, "L2");
}

static void test_free_in_callbacks(void **state)
{
	static const enum action actions[] = { FREE, FREE_CLIENT };
	struct ctx *c = *state;

	for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
		teardown(state);
		setup(state);
		c->on_listed = actions[i];
		start(c);
		expect(c, "L1");
		expect_nothing(c, 100);
		assert_null(c->watch);

		teardown(state);
		setup(state);
		c->on_failed = actions[i];
		fault(c, "{\"match\":\"GET .*slices\",\"status\":500}");
		start(c);
		expect(c, "F");
		expect_nothing(c, 200);

		teardown(state);
		setup(state);
		start(c);
		expect(c, "L1");
		wait_watching(c);
		c->on_changed = actions[i];
		fakeapi_do(&c->api, "DELETE", SLICES "/a", NULL);
		make(c, "b", "n1");
		expect(c, "D:a");
		expect_nothing(c, 100);

		teardown(state);
		setup(state);
		start(c);
		expect(c, "L1");
		wait_watching(c);
		c->on_failed = actions[i];
		control(c, "drop_watches");
		expect(c, "F");
		expect_nothing(c, 200);
	}
	teardown(state);
	setup(state);
	start(c);
	c->watch = kube_watch_free(c->watch); /* while listing */
	start(c);
	expect(c, "L1");
	wait_watching(c);
	c->watch = kube_watch_free(c->watch); /* while watching */
	start(c);
	c->kube = kube_free(c->kube);
	c->watch = NULL;
	expect_nothing(c, 100);
}

/* An idle watch sleeps: nothing but bookmarks wakes it. */
static void test_idle(void **state)
{
	struct ctx *c = *state;
	uint64_t start_us;
	clock_t cpu;

	start(c);
	expect(c, "L1");
	wait_watching(c);
	start_us = clock_us();
	cpu = clock();
	expect_nothing(c, 2000);
	assert_in_range(clock_us() - start_us, 2000000, 2500000);
	assert_true(clock() - cpu < CLOCKS_PER_SEC / 20);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_changes), TEST(test_empty_list), TEST(test_expired),
		TEST(test_dropped), TEST(test_restart),	   TEST(test_failures),
		TEST(test_ends),    TEST(test_relist),	   TEST(test_free_in_callbacks),
		TEST(test_idle),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}

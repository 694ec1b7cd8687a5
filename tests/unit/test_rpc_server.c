// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "rpc/dra.h"

#define GET_INFO "/pluginregistration.Registration/GetInfo"
#define NOTIFY "/pluginregistration.Registration/NotifyRegistrationStatus"
#define PREPARE "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
#define UNPREPARE "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources"

/* claims { namespace: "ns" uid: "u1" name: "c1" } */
#define ONE_CLAIM                                                                                  \
	"\x0a\x0c\x0a\x02ns\x12\x02u1\x1a\x02"                                                     \
	"c1"

struct env {
	char dir[32];
	char *service, *registration;
	struct loop *loop;
	struct dra_server *server;
	unsigned int registered, refused, prepared, unprepared;
	bool hold; /* the handler keeps the call */
	struct dra_call *held, *more[300]; /* the last one, those before it */
	size_t n_more;
	bool failed;
};

static void on_prepare(struct dra_call *call, void *data)
{
	const char *const cdi[] = { "twinrail.dev/claim=u1-r", NULL };
	const struct dra_device device = { "r", "node", "nic-1", NULL, cdi };
	const struct dra_claim *claims;
	struct env *env = data;

	assert_int_equal(dra_call_claims(call, &claims), 1);
	assert_string_equal(claims[0].uid, "u1");
	env->prepared++;
	if (env->hold) {
		if (env->held) {
			assert_in_range(env->n_more, 0, ARRAY_SIZE(env->more) - 1);
			env->more[env->n_more++] = env->held;
		}
		env->held = call;
		return;
	}
	dra_call_answer(call, 0, &device, 1, NULL);
	dra_call_finish(call);
}

static void on_unprepare(struct dra_call *call, void *data)
{
	struct err err = { 0 };
	struct env *env = data;

	env->unprepared++;
	err_set(&err, ERR_RETRY, EAGAIN, "come again");
	dra_call_fail(call, &err);
}

static void on_registered(bool ok, const char *error, void *data)
{
	struct env *env = data;

	if (ok)
		env->registered++;
	else
		env->refused++;
	assert_string_equal(error, "");
}

static void on_failed(const struct err *err, void *data)
{
	struct env *env = data;

	print_message("failed: %s\n", err->msg);
	env->failed = true;
	loop_quit(env->loop, 1);
}

static int start(struct env *env, struct err *err)
{
	const struct dra_server_config config = {
		.driver_name = "twinrail.dev",
		.service_path = env->service,
		.registration_path = env->registration,
		.prepare = on_prepare,
		.unprepare = on_unprepare,
		.registered = on_registered,
		.failed = on_failed,
		.data = env,
	};

	return dra_server_new(env->loop, &config, &env->server, err);
}

static void on_stopped(void *data)
{
	struct env *env = data;

	env->server = NULL;
	loop_quit(env->loop, 0);
}

static void stop(struct env *env, uint64_t grace_us)
{
	dra_server_stop(env->server, grace_us, on_stopped, env);
	loop_run(env->loop);
	assert_null(env->server);
}

static void env_init(struct env *env)
{
	*env = (struct env){ 0 };
	snprintf(env->dir, sizeof(env->dir), "/tmp/test_rpc.XXXXXX");
	assert_non_null(mkdtemp(env->dir));
	env->service = xasprintf("%s/dra.sock", env->dir);
	env->registration = xasprintf("%s/reg.sock", env->dir);
	assert_int_equal(loop_new(&env->loop, NULL), 0);
}

static void env_done(struct env *env)
{
	loop_free(env->loop);
	unlink(env->service);
	unlink(env->registration);
	rmdir(env->dir);
	free(env->service);
	free(env->registration);
}

/* Run the loop for a while. */
static void on_time(void *data)
{
	loop_quit(data, 0);
}

static void run_for(struct loop *loop, uint64_t us)
{
	struct loop_timer *t = loop_timer_new(loop, on_time, loop);

	loop_timer_set(t, us);
	loop_run(loop);
	loop_timer_free(t);
}

/*
 * A client: a thread that makes unary calls one after the other and then ends the loop.
 */

struct rpc {
	const char *method, *request;
	size_t len;
	int want; /* expected status */
	unsigned int timeout_ms;
};

struct client {
	struct loop *loop;
	const char *path;
	const struct rpc *rpcs;
	size_t n;
	unsigned int tries; /* of each call, until the expected status comes */
	int got; /* the last status */
	size_t done; /* calls that ended as expected */
	pthread_t thread;
};

static int unary(grpc_channel *channel, grpc_completion_queue *cq, const struct rpc *rpc)
{
	grpc_slice method = grpc_slice_from_static_string(rpc->method);
	grpc_slice bytes =
		grpc_slice_from_copied_buffer(rpc->request ? rpc->request : "", rpc->len);
	grpc_byte_buffer *request = grpc_raw_byte_buffer_create(&bytes, 1), *reply = NULL;
	grpc_metadata_array initial, trailing;
	grpc_status_code status = GRPC_STATUS_UNKNOWN;
	grpc_slice details = grpc_empty_slice();
	grpc_call *call = grpc_channel_create_call(
		channel, NULL, GRPC_PROPAGATE_DEFAULTS, cq, method, NULL,
		gpr_time_add(gpr_now(GPR_CLOCK_REALTIME),
			     gpr_time_from_millis(rpc->timeout_ms ? rpc->timeout_ms : 10000,
						  GPR_TIMESPAN)),
		NULL);
	grpc_op ops[6] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA },  { .op = GRPC_OP_SEND_MESSAGE },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT }, { .op = GRPC_OP_RECV_INITIAL_METADATA },
		{ .op = GRPC_OP_RECV_MESSAGE },		  { .op = GRPC_OP_RECV_STATUS_ON_CLIENT },
	};

	grpc_metadata_array_init(&initial);
	grpc_metadata_array_init(&trailing);
	ops[1].data.send_message.send_message = request;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &initial;
	ops[4].data.recv_message.recv_message = &reply;
	ops[5].data.recv_status_on_client.status = &status;
	ops[5].data.recv_status_on_client.status_details = &details;
	ops[5].data.recv_status_on_client.trailing_metadata = &trailing;
	assert_int_equal(grpc_call_start_batch(call, ops, 6, NULL, NULL), GRPC_CALL_OK);
	grpc_completion_queue_next(cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
	grpc_call_unref(call);
	grpc_slice_unref(details);
	grpc_slice_unref(bytes);
	grpc_byte_buffer_destroy(request);
	grpc_byte_buffer_destroy(reply);
	grpc_metadata_array_destroy(&initial);
	grpc_metadata_array_destroy(&trailing);
	return (int)status;
}

static void end_loop(void *data)
{
	loop_quit(data, 0);
}

static void *client_thread(void *data)
{
	struct client *c = data;
	_cleanup_free_ char *target = xasprintf("unix:%s", c->path);
	grpc_channel_credentials *creds;
	grpc_completion_queue *cq;
	grpc_channel *channel;

	grpc_init();
	creds = grpc_insecure_credentials_create();
	cq = grpc_completion_queue_create_for_next(NULL);
	channel = grpc_channel_create(target, creds, NULL);
	for (size_t i = 0; i < c->n; i++) {
		for (unsigned int try = 0; try < c->tries; try++) {
			c->got = unary(channel, cq, &c->rpcs[i]);
			if (c->got == c->rpcs[i].want)
				break;
		}
		if (c->got == c->rpcs[i].want)
			c->done++;
		else
			print_message("%s: status %d\n", c->rpcs[i].method, c->got);
	}
	grpc_channel_destroy(channel);
	grpc_channel_credentials_release(creds);
	grpc_completion_queue_shutdown(cq);
	while (grpc_completion_queue_next(cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
	       GRPC_QUEUE_SHUTDOWN)
		;
	grpc_completion_queue_destroy(cq);
	grpc_shutdown();
	if (c->loop)
		loop_post(c->loop, end_loop, c->loop);
	return NULL;
}

static void client_start(struct client *c)
{
	assert_int_equal(pthread_create(&c->thread, NULL, client_thread, c), 0);
}

static void client_join(struct client *c)
{
	pthread_join(c->thread, NULL);
	assert_int_equal(c->done, c->n);
}

static const struct rpc all_rpcs[] = {
	{ GET_INFO, NULL, 0, GRPC_STATUS_OK, 0 },
	{ NOTIFY, "\x08\x01", 2, GRPC_STATUS_OK, 0 },
	{ NOTIFY, NULL, 0, GRPC_STATUS_OK, 0 },
	{ PREPARE, NULL, 0, GRPC_STATUS_OK, 0 },
	{ PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_OK, 0 },
	{ UNPREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_UNAVAILABLE, 0 },
	{ PREPARE, "\xff", 1, GRPC_STATUS_INVALID_ARGUMENT, 0 },
	{ NOTIFY, "\xff", 1, GRPC_STATUS_INVALID_ARGUMENT, 0 },
	{ GET_INFO, "\xff", 1, GRPC_STATUS_INVALID_ARGUMENT, 0 },
	{ "/v1.DRAResourceHealth/NodeWatchResources", NULL, 0, GRPC_STATUS_UNIMPLEMENTED, 0 },
};

static void test_cycles(void **state)
{
	struct env env;

	(void)state;
	env_init(&env);
	for (unsigned int i = 1; i <= 100; i++) {
		struct client c = { env.loop, env.service, all_rpcs, ARRAY_SIZE(all_rpcs),
				    1,	      0,	   0,	     0 };

		assert_int_equal(start(&env, NULL), 0);
		if (i % 2) { /* the other half stops at once */
			client_start(&c);
			loop_run(env.loop);
			client_join(&c);
		}
		stop(&env, 1000000);
		assert_int_equal(access(env.service, F_OK), -1);
		assert_int_equal(access(env.registration, F_OK), -1);
	}
	assert_int_equal(env.registered, 50);
	assert_int_equal(env.refused, 50);
	assert_int_equal(env.prepared, 50);
	assert_int_equal(env.unprepared, 50);
	assert_false(env.failed);
	env_done(&env);
}

static void finish_held(struct env *env)
{
	dra_call_answer(env->held, 0, NULL, 0, NULL);
	dra_call_finish(TAKE_PTR(env->held));
}

static void wait_held(struct env *env)
{
	for (int i = 0; i < 500 && !env->held; i++)
		run_for(env->loop, 10000);
	assert_non_null(env->held);
}

static void on_finish_timer(void *data)
{
	finish_held(data);
}

/* A call that ends within the grace period is answered. */
static void test_stop_waits(void **state)
{
	const struct rpc rpc = { PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_OK, 0 };
	struct loop_timer *timer;
	struct client c;
	struct env env;

	(void)state;
	env_init(&env);
	env.hold = true;
	c = (struct client){ NULL, env.service, &rpc, 1, 1, 0, 0, 0 };
	assert_int_equal(start(&env, NULL), 0);
	client_start(&c);
	wait_held(&env);
	timer = loop_timer_new(env.loop, on_finish_timer, &env);
	loop_timer_set(timer, 200000);
	stop(&env, 10000000);
	client_join(&c);
	loop_timer_free(timer);
	env_done(&env);
}

/* One that does not is failed, and its handler may end it when it likes. */
static void test_stop_gives_up(void **state)
{
	const struct rpc rpc = { PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_UNAVAILABLE,
				 0 };
	const struct dra_claim *claims;
	struct client c;
	struct env env;

	(void)state;
	env_init(&env);
	env.hold = true;
	c = (struct client){ NULL, env.service, &rpc, 1, 1, 0, 0, 0 };
	assert_int_equal(start(&env, NULL), 0);
	client_start(&c);
	wait_held(&env);
	stop(&env, 50000);
	client_join(&c);
	assert_int_equal(dra_call_claims(env.held, &claims), 1);
	finish_held(&env);
	env_done(&env);
}

/* After the client's deadline the handler's answer goes nowhere. */
static void test_cancelled(void **state)
{
	const struct rpc rpc = { PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1,
				 GRPC_STATUS_DEADLINE_EXCEEDED, 500 };
	struct client c;
	struct env env;

	(void)state;
	env_init(&env);
	env.hold = true;
	c = (struct client){ env.loop, env.service, &rpc, 1, 1, 0, 0, 0 };
	assert_int_equal(start(&env, NULL), 0);
	client_start(&c);
	loop_run(env.loop);
	client_join(&c);
	for (int i = 0; i < 500 && !dra_call_cancelled(env.held); i++)
		run_for(env.loop, 10000);
	assert_true(dra_call_cancelled(env.held));
	finish_held(&env);
	stop(&env, 1000000);
	env_done(&env);
}

/* Prepares that nobody hears any more fill their places only, and only while they are there. */
static void test_full(void **state)
{
	const struct rpc rpcs[] = {
		/* with the connection */
		{ PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_DEADLINE_EXCEEDED, 2000 },
		{ PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_RESOURCE_EXHAUSTED, 20 },
		{ UNPREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_UNAVAILABLE, 0 },
		{ PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1, GRPC_STATUS_RESOURCE_EXHAUSTED, 0 },
	};
	struct client c;
	struct env env;

	(void)state;
	env_init(&env);
	env.hold = true;
	c = (struct client){ env.loop, env.service, rpcs, ARRAY_SIZE(rpcs), 2000, 0, 0, 0 };
	assert_int_equal(start(&env, NULL), 0);
	client_start(&c);
	loop_run(env.loop);
	client_join(&c);
	assert_int_equal(env.prepared, 256);
	assert_int_equal(env.unprepared, 1);
	while (env.n_more > 0) {
		struct err err = { 0 };

		err_set(&err, ERR_RETRY, EAGAIN, "given up");
		dra_call_fail(env.more[--env.n_more], &err);
	}
	finish_held(&env);
	stop(&env, 1000000);
	env_done(&env);
}

/* The connection is gone while the handler has the call, then the server stops. */
static void test_stop_after_disconnect(void **state)
{
	const struct rpc rpc = { PREPARE, ONE_CLAIM, sizeof(ONE_CLAIM) - 1,
				 GRPC_STATUS_DEADLINE_EXCEEDED, 300 };
	struct loop_timer *timer;
	struct client c;
	struct env env;

	(void)state;
	env_init(&env);
	env.hold = true;
	c = (struct client){ env.loop, env.service, &rpc, 1, 1, 0, 0, 0 };
	assert_int_equal(start(&env, NULL), 0);
	client_start(&c);
	loop_run(env.loop);
	client_join(&c);
	timer = loop_timer_new(env.loop, on_finish_timer, &env);
	loop_timer_set(timer, 200000);
	stop(&env, 5000000);
	loop_timer_free(timer);
	assert_null(env.held);
	env_done(&env);
}

static int try_connect(const char *path)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

/* Run the loop until somebody listens; slow under valgrind. */
static void wait_served(struct loop *loop, const char *path)
{
	for (int i = 0; i < 600 && try_connect(path) < 0; i++)
		run_for(loop, 50000);
	assert_int_equal(try_connect(path), 0);
}

static void test_socket_files(void **state)
{
	_cleanup_free_ char *stale = NULL;
	struct err err = { 0 };
	struct stat st;
	struct env env;
	int fd;

	(void)state;
	env_init(&env);
	stale = xasprintf("%s/stale", env.dir);
	/* A dead predecessor's file. */
	assert_int_equal(start(&env, NULL), 0);
	assert_int_equal(stat(env.service, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(env.registration, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(link(env.service, stale), 0);
	stop(&env, 0);
	assert_int_equal(rename(stale, env.service), 0);
	assert_int_equal(try_connect(env.service), -ECONNREFUSED);
	assert_int_equal(start(&env, NULL), 0);
	assert_int_equal(try_connect(env.service), 0);
	stop(&env, 0);

	/* Something else at the path stays. */
	fd = open(env.registration, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_true(start(&env, &err) < 0);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_non_null(strstr(err.msg, "is not a socket: remove it"));
	assert_int_equal(access(env.registration, F_OK), 0);
	assert_int_equal(access(env.service, F_OK), -1);
	unlink(env.registration);

	/* A missing registry directory is named. */
	free(env.registration);
	env.registration = xasprintf("%s/no/reg.sock", env.dir);
	assert_true(start(&env, &err) < 0);
	assert_non_null(strstr(err.msg, "registration socket: cannot bind socket"));
	assert_non_null(strstr(err.msg, "directory exists"));
	env_done(&env);
}

/* Two on one path: the later one serves, the earlier one's stop does not disturb it, and when the
 * later one is gone the earlier one comes back. */
static void test_successor(void **state)
{
	struct dra_server *first, *second;
	struct stat st, st2;
	struct env env;

	(void)state;
	env_init(&env);
	assert_int_equal(start(&env, NULL), 0);
	first = env.server;
	assert_int_equal(start(&env, NULL), 0);
	second = env.server;
	assert_int_equal(stat(env.service, &st), 0);
	run_for(env.loop, 1300000); /* the first one sees that it lost, and leaves it */
	assert_int_equal(stat(env.service, &st2), 0);
	assert_int_equal(st.st_ino, st2.st_ino);
	env.server = first;
	stop(&env, 0);
	assert_int_equal(stat(env.service, &st2), 0);
	assert_int_equal(st.st_ino, st2.st_ino);
	assert_int_equal(try_connect(env.service), 0);
	assert_int_equal(try_connect(env.registration), 0);

	assert_int_equal(start(&env, NULL), 0);
	stop(&env, 0); /* a third one came and went */
	assert_int_equal(access(env.service, F_OK), -1);
	wait_served(env.loop, env.service);
	wait_served(env.loop, env.registration);
	env.server = second;
	stop(&env, 0);
	assert_int_equal(access(env.service, F_OK), -1);
	env_done(&env);
}

/* The later one is killed: its files stay, and nobody listens on them. */
static void test_dead_successor(void **state)
{
	_cleanup_free_ char *service = NULL, *registration = NULL;
	struct dra_server *first;
	struct env env;

	(void)state;
	env_init(&env);
	service = xasprintf("%s/stale", env.dir);
	registration = xasprintf("%s/stale-reg", env.dir);
	assert_int_equal(start(&env, NULL), 0);
	first = env.server;
	assert_int_equal(start(&env, NULL), 0);
	assert_int_equal(link(env.service, service), 0);
	assert_int_equal(link(env.registration, registration), 0);
	run_for(env.loop, 1300000); /* the first one sees that it lost */
	stop(&env, 0);
	assert_int_equal(rename(service, env.service), 0);
	assert_int_equal(rename(registration, env.registration), 0);
	assert_int_equal(try_connect(env.service), -ECONNREFUSED);
	wait_served(env.loop, env.service);
	wait_served(env.loop, env.registration);
	env.server = first;
	stop(&env, 0);
	assert_int_equal(access(env.service, F_OK), -1);
	env_done(&env);
}

static void test_removed_file(void **state)
{
	_cleanup_free_ char *aside = NULL;
	struct client c;
	struct env env;

	(void)state;
	env_init(&env);
	aside = xasprintf("%s/aside", env.dir);
	c = (struct client){ env.loop, env.service, all_rpcs, ARRAY_SIZE(all_rpcs), 1, 0, 0, 0 };
	assert_int_equal(start(&env, NULL), 0);
	assert_int_equal(unlink(env.service), 0);
	assert_int_equal(rename(env.registration, aside), 0);
	wait_served(env.loop, env.service);
	wait_served(env.loop, env.registration);
	client_start(&c);
	loop_run(env.loop);
	client_join(&c);
	unlink(aside);

	/* The directory too: that is for a restart to cure. */
	unlink(env.service);
	unlink(env.registration);
	rmdir(env.dir);
	run_for(env.loop, 60000000); /* on_failed() ends it */
	assert_true(env.failed);
	stop(&env, 0);
	env_done(&env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_socket_files),	      cmocka_unit_test(test_successor),
		cmocka_unit_test(test_removed_file),	      cmocka_unit_test(test_stop_waits),
		cmocka_unit_test(test_stop_gives_up),	      cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_stop_after_disconnect), cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_dead_successor),	      cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

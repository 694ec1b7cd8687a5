// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "loop/loop.h"
#include "loop/worker.h"

static struct loop *loop;
static struct buf seen;

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop, NULL);
}

static int teardown(void **state)
{
	(void)state;
	buf_done(&seen);
	loop = loop_free(loop);
	return 0;
}

static void quit(void *data)
{
	(void)data;
	loop_quit(loop, 0);
}

/* Run for so long, or until something quits. */
static void run_ms(unsigned int ms)
{
	struct loop_timer *t = loop_timer_new(loop, quit, NULL);

	loop_timer_set(t, ms * 1000ULL);
	loop_run(loop);
	loop_timer_free(t);
}

static void add(void *data)
{
	buf_str(&seen, data);
}

static void test_timers(void **state)
{
	struct loop_timer *a = loop_timer_new(loop, add, (void *)"a");
	struct loop_timer *b = loop_timer_new(loop, add, (void *)"b");
	struct loop_timer *c = loop_timer_new(loop, add, (void *)"c");
	uint64_t start = clock_us();

	(void)state;
	loop_timer_set(a, 30000);
	loop_timer_set(b, 10000);
	loop_timer_set(c, 0);
	run_ms(60);
	assert_string_equal(seen.data, "cba"); /* by time, each once */
	assert_in_range(clock_us() - start, 60000, 2000000);
	buf_done(&seen);

	loop_timer_set(a, 1000);
	loop_timer_set(a, 40000); /* replaces */
	loop_timer_set(b, 1000);
	loop_timer_stop(b);
	run_ms(20);
	assert_null(seen.data);
	run_ms(60);
	assert_string_equal(seen.data, "a");
	loop_timer_set(c, 1000);
	c = loop_timer_free(c);
	run_ms(10);
	assert_string_equal(seen.data, "a");
	assert_null(loop_timer_free(NULL));
	/* a and b are left to loop_free() */
}

struct chain {
	struct loop_timer *self, *other;
	int n;
};

static void again(void *data)
{
	struct chain *chain = data;

	chain->other = loop_timer_free(chain->other);
	if (++chain->n < 5) {
		loop_timer_set(chain->self, 0);
	} else {
		chain->self = loop_timer_free(chain->self);
		loop_quit(loop, 3);
	}
}

static void test_timer_in_timer(void **state)
{
	struct chain chain = { 0 };

	(void)state;
	chain.self = loop_timer_new(loop, again, &chain);
	chain.other = loop_timer_new(loop, add, (void *)"never");
	loop_timer_set(chain.self, 0);
	loop_timer_set(chain.other, 1);
	assert_int_equal(loop_run(loop), 3);
	assert_int_equal(chain.n, 5);
	assert_null(seen.data);
}

/* A timer that always is due does not starve descriptors. */
static void hog(void *data)
{
	loop_timer_set(*(struct loop_timer **)data, 0);
}

static void on_readable(int fd, uint32_t events, void *data)
{
	char c;

	(void)data;
	assert_true(events & EPOLLIN);
	assert_int_equal(read(fd, &c, 1), 1);
	buf_add(&seen, &c, 1);
	if (c == 'q')
		loop_quit(loop, 0);
}

static void test_descriptors(void **state)
{
	struct loop_fd *source = NULL;
	struct loop_timer *t;
	struct err err = { 0 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(loop_add_fd(loop, fds[0], EPOLLIN, on_readable, NULL, &source, &err), 0);
	t = loop_timer_new(loop, hog, &t);
	loop_timer_set(t, 0);
	assert_int_equal(write(fds[1], "abq", 3), 3);
	loop_run(loop);
	assert_string_equal(seen.data, "abq");
	t = loop_timer_free(t);

	loop_set_fd(source, 0); /* deaf */
	assert_int_equal(write(fds[1], "x", 1), 1);
	run_ms(20);
	assert_string_equal(seen.data, "abq");
	loop_set_fd(source, EPOLLIN);
	run_ms(20);
	assert_string_equal(seen.data, "abqx");
	assert_null(loop_remove_fd(source));
	assert_null(loop_remove_fd(NULL));
	assert_int_equal(write(fds[1], "y", 1), 1);
	run_ms(20);
	assert_string_equal(seen.data, "abqx");
	close(fds[0]);
	close(fds[1]);
	assert_true(loop_add_fd(loop, fds[0], EPOLLIN, on_readable, NULL, &source, &err) < 0);
	assert_int_equal(err.kind, ERR_INTERNAL);
}

static struct loop_fd *pair[2];

static void remove_both(int fd, uint32_t events, void *data)
{
	(void)fd;
	(void)events;
	buf_str(&seen, data);
	pair[0] = loop_remove_fd(pair[0]);
	pair[1] = loop_remove_fd(pair[1]);
}

/* Two are ready, the first callback removes both: the second must not come. */
static void test_remove_in_callback(void **state)
{
	int a[2], b[2];

	(void)state;
	assert_int_equal(pipe(a), 0);
	assert_int_equal(pipe(b), 0);
	assert_int_equal(loop_add_fd(loop, a[0], EPOLLIN, remove_both, (void *)"1", &pair[0], NULL),
			 0);
	assert_int_equal(loop_add_fd(loop, b[0], EPOLLIN, remove_both, (void *)"1", &pair[1], NULL),
			 0);
	assert_int_equal(write(a[1], "x", 1), 1);
	assert_int_equal(write(b[1], "x", 1), 1);
	run_ms(30);
	assert_string_equal(seen.data, "1");
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

static void *post_many(void *data)
{
	for (int i = 0; i < 1000; i++)
		loop_post(loop, add, data);
	return NULL;
}

static void post_again(void *data)
{
	buf_str(&seen, "1");
	loop_post(loop, data ? add : quit, data);
}

static void test_post(void **state)
{
	pthread_t threads[3];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, (void *)"x"), 0);
	run_ms(20);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	loop_post(loop, quit, NULL); /* behind all of them */
	loop_run(loop);
	assert_int_equal(seen.len, 3000);
	buf_done(&seen);

	loop_post(loop, post_again, (void *)"2");
	loop_post(loop, post_again, NULL);
	loop_run(loop);
	assert_string_equal(seen.data, "112");
	loop_post(loop, add, (void *)"left"); /* dropped by loop_free() */
}

static void on_signal(int signo, void *data)
{
	buf_printf(&seen, "%s%d ", (const char *)data, signo);
	if (signo == SIGUSR2)
		loop_quit(loop, signo);
}

static void test_signals(void **state)
{
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	assert_int_equal(loop_add_signals(loop, &set, on_signal, (void *)"s", NULL), 0);
	raise(SIGUSR1);
	raise(SIGUSR2);
	assert_int_equal(loop_run(loop), SIGUSR2);
	assert_string_equal(seen.data, "s10 s12 ");
	loop = loop_free(loop);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Nothing to do: one sleep. */
static void test_idle(void **state)
{
	clock_t cpu = clock();

	(void)state;
	run_ms(500);
	assert_true(clock() - cpu < CLOCKS_PER_SEC / 20);
	assert_null(loop_free(NULL));
}

struct job {
	int number, ran;
	pthread_t thread;
};

static int finished;

static void job_run(void *data)
{
	struct job *job = data;

	job->ran++;
	job->thread = pthread_self();
	usleep(100);
}

static void job_done(void *data)
{
	struct job *job = data;

	assert_int_equal(job->ran, 1);
	assert_false(pthread_equal(job->thread, pthread_self()));
	assert_int_equal(job->number, finished); /* in order */
	if (++finished == 200)
		loop_quit(loop, 0);
}

static void test_worker(void **state)
{
	struct job jobs[200] = { 0 };
	struct worker *worker;

	(void)state;
	finished = 0;
	assert_int_equal(worker_new(loop, "test", &worker, NULL), 0);
	for (int i = 0; i < 200; i++) {
		jobs[i].number = i;
		worker_submit(worker, job_run, job_done, &jobs[i]);
	}
	assert_int_equal(finished, 0); /* never before the loop runs */
	loop_run(loop);
	assert_int_equal(finished, 200);
	assert_null(worker_free(worker));

	/* freeing it finishes what was submitted, and tells before it returns */
	finished = 0;
	memset(jobs, 0, sizeof(jobs));
	assert_int_equal(worker_new(loop, "test", &worker, NULL), 0);
	for (int i = 0; i < 10; i++) {
		jobs[i].number = i;
		worker_submit(worker, job_run, job_done, &jobs[i]);
	}
	worker_free(worker);
	for (int i = 0; i < 10; i++)
		assert_int_equal(jobs[i].ran, 1);
	assert_int_equal(finished, 10);
	run_ms(20);
	assert_int_equal(finished, 10);
	assert_null(worker_free(NULL));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_timers),	TEST(test_timer_in_timer),
		TEST(test_descriptors), TEST(test_remove_in_callback),
		TEST(test_post),	TEST(test_signals),
		TEST(test_idle),	TEST(test_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The floor under a Prepare, measured with the driver's own building blocks: one GET on a kept
 * connection and two durable writes of a record-sized file (docs/design.md §13).  There is a pause
 * between rounds as between pods: what follows a pause is slower than a tight loop.
 *
 *	floor KUBECONFIG PATH DIR ROUNDS
 *
 * gets PATH from the API server and writes below DIR.  Prints one JSON object with medians and
 * means in milliseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "kube/kube.h"

#define RECORD_SIZE 2048
#define PAUSE_US 200000

struct floor {
	struct loop *loop;
	struct kube *kube;
	struct loop_timer *timer;
	const char *path, *dir;
	unsigned int rounds, done;
	uint64_t start_us;
	double *get_ms, *write_ms;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *v, unsigned int n, const char *end)
{
	double sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += v[i];
	qsort(v, n, sizeof(*v), compare);
	printf("\"%s\":{\"median_ms\":%.3f,\"mean_ms\":%.3f}%s", name, v[n / 2], sum / n, end);
}

static int write_twice(const struct floor *f, struct err *err)
{
	_cleanup_free_ char *path = xasprintf("%s/floor.json", f->dir);
	char data[RECORD_SIZE] = { 'x' };
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++)
		r = file_write_atomic(path, data, sizeof(data), 0600, FILE_DURABLE | FILE_SYNC_DIR,
				      err);
	return r == 0 ? file_remove(path, 0, err) : r;
}

static void on_reply(const struct kube_reply *reply, void *data)
{
	struct floor *f = data;
	struct err err = { 0 };
	uint64_t start;

	f->get_ms[f->done] = (double)(clock_us() - f->start_us) / 1000;
	start = clock_us();
	if (reply->err.code || write_twice(f, &err) < 0) {
		fprintf(stderr, "floor: %s\n", err.code ? err.msg : reply->err.msg);
		loop_quit(f->loop, 1);
		return;
	}
	f->write_ms[f->done] = (double)(clock_us() - start) / 1000;
	if (++f->done == f->rounds)
		loop_quit(f->loop, 0);
	else
		loop_timer_set(f->timer, PAUSE_US);
}

static void next(void *data)
{
	struct floor *f = data;
	const struct kube_call call = { .method = "GET", .path = f->path };

	f->start_us = clock_us();
	kube_send(f->kube, &call, on_reply, f);
}

int main(int argc, char **argv)
{
	struct kube_config config = { 0 };
	struct floor f = { 0 };
	struct err err = { 0 };
	int r;

	if (argc != 5 || parse_uint(argv[4], 100000, &f.rounds) < 0 || f.rounds == 0) {
		fputs("usage: floor KUBECONFIG PATH DIR ROUNDS\n", stderr);
		return 2;
	}
	f.path = argv[2];
	f.dir = argv[3];
	f.get_ms = xcalloc(f.rounds, sizeof(double));
	f.write_ms = xcalloc(f.rounds, sizeof(double));
	r = loop_new(&f.loop, &err);
	if (r == 0)
		r = kube_config_file(argv[1], &config, &err);
	if (r == 0)
		r = kube_new(f.loop, &config, &f.kube, &err);
	if (r < 0) {
		fprintf(stderr, "floor: %s\n", err.msg);
		return 1;
	}
	f.timer = loop_timer_new(f.loop, next, &f);
	next(&f);
	r = loop_run(f.loop);
	if (r == 0) {
		putchar('{');
		print("get", f.get_ms, f.rounds, ",");
		print("two_durable_writes", f.write_ms, f.rounds, "}\n");
	}
	loop_timer_free(f.timer);
	kube_free(f.kube);
	kube_config_done(&config);
	loop_free(f.loop);
	free(f.get_ms);
	free(f.write_ms);
	return r;
}

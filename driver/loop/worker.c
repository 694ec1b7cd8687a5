// SPDX-License-Identifier: Apache-2.0
#include "loop/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

struct job {
	worker_fn *run, *done;
	void *data;
	struct job *next;
};

struct worker {
	struct loop *loop;
	pthread_t thread;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct job *head, **tail;
	bool stop;
};

static void *worker_main(void *data)
{
	struct worker *w = data;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct job *job = w->head;

		if (!job) {
			if (w->stop)
				break;
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		w->head = job->next;
		if (!w->head)
			w->tail = &w->head;
		pthread_mutex_unlock(&w->lock);
		job->run(job->data);
		loop_post(w->loop, job->done, job->data);
		free(job);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

int worker_new(struct loop *loop, const char *name, struct worker **ret, struct err *err)
{
	struct worker *w = xnew(struct worker);
	int r;

	w->loop = loop;
	w->tail = &w->head;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	r = pthread_create(&w->thread, NULL, worker_main, w);
	if (r) {
		free(w);
		return err_errno(err, ERR_RETRY, r, "cannot start thread %s", name);
	}
	pthread_setname_np(w->thread, name);
	*ret = w;
	return 0;
}

void worker_submit(struct worker *worker, worker_fn *run, worker_fn *done, void *data)
{
	struct job *job = xnew(struct job);

	job->run = run;
	job->done = done;
	job->data = data;
	pthread_mutex_lock(&worker->lock);
	*worker->tail = job;
	worker->tail = &job->next;
	pthread_cond_signal(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
}

struct worker *worker_free(struct worker *worker)
{
	if (!worker)
		return NULL;
	pthread_mutex_lock(&worker->lock);
	worker->stop = true;
	pthread_cond_signal(&worker->wake);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	pthread_cond_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
	return NULL;
}

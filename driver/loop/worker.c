// SPDX-License-Identifier: Apache-2.0
#include "loop/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

struct job {
	worker_fn *run, *done;
	void *data;
	struct job *next;
};

struct queue {
	struct job *head, **tail;
};

struct worker {
	pthread_t thread;
	int done_fd; /* eventfd: something is in "finished" */
	struct loop_fd *done_source;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t wake;
	struct queue submitted, finished;
	bool stop;
};

static void queue_push(struct queue *q, struct job *job)
{
	job->next = NULL;
	*q->tail = job;
	q->tail = &job->next;
}

static struct job *queue_pop(struct queue *q)
{
	struct job *job = q->head;

	if (job) {
		q->head = job->next;
		if (!q->head)
			q->tail = &q->head;
	}
	return job;
}

static void *worker_main(void *data)
{
	struct worker *w = data;
	uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct job *job = queue_pop(&w->submitted);
		ssize_t n;

		if (!job) {
			if (w->stop)
				break;
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		job->run(job->data);
		pthread_mutex_lock(&w->lock);
		queue_push(&w->finished, job);
		n = write(w->done_fd, &one, sizeof(one));
		(void)n; /* full counter: the loop is awake already */
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void run_finished(struct worker *w)
{
	for (;;) {
		struct job *job;

		pthread_mutex_lock(&w->lock);
		job = queue_pop(&w->finished);
		pthread_mutex_unlock(&w->lock);
		if (!job)
			break;
		job->done(job->data);
		free(job);
	}
}

static void on_done(int fd, uint32_t events, void *data)
{
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	run_finished(data);
}

static void worker_release(struct worker *w)
{
	loop_remove_fd(w->done_source);
	closep(&w->done_fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int worker_new(struct loop *loop, const char *name, struct worker **ret, struct err *err)
{
	struct worker *w = xnew(struct worker);
	int r;

	w->submitted.tail = &w->submitted.head;
	w->finished.tail = &w->finished.head;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->done_fd < 0) {
		r = err_errno(err, ERR_RETRY, errno, "cannot make an event for thread %s", name);
		worker_release(w);
		return r;
	}
	r = loop_add_fd(loop, w->done_fd, EPOLLIN, on_done, w, &w->done_source, err);
	if (r < 0) {
		worker_release(w);
		return r;
	}
	r = pthread_create(&w->thread, NULL, worker_main, w);
	if (r) {
		worker_release(w);
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
	queue_push(&worker->submitted, job);
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
	run_finished(worker);
	worker_release(worker);
	return NULL;
}

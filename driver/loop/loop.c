// SPDX-License-Identifier: Apache-2.0
#include "loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

struct loop_fd {
	struct loop *loop;
	int fd;
	loop_fd_fn *fn;
	void *data;
	bool removed;
	struct loop_fd *next; /* in loop->dead */
};

struct loop_timer {
	struct loop *loop;
	loop_timer_fn *fn;
	void *data;
	uint64_t due_us;
	bool armed;
	struct loop_timer *next;
};

struct posted {
	loop_post_fn *fn;
	void *data;
	struct posted *next;
};

struct loop {
	int epfd, wakefd, sigfd;
	bool quit;
	int result;
	struct loop_timer *timers;
	struct loop_fd *dead; /* removed sources: freed when no event can name them any more */
	struct loop_fd *wake_source, *signal_source;
	loop_signal_fn *signal_fn;
	void *signal_data;

	pthread_mutex_t lock; /* guards the queue below */
	struct posted *head, **tail;
};

static void reap(struct loop *loop)
{
	while (loop->dead) {
		struct loop_fd *s = loop->dead;

		loop->dead = s->next;
		free(s);
	}
}

static struct posted *take_posted(struct loop *loop)
{
	struct posted *list;

	pthread_mutex_lock(&loop->lock);
	list = loop->head;
	loop->head = NULL;
	loop->tail = &loop->head;
	pthread_mutex_unlock(&loop->lock);
	return list;
}

static void on_wake(int fd, uint32_t events, void *data)
{
	struct loop *loop = data;
	struct posted *list;
	uint64_t n;

	(void)events;
	if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		return;
	list = take_posted(loop);
	while (list) {
		struct posted *p = list;

		list = p->next;
		p->fn(p->data);
		free(p);
	}
}

int loop_new(struct loop **ret, struct err *err)
{
	struct loop *loop = xnew(struct loop);
	int r;

	loop->sigfd = -1;
	loop->tail = &loop->head;
	pthread_mutex_init(&loop->lock, NULL);
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	loop->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->epfd < 0 || loop->wakefd < 0) {
		r = err_errno(err, ERR_RETRY, errno, "cannot make the event loop");
		loop_free(loop);
		return r;
	}
	r = loop_add_fd(loop, loop->wakefd, EPOLLIN, on_wake, loop, &loop->wake_source, err);
	if (r < 0) {
		loop_free(loop);
		return r;
	}
	*ret = loop;
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	struct posted *list;

	if (!loop)
		return NULL;
	loop_remove_fd(loop->wake_source);
	loop_remove_fd(loop->signal_source);
	closep(&loop->sigfd);
	closep(&loop->wakefd);
	closep(&loop->epfd);
	list = take_posted(loop);
	while (list) {
		struct posted *p = list;

		list = p->next;
		free(p);
	}
	reap(loop);
	while (loop->timers)
		loop_timer_free(loop->timers);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
	return NULL;
}

void loop_quit(struct loop *loop, int result)
{
	loop->quit = true;
	loop->result = result;
}

/* Milliseconds until the next timer, rounded up; -1 when none is armed. */
static int next_timeout(const struct loop *loop)
{
	uint64_t now = clock_us(), best = UINT64_MAX;

	for (const struct loop_timer *t = loop->timers; t; t = t->next)
		if (t->armed && t->due_us < best)
			best = t->due_us;
	if (best == UINT64_MAX)
		return -1;
	if (best <= now)
		return 0;
	best = (best - now + 999) / 1000;
	return best > 3600000 ? 3600000 : (int)best;
}

/* Each due timer once; the list is searched anew after each callback since it may change it. */
static void run_timers(struct loop *loop)
{
	uint64_t now = clock_us();

	while (!loop->quit) {
		struct loop_timer *due = NULL;

		for (struct loop_timer *t = loop->timers; t; t = t->next)
			if (t->armed && t->due_us <= now && (!due || t->due_us < due->due_us))
				due = t;
		if (!due)
			break;
		due->armed = false;
		due->fn(due->data);
	}
}

int loop_run(struct loop *loop)
{
	loop->quit = false;
	while (!loop->quit) {
		struct epoll_event events[32];
		int n = epoll_wait(loop->epfd, events, ARRAY_SIZE(events), next_timeout(loop));

		if (n < 0 && errno != EINTR)
			abort(); /* the descriptor is gone: a bug of ours */
		for (int i = 0; i < n && !loop->quit; i++) {
			struct loop_fd *s = events[i].data.ptr;

			if (!s->removed)
				s->fn(s->fd, events[i].events, s->data);
		}
		reap(loop);
		if (!loop->quit)
			run_timers(loop);
	}
	return loop->result;
}

int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *data,
		struct loop_fd **ret, struct err *err)
{
	struct loop_fd *s = xnew(struct loop_fd);
	struct epoll_event ev = { .events = events, .data.ptr = s };

	s->loop = loop;
	s->fd = fd;
	s->fn = fn;
	s->data = data;
	if (epoll_ctl(loop->epfd, EPOLL_CTL_ADD, fd, &ev) < 0) {
		int r = err_errno(err, ERR_INTERNAL, errno, "cannot watch descriptor %d", fd);

		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void loop_set_fd(struct loop_fd *source, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = source };

	epoll_ctl(source->loop->epfd, EPOLL_CTL_MOD, source->fd, &ev);
}

struct loop_fd *loop_remove_fd(struct loop_fd *source)
{
	if (!source)
		return NULL;
	epoll_ctl(source->loop->epfd, EPOLL_CTL_DEL, source->fd, NULL);
	source->removed = true;
	source->next = source->loop->dead;
	source->loop->dead = source;
	return NULL;
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *data)
{
	struct loop_timer *t = xnew(struct loop_timer);

	t->loop = loop;
	t->fn = fn;
	t->data = data;
	t->next = loop->timers;
	loop->timers = t;
	return t;
}

void loop_timer_set(struct loop_timer *timer, uint64_t delay_us)
{
	timer->due_us = clock_us() + delay_us;
	timer->armed = true;
}

void loop_timer_stop(struct loop_timer *timer)
{
	timer->armed = false;
}

struct loop_timer *loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return NULL;
	for (struct loop_timer **p = &timer->loop->timers; *p; p = &(*p)->next) {
		if (*p == timer) {
			*p = timer->next;
			break;
		}
	}
	free(timer);
	return NULL;
}

static void on_signal(int fd, uint32_t events, void *data)
{
	struct loop *loop = data;
	struct signalfd_siginfo si;

	(void)events;
	while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		loop->signal_fn((int)si.ssi_signo, loop->signal_data);
}

int loop_add_signals(struct loop *loop, const sigset_t *set, loop_signal_fn *fn, void *data,
		     struct err *err)
{
	loop->sigfd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->sigfd < 0)
		return err_errno(err, ERR_INTERNAL, errno, "cannot receive signals");
	loop->signal_fn = fn;
	loop->signal_data = data;
	return loop_add_fd(loop, loop->sigfd, EPOLLIN, on_signal, loop, &loop->signal_source, err);
}

void loop_post(struct loop *loop, loop_post_fn *fn, void *data)
{
	struct posted *p = xnew(struct posted);
	uint64_t one = 1;
	ssize_t n;

	p->fn = fn;
	p->data = data;
	pthread_mutex_lock(&loop->lock);
	*loop->tail = p;
	loop->tail = &p->next;
	pthread_mutex_unlock(&loop->lock);
	n = write(loop->wakefd, &one, sizeof(one));
	(void)n; /* full counter: the loop is awake already */
}

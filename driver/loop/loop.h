/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_LOOP_LOOP_H
#define TWINRAIL_LOOP_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The event loop of the main thread.  Everything but loop_post() is called on that thread; all
 * callbacks run on it.  A callback may remove any source, its own included.
 */
struct loop;

int loop_new(struct loop **ret, struct err *err) __attribute__((warn_unused_result));
struct loop *loop_free(struct loop *loop); /* NULL is fine; returns NULL */

/* Run until loop_quit(); returns the value given there. */
int loop_run(struct loop *loop);
void loop_quit(struct loop *loop, int result);

/* File descriptors: "events" are EPOLL* bits.  The descriptor stays the caller's. */
struct loop_fd;
typedef void loop_fd_fn(int fd, uint32_t events, void *data);
int loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn *fn, void *data,
		struct loop_fd **ret, struct err *err) __attribute__((warn_unused_result));
void loop_set_fd(struct loop_fd *source, uint32_t events);
/* Remove; NULL is fine; returns NULL.  Call it before closing the descriptor. */
struct loop_fd *loop_remove_fd(struct loop_fd *source);

/* One-shot timers.  A timer is made idle and is armed by loop_timer_set(). */
struct loop_timer;
typedef void loop_timer_fn(void *data);
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn, void *data);
void loop_timer_set(struct loop_timer *timer, uint64_t delay_us); /* replaces what was set */
void loop_timer_stop(struct loop_timer *timer);
struct loop_timer *loop_timer_free(struct loop_timer *timer); /* NULL is fine; returns NULL */

/* Signals: block the set in all threads first (before other threads are made). */
typedef void loop_signal_fn(int signo, void *data);
int loop_add_signals(struct loop *loop, const sigset_t *set, loop_signal_fn *fn, void *data,
		     struct err *err) __attribute__((warn_unused_result));

/* From any thread: run fn(data) on the loop's thread, in the order of posting. */
typedef void loop_post_fn(void *data);
void loop_post(struct loop *loop, loop_post_fn *fn, void *data);

#endif

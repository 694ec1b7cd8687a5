/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_LOOP_WORKER_H
#define TWINRAIL_LOOP_WORKER_H

#include "loop/loop.h"

/*
 * One thread that does blocking work (file system, locks) in the order of submission: run(data)
 * there, then done(data) on the loop's thread.
 */
struct worker;

typedef void worker_fn(void *data);

int worker_new(struct loop *loop, const char *name, struct worker **ret, struct err *err)
	__attribute__((warn_unused_result));
void worker_submit(struct worker *worker, worker_fn *run, worker_fn *done, void *data);

/*
 * Finish what was submitted, join the thread and call "done" of the rest before it returns, so
 * that the owner of "data" may go afterwards.  Called on the loop's thread, not from a "done".
 * NULL is fine; returns NULL.
 */
struct worker *worker_free(struct worker *worker);

#endif

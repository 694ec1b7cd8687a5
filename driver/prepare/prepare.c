// SPDX-License-Identifier: Apache-2.0
#include "prepare/prepare.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/worker.h"
#include "prepare/answer.h"
#include "prepare/environment.h"
#include "prepare/store.h"

/*
 * Each call is an operation in a list, oldest first.  It starts when no older one has a claim in
 * common with it, so that calls for one claim follow each other while all others run beside them:
 *
 *   QUEUED → READING (claims, then the pod) → WORKING (a step on the worker) → answered
 *                                               ↑   ↓ devices held by another claim, or no
 *                                              WAITING  inventory yet
 */
#define OVERLAP_WAIT_US 30000000ULL
#define ORPHAN_GRACE_US 120000000ULL
#define GET_RETRY_US 30000000ULL /* an API server that is away for a while is survived inside */
#define POD_RETRY_US 5000000ULL
/* Meanwhile another process may do the Unprepare (rolling update), or kubelet give the call up. */
#define POLL_US 1000000ULL

enum op_kind { OP_PREPARE, OP_UNPREPARE, OP_ORPHAN };
enum op_state { OP_NEW, OP_QUEUED, OP_READING, OP_WORKING, OP_WAITING };

struct op_claim {
	struct op *op;
	char *namespace, *name, *uid;
	struct kube_request *request;
	struct err err; /* before the step on the disk */
};

struct op {
	struct preparer *p;
	enum op_kind kind;
	enum op_state state;
	struct dra_call *call; /* NULL: OP_ORPHAN */
	struct op_claim *claims;
	struct store_claim *work; /* belongs to the worker's thread in OP_WORKING */
	size_t n, reading;
	struct kube_request *pod_request;
	json_t *pod;
	struct inventory *inv;
	const char *lists; /* why the list variables were left out */
	bool wait; /* result of the step */
	uint64_t started_us, deadline_us;
	struct loop_timer *timer;
	struct op *next;
};

struct preparer {
	struct loop *loop;
	struct kube *kube;
	struct worker *worker;
	struct store store;
	char *driver, *pool, *cdi_dir;
	struct strlist cdi_dirs;
	uint64_t overlap_wait_us;
	struct inventory *inv;
	struct op *ops; /* oldest first */
	struct store_name *orphans; /* claims found at the start, to be asked for */
	size_t n_orphans, next_orphan;
	struct loop_timer *orphan_timer;
	bool stopping;
};

static void op_work(struct op *op);
static void schedule(struct preparer *p);

static struct op *op_new(struct preparer *p, enum op_kind kind, struct dra_call *call, size_t n)
{
	struct op *op = xnew(struct op), **end = &p->ops;

	op->p = p;
	op->kind = kind;
	op->call = call;
	op->n = n;
	op->claims = xcalloc(n, sizeof(*op->claims));
	op->work = xcalloc(n, sizeof(*op->work));
	op->started_us = clock_us();
	op->deadline_us = op->started_us + p->overlap_wait_us;
	while (*end)
		end = &(*end)->next;
	*end = op;
	return op;
}

static void op_claim_init(struct op *op, size_t i, const char *namespace, const char *name,
			  const char *uid)
{
	struct op_claim *c = &op->claims[i];

	c->op = op;
	c->namespace = xstrdup(namespace);
	c->name = xstrdup(name);
	c->uid = xstrdup(uid);
	op->work[i].uid = c->uid;
	/* these become parts of file names and of a URL */
	if (!is_uid(uid) || !is_dns_label(namespace) || !is_dns_subdomain(name))
		err_set(&c->err, ERR_INVALID, EINVAL,
			"kubelet asks for a claim with an invalid namespace, name or uid");
}

static void op_cancel_reads(struct op *op)
{
	for (size_t i = 0; i < op->n; i++) {
		if (op->claims[i].request)
			kube_cancel(op->claims[i].request);
		op->claims[i].request = NULL;
	}
	if (op->pod_request)
		kube_cancel(op->pod_request);
	op->pod_request = NULL;
}

static void op_free(struct op *op)
{
	struct op **p = &op->p->ops;

	while (*p != op)
		p = &(*p)->next;
	*p = op->next;
	op_cancel_reads(op);
	for (size_t i = 0; i < op->n; i++) {
		free(op->claims[i].namespace);
		free(op->claims[i].name);
		free(op->claims[i].uid);
		claim_free(op->work[i].claim);
		record_free(op->work[i].record);
	}
	json_decref(op->pod);
	inventory_unref(op->inv);
	loop_timer_free(op->timer);
	free(op->claims);
	free(op->work);
	free(op);
}

static bool share_claim(const struct op *a, const struct op *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (streq(a->claims[i].uid, b->claims[k].uid))
				return true;
	return false;
}

/* ---- answers ---- */

/* Answer, forget the operation, start those that waited behind it. */
static void op_finish(struct op *op)
{
	struct preparer *p = op->p;
	bool released = op->kind != OP_PREPARE;

	for (size_t i = 0; i < op->n; i++) {
		const struct op_claim *c = &op->claims[i];
		struct store_claim *w = &op->work[i];

		answer_log(op->kind == OP_PREPARE, c->namespace, c->name, w, op->started_us);
		if (!op->call)
			continue;
		if (w->err.code < 0)
			dra_call_answer(op->call, i, NULL, 0, w->err.msg);
		else if (op->kind == OP_PREPARE)
			answer_prepared(op->call, i, w->record, p->driver);
		else
			dra_call_answer(op->call, i, NULL, 0, NULL);
	}
	if (op->lists)
		log_warn("list variables left out", KV("uid", "%s", op->claims[0].uid),
			 KV("why", "%s", op->lists));
	if (op->call)
		dra_call_finish(op->call);
	op_free(op);
	for (struct op *o = p->ops; released && o; o = o->next)
		if (o->state == OP_WAITING)
			loop_timer_set(o->timer, 0);
	schedule(p);
}

static void op_fail(struct op *op, const struct err *err)
{
	op_cancel_reads(op);
	for (size_t i = 0; i < op->n; i++)
		if (op->work[i].err.code == 0)
			op->work[i].err = *err;
	op_finish(op);
}

/* ---- steps on the worker ---- */

static void run_step(void *data)
{
	struct op *op = data;

	if (op->kind == OP_PREPARE)
		op->wait =
			store_prepare(&op->p->store, op->inv, op->pod, op->work, op->n, &op->lists);
	else
		store_unprepare(&op->p->store, op->work, op->n);
}

/* Nothing was done for a call that reads or waits, so it may end; what is WORKING is finished. */
static void on_wake(void *data)
{
	struct op *op = data;
	struct err err = { 0 };

	if (op->state != OP_READING && op->state != OP_WAITING)
		return;
	if (dra_call_cancelled(op->call)) {
		err_set(&err, ERR_CONFLICT, ECANCELED, "given up: kubelet waits no longer");
		op_fail(op, &err);
	} else if (op->state == OP_WAITING) {
		op_work(op);
	} else {
		loop_timer_set(op->timer, POLL_US);
	}
}

static void op_wait(struct op *op, uint64_t now)
{
	uint64_t left = op->deadline_us - now;

	op->state = OP_WAITING;
	loop_timer_set(op->timer, left < POLL_US ? left : POLL_US);
}

static void step_done(void *data)
{
	struct op *op = data;
	uint64_t now = clock_us();

	if (op->kind == OP_PREPARE && op->wait && now < op->deadline_us && !op->p->stopping)
		op_wait(op, now);
	else
		op_finish(op);
}

static void op_work(struct op *op)
{
	uint64_t now = clock_us();
	struct err err = { 0 };

	if (op->kind == OP_PREPARE && !op->p->inv) {
		if (now < op->deadline_us) {
			op_wait(op, now);
			return;
		}
		err_set(&err, ERR_RETRY, EAGAIN,
			"the hardware of this node has not been read yet: see the agent's log");
		op_fail(op, &err);
		return;
	}
	inventory_unref(op->inv);
	op->inv = op->p->inv ? inventory_ref(op->p->inv) : NULL;
	op->state = OP_WORKING;
	worker_submit(op->p->worker, run_step, step_done, op);
}

/* ---- reading from the API server ---- */

static void on_pod(const struct kube_reply *reply, void *data)
{
	struct op *op = data;
	const char *uid = json_path_string(reply->body, "metadata.uid");

	op->pod_request = NULL;
	if (reply->err.code < 0)
		log_warn("pod cannot be read, its list variables hold all its NICs",
			 KV("err", "%s", reply->err.msg));
	else if (uid && streq(uid, op->work[0].claim->pod_uid))
		op->pod = json_incref(reply->body);
	op_work(op);
}

static void claims_read(struct op *op)
{
	const struct claim **claims = xcalloc(op->n, sizeof(*claims));
	bool failed = false, needed;

	for (size_t i = 0; i < op->n; i++) {
		claims[i] = op->work[i].claim;
		failed = failed || !claims[i];
	}
	needed = !failed && environment_needs_pod(claims, op->n);
	if (needed) {
		_cleanup_free_ char *path = xasprintf("/api/v1/namespaces/%s/pods/%s",
						      claims[0]->namespace, claims[0]->pod_name);
		struct kube_call call = { .method = "GET", .path = path, .retry_us = POD_RETRY_US };

		op->pod_request = kube_send(op->p->kube, &call, on_pod, op);
	}
	free(claims);
	if (!needed)
		op_work(op);
}

/* Only a definite answer makes an orphan (docs/design.md §8). */
static void orphan_read(struct op *op, const struct kube_reply *reply)
{
	struct store_claim *w = &op->work[0];
	bool gone = false;
	struct err err = { 0 };

	if (reply->status == 404)
		gone = true;
	else if (reply->err.code == 0 && json_path_string(reply->body, "metadata.uid"))
		gone = claim_parse(reply->body, op->p->driver, w->uid, &w->claim, &err) < 0
			       ? err.kind == ERR_CONFLICT || err.kind == ERR_RETRY
			       : !claim_uses_pool(w->claim, op->p->pool);
	if (gone) {
		log_info("recorded claim is gone, undoing it",
			 KV("claim", "%s/%s", op->claims[0].namespace, op->claims[0].name),
			 KV("uid", "%s", w->uid));
		op_work(op);
		return;
	}
	op_free(op);
}

static void next_orphan(struct preparer *p);

static void on_claim(const struct kube_reply *reply, void *data)
{
	struct op_claim *c = data;
	struct op *op = c->op;
	struct store_claim *w = &op->work[c - op->claims];
	struct preparer *p = op->p;

	c->request = NULL;
	if (op->kind == OP_ORPHAN) {
		orphan_read(op, reply);
		next_orphan(p);
		schedule(p);
		return;
	}
	if (reply->err.code < 0) {
		w->err = reply->err;
		err_wrap(&w->err, "claim %s/%s", c->namespace, c->name);
	} else if (claim_parse(reply->body, op->p->driver, c->uid, &w->claim, &w->err) == 0 &&
		   (!streq(w->claim->name, c->name) || !streq(w->claim->namespace, c->namespace))) {
		w->claim = claim_free(w->claim);
		err_set(&w->err, ERR_INTERNAL, EPROTO,
			"claim %s/%s: the API server answered with another claim", c->namespace,
			c->name);
	}
	if (--op->reading == 0)
		claims_read(op);
}

static void read_claims(struct op *op)
{
	op->state = OP_READING;
	if (op->kind == OP_PREPARE) {
		op->timer = loop_timer_new(op->p->loop, on_wake, op);
		loop_timer_set(op->timer, POLL_US);
	}
	for (size_t i = 0; i < op->n; i++) {
		struct op_claim *c = &op->claims[i];
		_cleanup_free_ char *path = NULL;
		struct kube_call call = { .method = "GET" };

		if (c->err.code < 0)
			continue;
		path = xasprintf("/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s",
				 c->namespace, c->name);
		call.path = path;
		call.retry_us = op->kind == OP_PREPARE ? GET_RETRY_US : 0;
		op->reading++;
		c->request = kube_send(op->p->kube, &call, on_claim, c);
	}
	if (op->reading == 0)
		op_work(op); /* all were refused */
}

/* ---- the list of operations ---- */

static bool may_start(const struct op *op)
{
	for (const struct op *o = op->p->ops; o != op; o = o->next)
		if (share_claim(o, op))
			return false;
	return true;
}

static void op_start(struct op *op)
{
	for (size_t i = 0; i < op->n; i++)
		op->work[i].err = op->claims[i].err;
	if (op->n == 0)
		op_finish(op);
	else if (op->kind == OP_UNPREPARE)
		op_work(op);
	else
		read_claims(op);
}

/* An operation that ends at once changes the list: begin anew then. */
static void schedule(struct preparer *p)
{
	struct op *op = p->ops;

	if (p->stopping)
		return;
	while (op) {
		if (op->state != OP_QUEUED || !may_start(op)) {
			op = op->next;
			continue;
		}
		op->state = OP_READING;
		op_start(op);
		op = p->ops;
	}
}

/*
 * A new call for a claim: kubelet knows the claim, so it is no orphan, and kubelet gave up a
 * Prepare before it unprepares.  Unprepare must not wait for the API server behind either of them.
 */
static void supersede(struct op *op)
{
	struct preparer *p = op->p;
	struct op *o = p->ops;
	struct err err = { 0 };

	err_set(&err, ERR_CONFLICT, ECANCELED, "given up: kubelet unprepares the claim");
	while (o != op) {
		struct op *next = o->next;
		bool working = o->state == OP_WORKING;

		if (share_claim(o, op) && o->kind == OP_ORPHAN && !working) {
			op_free(o);
			next_orphan(p);
		} else if (share_claim(o, op) && o->kind == OP_PREPARE &&
			   op->kind == OP_UNPREPARE) {
			o->deadline_us = 0;
			if (!working) {
				op_fail(o, &err);
				next = p->ops;
			}
		}
		o = next;
	}
}

static void call_new(struct preparer *p, enum op_kind kind, struct dra_call *call)
{
	const struct dra_claim *claims;
	size_t n = dra_call_claims(call, &claims);
	struct op *op = op_new(p, kind, call, n);

	for (size_t i = 0; i < n; i++)
		op_claim_init(op, i, claims[i].namespace, claims[i].name, claims[i].uid);
	supersede(op);
	op->state = OP_QUEUED;
	schedule(p);
}

void preparer_prepare(struct preparer *preparer, struct dra_call *call)
{
	call_new(preparer, OP_PREPARE, call);
}

void preparer_unprepare(struct preparer *preparer, struct dra_call *call)
{
	call_new(preparer, OP_UNPREPARE, call);
}

/* One after the other, so that a start does not load the API server. */
static void next_orphan(struct preparer *p)
{
	struct store_name *o;
	struct op *op;

	if (p->stopping || p->next_orphan >= p->n_orphans)
		return;
	o = &p->orphans[p->next_orphan++];
	op = op_new(p, OP_ORPHAN, NULL, 1);
	op_claim_init(op, 0, o->namespace, o->name, o->uid);
	op->state = OP_QUEUED;
}

static void on_orphan_timer(void *data)
{
	next_orphan(data);
	schedule(data);
}

void preparer_set(struct preparer *preparer, struct inventory *inv)
{
	inventory_ref(inv);
	inventory_unref(preparer->inv);
	preparer->inv = inv;
	for (struct op *o = preparer->ops; o; o = o->next)
		if (o->state == OP_WAITING)
			loop_timer_set(o->timer, 0);
}

int preparer_held(const struct preparer *preparer, struct strlist *ret, struct err *err)
{
	return journal_held(&preparer->store.journal, ret, err);
}

static void preparer_release(struct preparer *p)
{
	loop_timer_free(p->orphan_timer);
	store_names_free(p->orphans, p->n_orphans);
	store_done(&p->store);
	strlist_done(&p->cdi_dirs);
	inventory_unref(p->inv);
	free(p->driver);
	free(p->pool);
	free(p->cdi_dir);
	free(p);
}

int preparer_new(struct loop *loop, struct kube *kube, const struct prepare_options *options,
		 struct preparer **ret, struct err *err)
{
	struct preparer *p = xnew(struct preparer);
	const char *const *dirs = options->vendor_cdi_dirs;
	int r;

	p->loop = loop;
	p->kube = kube;
	p->driver = xstrdup(options->driver);
	p->pool = xstrdup(options->pool);
	p->cdi_dir = xstrdup(options->cdi_dir);
	p->overlap_wait_us = options->overlap_wait_us ? options->overlap_wait_us : OVERLAP_WAIT_US;
	if (!dirs) {
		strlist_add(&p->cdi_dirs, "/etc/cdi");
		strlist_add(&p->cdi_dirs, p->cdi_dir);
	}
	for (; dirs && *dirs; dirs++)
		strlist_add(&p->cdi_dirs, *dirs);
	p->store.cdi_dir = p->cdi_dir;
	p->store.resolve =
		(struct resolve_options){ .driver = p->driver,
					  .pool = p->pool,
					  .cdi_dirs = (const char *const *)p->cdi_dirs.items };
	r = store_init(&p->store, options->data_dir, err);
	if (r == 0)
		r = store_recover(&p->store, &p->orphans, &p->n_orphans, err);
	if (r == 0)
		r = worker_new(loop, "prepare", &p->worker, err);
	if (r < 0) {
		preparer_release(p);
		return r;
	}
	p->orphan_timer = loop_timer_new(loop, on_orphan_timer, p);
	if (p->n_orphans > 0)
		loop_timer_set(p->orphan_timer, options->orphan_grace_us ? options->orphan_grace_us
									 : ORPHAN_GRACE_US);
	*ret = p;
	return 0;
}

struct preparer *preparer_free(struct preparer *preparer)
{
	struct err err = { 0 };

	if (!preparer)
		return NULL;
	preparer->stopping = true;
	store_stop(&preparer->store);
	preparer->worker = worker_free(preparer->worker); /* answers what was done */
	err_set(&err, ERR_RETRY, ECANCELED, "the driver is stopping: kubelet asks again");
	while (preparer->ops) {
		struct op *op = preparer->ops;

		if (op->call)
			dra_call_fail(op->call, &err);
		op_free(op);
	}
	preparer_release(preparer);
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "prepare/store.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "prepare/cdi.h"
#include "prepare/environment.h"
#include "prepare/stray.h"

int store_init(struct store *s, const char *data_dir, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = file_read("/proc/sys/kernel/random/boot_id", sizeof(s->boot_id) - 1, &text, NULL, err);
	if (r < 0)
		return r;
	str_rstrip(text);
	memcpy(s->boot_id, text, strlen(text) + 1);
	return journal_init(&s->journal, data_dir, err);
}

void store_stop(struct store *s)
{
	atomic_store(&s->journal.stopping, true);
}

void store_done(struct store *s)
{
	journal_done(&s->journal);
}

/*
 * Undo what a record stands for; without a record a stray CDI file may be there.  The removal is
 * durable after journal_sync().
 */
static int undo(struct store *s, const char *uid, struct err *err)
{
	int r = cdi_remove(s->cdi_dir, uid, s->resolve.driver, err);

	return r < 0 ? r : journal_remove(&s->journal, uid, err);
}

static struct record *find(const struct record_list *list, const char *uid)
{
	for (size_t i = 0; i < list->n; i++)
		if (streq(list->items[i]->uid, uid))
			return list->items[i];
	return NULL;
}

/* The caller takes over the record of the list. */
static struct record *take(struct record_list *list, const char *uid)
{
	for (size_t i = 0; i < list->n; i++) {
		struct record *r = list->items[i];

		if (!streq(r->uid, uid))
			continue;
		memmove(&list->items[i], &list->items[i + 1],
			(list->n - i - 1) * sizeof(*list->items));
		list->n--;
		return r;
	}
	return NULL;
}

static void set_boot(const struct store *s, struct record *record)
{
	free(record->boot_id);
	record->boot_id = xstrdup(s->boot_id);
}

/*
 * The claim has a Completed record of the same content.  Numbers of device nodes change with a
 * reboot or with a reload of a driver: "fresh" has those of now.  NULL: a device cannot be looked
 * up; a pod that may be running keeps what it was given.
 */
static void plan_again(struct store *s, struct store_claim *c, struct record *fresh)
{
	if (!fresh) {
		c->kept = c->frozen = true;
		return;
	}
	c->kept = streq(c->record->boot_id, s->boot_id) && record_same_devices(c->record, fresh);
	if (c->kept)
		return;
	record_renew(c->record, fresh);
	set_boot(s, c->record);
}

/* Look the devices up; a Completed record of the same content stays what it is. */
static void plan_claim(struct store *s, const struct inventory *inv, struct record_list *list,
		       struct store_claim *c)
{
	_cleanup_(record_freep) struct record *fresh = NULL;
	struct record *have;
	bool again;
	int r;

	if (c->err.code < 0)
		return;
	have = find(list, c->uid);
	if ((!have || have->later) && journal_load(&s->journal, c->uid, &fresh, &c->err) != -ENOENT)
		return; /* unreadable, or of a later version */
	err_reset(&c->err);
	again = have && have->state == RECORD_COMPLETED && record_matches(have, c->claim);
	r = resolve_claim(c->claim, inv, &s->resolve, &fresh, &c->err);
	if (again && (r == 0 || streq(have->boot_id, s->boot_id))) {
		err_reset(&c->err);
		c->record = take(list, c->uid);
		plan_again(s, c, fresh);
	} else if (r == 0) {
		set_boot(s, fresh);
		c->record = TAKE_PTR(fresh);
	}
}

static void stray_error(const struct store *s, struct store_claim *c, const char *uid,
			const char *function)
{
	_cleanup_free_ char *path = cdi_path(s->cdi_dir, uid, s->resolve.driver);

	err_set(&c->err, ERR_CONFLICT, EBUSY,
		"claim %s/%s: %s is still in use by the claim with uid %s, whose record was lost: "
		"wait "
		"until its pod has ended; if there is no such pod, remove %s",
		c->claim->namespace, c->claim->name, function, uid, path);
}

static void overlap_error(const struct store *s, struct store_claim *c, const struct record *other,
			  const char *function, bool wait)
{
	c->wait = wait;
	if (other->stray) {
		stray_error(s, c, other->uid, function);
		return;
	}
	err_set(&c->err, ERR_CONFLICT, EBUSY,
		"claim %s/%s: %s is still in use by claim %s/%s (uid %s), which is not unprepared "
		"yet: wait until its pod has ended",
		c->claim->namespace, c->claim->name, function, other->namespace, other->name,
		other->uid);
}

/* New claims against all recorded ones, and against those of the call. */
static void check_overlaps(const struct store *s, const struct record_list *list,
			   struct store_claim *claims, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct store_claim *c = &claims[i];
		const char *function;

		if (!c->record || c->kept)
			continue;
		for (size_t k = 0; c->err.code == 0 && k < list->n; k++) {
			if (streq(list->items[k]->uid, c->uid))
				continue; /* an old record of its own: undone below */
			function = records_overlap(c->record, list->items[k]);
			if (function)
				overlap_error(s, c, list->items[k], function, true);
		}
		for (size_t k = 0; c->err.code == 0 && k < n; k++) {
			if (k == i || !claims[k].record || (!claims[k].kept && k > i) ||
			    streq(claims[k].uid, c->uid))
				continue;
			function = records_overlap(c->record, claims[k].record);
			if (function)
				overlap_error(s, c, claims[k].record, function, false);
		}
	}
}

static const struct store_claim *first_failed(const struct store_claim *claims, size_t n)
{
	const struct store_claim *waits = NULL;

	for (size_t i = 0; i < n; i++) {
		if (claims[i].err.code == 0)
			continue;
		if (!claims[i].wait)
			return &claims[i];
		if (!waits)
			waits = &claims[i];
	}
	return waits;
}

static void check_cards(struct store *s, const struct inventory *inv, struct store_claim *claims,
			size_t n)
{
	const struct record **records = xcalloc(n, sizeof(*records));
	struct err err = { 0 };
	size_t i;

	for (i = 0; i < n; i++)
		records[i] = claims[i].record;
	if (check_half_pairs(records, n, inv, s->resolve.driver, &i, &err) < 0)
		claims[i].err = err;
	free(records);
}

static bool any_new(const struct store_claim *claims, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!claims[i].kept)
			return true;
	return false;
}

static void give_environment(struct store_claim *c, const struct strlist *env, bool hold)
{
	struct strlist *own = &c->record->environment;

	if (c->kept && (hold || strlist_equal(own, env)))
		return;
	if (c->kept) {
		c->kept = false;
		c->record->renewed = true;
	}
	strlist_done(own);
	for (size_t i = 0; i < env->n; i++)
		strlist_add(own, env->items[i]);
}

/*
 * One value for all claims of the call, also those that are Completed already.  These hold on to
 * what they have when it cannot be known now: a device is gone, or nothing else changed and the pod
 * could not be read.
 */
static const char *set_environment(const struct inventory *inv, const json_t *pod,
				   struct store_claim *claims, size_t n)
{
	const struct record **records = xcalloc(n, sizeof(*records));
	const struct claim **objects = xcalloc(n, sizeof(*objects));
	struct strlist env = { 0 };
	bool hold = false;
	const char *why;

	for (size_t i = 0; i < n; i++) {
		records[i] = claims[i].record;
		objects[i] = claims[i].claim;
		hold = hold || claims[i].frozen;
	}
	hold = hold || (!pod && !any_new(claims, n) && environment_needs_pod(objects, n));
	why = environment_build(objects, records, n, pod, inv, &env);
	for (size_t i = 0; i < n; i++)
		give_environment(&claims[i], &env, hold);
	strlist_done(&env);
	free(records);
	free(objects);
	return why;
}

/*
 * A renewed record never passes through Started: a crash would let the recovery undo what a running
 * pod uses.  Completed with the old devices or with the new ones, either is right.
 */
static bool needs_write(const struct store_claim *c, enum record_state state)
{
	return !c->kept && !(state == RECORD_STARTED && c->record->renewed);
}

static int save_all(struct store *s, enum record_state state, struct store_claim *claims, size_t n)
{
	struct err err = { 0 };
	bool wrote = false;

	for (size_t i = 0; i < n; i++) {
		struct store_claim *c = &claims[i];

		if (!needs_write(c, state))
			continue;
		wrote = true;
		c->record->state = state;
		if (journal_save(&s->journal, c->record, &c->err) < 0)
			return c->err.code;
	}
	if (wrote && journal_sync(&s->journal, &err) < 0) {
		for (size_t i = 0; i < n; i++)
			if (needs_write(&claims[i], state))
				claims[i].err = err;
		return err.code;
	}
	return 0;
}

/* Started → CDI → Completed; a renewed claim stays Completed.  Errors are left in the claims. */
static int commit(struct store *s, struct record_list *list, struct store_claim *claims, size_t n)
{
	int r;

	for (size_t i = 0; i < n; i++) {
		struct record *old = claims[i].kept ? NULL : find(list, claims[i].uid);

		if (old && undo(s, old->uid, &claims[i].err) < 0)
			return claims[i].err.code;
	}
	r = save_all(s, RECORD_STARTED, claims, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = cdi_ensure(s->cdi_dir, claims[i].record, s->resolve.driver, &claims[i].err);
	if (r == 0)
		r = save_all(s, RECORD_COMPLETED, claims, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (claims[i].record->renewed)
			log_info("device nodes or environment of a prepared claim changed",
				 KV("uid", "%s", claims[i].uid));
	return r;
}

/* Write the record as it was before it was renewed.  Its CDI file is made by the next Prepare. */
static int restore(struct store *s, const struct record *record, struct err *err)
{
	_cleanup_(record_freep) struct record *old = NULL;
	int r = record_from_json(record->stored, &old, err);

	return r < 0 ? r : journal_save(&s->journal, old, err);
}

/* Take back what commit() did for the claims that are not kept. */
static void roll_back(struct store *s, struct store_claim *claims, size_t n)
{
	struct err err = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct store_claim *c = &claims[i];
		int r = 0;

		if (!c->kept && c->record)
			r = c->record->renewed ? restore(s, c->record, &err)
					       : undo(s, c->uid, &err);
		if (r < 0)
			log_warn("cannot roll back", KV("uid", "%s", c->uid),
				 KV("err", "%s", err.msg));
	}
	if (journal_sync(&s->journal, &err) < 0)
		log_warn("cannot roll back", KV("err", "%s", err.msg));
}

/* The error, if any, is left in the claim. */
static void remake(struct store *s, struct store_claim *c)
{
	if (c->err.code == 0 && cdi_ensure(s->cdi_dir, c->record, s->resolve.driver, &c->err) < 0)
		c->record = record_free(c->record);
}

/* After a failure: Completed claims are served, new ones fail with the one that failed. */
static void fail_siblings(struct store *s, struct store_claim *claims, size_t n)
{
	const struct store_claim *failed = first_failed(claims, n);
	const struct err cause = failed->err;
	const bool wait = failed->wait;

	for (size_t i = 0; i < n; i++) {
		struct store_claim *c = &claims[i];

		if (c->kept) {
			remake(s, c);
		} else if (c->err.code == 0) {
			c->err = cause;
			c->wait = wait;
			err_wrap(&c->err, "claim %s/%s waits for another claim of its pod",
				 c->claim->namespace, c->claim->name);
		}
		if (c->err.code < 0)
			c->record = record_free(c->record);
	}
}

static void all_fail(struct store_claim *claims, size_t n, const struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (claims[i].err.code == 0)
			claims[i].err = *err;
}

static void reset_wait(struct store_claim *claims, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct store_claim *c = &claims[i];

		if (c->wait)
			err_reset(&c->err);
		c->wait = c->kept = c->frozen = false;
		c->record = record_free(c->record);
	}
}

bool store_prepare(struct store *s, const struct inventory *inv, const json_t *pod,
		   struct store_claim *claims, size_t n, const char **ret_lists)
{
	_cleanup_close_ int lock = -1;
	struct record_list list = { 0 };
	const struct store_claim *failed;
	struct err err = { 0 };
	bool wait = false;

	reset_wait(claims, n);
	if (journal_lock(&s->journal, &lock, &err) < 0 ||
	    journal_load_all(&s->journal, &list, &err) < 0) {
		all_fail(claims, n, &err);
		return false;
	}
	stray_add(s->cdi_dir, s->resolve.driver, inv, &list);
	for (size_t i = 0; i < n; i++)
		plan_claim(s, inv, &list, &claims[i]);
	if (!first_failed(claims, n))
		check_cards(s, inv, claims, n);
	if (!first_failed(claims, n))
		check_overlaps(s, &list, claims, n);
	failed = first_failed(claims, n);
	if (!failed) {
		*ret_lists = set_environment(inv, pod, claims, n);
		if (commit(s, &list, claims, n) < 0) {
			roll_back(s, claims, n);
			failed = first_failed(claims, n);
		}
	}
	if (failed) {
		wait = failed->wait;
		fail_siblings(s, claims, n);
	}
	record_list_done(&list);
	return wait;
}

/*
 * Completed or Started → Undoing; what is Undoing already is only finished.  On a full disk a claim
 * without links is undone without the mark: removing its files can be repeated from any state.
 */
static int mark_undoing(struct store *s, struct store_claim *c, bool *marked)
{
	int r = journal_load(&s->journal, c->uid, &c->record, &c->err);

	if (r == -ENOENT) {
		err_reset(&c->err);
		return 0;
	}
	if (r < 0 || c->record->state == RECORD_UNDOING)
		return r;
	c->record->state = RECORD_UNDOING;
	r = journal_save(&s->journal, c->record, &c->err);
	if ((r == -ENOSPC || r == -EDQUOT) && c->record->attach.mode == ATTACH_NONE) {
		err_reset(&c->err);
		return 0;
	}
	*marked = true;
	return r;
}

void store_unprepare(struct store *s, struct store_claim *claims, size_t n)
{
	_cleanup_close_ int lock = -1;
	struct err err = { 0 };
	bool marked = false;

	if (journal_lock(&s->journal, &lock, &err) < 0) {
		all_fail(claims, n, &err);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (claims[i].err.code == 0)
			mark_undoing(s, &claims[i], &marked);
	if (marked && journal_sync(&s->journal, &err) < 0) {
		all_fail(claims, n, &err);
		return;
	}
	marked = false;
	for (size_t i = 0; i < n; i++) {
		struct store_claim *c = &claims[i];

		if (c->err.code < 0)
			continue;
		if (undo(s, c->uid, &c->err) == 0 && c->record)
			marked = true;
	}
	if (marked && journal_sync(&s->journal, &err) < 0)
		all_fail(claims, n, &err);
}

/*
 * The CDI file of a Completed claim.  After a reboot its numbers may be those of another device,
 * what was done to the host is gone, and no pod runs: only the identities count until the claim is
 * prepared again.
 */
static int recover_cdi(struct store *s, const struct record *record, struct err *err)
{
	if (streq(record->boot_id, s->boot_id))
		return cdi_ensure(s->cdi_dir, record, s->resolve.driver, err);
	return cdi_remove(s->cdi_dir, record->uid, s->resolve.driver, err);
}

/* One record at start; true: it stays. */
static bool recover_one(struct store *s, struct record *record)
{
	struct err err = { 0 };
	int r = 0;

	if (record->state != RECORD_COMPLETED) {
		r = undo(s, record->uid, &err);
		if (r < 0)
			log_warn("cannot undo an unfinished claim", KV("uid", "%s", record->uid),
				 KV("err", "%s", err.msg));
		else
			log_info("unfinished claim undone",
				 KV("claim", "%s/%s", record->namespace, record->name),
				 KV("uid", "%s", record->uid),
				 KV("state", "%s", record_state_name(record->state)));
		return r < 0;
	}
	r = recover_cdi(s, record, &err);
	if (r < 0)
		log_warn("cannot restore a prepared claim",
			 KV("claim", "%s/%s", record->namespace, record->name),
			 KV("uid", "%s", record->uid), KV("err", "%s", err.msg));
	return true;
}

void store_names_free(struct store_name *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(names[i].namespace);
		free(names[i].name);
		free(names[i].uid);
	}
	free(names);
}

int store_recover(struct store *s, struct store_name **ret_names, size_t *ret_n, struct err *err)
{
	_cleanup_close_ int lock = -1;
	struct record_list list = { 0 };
	struct store_name *names;
	size_t n = 0;
	int r;

	r = journal_lock(&s->journal, &lock, err);
	if (r < 0)
		return r;
	journal_remove_stale(&s->journal);
	cdi_remove_stale(s->cdi_dir, s->resolve.driver);
	r = journal_load_all(&s->journal, &list, err);
	if (r < 0)
		return r;
	if (s->journal.corrupt > 0 || s->journal.unreadable.n > 0)
		log_warn("some records of claims cannot be read",
			 KV("set_aside", "%u", s->journal.corrupt),
			 KV("unreadable", "%zu", s->journal.unreadable.n));
	names = xcalloc(list.n, sizeof(*names));
	for (size_t i = 0; i < list.n; i++) {
		const struct record *record = list.items[i];

		if (!record->later && recover_one(s, list.items[i]))
			names[n++] =
				(struct store_name){ xstrdup(record->namespace),
						     xstrdup(record->name), xstrdup(record->uid) };
	}
	record_list_done(&list);
	r = journal_sync(&s->journal, err);
	if (r < 0) {
		store_names_free(names, n);
		return r;
	}
	*ret_names = names;
	*ret_n = n;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/*
 * Our picture of the slices on the API server.  Three sources may overtake each other: the watch,
 * lists and the answers to our own writes; the newest state by resourceVersion wins.
 */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

static void slice_done(struct stored_slice *s)
{
	json_decref(s->object);
	json_decref(s->sent);
	*s = (struct stored_slice){ 0 };
}

void slice_store_done(struct slice_store *store)
{
	for (size_t i = 0; i < store->n; i++)
		slice_done(&store->a[i]);
	free(store->a);
	strlist_done(&store->gone);
	*store = (struct slice_store){ 0 };
}

static const char *meta(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(json_object_get(object, "metadata"), key));
}

static bool meta_equal(const json_t *a, const json_t *b, const char *key)
{
	const char *x = meta(a, key), *y = meta(b, key);

	return x && y && streq(x, y);
}

static struct stored_slice *find(struct slice_store *store, const json_t *object)
{
	for (size_t i = 0; i < store->n; i++)
		if (meta_equal(store->a[i].object, object, "name"))
			return &store->a[i];
	return NULL;
}

/* Resource versions are numbers that grow (k8s.io/apimachinery resourceversion, 1.35). */
static bool is_older(const json_t *a, const json_t *than)
{
	const char *x = meta(a, "resourceVersion"), *y = meta(than, "resourceVersion");
	uint64_t v, w;

	if (!x || !y || parse_u64(x, 10, &v) < 0 || parse_u64(y, 10, &w) < 0)
		return false;
	return v < w;
}

/* Take over a state of somebody else; true when it is news. */
static bool put(struct slice_store *store, json_t *object)
{
	struct stored_slice *s = find(store, object);

	if (!s) {
		array_push(store->a, store->n, store->cap)->object = json_incref(object);
		return true;
	}
	if (is_older(object, s->object) || (meta_equal(object, s->object, "uid") &&
					    meta_equal(object, s->object, "resourceVersion")))
		return false;
	slice_done(s);
	s->object = json_incref(object);
	return true;
}

static void drop(struct slice_store *store, size_t i)
{
	slice_done(&store->a[i]);
	store->a[i] = store->a[--store->n];
	store->a[store->n] = (struct stored_slice){ 0 };
}

static bool is_listed(const json_t *items, const struct stored_slice *s)
{
	const json_t *item;
	size_t i;

	json_array_foreach(items, i, item)
		if (meta_equal(item, s->object, "uid"))
			return true;
	return false;
}

unsigned int store_listed(struct slice_store *store, json_t *items, uint64_t now_us)
{
	unsigned int changes = STORE_SAME;
	json_t *item;
	size_t i;

	for (i = store->n; i-- > 0;) {
		const struct stored_slice *s = &store->a[i];

		if (is_listed(items, s))
			continue;
		if (s->written_us && now_us - s->written_us < STORE_GRACE_US) {
			changes |= STORE_DOUBTFUL;
			continue;
		}
		drop(store, i);
		changes |= STORE_CHANGED | STORE_LOST;
	}
	json_array_foreach(items, i, item)
		if (meta(item, "name") && put(store, item))
			changes |= STORE_CHANGED;
	return changes;
}

unsigned int store_event(struct slice_store *store, const char *type, json_t *object)
{
	const char *uid = meta(object, "uid");
	struct stored_slice *s;

	if (!uid || !meta(object, "name"))
		return STORE_SAME;
	if (!streq(type, "DELETED"))
		return put(store, object) ? STORE_CHANGED : STORE_SAME;
	strlist_add(&store->gone, uid);
	s = find(store, object);
	if (!s || !meta_equal(s->object, object, "uid"))
		return STORE_SAME;
	drop(store, (size_t)(s - store->a));
	return STORE_CHANGED | STORE_LOST;
}

void store_wrote(struct slice_store *store, json_t *object, json_t *sent, uint64_t now_us)
{
	const char *uid = meta(object, "uid");
	struct stored_slice *s;

	/* The watch may have shown its end before the answer to its creation was here. */
	if (!uid || !meta(object, "name") || strlist_has(&store->gone, uid))
		return;
	put(store, object);
	s = find(store, object);
	/* The watch may have shown another's change of it, too: that stands. */
	if (s && meta_equal(s->object, object, "resourceVersion")) {
		json_decref(s->sent);
		s->sent = json_incref(sent);
		s->written_us = now_us;
	}
}

void store_removed(struct slice_store *store, const char *uid)
{
	for (size_t i = store->n; i-- > 0;) {
		const char *u = meta(store->a[i].object, "uid");

		if (u && streq(u, uid))
			drop(store, i);
	}
}

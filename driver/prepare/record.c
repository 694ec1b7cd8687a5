// SPDX-License-Identifier: Apache-2.0
#include "prepare/record.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

/* Far above what a claim of 32 devices needs. */
#define LIST_MAX 1024
#define STRING_MAX 8192

static const char *const state_names[] = {
	[RECORD_STARTED] = "Started",
	[RECORD_COMPLETED] = "Completed",
	[RECORD_UNDOING] = "Undoing",
};

const char *record_state_name(enum record_state state)
{
	return state_names[state];
}

struct record *record_new(const char *namespace, const char *name, const char *uid)
{
	struct record *r = xnew(struct record);

	r->namespace = xstrdup(namespace);
	r->name = xstrdup(name);
	r->uid = xstrdup(uid);
	return r;
}

struct record_device *record_add_device(struct record *record)
{
	struct record_device *d;

	record->devices = xrealloc(record->devices, record->n_devices + 1, sizeof(*d));
	d = &record->devices[record->n_devices++];
	*d = (struct record_device){ 0 };
	return d;
}

static void device_done(struct record_device *d)
{
	free(d->request);
	free(d->pool);
	free(d->device);
	free(d->share_id);
	free(d->type);
	strlist_done(&d->functions);
	strlist_done(&d->vendor_cdi);
	for (size_t i = 0; i < d->n_nodes; i++)
		free(d->nodes[i].path);
	free(d->nodes);
}

struct record *record_free(struct record *record)
{
	if (!record)
		return NULL;
	for (size_t i = 0; i < record->n_devices; i++)
		device_done(&record->devices[i]);
	free(record->devices);
	strlist_done(&record->environment);
	free(record->uid);
	free(record->namespace);
	free(record->name);
	free(record->boot_id);
	json_decref(record->stored);
	free(record);
	return NULL;
}

static json_t *list_to_json(const struct strlist *list)
{
	json_t *a = json_new_array();

	for (size_t i = 0; i < list->n; i++)
		json_add_string(a, list->items[i]);
	return a;
}

static bool same_nodes(const struct record_device *a, const struct record_device *b)
{
	if (a->n_nodes != b->n_nodes)
		return false;
	for (size_t i = 0; i < a->n_nodes; i++)
		if (!streq(a->nodes[i].path, b->nodes[i].path) ||
		    a->nodes[i].major != b->nodes[i].major ||
		    a->nodes[i].minor != b->nodes[i].minor)
			return false;
	return true;
}

bool record_same_devices(const struct record *a, const struct record *b)
{
	if (a->n_devices != b->n_devices)
		return false;
	for (size_t i = 0; i < a->n_devices; i++) {
		const struct record_device *x = &a->devices[i], *y = &b->devices[i];

		if (!strlist_equal(&x->functions, &y->functions) ||
		    !strlist_equal(&x->vendor_cdi, &y->vendor_cdi) || !same_nodes(x, y))
			return false;
	}
	return true;
}

void record_renew(struct record *record, struct record *fresh)
{
	struct record_device *devices = record->devices;
	size_t n = record->n_devices;

	record->devices = fresh->devices;
	record->n_devices = fresh->n_devices;
	fresh->devices = devices;
	fresh->n_devices = n;
	record->renewed = true;
}

/* "o" is empty, or the device as it was stored. */
static void device_to_json(json_t *o, const struct record_device *d)
{
	json_t *nodes = json_new_array();

	json_set_string(o, "request", d->request);
	json_set_string(o, "pool", d->pool);
	json_set_string(o, "device", d->device);
	json_set_string(o, "shareID", d->share_id);
	json_set_string(o, "type", d->type);
	json_set_bool(o, "adminAccess", d->admin_access);
	if (!json_object_get(o, "config"))
		json_set(o, "config", nic_config_to_json(&d->config));
	json_set(o, "functions", list_to_json(&d->functions));
	for (size_t i = 0; i < d->n_nodes; i++) {
		json_t *n = json_new_object();

		json_set_string(n, "path", d->nodes[i].path);
		json_set_int(n, "major", d->nodes[i].major);
		json_set_int(n, "minor", d->nodes[i].minor);
		json_add(nodes, n);
	}
	json_set(o, "nodes", nodes);
	json_set(o, "vendorCDI", list_to_json(&d->vendor_cdi));
}

static json_t *devices_to_json(const struct record *record)
{
	const json_t *stored = json_object_get(record->stored, "devices");
	json_t *devices = json_new_array();

	for (size_t i = 0; i < record->n_devices; i++) {
		json_t *old = json_array_get(stored, i);

		json_add(devices, old ? json_deep_copy(old) : json_new_object());
		device_to_json(json_array_get(devices, i), &record->devices[i]);
	}
	return devices;
}

json_t *record_to_json(const struct record *record)
{
	json_t *o = record->stored ? json_deep_copy(record->stored) : json_new_object();

	json_set_string(o, "state", record_state_name(record->state));
	json_set_string(o, "bootID", record->boot_id);
	if (record->stored && !record->renewed)
		return o; /* the rest did not change */
	json_set(o, "devices", devices_to_json(record));
	json_set(o, "environment", list_to_json(&record->environment));
	if (record->stored)
		return o;
	json_set_int(o, "version", RECORD_VERSION);
	json_set_string(o, "uid", record->uid);
	json_set_string(o, "namespace", record->namespace);
	json_set_string(o, "name", record->name);
	json_set(o, "attach", attach_plan_to_json(&record->attach));
	return o;
}

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, EINVAL, "\"%s\" is missing or malformed", what);
}

static int read_string(const json_t *o, const char *key, char **ret, struct err *err)
{
	const char *s = json_string_value(json_object_get(o, key));

	if (!s || !*s || strlen(s) > STRING_MAX)
		return bad(err, key);
	*ret = xstrdup(s);
	return 0;
}

static int read_list(const json_t *o, const char *key, struct strlist *ret, struct err *err)
{
	json_t *list = json_object_get(o, key), *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > LIST_MAX)
		return bad(err, key);
	json_array_foreach(list, i, item) {
		const char *s = json_string_value(item);

		if (!s || strlen(s) > STRING_MAX)
			return bad(err, key);
		strlist_add(ret, s);
	}
	return 0;
}

static int read_nodes(const json_t *o, struct record_device *d, struct err *err)
{
	json_t *list = json_object_get(o, "nodes"), *item;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > LIST_MAX)
		return bad(err, "nodes");
	d->nodes = xcalloc(json_array_size(list), sizeof(*d->nodes));
	json_array_foreach(list, i, item) {
		json_int_t major = json_integer_value(json_object_get(item, "major"));
		json_t *minor = json_object_get(item, "minor");
		struct record_node *n = &d->nodes[i];

		if (read_string(item, "path", &n->path, err) < 0)
			return -EINVAL;
		d->n_nodes++;
		if (major <= 0 || major >= 1 << 20 || !json_is_integer(minor) ||
		    json_integer_value(minor) < 0 || json_integer_value(minor) >= 1 << 20)
			return bad(err, "major");
		n->major = (int)major;
		n->minor = (int)json_integer_value(minor);
	}
	return 0;
}

static int read_device(const json_t *o, struct record_device *d, struct err *err)
{
	const char *share = json_path_string(o, "shareID");
	int r;

	d->share_id = xstrdup_null(share);
	d->admin_access = json_is_true(json_object_get(o, "adminAccess"));
	if ((r = read_string(o, "request", &d->request, err)) < 0 ||
	    (r = read_string(o, "pool", &d->pool, err)) < 0 ||
	    (r = read_string(o, "device", &d->device, err)) < 0 ||
	    (r = read_string(o, "type", &d->type, err)) < 0 ||
	    (r = read_list(o, "functions", &d->functions, err)) < 0 ||
	    (r = read_list(o, "vendorCDI", &d->vendor_cdi, err)) < 0 ||
	    (r = read_nodes(o, d, err)) < 0)
		return r;
	/* a field of a later version does not matter here: it was obeyed when it was prepared */
	if (nic_config_from_json(json_object_get(o, "config"), &d->config, NULL) < 0)
		d->config = (struct nic_config){ 0 };
	return 0;
}

static int read_record(struct record *r, json_t *object, struct err *err)
{
	const json_t *version = json_object_get(object, "version");
	const char *state = json_path_string(object, "state");
	json_t *devices = json_object_get(object, "devices"), *item;
	size_t i;
	int e;

	if (!json_is_integer(version) || json_integer_value(version) < 1)
		return bad(err, "version");
	if (json_integer_value(version) > RECORD_VERSION)
		return err_set(err, ERR_PERMANENT, EOPNOTSUPP,
			       "it has version %lld, this program (%s) knows up to %d: install the "
			       "version that wrote it",
			       (long long)json_integer_value(version), TWINRAIL_VERSION,
			       RECORD_VERSION);
	if ((e = read_string(object, "uid", &r->uid, err)) < 0 ||
	    (e = read_string(object, "namespace", &r->namespace, err)) < 0 ||
	    (e = read_string(object, "name", &r->name, err)) < 0 ||
	    (e = read_string(object, "bootID", &r->boot_id, err)) < 0 ||
	    (e = read_list(object, "environment", &r->environment, err)) < 0 ||
	    (e = attach_plan_from_json(json_object_get(object, "attach"), &r->attach, err)) < 0)
		return e;
	for (i = 0; i < ARRAY_SIZE(state_names); i++)
		if (state && streq(state, state_names[i]))
			break;
	if (i == ARRAY_SIZE(state_names))
		return bad(err, "state");
	r->state = (enum record_state)i;
	if (!is_uid(r->uid) || !is_dns_label(r->namespace) || !is_dns_subdomain(r->name))
		return bad(err, "uid");
	if (!json_is_array(devices) || json_array_size(devices) > CLAIM_RESULTS_MAX)
		return bad(err, "devices");
	json_array_foreach(devices, i, item) {
		if (read_device(item, record_add_device(r), err) < 0)
			return err_wrap(err, "device %zu", i);
	}
	return 0;
}

struct record *record_holder(const json_t *object, const char *uid)
{
	const char *namespace = json_path_string(object, "namespace");
	const char *name = json_path_string(object, "name");
	json_t *devices = json_object_get(object, "devices"), *device, *function;
	struct record *r;
	size_t i, k;

	r = record_new(namespace && is_dns_label(namespace) ? namespace : "unknown",
		       name && is_dns_subdomain(name) ? name : "unknown", uid);
	r->later = true;
	json_array_foreach(devices, i, device) {
		struct record_device *d;

		if (i == LIST_MAX)
			break;
		d = record_add_device(r);
		d->share_id = xstrdup_null(json_path_string(device, "shareID"));
		d->admin_access = json_is_true(json_object_get(device, "adminAccess"));
		json_array_foreach(json_object_get(device, "functions"), k, function) {
			if (json_is_string(function))
				strlist_add(&d->functions, json_string_value(function));
		}
	}
	return r;
}

int record_from_json(json_t *object, struct record **ret, struct err *err)
{
	_cleanup_(record_freep) struct record *r = xnew(struct record);
	int e = read_record(r, object, err);

	if (e < 0)
		return e;
	r->stored = json_incref(object);
	*ret = TAKE_PTR(r);
	return 0;
}

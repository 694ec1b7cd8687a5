// SPDX-License-Identifier: Apache-2.0
#include "prepare/cdi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

/* Lowest version that allows a device name to begin with a digit, as UIDs do. */
#define CDI_VERSION "0.5.0"
#define SPEC_BYTES_MAX (1024 * 1024)

char *cdi_path(const char *dir, const char *uid, const char *driver)
{
	return xasprintf("%s/%s-%s.json", dir, driver, uid);
}

static char *device_name_of(const struct record *record, const char *request)
{
	_cleanup_free_ char *main_name = request_main(request);

	return xasprintf("%s-%s", record->uid, main_name);
}

static bool same_request(const char *a, const char *b)
{
	_cleanup_free_ char *x = request_main(a), *y = request_main(b);

	return streq(x, y);
}

static bool has_nic(const struct record_device *d)
{
	return !streq(d->type, "gpu");
}

/* Nodes of several devices of one request may coincide (rdma_cm): each path once. */
static void add_nodes(json_t *nodes, const struct record_device *d)
{
	json_t *have;
	size_t k;

	for (size_t i = 0; i < d->n_nodes; i++) {
		json_t *n;
		bool known = false;

		json_array_foreach(nodes, k, have)
			known = known || streq(json_path_string(have, "path"), d->nodes[i].path);
		if (known)
			continue;
		n = json_new_object();
		json_set_string(n, "path", d->nodes[i].path);
		json_set_string(n, "type", "c");
		json_set_int(n, "major", d->nodes[i].major);
		json_set_int(n, "minor", d->nodes[i].minor);
		json_set_string(n, "permissions", "rw");
		json_add(nodes, n);
	}
}

/* What the request of "first" adds to a container; NULL: nothing (CDI forbids empty edits). */
static json_t *request_edits(const struct record *record, const struct record_device *first)
{
	json_t *edits = json_new_object(), *nodes = json_new_array(), *env = json_new_array();
	bool nic = false;

	for (size_t i = 0; i < record->n_devices; i++) {
		const struct record_device *d = &record->devices[i];

		if (!same_request(d->request, first->request))
			continue;
		add_nodes(nodes, d);
		nic = nic || has_nic(d);
	}
	for (size_t i = 0; nic && i < record->environment.n; i++)
		json_add_string(env, record->environment.items[i]);
	if (json_array_size(env) > 0)
		json_set(edits, "env", json_incref(env));
	if (json_array_size(nodes) > 0)
		json_set(edits, "deviceNodes", json_incref(nodes));
	json_decref(env);
	json_decref(nodes);
	if (json_object_size(edits) > 0)
		return edits;
	json_decref(edits);
	return NULL;
}

json_t *cdi_spec(const struct record *record, const char *driver)
{
	_cleanup_json_ json_t *devices = json_new_array();
	_cleanup_free_ char *kind = xasprintf("%s/claim", driver);
	json_t *spec;

	for (size_t i = 0; i < record->n_devices; i++) {
		const char *request = record->devices[i].request;
		_cleanup_free_ char *name = device_name_of(record, request);
		bool seen = false;
		json_t *edits, *o;

		for (size_t k = 0; k < i; k++)
			seen = seen || same_request(record->devices[k].request, request);
		edits = seen ? NULL : request_edits(record, &record->devices[i]);
		if (!edits)
			continue;
		o = json_new_object();
		json_set_string(o, "name", name);
		json_set(o, "containerEdits", edits);
		json_add(devices, o);
	}
	if (json_array_size(devices) == 0)
		return NULL;
	spec = json_new_object();
	json_set_string(spec, "cdiVersion", CDI_VERSION);
	json_set_string(spec, "kind", kind);
	json_set(spec, "devices", json_incref(devices));
	return spec;
}

char *cdi_device_id(const struct record *record, const struct record_device *device,
		    const char *driver)
{
	_cleanup_json_ json_t *edits = request_edits(record, device);
	_cleanup_free_ char *name = device_name_of(record, device->request);

	return edits ? xasprintf("%s/claim=%s", driver, name) : NULL;
}

/* The cure is known for some errors only. */
static int explain(const char *dir, struct err *err)
{
	int e = -err->code;

	if (e != EACCES && e != EPERM && e != EROFS && e != ENOTDIR && e != ENOENT)
		return err->code;
	err_wrap(err,
		 "CDI folder %s must be writable (mount the host's folder read-write into the "
		 "agent, or choose another one with --cdi-dir)",
		 dir);
	return err->code;
}

int cdi_ensure(const char *dir, const struct record *record, const char *driver, struct err *err)
{
	_cleanup_free_ char *path = cdi_path(dir, record->uid, driver), *want = NULL, *have = NULL;
	_cleanup_json_ json_t *spec = cdi_spec(record, driver);
	struct err local = { 0 };
	int r = 0;

	if (!spec)
		return cdi_remove(dir, record->uid, driver, err);
	want = json_text_pretty(spec);
	if (file_read_at(AT_FDCWD, path, SPEC_BYTES_MAX, &have, NULL) == 0 && streq(have, want))
		return 0;
	r = dir_make(dir, 0755, &local);
	if (r == 0)
		r = file_write_atomic(path, want, strlen(want), 0644, 0, &local);
	if (r < 0) {
		explain(dir, &local);
		if (err)
			*err = local;
	}
	return r;
}

json_t *cdi_load(const char *dir, const char *uid, const char *driver)
{
	_cleanup_free_ char *path = cdi_path(dir, uid, driver), *text = NULL;
	json_t *spec = NULL;
	size_t len;

	if (file_read_at(AT_FDCWD, path, SPEC_BYTES_MAX, &text, &len) < 0 ||
	    json_parse(text, len, &spec, NULL) < 0)
		return NULL;
	return spec;
}

int cdi_remove(const char *dir, const char *uid, const char *driver, struct err *err)
{
	_cleanup_free_ char *path = cdi_path(dir, uid, driver);
	struct err local = { 0 };
	int r = file_remove(path, 0, &local);

	/* removing what is not there fails too where the folder is read-only or no folder */
	if (r < 0 && access(path, F_OK) < 0 &&
	    (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (r < 0) {
		explain(dir, &local);
		if (err)
			*err = local;
	}
	return r;
}

void cdi_remove_stale(const char *dir, const char *driver)
{
	_cleanup_free_ char *prefix = xasprintf("%s-", driver);

	file_remove_stale(dir, prefix);
}

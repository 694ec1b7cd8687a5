// SPDX-License-Identifier: Apache-2.0
#include "prepare/stray.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "prepare/cdi.h"

/* "<driver>-<uid>.json" → uid; NULL: another kind of file. */
static char *uid_of(const char *file, const char *driver)
{
	_cleanup_free_ char *prefix = xasprintf("%s-", driver), *uid = NULL;

	if (!starts_with(file, prefix) || !ends_with(file, ".json"))
		return NULL;
	uid = xstrdup(file + strlen(prefix));
	if (strlen(uid) < strlen(".json"))
		return NULL;
	uid[strlen(uid) - strlen(".json")] = '\0';
	return is_uid(uid) ? TAKE_PTR(uid) : NULL;
}

static bool listed(const struct record_list *list, const char *uid)
{
	for (size_t i = 0; i < list->n; i++)
		if (streq(list->items[i]->uid, uid))
			return true;
	return false;
}

static void add_function(struct record_device *d, const json_t *node, const struct inventory *inv)
{
	json_int_t major = json_integer_value(json_object_get(node, "major"));
	json_int_t minor = json_integer_value(json_object_get(node, "minor"));

	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];

		if (nic->uverbs && nic->uverbs_major > 0 && nic->uverbs_major == major &&
		    nic->uverbs_minor == minor && !strlist_has(&d->functions, nic->bus_id))
			strlist_add(&d->functions, nic->bus_id);
	}
}

static struct record *holder(const json_t *spec, const char *uid, const struct inventory *inv)
{
	struct record *record = record_holder(NULL, uid);
	struct record_device *d = record_add_device(record);
	json_t *device, *node;
	size_t i, k;

	record->stray = true;
	json_array_foreach(json_object_get(spec, "devices"), i, device) {
		json_array_foreach(json_path(device, "containerEdits.deviceNodes"), k, node)
			add_function(d, node, inv);
	}
	return record;
}

void stray_add(const char *cdi_dir, const char *driver, const struct inventory *inv,
	       struct record_list *list)
{
	_cleanup_free_ char *kind = xasprintf("%s/claim", driver);
	struct strlist files = { 0 };

	if (dir_list_at(AT_FDCWD, cdi_dir, &files) < 0)
		return;
	for (size_t i = 0; i < files.n; i++) {
		_cleanup_free_ char *uid = uid_of(files.items[i], driver);
		_cleanup_json_ json_t *spec = NULL;
		const char *have;

		if (!uid || listed(list, uid))
			continue;
		spec = cdi_load(cdi_dir, uid, driver);
		have = json_path_string(spec, "kind");
		if (have && streq(have, kind))
			*array_push(list->items, list->n, list->cap) = holder(spec, uid, inv);
	}
	strlist_done(&files);
}

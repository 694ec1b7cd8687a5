// SPDX-License-Identifier: Apache-2.0
/* Looks up devices in the CDI specifications of others (cdi_vendor_id() of cdi.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "prepare/cdi.h"

struct search {
	const char *kind, *uuid, *node;
	char *by_uuid, *by_node; /* names of devices; found so far */
	unsigned int uuid_files; /* files of the current folder that define "uuid" */
	struct strlist hidden; /* devices of folders with precedence */
	struct strlist here; /* devices of the current folder */
};

/* "/dev/nvidia3" but not "/dev/nvidiactl" or "/dev/nvidia-uvm": belongs to one GPU. */
static bool numbered(const char *path)
{
	size_t n = strlen(path);

	return starts_with(path, "/dev/nvidia") && n > 0 && path[n - 1] >= '0' &&
	       path[n - 1] <= '9' &&
	       strspn(path + strlen("/dev/nvidia"), "0123456789") == n - strlen("/dev/nvidia");
}

/* The device has "node" and no node of another GPU. */
static bool only_node(const json_t *device, const char *node)
{
	json_t *nodes = json_path(device, "containerEdits.deviceNodes"), *n;
	bool found = false;
	size_t i;

	json_array_foreach(nodes, i, n) {
		const char *path = json_path_string(n, "path");

		if (!path || !numbered(path))
			continue;
		if (!streq(path, node))
			return false;
		found = true;
	}
	return found;
}

static void search_spec(struct search *s, const json_t *spec)
{
	const char *kind = json_path_string(spec, "kind");
	json_t *devices = json_path(spec, "devices"), *d;
	bool here = false;
	size_t i;

	if (!kind || !streq(kind, s->kind))
		return;
	json_array_foreach(devices, i, d) {
		const char *name = json_path_string(d, "name");

		if (!name || strlen(name) > 253 || strlist_has(&s->hidden, name))
			continue;
		strlist_add(&s->here, name);
		if (s->uuid && streq(name, s->uuid)) {
			here = true;
			free(s->by_uuid);
			s->by_uuid = xstrdup(name);
		}
		if (s->node && !s->by_node && only_node(d, s->node))
			s->by_node = xstrdup(name);
	}
	s->uuid_files += here;
}

/* A file that cannot be read or parsed is what the runtime skips as well. */
static json_t *load(const char *path)
{
	_cleanup_free_ char *text = NULL;
	json_t *spec = NULL;
	size_t len;

	if (file_read_at(AT_FDCWD, path, YAML_MAX_BYTES, &text, &len) < 0)
		return NULL;
	if (ends_with(path, ".json"))
		return json_parse(text, len, &spec, NULL) == 0 ? spec : NULL;
	return yaml_parse(text, len, &spec, NULL) == 0 ? spec : NULL;
}

static int search_dir(struct search *s, const char *dir, struct err *err)
{
	struct strlist files = { 0 };

	s->uuid_files = 0;
	if (dir_list_at(AT_FDCWD, dir, &files) < 0)
		return 0; /* one of the folders is usually missing */
	for (size_t i = 0; i < files.n; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", dir, files.items[i]);
		_cleanup_json_ json_t *spec = NULL;

		if (!ends_with(path, ".json") && !ends_with(path, ".yaml"))
			continue;
		spec = load(path);
		if (spec)
			search_spec(s, spec);
	}
	strlist_done(&files);
	if (s->uuid_files > 1)
		return err_set(err, ERR_INVALID, EEXIST,
			       "%u files in %s define the CDI device %s=%s, so that the runtime "
			       "refuses it: remove all but one",
			       s->uuid_files, dir, s->kind, s->uuid);
	for (size_t i = 0; i < s->here.n; i++)
		strlist_add(&s->hidden, s->here.items[i]);
	strlist_done(&s->here);
	return 0;
}

int cdi_vendor_id(const char *const *dirs, const char *kind, const char *uuid, const char *node,
		  char **ret, struct err *err)
{
	struct search s = { .kind = kind, .uuid = uuid, .node = node };
	struct buf tried = { 0 };
	size_t n = 0;
	int r = 0;

	for (; dirs && dirs[n]; n++)
		buf_printf(&tried, "%s%s", n ? ", " : "", dirs[n]);
	while (r == 0 && n-- > 0) /* the later the folder, the higher its precedence */
		r = search_dir(&s, dirs[n], err);
	if (r == 0 && !s.by_uuid && !s.by_node)
		r = err_set(err, ERR_NOT_FOUND, ENOENT,
			    "no CDI specification in %s defines %s=%s: make one on the node with "
			    "\"nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml\"",
			    tried.data ? tried.data : "(no folder)", kind,
			    uuid   ? uuid
			    : node ? node
				   : "(unknown uuid)");
	if (r == 0)
		*ret = xasprintf("%s=%s", kind, s.by_uuid ? s.by_uuid : s.by_node);
	buf_done(&tried);
	free(s.by_uuid);
	free(s.by_node);
	strlist_done(&s.hidden);
	strlist_done(&s.here);
	return r;
}

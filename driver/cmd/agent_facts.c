// SPDX-License-Identifier: Apache-2.0
#include "cmd/agent_facts.h"

#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "topo/facts.h"

#define FACTS_BYTES_MAX (64 * 1024 * 1024)
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

struct agent_facts {
	char *path;
	const struct preparer *preparer;
	struct facts *facts; /* NULL: the boot is not known, so nothing is remembered */
	size_t hidden; /* as logged last */
	bool unwritable;

	/* During one call: what claims hold, read when it is asked for the first time. */
	struct strlist held;
	bool read, all;
};

static void load(struct agent_facts *f)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *object = NULL;
	struct err err = { 0 };
	size_t len;
	int r = file_read(f->path, FACTS_BYTES_MAX, &text, &len, &err);

	if (r == -ENOENT)
		return;
	if (r == 0)
		r = json_parse(text, len, &object, &err);
	if (r == 0)
		r = facts_from_json(f->facts, object, &err);
	if (r < 0)
		log_warn("what was remembered of NICs cannot be used; those whose links are in "
			 "pods are taken for what the host still shows of them",
			 KV("file", "%s", f->path), KV("error", "%s", err.msg));
}

struct agent_facts *agent_facts_new(const char *data_dir, const struct preparer *preparer)
{
	struct agent_facts *f = xnew(struct agent_facts);
	_cleanup_free_ char *boot_id = NULL;
	struct err err = { 0 };

	f->path = xasprintf("%s/facts.json", data_dir);
	f->preparer = preparer;
	if (file_read(BOOT_ID, 64, &boot_id, NULL, &err) == 0) {
		str_rstrip(boot_id);
		if (is_uid(boot_id))
			f->facts = facts_new(boot_id);
	}
	if (f->facts)
		load(f);
	else
		log_warn("facts of NICs whose links are in pods are not remembered: the boot is "
			 "not known",
			 KV("file", "%s", BOOT_ID), KV("error", "%s", err.msg));
	return f;
}

struct agent_facts *agent_facts_free(struct agent_facts *f)
{
	if (!f)
		return NULL;
	facts_free(f->facts);
	strlist_done(&f->held);
	free(f->path);
	free(f);
	return NULL;
}

static bool is_held(const char *bus_id, void *data)
{
	struct agent_facts *f = data;
	struct err err = { 0 };

	if (!f->read && preparer_held(f->preparer, &f->held, &err) < 0) {
		log_debug("which NICs are held is not known", KV("error", "%s", err.msg));
		f->all = true; /* what is not known changes nothing */
	}
	f->read = true;
	return f->all || strlist_has(&f->held, bus_id);
}

static void save(struct agent_facts *f)
{
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };

	if (!facts_changed(f->facts) && !f->unwritable)
		return;
	text = facts_to_text(f->facts);
	if (file_write_atomic(f->path, text, strlen(text), 0600, 0, &err) == 0) {
		f->unwritable = false;
		return;
	}
	if (!f->unwritable)
		log_warn("facts of NICs cannot be written, will try again: after a restart of the "
			 "driver, those whose links are in pods may vanish from the slices",
			 KV("error", "%s", err.msg));
	f->unwritable = true;
}

const struct hw_machine *agent_facts_apply(struct agent_facts *f, const struct hw_machine *machine)
{
	const struct hw_machine *view;

	if (!f->facts || machine->incomplete)
		return machine;
	strlist_done(&f->held);
	f->read = f->all = false;
	view = facts_apply(f->facts, machine, is_held, f);
	if (facts_hidden(f->facts) != f->hidden) {
		f->hidden = facts_hidden(f->facts);
		log_info("links of NICs are in pods: what was seen before stands for them",
			 KV("nics", "%zu", f->hidden));
	}
	save(f);
	return view;
}

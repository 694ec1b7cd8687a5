// SPDX-License-Identifier: Apache-2.0
/*
 * From the hardware to the inventory, and again at each change: kernel events name the parts to
 * read; every --rescan all of it is read, for events that were lost or that no kernel sends.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/agent.h"
#include "hw/machine.h"
#include "topo/output.h"

#define RESCAN_WITHOUT_EVENTS_US (60 * 1000000ULL)
#define RETRY_MIN_US (500 * 1000ULL)
#define RETRY_MAX_US (60 * 1000000ULL)
#define HOLD_MAX_US (1000000ULL) /* of a reading that events overtake again and again */

/* Why the hardware was read. */
struct why {
	const char *cause;
	const struct hw_change *change; /* NULL: no event */
};

/* "net,ip" */
static char *part_names(unsigned int parts)
{
	static const char *const names[] = { "node", "pci", "net", "ip", "rdma", "gpu" };
	struct buf b = { 0 };

	_Static_assert(HW_PART_ALL == (1 << ARRAY_SIZE(names)) - 1, "a name for each part");
	if (parts == HW_PART_ALL)
		return xstrdup("all");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (parts & 1U << i)
			buf_printf(&b, "%s%s", b.len ? "," : "", names[i]);
	return buf_take(&b);
}

static double ms_since(uint64_t us)
{
	return (double)(clock_us() - us) / 1000;
}

static void log_inventory(const struct inventory *inv, const struct why *why, unsigned int parts,
			  uint64_t start_us)
{
	_cleanup_free_ char *names = part_names(parts);
	char after[32] = "";

	if (why->change)
		snprintf(after, sizeof(after), "%.1f", ms_since(why->change->since_us));
	log_info("hardware read", KV("gpus", "%zu", inv->n_gpus), KV("nics", "%zu", inv->n_nics),
		 KV("cards", "%zu", inv->n_cards), KV("rails", "%d", inv->rail_count),
		 KV("topology", "%s", topo_class_name(inv->topology_class)),
		 KV("ms", "%.1f", ms_since(start_us)), KV("cause", "%s", why->cause),
		 KV("parts", "%s", names), why->change ? KV("ms_after_event", "%s", after) : NULL,
		 why->change ? KV("events", "%u", why->change->events) : NULL);
	for (size_t i = 0; i < inv->n_warnings; i++)
		log_warn("topology", KV("code", "%s", inv->warnings[i].code),
			 KV("object", "%s",
			    inv->warnings[i].object ? inv->warnings[i].object : "node"),
			 KV("warning", "%s", inv->warnings[i].message));
}

/* Equal texts are of equal inventories, as far as people or the cluster see them. */
static char *text_of(const struct inventory *inv)
{
	_cleanup_json_ json_t *json = topo_to_json(inv);
	_cleanup_free_ char *text = json_text(json);
	struct buf b = { 0 };

	buf_str(&b, text);
	for (size_t i = 0; i < inv->n_nics; i++) /* published, but not in the JSON */
		buf_printf(&b, " %d,%s,%d", inv->nics[i].mtu,
			   inv->nics[i].oper_state ? inv->nics[i].oper_state : "",
			   inv->nics[i].withheld);
	return buf_take(&b);
}

/* Takes over the reference. */
static void take_inventory(struct agent *a, struct inventory *inv, const struct why *why,
			   unsigned int parts, uint64_t start_us)
{
	_cleanup_free_ char *text = text_of(inv);
	struct discovery *d = &a->discovery;

	if (!d->logged || !streq(d->logged, text)) {
		free(d->logged);
		d->logged = TAKE_PTR(text);
		log_inventory(inv, why, parts, start_us);
	}
	inventory_unref(a->inventory);
	a->inventory = inv;
	preparer_set(a->preparer, inv);
	if (a->publisher)
		publisher_set(a->publisher, inv);
}

static void retry_later(struct discovery *d)
{
	d->retry_us = d->retry_us ? d->retry_us * 2 : RETRY_MIN_US;
	if (d->retry_us > RETRY_MAX_US)
		d->retry_us = RETRY_MAX_US;
	loop_timer_set(d->retry_timer, d->retry_us);
}

/*
 * A read that failed half-way says nothing about what is gone: what a complete one found stays, and
 * it is tried again soon.  True: use the machine.
 */
static bool is_usable(struct discovery *d)
{
	const struct hw_machine *machine = d->machine;

	if (!machine->incomplete) {
		d->unreadable = false;
		d->complete = true;
		d->retry_us = 0;
		loop_timer_stop(d->retry_timer);
		return true;
	}
	retry_later(d);
	for (size_t i = 0; d->complete && !d->unreadable && i < machine->n_warnings; i++)
		log_warn("hardware", KV("code", "%s", machine->warnings[i].code),
			 KV("object", "%s", machine->warnings[i].object),
			 KV("warning", "%s", machine->warnings[i].message));
	if (!d->unreadable)
		log_error("the hardware cannot be read in full, will try again",
			  KV("meanwhile", "%s",
			     d->complete ? "what was found before stays" : "less is published"));
	d->unreadable = true;
	return !d->complete;
}

/*
 * A link loses its default route while it is reconfigured; what was once the node's own is not
 * handed out until the agent starts anew.
 */
static void remember_own(struct discovery *d, const struct inventory *inv)
{
	for (size_t i = 0; i < inv->n_nics; i++)
		if (topo_is_own(&inv->nics[i]) && !strlist_has(&d->own_nics, inv->nics[i].bus_id))
			strlist_add(&d->own_nics, inv->nics[i].bus_id);
	d->own_known = d->own_known || d->machine->default_routes.n > 0;
}

/* Read what is asked for and what is owed; false: there is nothing new to use. */
static bool read_parts(struct agent *a, unsigned int *parts)
{
	struct discovery *d = &a->discovery;
	struct err err = { 0 };
	int r;

	*parts |= d->owed | (d->machine ? d->machine->incomplete : HW_PART_ALL);
	if (d->machine)
		r = hw_read_again(a->options.root, *parts, d->machine, &err);
	else
		r = hw_read(a->options.root, &d->machine, &err);
	d->owed = r < 0 ? *parts : 0;
	if (*parts == HW_PART_ALL)
		loop_timer_set(d->rescan_timer, d->rescan_us);
	if (r < 0) {
		if (!d->no_root)
			log_error("cannot read the hardware, will try again",
				  KV("error", "%s", err.msg));
		d->no_root = true;
		retry_later(d);
		return false;
	}
	d->no_root = false;
	return true;
}

/*
 * Events that came while we read: what they are about may have been read half before and half
 * after.  They are told in a moment; the inventory waits for that, but not for ever.
 */
static bool is_overtaken(struct agent *a, const struct why *why, unsigned int parts)
{
	struct discovery *d = &a->discovery;

	if (!d->watch || !a->inventory || !(hw_watch_pending(d->watch) & parts))
		return false;
	if (why->change)
		d->held = *why->change;
	else if (!d->held.parts)
		d->held = (struct hw_change){ .parts = parts, .since_us = clock_us() };
	return clock_us() - d->held.since_us < HOLD_MAX_US;
}

static void log_unused(const char *option, const char *pattern, void *data)
{
	(void)data;
	log_info("no NIC of this node fits a pattern", KV("option", "%s", option),
		 KV("pattern", "%s", pattern));
}

static void discover(struct agent *a, unsigned int parts, const struct why *why)
{
	struct discovery *d = &a->discovery;
	struct topo_options to = {
		.node_name = a->publish.node_name,
		.own_nics = &d->own_nics,
		.own_known = d->own_known,
	};
	uint64_t start = clock_us();
	struct inventory *inv;

	if (!read_parts(a, &parts))
		return;
	if (log_enabled(LOG_LEVEL_DEBUG)) {
		_cleanup_free_ char *names = part_names(parts);

		log_debug("looked at the hardware", KV("cause", "%s", why->cause),
			  KV("parts", "%s", names), KV("ms", "%.1f", ms_since(start)));
	}
	if (is_overtaken(a, why, parts))
		return;
	d->held = (struct hw_change){ 0 };
	if (!is_usable(d))
		return;
	topology_set(&a->options.published.topology, &to);
	inv = topo_build(agent_facts_apply(d->facts, d->machine), &to);
	remember_own(d, inv);
	take_inventory(a, inv, why, parts, start);
	if (!d->patterns_told && d->complete) {
		d->patterns_told = true;
		topology_unused_patterns(&to, a->inventory, log_unused, NULL);
	}
}

/* A bad file is said once; the inventory has a warning as long as it is bad. */
static void read_platforms(struct agent *a)
{
	struct topology_options *t = &a->options.published.topology;
	bool was_bad = t->platforms_error.code != 0;
	struct err err = { 0 };
	int r = topology_read_platforms(t, &err);

	if (r < 0 && !was_bad)
		log_error("the platform file is not used", KV("error", "%s", err.msg));
	else if (r > 0)
		log_info("platform file read", KV("file", "%s", t->platform_file));
}

void discover_all(struct agent *a, const char *cause)
{
	const struct why why = { .cause = cause };

	read_platforms(a);
	discover(a, HW_PART_ALL, &why);
}

static void on_rescan(void *data)
{
	discover_all(data, "rescan");
}

static void on_retry(void *data)
{
	const struct why why = { .cause = "retry" };

	discover(data, 0, &why);
}

static void on_change(const struct hw_change *change, void *data)
{
	struct agent *a = data;
	const struct hw_change *held = &a->discovery.held;
	struct hw_change all = *change;
	const struct why why = { .cause = all.cause, .change = &all };

	if (held->parts) {
		all.since_us = held->since_us;
		all.events += held->events;
		if (*held->cause)
			memcpy(all.cause, held->cause, sizeof(all.cause));
	}
	if (change->lost)
		log_warn("the kernel's events came faster than they could be read",
			 KV("cure", "everything is read again"));
	discover(a, all.parts, &why);
}

/* Before the first reading, so that no change falls between. */
static void start_watch(struct agent *a)
{
	struct discovery *d = &a->discovery;
	struct err err = { 0 };

	d->rescan_us = a->options.rescan_us;
	if (streq(a->options.root, "/") && hw_watch_new(a->loop, on_change, a, &d->watch, &err) < 0)
		log_warn("no events from the kernel, the hardware is read every minute",
			 KV("error", "%s", err.msg));
	if (!d->watch && d->rescan_us > RESCAN_WITHOUT_EVENTS_US)
		d->rescan_us = RESCAN_WITHOUT_EVENTS_US;
}

void discover_start(struct agent *a)
{
	struct discovery *d = &a->discovery;

	d->facts = agent_facts_new(a->data_dir, a->preparer);
	d->rescan_timer = loop_timer_new(a->loop, on_rescan, a);
	d->retry_timer = loop_timer_new(a->loop, on_retry, a);
	start_watch(a);
	discover_all(a, "start");
}

void discover_stop(struct agent *a)
{
	struct discovery *d = &a->discovery;

	d->watch = hw_watch_free(d->watch);
	d->rescan_timer = loop_timer_free(d->rescan_timer);
	d->retry_timer = loop_timer_free(d->retry_timer);
	d->facts = agent_facts_free(d->facts);
	d->machine = hw_free(d->machine);
	a->inventory = inventory_unref(a->inventory);
	free(d->logged);
	strlist_done(&d->own_nics);
}

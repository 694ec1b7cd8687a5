// SPDX-License-Identifier: Apache-2.0
/* Which entry of the platform file this machine is, and why it is not another. */
#include "base/log.h"
#include "base/mem.h"
#include "topo/build.h"
#include "topo/pattern.h"
#include "topo/platform.h"

struct seen {
	const struct inventory *inv;
	const struct hw_machine *machine;
};

/* Does a condition hold?  If not, the reason is appended to "why" unless that is NULL. */
typedef bool condition_fn(const struct platform_match *match, const struct seen *seen,
			  struct buf *why);

/* --- what there is and what is wanted, as texts --- */

struct id_count {
	unsigned int vendor, device;
	size_t n;
};

struct id_counts {
	struct id_count *items;
	size_t n, cap;
};

static void count_id(struct id_counts *counts, unsigned int vendor, unsigned int device)
{
	for (size_t i = 0; i < counts->n; i++) {
		struct id_count *c = &counts->items[i];

		if (c->vendor == vendor && c->device == device) {
			c->n++;
			return;
		}
	}
	*array_push(counts->items, counts->n, counts->cap) = (struct id_count){ vendor, device, 1 };
}

/* Frees "counts". */
static void add_counts(struct buf *why, const char *key, struct id_counts *counts)
{
	buf_printf(why, "%s: the machine has", key);
	for (size_t i = 0; i < counts->n; i++)
		buf_printf(why, "%s %zu of %04x:%04x", i ? "," : "", counts->items[i].n,
			   counts->items[i].vendor, counts->items[i].device);
	if (counts->n == 0)
		buf_str(why, " none");
	free(counts->items);
}

static void add_texts(struct buf *why, const struct strlist *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		buf_printf(why, "%s%s", i ? " or " : "", texts->items[i]);
}

static void add_wanted(struct buf *why, const struct platform_range *range,
		       const struct strlist *ids)
{
	buf_printf(why, ", the entry wants %u", range->min);
	if (range->max == PLATFORM_MAX_COUNT)
		buf_str(why, " or more");
	else if (range->max != range->min)
		buf_printf(why, " to %u", range->max);
	buf_str(why, " of ");
	add_texts(why, ids);
}

/* --- conditions --- */

static bool in_range(size_t n, const struct platform_range *range)
{
	return n >= range->min && n <= range->max;
}

/* All GPUs are of these kinds: one that is different makes another machine. */
static bool gpus_hold(const struct platform_match *match, const struct seen *seen, struct buf *why)
{
	const struct inventory *inv = seen->inv;
	bool holds = !match->gpus || in_range(inv->n_gpus, &match->gpu_count);
	struct id_counts counts = { 0 };

	for (size_t i = 0; match->gpus && i < inv->n_gpus && holds; i++)
		holds = id_patterns_match(&match->gpu_ids, inv->gpus[i].vendor_id,
					  inv->gpus[i].device_id);
	if (holds || !why)
		return holds;
	for (size_t i = 0; i < inv->n_gpus; i++)
		count_id(&counts, inv->gpus[i].vendor_id, inv->gpus[i].device_id);
	add_counts(why, "gpus", &counts);
	add_wanted(why, &match->gpu_count, &match->gpu_ids);
	buf_str(why, " and no others");
	return false;
}

/* Other NICs may be there; VFs of a PF that can be seen are no NICs of the machine. */
static bool nics_hold(const struct platform_match *match, const struct seen *seen, struct buf *why)
{
	const struct inventory *inv = seen->inv;
	struct id_counts counts = { 0 };
	size_t n = 0;

	for (size_t i = 0; match->nics && i < inv->n_nics; i++)
		n += !inv->nics[i].pf_bus_id &&
		     id_patterns_match(&match->nic_ids, inv->nics[i].vendor_id,
				       inv->nics[i].device_id);
	if (!match->nics || in_range(n, &match->nic_count))
		return true;
	if (!why)
		return false;
	for (size_t i = 0; i < inv->n_nics; i++)
		if (!inv->nics[i].pf_bus_id)
			count_id(&counts, inv->nics[i].vendor_id, inv->nics[i].device_id);
	add_counts(why, "nics", &counts);
	add_wanted(why, &match->nic_count, &match->nic_ids);
	return false;
}

static bool functions_hold(const struct platform_match *match, const struct seen *seen,
			   struct buf *why)
{
	bool holds = true;

	for (size_t i = 0; i < match->functions.n; i++) {
		if (nic_pattern_fits(match->functions.items[i], seen->inv))
			continue;
		if (!why)
			return false;
		buf_printf(why, "%s%s", holds ? "functions: there is no NIC at " : " nor at ",
			   match->functions.items[i]);
		holds = false;
	}
	return holds;
}

/* "globs" is empty, or one of them matches. */
static bool text_holds(const char *key, const struct strlist *globs, const char *text,
		       struct buf *why)
{
	for (size_t i = 0; i < globs->n; i++)
		if (text && glob_match(globs->items[i], text))
			return true;
	if (globs->n == 0 || !why)
		return globs->n == 0;
	buf_printf(why, "%s is %s, the entry wants ", key, text ? text : "not known");
	add_texts(why, globs);
	return false;
}

static bool vendor_holds(const struct platform_match *match, const struct seen *seen,
			 struct buf *why)
{
	return text_holds("dmiVendor", &match->dmi_vendor, seen->machine->dmi_vendor, why);
}

static bool product_holds(const struct platform_match *match, const struct seen *seen,
			  struct buf *why)
{
	return text_holds("dmiProduct", &match->dmi_product, seen->machine->dmi_product, why);
}

static bool yes_no_holds(const char *key, enum tri wanted, bool is, struct buf *why)
{
	if (wanted == TRI_UNKNOWN || (wanted == TRI_YES) == is)
		return true;
	if (why)
		buf_printf(why, "%s is %s, the entry wants %s", key, is ? "true" : "false",
			   is ? "false" : "true");
	return false;
}

static bool virtual_holds(const struct platform_match *match, const struct seen *seen,
			  struct buf *why)
{
	return yes_no_holds("virtual", match->virtual_machine, seen->machine->hypervisor, why);
}

static bool data_direct_holds(const struct platform_match *match, const struct seen *seen,
			      struct buf *why)
{
	return yes_no_holds("dataDirect", match->data_direct, topo_has_data_direct(seen->machine),
			    why);
}

static condition_fn *const conditions[] = {
	gpus_hold, virtual_holds,  vendor_holds,      product_holds,
	nics_hold, functions_hold, data_direct_holds,
};

/* How many conditions do not hold; without "why" the first one is enough. */
static unsigned int count_failed(const struct platform *entry, const struct seen *seen,
				 struct buf *why)
{
	unsigned int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(conditions) && (why || n == 0); i++) {
		struct buf one = { 0 };

		if (!conditions[i](&entry->match, seen, why ? &one : NULL)) {
			if (why)
				buf_printf(why, "%s%s", n ? "; " : "", one.data);
			n++;
		}
		buf_done(&one);
	}
	return n;
}

static const struct platform *by_name(const struct platforms *platforms, const char *name)
{
	for (size_t i = 0; platforms && i < platforms->n; i++)
		if (streq(platforms->items[i].name, name))
			return &platforms->items[i];
	return NULL;
}

const struct platform *platforms_find(const struct platforms *own, const struct inventory *inv,
				      const struct hw_machine *machine)
{
	const struct platforms *shipped = platforms_shipped();
	const struct seen seen = { inv, machine };

	for (size_t i = 0; own && i < own->n; i++)
		if (!by_name(shipped, own->items[i].name) &&
		    count_failed(&own->items[i], &seen, NULL) == 0)
			return &own->items[i];
	for (size_t i = 0; i < shipped->n; i++) {
		const struct platform *entry = by_name(own, shipped->items[i].name);

		if (!entry)
			entry = &shipped->items[i];
		if (count_failed(entry, &seen, NULL) == 0)
			return entry;
	}
	return NULL;
}

/* --- why not another one --- */

static void log_entry(const struct platform *entry, const struct platform *taken,
		      const struct seen *seen)
{
	struct buf why = { 0 };

	if (entry == taken)
		log_debug("platform entry is taken", KV("entry", "%s", entry->name),
			  KV("source", "%s", platform_source(entry)));
	else if (count_failed(entry, seen, &why) == 0)
		log_debug("platform entry matches, but another one comes before it",
			  KV("entry", "%s", entry->name),
			  KV("source", "%s", platform_source(entry)),
			  KV("taken", "%s", taken ? taken->name : ""));
	else
		log_debug("platform entry does not match", KV("entry", "%s", entry->name),
			  KV("source", "%s", platform_source(entry)), KV("why", "%s", why.data));
	buf_done(&why);
}

/* It is for one of the GPUs, or does not ask for any. */
static bool is_candidate(const struct platform_match *match, const struct inventory *inv)
{
	for (size_t i = 0; match->gpus && i < inv->n_gpus; i++)
		if (id_patterns_match(&match->gpu_ids, inv->gpus[i].vendor_id,
				      inv->gpus[i].device_id))
			return true;
	return !match->gpus;
}

static void log_shipped(const struct platforms *own, const struct seen *seen)
{
	const struct platforms *shipped = platforms_shipped();
	bool any = false;

	for (size_t i = 0; i < shipped->n; i++) {
		const struct platform *entry = &shipped->items[i];

		if (!is_candidate(&entry->match, seen->inv))
			continue;
		any = true;
		if (!by_name(own, entry->name))
			log_entry(entry, NULL, seen);
	}
	if (!any && seen->inv->n_gpus)
		log_debug("no shipped platform entry is for the GPUs of this machine");
}

void platforms_log(const struct platforms *own, const struct platform *taken,
		   const struct inventory *inv, const struct hw_machine *machine)
{
	const struct seen seen = { inv, machine };

	if (!log_enabled(LOG_LEVEL_DEBUG))
		return;
	for (size_t i = 0; own && i < own->n; i++)
		log_entry(&own->items[i], taken, &seen);
	if (!taken)
		log_shipped(own, &seen);
	else if (taken->shipped)
		log_entry(taken, taken, &seen);
}

// SPDX-License-Identifier: Apache-2.0
/* What the entry of the platform file that this machine is says about it. */
#include "topo/platform.h"

#include "base/mem.h"
#include "topo/build.h"
#include "topo/pattern.h"

enum tri platform_atomic_card(const struct platform *platform, unsigned int vendor,
			      unsigned int device)
{
	if (!platform || !platform->atomic_known)
		return TRI_UNKNOWN;
	return id_patterns_match(&platform->atomic_cards, vendor, device) ? TRI_YES : TRI_NO;
}

unsigned int platform_gpus(const struct platform *platform)
{
	if (!platform || !platform->match.gpus ||
	    platform->match.gpu_count.max >= PLATFORM_MAX_COUNT)
		return 0;
	return platform->match.gpu_count.max;
}

const char *platform_source(const struct platform *platform)
{
	return platform->shipped ? "platform" : "config";
}

static void platform_done(struct platform *p)
{
	free(p->name);
	strlist_done(&p->match.gpu_ids);
	strlist_done(&p->match.nic_ids);
	strlist_done(&p->match.functions);
	strlist_done(&p->match.dmi_vendor);
	strlist_done(&p->match.dmi_product);
	strlist_done(&p->rail_names);
	for (size_t i = 0; i < p->n_rail_map; i++)
		free(p->rail_map[i].bus_id);
	free(p->rail_map);
	for (size_t i = 0; i < p->n_roles; i++)
		strlist_done(&p->roles[i].nics);
	free(p->roles);
	strlist_done(&p->atomic_cards);
	strlist_done(&p->environment);
}

struct platforms *platforms_free(struct platforms *platforms)
{
	for (size_t i = 0; platforms && i < platforms->n; i++)
		platform_done(&platforms->items[i]);
	if (platforms)
		free(platforms->items);
	free(platforms);
	return NULL;
}

/* --- what the entry says --- */

void topo_set_platform(struct builder *b)
{
	struct inventory *inv = b->inv;
	const struct platform *platform = platforms_find(b->options->platforms, inv, b->machine);

	if (b->options->platforms_error)
		topo_warn(b, "platform-file", "node",
			  "%s; what was in force before stays (at the start: what the program has "
			  "of its own)",
			  b->options->platforms_error);
	platforms_log(b->options->platforms, platform, inv, b->machine);
	b->platform = platform;
	if (!platform)
		return;
	inv->platform = xstrdup(platform->name);
	inv->nvlink_domain_size = platform->nvlink_domain_size;
	for (size_t i = 0; platform->gdr && i < inv->n_gpus; i++)
		if (!inv->gpus[i].gdr)
			inv->gpus[i].gdr = platform->gdr;
	if (platform->environment.n == 0)
		return;
	inv->environment = xcalloc(platform->environment.n + 1, sizeof(*inv->environment));
	for (size_t i = 0; i < platform->environment.n; i++)
		inv->environment[i] = xstrdup(platform->environment.items[i]);
}

/* What the fabric can do is a fact of the NICs that are on it. */
static void set_fabric_facts(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		if (nic->role != ROLE_RAIL)
			continue;
		nic->hairpin = b->platform->hairpin;
		if (nic->hairpin != TRI_UNKNOWN)
			nic->hairpin_source = platform_source(b->platform);
		nic->cross_rail = b->platform->cross_rail;
		if (nic->cross_rail != TRI_UNKNOWN)
			nic->cross_rail_source = platform_source(b->platform);
	}
}

static void check_class(struct builder *b)
{
	enum topo_class class = b->inv->topology_class;
	unsigned int expected = b->platform->classes;
	struct buf words = { 0 };

	if (class == CLASS_UNKNOWN || expected == 0 || expected & 1U << class)
		return;
	for (int i = CLASS_SWITCH; i <= CLASS_FLAT; i++)
		if (expected & 1U << i)
			buf_printf(&words, "%s%s", words.len ? " or " : "",
				   topo_class_name((enum topo_class)i));
	topo_warn(b, "platform-mismatch", "node",
		  "the platform file knows %s as %s, but the PCI tree shows %s: a setting of the "
		  "firmware differs, or the entry matches a machine that it does not describe",
		  b->platform->name, words.data, topo_class_name(class));
	buf_done(&words);
}

/* Rails that nothing tells have a warning of their own. */
static void check_rail_count(struct builder *b)
{
	const struct inventory *inv = b->inv;

	if (inv->rail_count >= b->platform->rails)
		return;
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (streq(inv->warnings[i].code, "rail-unknown") ||
		    streq(inv->warnings[i].code, "rail-duplicate"))
			return;
	topo_warn(
		b, "rail-missing", "node",
		"%d of %d rails of %s are there: see whether a NIC is gone (lspci, dmesg), has no "
		"driver, or is used by the node itself",
		inv->rail_count, b->platform->rails, b->platform->name);
}

void topo_check_platform(struct builder *b)
{
	if (!b->platform)
		return;
	set_fabric_facts(b);
	check_class(b);
	check_rail_count(b);
}

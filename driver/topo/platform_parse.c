// SPDX-License-Identifier: Apache-2.0
/* The platform file: YAML → struct platforms, strictly. */
#include <errno.h>
#include <stddef.h>

#include "base/bus_id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "topo/platform.h"
#include "topo/platform_value.h"

#define MAX_ENTRIES 256

/* --- match --- */

struct devices {
	struct strlist *ids;
	struct platform_range *count;
};

static int read_device_ids(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_ids(p, v, ((struct devices *)field)->ids);
}

static int read_device_count(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_range(p, v, ((struct devices *)field)->count);
}

static int read_devices(struct value_parser *p, const struct value *v, struct strlist *ids,
			struct platform_range *count)
{
	static const struct value_key keys[] = {
		{ "ids", read_device_ids, 0 },
		{ "count", read_device_count, 0 },
	};
	struct devices devices = { ids, count };
	int r;

	*count = (struct platform_range){ 1, PLATFORM_MAX_COUNT };
	r = value_read_mapping(p, v, keys, ARRAY_SIZE(keys), &devices);
	if (r == 0 && ids->n == 0)
		return value_wrong(p, v, "has no ids; give them (ids: [\"10de:2330\"])");
	return r;
}

static int read_gpus(struct value_parser *p, const struct value *v, void *field)
{
	struct platform_match *match = field;

	match->gpus = true;
	return read_devices(p, v, &match->gpu_ids, &match->gpu_count);
}

static int read_nics(struct value_parser *p, const struct value *v, void *field)
{
	struct platform_match *match = field;

	match->nics = true;
	return read_devices(p, v, &match->nic_ids, &match->nic_count);
}

#define MATCH(member) offsetof(struct platform_match, member)

static int read_match(struct value_parser *p, const struct value *v, void *field)
{
	static const struct value_key keys[] = {
		{ "gpus", read_gpus, 0 },
		{ "nics", read_nics, 0 },
		{ "functions", value_read_addresses, MATCH(functions) },
		{ "dmiVendor", value_read_globs, MATCH(dmi_vendor) },
		{ "dmiProduct", value_read_globs, MATCH(dmi_product) },
		{ "virtual", value_read_yes_no, MATCH(virtual_machine) },
		{ "dataDirect", value_read_yes_no, MATCH(data_direct) },
	};

	if (json_object_size(v->json) == 0)
		return value_wrong(p, v,
				   "has no condition, so that it would match every machine; give "
				   "at least one");
	return value_read_mapping(p, v, keys, ARRAY_SIZE(keys), field);
}

/* --- facts --- */

static int read_name(struct value_parser *p, const struct value *v, void *field)
{
	const char *s = json_string_value(v->json);

	if (!s || !is_dns_label(s))
		return value_wrong(p, v,
				   "is no name; give lower-case letters, digits and -, at most 63");
	*(char **)field = xstrdup(s);
	return 0;
}

static int read_classes(struct value_parser *p, const struct value *v, void *field)
{
	static const char *const words[] = {
		"switch", "inline", "data-direct", "numa", "flat", NULL
	};
	size_t n = json_is_array(v->json) ? json_array_size(v->json) : 1;

	if (n == 0)
		return value_wrong(p, v, "is empty; give a class or a list of them");
	for (size_t i = 0; i < n; i++) {
		const struct value one = json_is_array(v->json) ? value_element(v, i) : *v;
		int word, r = value_read_word(p, &one, words, &word);

		if (r < 0)
			return r;
		*(unsigned int *)field |= 1U << (CLASS_SWITCH + word);
	}
	return 0;
}

static int read_rails(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_int(p, v, 1, PLATFORM_MAX_RAIL + 1, field);
}

/* "gpu<N>rdma<M>": one <N>, then perhaps one <M>, with text between them. */
static int check_rail_name(struct value_parser *p, const struct value *v, const char *text)
{
	const char *n = strstr(text, "<N>"), *m = n ? strstr(n + 3, "<M>") : NULL;
	size_t marks = (n != NULL) + (m != NULL), open = 0, close = 0;

	for (const char *c = text; *c; c++) {
		open += *c == '<';
		close += *c == '>';
	}
	if (n && open == marks && close == marks && m != n + 3 && !strpbrk(text, " /:"))
		return 0;
	return value_wrong(
		p, v,
		"\"%.64s\" is no name of links; give one with <N> and perhaps, after other "
		"text, <M> (\"gpu<N>rdma<M>\")",
		text);
}

static int read_rail_names(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_texts(p, v, field, check_rail_name);
}

static int read_rail_order(struct value_parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "pcie-root", "pci-domain", NULL };
	int i, r = value_read_word(p, v, words, &i);

	if (r == 0)
		*(enum platform_rail_order *)field = (enum platform_rail_order)(i + 1);
	return r;
}

static int read_rail_map(struct value_parser *p, const struct value *v, void *field)
{
	struct platform *to = field;
	const char *bus_id;
	json_t *json;

	if (!json_is_object(v->json) || json_object_size(v->json) == 0 ||
	    json_object_size(v->json) > VALUE_MAX_LIST)
		return value_wrong(p, v, "is no map; write 1 to %d lines '\"0000:03:00.0\": 0'",
				   VALUE_MAX_LIST);
	json_object_foreach((json_t *)(uintptr_t)v->json, bus_id, json) {
		const struct value one = { bus_id, json, yaml_lines_of(v->lines, bus_id) };
		int rail = 0, r;

		if (!is_bus_id(bus_id))
			return value_wrong(p, &one, "is no PCI address; give one as 0000:03:00.0");
		r = value_read_int(p, &one, 0, PLATFORM_MAX_RAIL, &rail);
		if (r < 0)
			return r;
		for (size_t i = 0; i < to->n_rail_map; i++) {
			const struct platform_rail *other = &to->rail_map[i];

			if (bus_id_cmp(other->bus_id, bus_id) == 0)
				return value_wrong(p, &one, "is the same NIC as %s; give each once",
						   other->bus_id);
			if (other->rail == rail)
				return value_wrong(
					p, &one,
					"rail %d is also that of %s; give each NIC a rail of "
					"its own",
					rail, other->bus_id);
		}
		*array_push(to->rail_map, to->n_rail_map, to->cap_rail_map) =
			(struct platform_rail){ xstrdup(bus_id), rail };
	}
	return 0;
}

static int read_role(struct value_parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "rail", "frontend", "storage", NULL };
	int i, r = value_read_word(p, v, words, &i);

	if (r == 0)
		*(enum topo_role *)field = (enum topo_role)(ROLE_RAIL + i);
	return r;
}

static int read_roles(struct value_parser *p, const struct value *v, void *field)
{
	static const struct value_key keys[] = {
		{ "nics", value_read_patterns, offsetof(struct platform_role, nics) },
		{ "role", read_role, offsetof(struct platform_role, role) },
	};
	struct platform *to = field;
	size_t n = json_array_size(v->json);

	if (n == 0 || n > VALUE_MAX_LIST)
		return value_wrong(p, v, "is no list of 1 to %d \"{nics: [...], role: storage}\"",
				   VALUE_MAX_LIST);
	for (size_t i = 0; i < n; i++) {
		const struct value one = value_element(v, i);
		struct platform_role *role = array_push(to->roles, to->n_roles, to->cap_roles);
		int r = value_read_mapping(p, &one, keys, ARRAY_SIZE(keys), role);

		if (r < 0)
			return r;
		if (role->nics.n == 0 || role->role == ROLE_UNKNOWN)
			return value_wrong(p, &one, "needs both keys, nics and role");
	}
	return 0;
}

/* An empty list says that no chip has such cards. */
static int read_atomic_cards(struct value_parser *p, const struct value *v, void *field)
{
	struct platform *to = field;

	to->atomic_known = true;
	if (json_is_array(v->json) && json_array_size(v->json) == 0)
		return 0;
	return value_read_ids(p, v, &to->atomic_cards);
}

static int read_domain_size(struct value_parser *p, const struct value *v, void *field)
{
	return value_read_int(p, v, 1, PLATFORM_MAX_COUNT, field);
}

static int read_gdr(struct value_parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "dmabuf", "peermem", NULL };
	int i, r = value_read_word(p, v, words, &i);

	if (r == 0)
		*(const char **)field = words[i];
	return r;
}

static bool is_variable(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
				   "0123456789";

	return *name && strchr(letters, *name) && !name[strspn(name, more)] &&
	       strlen(name) <= VALUE_MAX_TEXT;
}

static int read_environment(struct value_parser *p, const struct value *v, void *field)
{
	const char *name;
	json_t *json;

	if (!json_is_object(v->json) || json_object_size(v->json) == 0 ||
	    json_object_size(v->json) > VALUE_MAX_LIST)
		return value_wrong(p, v, "is no map; write 1 to %d lines 'NAME: \"value\"'",
				   VALUE_MAX_LIST);
	json_object_foreach((json_t *)(uintptr_t)v->json, name, json) {
		const struct value one = { name, json, yaml_lines_of(v->lines, name) };
		const char *text;

		if (!is_variable(name))
			return value_wrong(p, &one,
					   "is no name of a variable; give letters, digits and _");
		text = value_text(p, &one);
		if (!text)
			return -EINVAL;
		strlist_take(field, xasprintf("%s=%s", name, text));
	}
	return 0;
}

/* --- entries --- */

#define ENTRY(member) offsetof(struct platform, member)

static const struct value_key entry_keys[] = {
	{ "name", read_name, ENTRY(name) },
	{ "match", read_match, ENTRY(match) },
	{ "topologyClass", read_classes, ENTRY(classes) },
	{ "rails", read_rails, ENTRY(rails) },
	{ "railMap", read_rail_map, 0 },
	{ "railNames", read_rail_names, ENTRY(rail_names) },
	{ "railOrder", read_rail_order, ENTRY(rail_order) },
	{ "routedRails", value_read_yes_no, ENTRY(routed_rails) },
	{ "roles", read_roles, 0 },
	{ "atomicCards", read_atomic_cards, 0 },
	{ "hairpin", value_read_support, ENTRY(hairpin) },
	{ "crossRail", value_read_support, ENTRY(cross_rail) },
	{ "nvlinkDomainSize", read_domain_size, ENTRY(nvlink_domain_size) },
	{ "gdr", read_gdr, ENTRY(gdr) },
	{ "environment", read_environment, ENTRY(environment) },
};

static int read_entry(struct value_parser *p, const struct value *v, struct platforms *to)
{
	struct platform *platform = array_push(to->items, to->n, to->cap);
	int r;

	platform->rails = TOPO_UNKNOWN;
	platform->nvlink_domain_size = TOPO_UNKNOWN;
	r = value_read_mapping(p, v, entry_keys, ARRAY_SIZE(entry_keys), platform);
	if (r < 0)
		return r;
	if (!platform->name || !json_object_get(v->json, "match"))
		return value_wrong(p, v, "an entry lacks its %s; give name and match",
				   platform->name ? "match" : "name");
	for (size_t i = 0; i + 1 < to->n; i++)
		if (streq(to->items[i].name, platform->name))
			return value_wrong(p, v,
					   "two entries are called %s; give each its own name",
					   platform->name);
	if (platform->rail_order == RAIL_ORDER_PCI_DOMAIN && platform->rails < 0)
		return value_wrong(p, v,
				   "railOrder pci-domain needs the number of rails; give rails");
	return 0;
}

static int read_entries(struct value_parser *p, const struct value *v, void *field)
{
	size_t n = json_array_size(v->json);

	if (!json_is_array(v->json) || n > MAX_ENTRIES)
		return value_wrong(p, v, "is no list of at most %d entries", MAX_ENTRIES);
	for (size_t i = 0; i < n; i++) {
		const struct value one = value_element(v, i);
		int r = read_entry(p, &one, field);

		if (r < 0)
			return r;
	}
	return 0;
}

int platforms_parse(const char *text, size_t len, const char *name, struct platforms **ret,
		    struct err *err)
{
	static const struct value_key keys[] = { { "platforms", read_entries, 0 } };
	_cleanup_(platforms_freep) struct platforms *platforms = xnew(struct platforms);
	_cleanup_json_ json_t *json = NULL, *lines = NULL;
	struct value_parser p = { name, err };
	int r = yaml_parse_lines(text, len, &json, &lines, err);
	const struct value top = { "the file", json, lines };

	if (r < 0)
		return err_wrap(err, "%s", name);
	if (!json_is_null(json)) /* nothing but comments is no entry */
		r = value_read_mapping(&p, &top, keys, ARRAY_SIZE(keys), platforms);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(platforms);
	return 0;
}

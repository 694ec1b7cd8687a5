// SPDX-License-Identifier: Apache-2.0
/* The platform file: YAML → struct platforms, strictly. */
#include <errno.h>
#include <stddef.h>

#include "base/bus_id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "topo/pattern.h"
#include "topo/platform.h"

#define MAX_ENTRIES 256
#define MAX_LIST 256
#define MAX_TEXT 256

struct parser {
	const char *file;
	struct err *err;
};

/* One value and where it stands. */
struct value {
	const char *key;
	const json_t *json, *lines;
};

/* Reads a value into a field of the type that its key has. */
typedef int read_fn(struct parser *p, const struct value *v, void *field);

struct key {
	const char *name;
	read_fn *read;
	size_t offset; /* of the field */
};

__attribute__((format(printf, 3, 4))) static int wrong(struct parser *p, const struct value *v,
						       const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	return err_set(p->err, ERR_INVALID, EINVAL, "%s line %u: %.60s: %s", p->file,
		       yaml_line(v->lines), v->key, text);
}

static struct value element(const struct value *v, size_t i)
{
	return (struct value){ v->key, json_array_get(v->json, i), yaml_lines_at(v->lines, i) };
}

static char *key_names(const struct key *keys, size_t n)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", keys[i].name);
	return buf_take(&b);
}

static int read_mapping(struct parser *p, const struct value *v, const struct key *keys, size_t n,
			void *into)
{
	const char *name;
	json_t *json;

	if (!json_is_object(v->json))
		return wrong(p, v, "is no mapping; write \"key: value\" lines below it");
	json_object_foreach((json_t *)(uintptr_t)v->json, name, json) {
		const struct value member = { name, json, yaml_lines_of(v->lines, name) };
		const struct key *key = NULL;
		int r;

		for (size_t i = 0; i < n; i++)
			if (streq(keys[i].name, name))
				key = &keys[i];
		if (!key) {
			_cleanup_free_ char *names = key_names(keys, n);

			return wrong(p, &member, "unknown key; allowed are %s", names);
		}
		r = key->read(p, &member, (char *)into + key->offset);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- values --- */

/* A string that is not empty and has no control characters; NULL after an error. */
static const char *text_of(struct parser *p, const struct value *v)
{
	const char *s = json_string_value(v->json);

	if (!s) {
		wrong(p, v, "is no text; give a text (in quotes, when it looks like a number)");
		return NULL;
	}
	if (!*s || strlen(s) > MAX_TEXT) {
		wrong(p, v, "is empty or too long; give 1 to %d bytes", MAX_TEXT);
		return NULL;
	}
	for (const char *c = s; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f) {
			wrong(p, v, "contains a control character; give plain text");
			return NULL;
		}
	}
	return s;
}

/* One text, or a list of texts which "check" (may be NULL) accepts. */
static int read_texts(struct parser *p, const struct value *v, struct strlist *ret,
		      int (*check)(struct parser *p, const struct value *v, const char *text))
{
	size_t n = json_is_array(v->json) ? json_array_size(v->json) : 1;

	if (n == 0 || n > MAX_LIST)
		return wrong(p, v, "has %zu elements; give 1 to %d", n, MAX_LIST);
	for (size_t i = 0; i < n; i++) {
		const struct value one = json_is_array(v->json) ? element(v, i) : *v;
		const char *text = text_of(p, &one);
		int r = text ? 0 : -EINVAL;

		if (r == 0 && check)
			r = check(p, &one, text);
		if (r < 0)
			return r;
		if (strlist_has(ret, text))
			return wrong(p, &one, "\"%.64s\" comes twice; give it once", text);
		strlist_add(ret, text);
	}
	return 0;
}

static int read_globs(struct parser *p, const struct value *v, void *field)
{
	return read_texts(p, v, field, NULL);
}

static int check_id(struct parser *p, const struct value *v, const char *text)
{
	if (id_pattern_is_valid(text))
		return 0;
	return wrong(p, v,
		     "\"%.64s\" is no pair of ids; give vendor:device in hexadecimal "
		     "(\"10de:2330\"), with * and ?",
		     text);
}

static int read_ids(struct parser *p, const struct value *v, void *field)
{
	return read_texts(p, v, field, check_id);
}

static int check_pattern(struct parser *p, const struct value *v, const char *text)
{
	struct err err = { 0 };

	if (nic_pattern_check(text, &err) < 0)
		return wrong(p, v, "%s", err.msg);
	if (nic_pattern_is_role(text))
		return wrong(p, v,
			     "\"%.64s\" asks for a role; give an address, ids or the name of a "
			     "link",
			     text);
	return 0;
}

static int read_patterns(struct parser *p, const struct value *v, void *field)
{
	return read_texts(p, v, field, check_pattern);
}

static int check_address(struct parser *p, const struct value *v, const char *text)
{
	if (strchr(text, ':') && strchr(text, ':') != strrchr(text, ':'))
		return check_pattern(p, v, text);
	return wrong(p, v, "\"%.64s\" is no PCI address; give one (0000:03:00.0), with * and ?",
		     text);
}

static int read_addresses(struct parser *p, const struct value *v, void *field)
{
	return read_texts(p, v, field, check_address);
}

static bool parse_range(const char *text, struct platform_range *range)
{
	const char *dash = strchr(text, '-');
	_cleanup_free_ char *first = NULL;

	if (!dash)
		return false;
	first = xstrndup(text, (size_t)(dash - text));
	range->max = PLATFORM_MAX_COUNT;
	return parse_uint(first, PLATFORM_MAX_COUNT, &range->min) == 0 &&
	       (!dash[1] || parse_uint(dash + 1, PLATFORM_MAX_COUNT, &range->max) == 0) &&
	       range->min <= range->max;
}

static int read_range(struct parser *p, const struct value *v, void *field)
{
	struct platform_range *range = field;
	json_int_t n = json_integer_value(v->json);

	if (json_is_integer(v->json) && n >= 0 && n <= PLATFORM_MAX_COUNT) {
		*range = (struct platform_range){ (unsigned int)n, (unsigned int)n };
		return 0;
	}
	if (json_is_string(v->json) && parse_range(json_string_value(v->json), range))
		return 0;
	return wrong(p, v, "is no count; give a number (8) or a range (\"8-10\", \"1-\") up to %d",
		     PLATFORM_MAX_COUNT);
}

static int read_int(struct parser *p, const struct value *v, int min, int max, int *ret)
{
	json_int_t n = json_integer_value(v->json);

	if (!json_is_integer(v->json) || n < min || n > max)
		return wrong(p, v, "is no number from %d to %d", min, max);
	*ret = (int)n;
	return 0;
}

static int read_yes_no(struct parser *p, const struct value *v, void *field)
{
	if (!json_is_boolean(v->json))
		return wrong(p, v, "is neither true nor false; give one of them");
	*(enum tri *)field = json_is_true(v->json) ? TRI_YES : TRI_NO;
	return 0;
}

/* The index of a word; "words" ends with NULL. */
static int read_word(struct parser *p, const struct value *v, const char *const *words, int *ret)
{
	const char *s = json_string_value(v->json);
	struct buf b = { 0 };
	int r;

	*ret = 0;
	for (int i = 0; s && words[i]; i++) {
		if (streq(s, words[i])) {
			*ret = i;
			return 0;
		}
	}
	for (size_t i = 0; words[i]; i++)
		buf_printf(&b, "%s%s", i ? ", " : "", words[i]);
	r = wrong(p, v, "\"%.40s\" is not allowed; give one of %s", s ? s : "this", b.data);
	buf_done(&b);
	return r;
}

static int read_support(struct parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "unknown", "unsupported", "supported", NULL };
	int i, r = read_word(p, v, words, &i);

	if (r == 0)
		*(enum tri *)field = (enum tri)i;
	return r;
}

/* --- match --- */

struct devices {
	struct strlist *ids;
	struct platform_range *count;
};

static int read_device_ids(struct parser *p, const struct value *v, void *field)
{
	return read_ids(p, v, ((struct devices *)field)->ids);
}

static int read_device_count(struct parser *p, const struct value *v, void *field)
{
	return read_range(p, v, ((struct devices *)field)->count);
}

static int read_devices(struct parser *p, const struct value *v, struct strlist *ids,
			struct platform_range *count)
{
	static const struct key keys[] = {
		{ "ids", read_device_ids, 0 },
		{ "count", read_device_count, 0 },
	};
	struct devices devices = { ids, count };
	int r;

	*count = (struct platform_range){ 1, PLATFORM_MAX_COUNT };
	r = read_mapping(p, v, keys, ARRAY_SIZE(keys), &devices);
	if (r == 0 && ids->n == 0)
		return wrong(p, v, "has no ids; give them (ids: [\"10de:2330\"])");
	return r;
}

static int read_gpus(struct parser *p, const struct value *v, void *field)
{
	struct platform_match *match = field;

	match->gpus = true;
	return read_devices(p, v, &match->gpu_ids, &match->gpu_count);
}

static int read_nics(struct parser *p, const struct value *v, void *field)
{
	struct platform_match *match = field;

	match->nics = true;
	return read_devices(p, v, &match->nic_ids, &match->nic_count);
}

#define MATCH(member) offsetof(struct platform_match, member)

static int read_match(struct parser *p, const struct value *v, void *field)
{
	static const struct key keys[] = {
		{ "gpus", read_gpus, 0 },
		{ "nics", read_nics, 0 },
		{ "functions", read_addresses, MATCH(functions) },
		{ "dmiVendor", read_globs, MATCH(dmi_vendor) },
		{ "dmiProduct", read_globs, MATCH(dmi_product) },
		{ "virtual", read_yes_no, MATCH(virtual_machine) },
		{ "dataDirect", read_yes_no, MATCH(data_direct) },
	};

	if (json_object_size(v->json) == 0)
		return wrong(p, v,
			     "has no condition, so that it would match every machine; give "
			     "at least one");
	return read_mapping(p, v, keys, ARRAY_SIZE(keys), field);
}

/* --- facts --- */

static int read_name(struct parser *p, const struct value *v, void *field)
{
	const char *s = json_string_value(v->json);

	if (!s || !is_dns_label(s))
		return wrong(p, v, "is no name; give lower-case letters, digits and -, at most 63");
	*(char **)field = xstrdup(s);
	return 0;
}

static int read_classes(struct parser *p, const struct value *v, void *field)
{
	static const char *const words[] = {
		"switch", "inline", "data-direct", "numa", "flat", NULL
	};
	size_t n = json_is_array(v->json) ? json_array_size(v->json) : 1;

	if (n == 0)
		return wrong(p, v, "is empty; give a class or a list of them");
	for (size_t i = 0; i < n; i++) {
		const struct value one = json_is_array(v->json) ? element(v, i) : *v;
		int word, r = read_word(p, &one, words, &word);

		if (r < 0)
			return r;
		*(unsigned int *)field |= 1U << (CLASS_SWITCH + word);
	}
	return 0;
}

static int read_rails(struct parser *p, const struct value *v, void *field)
{
	return read_int(p, v, 1, PLATFORM_MAX_RAIL + 1, field);
}

/* "gpu<N>rdma<M>": one <N>, then perhaps one <M>, with text between them. */
static int check_rail_name(struct parser *p, const struct value *v, const char *text)
{
	const char *n = strstr(text, "<N>"), *m = n ? strstr(n + 3, "<M>") : NULL;
	size_t marks = (n != NULL) + (m != NULL), open = 0, close = 0;

	for (const char *c = text; *c; c++) {
		open += *c == '<';
		close += *c == '>';
	}
	if (n && open == marks && close == marks && m != n + 3 && !strpbrk(text, " /:"))
		return 0;
	return wrong(p, v,
		     "\"%.64s\" is no name of links; give one with <N> and perhaps, after other "
		     "text, <M> (\"gpu<N>rdma<M>\")",
		     text);
}

static int read_rail_names(struct parser *p, const struct value *v, void *field)
{
	return read_texts(p, v, field, check_rail_name);
}

static int read_rail_order(struct parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "pcie-root", "pci-domain", NULL };
	int i, r = read_word(p, v, words, &i);

	if (r == 0)
		*(enum platform_rail_order *)field = (enum platform_rail_order)(i + 1);
	return r;
}

static int read_rail_map(struct parser *p, const struct value *v, void *field)
{
	struct platform *to = field;
	const char *bus_id;
	json_t *json;

	if (!json_is_object(v->json) || json_object_size(v->json) == 0 ||
	    json_object_size(v->json) > MAX_LIST)
		return wrong(p, v, "is no map; write 1 to %d lines '\"0000:03:00.0\": 0'",
			     MAX_LIST);
	json_object_foreach((json_t *)(uintptr_t)v->json, bus_id, json) {
		const struct value one = { bus_id, json, yaml_lines_of(v->lines, bus_id) };
		int rail = 0, r;

		if (!is_bus_id(bus_id))
			return wrong(p, &one, "is no PCI address; give one as 0000:03:00.0");
		r = read_int(p, &one, 0, PLATFORM_MAX_RAIL, &rail);
		if (r < 0)
			return r;
		for (size_t i = 0; i < to->n_rail_map; i++) {
			const struct platform_rail *other = &to->rail_map[i];

			if (bus_id_cmp(other->bus_id, bus_id) == 0)
				return wrong(p, &one, "is the same NIC as %s; give each once",
					     other->bus_id);
			if (other->rail == rail)
				return wrong(p, &one,
					     "rail %d is also that of %s; give each NIC a rail of "
					     "its own",
					     rail, other->bus_id);
		}
		*array_push(to->rail_map, to->n_rail_map, to->cap_rail_map) =
			(struct platform_rail){ xstrdup(bus_id), rail };
	}
	return 0;
}

static int read_role(struct parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "rail", "frontend", "storage", NULL };
	int i, r = read_word(p, v, words, &i);

	if (r == 0)
		*(enum topo_role *)field = (enum topo_role)(ROLE_RAIL + i);
	return r;
}

static int read_roles(struct parser *p, const struct value *v, void *field)
{
	static const struct key keys[] = {
		{ "nics", read_patterns, offsetof(struct platform_role, nics) },
		{ "role", read_role, offsetof(struct platform_role, role) },
	};
	struct platform *to = field;
	size_t n = json_array_size(v->json);

	if (n == 0 || n > MAX_LIST)
		return wrong(p, v, "is no list of 1 to %d \"{nics: [...], role: storage}\"",
			     MAX_LIST);
	for (size_t i = 0; i < n; i++) {
		const struct value one = element(v, i);
		struct platform_role *role = array_push(to->roles, to->n_roles, to->cap_roles);
		int r = read_mapping(p, &one, keys, ARRAY_SIZE(keys), role);

		if (r < 0)
			return r;
		if (role->nics.n == 0 || role->role == ROLE_UNKNOWN)
			return wrong(p, &one, "needs both keys, nics and role");
	}
	return 0;
}

/* An empty list says that no chip has such cards. */
static int read_atomic_cards(struct parser *p, const struct value *v, void *field)
{
	struct platform *to = field;

	to->atomic_known = true;
	if (json_is_array(v->json) && json_array_size(v->json) == 0)
		return 0;
	return read_ids(p, v, &to->atomic_cards);
}

static int read_domain_size(struct parser *p, const struct value *v, void *field)
{
	return read_int(p, v, 1, PLATFORM_MAX_COUNT, field);
}

static int read_gdr(struct parser *p, const struct value *v, void *field)
{
	static const char *const words[] = { "dmabuf", "peermem", NULL };
	int i, r = read_word(p, v, words, &i);

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
	       strlen(name) <= MAX_TEXT;
}

static int read_environment(struct parser *p, const struct value *v, void *field)
{
	const char *name;
	json_t *json;

	if (!json_is_object(v->json) || json_object_size(v->json) == 0 ||
	    json_object_size(v->json) > MAX_LIST)
		return wrong(p, v, "is no map; write 1 to %d lines 'NAME: \"value\"'", MAX_LIST);
	json_object_foreach((json_t *)(uintptr_t)v->json, name, json) {
		const struct value one = { name, json, yaml_lines_of(v->lines, name) };
		const char *text;

		if (!is_variable(name))
			return wrong(p, &one,
				     "is no name of a variable; give letters, digits and _");
		text = text_of(p, &one);
		if (!text)
			return -EINVAL;
		strlist_take(field, xasprintf("%s=%s", name, text));
	}
	return 0;
}

/* --- entries --- */

#define ENTRY(member) offsetof(struct platform, member)

static const struct key entry_keys[] = {
	{ "name", read_name, ENTRY(name) },
	{ "match", read_match, ENTRY(match) },
	{ "topologyClass", read_classes, ENTRY(classes) },
	{ "rails", read_rails, ENTRY(rails) },
	{ "railMap", read_rail_map, 0 },
	{ "railNames", read_rail_names, ENTRY(rail_names) },
	{ "railOrder", read_rail_order, ENTRY(rail_order) },
	{ "routedRails", read_yes_no, ENTRY(routed_rails) },
	{ "roles", read_roles, 0 },
	{ "atomicCards", read_atomic_cards, 0 },
	{ "hairpin", read_support, ENTRY(hairpin) },
	{ "crossRail", read_support, ENTRY(cross_rail) },
	{ "nvlinkDomainSize", read_domain_size, ENTRY(nvlink_domain_size) },
	{ "gdr", read_gdr, ENTRY(gdr) },
	{ "environment", read_environment, ENTRY(environment) },
};

static int read_entry(struct parser *p, const struct value *v, struct platforms *to)
{
	struct platform *platform = array_push(to->items, to->n, to->cap);
	int r;

	platform->rails = TOPO_UNKNOWN;
	platform->nvlink_domain_size = TOPO_UNKNOWN;
	r = read_mapping(p, v, entry_keys, ARRAY_SIZE(entry_keys), platform);
	if (r < 0)
		return r;
	if (!platform->name || !json_object_get(v->json, "match"))
		return wrong(p, v, "an entry lacks its %s; give name and match",
			     platform->name ? "match" : "name");
	for (size_t i = 0; i + 1 < to->n; i++)
		if (streq(to->items[i].name, platform->name))
			return wrong(p, v, "two entries are called %s; give each its own name",
				     platform->name);
	if (platform->rail_order == RAIL_ORDER_PCI_DOMAIN && platform->rails < 0)
		return wrong(p, v, "railOrder pci-domain needs the number of rails; give rails");
	return 0;
}

static int read_entries(struct parser *p, const struct value *v, void *field)
{
	size_t n = json_array_size(v->json);

	if (!json_is_array(v->json) || n > MAX_ENTRIES)
		return wrong(p, v, "is no list of at most %d entries", MAX_ENTRIES);
	for (size_t i = 0; i < n; i++) {
		const struct value one = element(v, i);
		int r = read_entry(p, &one, field);

		if (r < 0)
			return r;
	}
	return 0;
}

int platforms_parse(const char *text, size_t len, const char *name, struct platforms **ret,
		    struct err *err)
{
	static const struct key keys[] = { { "platforms", read_entries, 0 } };
	_cleanup_(platforms_freep) struct platforms *platforms = xnew(struct platforms);
	_cleanup_json_ json_t *json = NULL, *lines = NULL;
	struct parser p = { name, err };
	int r = yaml_parse_lines(text, len, &json, &lines, err);
	const struct value top = { "the file", json, lines };

	if (r < 0)
		return err_wrap(err, "%s", name);
	if (!json_is_null(json)) /* nothing but comments is no entry */
		r = read_mapping(&p, &top, keys, ARRAY_SIZE(keys), platforms);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(platforms);
	return 0;
}

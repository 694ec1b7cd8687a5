/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_TOPO_CHECK_H
#define TWINRAIL_TESTS_TOPO_CHECK_H

#include "base/bus_id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/publish.h"
#include "topo/inventory.h"
#include "topo/output.h"

/*
 * What holds for the topology of every machine, however broken its facts are.  Each check returns
 * NULL or a text that says what is wrong (malloc'ed).
 */
#define UNLESS(condition, ...)                                                                     \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return xasprintf(__VA_ARGS__);                                             \
	} while (0)

static inline char *check_gpu_place(const struct topo_gpu *gpu)
{
	UNLESS(!gpu->pcie_root || starts_with(gpu->pcie_root, "pci"), "%s: pcieRoot %s", gpu->name,
	       gpu->pcie_root);
	UNLESS(gpu->numa_node >= TOPO_UNKNOWN, "%s: NUMA node %d", gpu->name, gpu->numa_node);
	UNLESS(gpu->minor >= TOPO_UNKNOWN, "%s: minor %d", gpu->name, gpu->minor);
	UNLESS(!gpu->pcie_switch || is_bus_id(gpu->pcie_switch), "%s: switch %s", gpu->name,
	       gpu->pcie_switch);
	return NULL;
}

static inline char *check_nic_place(const struct inventory *inv, const struct topo_nic *nic)
{
	UNLESS(!nic->pcie_root || starts_with(nic->pcie_root, "pci"), "%s: pcieRoot %s", nic->name,
	       nic->pcie_root);
	UNLESS(nic->numa_node >= TOPO_UNKNOWN, "%s: NUMA node %d", nic->name, nic->numa_node);
	UNLESS(!nic->pcie_switch || is_bus_id(nic->pcie_switch), "%s: switch %s", nic->name,
	       nic->pcie_switch);
	UNLESS(nic->best_gpu < 0 || nic->best_path != PATH_UNKNOWN, /* several may be as near */
	       "%s: nearest GPU %d by path %s", nic->name, nic->best_gpu,
	       path_class_name(nic->best_path));
	UNLESS(nic->best_gpu < (int)inv->n_gpus, "%s: nearest GPU %d of %zu", nic->name,
	       nic->best_gpu, inv->n_gpus);
	return NULL;
}

/* The PF that a VF follows, or NULL. */
static inline const struct topo_nic *pf_of(const struct inventory *inv, const struct topo_nic *nic)
{
	return nic->pf_bus_id ? inventory_nic(inv, nic->pf_bus_id) : NULL;
}

static inline char *check_nic(const struct inventory *inv, const struct topo_nic *nic)
{
	UNLESS(nic->card < (int)inv->n_cards, "%s: card %d of %zu", nic->name, nic->card,
	       inv->n_cards);
	UNLESS(nic->card < 0 || !nic->is_vf, "%s: a VF in a card", nic->name);
	UNLESS((nic->card < 0) == (nic->pf_count < 0) && (nic->card < 0) == (nic->pf_index < 0),
	       "%s: card %d, PF %d of %d", nic->name, nic->card, nic->pf_index, nic->pf_count);
	UNLESS(nic->card < 0 || !inv->cards[nic->card].atomic || !nic->standalone,
	       "%s: a PF of an atomic card may be handed out alone", nic->name);
	UNLESS(!pf_of(inv, nic) || (nic->is_vf && !pf_of(inv, nic)->is_vf), "%s: VF of %s",
	       nic->name, nic->pf_bus_id);
	UNLESS(!nic->is_vf || !nic->standalone || !pf_of(inv, nic),
	       "%s: a VF of a PF that is there may be handed out alone", nic->name);
	UNLESS((nic->rail < 0) == !nic->rail_source, "%s: rail %d by %s", nic->name, nic->rail,
	       nic->rail_source ? nic->rail_source : "nothing");
	UNLESS(nic->rail >= 0 || nic->rail_group < 0, "%s: rail group %d without a rail", nic->name,
	       nic->rail_group);
	for (size_t i = 0; i < nic->n_ports; i++)
		for (size_t k = i + 1; k < nic->n_ports; k++)
			UNLESS(nic->ports[i].port != nic->ports[k].port, "%s: port %u twice",
			       nic->name, nic->ports[i].port);
	return check_nic_place(inv, nic);
}

/* Sorted by address, each once, and found by name and address. */
static inline char *check_devices(const struct inventory *inv)
{
	char *wrong = NULL;

	for (size_t i = 0; i < inv->n_gpus && !wrong; i++) {
		const struct topo_gpu *gpu = &inv->gpus[i];

		UNLESS(i == 0 || bus_id_cmp(inv->gpus[i - 1].bus_id, gpu->bus_id) < 0,
		       "%s is not behind %s", gpu->name, inv->gpus[i - 1].name);
		UNLESS(inventory_gpu(inv, gpu->name) == gpu &&
			       inventory_gpu(inv, gpu->bus_id) == gpu,
		       "%s is not found", gpu->name);
		UNLESS(is_dns_label(gpu->name), "%s is no DNS label", gpu->name);
		wrong = check_gpu_place(gpu);
	}
	for (size_t i = 0; i < inv->n_nics && !wrong; i++) {
		const struct topo_nic *nic = &inv->nics[i];

		UNLESS(i == 0 || bus_id_cmp(inv->nics[i - 1].bus_id, nic->bus_id) < 0,
		       "%s is not behind %s", nic->name, inv->nics[i - 1].name);
		UNLESS(inventory_nic(inv, nic->name) == nic &&
			       inventory_nic(inv, nic->bus_id) == nic,
		       "%s is not found", nic->name);
		UNLESS(is_dns_label(nic->name), "%s is no DNS label", nic->name);
		wrong = check_nic(inv, nic);
	}
	return wrong;
}

static inline char *check_card(const struct inventory *inv, size_t index)
{
	const struct topo_card *card = &inv->cards[index];

	UNLESS(is_dns_label(card->id), "%s is no DNS label", card->id);
	UNLESS(inventory_card(inv, card->id) == card, "%s is not found", card->id);
	UNLESS(card->n_members >= 2, "%s has %zu members", card->id, card->n_members);
	UNLESS(!card->agreement || card->agreement[0], "%s: an empty list of keys", card->id);
	for (size_t i = 0; i < card->n_members; i++) {
		int n = card->members[i];
		const struct topo_nic *nic;

		UNLESS(n >= 0 && n < (int)inv->n_nics, "%s: member %d of %zu NICs", card->id, n,
		       inv->n_nics);
		nic = &inv->nics[n];
		UNLESS(i == 0 || card->members[i - 1] < n, "%s: members are not sorted", card->id);
		UNLESS(nic->card == (int)index, "%s: %s points to card %d", card->id, nic->name,
		       nic->card);
		UNLESS(nic->pf_index == (int)i && nic->pf_count == (int)card->n_members,
		       "%s: %s is PF %d of %d", card->id, nic->name, nic->pf_index, nic->pf_count);
		UNLESS(!card->dma_bus_id ||
			       (nic->dma_bus_id && streq(card->dma_bus_id, nic->dma_bus_id)),
		       "%s: %s has another Data Direct function", card->id, nic->name);
	}
	return NULL;
}

/* A NIC is member of the card that it points to, and of no other. */
static inline char *check_cards(const struct inventory *inv)
{
	_cleanup_free_ size_t *seen = xcalloc(inv->n_nics + 1, sizeof(*seen));
	char *wrong = NULL;

	for (size_t i = 0; i < inv->n_cards && !wrong; i++) {
		wrong = check_card(inv, i);
		for (size_t k = 0; k < inv->cards[i].n_members && !wrong; k++)
			seen[inv->cards[i].members[k]]++;
	}
	for (size_t i = 0; i < inv->n_nics && !wrong; i++)
		UNLESS(seen[i] == (inv->nics[i].card >= 0), "%s is in %zu cards", inv->nics[i].name,
		       seen[i]);
	return wrong;
}

static inline bool may_be_best(const struct topo_nic *nic)
{
	return nic->role != ROLE_FRONTEND && nic->role != ROLE_STORAGE && !nic->withheld &&
	       !nic->excluded && !nic->broken;
}

static inline char *check_pair(const struct inventory *inv, size_t gpu, size_t nic)
{
	const struct topo_pair *pair = inventory_pair(inv, gpu, nic);
	const char *a = inv->gpus[gpu].name, *b = inv->nics[nic].name;
	const char *switch_a = inv->gpus[gpu].pcie_switch, *switch_b = inv->nics[nic].pcie_switch;
	bool one_switch = switch_a && switch_b && streq(switch_a, switch_b);

	UNLESS(pair && pair->gpu == (int)gpu && pair->nic == (int)nic, "%s, %s: not their pair", a,
	       b);
	UNLESS(!pair->best || pair->path != PATH_UNKNOWN, "%s, %s: best by an unknown path", a, b);
	UNLESS(!pair->best || may_be_best(&inv->nics[nic]), "%s, %s: best, but not handed out", a,
	       b);
	UNLESS(!pair->best || inv->topology_class != CLASS_FLAT, "%s, %s: best on a flat machine",
	       a, b);
	UNLESS((pair->hops >= 0) == (pair->path <= PATH_PHB), "%s, %s: path %s with %d hops", a, b,
	       path_class_name(pair->path), pair->hops);
	/* Without a switch it may be unknown which, e.g. of a bridge above a downstream port. */
	UNLESS(!switch_a || !switch_b || pair->path == PATH_UNKNOWN ||
		       one_switch == (pair->path <= PATH_PXB),
	       "%s, %s: path %s, switches %s and %s", a, b, path_class_name(pair->path), switch_a,
	       switch_b);
	return NULL;
}

static inline char *check_pairs(const struct inventory *inv)
{
	char *wrong = NULL;

	UNLESS(inv->n_pairs == inv->n_gpus * inv->n_nics, "%zu pairs of %zu GPUs and %zu NICs",
	       inv->n_pairs, inv->n_gpus, inv->n_nics);
	for (size_t g = 0; g < inv->n_gpus; g++)
		for (size_t n = 0; n < inv->n_nics && !wrong; n++)
			wrong = check_pair(inv, g, n);
	return wrong;
}

/* A VF is on the rail of its PF; apart from that, one NIC a rail. */
static inline char *check_rails(const struct inventory *inv)
{
	int rails = 0;

	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		const struct topo_nic *pf = pf_of(inv, nic);

		UNLESS(!pf || (pf->rail == nic->rail && pf->rail_group == nic->rail_group),
		       "%s: rail %d, its PF %s has %d", nic->name, nic->rail, nic->pf_bus_id,
		       pf->rail);
		rails += !pf && nic->rail >= 0;
		for (size_t k = i + 1; !pf && nic->rail >= 0 && k < inv->n_nics; k++) {
			const struct topo_nic *other = &inv->nics[k];

			UNLESS(nic->rail != other->rail || pf_of(inv, other),
			       "%s and %s are on rail %d", nic->name, other->name, nic->rail);
		}
	}
	UNLESS(inv->rail_count == rails, "%d rails, counted %d", inv->rail_count, rails);
	return NULL;
}

static inline char *check_warnings(const struct inventory *inv)
{
	for (size_t i = 0; i < inv->n_warnings; i++) {
		const struct topo_warning *w = &inv->warnings[i];

		UNLESS(w->code && is_dns_label(w->code), "code \"%s\"", w->code ? w->code : "");
		UNLESS(w->object && *w->object, "%s names no object: %s", w->code, w->message);
		UNLESS(w->message && *w->message, "%s of %s says nothing", w->code, w->object);
	}
	return NULL;
}

/* No empty text, nowhere; "where" is for the message. */
static inline char *check_filled(const json_t *value, const char *where)
{
	const char *key;
	json_t *v;
	size_t i;
	char *wrong = NULL;

	UNLESS(!json_is_string(value) || json_string_length(value), "%s is \"\"", where);
	UNLESS(!json_is_null(value), "%s is null", where);
	if (json_is_array(value))
		json_array_foreach((json_t *)(uintptr_t)value, i, v)
			if (!wrong)
				wrong = check_filled(v, where);
	if (json_is_object(value))
		json_object_foreach((json_t *)(uintptr_t)value, key, v)
			if (!wrong)
				wrong = check_filled(v, key);
	return wrong;
}

/* No control characters but new lines and those in "also". */
static inline char *check_text(const char *text, const char *also, const char *what)
{
	UNLESS(text && *text, "%s: no text", what);
	UNLESS(utf8_valid(text, strlen(text)), "%s: not UTF-8", what);
	for (const char *p = text; *p; p++)
		UNLESS((unsigned char)*p >= 0x20 || *p == '\n' || strchr(also, *p),
		       "%s: control character %02x", what, (unsigned char)*p);
	return NULL;
}

/* What is said of single bridges adds up to what is said of the pair, in numbers and in words. */
static inline char *check_acs_told(const struct topo_pair *pair, const json_t *json)
{
	const json_t *told = json_path(json, "acsRedirect"), *bridge;
	size_t i, n_yes = 0, n_no = 0, n = json_array_size(json_path(json, "bridges"));
	enum tri sum;

	json_array_foreach(json_path(json, "bridges"), i, bridge) {
		const json_t *redirects = json_object_get(bridge, "acsRedirect");
		const char *effect = json_path_string(bridge, "acsEffect");
		const char *bits = json_path_string(bridge, "acs");
		const char *bus_id = json_path_string(bridge, "busID");

		UNLESS(json_is_true(redirects) == (effect && starts_with(effect, "sends ")),
		       "%s: ACS %s, against what is said of it", bus_id, effect);
		UNLESS(!json_is_true(redirects) || (bits && (bits[3] == '1' || bits[4] == '1')),
		       "%s: ACS %s %s", bus_id, bits, effect);
		n_yes += json_is_true(redirects);
		n_no += json_is_false(redirects);
	}
	sum = n_yes ? TRI_YES : n > 0 && n_no == n ? TRI_NO : TRI_UNKNOWN;
	UNLESS(sum == pair->acs_redirect, "ACS of the bridges: %s, of the pair: %s", tri_name(sum),
	       tri_name(pair->acs_redirect));
	UNLESS(told ? json_is_true(told) == (sum == TRI_YES) : sum == TRI_UNKNOWN,
	       "ACS of the pair is told wrong");
	return NULL;
}

static inline char *check_explained(const struct inventory *inv, size_t gpu, size_t nic)
{
	_cleanup_free_ char *text = topo_explain(inv, gpu, nic, false);
	_cleanup_json_ json_t *json = topo_explain_json(inv, gpu, nic);
	char *wrong = check_filled(json, "the explanation");

	if (!wrong)
		wrong = check_acs_told(inventory_pair(inv, gpu, nic), json);
	return wrong ? wrong : check_text(text, "", "explanation");
}

/* What to look at besides the model itself: the outputs are most of the work. */
enum { CHECK_JSON = 1, CHECK_TREE = 2, CHECK_PICTURES = 4, CHECK_EXPLAIN = 8, CHECK_SLICES = 16 };
#define CHECK_ALL 31

static inline char *check_json(const struct inventory *inv)
{
	_cleanup_json_ json_t *json = topo_to_json(inv);

	return check_filled(json, "the document");
}

static inline char *check_trees(const struct inventory *inv)
{
	_cleanup_free_ char *tree = topo_to_tree(inv, TREE_VERBOSE), *matrix = topo_to_matrix(inv);
	_cleanup_free_ char *coloured = topo_to_tree(inv, TREE_COLOUR);
	char *wrong = check_text(tree, "", "tree");

	if (!wrong)
		wrong = check_text(coloured, "\033", "tree in colours");
	return wrong ? wrong : check_text(matrix, "", "matrix");
}

static inline char *check_pictures(const struct inventory *inv)
{
	_cleanup_free_ char *svg = topo_to_svg(inv), *dot = topo_to_dot(inv);
	char *wrong = check_text(svg, "\t", "SVG");

	return wrong ? wrong : check_text(dot, "\t", "graph");
}

/* Of some pairs: there may be many. */
static inline char *check_explanations(const struct inventory *inv)
{
	char *wrong = NULL;

	for (size_t i = 0; i < inv->n_pairs && !wrong; i += 1 + inv->n_pairs / 3)
		wrong = check_explained(inv, (size_t)inv->pairs[i].gpu, (size_t)inv->pairs[i].nic);
	return wrong;
}

#include "fuzz/slice_check.h"

/* "what": CHECK_…, or-ed. */
static inline char *check_inventory(const struct inventory *inv, unsigned int what)
{
	static char *(*const model[])(const struct inventory *) = {
		check_devices, check_cards, check_pairs, check_rails, check_warnings,
	};
	static char *(*const outputs[])(const struct inventory *) = {
		check_json, check_trees, check_pictures, check_explanations, check_published,
	};
	char *wrong = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(model) && !wrong; i++)
		wrong = model[i](inv);
	for (size_t i = 0; i < ARRAY_SIZE(outputs) && !wrong; i++)
		if (what & 1U << i)
			wrong = outputs[i](inv);
	return wrong;
}

#endif

// SPDX-License-Identifier: Apache-2.0
/* Which devices are published, in which order, and what they share. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

static const struct {
	const char *word;
	unsigned int kind;
} kind_words[] = {
	{ "card", PUBLISH_CARD },
	{ "nic", PUBLISH_NIC },
	{ "pf", PUBLISH_PF },
	{ "gpu", PUBLISH_GPU },
};

int publish_parse_kinds(const char *text, unsigned int *ret, struct err *err)
{
	struct strlist words __attribute__((cleanup(strlist_done))) = { 0 };
	unsigned int kinds = 0;

	strlist_split(&words, text, ',');
	for (size_t i = 0; i < words.n; i++) {
		size_t k = 0;

		while (k < ARRAY_SIZE(kind_words) && !streq(kind_words[k].word, words.items[i]))
			k++;
		if (k == ARRAY_SIZE(kind_words))
			return err_set(err, ERR_INVALID, EINVAL,
				       "unknown kind of device '%.64s': use a list of card, nic, "
				       "pf, gpu",
				       words.items[i]);
		kinds |= kind_words[k].kind;
	}
	if (!kinds)
		return err_set(err, ERR_INVALID, EINVAL,
			       "no kind of device is named: use a list of card, nic, pf, gpu");
	*ret = kinds;
	return 0;
}

/* The card whose functions are handed out together only, or NULL. */
static const struct topo_card *atomic_card(const struct inventory *inv, const struct topo_nic *nic)
{
	if (nic->card < 0 || (size_t)nic->card >= inv->n_cards || !inv->cards[nic->card].atomic)
		return NULL;
	return &inv->cards[nic->card];
}

/* The NICs that the node itself uses are never handed out (docs/design.md §6). */
static bool is_published_card(const struct inventory *inv, const struct topo_card *card)
{
	if (!card->atomic)
		return false;
	for (size_t i = 0; i < card->n_members; i++)
		if (inv->nics[card->members[i]].role == ROLE_FRONTEND)
			return false;
	return card->n_members > 0;
}

unsigned int publish_effective_kinds(const struct inventory *inv, unsigned int kinds)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_cards; i++)
		n += is_published_card(inv, &inv->cards[i]);
	return n > PUBLISH_PF_MAX_CARDS ? kinds & ~(unsigned int)PUBLISH_PF : kinds;
}

bool publish_can_serve(const struct topo_gpu *gpu)
{
	return streq(gpu->vendor, "nvidia");
}

/* A device with the address it is sorted by. */
struct item {
	const void *what;
	const char *bus_id;
};

struct items {
	struct item *a;
	size_t n, cap;
};

static void items_add(struct items *items, const void *what, const char *bus_id)
{
	*array_push(items->a, items->n, items->cap) = (struct item){ what, bus_id };
}

static int item_cmp(const void *a, const void *b)
{
	return bus_id_cmp(((const struct item *)a)->bus_id, ((const struct item *)b)->bus_id);
}

static void items_sort(struct items *items)
{
	if (items->n > 1)
		qsort(items->a, items->n, sizeof(*items->a), item_cmp);
}

static void items_done(struct items *items)
{
	free(items->a);
}

#define _cleanup_items_ __attribute__((cleanup(items_done)))

static void sorted_cards(const struct inventory *inv, struct items *ret)
{
	for (size_t i = 0; i < inv->n_cards; i++) {
		const struct topo_card *card = &inv->cards[i];
		const char *lowest = NULL;

		if (!is_published_card(inv, card))
			continue;
		for (size_t m = 0; m < card->n_members; m++) {
			const char *bus_id = inv->nics[card->members[m]].bus_id;

			if (!lowest || bus_id_cmp(bus_id, lowest) < 0)
				lowest = bus_id;
		}
		items_add(ret, card, lowest);
	}
	items_sort(ret);
}

/* Functions that may be handed out alone, or ("of_cards") those of atomic cards. */
static void sorted_nics(const struct inventory *inv, bool of_cards, struct items *ret)
{
	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		const struct topo_card *card = atomic_card(inv, nic);

		if (nic->role == ROLE_FRONTEND)
			continue;
		if (of_cards ? card && !nic->is_vf && is_published_card(inv, card)
			     : !card && nic->standalone)
			items_add(ret, nic, nic->bus_id);
	}
	items_sort(ret);
}

static bool overlapping(unsigned int kinds)
{
	return (kinds & PUBLISH_CARD) && (kinds & PUBLISH_PF);
}

static json_t *counter_value(const struct topo_nic *nic)
{
	_cleanup_free_ char *text = quantity_text(nic->num_vfs > 1 ? (uint64_t)nic->num_vfs : 1);
	json_t *value = json_object();

	json_set_string(value, "value", text);
	return value;
}

/* All counters of the card, or those of one function. */
static json_t *counters_of(const struct inventory *inv, const struct topo_card *card,
			   const struct topo_nic *only)
{
	json_t *counters = json_object();

	for (size_t i = 0; i < card->n_members; i++) {
		const struct topo_nic *nic = &inv->nics[card->members[i]];

		if (!only || nic == only)
			object_set_new(counters, nic->name, counter_value(nic));
	}
	return counters;
}

static void consume(json_t *device, const struct inventory *inv, const struct topo_card *card,
		    const struct topo_nic *only)
{
	json_t *list = json_array(), *entry = json_object();

	json_set_string(entry, "counterSet", card->id);
	object_set_new(entry, "counters", counters_of(inv, card, only));
	array_append_new(list, entry);
	object_set_new(device, "consumesCounters", list);
}

static void add_device(json_t *devices, json_t *device)
{
	const char *name = json_path_string(device, "name");

	if (!name || !is_dns_label(name)) {
		log_debug("device left out: its name is not a DNS label",
			  KV("device", "%s", name ? name : ""));
		json_decref(device);
		return;
	}
	array_append_new(devices, device);
}

json_t *publish_devices(const struct inventory *inv, const struct publish_options *options,
			unsigned int kinds)
{
	_cleanup_items_ struct items cards = { 0 }, nics = { 0 }, pfs = { 0 }, gpus = { 0 };
	json_t *devices = json_array();

	sorted_cards(inv, &cards);
	for (size_t i = 0; kinds & PUBLISH_CARD && i < cards.n; i++) {
		const struct topo_card *card = cards.a[i].what;
		json_t *device = device_card(inv, card, options);

		if (overlapping(kinds))
			consume(device, inv, card, NULL);
		add_device(devices, device);
	}
	sorted_nics(inv, false, &nics);
	for (size_t i = 0; kinds & PUBLISH_NIC && i < nics.n; i++)
		add_device(devices, device_nic(inv, nics.a[i].what, "nic", options));
	sorted_nics(inv, true, &pfs);
	for (size_t i = 0; kinds & PUBLISH_PF && i < pfs.n; i++) {
		const struct topo_nic *nic = pfs.a[i].what;
		json_t *device = device_nic(inv, nic, "pf", options);

		if (overlapping(kinds))
			consume(device, inv, atomic_card(inv, nic), nic);
		add_device(devices, device);
	}
	for (size_t i = 0; kinds & PUBLISH_GPU && i < inv->n_gpus; i++)
		if (publish_can_serve(&inv->gpus[i]))
			items_add(&gpus, &inv->gpus[i], inv->gpus[i].bus_id);
	items_sort(&gpus);
	for (size_t i = 0; i < gpus.n; i++)
		add_device(devices, device_gpu(inv, gpus.a[i].what));
	return devices;
}

json_t *publish_counter_sets(const struct inventory *inv, unsigned int kinds)
{
	_cleanup_items_ struct items cards = { 0 };
	json_t *sets = json_array();

	sorted_cards(inv, &cards);
	for (size_t i = 0; overlapping(kinds) && i < cards.n; i++) {
		const struct topo_card *card = cards.a[i].what;
		json_t *set = json_object();

		json_set_string(set, "name", card->id);
		object_set_new(set, "counters", counters_of(inv, card, NULL));
		array_append_new(sets, set);
	}
	return sets;
}

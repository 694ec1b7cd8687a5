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

static bool is_published_card(const struct inventory *inv, const struct topo_card *card)
{
	if (!card->atomic)
		return false;
	for (size_t i = 0; i < card->n_members; i++)
		if (topo_is_kept_back(&inv->nics[card->members[i]]))
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

static bool is_published_gpu(const struct topo_gpu *gpu)
{
	return publish_can_serve(gpu) && !gpu->partition && !gpu->broken && topo_is_described(gpu);
}

/* A function that may be handed out alone, or ("of_cards") one of a published card. */
static bool is_published_nic(const struct inventory *inv, const struct topo_nic *nic, bool of_cards)
{
	const struct topo_card *card = atomic_card(inv, nic);

	if (topo_is_kept_back(nic))
		return false;
	return of_cards ? card && !nic->is_vf && is_published_card(inv, card)
			: !card && nic->standalone;
}

static bool overlapping(unsigned int kinds)
{
	return (kinds & PUBLISH_CARD) && (kinds & PUBLISH_PF);
}

static json_t *counter_value(const struct topo_nic *nic)
{
	_cleanup_free_ char *text = quantity_text(nic->num_vfs > 1 ? (uint64_t)nic->num_vfs : 1);
	json_t *value = json_new_object();

	json_set_string(value, "value", text);
	return value;
}

/* All counters of the card, or those of one function. */
static json_t *counters_of(const struct inventory *inv, const struct topo_card *card,
			   const struct topo_nic *only)
{
	json_t *counters = json_new_object();

	for (size_t i = 0; i < card->n_members; i++) {
		const struct topo_nic *nic = &inv->nics[card->members[i]];

		if (!only || nic == only)
			json_set(counters, nic->name, counter_value(nic));
	}
	return counters;
}

static void consume(json_t *device, const struct inventory *inv, const struct topo_card *card,
		    const struct topo_nic *only)
{
	json_t *list = json_new_array(), *entry = json_new_object();

	json_set_string(entry, "counterSet", card->id);
	json_set(entry, "counters", counters_of(inv, card, only));
	json_add(list, entry);
	json_set(device, "consumesCounters", list);
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
	json_add(devices, device);
}

static void add_cards(json_t *devices, const struct inventory *inv,
		      const struct publish_options *options, bool counted)
{
	for (size_t i = 0; i < inv->n_cards; i++) {
		const struct topo_card *card = &inv->cards[i];
		json_t *device;

		if (!is_published_card(inv, card))
			continue;
		device = device_card(inv, card, options);
		if (counted)
			consume(device, inv, card, NULL);
		add_device(devices, device);
	}
}

static void add_nics(json_t *devices, const struct inventory *inv,
		     const struct publish_options *options)
{
	for (size_t i = 0; i < inv->n_nics; i++)
		if (is_published_nic(inv, &inv->nics[i], false))
			add_device(devices, device_nic(inv, &inv->nics[i], "nic", options));
}

static void add_pfs(json_t *devices, const struct inventory *inv,
		    const struct publish_options *options, bool counted)
{
	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		json_t *device;

		if (!is_published_nic(inv, nic, true))
			continue;
		device = device_nic(inv, nic, "pf", options);
		if (counted)
			consume(device, inv, atomic_card(inv, nic), nic);
		add_device(devices, device);
	}
}

/* Within each kind the order of the inventory: by address. */
json_t *publish_devices(const struct inventory *inv, const struct publish_options *options,
			unsigned int kinds)
{
	json_t *devices = json_new_array();

	if (kinds & PUBLISH_CARD)
		add_cards(devices, inv, options, overlapping(kinds));
	if (kinds & PUBLISH_NIC)
		add_nics(devices, inv, options);
	if (kinds & PUBLISH_PF)
		add_pfs(devices, inv, options, overlapping(kinds));
	for (size_t i = 0; kinds & PUBLISH_GPU && i < inv->n_gpus; i++)
		if (is_published_gpu(&inv->gpus[i]))
			add_device(devices, device_gpu(inv, &inv->gpus[i], options));
	return devices;
}

json_t *publish_counter_sets(const struct inventory *inv, unsigned int kinds)
{
	json_t *sets = json_new_array();

	for (size_t i = 0; overlapping(kinds) && i < inv->n_cards; i++) {
		const struct topo_card *card = &inv->cards[i];
		json_t *set;

		if (!is_published_card(inv, card))
			continue;
		set = json_new_object();
		json_set_string(set, "name", card->id);
		json_set(set, "counters", counters_of(inv, card, NULL));
		json_add(sets, set);
	}
	return sets;
}

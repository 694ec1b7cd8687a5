// SPDX-License-Identifier: Apache-2.0
/* Cards (the PFs of one NIC chip), their Data Direct functions, and the roots that follow. */
#include "topo/build.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"

/* The keys that two PFs of one chip share. */
enum key { KEY_GUID, KEY_SLOT, KEY_SN, KEY_V3, KEY_BRIDGE, KEY_SWITCH_ID, N_KEYS };

static const char *const key_names[N_KEYS] = {
	"sys_image_guid", "slot", "vpd-sn", "vpd-v3", "parent-bridge", "phys_switch_id",
};

static bool is_pf(const struct builder *b, size_t i)
{
	return !b->inv->nics[i].is_vf;
}

/* How two values that may be absent compare. */
static enum tri compare(const char *a, const char *b)
{
	if (!a || !b)
		return TRI_UNKNOWN;
	return streq(a, b) ? TRI_SUPPORTED : TRI_UNSUPPORTED;
}

/* The directory above the function in the PCI tree; malloc'ed, NULL unknown. */
static char *parent_bridge(const struct hw_pci *pci)
{
	const char *slash = pci->path ? strrchr(pci->path, '/') : NULL;

	return slash ? xstrndup(pci->path, (size_t)(slash - pci->path)) : NULL;
}

/* TRI_SUPPORTED: equal.  TRI_UNSUPPORTED: both known and different. */
static enum tri agree(const struct builder *b, size_t i, size_t k, enum key key)
{
	const struct nic_facts *x = &b->nics[i], *y = &b->nics[k];
	_cleanup_free_ char *bridge_x = NULL, *bridge_y = NULL;

	switch (key) {
	case KEY_GUID:
		return compare(x->rdma->sys_image_guid, y->rdma->sys_image_guid);
	case KEY_SLOT:
		return bus_id_same_slot(x->pci->bus_id, y->pci->bus_id) ? TRI_SUPPORTED
									: TRI_UNSUPPORTED;
	case KEY_SN:
		return compare(x->pci->vpd_sn, y->pci->vpd_sn);
	case KEY_V3:
		return compare(x->pci->vpd_v3, y->pci->vpd_v3);
	case KEY_BRIDGE:
		bridge_x = parent_bridge(x->pci);
		bridge_y = parent_bridge(y->pci);
		return compare(bridge_x, bridge_y);
	default:
		return compare(x->netdev ? x->netdev->phys_switch_id : NULL,
			       y->netdev ? y->netdev->phys_switch_id : NULL);
	}
}

/* Two PFs that claim to be one chip: what speaks against it?  NULL: nothing. */
static const char *contradiction(const struct builder *b, size_t i, size_t k)
{
	const struct topo_nic *x = &b->inv->nics[i], *y = &b->inv->nics[k];
	/* Slot and bridge differ on a card that is split over two PCI domains. */
	static const enum key keys[] = { KEY_GUID, KEY_SN, KEY_V3, KEY_SWITCH_ID };

	if (x->vendor_id != y->vendor_id || x->device_id != y->device_id)
		return "device id";
	for (size_t n = 0; n < ARRAY_SIZE(keys); n++) {
		/* Other vendors give each port a sys_image_guid of its own. */
		if (keys[n] == KEY_GUID && x->vendor_id != VENDOR_MELLANOX)
			continue;
		if (agree(b, i, k, keys[n]) == TRI_UNSUPPORTED)
			return key_names[keys[n]];
	}
	return NULL;
}

static bool claims_same_chip(const struct builder *b, size_t i, size_t k)
{
	return agree(b, i, k, KEY_GUID) == TRI_SUPPORTED ||
	       (agree(b, i, k, KEY_SLOT) == TRI_SUPPORTED &&
		agree(b, i, k, KEY_SN) == TRI_SUPPORTED);
}

static void set_agreement(struct builder *b, struct topo_card *card)
{
	struct strlist names = { 0 };

	for (int key = 0; key < N_KEYS; key++) {
		bool all = true;

		for (size_t m = 1; m < card->n_members; m++)
			all = all && agree(b, (size_t)card->members[0], (size_t)card->members[m],
					   (enum key)key) == TRI_SUPPORTED;
		if (all)
			strlist_add(&names, key_names[key]);
	}
	card->agreement = names.items; /* NULL: what makes it a card is another key for each */
}

/*
 * Its PFs work only together: as the platform file says, otherwise ConnectX-8 on a node with Data
 * Direct functions.
 */
static bool has_atomic_cards(const struct builder *b, const struct topo_nic *nic)
{
	enum tri said = platform_atomic_card(b->platform, nic->vendor_id, nic->device_id);

	if (said != TRI_UNKNOWN)
		return said == TRI_YES;
	return nic->device_id == 0x1023 && topo_may_have_data_direct(nic) && b->data_direct;
}

/* A single PF may be half of an atomic card, as far as is known. */
static bool may_be_half(const struct builder *b, const struct topo_nic *nic)
{
	enum tri said = platform_atomic_card(b->platform, nic->vendor_id, nic->device_id);

	return said == TRI_UNKNOWN ? topo_may_have_data_direct(nic) : said == TRI_YES;
}

static void add_card(struct builder *b, const int *members, size_t n)
{
	struct inventory *inv = b->inv;
	struct topo_card *card = array_push(inv->cards, inv->n_cards, b->cap_cards);
	const struct topo_nic *first = &inv->nics[members[0]];
	bool one_dma = true;

	*card = (struct topo_card){
		.id = device_name("card", first->bus_id),
		.members = xcalloc(n, sizeof(int)),
		.n_members = n,
		.atomic = has_atomic_cards(b, first),
	};
	*strrchr(card->id, '-') = '\0'; /* without the function */
	memcpy(card->members, members, n * sizeof(int));
	for (size_t i = 0; i < n; i++) {
		struct topo_nic *nic = &inv->nics[members[i]];

		one_dma = one_dma && streq_null(nic->dma_bus_id, first->dma_bus_id);
		nic->card = (int)inv->n_cards - 1;
		nic->pf_index = (int)i;
		nic->pf_count = (int)n;
		nic->standalone = !card->atomic;
	}
	if (one_dma)
		card->dma_bus_id = xstrdup_null(first->dma_bus_id);
	set_agreement(b, card);
}

/* The group of PFs that belong together with "first", which is the lowest of them. */
static size_t collect(const struct builder *b, size_t first, bool *seen, int *members)
{
	size_t n = 0;

	members[n++] = (int)first;
	seen[first] = true;
	for (size_t m = 0; m < n; m++) {
		for (size_t k = first + 1; k < b->inv->n_nics; k++) {
			if (seen[k] || !is_pf(b, k) || !claims_same_chip(b, (size_t)members[m], k))
				continue;
			seen[k] = true;
			members[n++] = (int)k;
		}
	}
	return n;
}

static int cmp_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Perhaps they are halves of an atomic card: none of them is handed out alone. */
static void keep_together(struct builder *b, const int *members, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (may_be_half(b, &b->inv->nics[members[i]]))
			b->inv->nics[members[i]].standalone = false;
}

/* A card with functions in the slot of this NIC; two cards in one slot would have one name. */
static const struct topo_card *card_in_slot(const struct inventory *inv, const struct topo_nic *nic)
{
	for (size_t i = 0; i < inv->n_cards; i++)
		if (bus_id_same_slot(inv->nics[inv->cards[i].members[0]].bus_id, nic->bus_id))
			return &inv->cards[i];
	return NULL;
}

static void judge_group(struct builder *b, int *members, size_t n)
{
	const struct topo_card *other;

	qsort(members, n, sizeof(int), cmp_int);
	other = card_in_slot(b->inv, &b->inv->nics[members[0]]);
	if (other) {
		topo_warn(
			b, "card-contradiction", b->inv->nics[members[0]].name,
			"it is in the slot of %s, but claims to be of another chip; no second card "
			"is formed",
			other->id);
		keep_together(b, members, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		for (size_t k = i + 1; k < n; k++) {
			const char *key = contradiction(b, (size_t)members[i], (size_t)members[k]);

			if (!key)
				continue;
			topo_warn(b, "card-contradiction", b->inv->nics[members[i]].name,
				  "it looks like one card with %s, but their %s differs; no card "
				  "is formed",
				  b->inv->nics[members[k]].name, key);
			keep_together(b, members, n);
			return;
		}
	}
	add_card(b, members, n);
}

/* Another PF in the slot of this one, also without an RDMA device (its driver failed on it). */
static const char *slot_sibling(const struct builder *b, const struct topo_nic *nic)
{
	for (size_t i = 0; i < b->machine->n_pci; i++) {
		const struct hw_pci *pci = &b->machine->pci[i];

		if (!topo_is_vf(pci) && !streq(pci->bus_id, nic->bus_id) &&
		    bus_id_same_slot(pci->bus_id, nic->bus_id))
			return pci->bus_id;
	}
	return NULL;
}

/*
 * The only PF of a chip whose cards are atomic: the others may have dropped off the bus.  A model
 * with one PF cannot be told from it; a missing NIC is better than half of one.
 */
static void mark_lone_pf(struct builder *b, struct topo_nic *nic)
{
	if (!nic->standalone || !has_atomic_cards(b, nic))
		return;
	nic->standalone = false;
	topo_warn(
		b, "card-incomplete", nic->name,
		"no other PF of its card is there, and such cards are handed out whole only; it is "
		"not handed out alone");
}

/*
 * PFs in one slot that did not become a card may still be halves of an atomic one: they are not
 * handed out alone.
 */
static void mark_slot_siblings(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];
		const char *sibling = NULL;

		if (!is_pf(b, i) || nic->card >= 0 || !may_be_half(b, nic))
			continue;
		sibling = slot_sibling(b, nic);
		if (!sibling) {
			mark_lone_pf(b, nic);
			continue;
		}
		nic->standalone = false;
		topo_warn(b, "card-unknown", nic->name,
			  "%s is in its slot and no card of the two could be established%s; it is "
			  "not handed out alone",
			  sibling,
			  inventory_nic(b->inv, sibling)
				  ? ""
				  : " (that function has no RDMA device: is mlx5_ib loaded?)");
	}
}

static void drop_data_direct(struct builder *b, const char *dma)
{
	_cleanup_free_ char *copy = xstrdup(dma); /* "dma" is one of those that are freed */

	topo_warn(b, "data-direct-ambiguous", copy,
		  "functions of different cards match this Data Direct function; their pcieRoot is "
		  "left out");
	for (size_t i = 0; i < b->inv->n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		if (nic->dma_bus_id && streq(nic->dma_bus_id, copy)) {
			free(nic->dma_bus_id);
			nic->dma_bus_id = NULL;
		}
	}
	for (size_t i = 0; i < b->inv->n_cards; i++) {
		struct topo_card *card = &b->inv->cards[i];

		if (card->dma_bus_id && streq(card->dma_bus_id, copy)) {
			free(card->dma_bus_id);
			card->dma_bus_id = NULL;
		}
	}
}

/* One Data Direct function serves one chip. */
static void check_data_direct(struct builder *b)
{
	struct inventory *inv = b->inv;

	for (size_t i = 0; i < inv->n_nics; i++) {
		for (size_t k = i + 1; inv->nics[i].dma_bus_id && k < inv->n_nics; k++) {
			bool one_card =
				inv->nics[i].card >= 0 && inv->nics[i].card == inv->nics[k].card;

			if (!one_card &&
			    streq_null(inv->nics[i].dma_bus_id, inv->nics[k].dma_bus_id))
				drop_data_direct(b, inv->nics[i].dma_bus_id);
		}
	}
}

void topo_add_cards(struct builder *b)
{
	size_t n_nics = b->inv->n_nics;
	_cleanup_free_ bool *seen = xcalloc(n_nics, sizeof(bool));
	_cleanup_free_ int *members = xcalloc(n_nics, sizeof(int));

	for (size_t i = 0; i < n_nics; i++) {
		struct topo_nic *nic = &b->inv->nics[i];

		nic->standalone = nic->is_vf ? b->nics[i].pf < 0 : true;
	}
	for (size_t i = 0; i < n_nics; i++) {
		size_t n;

		if (seen[i] || !is_pf(b, i))
			continue;
		n = collect(b, i, seen, members);
		if (n > 1)
			judge_group(b, members, n);
	}
	mark_slot_siblings(b);
	check_data_direct(b);
}

/* The last of the *ret_n Data Direct functions with this V3; NULL: none. */
static const struct hw_pci *find_by_v3(const struct hw_machine *machine, const char *v3,
				       size_t *ret_n)
{
	const struct hw_pci *found = NULL;

	*ret_n = 0;
	for (size_t i = 0; v3 && i < machine->n_pci; i++) {
		const struct hw_pci *pci = &machine->pci[i];

		if (!hw_is_data_direct(pci) || !streq_null(pci->vpd_v3, v3))
			continue;
		found = pci;
		++*ret_n;
	}
	return found;
}

/* What the verbs library says of the NIC; NULL: nothing, or no such function is here. */
static const struct hw_pci *told_by_verbs(const struct builder *b, size_t nic)
{
	const char *bus_id = b->nics[nic].rdma->data_direct;
	const struct hw_pci *pci = bus_id ? hw_find_pci(b->machine, bus_id) : NULL;

	return pci && hw_is_data_direct(pci) ? pci : NULL;
}

/* Vital product data tells it; where that does not, the verbs library. */
static void match_data_direct(struct builder *b, size_t i)
{
	struct topo_nic *nic = &b->inv->nics[i];
	const char *v3 = b->nics[i].pci->vpd_v3;
	const struct hw_pci *verbs = told_by_verbs(b, i);
	size_t matches;
	const struct hw_pci *found = find_by_v3(b->machine, v3, &matches);

	if (matches == 1 && verbs && verbs != found)
		topo_warn(b, "verbs-disagree", nic->name,
			  "its Data Direct function is %s by vital product data and %s by the "
			  "verbs library; vital product data is used",
			  found->bus_id, verbs->bus_id);
	if (matches == 1 || verbs)
		nic->dma_bus_id = xstrdup(matches == 1 ? found->bus_id : verbs->bus_id);
	else if (matches > 1)
		topo_warn(b, "data-direct-ambiguous", nic->name,
			  "%zu Data Direct functions have its V3; pcieRoot is left out", matches);
	else if (topo_may_have_data_direct(nic) && b->data_direct)
		topo_warn(b, "data-direct-unmatched", nic->name,
			  "no Data Direct function matches (vital product data: %s); pcieRoot is "
			  "left out",
			  v3 ? "V3 is of no other function" : "V3 is missing");
}

void topo_match_data_direct(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++)
		if (!b->inv->nics[i].is_vf && b->inv->nics[i].vendor_id == VENDOR_MELLANOX)
			match_data_direct(b, i);
}

/*
 * A VF whose PF is no NIC here (no RDMA device, or not in this virtual machine): its chip may be
 * one whose DMA comes from elsewhere.  The id of Mellanox' VFs is the same for all chips.
 */
static bool is_vf_of_data_direct(const struct builder *b, size_t i)
{
	const struct topo_nic *nic = &b->inv->nics[i];
	const struct hw_pci *pf = nic->pf_bus_id ? hw_find_pci(b->machine, nic->pf_bus_id) : NULL;

	if (!nic->is_vf || b->nics[i].pf >= 0)
		return false;
	return nic->vendor_id == VENDOR_MELLANOX &&
	       (!pf || topo_may_have_data_direct(&(struct topo_nic){ .vendor_id = pf->vendor,
								     .device_id = pf->device }));
}

/* Never its own root when the DMA comes from elsewhere and it is not known from where. */
static bool is_lost(struct builder *b, size_t i, const struct topo_nic *owner)
{
	if (!b->data_direct)
		return false;
	if (topo_may_have_data_direct(owner))
		return true;
	if (!is_vf_of_data_direct(b, i))
		return false;
	topo_warn(
		b, "data-direct-unmatched", owner->name,
		"a VF whose PF is no NIC here, so its Data Direct function is not known; pcieRoot "
		"is left out");
	return true;
}

static void set_root(struct builder *b, size_t i)
{
	struct topo_nic *nic = &b->inv->nics[i];
	struct nic_facts *facts = &b->nics[i];
	const struct topo_nic *owner = facts->pf >= 0 ? &b->inv->nics[facts->pf] : nic;
	const struct hw_pci *dma =
		owner->dma_bus_id ? hw_find_pci(b->machine, owner->dma_bus_id) : NULL;
	bool lost = !dma && is_lost(b, i, owner);
	_cleanup_free_ char *effective = NULL;

	if (owner != nic)
		nic->dma_bus_id = xstrdup_null(owner->dma_bus_id);
	if (dma)
		effective = pcie_root_of(dma->bus_id, dma->path);
	else if (!lost)
		effective = xstrdup_null(nic->function_pcie_root);
	if (lost)
		facts->place.numa_node = TOPO_UNKNOWN;
	else
		place_init(&facts->place, b->machine, dma ? dma : facts->pci);
	nic->pcie_switch = xstrdup_null(place_switch(&facts->place));
	if (b->options->pcie_root == PCIE_ROOT_FUNCTION)
		nic->pcie_root = xstrdup_null(nic->function_pcie_root);
	else if (b->options->pcie_root != PCIE_ROOT_DATA_DIRECT || dma)
		nic->pcie_root = TAKE_PTR(effective);
}

static void warn_about_bridges(struct builder *b)
{
	bool unsure = false;

	for (size_t i = 0; i < b->inv->n_nics; i++)
		unsure = unsure || place_is_unsure(&b->nics[i].place);
	for (size_t i = 0; i < b->inv->n_gpus; i++)
		unsure = unsure || place_is_unsure(&b->gpus[i]);
	if (unsure)
		topo_warn(b, "bridges-unknown", "node",
			  "the configuration space of PCI bridges cannot be read, so switches and "
			  "what lies behind them are not known; run as root");
}

void topo_set_roots(struct builder *b)
{
	for (size_t i = 0; i < b->inv->n_nics; i++)
		set_root(b, i);
	warn_about_bridges(b);
	for (size_t i = 0; i < b->inv->n_cards; i++) {
		struct topo_card *card = &b->inv->cards[i];
		const struct hw_pci *dma =
			card->dma_bus_id ? hw_find_pci(b->machine, card->dma_bus_id) : NULL;

		card->dma_pcie_root = dma ? pcie_root_of(dma->bus_id, dma->path) : NULL;
	}
}

// SPDX-License-Identifier: Apache-2.0
#include "prepare/environment.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"

/* ---- which container uses which request ---- */

static bool is_nic_device(const char *device)
{
	return !starts_with(device, "gpu-");
}

/* Base names of a claim's requests, each once; "nics": only of those with a NIC. */
static void request_names(const struct claim *claim, bool nics, struct strlist *ret)
{
	for (size_t i = 0; i < claim->n_results; i++) {
		char *name = request_main(claim->results[i].request);

		if ((nics && !is_nic_device(claim->results[i].device)) || strlist_has(ret, name))
			free(name);
		else
			strlist_take(ret, name);
	}
}

bool environment_needs_pod(const struct claim *const *claims, size_t n)
{
	struct strlist nics = { 0 };
	bool several;

	for (size_t i = 0; i < n; i++)
		if (claims[i]->n_consumers != 1 || !claims[i]->pod_name ||
		    !streq(claims[i]->pod_uid, claims[0]->pod_uid) ||
		    !streq(claims[i]->namespace, claims[0]->namespace))
			return false;
	if (n != 1)
		return n > 1;
	request_names(claims[0], true, &nics);
	several = nics.n > 1;
	strlist_done(&nics);
	return several;
}

/* The pod's own name of a claim; NULL: the pod does not list it. */
static const char *pod_claim_name(const json_t *pod, const char *claim)
{
	json_t *list = json_path(pod, "spec.resourceClaims"), *entry;
	size_t i;

	json_array_foreach(list, i, entry) {
		const char *name = json_path_string(entry, "resourceClaimName");

		if (name && streq(name, claim))
			return json_path_string(entry, "name");
	}
	list = json_path(pod, "status.resourceClaimStatuses");
	json_array_foreach(list, i, entry) {
		const char *name = json_path_string(entry, "resourceClaimName");

		if (name && streq(name, claim))
			return json_path_string(entry, "name");
	}
	return NULL;
}

/* The container's set of our requests as "<claim>/<request>" lines, sorted. */
static void container_uses(const json_t *container, const struct claim *const *claims,
			   const char *const *pod_names, size_t n, struct strlist *ret)
{
	json_t *list = json_path(container, "resources.claims"), *entry;
	size_t i;

	json_array_foreach(list, i, entry) {
		const char *name = json_path_string(entry, "name");
		const char *request = json_path_string(entry, "request");

		for (size_t k = 0; name && k < n; k++) {
			struct strlist requests = { 0 };

			if (!streq(name, pod_names[k]))
				continue;
			request_names(claims[k], false, &requests);
			for (size_t r = 0; r < requests.n; r++) {
				_cleanup_free_ char *line =
					xasprintf("%s/%s", name, requests.items[r]);

				if ((!request || streq(request, requests.items[r])) &&
				    !strlist_has(ret, line))
					strlist_add(ret, line);
			}
			strlist_done(&requests);
		}
	}
	strlist_sort(ret);
}

/* All containers that use any of our requests use the same ones. */
static const char *check_pod(const json_t *pod, const struct claim *const *claims, size_t n)
{
	static const char *const lists[] = { "spec.initContainers", "spec.containers" };
	const char **names = xcalloc(n, sizeof(*names));
	struct strlist first = { 0 };
	const char *why = NULL;

	for (size_t i = 0; i < n; i++) {
		names[i] = pod_claim_name(pod, claims[i]->name);
		if (!names[i])
			why = "the pod does not say which container uses a claim";
	}
	for (size_t l = 0; !why && l < ARRAY_SIZE(lists); l++) {
		json_t *list = json_path(pod, lists[l]), *container;
		size_t i;

		json_array_foreach(list, i, container) {
			struct strlist uses = { 0 };

			container_uses(container, claims, names, n, &uses);
			if (uses.n > 0 && first.n == 0) {
				first = uses;
				continue;
			}
			if (uses.n > 0 && !strlist_equal(&first, &uses))
				why = "containers of the pod use different requests";
			strlist_done(&uses);
		}
	}
	strlist_done(&first);
	free(names);
	return why;
}

/* ---- what the pod holds, and its pairs ---- */

/* NIC functions that go to one GPU together: the PFs of an atomic card, or one function. */
struct unit {
	size_t first, n; /* in held->nics */
	int gpu; /* index into held->gpus; -1: none */
};

struct held {
	size_t *gpus, n_gpus; /* indexes into the inventory: ascending PCI address */
	size_t *nics, n_nics;
	struct unit *units;
	size_t n_units;
};

static bool holds(const struct record *const *records, size_t n, const char *bus_id)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < records[i]->n_devices; k++)
			if (!records[i]->devices[k].admin_access &&
			    strlist_has(&records[i]->devices[k].functions, bus_id))
				return true;
	return false;
}

static bool same_card(const struct inventory *inv, size_t a, size_t b)
{
	int card = inv->nics[a].card;

	return card >= 0 && card == inv->nics[b].card && inv->cards[card].atomic &&
	       !inv->nics[a].is_vf && !inv->nics[b].is_vf;
}

/* The PFs of one card may lie apart in PCI order: each unit takes all of its card. */
static void make_units(struct held *h, const struct inventory *inv)
{
	size_t *ordered = xcalloc(h->n_nics, sizeof(*ordered)), n = 0;
	bool *taken = xcalloc(h->n_nics, sizeof(*taken));

	h->units = xcalloc(h->n_nics, sizeof(*h->units));
	for (size_t i = 0; i < h->n_nics; i++) {
		struct unit *u;

		if (taken[i])
			continue;
		u = &h->units[h->n_units++];
		*u = (struct unit){ .first = n, .gpu = -1 };
		for (size_t k = i; k < h->n_nics; k++) {
			if (k != i && (taken[k] || !same_card(inv, h->nics[i], h->nics[k])))
				continue;
			taken[k] = true;
			ordered[n++] = h->nics[k];
			u->n++;
		}
	}
	free(taken);
	free(h->nics);
	h->nics = ordered;
}

static void held_init(struct held *h, const struct record *const *records, size_t n,
		      const struct inventory *inv)
{
	*h = (struct held){ .gpus = xcalloc(inv->n_gpus, sizeof(size_t)),
			    .nics = xcalloc(inv->n_nics, sizeof(size_t)) };
	for (size_t i = 0; i < inv->n_gpus; i++)
		if (holds(records, n, inv->gpus[i].bus_id))
			h->gpus[h->n_gpus++] = i;
	for (size_t i = 0; i < inv->n_nics; i++)
		if (holds(records, n, inv->nics[i].bus_id) && inv->nics[i].rdma_device)
			h->nics[h->n_nics++] = i;
	make_units(h, inv);
}

static void held_done(struct held *h)
{
	free(h->gpus);
	free(h->nics);
	free(h->units);
}

/* Smaller is nearer; the path of a card is that of its first PF. */
static int distance(const struct held *h, const struct inventory *inv, size_t gpu, size_t unit)
{
	const struct topo_pair *p =
		inventory_pair(inv, h->gpus[gpu], h->nics[h->units[unit].first]);

	if (!p)
		return PATH_UNKNOWN * 1000;
	return (int)p->path * 1000 + (p->hops >= 0 && p->hops < 1000 ? p->hops : 999);
}

/* The nearest unassigned unit and GPU among those not marked; false when there is none. */
static bool nearest(const struct held *h, const struct inventory *inv, const bool *marked,
		    size_t *ret_gpu, size_t *ret_unit)
{
	int best = -1;

	for (size_t g = 0; g < h->n_gpus; g++) {
		for (size_t u = 0; !marked[g] && u < h->n_units; u++) {
			int d = distance(h, inv, g, u);

			if (h->units[u].gpu >= 0 || (best >= 0 && d >= best))
				continue;
			best = d;
			*ret_gpu = g;
			*ret_unit = u;
		}
	}
	return best >= 0;
}

/* Best paths first, and no GPU gets a second unit before each has one. */
static void assign(struct held *h, const struct inventory *inv)
{
	bool *marked = xcalloc(h->n_gpus, sizeof(*marked));
	size_t left = h->n_gpus > 0 ? h->n_units : 0, g, u;

	while (left > 0) {
		memset(marked, 0, h->n_gpus * sizeof(*marked));
		while (nearest(h, inv, marked, &g, &u)) {
			h->units[u].gpu = (int)g;
			marked[g] = true;
			left--;
		}
	}
	free(marked);
}

/* The unit that a GPU without its own uses too: the nearest of all. */
static size_t shared_unit(const struct held *h, const struct inventory *inv, size_t gpu)
{
	size_t best = 0;

	for (size_t u = 1; u < h->n_units; u++)
		if (distance(h, inv, gpu, u) < distance(h, inv, gpu, best))
			best = u;
	return best;
}

/* ---- the values ---- */

/* "mlx5_0:1" for each active port, or for the first one when none is active now. */
static void add_ports(struct buf *b, const struct topo_nic *nic)
{
	bool any = false;

	for (size_t i = 0; i < nic->n_ports; i++) {
		const struct topo_port *p = &nic->ports[i];

		if (!p->state || !streq(p->state, "ACTIVE"))
			continue;
		buf_printf(b, "%s%s:%u", b->len ? "," : "", nic->rdma_device, p->port);
		any = true;
	}
	if (!any)
		buf_printf(b, "%s%s:%u", b->len ? "," : "", nic->rdma_device,
			   nic->n_ports > 0 ? nic->ports[0].port : 1);
}

static void add_unit_ports(struct buf *b, const struct held *h, const struct inventory *inv,
			   const struct unit *u)
{
	for (size_t i = 0; i < u->n; i++)
		add_ports(b, &inv->nics[h->nics[u->first + i]]);
}

static void add_unit_names(struct buf *b, const struct held *h, const struct inventory *inv,
			   const struct unit *u)
{
	for (size_t i = 0; i < u->n; i++)
		buf_printf(b, "%s%s", b->len && b->data[b->len - 1] != '=' ? "+" : "",
			   inv->nics[h->nics[u->first + i]].name);
}

/* Ports in the order of the GPUs, then of NICs without one; "pairs" gets TWINRAIL_PAIRS. */
static void build_lists(const struct held *h, const struct inventory *inv, struct buf *ports,
			struct buf *pairs)
{
	for (size_t g = 0; g < h->n_gpus; g++) {
		struct buf one = { 0 };

		buf_printf(&one, "%s=", inv->gpus[h->gpus[g]].name);
		for (size_t u = 0; u < h->n_units; u++) {
			if (h->units[u].gpu != (int)g)
				continue;
			add_unit_ports(ports, h, inv, &h->units[u]);
			add_unit_names(&one, h, inv, &h->units[u]);
		}
		if (one.data[one.len - 1] == '=')
			add_unit_names(&one, h, inv, &h->units[shared_unit(h, inv, g)]);
		buf_printf(pairs, "%s%s", pairs->len ? "," : "", one.data);
		buf_done(&one);
	}
	for (size_t u = 0; u < h->n_units; u++)
		if (h->units[u].gpu < 0)
			add_unit_ports(ports, h, inv, &h->units[u]);
}

/* Several consumers, or one that is not a pod: a group of pods. */
static bool is_shared(const struct claim *claim)
{
	return claim->n_results > 0 &&
	       (claim->n_consumers > 1 || (claim->n_consumers == 1 && !claim->pod_name));
}

const char *environment_build(const struct claim *const *claims,
			      const struct record *const *records, size_t n, const json_t *pod,
			      const struct inventory *inv, struct strlist *ret)
{
	struct buf ports = { 0 }, pairs = { 0 };
	const char *why = NULL;
	struct held h;

	for (size_t i = 0; i < n; i++)
		if (is_shared(claims[i]))
			return "a claim is shared by several pods";
	if (pod)
		why = check_pod(pod, claims, n);
	if (why)
		return why;
	held_init(&h, records, n, inv);
	if (h.n_units > 0) {
		assign(&h, inv);
		build_lists(&h, inv, &ports, &pairs);
		strlist_take(ret, xasprintf("UCX_NET_DEVICES=%s", ports.data));
		strlist_take(ret, xasprintf("NCCL_IB_HCA==%s", ports.data));
		if (pairs.len > 0)
			strlist_take(ret, xasprintf("TWINRAIL_PAIRS=%s", pairs.data));
	}
	held_done(&h);
	buf_done(&ports);
	buf_done(&pairs);
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "prepare/resolve.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "prepare/cdi.h"

static void add_node(struct record_device *d, const char *name, int major, int minor)
{
	d->nodes = xrealloc(d->nodes, d->n_nodes + 1, sizeof(*d->nodes));
	d->nodes[d->n_nodes++] = (struct record_node){
		.path = xasprintf("/dev/infiniband/%s", name), .major = major, .minor = minor
	};
}

static const char *why_frontend(const struct topo_nic *nic)
{
	static const struct {
		const char *source, *text;
	} reasons[] = {
		{ "default-route", "is used by the node itself: the default route leads there" },
		{ "node-address", "is used by the node itself: it has an address of the node" },
		{ "master", "is used by the node itself: it is part of a bond, bridge or VRF" },
		{ "vlan-parent", "is used by the node itself: a VLAN on it has an address" },
		{ "earlier", "was used by the node itself since this driver started" },
		{ "card", "is used by the node itself: another function of its card is" },
		{ "platform", "is there for the node itself: the platform file says so" },
		{ "config", "is there for the node itself: the platform file says so" },
	};

	for (size_t i = 0; nic->role_source && i < ARRAY_SIZE(reasons); i++)
		if (streq(nic->role_source, reasons[i].source))
			return reasons[i].text;
	return "is used by the node itself";
}

/* It may come back by a reset. */
static int silent(const char *name, const char *bus_id, struct err *err)
{
	return err_set(err, ERR_RETRY, ENODEV,
		       "%s (%s) does not answer (its configuration space reads ff): see the "
		       "kernel's log; reset it, or delete the claim to have another one allocated",
		       name, bus_id);
}

static int resolve_nic(struct record_device *d, const struct topo_nic *nic, struct err *err)
{
	if (nic->role == ROLE_FRONTEND)
		return err_set(err, ERR_PERMANENT, EBUSY,
			       "%s (%s) %s; delete the claim to have another one allocated",
			       nic->name, nic->bus_id, why_frontend(nic));
	if (nic->excluded)
		return err_set(err, ERR_PERMANENT, EBUSY,
			       "%s (%s) is not handed out: the administrator excludes it "
			       "(--nic-include, --nic-exclude); delete the claim to have another "
			       "one allocated",
			       nic->name, nic->bus_id);
	if (nic->broken)
		return silent(nic->name, nic->bus_id, err);
	if (nic->withheld)
		return err_set(err, ERR_RETRY, EBUSY,
			       "%s (%s) may be used by the node itself, which has shown no default "
			       "route since this driver started: give the node a default route",
			       nic->name, nic->bus_id);
	if (!nic->rdma_device)
		return err_set(err, ERR_RETRY, ENODEV,
			       "%s (%s) has no RDMA device: load its RDMA driver on the node, e.g. "
			       "\"modprobe mlx5_ib\"",
			       nic->name, nic->bus_id);
	if (!topo_has_verbs(nic))
		return err_set(err, ERR_RETRY, ENODEV,
			       "%s (%s, %s) has no verbs device: load ib_uverbs on the node "
			       "(\"modprobe ib_uverbs\")",
			       nic->name, nic->bus_id, nic->rdma_device);
	strlist_add(&d->functions, nic->bus_id);
	add_node(d, nic->uverbs, nic->uverbs_major, nic->uverbs_minor);
	return 0;
}

static int resolve_card(struct record_device *d, const struct topo_card *card,
			const struct inventory *inv, struct err *err)
{
	for (size_t i = 0; i < card->n_members; i++) {
		int r = resolve_nic(d, &inv->nics[card->members[i]], err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int resolve_gpu(struct record_device *d, const struct topo_gpu *gpu,
		       const struct resolve_options *options, struct err *err)
{
	_cleanup_free_ char *node = NULL;
	char *id = NULL;
	int r;

	strlist_add(&d->functions, gpu->bus_id);
	if (!streq(gpu->vendor, "nvidia"))
		return err_set(err, ERR_PERMANENT, ENOTSUP,
			       "%s is a GPU of %s, whose device nodes are not known here: let the "
			       "vendor's own DRA driver hand out GPUs (--gpu=off)",
			       gpu->name, gpu->vendor);
	if (gpu->broken)
		return silent(gpu->name, gpu->bus_id, err);
	if (gpu->partition)
		return err_set(err, ERR_RETRY, EBUSY,
			       "%s (%s) is divided (%s) since it was published: its parts are "
			       "handed out by the vendor's own DRA driver; undo the division, or "
			       "delete the claim to have another GPU allocated",
			       gpu->name, gpu->bus_id, gpu->partition);
	if (gpu->minor >= 0)
		node = xasprintf("/dev/nvidia%d", gpu->minor);
	r = cdi_vendor_id(options->cdi_dirs, "nvidia.com/gpu", gpu->uuid, node, &id, err);
	if (r < 0)
		return err_wrap(err, "%s", gpu->name);
	strlist_take(&d->vendor_cdi, id);
	return 0;
}

static void add_rdma_cm(struct record_device *d, const struct inventory *inv)
{
	if (inv->rdma_cm_major > 0 && inv->rdma_cm_minor >= 0)
		add_node(d, "rdma_cm", inv->rdma_cm_major, inv->rdma_cm_minor);
}

static int resolve_result(struct record_device *d, const struct claim_result *result,
			  const struct inventory *inv, const struct resolve_options *options,
			  struct err *err)
{
	const struct topo_nic *nic;
	const struct topo_card *card;
	const struct topo_gpu *gpu;
	int r;

	d->request = xstrdup(result->request);
	d->pool = xstrdup(result->pool);
	d->device = xstrdup(result->device);
	d->share_id = xstrdup_null(result->share_id);
	d->admin_access = result->admin_access;
	d->config = result->config;
	if (!streq(result->pool, options->pool))
		return err_set(err, ERR_INVALID, ENODEV,
			       "device %s is of pool %s, this node's pool is %s: the claim is "
			       "allocated to another node",
			       result->device, result->pool, options->pool);
	if (starts_with(result->device, "nic-") && (nic = inventory_nic(inv, result->device))) {
		d->type = xstrdup("nic");
		r = resolve_nic(d, nic, err);
	} else if (starts_with(result->device, "card-") &&
		   (card = inventory_card(inv, result->device))) {
		d->type = xstrdup("card");
		r = resolve_card(d, card, inv, err);
	} else if (starts_with(result->device, "gpu-") &&
		   (gpu = inventory_gpu(inv, result->device))) {
		d->type = xstrdup("gpu");
		return resolve_gpu(d, gpu, options, err);
	} else {
		return err_set(err, ERR_RETRY, ENODEV,
			       "device %s is not on this node (any more): see \"twinrail topo\"; "
			       "delete the claim to have another one allocated",
			       result->device);
	}
	if (r == 0)
		add_rdma_cm(d, inv);
	return r;
}

static const char *devices_overlap(const struct record_device *a, const struct record_device *b)
{
	if (a->admin_access || b->admin_access || (a->share_id && b->share_id))
		return NULL;
	for (size_t i = 0; i < a->functions.n; i++)
		if (strlist_has(&b->functions, a->functions.items[i]))
			return a->functions.items[i];
	return NULL;
}

/* A scheduler that knows our counters allocates no function twice. */
static int check_twice(const struct record *record, struct err *err)
{
	for (size_t i = 0; i < record->n_devices; i++) {
		for (size_t k = 0; k < i; k++) {
			const struct record_device *a = &record->devices[k];
			const struct record_device *b = &record->devices[i];
			const char *f = devices_overlap(a, b);

			if (f)
				return err_set(err, ERR_INVALID, EEXIST,
					       "%s and %s of one claim have the same function %s: "
					       "delete the claim to have it allocated again",
					       a->device, b->device, f);
		}
	}
	return 0;
}

int resolve_claim(const struct claim *claim, const struct inventory *inv,
		  const struct resolve_options *options, struct record **ret, struct err *err)
{
	_cleanup_(record_freep) struct record *record =
		record_new(claim->namespace, claim->name, claim->uid);
	int r = 0;

	for (size_t i = 0; r == 0 && i < claim->n_results; i++)
		r = resolve_result(record_add_device(record), &claim->results[i], inv, options,
				   err);
	if (r == 0)
		r = check_twice(record, err);
	if (r < 0) {
		err_wrap(err, "claim %s/%s", claim->namespace, claim->name);
		return r;
	}
	*ret = TAKE_PTR(record);
	return 0;
}

bool record_matches(const struct record *record, const struct claim *claim)
{
	if (record->n_devices != claim->n_results)
		return false;
	for (size_t i = 0; i < claim->n_results; i++) {
		const struct record_device *d = &record->devices[i];
		const struct claim_result *c = &claim->results[i];

		if (!streq(d->request, c->request) || !streq(d->pool, c->pool) ||
		    !streq(d->device, c->device) || !streq_null(d->share_id, c->share_id) ||
		    d->admin_access != c->admin_access ||
		    d->config.half_pair != c->config.half_pair)
			return false;
	}
	return true;
}

const char *records_overlap(const struct record *record, const struct record *other)
{
	for (size_t i = 0; i < record->n_devices; i++) {
		for (size_t k = 0; k < other->n_devices; k++) {
			const char *f = devices_overlap(&record->devices[i], &other->devices[k]);

			if (f)
				return f;
		}
	}
	return NULL;
}

static bool any_holds(const struct record *const *records, size_t n, const char *bus_id)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; records[i] && k < records[i]->n_devices; k++)
			if (!records[i]->devices[k].admin_access &&
			    strlist_has(&records[i]->devices[k].functions, bus_id))
				return true;
	return false;
}

/* The PFs of the card of "bus_id" that nobody in the call holds. */
static int check_card(const struct record *const *records, size_t n, const struct inventory *inv,
		      const char *bus_id, const char *driver, struct err *err)
{
	const struct topo_nic *nic = inventory_nic(inv, bus_id);
	const struct topo_card *card;

	if (!nic || nic->is_vf)
		return 0;
	if (nic->card < 0 && !nic->standalone)
		return err_set(err, ERR_INVALID, ENXIO,
			       "half pair: %s works only together with another PF of its card, "
			       "which is not there: see the warnings of \"twinrail topo\"; delete "
			       "the claim to have another one allocated, or allow it by an opaque "
			       "NicConfig with halfPairPolicy: Allow",
			       nic->name);
	if (nic->card < 0)
		return 0;
	card = &inv->cards[nic->card];
	for (size_t i = 0; card->atomic && i < card->n_members; i++) {
		const struct topo_nic *member = &inv->nics[card->members[i]];

		if (any_holds(records, n, member->bus_id))
			continue;
		return err_set(
			err, ERR_INVALID, ENXIO,
			"half pair: %s is one of %zu PFs of %s, which work only together, "
			"and %s is missing: request the whole card (class nic.%s), or count: "
			"%zu with matchAttribute %s/cardId, or allow it by an opaque %s "
			"with halfPairPolicy: Allow",
			nic->name, card->n_members, card->id, member->name, driver, card->n_members,
			driver, "NicConfig");
	}
	return 0;
}

int check_half_pairs(const struct record *const *records, size_t n, const struct inventory *inv,
		     const char *driver, size_t *ret_record, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!records[i] || records[i]->state == RECORD_COMPLETED)
			continue; /* it passed when it was prepared */
		for (size_t k = 0; k < records[i]->n_devices; k++) {
			const struct record_device *d = &records[i]->devices[k];

			if (d->admin_access || d->config.half_pair == HALF_PAIR_ALLOW)
				continue;
			for (size_t f = 0; f < d->functions.n; f++) {
				if (check_card(records, n, inv, d->functions.items[f], driver,
					       err) == 0)
					continue;
				*ret_record = i;
				return err_wrap(err, "claim %s/%s", records[i]->namespace,
						records[i]->name);
			}
		}
	}
	return 0;
}

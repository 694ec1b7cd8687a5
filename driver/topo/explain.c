// SPDX-License-Identifier: Apache-2.0
/* Why a GPU and a NIC are near or far: the way between them bridge by bridge, and what follows. */
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "hw/machine.h"
#include "topo/acs.h"
#include "topo/output.h"

#define ACS_REDIRECT (HW_ACS_P2P_REQUEST_REDIRECT | HW_ACS_P2P_COMPLETION_REDIRECT)

struct way {
	const struct inventory *inv;
	const struct topo_pair *pair;
	const struct topo_gpu *gpu;
	const struct topo_nic *nic;
	const struct topo_card *card; /* NULL */
	const struct topo_bridge *up, *down; /* bridges above the GPU, above the NIC's DMA */
	size_t n_up, n_down;
	size_t common; /* the first of both that are the same */
};

static void way_init(struct way *w, const struct inventory *inv, size_t gpu, size_t nic)
{
	const struct topo_nic *pf;

	*w = (struct way){
		.inv = inv,
		.pair = inventory_pair(inv, gpu, nic),
		.gpu = &inv->gpus[gpu],
		.nic = &inv->nics[nic],
	};
	pf = w->nic->pf_bus_id ? inventory_nic(inv, w->nic->pf_bus_id) : NULL;
	pf = pf ? pf : w->nic; /* VFs have the bridges of their PF */
	w->card = pf->card >= 0 ? &inv->cards[pf->card] : NULL;
	w->up = w->gpu->bridges;
	w->n_up = w->gpu->n_bridges;
	w->down = pf->bridges;
	w->n_down = pf->n_bridges;
	while (w->common < w->n_up && w->common < w->n_down &&
	       streq(w->up[w->common].bus_id, w->down[w->common].bus_id))
		w->common++;
}

/* The root that the NIC's DMA comes from; NULL unknown. */
static const char *nic_root(const struct way *w)
{
	return w->card && w->card->dma_pcie_root ? w->card->dma_pcie_root : w->nic->pcie_root;
}

/* The first switch below the common bridges on one side. */
static const struct topo_bridge *switch_below(const struct topo_bridge *bridges, size_t from,
					      size_t n)
{
	for (size_t i = from; i < n; i++)
		if (bridges[i].type == BRIDGE_UPSTREAM)
			return &bridges[i];
	return NULL;
}

static const struct topo_bridge *unknown_bridge(const struct way *w)
{
	for (size_t i = 0; i < w->n_up + w->n_down; i++) {
		const struct topo_bridge *b = i < w->n_up ? &w->up[i] : &w->down[i - w->n_up];

		if (b->type == BRIDGE_UNKNOWN)
			return b;
	}
	return NULL;
}

static void why_unknown(const struct way *w, struct buf *out)
{
	const struct topo_bridge *bridge = unknown_bridge(w);

	if (!w->gpu->pcie_root)
		buf_printf(out, "the place of %s in the PCI tree is not known", w->gpu->name);
	else if (!nic_root(w))
		buf_printf(out, "where the DMA of %s comes from is not known", w->nic->name);
	else if (bridge)
		buf_printf(out,
			   "the kind of bridge %s cannot be read, so it may or may not be part of "
			   "a switch; run as root",
			   bridge->bus_id);
	else
		buf_printf(out,
			   "they are below different PCI roots, and the kernel does not tell the "
			   "NUMA node of %s",
			   w->gpu->numa_node < 0 ? w->gpu->name : w->nic->name);
}

static void why_switch(const struct way *w, struct buf *out)
{
	const struct topo_bridge *gpu = switch_below(w->up, w->common, w->n_up);
	const struct topo_bridge *nic = switch_below(w->down, w->common, w->n_down);

	buf_printf(out, "the nearest bridge that both are below, %s, is part of a switch",
		   w->up[w->common - 1].bus_id);
	if (gpu)
		buf_printf(out, ", and the GPU is behind a further switch, %s", gpu->bus_id);
	if (nic)
		buf_printf(out, ", and the NIC is behind a further switch, %s", nic->bus_id);
	if (!gpu && !nic)
		buf_str(out, "; no further switch lies between");
}

/* One sentence without its first capital and its full stop; malloc'ed. */
static char *why(const struct way *w)
{
	struct buf out = { 0 };

	switch (w->pair->path) {
	case PATH_PIX:
	case PATH_PXB:
		why_switch(w, &out);
		break;
	case PATH_PHB:
		buf_printf(&out,
			   "both are below root complex %s without a switch in common: traffic "
			   "goes through it",
			   w->gpu->pcie_root ? w->gpu->pcie_root : "of this node");
		break;
	case PATH_NODE:
		if (w->gpu->pcie_root && nic_root(w))
			buf_printf(&out, "they are below different PCI roots (%s, %s)",
				   w->gpu->pcie_root, nic_root(w));
		else
			buf_str(&out, "nothing in the PCI tree is common to both");
		buf_printf(&out, " of NUMA node %d: traffic goes through the CPU",
			   w->gpu->numa_node);
		break;
	case PATH_SYS:
		buf_printf(&out,
			   "the GPU is at NUMA node %d, the NIC at NUMA node %d: traffic goes "
			   "between CPU sockets or dies",
			   w->gpu->numa_node, w->nic->numa_node);
		break;
	default:
		why_unknown(w, &out);
	}
	return buf_take(&out);
}

/* --- access control --- */

/* Both are below one root complex, so traffic can turn below its root. */
static bool share_complex(const struct way *w)
{
	return w->pair->path <= PATH_PHB || w->common > 0;
}

/* Where traffic of a side enters what both share: only there ACS can turn it.  NULL: nowhere. */
static const struct topo_bridge *entry(const struct way *w, bool nic)
{
	size_t n = nic ? w->n_down : w->n_up;

	if (!share_complex(w) || w->common >= n)
		return NULL;
	return nic ? &w->down[w->common] : &w->up[w->common];
}

/* What the bridge does to traffic of this pair; not known also where no bridge can do anything. */
static enum tri bridge_redirects(const struct way *w, const struct topo_bridge *bridge)
{
	if (!entry(w, true) && !entry(w, false))
		return TRI_UNKNOWN;
	if (bridge != entry(w, true) && bridge != entry(w, false))
		return TRI_NO;
	return acs_port_redirects(bridge->acs, bridge == entry(w, true));
}

/* The same in words, after "ACS" and the bits; malloc'ed, NULL: nothing is to be said. */
static char *acs_effect(const struct way *w, const struct topo_bridge *bridge)
{
	const char *what = bridge == entry(w, true) ? "the NIC's requests" : "the GPU's answers";
	bool is_entry = bridge == entry(w, true) || bridge == entry(w, false);

	if (is_entry && bridge->acs < 0)
		return xasprintf("is not known");
	if (bridge->acs <= 0)
		return NULL;
	if (is_entry && bridge_redirects(w, bridge) == TRI_YES)
		return xasprintf("sends %s up to the root", what);
	if (is_entry)
		return xasprintf("lets %s through", what);
	if (w->pair->path == PATH_UNKNOWN && !share_complex(w))
		return NULL;
	return xasprintf("does not concern this path");
}

/* Those of the two ports of which this is so, with what they could turn; malloc'ed, may be "". */
static char *ports_that(const struct way *w, enum tri redirect)
{
	struct buf out = { 0 };

	for (int nic = 1; nic >= 0; nic--) {
		const struct topo_bridge *port = entry(w, nic);

		if (port && bridge_redirects(w, port) == redirect)
			buf_printf(&out, "%s%s (%s)", out.len ? " and " : "", port->bus_id,
				   nic ? "the NIC's requests, P2P Request Redirect"
				       : "the GPU's answers, P2P Completion Redirect");
	}
	return buf_take(&out);
}

static bool any_redirect_bit(const struct way *w)
{
	for (size_t i = w->common ? w->common - 1 : 0; i < w->n_up; i++)
		if (w->up[i].acs > 0 && w->up[i].acs & ACS_REDIRECT)
			return true;
	for (size_t i = w->common; i < w->n_down; i++)
		if (w->down[i].acs > 0 && w->down[i].acs & ACS_REDIRECT)
			return true;
	return false;
}

static char *acs_note(const struct way *w)
{
	_cleanup_free_ char *ports = ports_that(w, w->pair->acs_redirect);

	if (w->pair->acs_redirect == TRI_YES)
		return xasprintf("ACS of %s sends peer-to-peer traffic between them %s", ports,
				 w->pair->path == PATH_PHB
					 ? "through the redirection of the root complex"
					 : "up to the root: slower than the path class says");
	if (w->pair->acs_redirect == TRI_UNKNOWN && *ports)
		return xasprintf("whether ACS sends peer-to-peer traffic between them up to the "
				 "root is not known: that of %s cannot be read; run as root",
				 ports);
	if (!any_redirect_bit(w))
		return NULL;
	if (w->pair->acs_redirect == TRI_NO)
		return xasprintf("ACS lets peer-to-peer traffic between them through: only %s "
				 "could send it up to the root",
				 ports);
	if (w->pair->path == PATH_NODE || w->pair->path == PATH_SYS)
		return xasprintf("ACS changes nothing here: traffic between different roots goes "
				 "through both in any case");
	return NULL;
}

/* --- what follows --- */

static void add_note(struct strlist *notes, char *text)
{
	strlist_add(notes, text);
	free(text);
}

static void note_best(const struct way *w, struct strlist *notes)
{
	struct buf best = { 0 };

	for (size_t n = 0; n < w->inv->n_nics; n++) {
		const struct topo_pair *pair = inventory_pair(w->inv, (size_t)w->pair->gpu, n);

		if (pair->best && !w->inv->nics[n].pf_bus_id)
			buf_printf(&best, "%s%s (%s)", best.len ? ", " : "", w->inv->nics[n].name,
				   path_class_name(pair->path));
	}
	if (w->pair->best)
		add_note(notes, xasprintf("%s is a best NIC of this GPU", w->nic->name));
	else if (best.len)
		add_note(notes, xasprintf("best NICs of this GPU: %s", best.data));
	else
		add_note(notes, xasprintf("this GPU has no best NIC"));
	if (!w->pair->best && w->nic->best_gpu >= 0)
		add_note(notes, xasprintf("nearest GPU of this NIC: %s (%s)",
					  w->inv->gpus[w->nic->best_gpu].name,
					  path_class_name(w->nic->best_path)));
	buf_done(&best);
}

static void note_link(const char *name, const struct topo_link *link, struct strlist *notes)
{
	_cleanup_free_ char *text = topo_link_text(link);

	if (link->degraded == TRI_YES && text)
		add_note(notes,
			 xasprintf("the PCI Express link of %s is degraded: %s", name, text));
}

/* NULL: it is handed out. */
static char *why_kept(const struct topo_nic *nic)
{
	if (nic->excluded)
		return xstrdup("the administrator excludes it");
	if (nic->role == ROLE_FRONTEND && !topo_is_own(nic) && nic->role_source)
		return xstrdup("the platform file says it is a front end");
	if (nic->role == ROLE_FRONTEND)
		return xasprintf("the node uses it%s%s", nic->role_source ? ", " : "",
				 nic->role_source ? nic->role_source : "");
	if (nic->broken)
		return xstrdup("it does not answer");
	if (nic->withheld)
		return xstrdup("the node itself may use it, whose own NIC is not known yet");
	if (!topo_has_verbs(nic))
		return xstrdup("its RDMA device has no verbs device that programs can open");
	return NULL;
}

/* NULL: all functions of its card are, or the card is no unit. */
static char *why_card_kept(const struct way *w)
{
	const struct topo_card *card = w->nic->card >= 0 ? &w->inv->cards[w->nic->card] : NULL;

	for (size_t i = 0; card && card->atomic && i < card->n_members; i++) {
		const struct topo_nic *other = &w->inv->nics[card->members[i]];
		_cleanup_free_ char *why = why_kept(other);

		if (why)
			return xasprintf("its card is handed out whole, and %s is not: %s",
					 other->name, why);
	}
	return NULL;
}

/* NULL: nothing that concerns the GPU itself speaks against it. */
static const char *why_gpu_kept(const struct topo_gpu *gpu)
{
	if (gpu->broken)
		return "it does not answer";
	if (streq(gpu->vendor, "nvidia") && !topo_is_described(gpu))
		return "the NVIDIA driver says nothing of it";
	return NULL;
}

static void note_kept(const struct way *w, struct strlist *notes)
{
	_cleanup_free_ char *why = why_kept(w->nic), *why_card = why ? NULL : why_card_kept(w);
	const char *why_gpu = why_gpu_kept(w->gpu);

	if (why)
		add_note(notes, xasprintf("%s is not handed out: %s", w->nic->name, why));
	if (why_card)
		add_note(notes, xasprintf("%s is not handed out: %s", w->nic->name, why_card));
	if (why_gpu)
		add_note(notes, xasprintf("%s is not handed out: %s", w->gpu->name, why_gpu));
}

static void note_facts(const struct way *w, struct strlist *notes)
{
	_cleanup_free_ char *acs = acs_note(w);

	if (w->pair->via_data_direct && w->nic->dma_bus_id)
		add_note(notes,
			 xasprintf("the NIC's DMA comes from its Data Direct function %s, not from "
				   "its own place below %s",
				   w->nic->dma_bus_id,
				   w->nic->function_pcie_root ? w->nic->function_pcie_root
							      : "an unknown root"));
	if (acs)
		strlist_add(notes, acs);
	if (w->gpu->iommu_group >= 0 && w->nic->iommu_group >= 0)
		add_note(notes, xasprintf("IOMMU groups: GPU %d, NIC %d", w->gpu->iommu_group,
					  w->nic->iommu_group));
	note_link(w->gpu->name, &w->gpu->link, notes);
	note_link(w->nic->name, &w->nic->link, notes);
	if (w->inv->topology_class == CLASS_FLAT)
		add_note(notes, xasprintf("this is a flat virtual machine: its PCI tree does not "
					  "tell what is near what in the host"));
	note_kept(w, notes);
	for (size_t i = 0; i < w->inv->n_warnings; i++) {
		const struct topo_warning *warning = &w->inv->warnings[i];

		if (streq(warning->object, w->gpu->name) || streq(warning->object, w->nic->name))
			add_note(notes,
				 xasprintf("warning %s: %s", warning->code, warning->message));
	}
}

/* --- text --- */

static void print_acs(const struct way *w, const struct topo_bridge *bridge, struct buf *out)
{
	_cleanup_free_ char *effect = acs_effect(w, bridge);
	char bits[ACS_TEXT_SIZE];

	if (bridge->acs > 0) {
		acs_text(bridge->acs, bits);
		buf_printf(out, "  ACS %s%s%s", bits, effect ? " " : "", effect ? effect : "");
	} else if (effect) {
		buf_printf(out, "  ACS %s", effect);
	}
}

static void print_bridge(const struct way *w, const struct topo_bridge *bridge, const char *arrow,
			 const char *note, struct buf *out)
{
	_cleanup_free_ char *link = topo_link_text(&bridge->link);

	buf_printf(out, "  %s %-22s  %s", arrow, topo_bridge_type_name(bridge->type),
		   bridge->bus_id);
	if (bridge->vendor_id)
		buf_printf(out, "  %04x:%04x", bridge->vendor_id, bridge->device_id);
	if (link)
		buf_printf(out, "  %s", link);
	buf_printf(out, "%s%s", note ? "  " : "", note ? note : "");
	print_acs(w, bridge, out);
	buf_str(out, "\n");
}

static void print_device(const char *name, const char *bus_id, unsigned int vendor,
			 unsigned int device, const struct topo_link *link, struct buf *out)
{
	_cleanup_free_ char *text = topo_link_text(link);

	buf_printf(out, "    %-22s  %s  %04x:%04x%s%s\n", name, bus_id, vendor, device,
		   text ? "  " : "", text ? text : "");
}

static void print_way(const struct way *w, struct buf *out)
{
	bool same = share_complex(w);
	const char *dma = w->nic->dma_bus_id;

	print_device(w->gpu->name, w->gpu->bus_id, w->gpu->vendor_id, w->gpu->device_id,
		     &w->gpu->link, out);
	for (size_t i = w->n_up; i > w->common; i--)
		print_bridge(w, &w->up[i - 1], "↑", NULL, out);
	if (w->common > 0)
		print_bridge(w, &w->up[w->common - 1], "●", "nearest common bridge", out);
	else
		buf_printf(out, "  %s %-22s  %s\n", same ? "●" : "↑", "root complex",
			   w->gpu->pcie_root ? w->gpu->pcie_root : "unknown");
	if (!same)
		buf_printf(out, "  ↓ %-22s  %s\n", "root complex",
			   nic_root(w) ? nic_root(w) : "unknown");
	for (size_t i = w->common; i < w->n_down; i++)
		print_bridge(w, &w->down[i], "↓", NULL, out);
	if (dma)
		buf_printf(out, "  ↓ %-22s  %s\n", "Data Direct function", dma);
	print_device(w->nic->name, w->nic->bus_id, w->nic->vendor_id, w->nic->device_id,
		     &w->nic->link, out);
}

static void print_names(const struct way *w, bool colour, struct buf *out)
{
	const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";

	buf_printf(out, "%s%s%s", bold, w->gpu->name, plain);
	if (w->gpu->model)
		buf_printf(out, " (%s)", w->gpu->model);
	buf_printf(out, " and %s%s%s", bold, w->nic->name, plain);
	if (w->nic->netdev || w->nic->rdma_device)
		buf_printf(out, " (%s%s%s)", w->nic->netdev ? w->nic->netdev : "",
			   w->nic->netdev && w->nic->rdma_device ? ", " : "",
			   w->nic->rdma_device ? w->nic->rdma_device : "");
	buf_printf(out, ": %s%s%s", bold, path_class_name(w->pair->path), plain);
	if (w->pair->hops >= 0)
		buf_printf(out, ", %d bridge%s between them", w->pair->hops,
			   w->pair->hops == 1 ? "" : "s");
	buf_str(out, "\n\n");
}

char *topo_explain(const struct inventory *inv, size_t gpu, size_t nic, bool colour)
{
	struct strlist notes = { 0 };
	struct buf out = { 0 };
	struct way w;
	_cleanup_free_ char *reason = NULL;

	way_init(&w, inv, gpu, nic);
	reason = why(&w);
	print_names(&w, colour, &out);
	print_way(&w, &out);
	buf_printf(&out, "\n%s because %s.\n", path_class_name(w.pair->path), reason);
	note_best(&w, &notes);
	note_facts(&w, &notes);
	for (size_t i = 0; i < notes.n; i++)
		buf_printf(&out, "- %s\n", notes.items[i]);
	strlist_done(&notes);
	return str_printable(buf_take(&out), colour);
}

/* --- JSON --- */

static const char *type_word(enum topo_bridge_type type)
{
	static const char *const words[] = { NULL, "root-port", "upstream", "downstream", "other" };

	return words[type]; /* NULL: not known, absent */
}

static void set_acs(json_t *o, const struct way *w, const struct topo_bridge *bridge)
{
	_cleanup_free_ char *effect = acs_effect(w, bridge);
	enum tri redirects = bridge_redirects(w, bridge);
	char bits[ACS_TEXT_SIZE];

	if (bridge->acs >= 0) {
		acs_text(bridge->acs, bits);
		json_set_string(o, "acs", bits);
	}
	json_set_string(o, "acsEffect", effect);
	if (redirects != TRI_UNKNOWN)
		json_set_bool(o, "acsRedirect", redirects == TRI_YES);
}

static void add_bridge_json(json_t *array, const struct way *w, const struct topo_bridge *bridge,
			    const char *side)
{
	_cleanup_free_ char *vendor = xasprintf("%04x", bridge->vendor_id);
	_cleanup_free_ char *device = xasprintf("%04x", bridge->device_id);
	json_t *o = json_new_object();

	json_set_string(o, "busID", bridge->bus_id);
	json_set_string(o, "type", type_word(bridge->type));
	json_set_string(o, "side", side);
	if (bridge->vendor_id) {
		json_set_string(o, "vendorID", vendor);
		json_set_string(o, "deviceID", device);
	}
	set_acs(o, w, bridge);
	json_add(array, o);
}

json_t *topo_explain_json(const struct inventory *inv, size_t gpu, size_t nic)
{
	json_t *o = json_new_object(), *bridges = json_new_array(), *texts = json_new_array();
	struct strlist notes = { 0 };
	struct way w;
	_cleanup_free_ char *reason = NULL;

	way_init(&w, inv, gpu, nic);
	reason = why(&w);
	for (size_t i = w.n_up; i > w.common; i--)
		add_bridge_json(bridges, &w, &w.up[i - 1], "gpu");
	if (w.common > 0)
		add_bridge_json(bridges, &w, &w.up[w.common - 1], "common");
	for (size_t i = w.common; i < w.n_down; i++)
		add_bridge_json(bridges, &w, &w.down[i], "nic");
	note_best(&w, &notes);
	note_facts(&w, &notes);
	for (size_t i = 0; i < notes.n; i++)
		json_add_string(texts, notes.items[i]);
	strlist_done(&notes);
	json_set_string(o, "apiVersion", "twinrail.dev/v1");
	json_set_string(o, "kind", "PathExplanation");
	json_set_string(o, "gpu", w.gpu->name);
	json_set_string(o, "nic", w.nic->name);
	json_set_string(o, "path", path_class_name(w.pair->path));
	if (w.pair->hops >= 0)
		json_set_int(o, "hops", w.pair->hops);
	json_set_string(o, "via", w.pair->via_data_direct ? "data-direct" : "function");
	json_set_bool(o, "best", w.pair->best);
	if (w.pair->acs_redirect != TRI_UNKNOWN)
		json_set_bool(o, "acsRedirect", w.pair->acs_redirect == TRI_YES);
	json_set_string(o, "reason", reason);
	json_set(o, "bridges", bridges);
	json_set(o, "notes", texts);
	return o;
}

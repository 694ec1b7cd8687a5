// SPDX-License-Identifier: Apache-2.0
/*
 * The tree for people: root complex → switches → device.  A NIC stands at the place from which its
 * DMA comes (its Data Direct function), because that is what its distance to a GPU is about.
 */
#include "base/mem.h"
#include "base/str.h"
#include "topo/nest.h"
#include "topo/output.h"

#define MANY 2 /* more than so many times the same warning is said once */

enum colour { PLAIN, BOLD, DIM, GREEN, CYAN, YELLOW };

struct tree {
	const struct inventory *inv;
	bool colour, verbose;
	bool *warned; /* which warnings stand beside their object */
	struct buf *out;
};

static const char *paint(const struct tree *t, enum colour colour)
{
	static const char *const codes[] = { "\033[0m",	 "\033[1m",  "\033[2m",
					     "\033[32m", "\033[36m", "\033[33m" };

	return t->colour ? codes[colour] : "";
}

/*
 * The lines below a thing are put together before they are printed, because the last one looks
 * different: each is a text or something that stands below.
 */
struct line {
	char *text;
	const struct nest *nest; /* whose own lines follow; NULL */
};

struct lines {
	struct line *items;
	size_t n, cap;
};

/* Takes "text". */
static void add(struct lines *lines, char *text, const struct nest *nest)
{
	*array_push(lines->items, lines->n, lines->cap) = (struct line){ text, nest };
}

/* The same is wrong with many: said once below the tree, not beside each. */
static bool is_common(const struct inventory *inv, const struct topo_warning *warning)
{
	size_t n = 0;

	for (size_t i = 0; i < inv->n_warnings && n <= MANY; i++)
		n += topo_warnings_alike(&inv->warnings[i], warning);
	return n > MANY;
}

static void add_warnings(struct tree *t, struct lines *lines, const char *name, const char *bus_id)
{
	for (size_t i = 0; i < t->inv->n_warnings; i++) {
		const struct topo_warning *w = &t->inv->warnings[i];

		if (t->warned[i] || (!streq(w->object, name) && !streq(w->object, bus_id)) ||
		    is_common(t->inv, w))
			continue;
		t->warned[i] = true;
		add(lines,
		    xasprintf("%s! %s: %s%s", paint(t, YELLOW), w->code, w->message,
			      paint(t, PLAIN)),
		    NULL);
	}
}

static char *root_text(const struct tree *t, const char *root)
{
	int numa = root ? nest_root_numa(t->inv, root) : TOPO_UNKNOWN;
	struct buf text = { 0 };

	buf_printf(&text, "%s%s%s", paint(t, BOLD), root ? root : "PCI root unknown",
		   paint(t, PLAIN));
	if (numa >= 0)
		buf_printf(&text, "  NUMA %d", numa);
	return buf_take(&text);
}

static char *bridge_text(const struct tree *t, const struct topo_bridge *bridge)
{
	_cleanup_free_ char *link = topo_link_text(&bridge->link);
	struct buf text = { 0 };

	buf_printf(&text, "%s %s",
		   bridge->type == BRIDGE_UPSTREAM ? "switch" : topo_bridge_type_name(bridge->type),
		   bridge->bus_id);
	if (t->verbose && bridge->vendor_id)
		buf_printf(&text, "  %s%04x:%04x%s", paint(t, DIM), bridge->vendor_id,
			   bridge->device_id, paint(t, PLAIN));
	if (t->verbose && link)
		buf_printf(&text, "  %s", link);
	return buf_take(&text);
}

static void add_link(const struct tree *t, const struct topo_link *link, struct buf *text)
{
	_cleanup_free_ char *words = topo_link_text(link);
	bool degraded = link->degraded == TRI_YES;

	if (words)
		buf_printf(text, "  %sPCIe %s%s%s", degraded ? paint(t, YELLOW) : "", words,
			   degraded ? " DEGRADED" : "", degraded ? paint(t, PLAIN) : "");
}

static void add_numa(const struct tree *t, const char *root, int numa, struct buf *text)
{
	if (numa >= 0 && (!root || nest_root_numa(t->inv, root) < 0))
		buf_printf(text, "  NUMA %d", numa);
}

/* An atomic card is named once, for all of its PFs. */
static void add_best(const struct inventory *inv, size_t gpu, struct buf *text)
{
	const char *separator = NULL;

	for (size_t n = 0; n < inv->n_nics; n++) {
		const struct topo_nic *nic = &inv->nics[n];
		const struct topo_card *card = nic->card >= 0 ? &inv->cards[nic->card] : NULL;
		const struct topo_pair *pair = inventory_pair(inv, gpu, n);
		bool whole = card && card->atomic;

		if (!pair->best || !nest_stands_alone(inv, nic) ||
		    (whole && card->members[0] != (int)n))
			continue;
		if (!separator)
			buf_printf(text, "  best %s", path_class_name(pair->path));
		buf_printf(text, "%s %s", separator ? separator : "", whole ? card->id : nic->name);
		separator = ",";
	}
}

static char *gpu_text(const struct tree *t, size_t i)
{
	const struct topo_gpu *gpu = &t->inv->gpus[i];
	struct buf text = { 0 };

	buf_printf(&text, "%s%s%s  ", paint(t, CYAN), gpu->name, paint(t, PLAIN));
	if (gpu->model)
		buf_str(&text, gpu->model);
	else
		buf_printf(&text, "%s %04x", gpu->vendor, gpu->device_id);
	add_numa(t, gpu->pcie_root, gpu->numa_node, &text);
	if (gpu->rail_group >= 0)
		buf_printf(&text, "  rail group %d", gpu->rail_group);
	if (gpu->partition) {
		buf_printf(&text, "  divided (%s", gpu->partition);
		if (gpu->n_partitions >= 0)
			buf_printf(&text, ", %d parts", gpu->n_partitions);
		buf_str(&text, ")");
	}
	add_link(t, &gpu->link, &text);
	if (t->verbose)
		buf_printf(&text, "  %04x:%04x", gpu->vendor_id, gpu->device_id);
	if (t->verbose && gpu->driver_version)
		buf_printf(&text, "  driver %s", gpu->driver_version);
	if (t->verbose && gpu->gdr)
		buf_printf(&text, "  GPUDirect by %s", gpu->gdr);
	add_best(t->inv, i, &text);
	return buf_take(&text);
}

static void add_port(const struct tree *t, const struct topo_port *port, struct buf *text)
{
	bool up = port->state && streq(port->state, "ACTIVE");

	if (port->rate_gbps >= 0)
		buf_printf(text, "  %d Gb/s", port->rate_gbps);
	if (port->link_layer)
		buf_printf(text, "%s%s", port->rate_gbps >= 0 ? " " : "  ", port->link_layer);
	if (port->state)
		buf_printf(text, " %s%s%s", up ? "" : paint(t, YELLOW), port->state,
			   up ? "" : paint(t, PLAIN));
	if (port->gid_index >= 0)
		buf_printf(text, "  GID %d", port->gid_index);
}

static void add_role(const struct topo_nic *nic, struct buf *text)
{
	if (nic->rail >= 0)
		buf_printf(text, "  rail %d", nic->rail);
	else if (nic->role == ROLE_RAIL)
		buf_str(text, "  rail unknown");
	else
		buf_printf(text, "  %s%s", nic->role == ROLE_UNKNOWN ? "role " : "",
			   topo_role_name(nic->role));
	if (nic->role != ROLE_RAIL && nic->role_source)
		buf_printf(text, " (%s)", nic->role_source);
	if (nic->excluded)
		buf_str(text, "  excluded");
	if (nic->master)
		buf_printf(text, "  part of %s", nic->master);
}

static char *nic_text(const struct tree *t, const struct topo_nic *nic)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s%s%s", paint(t, GREEN), nic->name, paint(t, PLAIN));
	if (nic->netdev)
		buf_printf(&text, "  %s", nic->netdev);
	if (nic->rdma_device)
		buf_printf(&text, "  %s", nic->rdma_device);
	add_role(nic, &text);
	if (nic->is_vf)
		buf_printf(&text, "  VF%s%s", nic->pf_bus_id ? " of " : "",
			   nic->pf_bus_id ? nic->pf_bus_id : "");
	add_numa(t, nest_nic_root(t->inv, nic), nic->numa_node, &text);
	if (nic->n_ports == 1)
		add_port(t, &nic->ports[0], &text);
	add_link(t, &nic->link, &text);
	if (t->verbose) {
		buf_printf(&text, "  %04x:%04x", nic->vendor_id, nic->device_id);
		if (nic->hca_type)
			buf_printf(&text, " %s", nic->hca_type);
		if (nic->firmware)
			buf_printf(&text, "  firmware %s", nic->firmware);
		if (nic->board_id)
			buf_printf(&text, "  board %s", nic->board_id);
	}
	return buf_take(&text);
}

static char *card_text(const struct inventory *inv, const struct topo_card *card)
{
	const char *own = inv->nics[card->members[0]].function_pcie_root;
	struct buf text = { 0 };

	buf_printf(&text, "%s  %zu PFs, %s", card->id, card->n_members,
		   card->atomic ? "handed out together" : "independent");
	if (card->dma_bus_id) {
		buf_printf(&text, ", DMA by %s", card->dma_bus_id);
		if (own)
			buf_printf(&text, ", PFs on %s", own);
	}
	return buf_take(&text);
}

/* VFs are many and alike: one line, or with "verbose" one for each. */
static void add_vfs(struct tree *t, struct lines *lines, const struct topo_nic *pf)
{
	const struct topo_nic *first = NULL, *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < t->inv->n_nics; i++) {
		const struct topo_nic *vf = &t->inv->nics[i];

		if (!vf->pf_bus_id || !streq(vf->pf_bus_id, pf->bus_id))
			continue;
		first = first ? first : vf;
		last = vf;
		n++;
		if (t->verbose) {
			add(lines, nic_text(t, vf), NULL);
			add_warnings(t, lines, vf->name, vf->bus_id);
		}
	}
	if (n == 1 && !t->verbose)
		add(lines, nic_text(t, first), NULL);
	else if (n > 0 && !t->verbose)
		add(lines, xasprintf("%zu VFs  %s … %s", n, first->name, last->name), NULL);
}

static void add_nic_lines(struct tree *t, struct lines *lines, const struct topo_nic *nic)
{
	for (size_t i = 0; nic->n_ports > 1 && i < nic->n_ports; i++) {
		struct buf text = { 0 };

		buf_printf(&text, "port %u", nic->ports[i].port);
		add_port(t, &nic->ports[i], &text);
		add(lines, buf_take(&text), NULL);
	}
	for (size_t i = 0; i < nic->n_children; i++) {
		const struct topo_child *child = &nic->children[i];

		if (!streq(child->kind, "vf"))
			add(lines,
			    xasprintf("%s  %s%s%s", child->netdev ? child->netdev : "(no link)",
				      child->kind, child->rdma_device ? "  " : "",
				      child->rdma_device ? child->rdma_device : ""),
			    NULL);
	}
	add_warnings(t, lines, nic->name, nic->bus_id);
	if (!nic->is_vf)
		add_vfs(t, lines, nic);
}

static char *nest_text(const struct tree *t, const struct nest *nest)
{
	switch (nest->kind) {
	case NEST_ROOT:
		return root_text(t, nest->root);
	case NEST_BRIDGE:
		return bridge_text(t, nest->bridge);
	case NEST_CARD:
		return card_text(t->inv, &t->inv->cards[nest->index]);
	case NEST_GPU:
		return gpu_text(t, nest->index);
	default:
		return nic_text(t, &t->inv->nics[nest->index]);
	}
}

static void print(struct tree *t, const struct nest *nest, const char *indent)
{
	struct lines lines = { 0 };

	if (nest->kind == NEST_CARD)
		add_warnings(t, &lines, t->inv->cards[nest->index].id, "");
	for (size_t i = 0; i < nest->n; i++)
		add(&lines, nest_text(t, nest->children[i]), nest->children[i]);
	if (nest->kind == NEST_GPU)
		add_warnings(t, &lines, t->inv->gpus[nest->index].name,
			     t->inv->gpus[nest->index].bus_id);
	if (nest->kind == NEST_NIC)
		add_nic_lines(t, &lines, &t->inv->nics[nest->index]);
	for (size_t i = 0; i < lines.n; i++) {
		bool last = i + 1 == lines.n;
		_cleanup_free_ char *deeper = xasprintf("%s%s", indent, last ? "   " : "│  ");

		buf_printf(t->out, "%s%s %s\n", indent, last ? "└─" : "├─", lines.items[i].text);
		if (lines.items[i].nest)
			print(t, lines.items[i].nest, deeper);
		free(lines.items[i].text);
	}
	free(lines.items);
}

/* --- the whole --- */

static void print_head(const struct tree *t, struct buf *out)
{
	_cleanup_free_ char *summary = nest_summary(t->inv);

	buf_printf(out, "%s%s%s: %s\n", paint(t, BOLD),
		   t->inv->node_name ? t->inv->node_name : "node", paint(t, PLAIN), summary);
}

/* What stands beside no object; what is said of many, once with their names. */
static void print_warnings(struct tree *t)
{
	const struct inventory *inv = t->inv;

	for (size_t i = 0; i < inv->n_warnings; i++) {
		const struct topo_warning *w = &inv->warnings[i];

		if (t->warned[i])
			continue;
		buf_printf(t->out, "%s! %s: %s", paint(t, YELLOW), w->code, w->object);
		for (size_t k = i + 1; k < inv->n_warnings; k++) {
			if (t->warned[k] || !topo_warnings_alike(&inv->warnings[k], w))
				continue;
			buf_printf(t->out, ", %s", inv->warnings[k].object);
			t->warned[k] = true;
		}
		buf_printf(t->out, ": %s%s\n", w->message, paint(t, PLAIN));
	}
}

char *topo_to_tree(const struct inventory *inv, unsigned int flags)
{
	struct buf out = { 0 };
	struct tree t = {
		.inv = inv,
		.colour = flags & TREE_COLOUR,
		.verbose = flags & TREE_VERBOSE,
		.warned = xcalloc(inv->n_warnings, sizeof(bool)),
		.out = &out,
	};
	struct nest *top = nest_build(inv, t.verbose);

	print_head(&t, &out);
	print(&t, top, "");
	print_warnings(&t);
	nest_free(top);
	free(t.warned);
	return str_printable(buf_take(&out), flags & TREE_COLOUR);
}

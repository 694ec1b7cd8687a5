// SPDX-License-Identifier: Apache-2.0
/*
 * The tree for people: root complex → switches → device.  A NIC stands at the place from which its
 * DMA comes (its Data Direct function), because that is what its distance to a GPU is about.
 */
#include <limits.h>

#include "base/mem.h"
#include "base/str.h"
#include "topo/output.h"

struct node {
	char *key; /* what it stands for; NULL: nothing that others stand below */
	char *text;
	struct node **children;
	size_t n, cap;
};

enum colour { PLAIN, BOLD, DIM, GREEN, CYAN, YELLOW };

struct tree {
	const struct inventory *inv;
	bool colour, verbose;
	bool *warned; /* which warnings stand beside their object */
	struct node root;
};

static const char *paint(const struct tree *t, enum colour colour)
{
	static const char *const codes[] = { "\033[0m",	 "\033[1m",  "\033[2m",
					     "\033[32m", "\033[36m", "\033[33m" };

	return t->colour ? codes[colour] : "";
}

/* A new last child; takes "text". */
static struct node *add(struct node *parent, const char *key, char *text)
{
	struct node *child = xnew(struct node);

	child->key = xstrdup_null(key);
	child->text = text;
	*array_push(parent->children, parent->n, parent->cap) = child;
	return child;
}

static struct node *find(const struct node *parent, const char *key)
{
	for (size_t i = 0; i < parent->n; i++)
		if (streq_null(parent->children[i]->key, key))
			return parent->children[i];
	return NULL;
}

static void node_done(struct node *node)
{
	for (size_t i = 0; i < node->n; i++) {
		node_done(node->children[i]);
		free(node->children[i]);
	}
	free(node->children);
	free(node->key);
	free(node->text);
}

static void print(const struct node *node, const char *indent, struct buf *out)
{
	for (size_t i = 0; i < node->n; i++) {
		bool last = i + 1 == node->n;
		_cleanup_free_ char *deeper = xasprintf("%s%s", indent, last ? "   " : "│  ");

		buf_printf(out, "%s%s %s\n", indent, last ? "└─" : "├─", node->children[i]->text);
		print(node->children[i], deeper, out);
	}
}

static void add_warnings(struct tree *t, struct node *parent, const char *name, const char *bus_id)
{
	for (size_t i = 0; i < t->inv->n_warnings; i++) {
		const struct topo_warning *w = &t->inv->warnings[i];

		if (t->warned[i] || (!streq(w->object, name) && !streq(w->object, bus_id)))
			continue;
		t->warned[i] = true;
		add(parent, NULL,
		    xasprintf("%s! %s: %s%s", paint(t, YELLOW), w->code, w->message,
			      paint(t, PLAIN)));
	}
}

/* --- where things stand --- */

/* The root that a NIC's DMA comes from; NULL: not known. */
static const char *root_of(const struct inventory *inv, const struct topo_nic *nic)
{
	const struct topo_card *card = nic->card >= 0 ? &inv->cards[nic->card] : NULL;

	return card && card->dma_pcie_root ? card->dma_pcie_root : nic->pcie_root;
}

/* VFs stand below their PF. */
static bool stands_alone(const struct inventory *inv, const struct topo_nic *nic)
{
	return !nic->pf_bus_id || !inventory_nic(inv, nic->pf_bus_id);
}

/* The NUMA node of all devices of a root; TOPO_UNKNOWN when they differ or it is not known. */
static int root_numa(const struct inventory *inv, const char *root)
{
	int numa = TOPO_UNKNOWN;
	bool first = true;

	for (size_t i = 0; i < inv->n_gpus + inv->n_nics; i++) {
		const struct topo_nic *nic = i < inv->n_gpus ? NULL : &inv->nics[i - inv->n_gpus];
		int its = nic ? nic->numa_node : inv->gpus[i].numa_node;

		if (!streq_null(nic ? root_of(inv, nic) : inv->gpus[i].pcie_root, root))
			continue;
		if (!first && its != numa)
			return TOPO_UNKNOWN;
		first = false;
		numa = its;
	}
	return numa;
}

static struct node *root_node(struct tree *t, const char *root)
{
	struct node *node = find(&t->root, root);
	struct buf text = { 0 };
	int numa;

	if (node)
		return node;
	numa = root ? root_numa(t->inv, root) : TOPO_UNKNOWN;
	buf_printf(&text, "%s%s%s", paint(t, BOLD), root ? root : "PCI root unknown",
		   paint(t, PLAIN));
	if (numa >= 0)
		buf_printf(&text, "  NUMA %d", numa);
	return add(&t->root, root, buf_take(&text));
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

/* The node below which a device stands: that of its root, or of the nearest switch above it. */
static struct node *place(struct tree *t, const char *root, const struct topo_bridge *bridges,
			  size_t n)
{
	struct node *node = root_node(t, root);

	for (size_t i = 0; root && i < n; i++) {
		struct node *found = find(node, bridges[i].bus_id);

		if (!found && bridges[i].type != BRIDGE_UPSTREAM && !t->verbose)
			continue;
		node = found ? found : add(node, bridges[i].bus_id, bridge_text(t, &bridges[i]));
	}
	return node;
}

/* --- what is said of a device --- */

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
	if (numa >= 0 && (!root || root_numa(t->inv, root) < 0))
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

		if (!pair->best || !stands_alone(inv, nic) || (whole && card->members[0] != (int)n))
			continue;
		if (!separator)
			buf_printf(text, "  best %s", path_class_name(pair->path));
		buf_printf(text, "%s %s", separator ? separator : "", whole ? card->id : nic->name);
		separator = ",";
	}
}

static void add_gpu(struct tree *t, size_t i)
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
	if (t->verbose && gpu->driver_version)
		buf_printf(&text, "  driver %s", gpu->driver_version);
	if (t->verbose && gpu->gdr)
		buf_printf(&text, "  GPUDirect by %s", gpu->gdr);
	add_best(t->inv, i, &text);
	add_warnings(
		t,
		add(place(t, gpu->pcie_root, gpu->bridges, gpu->n_bridges), NULL, buf_take(&text)),
		gpu->name, gpu->bus_id);
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
		buf_printf(text, "  %s", topo_role_name(nic->role));
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
	add_numa(t, root_of(t->inv, nic), nic->numa_node, &text);
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
static void add_vfs(struct tree *t, struct node *node, const struct topo_nic *pf)
{
	const struct topo_nic *first = NULL, *last = NULL;
	size_t n = 0;

	for (size_t i = 0; i < t->inv->n_nics; i++) {
		const struct topo_nic *vf = &t->inv->nics[i];
		struct node *own;

		if (!vf->pf_bus_id || !streq(vf->pf_bus_id, pf->bus_id))
			continue;
		first = first ? first : vf;
		last = vf;
		n++;
		if (!t->verbose)
			continue;
		own = add(node, NULL, nic_text(t, vf));
		add_warnings(t, own, vf->name, vf->bus_id);
	}
	if (n == 1 && !t->verbose)
		add(node, NULL, nic_text(t, first));
	else if (n > 0 && !t->verbose)
		add(node, NULL, xasprintf("%zu VFs  %s … %s", n, first->name, last->name));
}

static void add_nic(struct tree *t, const struct topo_nic *nic)
{
	const struct topo_card *card = nic->card >= 0 ? &t->inv->cards[nic->card] : NULL;
	struct node *parent = place(t, root_of(t->inv, nic), nic->bridges, nic->n_bridges), *node;

	if (card) {
		node = find(parent, card->id);
		parent = node ? node : add(parent, card->id, card_text(t->inv, card));
		if (!node)
			add_warnings(t, parent, card->id, card->id);
	}
	node = add(parent, NULL, nic_text(t, nic));
	for (size_t i = 0; nic->n_ports > 1 && i < nic->n_ports; i++) {
		struct buf text = { 0 };

		buf_printf(&text, "port %u", nic->ports[i].port);
		add_port(t, &nic->ports[i], &text);
		add(node, NULL, buf_take(&text));
	}
	for (size_t i = 0; i < nic->n_children; i++) {
		const struct topo_child *child = &nic->children[i];

		if (streq(child->kind, "vf"))
			continue;
		add(node, NULL,
		    xasprintf("%s  %s%s%s", child->netdev, child->kind,
			      child->rdma_device ? "  " : "",
			      child->rdma_device ? child->rdma_device : ""));
	}
	add_warnings(t, node, nic->name, nic->bus_id);
	if (!nic->is_vf)
		add_vfs(t, node, nic);
}

/* --- the whole --- */

/* "4 GPUs", "1 GPU" */
static void count(struct buf *out, const char *before, size_t n, const char *what)
{
	buf_printf(out, "%s%zu %s%s", before, n, what, n == 1 ? "" : "s");
}

static void print_head(const struct tree *t, struct buf *out)
{
	const struct inventory *inv = t->inv;

	buf_printf(out, "%s%s%s", paint(t, BOLD), inv->node_name ? inv->node_name : "node",
		   paint(t, PLAIN));
	count(out, ": ", inv->n_gpus, "GPU");
	count(out, ", ", inv->n_nics, "NIC");
	count(out, ", ", inv->n_cards, "card");
	count(out, ", ", (size_t)inv->rail_count, "rail");
	if (inv->topology_class != CLASS_UNKNOWN)
		buf_printf(out, ", topology %s", topo_class_name(inv->topology_class));
	if (inv->platform)
		buf_printf(out, ", platform %s", inv->platform);
	if (inv->nvlink_domain)
		buf_printf(out, ", NVLink domain %s", inv->nvlink_domain);
	buf_printf(out, "%s\n", inv->virtual_machine ? ", virtual machine" : "");
}

/* "pci0009:00" before "pci0010:00" before "pci10000:00"; what is no PCI root comes last. */
static unsigned long root_number(const char *root)
{
	char *end;
	unsigned long domain;

	if (!root || !starts_with(root, "pci"))
		return ULONG_MAX;
	domain = strtoul(root + 3, &end, 16);
	return domain << 8 | (*end == ':' ? strtoul(end + 1, NULL, 16) & 0xff : 0);
}

static int cmp_root(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;
	unsigned long m = root_number((*x)->key), n = root_number((*y)->key);

	if (m != n)
		return m < n ? -1 : 1;
	return strcmp((*x)->text, (*y)->text);
}

char *topo_to_tree(const struct inventory *inv, unsigned int flags)
{
	struct tree t = {
		.inv = inv,
		.colour = flags & TREE_COLOUR,
		.verbose = flags & TREE_VERBOSE,
	};
	struct buf out = { 0 };

	t.warned = xcalloc(inv->n_warnings, sizeof(bool));
	for (size_t i = 0; i < inv->n_gpus; i++)
		add_gpu(&t, i);
	for (size_t i = 0; i < inv->n_nics; i++)
		if (stands_alone(inv, &inv->nics[i]))
			add_nic(&t, &inv->nics[i]);
	if (t.root.n)
		qsort(t.root.children, t.root.n, sizeof(struct node *), cmp_root);
	print_head(&t, &out);
	print(&t.root, "", &out);
	for (size_t i = 0; i < inv->n_warnings; i++)
		if (!t.warned[i])
			buf_printf(&out, "%s! %s: %s: %s%s\n", paint(&t, YELLOW),
				   inv->warnings[i].code, inv->warnings[i].object,
				   inv->warnings[i].message, paint(&t, PLAIN));
	node_done(&t.root);
	free(t.warned);
	return buf_take(&out);
}

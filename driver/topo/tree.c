// SPDX-License-Identifier: Apache-2.0
/*
 * The tree for people: PCI root → switch → device, where a NIC stands at the place from which its
 * DMA comes (its Data Direct function), because that is what its distance to a GPU is about.
 */
#include "base/mem.h"
#include "base/str.h"
#include "topo/output.h"

struct node {
	char *text;
	struct node **children;
	size_t n, cap;
};

enum colour { PLAIN, BOLD, GREEN, CYAN, YELLOW };

struct tree {
	const struct inventory *inv;
	bool colour;
	bool *warned; /* which warnings stand beside their object */
	struct node root;
};

static const char *paint(const struct tree *t, enum colour colour)
{
	static const char *const codes[] = { "\033[0m", "\033[1m", "\033[32m", "\033[36m",
					     "\033[33m" };

	return t->colour ? codes[colour] : "";
}

/* The child of "parent" that begins with "text"; made when it is not there.  Takes "text". */
static struct node *add(struct node *parent, char *text)
{
	struct node *child = xnew(struct node);

	child->text = text;
	*array_push(parent->children, parent->n, parent->cap) = child;
	return child;
}

static struct node *find_or_add(struct node *parent, char *text)
{
	for (size_t i = 0; i < parent->n; i++) {
		if (streq(parent->children[i]->text, text)) {
			free(text);
			return parent->children[i];
		}
	}
	return add(parent, text);
}

static void node_done(struct node *node)
{
	for (size_t i = 0; i < node->n; i++) {
		node_done(node->children[i]);
		free(node->children[i]);
	}
	free(node->children);
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

		if (!streq(w->object, name) && !streq(w->object, bus_id))
			continue;
		t->warned[i] = true;
		add(parent, xasprintf("%s! %s: %s%s", paint(t, YELLOW), w->code, w->message,
				      paint(t, PLAIN)));
	}
}

/* Where a device stands: below its root and, if any, its switch. */
static struct node *place(struct tree *t, const char *root, const char *bridge)
{
	struct node *node;

	node = find_or_add(&t->root, xasprintf("%s%s%s", paint(t, BOLD),
					       root ? root : "PCI root unknown", paint(t, PLAIN)));
	return bridge ? find_or_add(node, xasprintf("switch %s", bridge)) : node;
}

static void add_best(const struct inventory *inv, size_t gpu, struct buf *text)
{
	const char *separator = NULL;

	for (size_t n = 0; n < inv->n_nics; n++) {
		const struct topo_pair *pair = inventory_pair(inv, gpu, n);

		if (!pair->best)
			continue;
		if (!separator)
			buf_printf(text, "  best %s", path_class_name(pair->path));
		buf_printf(text, "%s %s", separator ? separator : "", inv->nics[n].name);
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
	if (gpu->numa_node >= 0)
		buf_printf(&text, "  NUMA %d", gpu->numa_node);
	if (gpu->rail_group >= 0)
		buf_printf(&text, "  rail group %d", gpu->rail_group);
	add_best(t->inv, i, &text);
	add_warnings(t, add(place(t, gpu->pcie_root, gpu->pcie_switch), buf_take(&text)), gpu->name,
		     gpu->bus_id);
}

static void add_port(const struct topo_port *port, struct buf *text)
{
	if (port->rate_gbps >= 0)
		buf_printf(text, "  %d Gb/s", port->rate_gbps);
	if (port->link_layer)
		buf_printf(text, "  %s", port->link_layer);
	if (port->state)
		buf_printf(text, "  %s", port->state);
	if (port->gid_index >= 0)
		buf_printf(text, "  GID %d", port->gid_index);
}

static char *nic_text(const struct tree *t, const struct topo_nic *nic)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s%s%s", paint(t, GREEN), nic->name, paint(t, PLAIN));
	if (nic->netdev)
		buf_printf(&text, "  %s", nic->netdev);
	if (nic->rdma_device)
		buf_printf(&text, "  %s", nic->rdma_device);
	if (nic->rail >= 0)
		buf_printf(&text, "  rail %d", nic->rail);
	else
		buf_printf(&text, "  %s",
			   nic->role == ROLE_RAIL ? "rail unknown" : topo_role_name(nic->role));
	if (nic->is_vf)
		buf_printf(&text, "  VF%s%s", nic->pf_bus_id ? " of " : "",
			   nic->pf_bus_id ? nic->pf_bus_id : "");
	if (nic->numa_node >= 0)
		buf_printf(&text, "  NUMA %d", nic->numa_node);
	for (size_t i = 0; i < nic->n_ports; i++)
		add_port(&nic->ports[i], &text);
	return buf_take(&text);
}

static char *card_text(const struct topo_card *card)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s  %zu PFs, %s", card->id, card->n_members,
		   card->atomic ? "handed out together" : "independent");
	if (card->dma_bus_id)
		buf_printf(&text, "; DMA through Data Direct function %s", card->dma_bus_id);
	return buf_take(&text);
}

static void add_nic(struct tree *t, const struct topo_nic *nic)
{
	const struct topo_card *card = nic->card >= 0 ? &t->inv->cards[nic->card] : NULL;
	const char *root = card && card->dma_pcie_root ? card->dma_pcie_root : nic->pcie_root;
	struct node *parent = place(t, root, nic->pcie_switch), *node;

	if (card)
		parent = find_or_add(parent, card_text(card));
	node = add(parent, nic_text(t, nic));
	for (size_t i = 0; i < nic->n_children; i++)
		add(node, xasprintf("%s  %s", nic->children[i].netdev, nic->children[i].kind));
	add_warnings(t, node, nic->name, nic->bus_id);
}

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
	buf_printf(out, "%s\n", inv->virtual_machine ? ", virtual machine" : "");
}

static int cmp_node(const void *a, const void *b)
{
	const struct node *const *x = a, *const *y = b;

	return strcmp((*x)->text, (*y)->text);
}

char *topo_to_tree(const struct inventory *inv, unsigned int flags)
{
	struct tree t = { .inv = inv, .colour = flags & TREE_COLOUR };
	struct buf out = { 0 };

	t.warned = xcalloc(inv->n_warnings, sizeof(bool));
	for (size_t i = 0; i < inv->n_gpus; i++)
		add_gpu(&t, i);
	for (size_t i = 0; i < inv->n_nics; i++)
		add_nic(&t, &inv->nics[i]);
	if (t.root.n)
		qsort(t.root.children, t.root.n, sizeof(struct node *), cmp_node);
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

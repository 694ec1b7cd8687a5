// SPDX-License-Identifier: Apache-2.0
#include "topo/nest.h"

#include "base/mem.h"
#include "base/str.h"
#include "topo/path.h"

const char *nest_nic_root(const struct inventory *inv, const struct topo_nic *nic)
{
	const struct topo_card *card = nic->card >= 0 ? &inv->cards[nic->card] : NULL;

	return card && card->dma_pcie_root ? card->dma_pcie_root : nic->pcie_root;
}

bool nest_stands_alone(const struct inventory *inv, const struct topo_nic *nic)
{
	return !nic->pf_bus_id || !inventory_nic(inv, nic->pf_bus_id);
}

int nest_root_numa(const struct inventory *inv, const char *root)
{
	int numa = TOPO_UNKNOWN;
	bool first = true;

	for (size_t i = 0; i < inv->n_gpus + inv->n_nics; i++) {
		const struct topo_nic *nic = i < inv->n_gpus ? NULL : &inv->nics[i - inv->n_gpus];
		int its = nic ? nic->numa_node : inv->gpus[i].numa_node;

		if (!streq_null(nic ? nest_nic_root(inv, nic) : inv->gpus[i].pcie_root, root))
			continue;
		if (!first && its != numa)
			return TOPO_UNKNOWN;
		first = false;
		numa = its;
	}
	return numa;
}

static struct nest *add(struct nest *parent, const struct nest *what)
{
	struct nest *child = xnew(struct nest);

	*child = *what;
	*array_push(parent->children, parent->n, parent->cap) = child;
	return child;
}

static bool is_same(const struct nest *a, const struct nest *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == NEST_BRIDGE)
		return streq(a->bridge->bus_id, b->bridge->bus_id);
	return a->index == b->index && streq_null(a->root, b->root);
}

static struct nest *find(const struct nest *parent, const struct nest *what)
{
	for (size_t i = 0; i < parent->n; i++)
		if (is_same(parent->children[i], what))
			return parent->children[i];
	return NULL;
}

static struct nest *find_or_add(struct nest *parent, const struct nest *what)
{
	struct nest *found = find(parent, what);

	return found ? found : add(parent, what);
}

/* What a device stands in: its root, or the nearest switch above it. */
static struct nest *place(struct nest *top, const char *root, const struct topo_bridge *bridges,
			  size_t n, bool all_bridges)
{
	struct nest *nest = find_or_add(top, &(struct nest){ .kind = NEST_ROOT, .root = root });

	for (size_t i = 0; root && i < n; i++)
		if (all_bridges || bridges[i].type == BRIDGE_UPSTREAM)
			nest = find_or_add(
				nest, &(struct nest){ .kind = NEST_BRIDGE, .bridge = &bridges[i] });
	return nest;
}

static int cmp_root(const void *a, const void *b)
{
	const struct nest *const *x = a, *const *y = b;
	unsigned long m = pcie_root_number((*x)->root), n = pcie_root_number((*y)->root);

	if (m != n)
		return m < n ? -1 : 1;
	return strcmp((*x)->root ? (*x)->root : "", (*y)->root ? (*y)->root : "");
}

struct nest *nest_build(const struct inventory *inv, bool all_bridges)
{
	struct nest *top = xnew(struct nest);

	for (size_t i = 0; i < inv->n_gpus; i++) {
		const struct topo_gpu *gpu = &inv->gpus[i];

		add(place(top, gpu->pcie_root, gpu->bridges, gpu->n_bridges, all_bridges),
		    &(struct nest){ .kind = NEST_GPU, .index = i });
	}
	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		struct nest *parent;

		if (!nest_stands_alone(inv, nic))
			continue;
		parent = place(top, nest_nic_root(inv, nic), nic->bridges, nic->n_bridges,
			       all_bridges);
		if (nic->card >= 0)
			parent = find_or_add(parent, &(struct nest){ .kind = NEST_CARD,
								     .index = (size_t)nic->card });
		add(parent, &(struct nest){ .kind = NEST_NIC, .index = i });
	}
	if (top->n)
		qsort(top->children, top->n, sizeof(struct nest *), cmp_root);
	return top;
}

/* "4 GPUs", "1 GPU" */
static void count(struct buf *out, const char *before, size_t n, const char *what)
{
	buf_printf(out, "%s%zu %s%s", before, n, what, n == 1 ? "" : "s");
}

char *nest_summary(const struct inventory *inv)
{
	struct buf out = { 0 };

	count(&out, "", inv->n_gpus, "GPU");
	count(&out, ", ", inv->n_nics, "NIC");
	count(&out, ", ", inv->n_cards, "card");
	count(&out, ", ", (size_t)inv->rail_count, "rail");
	if (inv->topology_class != CLASS_UNKNOWN)
		buf_printf(&out, ", topology %s", topo_class_name(inv->topology_class));
	if (inv->platform)
		buf_printf(&out, ", platform %s", inv->platform);
	if (inv->nvlink_domain)
		buf_printf(&out, ", NVLink domain %s", inv->nvlink_domain);
	if (inv->virtual_machine)
		buf_str(&out, ", virtual machine");
	return buf_take(&out);
}

struct nest *nest_free(struct nest *nest)
{
	if (!nest)
		return NULL;
	for (size_t i = 0; i < nest->n; i++)
		nest_free(nest->children[i]);
	free(nest->children);
	free(nest);
	return NULL;
}

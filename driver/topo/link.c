// SPDX-License-Identifier: Apache-2.0
/* PCI Express links that run below what they could. */
#include "topo/link.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"
#include "topo/build.h"
#include "topo/output.h"

const struct hw_pci *link_upstream(const struct hw_machine *machine, const struct hw_pci *pci)
{
	const char *last = pci->path ? strrchr(pci->path, '/') : NULL, *start = last;
	_cleanup_free_ char *bus_id = NULL;

	while (start && start > pci->path && start[-1] != '/')
		start--;
	if (!last || start == pci->path)
		return NULL;
	bus_id = xstrndup(start, (size_t)(last - start));
	return is_bus_id(bus_id) ? hw_find_pci(machine, bus_id) : NULL;
}

static int known(int value)
{
	return value > 0 ? value : TOPO_UNKNOWN;
}

/* What both ends can do; unknown when one end is. */
static int possible(int here, int above)
{
	if (here <= 0 || above <= 0)
		return TOPO_UNKNOWN;
	return here < above ? here : above;
}

static enum tri below(int now, int can)
{
	if (now < 0 || can < 0)
		return TRI_UNKNOWN;
	return now < can ? TRI_YES : TRI_NO;
}

struct topo_link link_of(const struct hw_machine *machine, const struct hw_pci *pci,
			 bool width_only)
{
	const struct hw_pci *above = link_upstream(machine, pci);
	struct topo_link link = {
		.speed_mts = known(pci->link.speed_mts),
		.max_speed_mts = known(pci->link.max_speed_mts),
		.width = known(pci->link.width),
		.max_width = known(pci->link.max_width),
	};
	enum tri width, speed = TRI_NO;

	if (!above)
		return link;
	width = below(link.width, possible(link.max_width, above->link.max_width));
	if (!width_only)
		speed = below(link.speed_mts,
			      possible(link.max_speed_mts, above->link.max_speed_mts));
	if (width == TRI_YES || speed == TRI_YES)
		link.degraded = TRI_YES;
	else if (width == TRI_NO && speed == TRI_NO)
		link.degraded = TRI_NO;
	return link;
}

static void warn_degraded(struct builder *b, const char *object, const struct hw_pci *pci,
			  const struct topo_link *link)
{
	const struct hw_pci *above = link_upstream(b->machine, pci);
	struct topo_link numbers = { .speed_mts = link->speed_mts, .width = link->width };
	_cleanup_free_ char *now = topo_link_text(&numbers), *can = NULL;

	if (link->degraded != TRI_YES || !above)
		return;
	numbers.speed_mts = possible(link->max_speed_mts, above->link.max_speed_mts);
	numbers.width = possible(link->max_width, above->link.max_width);
	can = topo_link_text(&numbers);
	topo_warn(
		b, "link-degraded", object,
		"its PCI Express link to %s runs at %s, but both ends can do %s: seat it anew, or "
		"check the slot, riser or cable",
		above->bus_id, now, can);
}

/* The traffic of a Data Direct card takes the link of that function; one serves all its PFs. */
static void check_data_direct(struct builder *b, size_t nic)
{
	const char *dma = b->inv->nics[nic].dma_bus_id;
	const struct hw_pci *pci = dma ? hw_find_pci(b->machine, dma) : NULL;
	struct topo_link link;

	for (size_t i = 0; pci && i < nic; i++)
		if (streq_null(b->inv->nics[i].dma_bus_id, dma))
			return;
	if (!pci)
		return;
	link = link_of(b->machine, pci, false);
	warn_degraded(b, pci->bus_id, pci, &link);
}

void topo_set_links(struct builder *b)
{
	struct inventory *inv = b->inv;

	for (size_t i = 0; i < inv->n_gpus; i++) {
		struct topo_gpu *gpu = &inv->gpus[i];
		const struct hw_pci *pci = hw_find_pci(b->machine, gpu->bus_id);

		gpu->link = link_of(b->machine, pci, true);
		warn_degraded(b, gpu->name, pci, &gpu->link);
	}
	for (size_t i = 0; i < inv->n_nics; i++) {
		struct topo_nic *nic = &inv->nics[i];

		nic->link = link_of(b->machine, b->nics[i].pci, false);
		/* A VF has no link: its numbers are those of the PF, or a virtual machine's. */
		if (nic->is_vf)
			nic->link.degraded = TRI_UNKNOWN;
		warn_degraded(b, nic->name, b->nics[i].pci, &nic->link);
	}
	for (size_t i = 0; i < inv->n_nics; i++)
		if (b->nics[i].pf >= 0)
			inv->nics[i].link = inv->nics[b->nics[i].pf].link;
		else
			check_data_direct(b, i);
}

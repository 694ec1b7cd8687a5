// SPDX-License-Identifier: Apache-2.0
/* Access Control Services on the way between GPUs and NICs, and IOMMU groups. */
#include "topo/acs.h"

#include "base/mem.h"
#include "base/str.h"
#include "topo/build.h"

#define ACS_BITS (ACS_TEXT_SIZE - 1)

void acs_text(int acs, char text[ACS_TEXT_SIZE])
{
	for (int i = 0; i < ACS_BITS; i++)
		text[i] = (char)('0' + (acs >> (ACS_BITS - 1 - i) & 1));
	text[ACS_BITS] = '\0';
}

/* The port below the nearest common bridge: where traffic of this side enters; NULL: none. */
static const struct place_bridge *entry(const struct place *place, size_t common)
{
	return common < place->n ? &place->bridges[common] : NULL;
}

enum tri acs_port_redirects(int acs, bool is_nics)
{
	int bit = is_nics ? HW_ACS_P2P_REQUEST_REDIRECT : HW_ACS_P2P_COMPLETION_REDIRECT;

	if (acs < 0)
		return TRI_UNKNOWN;
	return acs & bit ? TRI_YES : TRI_NO;
}

enum tri acs_redirects(const struct place *nic, const struct place *gpu)
{
	const struct place_bridge *nics, *gpus;
	enum tri request, completion;
	size_t common;

	if (!nic->complex || !gpu->complex || !streq(nic->complex, gpu->complex))
		return TRI_UNKNOWN;
	common = place_common(nic, gpu);
	nics = entry(nic, common);
	gpus = entry(gpu, common);
	if (!nics && !gpus)
		return TRI_UNKNOWN;
	request = nics ? acs_port_redirects(nics->acs, true) : TRI_NO;
	completion = gpus ? acs_port_redirects(gpus->acs, false) : TRI_NO;
	if (request == TRI_YES || completion == TRI_YES)
		return TRI_YES;
	return request == TRI_NO && completion == TRI_NO ? TRI_NO : TRI_UNKNOWN;
}

/* --- what Data Direct needs --- */

/*
 * What the ports of a Data Direct complex should have: rdma-core's rdma_topo.  As the kernel
 * writes them, x: any.
 */
static const char dma_port[] = "xx110x1", gpu_port[] = "xx101x1", root_port[] = "xx111x0";

static bool as_expected(int acs, const char *expected)
{
	for (int i = 0; i < ACS_BITS; i++)
		if (expected[i] != 'x' &&
		    (acs >> (ACS_BITS - 1 - i) & 1) != (expected[i] == '1' ? 1 : 0))
			return false;
	return true;
}

static void check_port(struct builder *b, struct strlist *seen, const struct place_bridge *port,
		       const char *expected, const char *what)
{
	char text[ACS_TEXT_SIZE];

	if (!port || port->acs < 0 || strlist_has(seen, port->bus_id))
		return;
	strlist_add(seen, port->bus_id);
	if (as_expected(port->acs, expected))
		return;
	acs_text(port->acs, text);
	topo_warn(b, "acs-unexpected", port->bus_id,
		  "Access Control Services of the %s are %s, but Data Direct needs %s: traffic "
		  "between NIC and GPU may take the way over the CPU; see the kernel's parameter "
		  "pci=config_acs=",
		  what, text, expected);
}

static void check_groups(struct builder *b, const struct hw_pci *dma, const struct topo_gpu *gpu)
{
	if (dma->iommu_group < 0 || gpu->iommu_group < 0 || dma->iommu_group == gpu->iommu_group)
		return;
	topo_warn(b, "iommu-group", dma->bus_id,
		  "this Data Direct function is in IOMMU group %d and %s in %d: Data Direct needs "
		  "both in one; check Access Control Services of the bridges between them",
		  dma->iommu_group, gpu->name, gpu->iommu_group);
}

/* One Data Direct function and a GPU behind the same switch. */
static void check_complex(struct builder *b, struct strlist *seen, const struct place *nic,
			  size_t gpu, const struct hw_pci *dma)
{
	const struct place *place = &b->gpus[gpu];
	size_t common = place_common(nic, place);

	if (nic->n && nic->bridges[0].type == HW_PORT_ROOT)
		check_port(b, seen, &nic->bridges[0], root_port, "root port");
	check_port(b, seen, entry(nic, common), dma_port, "port of the Data Direct function");
	check_port(b, seen, entry(place, common), gpu_port, "port of the GPU");
	check_groups(b, dma, &b->inv->gpus[gpu]);
}

static bool seen_before(const struct inventory *inv, size_t nic)
{
	for (size_t i = 0; i < nic; i++)
		if (streq_null(inv->nics[i].dma_bus_id, inv->nics[nic].dma_bus_id))
			return true;
	return false;
}

void topo_set_acs(struct builder *b)
{
	struct inventory *inv = b->inv;
	struct strlist seen = { 0 };

	for (size_t i = 0; i < inv->n_pairs; i++) {
		struct topo_pair *pair = &inv->pairs[i];

		pair->acs_redirect = acs_redirects(&b->nics[pair->nic].place, &b->gpus[pair->gpu]);
	}
	for (size_t n = 0; n < inv->n_nics; n++) {
		const char *dma = inv->nics[n].dma_bus_id;

		if (!dma || seen_before(inv, n))
			continue;
		for (size_t g = 0; g < inv->n_gpus; g++)
			if (inventory_pair(inv, g, n)->path <= PATH_PXB)
				check_complex(b, &seen, &b->nics[n].place, g,
					      hw_find_pci(b->machine, dma));
	}
	strlist_done(&seen);
}

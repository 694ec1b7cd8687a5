// SPDX-License-Identifier: Apache-2.0
/* Devices by whatever people call them: all names that the outputs show. */
#include "base/bus_id.h"
#include "base/str.h"
#include "topo/nest.h"
#include "topo/output.h"

static bool is_address(const char *bus_id, const char *wanted)
{
	return is_bus_id(wanted) && bus_id_cmp(bus_id, wanted) == 0;
}

/* "GPU3" with "GPU" → 3, as the matrix counts; -1: it is no such word. */
static int counted(const char *wanted, const char *word)
{
	unsigned int n;

	if (!starts_with(wanted, word) || parse_uint(wanted + strlen(word), 65535, &n) < 0)
		return -1;
	return (int)n;
}

int topo_find_gpu(const struct inventory *inv, const char *wanted)
{
	int number = counted(wanted, "GPU");

	for (size_t i = 0; i < inv->n_gpus; i++) {
		const struct topo_gpu *gpu = &inv->gpus[i];

		if (streq(gpu->name, wanted) || streq_null(gpu->uuid, wanted) ||
		    is_address(gpu->bus_id, wanted) || (int)i == number)
			return (int)i;
	}
	return -1;
}

static bool is_child(const struct topo_nic *nic, const char *wanted)
{
	for (size_t i = 0; i < nic->n_children; i++)
		if (streq_null(nic->children[i].netdev, wanted) ||
		    streq_null(nic->children[i].rdma_device, wanted))
			return true;
	return false;
}

/* The NIC itself, before one that has a link or VF of that name. */
static int find_own(const struct inventory *inv, const char *wanted)
{
	int number = counted(wanted, "NIC"), shown = 0;

	for (size_t i = 0; i < inv->n_nics; i++) {
		const struct topo_nic *nic = &inv->nics[i];
		bool alone = nest_stands_alone(inv, nic);

		if (streq(nic->name, wanted) || is_address(nic->bus_id, wanted) ||
		    streq_null(nic->netdev, wanted) || streq_null(nic->rdma_device, wanted) ||
		    (alone && shown == number))
			return (int)i;
		shown += alone;
	}
	return -1;
}

int topo_find_nic(const struct inventory *inv, const char *wanted)
{
	const struct topo_card *card = inventory_card(inv, wanted);
	int found = find_own(inv, wanted);

	if (found < 0 && card)
		return card->members[0];
	for (size_t i = 0; found < 0 && i < inv->n_nics; i++)
		if (streq_null(inv->nics[i].master, wanted) || is_child(&inv->nics[i], wanted))
			return (int)i;
	return found;
}

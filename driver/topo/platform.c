// SPDX-License-Identifier: Apache-2.0
/* The machines we know, by the number and PCI ids of their GPUs. */
#include "topo/build.h"

#include "base/mem.h"
#include "base/str.h"

struct platform {
	const char *name;
	size_t n_gpus;
	unsigned int vendor, devices[2]; /* the second one may be 0 */
	bool root_order; /* the order of PCI roots is that of the rails */
};

static const struct platform platforms[] = {
	{ "hgx-h100", 8, VENDOR_NVIDIA, { 0x2330 }, true },
	{ "hgx-h200", 8, VENDOR_NVIDIA, { 0x2335 }, true },
	{ "hgx-b200", 8, VENDOR_NVIDIA, { 0x2901 }, false },
	{ "gb200", 4, VENDOR_NVIDIA, { 0x2941 }, false },
	{ "gb300", 4, VENDOR_NVIDIA, { 0x31c2, 0x31c3 }, false },
};

static bool is_platform(const struct platform *platform, const struct inventory *inv)
{
	if (inv->n_gpus != platform->n_gpus)
		return false;
	for (size_t i = 0; i < inv->n_gpus; i++) {
		const struct topo_gpu *gpu = &inv->gpus[i];

		if (gpu->vendor_id != platform->vendor || (gpu->device_id != platform->devices[0] &&
							   gpu->device_id != platform->devices[1]))
			return false;
	}
	return true;
}

void topo_set_platform(struct builder *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(platforms); i++) {
		if (!is_platform(&platforms[i], b->inv))
			continue;
		b->inv->platform = xstrdup(platforms[i].name);
		b->root_order = platforms[i].root_order;
		return;
	}
}

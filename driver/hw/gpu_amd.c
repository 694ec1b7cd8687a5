// SPDX-License-Identifier: Apache-2.0
/*
 * AMD GPUs: KFD has one topology node per CPU socket and per GPU, or per partition of a GPU when it
 * is divided; amdgpu has attributes in the directory of the PCI function.
 */
#include <ctype.h>

#include "base/bus_id.h"
#include "base/mem.h"
#include "hw/gpu.h"
#include "hw/read.h"

#define NODES "sys/class/kfd/kfd/topology/nodes"
#define MAX_NODES 1024

/* A "name number" line of the properties file. */
static bool property(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		_cleanup_free_ char *value = NULL;

		p += *p == '\n';
		if (strncmp(p, name, n) != 0 || p[n] != ' ')
			continue;
		value = xstrndup(p + n + 1, strcspn(p + n + 1, "\n"));
		return parse_u64(str_rstrip(value), 10, ret) == 0;
	}
	return false;
}

/* Bits 8-15 bus, 3-7 device, 0-2 function; above them the number of a partition. */
static char *function_of(const char *properties)
{
	uint64_t domain = 0, location;

	if (!property(properties, "location_id", &location))
		return NULL;
	if (property(properties, "domain", &domain) && domain > UINT32_MAX)
		return NULL;
	return xasprintf("%04x:%02x:%02x.%u", (unsigned int)domain,
			 (unsigned int)(location >> 8 & 0xff), (unsigned int)(location >> 3 & 0x1f),
			 (unsigned int)(location & 7));
}

/* "CPX" → "cpx"; SPX is one undivided GPU. */
static char *compute_mode(struct hw_dir *dir)
{
	_cleanup_free_ char *mode = hw_dir_text(dir, "current_compute_partition");

	for (char *p = mode; p && *p; p++) {
		if (!isalnum((unsigned char)*p))
			return NULL;
		*p = (char)tolower((unsigned char)*p);
	}
	return mode && !streq(mode, "spx") ? TAKE_PTR(mode) : NULL;
}

static void read_amdgpu(const struct hw_root *root, const struct hw_pci *pci, struct hw_gpu *gpu)
{
	_cleanup_(hw_dir_close) struct hw_dir dir = { .fd = -1 };

	if (hw_dir_open(root, pci->path + 1, &dir) < 0)
		return;
	gpu->model = hw_dir_text(&dir, "product_name");
	gpu->uuid = hw_dir_text(&dir, "unique_id");
	gpu->partition = compute_mode(&dir);
}

static void read_kfd_node(const struct hw_root *root, const char *name, struct hw_machine *machine)
{
	_cleanup_free_ char *dir = xasprintf(NODES "/%s", name), *bus_id = NULL;
	_cleanup_free_ char *properties = hw_attr(root, dir, "properties");
	_cleanup_free_ char *gpu_id = hw_attr(root, dir, "gpu_id");
	const struct hw_pci *pci;
	struct hw_gpu *gpu;
	uint64_t v;

	/* A socket has the identifier 0; a GPU of which this cgroup has no part cannot be read. */
	if (!properties || !gpu_id || streq(gpu_id, "0"))
		return;
	bus_id = function_of(properties);
	pci = bus_id ? hw_find_pci(machine, bus_id) : NULL;
	if (!pci)
		return;
	gpu = hw_gpu_of(machine, bus_id);
	if (gpu->n_partitions == HW_UNKNOWN) {
		gpu->n_partitions = 0;
		read_amdgpu(root, pci, gpu);
	}
	gpu->n_partitions++;
	/* Each partition has a render node; that of the function itself is the lowest. */
	if (property(properties, "drm_render_minor", &v) && v > 0 && v <= 0xfffff &&
	    (gpu->minor == HW_UNKNOWN || (int)v < gpu->minor))
		gpu->minor = (int)v;
	if (!gpu->uuid && property(properties, "unique_id", &v) && v)
		gpu->uuid = xasprintf("%016llx", (unsigned long long)v);
}

void hw_read_amd(const struct hw_root *root, struct hw_machine *machine)
{
	struct strlist names = { 0 };

	if (hw_list(root, NODES, MAX_NODES, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++)
		read_kfd_node(root, names.items[i], machine);
	strlist_done(&names);
	/* One part is no partition. */
	for (size_t i = 0; i < machine->n_gpus; i++)
		if (machine->gpus[i].n_partitions == 1 && !machine->gpus[i].partition)
			machine->gpus[i].n_partitions = HW_UNKNOWN;
}

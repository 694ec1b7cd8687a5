// SPDX-License-Identifier: Apache-2.0
/* Which PCI functions are GPUs, and their own facts. */
#include "topo/build.h"

#include "base/bus_id.h"
#include "base/mem.h"
#include "base/str.h"
#include "topo/numa.h"

const char *topo_gpu_vendor(const struct hw_pci *pci)
{
	unsigned int class = pci->class >> 8;

	if (pci->vendor == VENDOR_NVIDIA && (class == 0x0300 || class == 0x0302))
		return "nvidia";
	if (pci->vendor == VENDOR_AMD && (class == 0x1200 || class == 0x0380))
		return "amd";
	if (pci->vendor == VENDOR_INTEL && class == 0x0380)
		return "intel";
	return NULL;
}

/* "6.1.0-57-amd64" is at least major.minor; TRI_UNKNOWN: not of that form. */
static enum tri kernel_since(const char *release, unsigned int major, unsigned int minor)
{
	struct strlist parts = { 0 };
	enum tri since = TRI_UNKNOWN;
	unsigned int x, y;

	if (!release)
		return TRI_UNKNOWN;
	strlist_split(&parts, release, '.');
	if (parts.n >= 2) {
		_cleanup_free_ char *second =
			xstrndup(parts.items[1], strspn(parts.items[1], "0123456789"));

		if (parse_uint(parts.items[0], 9999, &x) == 0 && parse_uint(second, 9999, &y) == 0)
			since = x > major || (x == major && y >= minor) ? TRI_YES : TRI_NO;
	}
	strlist_done(&parts);
	return since;
}

/*
 * How a NIC reaches the memory of NVIDIA's GPUs, by NVIDIA's documentation of GPUDirect RDMA and
 * of the GPU Operator: through the module nvidia-peermem, or by DMA-BUF, which needs the open
 * kernel modules and Linux 5.12.  Whether the user's CUDA can (11.7) is not known here.
 */
static const char *nvidia_gdr(const struct hw_machine *m)
{
	enum tri kernel = kernel_since(m->kernel_release, 5, 12);

	if (m->nvidia_peermem)
		return "peermem";
	if (!m->nvidia_driver)
		return NULL;
	if (!m->nvidia_open || kernel == TRI_NO)
		return "none";
	return kernel == TRI_YES ? "dmabuf" : NULL;
}

bool topo_is_described(const struct topo_gpu *gpu)
{
	return gpu->uuid || gpu->minor >= 0;
}

static bool is_told(const struct hw_machine *m, const char *code, const char *object)
{
	for (size_t i = 0; i < m->n_warnings; i++)
		if (streq(m->warnings[i].code, code) && streq(m->warnings[i].object, object))
			return true;
	return false;
}

/* It is not handed out.  One that the driver lists without information has a warning already. */
static void warn_without_driver(struct builder *b, const struct hw_pci *pci,
				const struct topo_gpu *gpu)
{
	if (pci->vendor != VENDOR_NVIDIA || topo_is_described(gpu) || gpu->broken)
		return;
	if (!pci->driver)
		topo_warn(b, "gpu-without-driver", gpu->name,
			  "it has no driver, so it cannot be handed out: is the nvidia module "
			  "loaded, and does the kernel's log say why it failed?");
	else if (!streq(pci->driver, "nvidia"))
		topo_warn(b, "gpu-without-driver", gpu->name,
			  "it is bound to %s%s, so it cannot be handed out; bind it to nvidia if "
			  "that is not wanted",
			  pci->driver,
			  streq(pci->driver, "vfio-pci") ? " (for a virtual machine)" : "");
	else if (!is_told(b->machine, "gpu-information", gpu->bus_id))
		topo_warn(b, "gpu-without-driver", gpu->name,
			  "it is bound to nvidia, which tells neither its UUID nor its minor "
			  "number, so it cannot be handed out: does the kernel's log say why, and "
			  "is /proc/driver/nvidia there?");
}

static void add_gpu(struct builder *b, const struct hw_pci *pci, const char *vendor)
{
	const struct hw_machine *m = b->machine;
	struct topo_gpu *gpu = array_push(b->inv->gpus, b->inv->n_gpus, b->cap_gpus);
	size_t n_places = b->inv->n_gpus - 1;
	struct place *place = array_push(b->gpus, n_places, b->cap_gpu_places);

	place_init(place, m, pci);
	*gpu = (struct topo_gpu){
		.name = device_name("gpu", pci->bus_id),
		.bus_id = xstrdup(pci->bus_id),
		.vendor = vendor,
		.vendor_id = pci->vendor,
		.device_id = pci->device,
		.minor = TOPO_UNKNOWN,
		.n_partitions = TOPO_UNKNOWN,
		.broken = pci->broken,
		.iommu_group = pci->iommu_group,
		.numa_node = numa_node_known(pci->numa_node),
		.pcie_root = pcie_root_of(pci->bus_id, pci->path),
		.pcie_switch = xstrdup_null(place_switch(place)),
		.rail_group = TOPO_UNKNOWN,
	};
	if (pci->vendor == VENDOR_NVIDIA) {
		gpu->driver_version = xstrdup_null(m->nvidia_driver);
		gpu->gdr = nvidia_gdr(m);
	}
	for (size_t i = 0; i < m->n_gpus; i++) {
		const struct hw_gpu *hw = &m->gpus[i];

		if (bus_id_cmp(hw->bus_id, pci->bus_id) != 0)
			continue;
		gpu->model = xstrdup_null(hw->model);
		gpu->uuid = xstrdup_null(hw->uuid);
		gpu->minor = hw->minor;
		gpu->partition = xstrdup_null(hw->partition);
		if (hw->partition)
			gpu->n_partitions = hw->n_partitions;
		break;
	}
	if (b->options->numa_lists)
		gpu->numa_nodes = numa_nodes_near(m, gpu->numa_node, &gpu->n_numa_nodes);
	warn_without_driver(b, pci, gpu);
	if (gpu->partition)
		topo_warn(b, "gpu-partitioned", gpu->name,
			  "it is divided (%s): whoever publishes GPUs here must publish its parts; "
			  "twinrail publishes whole GPUs only and leaves it out",
			  gpu->partition);
	if (!gpu->pcie_root)
		topo_warn(b, "pcie-root-unknown", gpu->name,
			  "its place in the PCI tree is not below a PCI root complex of this "
			  "machine; pcieRoot is left out");
}

/* A VF beside its PF is a share of that GPU, not one more. */
static bool is_share(const struct hw_machine *machine, const struct hw_pci *pci)
{
	return pci->physfn && hw_find_pci(machine, pci->physfn);
}

void topo_add_gpus(struct builder *b)
{
	_cleanup_free_ const struct hw_pci **sorted = topo_sorted_functions(b->machine);

	for (size_t i = 0; i < b->machine->n_pci; i++) {
		const char *vendor = topo_gpu_vendor(sorted[i]);

		if (vendor && !is_share(b->machine, sorted[i]))
			add_gpu(b, sorted[i], vendor);
	}
}

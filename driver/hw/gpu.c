// SPDX-License-Identifier: Apache-2.0
#include "hw/gpu.h"

#include <ctype.h>

#include "base/bus_id.h"
#include "base/mem.h"
#include "hw/read.h"

#define NVIDIA "proc/driver/nvidia"
#define NVIDIA_GPUS NVIDIA "/gpus"
#define CLASS_DRM "sys/class/drm"
#define MAX_DRM 4096
#define MAX_INSTANCES 64

struct hw_gpu *hw_gpu_of(struct hw_machine *machine, const char *bus_id)
{
	struct hw_gpu *gpu;

	for (size_t i = 0; i < machine->n_gpus; i++)
		if (streq(machine->gpus[i].bus_id, bus_id))
			return &machine->gpus[i];
	gpu = array_push(machine->gpus, machine->n_gpus, machine->cap_gpus);
	*gpu = (struct hw_gpu){
		.bus_id = xstrdup(bus_id),
		.minor = HW_UNKNOWN,
		.n_partitions = HW_UNKNOWN,
	};
	return gpu;
}

/* "Model: \t\t NVIDIA GB300" → the value of "Model"; NULL when the line is not there or empty. */
static char *field(const struct strlist *lines, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < lines->n; i++) {
		const char *p = lines->items[i];

		if (strncmp(p, name, n) != 0 || p[n] != ':')
			continue;
		for (p += n + 1; isspace((unsigned char)*p); p++)
			;
		if (*p)
			return str_rstrip(xstrdup(p));
	}
	return NULL;
}

/* "GPU-???…" until the GPU was used once, or an error text. */
static bool is_uuid(const char *text)
{
	return starts_with(text, "GPU-") && text[4] &&
	       text[4 + strspn(text + 4, "0123456789abcdefABCDEF-")] == '\0';
}

/* The GPU is divided when it has instances (MIG); the mode itself is not in /proc. */
static void read_instances(const struct hw_root *root, struct hw_gpu *gpu)
{
	_cleanup_free_ char *dir = NULL;
	struct strlist names = { 0 };
	int n = 0;

	if (gpu->minor < 0)
		return;
	dir = xasprintf(NVIDIA "/capabilities/gpu%d/mig", gpu->minor);
	if (hw_list(root, dir, MAX_INSTANCES, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++)
		n += starts_with(names.items[i], "gi");
	strlist_done(&names);
	if (n > 0) {
		gpu->partition = xstrdup("mig");
		gpu->n_partitions = n;
	}
}

/*
 * The driver writes addresses as sysfs does; libraries of it with a domain of eight digits, perhaps
 * in upper case: "00000000:3B:00.0".  NULL: it is no address.
 */
static char *nvidia_bus_id(const char *name)
{
	_cleanup_free_ char *text = xstrdup(name);

	for (char *p = text; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (!is_bus_id(text))
		return NULL;
	return xstrdup(strchr(text, ':') == text + 8 && starts_with(text, "0000") ? text + 4
										  : text);
}

static void read_nvidia(const struct hw_root *root, const char *name, struct hw_machine *machine)
{
	_cleanup_free_ char *dir = xasprintf(NVIDIA_GPUS "/%s", name);
	_cleanup_free_ char *bus_id = nvidia_bus_id(name), *text = NULL, *minor = NULL;
	struct strlist lines = { 0 };
	struct hw_gpu *gpu;

	if (!bus_id)
		return;
	text = hw_attr(root, dir, "information");
	if (!text) {
		if (hw_exists(root, dir))
			hw_warn(machine, "gpu-information", bus_id,
				"the NVIDIA driver gives no model and UUID of this GPU");
		return;
	}
	gpu = hw_gpu_of(machine, bus_id);
	if (gpu->model || gpu->uuid)
		return; /* listed twice */
	strlist_split(&lines, text, '\n');
	minor = field(&lines, "Device Minor");
	gpu->model = field(&lines, "Model");
	gpu->uuid = field(&lines, "GPU UUID");
	if (gpu->uuid && !is_uuid(gpu->uuid)) {
		free(gpu->uuid);
		gpu->uuid = NULL;
	}
	if (minor && (parse_int(minor, &gpu->minor) < 0 || gpu->minor < 0))
		gpu->minor = HW_UNKNOWN;
	strlist_done(&lines);
	read_instances(root, gpu);
}

static void read_all_nvidia(const struct hw_root *root, struct hw_machine *machine)
{
	_cleanup_free_ char *version = hw_attr(root, NVIDIA, "version");
	struct strlist names = { 0 };

	machine->nvidia_driver = hw_attr(root, "sys/module/nvidia", "version");
	machine->nvidia_open = version && strstr(version, "Open Kernel Module");
	/* The second is its name when it came with the network adapter's drivers. */
	machine->nvidia_peermem = hw_exists(root, "sys/module/nvidia_peermem") ||
				  hw_exists(root, "sys/module/nv_peer_mem");
	if (hw_list(root, NVIDIA_GPUS, HW_MAX_GPUS, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++)
		read_nvidia(root, names.items[i], machine);
	strlist_done(&names);
}

/* Accelerators and displays of AMD and Intel; NVIDIA's nodes are not those of DRM. */
static bool is_drm_gpu(const struct hw_pci *pci)
{
	unsigned int base = pci->class >> 16;

	return (pci->vendor == 0x1002 || pci->vendor == 0x8086) && (base == 0x03 || base == 0x12);
}

/* "renderD128" is of the function that its link leads through. */
static void read_drm(const struct hw_root *root, struct hw_machine *machine)
{
	_cleanup_(hw_dir_close) struct hw_dir list = { .fd = -1 };
	struct strlist names = { 0 };

	if (hw_list(root, CLASS_DRM, MAX_DRM, &names) < 0)
		return;
	if (hw_dir_open(root, CLASS_DRM, &list) < 0)
		strlist_done(&names);
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *path = NULL, *bus_id = NULL;
		const struct hw_pci *pci;
		unsigned int minor;

		if (!starts_with(names.items[i], "renderD") ||
		    parse_uint(names.items[i] + 7, 0xfffff, &minor) < 0)
			continue;
		path = hw_dir_link_path(&list, names.items[i]);
		bus_id = path ? hw_path_bus_id(path) : NULL;
		pci = bus_id ? hw_find_pci(machine, bus_id) : NULL;
		if (pci && is_drm_gpu(pci))
			hw_gpu_of(machine, bus_id)->minor = (int)minor;
	}
	strlist_done(&names);
}

static int cmp_gpu(const void *a, const void *b)
{
	const struct hw_gpu *x = a, *y = b;

	return strcmp(x->bus_id, y->bus_id);
}

void hw_read_gpus(const struct hw_root *root, struct hw_machine *machine)
{
	read_all_nvidia(root, machine);
	read_drm(root, machine);
	hw_read_amd(root, machine);
	if (machine->n_gpus)
		qsort(machine->gpus, machine->n_gpus, sizeof(*machine->gpus), cmp_gpu);
}

static void gpu_done(struct hw_gpu *gpu)
{
	free(gpu->bus_id);
	free(gpu->model);
	free(gpu->uuid);
	free(gpu->partition);
}

void hw_clear_gpus(struct hw_machine *machine)
{
	for (size_t i = 0; i < machine->n_gpus; i++)
		gpu_done(&machine->gpus[i]);
	free(machine->gpus);
	machine->gpus = NULL;
	machine->n_gpus = machine->cap_gpus = 0;
	free(machine->nvidia_driver);
	machine->nvidia_driver = NULL;
	machine->nvidia_peermem = machine->nvidia_open = false;
}

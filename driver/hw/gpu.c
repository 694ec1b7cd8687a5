// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>

#include "base/bus_id.h"
#include "base/mem.h"
#include "hw/read.h"

#define NVIDIA_GPUS "proc/driver/nvidia/gpus"
#define MAX_GPUS 1024

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

static void read_nvidia(const struct hw_root *root, const char *bus_id, struct hw_machine *machine)
{
	_cleanup_free_ char *dir = xasprintf(NVIDIA_GPUS "/%s", bus_id);
	_cleanup_free_ char *text = hw_attr(root, dir, "information"), *minor = NULL;
	struct strlist lines = { 0 };
	struct hw_gpu *gpu;

	if (!text) {
		hw_warn(machine, "gpu-information", bus_id,
			"the NVIDIA driver gives no model and UUID of this GPU");
		return;
	}
	strlist_split(&lines, text, '\n');
	minor = field(&lines, "Device Minor");
	gpu = array_push(machine->gpus, machine->n_gpus, machine->cap_gpus);
	*gpu = (struct hw_gpu){
		.bus_id = xstrdup(bus_id),
		.model = field(&lines, "Model"),
		.uuid = field(&lines, "GPU UUID"),
		.minor = HW_UNKNOWN,
		.n_partitions = HW_UNKNOWN,
	};
	if (gpu->uuid && !starts_with(gpu->uuid, "GPU-")) {
		free(gpu->uuid); /* "GPU-???…" until the GPU was used once, or an error text */
		gpu->uuid = NULL;
	}
	if (gpu->uuid && strchr(gpu->uuid, '?')) {
		free(gpu->uuid);
		gpu->uuid = NULL;
	}
	if (minor && (parse_int(minor, &gpu->minor) < 0 || gpu->minor < 0))
		gpu->minor = HW_UNKNOWN;
	strlist_done(&lines);
}

void hw_read_gpus(const struct hw_root *root, struct hw_machine *machine)
{
	struct strlist names = { 0 };

	machine->nvidia_driver = hw_attr(root, "sys/module/nvidia", "version");
	machine->nvidia_peermem = hw_exists(root, "sys/module/nvidia_peermem");
	if (hw_list(root, NVIDIA_GPUS, MAX_GPUS, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++)
		if (is_bus_id(names.items[i]))
			read_nvidia(root, names.items[i], machine);
	strlist_done(&names);
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

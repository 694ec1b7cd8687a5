// SPDX-License-Identifier: Apache-2.0
/* What is true of the whole node: DMI texts, virtual or not, its NUMA nodes and sockets. */
#include "base/mem.h"
#include "hw/read.h"

#define CPUINFO_MAX (8 * 1024 * 1024)
#define NODES "sys/devices/system/node"
#define CPUS "sys/devices/system/cpu"
#define MAX_NODES 1024

/* x86 tells by a CPU flag; others by the texts that the firmware of a virtual machine carries. */
static bool is_virtual(const struct hw_root *root, const struct hw_machine *machine)
{
	static const char *const vendors[] = { "QEMU", "VMware, Inc.", "Xen", "Google",
					       "Amazon EC2" };
	_cleanup_free_ char *cpuinfo = NULL;
	const char *vendor = machine->dmi_vendor, *product = machine->dmi_product;

	if (hw_root_read(root, "proc/cpuinfo", CPUINFO_MAX, &cpuinfo, NULL) == 0) {
		const char *flags = strstr(cpuinfo, "\nflags");
		const char *found = flags ? strstr(flags, " hypervisor") : NULL;

		/* A file with flags answers for itself: cloud vendors sell bare metal too. */
		if (flags)
			return found != NULL;
	}
	if (!vendor)
		return false;
	if (streq(vendor, "Microsoft Corporation"))
		return product && streq(product, "Virtual Machine");
	if (product && (strstr(product, ".metal") || strstr(product, "-metal")))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++)
		if (streq(vendor, vendors[i]))
			return true;
	return false;
}

/* The socket of the first CPU in "0-31,64-95"; a node of memory alone has none. */
static int read_package(const struct hw_root *root, const char *cpulist)
{
	_cleanup_free_ char *first = xstrndup(cpulist, strspn(cpulist, "0123456789"));
	_cleanup_free_ char *dir = xasprintf(CPUS "/cpu%s/topology", first);
	_cleanup_free_ char *text = *first ? hw_attr(root, dir, "physical_package_id") : NULL;
	int package;

	return text && parse_int(text, &package) == 0 && package >= 0 ? package : HW_UNKNOWN;
}

/* "10 21": positive numbers, or nothing is known. */
static void read_distances(const char *text, struct hw_numa *numa)
{
	struct strlist words = { 0 };

	strlist_split(&words, text, ' ');
	if (words.n > 0 && words.n <= MAX_NODES)
		numa->distances = xcalloc(words.n, sizeof(int));
	for (size_t i = 0; numa->distances && i < words.n; i++) {
		if (parse_int(words.items[i], &numa->distances[i]) < 0 || numa->distances[i] <= 0) {
			free(numa->distances);
			numa->distances = NULL;
		} else {
			numa->n_distances = i + 1;
		}
	}
	if (!numa->distances)
		numa->n_distances = 0;
	strlist_done(&words);
}

static int cmp_numa(const void *a, const void *b)
{
	const struct hw_numa *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

static void read_numa(const struct hw_root *root, struct hw_machine *machine)
{
	struct strlist names = { 0 };

	if (hw_list(root, NODES, MAX_NODES * 2, &names) < 0)
		return;
	for (size_t i = 0; i < names.n; i++) {
		_cleanup_free_ char *dir = NULL, *distance = NULL, *cpulist = NULL;
		struct hw_numa *numa;
		unsigned int node;

		if (!starts_with(names.items[i], "node") ||
		    parse_uint(names.items[i] + 4, MAX_NODES - 1, &node) < 0)
			continue;
		dir = xasprintf(NODES "/%s", names.items[i]);
		distance = hw_attr(root, dir, "distance");
		cpulist = hw_attr(root, dir, "cpulist");
		numa = array_push(machine->numa, machine->n_numa, machine->cap_numa);
		*numa = (struct hw_numa){ .node = (int)node, .package = HW_UNKNOWN };
		if (cpulist)
			numa->package = read_package(root, cpulist);
		if (distance)
			read_distances(distance, numa);
	}
	strlist_done(&names);
	if (machine->n_numa)
		qsort(machine->numa, machine->n_numa, sizeof(*machine->numa), cmp_numa);
}

void hw_read_node(const struct hw_root *root, struct hw_machine *machine)
{
	machine->dmi_vendor = hw_attr(root, "sys/class/dmi/id", "sys_vendor");
	machine->dmi_product = hw_attr(root, "sys/class/dmi/id", "product_name");
	machine->kernel_release = hw_attr(root, "proc/sys/kernel", "osrelease");
	machine->hypervisor = is_virtual(root, machine);
	read_numa(root, machine);
}

void hw_clear_node(struct hw_machine *machine)
{
	free(machine->dmi_vendor);
	free(machine->dmi_product);
	free(machine->kernel_release);
	for (size_t i = 0; i < machine->n_numa; i++)
		free(machine->numa[i].distances);
	free(machine->numa);
	machine->dmi_vendor = machine->dmi_product = machine->kernel_release = NULL;
	machine->hypervisor = false;
	machine->numa = NULL;
	machine->n_numa = machine->cap_numa = 0;
}

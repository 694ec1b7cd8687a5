// SPDX-License-Identifier: Apache-2.0
/* What is true of the whole node: DMI texts, virtual or not. */
#include "base/mem.h"
#include "hw/read.h"

#define CPUINFO_MAX (8 * 1024 * 1024)

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

void hw_read_node(const struct hw_root *root, struct hw_machine *machine)
{
	machine->dmi_vendor = hw_attr(root, "sys/class/dmi/id", "sys_vendor");
	machine->dmi_product = hw_attr(root, "sys/class/dmi/id", "product_name");
	machine->kernel_release = hw_attr(root, "proc/sys/kernel", "osrelease");
	machine->hypervisor = is_virtual(root, machine);
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

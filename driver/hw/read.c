// SPDX-License-Identifier: Apache-2.0
#include "hw/read.h"

#include "base/mem.h"

#define CPUINFO_MAX (8 * 1024 * 1024)

void hw_warn(struct hw_machine *machine, const char *code, const char *object, const char *fmt, ...)
{
	struct hw_warning *w =
		array_push(machine->warnings, machine->n_warnings, machine->cap_warnings);
	va_list ap;

	va_start(ap, fmt);
	*w = (struct hw_warning){ code, xstrdup(object), xvasprintf(fmt, ap) };
	va_end(ap);
}

void hw_unreadable(struct hw_machine *machine, const char *code, const char *object,
		   const char *what, int r)
{
	hw_warn(machine, code, object, "cannot read the %s: %s", what, strerror(-r));
	machine->incomplete = true;
}

void hw_parse_dev(const char *text, int *major, int *minor)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	_cleanup_free_ char *first = colon ? xstrndup(text, (size_t)(colon - text)) : NULL;
	unsigned int a, b;

	*major = HW_UNKNOWN;
	*minor = HW_UNKNOWN;
	/* dev_t of the kernel: 12 bits of major, 20 of minor */
	if (colon && parse_uint(first, 0xfff, &a) == 0 && parse_uint(colon + 1, 0xfffff, &b) == 0) {
		*major = (int)a;
		*minor = (int)b;
	}
}

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

int hw_read(const char *root, struct hw_machine **ret, struct err *err)
{
	struct hw_machine *m;
	struct hw_root r;
	int code = hw_root_open(root, &r, err);

	if (code < 0)
		return code;
	m = xnew(struct hw_machine);
	r.exhausted = &m->incomplete;
	hw_read_pci(&r, m);
	hw_read_net(&r, m);
	hw_read_routes(&r, m);
	hw_read_rdma(&r, m); /* after the links: software devices run on one */
	hw_read_gpus(&r, m);
	m->dmi_vendor = hw_attr(&r, "sys/class/dmi/id", "sys_vendor");
	m->dmi_product = hw_attr(&r, "sys/class/dmi/id", "product_name");
	m->hypervisor = is_virtual(&r, m);
	hw_root_close(&r);
	*ret = m;
	return 0;
}

/* Both kinds of devices begin with their name, by which the arrays are sorted. */
static int cmp_name(const void *name, const void *device)
{
	return strcmp(name, *(char *const *)device);
}

const struct hw_pci *hw_find_pci(const struct hw_machine *machine, const char *bus_id)
{
	_Static_assert(offsetof(struct hw_pci, bus_id) == 0, "see cmp_name()");
	return machine->n_pci ? bsearch(bus_id, machine->pci, machine->n_pci, sizeof(*machine->pci),
					cmp_name)
			      : NULL;
}

const struct hw_netdev *hw_find_netdev(const struct hw_machine *machine, const char *name)
{
	_Static_assert(offsetof(struct hw_netdev, name) == 0, "see cmp_name()");
	return machine->n_netdevs ? bsearch(name, machine->netdevs, machine->n_netdevs,
					    sizeof(*machine->netdevs), cmp_name)
				  : NULL;
}

struct hw_machine *hw_free(struct hw_machine *machine)
{
	if (!machine)
		return NULL;
	for (size_t i = 0; i < machine->n_pci; i++)
		hw_pci_done(&machine->pci[i]);
	for (size_t i = 0; i < machine->n_netdevs; i++)
		hw_netdev_done(&machine->netdevs[i]);
	for (size_t i = 0; i < machine->n_rdma; i++)
		hw_rdma_done(&machine->rdma[i]);
	for (size_t i = 0; i < machine->n_gpus; i++)
		hw_gpu_done(&machine->gpus[i]);
	for (size_t i = 0; i < machine->n_warnings; i++) {
		free(machine->warnings[i].object);
		free(machine->warnings[i].message);
	}
	free(machine->pci);
	free(machine->netdevs);
	free(machine->rdma);
	free(machine->gpus);
	free(machine->warnings);
	strlist_done(&machine->default_routes);
	free(machine->dmi_vendor);
	free(machine->dmi_product);
	free(machine->nvidia_driver);
	free(machine);
	return NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "hw/read.h"

#include "base/mem.h"

void hw_warn(struct hw_machine *machine, const char *code, const char *object, const char *fmt, ...)
{
	struct hw_warning *w =
		array_push(machine->warnings, machine->n_warnings, machine->cap_warnings);
	va_list ap;

	va_start(ap, fmt);
	*w = (struct hw_warning){ machine->part, code, str_printable(xstrdup(object), false),
				  str_printable(xvasprintf(fmt, ap), false) };
	va_end(ap);
}

void hw_unwarn(struct hw_machine *machine, size_t n)
{
	while (machine->n_warnings > n) {
		struct hw_warning *w = &machine->warnings[--machine->n_warnings];

		free(w->object);
		free(w->message);
	}
}

void hw_unreadable(struct hw_machine *machine, const char *code, const char *object,
		   const char *what, int r)
{
	hw_warn(machine, code, object, "cannot read the %s: %s", what, strerror(-r));
	machine->incomplete |= machine->part;
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

static const struct {
	unsigned int part;
	void (*read)(const struct hw_root *root, struct hw_machine *machine);
	void (*clear)(struct hw_machine *machine); /* NULL: another one does it */
} readers[] = {
	{ HW_PART_NODE, hw_read_node, hw_clear_node },
	{ HW_PART_PCI, hw_read_pci, hw_clear_pci },
	{ HW_PART_NET, hw_read_net, hw_clear_net },
	{ HW_PART_IP, hw_read_ip, hw_clear_ip },
	/* after the links: software devices run on one */
	{ HW_PART_RDMA, hw_read_rdma, hw_clear_rdma },
	{ HW_PART_RDMA, hw_read_verbs, NULL },
	{ HW_PART_GPU, hw_read_gpus, hw_clear_gpus },
};

static void clear_warnings(struct hw_machine *machine, unsigned int parts)
{
	size_t n = 0;

	for (size_t i = 0; i < machine->n_warnings; i++) {
		struct hw_warning *w = &machine->warnings[i];

		if (w->part & parts) {
			free(w->object);
			free(w->message);
		} else {
			machine->warnings[n++] = *w;
		}
	}
	machine->n_warnings = n;
}

static void clear(struct hw_machine *machine, unsigned int parts)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if ((readers[i].part & parts) && readers[i].clear)
			readers[i].clear(machine);
	clear_warnings(machine, parts);
	machine->incomplete &= ~parts;
}

int hw_read_recorded(const char *root, unsigned int parts, struct hw_recorder *recorder,
		     struct hw_machine *machine, struct err *err)
{
	bool exhausted;
	struct hw_root r;
	int code = hw_root_open(root, &r, err);

	if (code < 0)
		return code;
	if (parts & HW_PART_NET)
		parts |= HW_PART_IP; /* which also tells kinds of links */
	clear(machine, parts);
	r.exhausted = &exhausted;
	r.recorder = recorder;
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		if (!(readers[i].part & parts))
			continue;
		exhausted = false;
		machine->part = readers[i].part;
		readers[i].read(&r, machine);
		if (exhausted)
			machine->incomplete |= machine->part;
	}
	machine->part = 0;
	hw_root_close(&r);
	return 0;
}

int hw_read_again(const char *root, unsigned int parts, struct hw_machine *machine, struct err *err)
{
	return hw_read_recorded(root, parts, NULL, machine, err);
}

int hw_read(const char *root, struct hw_machine **ret, struct err *err)
{
	struct hw_machine *m = xnew(struct hw_machine);
	int r = hw_read_again(root, HW_PART_ALL, m, err);

	if (r < 0)
		hw_free(m);
	else
		*ret = m;
	return r;
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
	clear(machine, HW_PART_ALL);
	free(machine->warnings);
	free(machine);
	return NULL;
}

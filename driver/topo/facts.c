// SPDX-License-Identifier: Apache-2.0
#include "topo/facts.h"

#include <errno.h>

#include "base/bus_id.h"
#include "base/json.h"
#include "base/mem.h"
#include "topo/build.h"

#define MAX_FUNCTIONS 65536
#define MAX_DEVICES 16384 /* of one function; no more are read of the whole machine */
#define MAX_STACK 16
#define NONE ((size_t)-1)

/* One function.  As text it takes a tenth of the memory; it is parsed when something is hidden. */
struct entry {
	char *bus_id, *driver;
	char *text; /* {"driver":"…","netdevs":[…],"rdma":[…]} */
};

/* A parsed entry. */
struct devices {
	struct hw_netdev *netdevs;
	size_t n_netdevs, cap_netdevs;
	struct hw_rdma *rdma;
	size_t n_rdma, cap_rdma;
};

struct facts {
	char *boot_id;
	struct entry *entries; /* ascending by address as text */
	size_t n, cap;
	bool changed;

	struct hw_machine view;
	struct devices *added; /* what "view" borrows from, too */
	size_t n_added, cap_added;
};

/* What a machine shows of one function now: heads of lists through struct seen. */
struct group {
	size_t netdev, rdma; /* NONE: none */
};

struct seen {
	const struct hw_machine *machine;
	struct group *groups; /* as many as machine->pci */
	size_t *next_netdev, *next_rdma; /* as many as there are devices */
};

static void devices_done(struct devices *d)
{
	for (size_t i = 0; i < d->n_netdevs; i++)
		hw_netdev_done(&d->netdevs[i]);
	for (size_t i = 0; i < d->n_rdma; i++)
		hw_rdma_done(&d->rdma[i]);
	free(d->netdevs);
	free(d->rdma);
	*d = (struct devices){ 0 };
}

static void entry_done(struct entry *e)
{
	free(e->bus_id);
	free(e->driver);
	free(e->text);
}

static void entries_done(struct entry *entries, size_t n)
{
	for (size_t i = 0; i < n; i++)
		entry_done(&entries[i]);
	free(entries);
}

static void forget_view(struct facts *f)
{
	for (size_t i = 0; i < f->n_added; i++)
		devices_done(&f->added[i]);
	f->n_added = 0;
	free(f->view.netdevs);
	free(f->view.rdma);
	f->view = (struct hw_machine){ 0 };
}

struct facts *facts_new(const char *boot_id)
{
	struct facts *f = xnew(struct facts);

	f->boot_id = xstrdup(boot_id);
	return f;
}

struct facts *facts_free(struct facts *f)
{
	if (!f)
		return NULL;
	forget_view(f);
	free(f->added);
	entries_done(f->entries, f->n);
	free(f->boot_id);
	free(f);
	return NULL;
}

/* --- what is seen now --- */

/* The function that a link belongs to or is made on; NONE: none. */
static size_t function_of(const struct hw_machine *m, const struct hw_netdev *link,
			  unsigned int depth)
{
	const char *bus_id = link->bus_id ? link->bus_id : link->sf_parent;
	const struct hw_pci *pci = bus_id ? hw_find_pci(m, bus_id) : NULL;

	if (bus_id)
		return pci ? (size_t)(pci - m->pci) : NONE;
	for (size_t i = 0; topo_is_child_kind(link->kind) && depth < MAX_STACK && i < link->lower.n;
	     i++) {
		const struct hw_netdev *lower = hw_find_netdev(m, link->lower.items[i]);
		size_t function = lower ? function_of(m, lower, depth + 1) : NONE;

		if (function != NONE)
			return function;
	}
	return NONE;
}

static void see(struct seen *s, const struct hw_machine *m)
{
	*s = (struct seen){
		.machine = m,
		.groups = xcalloc(m->n_pci, sizeof(*s->groups)),
		.next_netdev = xcalloc(m->n_netdevs, sizeof(size_t)),
		.next_rdma = xcalloc(m->n_rdma, sizeof(size_t)),
	};
	for (size_t i = 0; i < m->n_pci; i++)
		s->groups[i] = (struct group){ NONE, NONE };
	/* From the end: the lists are in the order of names. */
	for (size_t i = m->n_netdevs; i-- > 0;) {
		size_t function = function_of(m, &m->netdevs[i], 0);

		/* Representors come and go with their VFs. */
		if (function == NONE || (m->netdevs[i].bus_id && !topo_is_uplink(&m->netdevs[i])))
			continue;
		s->next_netdev[i] = s->groups[function].netdev;
		s->groups[function].netdev = i;
	}
	for (size_t i = m->n_rdma; i-- > 0;) {
		const struct hw_rdma *rdma = &m->rdma[i];
		const char *bus_id = rdma->bus_id ? rdma->bus_id : rdma->sf_parent;
		const struct hw_pci *pci =
			bus_id && !rdma->software ? hw_find_pci(m, bus_id) : NULL;

		if (!pci)
			continue;
		s->next_rdma[i] = s->groups[pci - m->pci].rdma;
		s->groups[pci - m->pci].rdma = i;
	}
}

static void seen_done(struct seen *s)
{
	free(s->groups);
	free(s->next_netdev);
	free(s->next_rdma);
}

/* A NIC has an RDMA device of its own. */
static bool is_nic(const struct seen *s, const struct group *g)
{
	for (size_t i = g->rdma; i != NONE; i = s->next_rdma[i])
		if (s->machine->rdma[i].bus_id)
			return true;
	return false;
}

static char *describe(const struct seen *s, const struct group *g, const char *driver)
{
	_cleanup_json_ json_t *o = json_new_object();
	json_t *netdevs = json_new_array(), *rdma = json_new_array();

	for (size_t i = g->netdev; i != NONE; i = s->next_netdev[i])
		json_add(netdevs, facts_netdev_to_json(&s->machine->netdevs[i]));
	for (size_t i = g->rdma; i != NONE; i = s->next_rdma[i])
		json_add(rdma, facts_rdma_to_json(&s->machine->rdma[i]));
	json_set_string(o, "driver", driver);
	json_set(o, "netdevs", netdevs);
	json_set(o, "rdma", rdma);
	return json_text(o);
}

/* --- what was seen before --- */

/* False: malformed; *ret is empty then. */
static bool recall(const char *text, struct devices *ret)
{
	_cleanup_json_ json_t *o = NULL;
	struct err err = { 0 };
	json_t *list, *v;
	bool ok = true;
	size_t i;

	*ret = (struct devices){ 0 };
	if (json_parse(text, strlen(text), &o, &err) < 0)
		return false;
	list = json_object_get(o, "netdevs");
	json_array_foreach(list, i, v) {
		struct hw_netdev netdev;

		ok = ok && i < MAX_DEVICES && facts_netdev_from_json(v, &netdev);
		if (ok)
			*array_push(ret->netdevs, ret->n_netdevs, ret->cap_netdevs) = netdev;
	}
	list = json_object_get(o, "rdma");
	json_array_foreach(list, i, v) {
		struct hw_rdma rdma;

		ok = ok && i < MAX_DEVICES && facts_rdma_from_json(v, &rdma);
		if (ok)
			*array_push(ret->rdma, ret->n_rdma, ret->cap_rdma) = rdma;
	}
	if (!ok)
		devices_done(ret);
	return ok;
}

/* The same link, perhaps with another name; a port of the function also with another number. */
static bool same_link(const struct hw_netdev *a, const struct hw_netdev *b)
{
	if (streq(a->name, b->name) || (a->ifindex > 0 && a->ifindex == b->ifindex))
		return true;
	return a->bus_id && b->bus_id && a->dev_port == b->dev_port &&
	       streq_null(a->phys_port_name, b->phys_port_name);
}

static bool shows_link(const struct seen *s, const struct group *g, const struct hw_netdev *link)
{
	for (size_t i = g->netdev; i != NONE; i = s->next_netdev[i])
		if (same_link(&s->machine->netdevs[i], link))
			return true;
	return false;
}

/* The function's own RDMA device may have another name now; NULL: hidden. */
static const struct hw_rdma *shown_device(const struct seen *s, const struct group *g,
					  const struct hw_rdma *rdma)
{
	for (size_t i = g->rdma; i != NONE; i = s->next_rdma[i]) {
		const struct hw_rdma *now = &s->machine->rdma[i];

		if (rdma->bus_id ? now->bus_id != NULL : streq(now->name, rdma->name))
			return now;
	}
	return NULL;
}

/*
 * Something of the function is in a pod: a link, or the RDMA device of one that has no link.  With
 * the link here, a missing RDMA device has lost its driver.
 */
static bool is_hidden(const struct seen *s, const struct group *g, const struct devices *before)
{
	bool has_link = false;

	for (size_t i = 0; i < before->n_netdevs; i++) {
		has_link = has_link || before->netdevs[i].bus_id;
		if (!shows_link(s, g, &before->netdevs[i]))
			return true;
	}
	for (size_t i = 0; !has_link && i < before->n_rdma; i++)
		if (!shown_device(s, g, &before->rdma[i]))
			return true;
	return false;
}

/* Ports as before, with their GIDs, which lose the names of links; but the state is that of now. */
static void take_state(struct hw_rdma *before, const struct hw_rdma *now)
{
	for (size_t i = 0; i < before->n_ports; i++) {
		struct hw_rdma_port *port = &before->ports[i];

		for (size_t k = 0; k < now->n_ports; k++) {
			if (now->ports[k].port != port->port)
				continue;
			free(port->state);
			port->state = xstrdup_null(now->ports[k].state);
			free(port->phys_state);
			port->phys_state = xstrdup_null(now->ports[k].phys_state);
			port->rate_gbps = now->ports[k].rate_gbps;
		}
	}
}

/* --- the view --- */

static bool has_rdma(const struct hw_machine *m, const char *name)
{
	for (size_t i = 0; i < m->n_rdma; i++)
		if (streq(m->rdma[i].name, name))
			return true;
	return false;
}

/* Arrays of its own, with room for what a function hides. */
static void make_room(struct facts *f, const struct hw_machine *m, const struct devices *before)
{
	struct hw_machine *v = &f->view;
	bool first = !v->pci;

	if (first)
		*v = *m;
	v->netdevs = xrealloc(first ? NULL : v->netdevs, v->n_netdevs + before->n_netdevs + 1,
			      sizeof(*v->netdevs));
	v->rdma =
		xrealloc(first ? NULL : v->rdma, v->n_rdma + before->n_rdma + 1, sizeof(*v->rdma));
	if (first && m->n_netdevs)
		memcpy(v->netdevs, m->netdevs, m->n_netdevs * sizeof(*m->netdevs));
	if (first && m->n_rdma)
		memcpy(v->rdma, m->rdma, m->n_rdma * sizeof(*m->rdma));
}

/* Takes over "before". */
static void show(struct facts *f, const struct seen *s, const struct group *g,
		 const struct devices *before)
{
	struct hw_machine *v = &f->view;
	bool link_hidden = false;

	make_room(f, s->machine, before);
	*array_push(f->added, f->n_added, f->cap_added) = *before;
	for (size_t i = 0; i < before->n_netdevs; i++) {
		if (shows_link(s, g, &before->netdevs[i]))
			continue;
		link_hidden = link_hidden || before->netdevs[i].bus_id;
		/* Another device may have taken the name since. */
		if (!hw_find_netdev(s->machine, before->netdevs[i].name))
			v->netdevs[v->n_netdevs++] = before->netdevs[i];
	}
	for (size_t i = 0; i < before->n_rdma; i++) {
		const struct hw_rdma *now = shown_device(s, g, &before->rdma[i]);

		if (now && link_hidden) {
			take_state(&before->rdma[i], now);
			v->rdma[now - s->machine->rdma].ports = before->rdma[i].ports;
			v->rdma[now - s->machine->rdma].n_ports = before->rdma[i].n_ports;
		} else if (!now && !has_rdma(v, before->rdma[i].name)) {
			v->rdma[v->n_rdma++] = before->rdma[i];
		}
	}
}

static int cmp_netdev(const void *a, const void *b)
{
	const struct hw_netdev *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int cmp_rdma(const void *a, const void *b)
{
	const struct hw_rdma *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int cmp_entry(const void *bus_id, const void *entry)
{
	return strcmp(bus_id, ((const struct entry *)entry)->bus_id);
}

static const struct entry *find(const struct facts *f, const char *bus_id)
{
	return f->n ? bsearch(bus_id, f->entries, f->n, sizeof(*f->entries), cmp_entry) : NULL;
}

/* What is to be remembered of a function; false: nothing.  "ret" is the caller's. */
static bool look(struct facts *f, const struct seen *s, size_t function, facts_held_fn *held,
		 void *data, struct entry *ret)
{
	const struct hw_pci *pci = &s->machine->pci[function];
	const struct group *g = &s->groups[function];
	const struct entry *old = find(f, pci->bus_id);
	bool same_driver = old && streq_null(old->driver, pci->driver);
	_cleanup_free_ char *text = is_nic(s, g) ? describe(s, g, pci->driver) : NULL;
	struct devices before = { 0 };

	if (same_driver && !(text && streq(text, old->text)) && recall(old->text, &before)) {
		if (is_hidden(s, g, &before) && held(pci->bus_id, data)) {
			show(f, s, g, &before);
			free(text);
			text = xstrdup(old->text);
		} else {
			devices_done(&before);
		}
	}
	if (!text) {
		f->changed = f->changed || old;
		return false;
	}
	f->changed = f->changed || !same_driver || !streq(text, old->text);
	*ret = (struct entry){ xstrdup(pci->bus_id), xstrdup_null(pci->driver), TAKE_PTR(text) };
	return true;
}

const struct hw_machine *facts_apply(struct facts *f, const struct hw_machine *machine,
				     facts_held_fn *held, void *data)
{
	struct entry *fresh = NULL, entry;
	size_t n = 0, cap = 0, found = 0;
	struct seen s;

	forget_view(f);
	see(&s, machine);
	for (size_t i = 0; i < machine->n_pci; i++) {
		found += find(f, machine->pci[i].bus_id) != NULL;
		if (look(f, &s, i, held, data, &entry))
			*array_push(fresh, n, cap) = entry;
	}
	seen_done(&s);
	f->changed = f->changed || found != f->n; /* functions that are gone */
	entries_done(f->entries, f->n);
	f->entries = fresh;
	f->n = n;
	f->cap = cap;
	if (f->n_added == 0)
		return machine;
	if (f->view.n_netdevs)
		qsort(f->view.netdevs, f->view.n_netdevs, sizeof(*f->view.netdevs), cmp_netdev);
	if (f->view.n_rdma)
		qsort(f->view.rdma, f->view.n_rdma, sizeof(*f->view.rdma), cmp_rdma);
	return &f->view;
}

size_t facts_hidden(const struct facts *f)
{
	return f->n_added;
}

bool facts_changed(const struct facts *f)
{
	return f->changed;
}

/* --- the file --- */

char *facts_to_text(struct facts *f)
{
	struct buf text = { 0 };

	buf_printf(&text, "{\"version\":%d,\"bootID\":\"%s\",\"functions\":{", FACTS_VERSION,
		   f->boot_id);
	for (size_t i = 0; i < f->n; i++)
		buf_printf(&text, "%s\"%s\":%s", i ? "," : "", f->entries[i].bus_id,
			   f->entries[i].text);
	buf_str(&text, "}}\n");
	f->changed = false;
	return buf_take(&text);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->bus_id, ((const struct entry *)b)->bus_id);
}

/* False: malformed. */
static bool read_entry(const char *bus_id, const json_t *object, struct entry *ret)
{
	const char *driver = json_string_value(json_object_get(object, "driver"));
	struct devices parsed;

	if (!is_bus_id(bus_id) || !json_is_object(object))
		return false;
	*ret = (struct entry){ xstrdup(bus_id), xstrdup_null(driver), json_text(object) };
	if (recall(ret->text, &parsed)) {
		devices_done(&parsed);
		return true;
	}
	entry_done(ret);
	return false;
}

int facts_from_json(struct facts *f, const json_t *object, struct err *err)
{
	const json_t *version = json_object_get(object, "version");
	const char *boot_id = json_string_value(json_object_get(object, "bootID")), *bus_id;
	json_t *functions = json_object_get(object, "functions"), *v;
	struct entry *entries = NULL, entry;
	size_t n = 0, cap = 0;

	if (!json_is_integer(version) || json_integer_value(version) != FACTS_VERSION)
		return err_set(err, ERR_INVALID, EINVAL, "it is not of version %d", FACTS_VERSION);
	if (!boot_id || !json_is_object(functions) || json_object_size(functions) > MAX_FUNCTIONS)
		return err_set(err, ERR_INVALID, EINVAL, "it has no boot id or no functions");
	if (!streq(boot_id, f->boot_id))
		return 0;
	json_object_foreach(functions, bus_id, v) {
		if (!read_entry(bus_id, v, &entry)) {
			entries_done(entries, n);
			return err_set(err, ERR_INVALID, EINVAL, "function '%.32s' is malformed",
				       bus_id);
		}
		*array_push(entries, n, cap) = entry;
	}
	if (n)
		qsort(entries, n, sizeof(*entries), compare_entries);
	entries_done(f->entries, f->n);
	f->entries = entries;
	f->n = n;
	f->cap = cap;
	return 0;
}

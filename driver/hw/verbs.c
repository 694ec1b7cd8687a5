// SPDX-License-Identifier: Apache-2.0
#include "hw/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/bus_id.h"
#include "base/log.h"
#include "base/mem.h"
#include "hw/read.h"

#define TEXT_MAX_BYTES (1024 * 1024)
#define DEVICES_MAX 64 /* that are asked: opening one takes milliseconds */
#define ANSWERS_MAX 256
#define MTU_MAX 65536
#define VENDOR_MELLANOX 0x15b3

struct verbs {
	struct ibv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);
	/* mlx5dv_get_data_direct_sysfs_path() of MLX5_1.25; NULL in older libraries */
	int (*data_direct)(struct ibv_context *context, char *buf, size_t len);
};

struct port_answer {
	unsigned int port;
	const char *state, *link_layer; /* static */
	int active_mtu;
};

struct answer {
	char *key; /* what was asked, see key_of() */
	char *node_guid, *sys_image_guid, *fw_ver, *data_direct;
	struct port_answer *ports;
	size_t n_ports, cap_ports;
};

static struct {
	struct answer *items;
	size_t n, cap;
} answers;

static void answer_done(struct answer *a)
{
	free(a->key);
	free(a->node_guid);
	free(a->sys_image_guid);
	free(a->fw_ver);
	free(a->data_direct);
	free(a->ports);
}

static bool load(const struct hw_verbs_paths *paths, struct verbs *v)
{
	void *lib = dlopen(paths->libibverbs, RTLD_NOW | RTLD_LOCAL), *mlx5;
	const struct {
		const char *name;
		void **fn;
	} symbols[] = {
		{ "ibv_get_device_list", (void **)&v->get_device_list },
		{ "ibv_free_device_list", (void **)&v->free_device_list },
		{ "ibv_get_device_name", (void **)&v->get_device_name },
		{ "ibv_open_device", (void **)&v->open_device },
		{ "ibv_close_device", (void **)&v->close_device },
		{ "ibv_query_device", (void **)&v->query_device },
		{ "ibv_query_port", (void **)&v->query_port },
	};

	if (!lib) {
		log_debug("no verbs library", KV("error", "%s", dlerror()));
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
		*symbols[i].fn = dlsym(lib, symbols[i].name);
		if (!*symbols[i].fn)
			return false;
	}
	mlx5 = dlopen(paths->libmlx5, RTLD_NOW | RTLD_LOCAL);
	*(void **)&v->data_direct = mlx5 ? dlsym(mlx5, "mlx5dv_get_data_direct_sysfs_path") : NULL;
	return true;
}

/* "a088:c203:0012:3456" of a number in network order; NULL for 0. */
static char *guid_text(uint64_t guid)
{
	unsigned char b[sizeof(guid)];

	memcpy(b, &guid, sizeof(b));
	return guid ? xasprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4],
				b[5], b[6], b[7])
		    : NULL;
}

/* Words of sysfs. */
static const char *state_name(enum ibv_port_state state)
{
	static const char *const names[] = {
		NULL, "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"
	};

	return (unsigned int)state < ARRAY_SIZE(names) ? names[state] : NULL;
}

static const char *link_layer_name(unsigned int layer)
{
	return layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand"
	       : layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet"
						  : NULL;
}

static int mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128 << mtu : HW_UNKNOWN;
}

/*
 * The character device that sysfs names is there and can be opened.  Else the library waits seconds
 * for it, or takes another file for it.
 */
static bool can_open(const char *dev, const struct hw_rdma *rdma)
{
	_cleanup_free_ char *path = rdma->uverbs ? xasprintf("%s/%s", dev, rdma->uverbs) : NULL;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!path || rdma->uverbs_major < 0)
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev ==
		       makedev((unsigned int)rdma->uverbs_major, (unsigned int)rdma->uverbs_minor);
}

static void ask_ports(const struct verbs *v, struct ibv_context *context,
		      const struct hw_rdma *rdma, struct answer *a)
{
	for (size_t i = 0; i < rdma->n_ports; i++) {
		struct ibv_port_attr attr = { 0 };

		if (rdma->ports[i].port > UINT8_MAX ||
		    v->query_port(context, (uint8_t)rdma->ports[i].port, &attr) != 0)
			continue;
		*array_push(a->ports, a->n_ports, a->cap_ports) = (struct port_answer){
			.port = rdma->ports[i].port,
			.state = state_name(attr.state),
			.link_layer = link_layer_name(attr.link_layer),
			.active_mtu = mtu_bytes(attr.active_mtu),
		};
	}
}

/* The library gives a path in sysfs that ends with the address of the function. */
static char *ask_data_direct(const struct verbs *v, struct ibv_context *context)
{
	char path[512] = "";
	const char *last;

	if (!v->data_direct || v->data_direct(context, path, sizeof(path)) != 0)
		return NULL;
	path[sizeof(path) - 1] = '\0';
	last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	return is_bus_id(last) ? xstrdup(last) : NULL;
}

static void ask_device(const struct verbs *v, struct ibv_device *device, const struct hw_rdma *rdma,
		       bool mlx5, struct answer *a)
{
	struct ibv_context *context = v->open_device(device);
	struct ibv_device_attr attr = { 0 };

	if (!context)
		return;
	/* That it could be opened proves nothing: any file takes the requests of old libraries. */
	if (v->query_device(context, &attr) == 0 && attr.phys_port_cnt > 0 && attr.node_guid) {
		attr.fw_ver[sizeof(attr.fw_ver) - 1] = '\0';
		a->node_guid = guid_text(attr.node_guid);
		a->sys_image_guid = guid_text(attr.sys_image_guid);
		if (*attr.fw_ver && utf8_valid(attr.fw_ver, strlen(attr.fw_ver)))
			a->fw_ver = xstrdup(attr.fw_ver);
		ask_ports(v, context, rdma, a);
		if (mlx5)
			a->data_direct = ask_data_direct(v, context);
	}
	v->close_device(context);
}

/*
 * What an answer depends on.  The state of a port and the MTU of the link change the active MTU;
 * all else stays while a device is there.
 */
static char *key_of(const struct hw_machine *machine, const struct hw_rdma *rdma)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s %s", rdma->name, rdma->node_guid ? rdma->node_guid : "-");
	for (size_t i = 0; i < rdma->n_ports; i++)
		buf_printf(&b, " %u %s", rdma->ports[i].port,
			   rdma->ports[i].state ? rdma->ports[i].state : "-");
	for (size_t i = 0; rdma->bus_id && i < machine->n_netdevs; i++)
		if (streq_null(machine->netdevs[i].bus_id, rdma->bus_id))
			buf_printf(&b, " %d", machine->netdevs[i].mtu);
	return buf_take(&b);
}

static struct answer *find_answer(const char *key)
{
	for (size_t i = 0; i < answers.n; i++)
		if (streq(answers.items[i].key, key))
			return &answers.items[i];
	return NULL;
}

static void forget_answers(void)
{
	for (size_t i = 0; i < answers.n; i++)
		answer_done(&answers.items[i]);
	free(answers.items);
	memset(&answers, 0, sizeof(answers));
}

static void fill(char **fact, const char *answer)
{
	if (!*fact)
		*fact = xstrdup_null(answer);
}

/* Fill or compare; false: they contradict each other. */
static bool agree(struct hw_machine *machine, const struct hw_rdma *rdma, const char *what,
		  char **fact, const char *answer)
{
	fill(fact, answer);
	if (!answer || streq(*fact, answer))
		return true;
	hw_warn(machine, "verbs-disagree", rdma->name,
		"%s is \"%s\" in sysfs and \"%s\" by the verbs library; sysfs is used", what, *fact,
		answer);
	return false;
}

static bool apply(struct hw_machine *machine, struct hw_rdma *rdma, const struct answer *a)
{
	bool ok = agree(machine, rdma, "the node GUID", &rdma->node_guid, a->node_guid);

	fill(&rdma->sys_image_guid, a->sys_image_guid);
	fill(&rdma->fw_ver, a->fw_ver);
	fill(&rdma->data_direct, a->data_direct);
	for (size_t i = 0; i < rdma->n_ports; i++) {
		struct hw_rdma_port *port = &rdma->ports[i];

		for (size_t k = 0; k < a->n_ports; k++) {
			if (a->ports[k].port != port->port)
				continue;
			ok &= agree(machine, rdma, "the state of a port", &port->state,
				    a->ports[k].state);
			ok &= agree(machine, rdma, "the link layer of a port", &port->link_layer,
				    a->ports[k].link_layer);
			port->active_mtu = a->ports[k].active_mtu;
		}
	}
	return ok;
}

/* The library and its list of devices, when a first question needs them. */
struct session {
	const struct hw_verbs_paths *paths;
	struct verbs verbs;
	struct ibv_device **list;
	int n;
	bool tried;
};

static struct ibv_device *find_device(struct session *s, const char *name)
{
	if (!s->tried && load(s->paths, &s->verbs)) {
		/* ENOSYS: no RDMA in this kernel */
		s->list = s->verbs.get_device_list(&s->n);
		if (!s->list)
			log_debug("no verbs devices", KV("error", "%s", strerror(errno)));
	}
	s->tried = true;
	for (int i = 0; s->list && i < s->n; i++) {
		const char *other = s->verbs.get_device_name(s->list[i]);

		if (other && streq(other, name))
			return s->list[i];
	}
	return NULL;
}

static void ask(struct session *s, struct hw_machine *machine, struct hw_rdma *rdma,
		const struct hw_pci *pci)
{
	_cleanup_free_ char *key = key_of(machine, rdma);
	struct answer *a = find_answer(key);
	struct ibv_device *device;

	if (!a && !can_open(s->paths->dev, rdma))
		return;
	if (!a) {
		if (answers.n >= ANSWERS_MAX)
			forget_answers();
		a = array_push(answers.items, answers.n, answers.cap);
		a->key = TAKE_PTR(key);
		device = find_device(s, rdma->name);
		if (device)
			ask_device(&s->verbs, device, rdma, pci && pci->vendor == VENDOR_MELLANOX,
				   a);
	}
	if (apply(machine, rdma, a))
		return;
	/* Perhaps it changed between the two looks: ask again the next time. */
	answer_done(a);
	*a = answers.items[--answers.n];
}

void hw_verbs_ask(const struct hw_verbs_paths *paths, struct hw_machine *machine)
{
	struct session s = { .paths = paths };
	size_t n = 0;

	for (size_t i = 0; i < machine->n_rdma && n < DEVICES_MAX; i++) {
		struct hw_rdma *rdma = &machine->rdma[i];
		const struct hw_pci *pci = rdma->bus_id ? hw_find_pci(machine, rdma->bus_id) : NULL;

		if ((pci && pci->physfn) || rdma->sf_parent)
			continue;
		ask(&s, machine, rdma, pci);
		n++;
	}
	if (s.list)
		s.verbs.free_device_list(s.list);
}

static struct hw_rdma *find_rdma(struct hw_machine *machine, const char *name)
{
	for (size_t i = 0; i < machine->n_rdma; i++)
		if (streq(machine->rdma[i].name, name))
			return &machine->rdma[i];
	return NULL;
}

static bool parse_mtu(struct hw_rdma *rdma, const char *port_text, const char *mtu_text)
{
	unsigned int port, mtu;

	if (parse_uint(port_text, 255, &port) < 0 || parse_uint(mtu_text, MTU_MAX, &mtu) < 0 ||
	    !mtu)
		return false;
	for (size_t i = 0; rdma && i < rdma->n_ports; i++)
		if (rdma->ports[i].port == port)
			rdma->ports[i].active_mtu = (int)mtu;
	return true;
}

/* What is said of a device that is not there says nothing. */
static bool parse_line(struct hw_machine *machine, const struct strlist *w)
{
	struct hw_rdma *rdma = find_rdma(machine, w->items[0]);

	if (w->n == 3 && streq(w->items[1], "data_direct") && is_bus_id(w->items[2])) {
		if (rdma)
			fill(&rdma->data_direct, w->items[2]);
		return true;
	}
	return w->n == 5 && streq(w->items[1], "port") && streq(w->items[3], "active_mtu") &&
	       parse_mtu(rdma, w->items[2], w->items[4]);
}

void hw_verbs_parse(const char *text, struct hw_machine *machine)
{
	struct strlist lines = { 0 };
	unsigned int part = machine->part;
	size_t wrong = 0;

	strlist_split(&lines, text, '\n');
	for (size_t i = 0; i < lines.n; i++) {
		struct strlist words = { 0 };

		strlist_split(&words, lines.items[i], ' ');
		wrong += words.n && !parse_line(machine, &words);
		strlist_done(&words);
	}
	strlist_done(&lines);
	machine->part = HW_PART_RDMA;
	if (wrong)
		hw_warn(machine, "verbs-text", HW_VERBS_FILE,
			"%zu lines cannot be read and are left out", wrong);
	machine->part = part;
}

char *hw_verbs_print(const struct hw_machine *machine)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < machine->n_rdma; i++) {
		const struct hw_rdma *rdma = &machine->rdma[i];

		if (rdma->data_direct)
			buf_printf(&b, "%s data_direct %s\n", rdma->name, rdma->data_direct);
		for (size_t k = 0; k < rdma->n_ports; k++)
			if (rdma->ports[k].active_mtu != HW_UNKNOWN)
				buf_printf(&b, "%s port %u active_mtu %d\n", rdma->name,
					   rdma->ports[k].port, rdma->ports[k].active_mtu);
	}
	return buf_take(&b);
}

void hw_read_verbs(const struct hw_root *root, struct hw_machine *machine)
{
	static const struct hw_verbs_paths paths = { "libibverbs.so.1", "libmlx5.so.1",
						     "/dev/infiniband" };
	_cleanup_free_ char *text = NULL;
	int r;

	if (root->live) {
		hw_verbs_ask(&paths, machine);
		return;
	}
	r = hw_root_read(root, HW_VERBS_FILE, TEXT_MAX_BYTES, &text, NULL);
	if (r == 0)
		hw_verbs_parse(text, machine);
	else if (r != -ENOENT)
		hw_warn(machine, "verbs-unreadable", HW_VERBS_FILE,
			"cannot read what the verbs library said: %s", strerror(-r));
}

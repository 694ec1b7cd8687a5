/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PREPARE_MACHINE_H
#define TEST_PREPARE_MACHINE_H

/* Inventories, claims and folders for the tests of prepare/. */

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "prepare/claim.h"
#include "unit/test_publish_machine.h"

#define UID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UID_B "bbbbbbbb-0000-4000-8000-000000000002"
#define POD_UID "cccccccc-0000-4000-8000-000000000003"

/* Verbs nodes for all NICs; paths[gpu][nic] as given by "path". */
static inline void machine_finish(struct machine *m,
				  enum path_class (*path)(size_t gpu, size_t nic, int *hops))
{
	struct inventory *inv = &m->inv;

	inv->rdma_cm_major = 10;
	inv->rdma_cm_minor = 122;
	for (size_t i = 0; i < inv->n_nics; i++) {
		inv->nics[i].uverbs = text(m, "uverbs%zu", i);
		inv->nics[i].uverbs_major = 231;
		inv->nics[i].uverbs_minor = 192 + (int)i;
	}
	inv->n_pairs = inv->n_gpus * inv->n_nics;
	inv->pairs = machine_block(m, xcalloc(inv->n_pairs, sizeof(*inv->pairs)));
	for (size_t i = 0; i < inv->n_pairs; i++) {
		struct topo_pair *p = &inv->pairs[i];

		p->gpu = (int)(i / inv->n_nics);
		p->nic = (int)(i % inv->n_nics);
		p->hops = TOPO_UNKNOWN;
		p->path = path((size_t)p->gpu, (size_t)p->nic, &p->hops);
	}
}

static inline enum path_class path_card(size_t gpu, size_t nic, int *hops)
{
	if (gpu != nic / 2)
		return gpu / 2 == nic / 4 ? PATH_NODE : PATH_SYS;
	*hops = 4;
	return PATH_PXB;
}

/* "n" cards of two PFs, the DMA function of each beside one GPU. */
static inline void machine_gb300(struct machine *m, size_t n)
{
	machine_cards(m, n);
	machine_finish(m, path_card);
}

static inline enum path_class path_hgx(size_t gpu, size_t nic, int *hops)
{
	if (gpu != nic)
		return gpu / 4 == nic / 4 ? PATH_NODE : PATH_SYS;
	*hops = 2;
	return PATH_PIX;
}

/* "n" GPUs, each with a NIC on its switch; NIC i is 0000:i0:00.0, GPU i 0000:i1:00.0. */
static inline void machine_hgx(struct machine *m, size_t n)
{
	char bus_id[64];

	*m = (struct machine){ .inv = { .refs = 1000 } };
	for (size_t i = 0; i < n; i++) {
		struct topo_gpu *gpu;

		snprintf(bus_id, sizeof(bus_id), "0000:%zx0:00.0", i + 1);
		add_full_nic(m, bus_id);
		snprintf(bus_id, sizeof(bus_id), "0000:%zx1:00.0", i + 1);
		gpu = add_gpu(m, bus_id);
		gpu->minor = (int)i;
		gpu->uuid = text(m, "GPU-%08zx-f437-565c-ab0f-914032019dc5", i);
	}
	machine_finish(m, path_hgx);
}

/* A ResourceClaim "ns/<name>" with results "request=device ..." of pool node1; new reference. */
static inline json_t *claim_object(const char *name, const char *uid, const char *results)
{
	json_t *o = json_pack("{s:{s:s,s:s,s:s},s:{s:{s:{s:[]}},s:[{s:s,s:s,s:s}]}}", "metadata",
			      "namespace", "ns", "name", name, "uid", uid, "status", "allocation",
			      "devices", "results", "reservedFor", "resource", "pods", "name",
			      "pod", "uid", POD_UID);
	json_t *list = json_path(o, "status.allocation.devices.results");
	struct strlist words = { 0 };

	strlist_split(&words, results, ' ');
	for (size_t i = 0; i < words.n; i++) {
		char *equal = strchr(words.items[i], '=');

		*equal = '\0';
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "driver", "twinrail.dev",
						      "request", words.items[i], "pool", "node1",
						      "device", equal + 1));
	}
	strlist_done(&words);
	return o;
}

/* Add an opaque config for all requests. */
static inline void claim_config(json_t *claim, const char *source, const char *requests,
				const char *parameters)
{
	json_t *devices = json_path(claim, "status.allocation.devices");
	json_t *list = json_object_get(devices, "config");

	if (!list) {
		list = json_array();
		json_object_set_new(devices, "config", list);
	}
	json_array_append_new(list, json_pack("{s:s,s:o,s:{s:s,s:o}}", "source", source, "requests",
					      json_loads(requests, 0, NULL), "opaque", "driver",
					      "twinrail.dev", "parameters",
					      json_loads(parameters, 0, NULL)));
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline char *temp_dir(void)
{
	char *dir = xstrdup("/tmp/twinrail-test-XXXXXX");

	if (!mkdtemp(dir))
		abort();
	return dir;
}

static inline void temp_dir_done(char *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(dir);
}

__attribute__((format(printf, 2, 3))) static inline void put_file(const char *path, const char *fmt,
								  ...)
{
	_cleanup_free_ char *content = NULL;
	va_list ap;

	va_start(ap, fmt);
	content = xvasprintf(fmt, ap);
	va_end(ap);
	if (file_write_atomic(path, content, strlen(content), 0644, 0, NULL) < 0)
		abort();
}

/* NULL when it is not there. */
static inline char *get_file(const char *path)
{
	char *s = NULL;

	return file_read_at(AT_FDCWD, path, 1 << 20, &s, NULL) == 0 ? s : NULL;
}

#endif

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "prepare/cdi.h"
#include "prepare/resolve.h"
#include "unit/test_prepare_machine.h"

#define DRIVER "twinrail.dev"

struct fixture {
	struct machine m;
	char *dir;
};

static int setup(void **state)
{
	struct fixture *f = xnew(struct fixture);

	machine_gb300(&f->m, 2);
	f->dir = temp_dir();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	machine_done(&f->m);
	temp_dir_done(f->dir);
	free(f);
	return 0;
}

static int resolve(struct fixture *f, const char *results, struct record **ret, struct err *err)
{
	const char *const dirs[] = { f->dir, NULL };
	const struct resolve_options options = { DRIVER, "node1", dirs };
	_cleanup_json_ json_t *o = claim_object("c", UID_A, results);
	_cleanup_(claim_freep) struct claim *c = NULL;

	assert_int_equal(claim_parse(o, DRIVER, UID_A, &c, err), 0);
	return resolve_claim(c, &f->m.inv, &options, ret, err);
}

static struct record *must_resolve(struct fixture *f, const char *results)
{
	struct record *record = NULL;
	struct err err = { 0 };

	if (resolve(f, results, &record, &err) < 0)
		fail_msg("%s", err.msg);
	return record;
}

static void golden(void **state)
{
	/* with ' for " */
	static const char wanted[] = "{'cdiVersion':'0.5.0','devices':["
				     "{'containerEdits':{'deviceNodes':["
				     "{'major':231,'minor':194,'path':'/dev/infiniband/uverbs2',"
				     "'permissions':'rw','type':'c'},"
				     "{'major':231,'minor':195,'path':'/dev/infiniband/uverbs3',"
				     "'permissions':'rw','type':'c'},"
				     "{'major':10,'minor':122,'path':'/dev/infiniband/rdma_cm',"
				     "'permissions':'rw','type':'c'},"
				     "{'major':231,'minor':192,'path':'/dev/infiniband/uverbs0',"
				     "'permissions':'rw','type':'c'}"
				     "],'env':['NCCL_IB_HCA==mlx5_2:1']},'name':'" UID_A "-big'},"
				     "{'containerEdits':{'deviceNodes':["
				     "{'major':231,'minor':193,'path':'/dev/infiniband/uverbs1',"
				     "'permissions':'rw','type':'c'},"
				     "{'major':10,'minor':122,'path':'/dev/infiniband/rdma_cm',"
				     "'permissions':'rw','type':'c'}"
				     "],'env':['NCCL_IB_HCA==mlx5_2:1']},'name':'" UID_A "-n'}],"
				     "'kind':'twinrail.dev/claim'}";
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r =
		must_resolve(f, "big/x=card-0001-03-00 big/y=nic-0000-03-00-0 n=nic-0000-03-00-1");
	_cleanup_json_ json_t *spec = NULL;
	_cleanup_free_ char *text = NULL, *id = NULL;

	strlist_add(&r->environment, "NCCL_IB_HCA==mlx5_2:1");
	spec = cdi_spec(r, DRIVER);
	text = json_text(spec);
	for (char *c = text; *c; c++)
		if (*c == '"')
			*c = '\'';
	assert_string_equal(text, wanted);
	id = cdi_device_id(r, &r->devices[1], DRIVER);
	assert_string_equal(id, DRIVER "/claim=" UID_A "-big");
}

/* The default route came to a NIC after it had been allocated. */
static void the_nodes_own_nic(void **state)
{
	struct fixture *f = *state;
	struct record *r = NULL;
	struct err err = { 0 };

	f->m.inv.nics[1].role = ROLE_FRONTEND;
	assert_int_equal(resolve(f, "n=nic-0000-03-00-1", &r, &err), -EBUSY);
	assert_null(r);
	assert_non_null(strstr(err.msg, "nic-0000-03-00-1 (0000:03:00.1) is used by the node"));
	assert_int_equal(resolve(f, "n=card-0000-03-00", &r, &err), -EBUSY);
	f->m.inv.nics[1].role_source = "default-route";
	assert_int_equal(resolve(f, "n=nic-0000-03-00-1", &r, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "the default route leads there; delete the claim"));
	f->m.inv.nics[1].role_source = "platform";
	assert_int_equal(resolve(f, "n=nic-0000-03-00-1", &r, &err), -EBUSY);
	assert_non_null(strstr(err.msg, "the platform file says so"));
}

/* --nic-exclude came after the NIC had been allocated. */
static void an_excluded_nic(void **state)
{
	struct fixture *f = *state;
	struct record *r = NULL;
	struct err err = { 0 };

	f->m.inv.nics[1].excluded = true;
	assert_int_equal(resolve(f, "n=nic-0000-03-00-1", &r, &err), -EBUSY);
	assert_null(r);
	assert_non_null(strstr(err.msg, "nic-0000-03-00-1 (0000:03:00.1) is not handed out"));
	assert_non_null(strstr(err.msg, "--nic-exclude"));
	assert_int_equal(resolve(f, "n=card-0000-03-00", &r, &err), -EBUSY);
}

/* It fell off the bus after it had been allocated. */
static void a_broken_nic(void **state)
{
	struct fixture *f = *state;
	struct record *r = NULL;
	struct err err = { 0 };

	f->m.inv.nics[1].broken = true;
	assert_int_equal(resolve(f, "n=nic-0000-03-00-1", &r, &err), -ENODEV);
	assert_null(r);
	assert_non_null(strstr(err.msg, "nic-0000-03-00-1 (0000:03:00.1) does not answer"));
}

/* The kernel does not insist on UTF-8; an entry must not be lost. */
static void not_utf8(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = must_resolve(f, "n=nic-0000-03-00-1");
	_cleanup_json_ json_t *spec = NULL;
	json_t *env;

	strlist_add(&r->environment, "NCCL_IB_HCA==mlx\xff:1");
	spec = cdi_spec(r, DRIVER);
	env = json_path(json_array_get(json_path(spec, "devices"), 0), "containerEdits.env");
	assert_string_equal(json_string_value(json_array_get(env, 0)), "NCCL_IB_HCA==mlx?:1");
}

/* No rdma_cm on the node: it is left out. */
static void without_rdma_cm(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = NULL;

	f->m.inv.rdma_cm_major = f->m.inv.rdma_cm_minor = TOPO_UNKNOWN;
	r = must_resolve(f, "n=nic-0000-03-00-1");
	assert_int_equal(r->devices[0].n_nodes, 1);
}

static void refused_devices(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *device, *text;
	} rows[] = {
		{ "nic-0000-03-00-7", "ns/c: device nic-0000-03-00-7 is not on this node" },
		{ "0000:03:00.0", "is not on this node" }, /* a PCI address is no device name */
		{ "nic-0000-03-00-0", "modprobe ib_uverbs" },
		{ "card-0000-03-00", "nic-0000-03-00-0" },
		{ "nic-0001-03-00-0", "has no RDMA device" },
		{ "gpu-0010-06-00-0", "nvidia-ctk cdi generate" },
		{ "gpu-0011-06-00-0", "GPU of amd" },
	};
	struct err err = { 0 };

	f->m.inv.nics[0].uverbs = NULL;
	f->m.inv.nics[2].rdma_device = NULL;
	f->m.inv.gpus[1].vendor = "amd";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *results = xasprintf("r=%s", rows[i].device);
		struct record *r = NULL;

		assert_true(resolve(f, results, &r, &err) < 0);
		if (!strstr(err.msg, rows[i].text))
			fail_msg("%s: %s", rows[i].device, err.msg);
	}
}

/* Allocated as a whole, then divided: its parts may be somebody else's by now. */
static void a_divided_gpu(void **state)
{
	struct fixture *f = *state;
	struct record *r = NULL;
	struct err err = { 0 };

	f->m.inv.gpus[0].partition = text(&f->m, "mig");
	assert_true(resolve(f, "g=gpu-0010-06-00-0", &r, &err) < 0);
	if (!strstr(err.msg, "is divided (mig)"))
		fail_msg("%s", err.msg);
	assert_int_equal(err.kind, ERR_RETRY);
}

static void files(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = must_resolve(f, "n=nic-0000-03-00-1");
	_cleanup_free_ char *dir = xasprintf("%s/a/b", f->dir);
	_cleanup_free_ char *path = xasprintf("%s/" DRIVER "-" UID_A ".json", dir);
	_cleanup_free_ char *first = NULL, *again = NULL;
	struct err err = { 0 };
	struct stat before, after;

	assert_int_equal(cdi_ensure(dir, r, DRIVER, &err), 0);
	first = get_file(path);
	assert_non_null(first);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(before.st_mode & 0777, 0644);
	/* equal: not written again */
	assert_int_equal(cdi_ensure(dir, r, DRIVER, &err), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	put_file(path, "{}");
	assert_int_equal(cdi_ensure(dir, r, DRIVER, &err), 0);
	again = get_file(path);
	assert_string_equal(first, again);
	assert_int_equal(cdi_remove(dir, UID_A, DRIVER, &err), 0);
	assert_null(get_file(path));
	assert_int_equal(cdi_remove(dir, UID_A, DRIVER, &err), 0);
}

static void unwritable(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = must_resolve(f, "n=nic-0000-03-00-1");
	_cleanup_free_ char *path = xasprintf("%s/" DRIVER "-" UID_A ".json", f->dir);
	_cleanup_free_ char *loop = xasprintf("%s/loop", f->dir);
	struct err err = { 0 };

	assert_true(cdi_ensure("/proc/twinrail-cdi", r, DRIVER, &err) < 0);
	assert_non_null(strstr(err.msg, "CDI folder /proc/twinrail-cdi must be writable"));
	assert_non_null(strstr(err.msg, "--cdi-dir"));
	/* nothing is there, so nothing has to be removed */
	assert_int_equal(cdi_remove("/proc/twinrail-cdi", UID_A, DRIVER, &err), 0);
	assert_int_equal(symlink("loop", loop), 0);
	assert_int_equal(cdi_remove(loop, UID_A, DRIVER, &err), 0);
	/* the folder is fine, what is in the file's place is not */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(cdi_ensure(f->dir, r, DRIVER, &err) < 0);
	assert_null(strstr(err.msg, "must be writable"));
	assert_non_null(strstr(err.msg, path));
}

static void stale(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *own = xasprintf("%s/." DRIVER "-x.json.0a.tmp", f->dir);
	_cleanup_free_ char *other = xasprintf("%s/.vendor.json.0a.tmp", f->dir);
	_cleanup_free_ char *kept = NULL;

	put_file(own, "x");
	put_file(other, "x");
	cdi_remove_stale(f->dir, DRIVER);
	assert_null(get_file(own));
	kept = get_file(other);
	assert_non_null(kept);
}

#define UUID0 "GPU-00000000-f437-565c-ab0f-914032019dc5"
#define YAML_HEAD "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n"
#define YAML_DEVICE(name, node)                                                                    \
	"- name: \"" name "\"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidiactl\n"  \
	"    - path: " node "\n"
#define YAML_ALL                                                                                   \
	"- name: all\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia0\n"             \
	"    - path: /dev/nvidia1\n"

static void vendor(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *file, *content, *id, *text;
	} rows[] = {
		{ "n.yaml",
		  YAML_HEAD YAML_DEVICE("0", "/dev/nvidia1") YAML_DEVICE(UUID0, "/dev/nvidia0"),
		  "nvidia.com/gpu=" UUID0, NULL },
		/* names are indexes in PCI order: the node tells which is which */
		{ "n.yaml",
		  YAML_HEAD YAML_ALL YAML_DEVICE("0", "/dev/nvidia1")
			  YAML_DEVICE("1", "/dev/nvidia0"),
		  "nvidia.com/gpu=1", NULL },
		{ "n.yaml", YAML_HEAD YAML_ALL, NULL, "defines nvidia.com/gpu=" UUID0 },
		{ "n.yaml", "kind: nvidia.com/mig\ndevices:\n" YAML_DEVICE(UUID0, "/dev/nvidia0"),
		  NULL, "nvidia-ctk cdi generate" },
		{ "n.yml", YAML_HEAD YAML_DEVICE(UUID0, "/dev/nvidia0"), NULL, "no CDI" },
		{ "n.yaml", "kind: [", NULL, "no CDI" },
		{ "n.json", "{\"kind\":\"nvidia.com/gpu\",\"devices\":[{\"name\":\"" UUID0 "\"}]}",
		  "nvidia.com/gpu=" UUID0, NULL },
		{ "n.json", "[]", NULL, "no CDI" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s", f->dir, rows[i].file), *id = NULL;
		const char *const dirs[] = { "/nonexistent", f->dir, NULL };
		struct err err = { 0 };
		int r;

		put_file(path, "%s", rows[i].content);
		r = cdi_vendor_id(dirs, "nvidia.com/gpu", UUID0, "/dev/nvidia0", &id, &err);
		if (rows[i].id ? r < 0 || !streq(id, rows[i].id)
			       : r != -ENOENT || !strstr(err.msg, rows[i].text))
			fail_msg("row %zu: %s %s", i, id ? id : "", err.msg);
		unlink(path);
	}
}

static void vendor_conflict(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *a = xasprintf("%s/a.yaml", f->dir),
			    *b = xasprintf("%s/b.yaml", f->dir);
	const char *const dirs[] = { f->dir, NULL };
	struct err err = { 0 };
	char *id = NULL;

	put_file(a, YAML_HEAD YAML_DEVICE(UUID0, "/dev/nvidia0"));
	put_file(b, YAML_HEAD YAML_DEVICE(UUID0, "/dev/nvidia0"));
	assert_int_equal(cdi_vendor_id(dirs, "nvidia.com/gpu", UUID0, NULL, &id, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "remove all but one"));
}

/* What the runtime takes from two folders that define the same names: the later folder's. */
static void vendor_precedence(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *first, *second, *id;
	} rows[] = {
		/* indexes in another order: the first folder's "0" is hidden */
		{ YAML_DEVICE("0", "/dev/nvidia0") YAML_DEVICE("1", "/dev/nvidia1"),
		  YAML_DEVICE("0", "/dev/nvidia1") YAML_DEVICE("1", "/dev/nvidia0"),
		  "nvidia.com/gpu=1" },
		{ YAML_DEVICE("0", "/dev/nvidia0"), YAML_DEVICE("0", "/dev/nvidia1"), NULL },
		{ YAML_DEVICE("a", "/dev/nvidia0"), YAML_DEVICE("b", "/dev/nvidia0"),
		  "nvidia.com/gpu=b" },
		{ YAML_DEVICE("a", "/dev/nvidia0"), YAML_DEVICE("b", "/dev/nvidia1"),
		  "nvidia.com/gpu=a" },
		{ YAML_DEVICE(UUID0, "/dev/nvidia0"), YAML_DEVICE("0", "/dev/nvidia0"),
		  "nvidia.com/gpu=" UUID0 },
	};
	_cleanup_free_ char *first = xasprintf("%s/1", f->dir), *second = xasprintf("%s/2", f->dir);
	_cleanup_free_ char *a = xasprintf("%s/a.yaml", first), *b = xasprintf("%s/b.yaml", second);
	const char *const dirs[] = { first, second, NULL };

	assert_int_equal(mkdir(first, 0700), 0);
	assert_int_equal(mkdir(second, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *id = NULL;
		struct err err = { 0 };
		int r;

		put_file(a, YAML_HEAD "%s", rows[i].first);
		put_file(b, YAML_HEAD "%s", rows[i].second);
		r = cdi_vendor_id(dirs, "nvidia.com/gpu", UUID0, "/dev/nvidia0", &id, &err);
		if (rows[i].id ? r < 0 || !streq(id, rows[i].id) : r != -ENOENT)
			fail_msg("row %zu: %s %s", i, id ? id : "", err.msg);
	}
}

/* A request of GPUs only needs no device of ours: CDI forbids empty ones. */
static void gpu_only(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *yaml = xasprintf("%s/n.yaml", f->dir);
	_cleanup_free_ char *path = xasprintf("%s/" DRIVER "-" UID_A ".json", f->dir);
	_cleanup_(record_freep) struct record *r = NULL;
	struct err err = { 0 };

	put_file(yaml, YAML_HEAD YAML_DEVICE(UUID0, "/dev/nvidia0"));
	r = must_resolve(f, "g=gpu-0010-06-00-0");
	strlist_add(&r->environment, "UCX_NET_DEVICES=mlx5_0:1");
	assert_null(cdi_spec(r, DRIVER));
	assert_null(cdi_device_id(r, &r->devices[0], DRIVER));
	assert_string_equal(r->devices[0].vendor_cdi.items[0], "nvidia.com/gpu=" UUID0);
	assert_int_equal(cdi_ensure(f->dir, r, DRIVER, &err), 0);
	assert_null(get_file(path));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(golden),
		TEST(not_utf8),
		TEST(without_rdma_cm),
		TEST(refused_devices),
		TEST(files),
		TEST(unwritable),
		TEST(stale),
		TEST(vendor),
		TEST(vendor_conflict),
		TEST(vendor_precedence),
		TEST(gpu_only),
		TEST(a_divided_gpu),
		TEST(the_nodes_own_nic),
		TEST(an_excluded_nic),
		TEST(a_broken_nic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

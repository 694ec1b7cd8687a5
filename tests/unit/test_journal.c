// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/plan.h"
#include "base/clock.h"
#include "base/log.h"
#include "prepare/journal.h"
#include "unit/test_prepare_machine.h"

static char *synced; /* the last path given to fsync() */

int fsync(int fd)
{
	_cleanup_free_ char *link = xasprintf("/proc/self/fd/%d", fd);
	char path[4096] = { 0 };

	if (readlink(link, path, sizeof(path) - 1) < 0)
		return -1;
	free(synced);
	synced = xstrdup(path);
	return (int)syscall(SYS_fsync, fd);
}

struct fixture {
	char *dir, *path_a;
	struct journal j;
};

static int setup(void **state)
{
	struct fixture *f = xnew(struct fixture);
	struct err err = { 0 };

	f->dir = temp_dir();
	f->path_a = xasprintf("%s/claims/" UID_A ".json", f->dir);
	assert_int_equal(journal_init(&f->j, f->dir, &err), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	journal_done(&f->j);
	temp_dir_done(f->dir);
	free(f->path_a);
	free(f);
	free(TAKE_PTR(synced));
	return 0;
}

static struct record *make_record(const char *uid)
{
	struct record *r = record_new("ns", "c", uid);
	struct record_device *d = record_add_device(r);

	r->boot_id = xstrdup("boot-1");
	d->request = xstrdup("nic/big");
	d->pool = xstrdup("node1");
	d->device = xstrdup("card-0000-03-00");
	d->type = xstrdup("card");
	d->share_id = xstrdup(UID_B);
	d->admin_access = true;
	d->config.half_pair = HALF_PAIR_ALLOW;
	strlist_add(&d->functions, "0000:03:00.0");
	strlist_add(&d->functions, "0000:03:00.1");
	d->nodes = xcalloc(1, sizeof(*d->nodes));
	d->nodes[d->n_nodes++] = (struct record_node){ xstrdup("/dev/infiniband/uverbs0"), 231, 0 };
	strlist_add(&d->vendor_cdi, "nvidia.com/gpu=GPU-1");
	strlist_add(&r->environment, "NCCL_IB_HCA==mlx5_0:1");
	return r;
}

static void save(struct fixture *f, const struct record *record)
{
	struct err err = { 0 };

	if (journal_save(&f->j, record, &err) < 0 || journal_sync(&f->j, &err) < 0)
		fail_msg("%s", err.msg);
}

static void round_trip(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = make_record(UID_A), *back = NULL;
	_cleanup_json_ json_t *before = record_to_json(r), *after = NULL;
	_cleanup_free_ char *a = NULL, *b = NULL;
	struct err err = { 0 };
	struct stat st;

	save(f, r);
	assert_int_equal(stat(f->path_a, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(journal_load(&f->j, UID_A, &back, &err), 0);
	assert_int_equal(back->state, RECORD_STARTED);
	assert_string_equal(back->devices[0].request, "nic/big");
	assert_true(back->devices[0].admin_access);
	assert_string_equal(back->devices[0].share_id, UID_B);
	assert_int_equal(back->devices[0].config.half_pair, HALF_PAIR_ALLOW);
	assert_int_equal(back->devices[0].functions.n, 2);
	assert_int_equal(back->devices[0].nodes[0].major, 231);
	assert_string_equal(back->environment.items[0], "NCCL_IB_HCA==mlx5_0:1");
	json_decref(back->stored); /* write it as if it were new */
	back->stored = NULL;
	after = record_to_json(back);
	a = json_text(before);
	b = json_text(after);
	assert_string_equal(a, b);
	assert_non_null(strstr(a, "\"attach\":{\"links\":[],\"mode\":\"none\"}"));
}

/* What claims hold, without the lock; adminAccess holds nothing. */
static void held(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *a = make_record(UID_A), *b = make_record(UID_B);
	_cleanup_free_ char *path_b = xasprintf("%s/claims/" UID_B ".json", f->dir);
	static const char later[] =
		"{\"version\":99,\"devices\":[{\"functions\":[\"0009:01:00.0\"]}]}";
	struct strlist functions = { 0 };
	struct err err = { 0 };

	assert_int_equal(journal_held(&f->j, &functions, &err), 0);
	assert_int_equal(functions.n, 0);
	save(f, a);
	b->devices[0].admin_access = false;
	save(f, b);
	assert_int_equal(journal_held(&f->j, &functions, &err), 0);
	assert_int_equal(functions.n, 2);
	assert_string_equal(functions.items[0], "0000:03:00.0");
	assert_string_equal(functions.items[1], "0000:03:00.1");
	strlist_done(&functions);
	/* One of a later version holds its functions; a malformed one stays where it is. */
	assert_int_equal(file_write_atomic(f->path_a, "{", 1, 0600, 0, &err), 0);
	assert_int_equal(file_write_atomic(path_b, later, strlen(later), 0600, 0, &err), 0);
	assert_int_equal(journal_held(&f->j, &functions, &err), 0);
	assert_int_equal(functions.n, 1);
	assert_string_equal(functions.items[0], "0009:01:00.0");
	assert_int_equal(access(f->path_a, F_OK), 0);
	strlist_done(&functions);
	/* One that cannot be read may hold anything. */
	assert_int_equal(unlink(path_b), 0);
	assert_int_equal(mkdir(path_b, 0700), 0);
	assert_int_equal(journal_held(&f->j, &functions, &err), -EISDIR);
	assert_int_equal(rmdir(path_b), 0);
	strlist_done(&functions);
}

static void states(void **state)
{
	struct fixture *f = *state;
	static const enum record_state order[] = { RECORD_STARTED, RECORD_COMPLETED,
						   RECORD_UNDOING };
	_cleanup_(record_freep) struct record *r = make_record(UID_A);
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		_cleanup_(record_freep) struct record *back = NULL;

		r->state = order[i];
		save(f, r);
		assert_int_equal(journal_load(&f->j, UID_A, &back, &err), 0);
		assert_int_equal(back->state, order[i]);
	}
	assert_int_equal(journal_remove(&f->j, UID_A, &err), 0);
	assert_int_equal(journal_remove(&f->j, UID_A, &err), 0);
	assert_int_equal(journal_load(&f->j, UID_A, &(struct record *){ NULL }, &err), -ENOENT);
}

/* A later version may add members anywhere; a change of state keeps them. */
static void unknown_fields(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = make_record(UID_A), *back = NULL;
	_cleanup_json_ json_t *o = record_to_json(r), *kept = NULL;
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	size_t len;

	json_object_set_new(o, "later", json_integer(7));
	json_object_set_new(json_array_get(json_path(o, "devices"), 0), "deep", json_true());
	json_object_set_new(json_path(json_array_get(json_path(o, "devices"), 0), "config"),
			    "newField", json_string("x"));
	text = json_text(o);
	put_file(f->path_a, "%s", text);
	free(TAKE_PTR(text));
	assert_int_equal(journal_load(&f->j, UID_A, &back, &err), 0);
	back->state = RECORD_UNDOING;
	save(f, back);
	assert_int_equal(file_read(f->path_a, 1 << 20, &text, &len, &err), 0);
	assert_int_equal(json_parse(text, len, &kept, &err), 0);
	assert_int_equal(json_integer_value(json_path(kept, "later")), 7);
	assert_true(json_is_true(json_path(json_array_get(json_path(kept, "devices"), 0), "deep")));
	assert_string_equal(
		json_path_string(json_array_get(json_path(kept, "devices"), 0), "config.newField"),
		"x");
	assert_string_equal(json_path_string(kept, "state"), "Undoing");
	assert_int_equal(json_object_size(kept), json_object_size(o));
}

/* Each is set aside; the good record beside it is served. */
static void corrupt(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *aside = xasprintf("%s.corrupt", f->path_a);
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"version\":1}",
		"{\"version\":0}",
		"\xff",
		"{\"version\":1,\"version\":1}",
	};
	static const struct {
		const char *key, *value;
	} changes[] = {
		{ "state", "\"Done\"" },  { "uid", "\"" UID_B "\"" }, { "uid", "\"../x\"" },
		{ "devices", "{}" },	  { "devices", "[{}]" },      { "environment", "[7]" },
		{ "bootID", "null" },	  { "attach", "{}" },	      { "namespace", "\"/\"" },
		{ "version", "\"one\"" },
	};
	_cleanup_(record_freep) struct record *good = make_record(UID_B), *r = make_record(UID_A);
	unsigned int n = 0;

	save(f, good);
	for (size_t i = 0; i < ARRAY_SIZE(texts) + ARRAY_SIZE(changes); i++) {
		struct record_list list = { 0 };
		struct err err = { 0 };
		_cleanup_free_ char *was = NULL;

		if (i < ARRAY_SIZE(texts)) {
			put_file(f->path_a, "%s", texts[i]);
		} else {
			size_t k = i - ARRAY_SIZE(texts);
			_cleanup_json_ json_t *o = record_to_json(r);
			_cleanup_free_ char *text = NULL;

			json_object_set_new(o, changes[k].key,
					    json_loads(changes[k].value, JSON_DECODE_ANY, NULL));
			text = json_text(o);
			put_file(f->path_a, "%s", text);
		}
		if (journal_load_all(&f->j, &list, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		assert_int_equal(list.n, 1);
		assert_string_equal(list.items[0]->uid, UID_B);
		record_list_done(&list);
		assert_int_equal(f->j.corrupt, ++n);
		was = get_file(aside);
		if (!was || access(f->path_a, F_OK) == 0)
			fail_msg("row %zu was not set aside", i);
	}
}

/* A record of a later version is neither served nor set aside. */
static void later_version(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *key, *value;
	} changes[] = {
		{ "version", "2" },
		{ "attach", "{\"mode\":\"move\",\"links\":[]}" },
		{ "attach", "{\"mode\":\"none\",\"links\":[{}]}" },
	};
	_cleanup_(record_freep) struct record *r = make_record(UID_A);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		_cleanup_json_ json_t *o = record_to_json(r);
		_cleanup_free_ char *text = NULL, *kept = NULL;
		struct record_list list = { 0 };
		struct record *back = NULL;
		struct err err = { 0 };

		json_object_set_new(o, changes[i].key,
				    json_loads(changes[i].value, JSON_DECODE_ANY, NULL));
		text = json_text(o);
		put_file(f->path_a, "%s", text);
		assert_int_equal(journal_load(&f->j, UID_A, &back, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.msg, f->path_a));
		assert_non_null(strstr(err.msg, "install the version"));
		assert_int_equal(journal_load_all(&f->j, &list, &err), 0);
		assert_int_equal(list.n, 1); /* it still holds its devices */
		assert_true(list.items[0]->later);
		assert_string_equal(list.items[0]->name, "c");
		assert_string_equal(list.items[0]->devices[0].functions.items[1], "0000:03:00.1");
		assert_true(list.items[0]->devices[0].admin_access);
		record_list_done(&list);
		kept = get_file(f->path_a);
		assert_string_equal(kept, text);
	}
	assert_int_equal(f->j.corrupt, 0);
}

/* Nothing in a record of a later version has to be where it is now. */
static void holders(void **state)
{
	static const struct {
		const char *text, *name;
		size_t n_devices;
	} rows[] = {
		{ "{}", "unknown", 0 },
		{ "[]", "unknown", 0 },
		{ "{\"name\":\"A/B\",\"devices\":{}}", "unknown", 0 },
		{ "{\"name\":\"n\",\"devices\":[7,{\"functions\":[7]}]}", "n", 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_json_ json_t *o = json_loads(rows[i].text, 0, NULL);
		_cleanup_(record_freep) struct record *r = record_holder(o, UID_A);

		assert_string_equal(r->name, rows[i].name);
		assert_int_equal(r->n_devices, rows[i].n_devices);
		for (size_t k = 0; k < r->n_devices; k++)
			assert_int_equal(r->devices[k].functions.n, 0);
	}
}

/* A record that cannot even be read (here a directory) does not touch the others. */
static void unreadable(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *good = make_record(UID_B), *back = NULL;
	struct err err = { 0 };

	save(f, good);
	assert_int_equal(mkdir(f->path_a, 0700), 0);
	for (int i = 0; i < 2; i++) {
		struct record_list list = { 0 };

		assert_int_equal(journal_load_all(&f->j, &list, &err), 0);
		assert_int_equal(list.n, 1);
		assert_string_equal(list.items[0]->uid, UID_B);
		record_list_done(&list);
		assert_int_equal(f->j.unreadable.n, 1);
	}
	assert_int_equal(f->j.corrupt, 0);
	assert_int_equal(journal_load(&f->j, UID_A, &back, &err), -EISDIR);
	assert_non_null(strstr(err.msg, f->path_a));
}

/* The folder of the records is durable before the first record is. */
static void folder_is_durable(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *data = xasprintf("%s/new", f->dir);
	struct journal j;
	struct err err = { 0 };

	free(TAKE_PTR(synced));
	assert_int_equal(journal_init(&j, data, &err), 0);
	assert_non_null(synced);
	assert_string_equal(synced, data);
	journal_done(&j);
	free(TAKE_PTR(synced));
}

static void other_files(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "README", ".x.json.1.tmp", "a.json.corrupt", "-x.json",
					     "a b.json" };
	struct record_list list = { 0 };
	struct err err = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = xasprintf("%s/claims/%s", f->dir, names[i]);

		put_file(path, "x");
	}
	assert_int_equal(journal_load_all(&f->j, &list, &err), 0);
	assert_int_equal(list.n, 0);
	journal_remove_stale(&f->j);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_free_ char *path = xasprintf("%s/claims/%s", f->dir, names[i]);

		assert_int_equal(access(path, F_OK) == 0, !ends_with(names[i], ".tmp"));
	}
}

static void hook_plan(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = make_record(UID_A);
	struct attach_plan plan;
	struct err err = { 0 };

	assert_int_equal(attach_plan_read(f->path_a, &plan, &err), -ENOENT);
	for (size_t i = 0; i < 3; i++) {
		r->state = (enum record_state)i;
		save(f, r);
		assert_int_equal(attach_plan_read(f->path_a, &plan, &err),
				 r->state == RECORD_COMPLETED ? 0 : -EBUSY);
	}
	assert_non_null(strstr(err.msg, "Undoing"));
	put_file(f->path_a,
		 "{\"state\":\"Completed\",\"attach\":{\"mode\":\"none\",\"links\":[1]}}");
	assert_int_equal(attach_plan_read(f->path_a, &plan, &err), -EOPNOTSUPP);
	put_file(f->path_a, "{\"state\":\"Completed\"}");
	assert_int_equal(attach_plan_read(f->path_a, &plan, &err), -EINVAL);
	put_file(f->path_a, "{");
	assert_true(attach_plan_read(f->path_a, &plan, &err) < 0);
	assert_non_null(strstr(err.msg, f->path_a));
}

/* Somebody else holds the lock and does not let go. */
static void held_lock(void **state)
{
	struct fixture *f = *state;
	_cleanup_close_ int lock = -1;
	uint64_t began = clock_us();
	struct err err = { 0 };
	int other = -1;

	assert_int_equal(journal_lock(&f->j, &lock, &err), 0);
	f->j.lock_wait_us = 50000;
	assert_int_equal(journal_lock(&f->j, &other, &err), -EBUSY);
	assert_int_equal(err.kind, ERR_RETRY);
	assert_non_null(strstr(err.msg, f->j.lock_path));
	f->j.lock_wait_us = 60000000;
	atomic_store(&f->j.stopping, true);
	assert_int_equal(journal_lock(&f->j, &other, &err), -EBUSY);
	assert_true(clock_us() - began < 10000000);
	closep(&lock);
	lock = -1;
	assert_int_equal(journal_lock(&f->j, &lock, &err), 0); /* nobody has to be waited for */
}

/* Somebody cleaned up while the agent runs. */
static void removed_folder(void **state)
{
	struct fixture *f = *state;
	_cleanup_(record_freep) struct record *r = make_record(UID_A);
	_cleanup_close_ int lock = -1;
	struct err err = { 0 };

	assert_int_equal(rmdir(f->j.dir), 0);
	assert_int_equal(journal_lock(&f->j, &lock, &err), 0);
	save(f, r);
	assert_int_equal(access(f->path_a, F_OK), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(held),	      TEST(round_trip),	       TEST(states),
		TEST(unknown_fields), TEST(corrupt),	       TEST(later_version),
		TEST(other_files),    TEST(hook_plan),	       TEST(holders),
		TEST(unreadable),     TEST(folder_is_durable), TEST(held_lock),
		TEST(removed_folder),
	};

	log_init(LOG_FORMAT_TEXT, LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

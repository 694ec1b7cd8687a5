// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "prepare/prepare.h"
#include "unit/test_prepare_doubles.h"

#define PAIR0 "n=nic-0000-03-00-0 n=nic-0000-03-00-1"
#define PAIR1 "n=nic-0001-03-00-0 n=nic-0001-03-00-1"
#define CARD0 "card=card-0000-03-00"

/* The disk: fsync() of a file fails with this error when it is not 0. */
static int fsync_error;

int fsync(int fd)
{
	struct stat st;

	if (fsync_error && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		errno = fsync_error;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

struct fixture {
	char *dir, *data_dir, *cdi_dir;
	const char *cdi_override;
	struct machine m;
	struct preparer *p;
	struct dra_call call, call2;
	uint64_t overlap_wait_us, orphan_grace_us;
};

static void start(struct fixture *f)
{
	const char *const none[] = { NULL };
	const struct prepare_options options = {
		.driver = DRIVER,
		.pool = "node1",
		.data_dir = f->data_dir,
		.cdi_dir = f->cdi_override ? f->cdi_override : f->cdi_dir,
		.overlap_wait_us = f->overlap_wait_us,
		.orphan_grace_us = f->orphan_grace_us,
		.vendor_cdi_dirs = none,
	};
	struct err err = { 0 };

	if (preparer_new(loop, NULL, &options, &f->p, &err) < 0)
		fail_msg("%s", err.msg);
}

static void restart(struct fixture *f)
{
	preparer_free(f->p);
	start(f);
	preparer_set(f->p, &f->m.inv);
}

static int setup(void **state)
{
	struct fixture *f = xnew(struct fixture);

	doubles_start();
	machine_gb300(&f->m, 4);
	f->dir = temp_dir();
	f->data_dir = xasprintf("%s/data", f->dir);
	f->cdi_dir = xasprintf("%s/cdi", f->dir);
	f->overlap_wait_us = 10000000;
	start(f);
	preparer_set(f->p, &f->m.inv);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	preparer_free(f->p);
	doubles_stop();
	call_init(&f->call);
	call_init(&f->call2);
	machine_done(&f->m);
	temp_dir_done(f->dir);
	free(f->data_dir);
	free(f->cdi_dir);
	free(f);
	return 0;
}

static const char *one(struct fixture *f, bool prepare, const char *name, const char *uid)
{
	call_init(&f->call);
	call_add(&f->call, name, uid);
	if (prepare)
		preparer_prepare(f->p, &f->call);
	else
		preparer_unprepare(f->p, &f->call);
	run_until(&f->call.finished);
	return f->call.answers[0];
}

static const char *prepare(struct fixture *f, const char *name, const char *uid)
{
	return one(f, true, name, uid);
}

static const char *unprepare(struct fixture *f, const char *name, const char *uid)
{
	return one(f, false, name, uid);
}

static char *record_text(const struct fixture *f, const char *uid)
{
	_cleanup_free_ char *path = xasprintf("%s/claims/%s.json", f->data_dir, uid);

	return get_file(path);
}

static char *spec_text(const struct fixture *f, const char *uid)
{
	_cleanup_free_ char *path = xasprintf("%s/" DRIVER "-%s.json", f->cdi_dir, uid);

	return get_file(path);
}

static void assert_clean(const struct fixture *f, const char *uid)
{
	assert_null(record_text(f, uid));
	assert_null(spec_text(f, uid));
}

static void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("\"%s\" does not have \"%s\"", text ? text : "(nothing)", part);
}

#define ANSWER_CARD0 "card card-0000-03-00 " DRIVER "/claim=" UID_A "-card"

static void prepare_and_undo(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *record = NULL, *spec = NULL, *record2 = NULL, *spec2 = NULL;
	_cleanup_free_ char *path = xasprintf("%s/" DRIVER "-" UID_A ".json", f->cdi_dir);

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	record = record_text(f, UID_A);
	spec = spec_text(f, UID_A);
	assert_has(record, "\"state\": \"Completed\"");
	assert_has(spec, "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1");

	/* again, after the CDI file was lost (a reboot with /run on tmpfs) */
	assert_int_equal(unlink(path), 0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	record2 = record_text(f, UID_A);
	spec2 = spec_text(f, UID_A);
	assert_string_equal(record, record2);
	assert_string_equal(spec, spec2);

	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_clean(f, UID_A);
	assert_string_equal(unprepare(f, "a", UID_A), "");
	/* an unknown claim: a file that was left is removed */
	put_file(path, "{}");
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_clean(f, UID_A);
}

static void empty_call(void **state)
{
	struct fixture *f = *state;

	preparer_prepare(f->p, &f->call);
	assert_true(f->call.finished);
	call_init(&f->call);
	preparer_unprepare(f->p, &f->call);
	assert_true(f->call.finished);
}

static void refused_claims(void **state)
{
	struct fixture *f = *state;

	assert_has(prepare(f, "a", UID_A), "error: claim ns/a: GET");
	api_put("a", UID_B, CARD0);
	assert_has(prepare(f, "a", UID_A), "it was replaced");
	api_put_claim("a", json_pack("{s:{s:s,s:s,s:s}}", "metadata", "namespace", "ns", "name",
				     "a", "uid", UID_A));
	assert_has(prepare(f, "a", UID_A), "it is not allocated");
	api_put_claim("a", claim_object("b", UID_A, CARD0));
	assert_has(prepare(f, "a", UID_A), "answered with another claim");
	api_put("a", UID_A, "n=nic-0009-03-00-0");
	assert_has(prepare(f, "a", UID_A), "is not on this node");
	assert_has(prepare(f, "a", "../../x"), "invalid namespace, name or uid");
	assert_has(unprepare(f, "a", "../../x"), "invalid namespace, name or uid");
	assert_has(prepare(f, "../a", UID_A), "invalid namespace, name or uid");
	api_put("a", UID_A, CARD0);
	json_object_set_new(api_result("a", 0), "pool", json_string("node2"));
	assert_has(prepare(f, "a", UID_A), "allocated to another node");
	api_status = 403;
	assert_has(prepare(f, "a", UID_A), "status 403");
	assert_clean(f, UID_A);
}

/* All results of other drivers: an answer without devices. */
static void nothing_of_ours(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, "");
	assert_string_equal(prepare(f, "a", UID_A), "");
	assert_null(spec_text(f, UID_A));
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_clean(f, UID_A);
}

/* The waiting claim holds neither the worker nor another claim's calls. */
static void overlap_released(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR0);
	api_put("c", POD_UID, PAIR1);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	call_add(&f->call2, "b", UID_B);
	preparer_prepare(f->p, &f->call2);
	run_for(50000);
	assert_has(prepare(f, "c", POD_UID), "n nic-0001-03-00-0 ");
	assert_false(f->call2.finished);
	assert_string_equal(unprepare(f, "a", UID_A), "");
	run_until(&f->call2.finished);
	assert_has(f->call2.answers[0], "n nic-0000-03-00-0 ");
}

static void overlap_timeout(void **state)
{
	struct fixture *f = *state;

	f->overlap_wait_us = 100000;
	restart(f);
	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	assert_has(prepare(f, "b", UID_B),
		   "error: claim ns/b: 0000:03:00.0 is still in use by claim ns/a");
	assert_clean(f, UID_B);

	/* adminAccess watches what others hold */
	json_object_set_new(api_result("b", 0), "adminAccess", json_true());
	json_object_set_new(api_result("b", 1), "adminAccess", json_true());
	assert_has(prepare(f, "b", UID_B), "n nic-0000-03-00-0 ");
}

/* Kubelet gives up on a waiting Prepare and unprepares: nobody waits. */
static void unprepare_supersedes(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	call_add(&f->call2, "b", UID_B);
	preparer_prepare(f->p, &f->call2);
	run_for(50000);
	assert_string_equal(unprepare(f, "b", UID_B), "");
	assert_true(f->call2.finished);
	assert_has(f->call2.answers[0], "error: ");
	assert_clean(f, UID_B);

	/* the same while the API server is away */
	call_init(&f->call2);
	call_add(&f->call2, "b", UID_B);
	api_away = true;
	preparer_prepare(f->p, &f->call2);
	run_for(10000);
	assert_string_equal(unprepare(f, "b", UID_B), "");
	assert_has(f->call2.answers[0], "given up");
}

/* Kubelet gave the call up while it waits for a device, or for the API server. */
static void given_up(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	for (int i = 0; i < 2; i++) {
		call_init(&f->call2);
		call_add(&f->call2, "b", UID_B);
		api_away = i > 0;
		preparer_prepare(f->p, &f->call2);
		run_for(50000);
		assert_false(f->call2.finished);
		f->call2.cancelled = true;
		run_for(1500000);
		assert_true(f->call2.finished);
		assert_has(f->call2.answers[0], i > 0 ? "given up" : "still in use");
		assert_null(api_requests);
		assert_clean(f, UID_B);
	}
}

/* One function twice in one claim: no scheduler that knows the counters does that. */
static void same_function_twice(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0 " " CARD0);
	assert_has(prepare(f, "a", UID_A), "have the same function 0000:03:00.0");
	api_put("a", UID_A, CARD0 " n=nic-0000-03-00-1");
	assert_has(prepare(f, "a", UID_A), "have the same function 0000:03:00.1");
	assert_clean(f, UID_A);
	json_object_set_new(api_result("a", 1), "adminAccess", json_true());
	assert_has(prepare(f, "a", UID_A), "n nic-0000-03-00-1 ");
}

static void half_pairs(void **state)
{
	struct fixture *f = *state;
	_cleanup_json_ json_t *o = claim_object("a", UID_A, "n=nic-0000-03-00-1");

	api_put("a", UID_A, "n=nic-0000-03-00-1");
	assert_has(prepare(f, "a", UID_A), "nic-0000-03-00-0 is missing");
	assert_has(f->call.answers[0], "card-0000-03-00");
	assert_has(f->call.answers[0], "class nic." DRIVER);
	assert_has(f->call.answers[0], DRIVER "/cardId");
	assert_has(f->call.answers[0], "halfPairPolicy: Allow");
	assert_clean(f, UID_A);

	/* over two claims of one pod */
	api_put("b", UID_B, "n=nic-0000-03-00-0");
	call_init(&f->call);
	call_add(&f->call, "b", UID_B);
	call_add(&f->call, "a", UID_A);
	preparer_prepare(f->p, &f->call);
	run_until(&f->call.finished);
	assert_has(f->call.answers[0], "n nic-0000-03-00-0 ");
	assert_has(f->call.answers[1], "n nic-0000-03-00-1 ");
	/* a repeated call for one of them does not disturb it */
	assert_has(prepare(f, "a", UID_A), "n nic-0000-03-00-1 ");
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_string_equal(unprepare(f, "b", UID_B), "");

	claim_config(o, "FromClaim", "[]",
		     "{\"apiVersion\":\"twinrail.dev/v1\",\"kind\":\"NicConfig\","
		     "\"halfPairPolicy\":\"Allow\"}");
	api_put_claim("a", json_incref(o));
	assert_has(prepare(f, "a", UID_A), "n nic-0000-03-00-1 ");
}

/* One claim of a pod fails: the other is not prepared either, and says why. */
static void all_or_nothing(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, "n=nic-0001-03-00-0");
	call_add(&f->call, "a", UID_A);
	call_add(&f->call, "b", UID_B);
	preparer_prepare(f->p, &f->call);
	run_until(&f->call.finished);
	assert_has(f->call.answers[1], "error: claim ns/b: half pair");
	assert_has(f->call.answers[0],
		   "error: claim ns/a waits for another claim of its pod: claim ns/b: half pair");
	assert_clean(f, UID_A);
	assert_clean(f, UID_B);

	/* one that was prepared before is served all the same */
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	call_init(&f->call);
	call_add(&f->call, "a", UID_A);
	call_add(&f->call, "b", UID_B);
	preparer_prepare(f->p, &f->call);
	run_until(&f->call.finished);
	assert_string_equal(f->call.answers[0], ANSWER_CARD0);
	assert_has(f->call.answers[1], "half pair");

	/* twice the same device in one pod */
	api_put("b", UID_B, PAIR0);
	call_init(&f->call);
	call_add(&f->call, "b", UID_B);
	call_add(&f->call, "a", UID_A);
	preparer_prepare(f->p, &f->call);
	run_until(&f->call.finished);
	assert_has(f->call.answers[0], "is still in use by claim ns/a");
}

/* The allocation of a claim changed while nobody unprepared it. */
static void other_content(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *spec = NULL;

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	api_put("a", UID_A, "card=card-0001-03-00");
	assert_has(prepare(f, "a", UID_A), "card card-0001-03-00 ");
	spec = spec_text(f, UID_A);
	assert_has(spec, "mlx5_2:1,mlx5_3:1");
	api_put("b", UID_B, PAIR0);
	assert_has(prepare(f, "b", UID_B), "n nic-0000-03-00-0 ");
}

/* Two calls for one claim run one after the other and answer the same. */
static void same_claim_twice(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	call_add(&f->call, "a", UID_A);
	call_add(&f->call2, "a", UID_A);
	preparer_prepare(f->p, &f->call);
	preparer_prepare(f->p, &f->call2);
	assert_int_equal(api_log.n, 1);
	run_until(&f->call.finished);
	run_until(&f->call2.finished);
	assert_string_equal(f->call.answers[0], ANSWER_CARD0);
	assert_string_equal(f->call2.answers[0], ANSWER_CARD0);
	assert_int_equal(api_log.n, 2);
}

static void without_api_and_inventory(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	preparer_free(f->p);
	f->overlap_wait_us = 100000;
	start(f);
	api_away = true;
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_clean(f, UID_A);
	api_back();
	assert_has(prepare(f, "a", UID_A), "has not been read yet");
	preparer_free(f->p);
	f->overlap_wait_us = 10000000;
	start(f);
	call_init(&f->call);
	call_add(&f->call, "a", UID_A);
	preparer_prepare(f->p, &f->call);
	run_for(50000);
	assert_false(f->call.finished);
	preparer_set(f->p, &f->m.inv);
	run_until(&f->call.finished);
	assert_string_equal(f->call.answers[0], ANSWER_CARD0);
}

static void stop_while_busy(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR1);
	call_add(&f->call, "a", UID_A);
	api_away = true;
	preparer_prepare(f->p, &f->call);
	call_add(&f->call2, "b", UID_B);
	preparer_unprepare(f->p, &f->call2);
	f->p = preparer_free(f->p);
	assert_true(f->call.failed);
	assert_true(f->call2.finished); /* it was on the worker: done and answered */
	assert_string_equal(f->call2.answers[0], "");
}

static void unwritable_cdi(void **state)
{
	struct fixture *f = *state;

	f->cdi_override = "/proc/twinrail-cdi";
	restart(f);
	api_put("a", UID_A, CARD0);
	assert_has(prepare(f, "a", UID_A), "CDI folder /proc/twinrail-cdi must be writable");
	assert_null(record_text(f, UID_A)); /* rolled back */
	assert_string_equal(unprepare(f, "a", UID_A), "");
}

/* A full disk: nothing is prepared, but what is there can be undone. */
static void full_disk(void **state)
{
	struct fixture *f = *state;
	static const int errors[] = { ENOSPC, EDQUOT };

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR1);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
		fsync_error = errors[i];
		assert_has(prepare(f, "b", UID_B), "error: cannot write");
		assert_clean(f, UID_B);
		assert_string_equal(unprepare(f, "a", UID_A), "");
		fsync_error = 0;
		assert_clean(f, UID_A);
	}
	/* any other error: the mark has to be there first */
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	fsync_error = EIO;
	assert_has(unprepare(f, "a", UID_A), "error: cannot write");
	fsync_error = 0;
	assert_string_equal(unprepare(f, "a", UID_A), "");
}

static void put_pod(const char *uses_a, const char *uses_b)
{
	json_t *pod = json_loads("{\"metadata\":{\"uid\":\"" POD_UID "\"},\"spec\":{"
				 "\"resourceClaims\":[{\"name\":\"x\",\"resourceClaimName\":\"a\"},"
				 "{\"name\":\"y\",\"resourceClaimName\":\"b\"}]}}",
				 0, NULL);

	json_object_set_new(json_path(pod, "spec"), "containers",
			    json_pack("[{s:{s:o}},{s:{s:o}}]", "resources", "claims",
				      json_loads(uses_a, 0, NULL), "resources", "claims",
				      json_loads(uses_b, 0, NULL)));
	json_object_set_new(api_objects, "/api/v1/namespaces/ns/pods/pod", pod);
}

/* Two claims: one value in both specs, unless containers use different ones. */
static void environment_of_pod(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *a, *b; /* NULL: the pod cannot be read */
		bool lists;
	} rows[] = {
		{ NULL, NULL, true },
		{ "[{\"name\":\"x\"},{\"name\":\"y\"}]", "[]", true },
		{ "[{\"name\":\"x\"}]", "[{\"name\":\"y\"}]", false },
	};

	api_put("a", UID_A, "card=card-0001-03-00");
	api_put("b", UID_B, PAIR0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *const uids[] = { UID_B, UID_A };

		if (rows[i].a)
			put_pod(rows[i].a, rows[i].b);
		call_init(&f->call);
		call_add(&f->call, "b", UID_B);
		call_add(&f->call, "a", UID_A);
		preparer_prepare(f->p, &f->call);
		run_until(&f->call.finished);
		for (size_t k = 0; k < 2; k++) {
			_cleanup_free_ char *spec = spec_text(f, uids[k]);

			assert_non_null(spec);
			if (rows[i].lists != (strstr(spec, "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,"
							   "mlx5_2:1,mlx5_3:1") != NULL))
				fail_msg("row %zu: %s", i, spec);
		}
		unprepare(f, "a", UID_A);
		unprepare(f, "b", UID_B);
	}
}

static char *change_record(const struct fixture *f, const char *uid, const char *key,
			   const char *value)
{
	_cleanup_free_ char *path = xasprintf("%s/claims/%s.json", f->data_dir, uid), *text = NULL;
	_cleanup_free_ char *changed = NULL;
	_cleanup_json_ json_t *o = NULL;

	text = get_file(path);
	assert_int_equal(json_parse(text, strlen(text), &o, NULL), 0);
	json_set_string(o, key, value);
	changed = json_text_pretty(o);
	put_file(path, "%s", changed);
	return TAKE_PTR(text);
}

static void recovery(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *tmp = xasprintf("%s/claims/.x.json.0a.tmp", f->data_dir);
	_cleanup_free_ char *spec = xasprintf("%s/" DRIVER "-" UID_A ".json", f->cdi_dir);
	_cleanup_free_ char *junk = xasprintf("%s/claims/" POD_UID ".json", f->data_dir);
	static const char *const unfinished[] = { "Started", "Undoing" };
	_cleanup_free_ char *before = NULL, *after = NULL;

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR1);
	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *was = NULL, *other = NULL;

		assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
		assert_has(prepare(f, "b", UID_B), "n nic-0001-03-00-0 ");
		was = change_record(f, UID_A, "state", unfinished[i]);
		restart(f);
		assert_clean(f, UID_A);
		other = record_text(f, UID_B);
		assert_non_null(other);
	}
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	before = record_text(f, UID_A);
	assert_int_equal(unlink(spec), 0);
	put_file(tmp, "x");
	put_file(junk, "x");
	restart(f);
	after = record_text(f, UID_A);
	assert_string_equal(before, after);
	assert_int_equal(access(spec, F_OK), 0);
	assert_int_equal(access(tmp, F_OK), -1);
	assert_int_equal(access(junk, F_OK), -1);
	/* its claim can be prepared and unprepared like one that never was */
	assert_string_equal(unprepare(f, "c", POD_UID), "");
}

/* The first card's PFs come up with the numbers and names of the second one's, and the reverse. */
static void renumber(struct fixture *f)
{
	struct topo_nic *nics = f->m.inv.nics;

	for (size_t i = 0; i < 2; i++) {
		struct topo_nic was = nics[i];

		nics[i].uverbs = nics[i + 2].uverbs;
		nics[i].uverbs_minor = nics[i + 2].uverbs_minor;
		nics[i].rdma_device = nics[i + 2].rdma_device;
		nics[i + 2].uverbs = was.uverbs;
		nics[i + 2].uverbs_minor = was.uverbs_minor;
		nics[i + 2].rdma_device = was.rdma_device;
	}
}

static void assert_numbers(const struct fixture *f, const char *uid, bool second)
{
	_cleanup_free_ char *record = record_text(f, uid), *spec = spec_text(f, uid);

	assert_has(record, second ? "uverbs2" : "uverbs0");
	assert_has(spec, second ? "/dev/infiniband/uverbs2" : "/dev/infiniband/uverbs0");
	assert_has(spec, second ? "\"minor\": 194" : "\"minor\": 192");
	assert_has(spec, second ? "=mlx5_2:1,mlx5_3:1" : "=mlx5_0:1,mlx5_1:1");
}

/* Device nodes and names of RDMA devices come up in another order: the claim gets those of now. */
static void renumbered(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *first = NULL, *marked = NULL, *kept = NULL, *again = NULL;

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	first = record_text(f, UID_A);

	/* a reload of the driver */
	renumber(f);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	assert_numbers(f, UID_A, true);

	/* a reboot: the CDI file must not give away what is another device by now */
	free(change_record(f, UID_A, "bootID", "an-earlier-boot"));
	free(change_record(f, UID_A, "later", "kept"));
	marked = record_text(f, UID_A);
	renumber(f);
	restart(f);
	kept = record_text(f, UID_A);
	assert_string_equal(marked, kept);
	assert_null(spec_text(f, UID_A));
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	assert_numbers(f, UID_A, false);
	again = change_record(f, UID_A, "later", "x"); /* the record before this change */
	assert_has(again, "\"later\": \"kept\"");
	assert_null(strstr(again, "an-earlier-boot"));
	assert_has(again, "\"state\": \"Completed\"");
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_clean(f, UID_A);

	/* it still holds its devices after the reboot */
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	again = (free(again), record_text(f, UID_A));
	assert_string_equal(first, again);
	free(change_record(f, UID_A, "bootID", "an-earlier-boot"));
	f->overlap_wait_us = 50000;
	restart(f);
	api_put("b", UID_B, PAIR0);
	assert_has(prepare(f, "b", UID_B), "is still in use by claim ns/a");
}

/* A device is missing: a pod that may be running keeps what it has, after a reboot it does not. */
static void vanished(void **state)
{
	struct fixture *f = *state;
	char *rdma_device = f->m.inv.nics[0].rdma_device;
	_cleanup_free_ char *before = NULL, *after = NULL, *spec = NULL;

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	before = record_text(f, UID_A);
	f->m.inv.nics[0].rdma_device = NULL;
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	after = record_text(f, UID_A);
	assert_string_equal(before, after);
	assert_numbers(f, UID_A, false);

	free(change_record(f, UID_A, "bootID", "an-earlier-boot"));
	assert_has(prepare(f, "a", UID_A), "has no RDMA device");
	f->m.inv.nics[0].rdma_device = rdma_device;
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	spec = record_text(f, UID_A);
	assert_string_equal(before, spec);
}

/* A record that cannot be written again stays what it was. */
static void renewal_fails(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *before = NULL, *after = NULL, *blocked = NULL;
	_cleanup_free_ char *path = xasprintf("%s/" DRIVER "-" UID_A ".json", f->cdi_dir);

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	before = record_text(f, UID_A);
	renumber(f);
	fsync_error = ENOSPC;
	assert_has(prepare(f, "a", UID_A), "error: cannot write");
	fsync_error = 0;
	after = record_text(f, UID_A);
	assert_string_equal(before, after);
	/* after Started: the CDI file cannot be replaced */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_has(prepare(f, "a", UID_A), "Is a directory");
	blocked = record_text(f, UID_A);
	assert_string_equal(before, blocked);
	assert_int_equal(rmdir(path), 0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	assert_numbers(f, UID_A, true);
}

static void prepare_both(struct fixture *f)
{
	call_init(&f->call);
	call_add(&f->call, "a", UID_A);
	call_add(&f->call, "b", UID_B);
	preparer_prepare(f->p, &f->call);
	run_until(&f->call.finished);
	assert_has(f->call.answers[0], "card card-0000-03-00 ");
	assert_has(f->call.answers[1], "n nic-0001-03-00-0 ");
}

/* A claim that is Completed gets the lists of the whole pod too. */
static void environment_of_kept(void **state)
{
	struct fixture *f = *state;
	static const char both[] = "UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1";

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR1);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	prepare_both(f);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *spec = spec_text(f, i ? UID_B : UID_A);

		assert_has(spec, both);
	}

	/* the pod was read at first and cannot be read later: nothing changes */
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_string_equal(unprepare(f, "b", UID_B), "");
	put_pod("[{\"name\":\"x\"}]", "[{\"name\":\"y\"}]");
	prepare_both(f);
	json_object_del(api_objects, "/api/v1/namespaces/ns/pods/pod");
	prepare_both(f);
	for (int i = 0; i < 2; i++) {
		_cleanup_free_ char *spec = spec_text(f, i ? UID_B : UID_A);

		assert_null(strstr(spec, "UCX_NET_DEVICES"));
	}
}

static void later_version_kept(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *path = xasprintf("%s/claims/" UID_A ".json", f->data_dir);
	_cleanup_free_ char *was = NULL, *kept = NULL;

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	was = record_text(f, UID_A);
	memcpy(strstr(was, "\"version\": 1"), "\"version\": 2", 12);
	put_file(path, "%s", was);
	restart(f);
	assert_has(prepare(f, "a", UID_A), "install the version that wrote it");
	assert_has(unprepare(f, "a", UID_A), "install the version that wrote it");
	kept = record_text(f, UID_A);
	assert_string_equal(was, kept);
	/* its devices are not handed out a second time */
	f->overlap_wait_us = 50000;
	restart(f);
	api_put("b", UID_B, PAIR0);
	assert_has(prepare(f, "b", UID_B), "0000:03:00.0 is still in use by claim ns/a");
}

/* A record that cannot be read: its own claim fails, the agent starts and serves the others. */
static void unreadable_record(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *path = xasprintf("%s/claims/" UID_A ".json", f->data_dir);

	assert_int_equal(mkdir(path, 0700), 0);
	restart(f);
	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, PAIR1);
	assert_has(prepare(f, "b", UID_B), "n nic-0001-03-00-0 ");
	assert_has(prepare(f, "a", UID_A), "error: ");
	assert_has(f->call.answers[0], path);
	assert_has(unprepare(f, "a", UID_A), path);
	assert_int_equal(rmdir(path), 0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
}

/* The record is lost, but its pod may be running: its CDI file stands. */
static void lost_record(void **state)
{
	struct fixture *f = *state;
	_cleanup_free_ char *path = xasprintf("%s/claims/" UID_A ".json", f->data_dir);

	api_put("a", UID_A, CARD0);
	api_put("b", UID_B, CARD0);
	f->overlap_wait_us = 100000;
	for (int i = 0; i < 2; i++) { /* set aside, unreadable */
		assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
		if (i == 0) {
			put_file(path, "{");
		} else {
			assert_int_equal(unlink(path), 0);
			assert_int_equal(mkdir(path, 0700), 0);
		}
		restart(f);
		assert_has(prepare(f, "b", UID_B), "0000:03:00.0 is still in use");
		assert_has(f->call.answers[0], UID_A);
		assert_has(f->call.answers[0], f->cdi_dir);
		assert_clean(f, UID_B);
		if (i == 0) /* it is made again from the claim */
			assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
		else
			assert_int_equal(rmdir(path), 0);
		assert_string_equal(unprepare(f, "a", UID_A), "");
		assert_has(prepare(f, "b", UID_B), "card card-0000-03-00 ");
		assert_string_equal(unprepare(f, "b", UID_B), "");
	}
}

/* Recorded claims are undone after the start only when the API server says that they are gone. */
static void orphans(void **state)
{
	struct fixture *f = *state;
	enum { GONE, OTHER_UID, NOT_ALLOCATED, THERE, AWAY, FORBIDDEN, ROWS };
	static const bool undone[ROWS] = { true, true, true, false, false, false };

	for (int i = 0; i < ROWS; i++) {
		_cleanup_free_ char *left = NULL, *other = NULL;

		api_put("a", UID_A, CARD0);
		api_put("b", UID_B, PAIR1);
		assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
		assert_has(prepare(f, "b", UID_B), "n nic-0001-03-00-0 ");
		if (i == GONE)
			api_delete("a");
		else if (i == OTHER_UID)
			api_put("a", POD_UID, CARD0);
		else if (i == NOT_ALLOCATED)
			api_put_claim("a", json_pack("{s:{s:s,s:s,s:s}}", "metadata", "namespace",
						     "ns", "name", "a", "uid", UID_A));
		else if (i == AWAY)
			api_away = true;
		else if (i == FORBIDDEN)
			api_status = 403;
		f->orphan_grace_us = 10000;
		restart(f);
		run_for(200000);
		left = record_text(f, UID_A);
		other = record_text(f, UID_B);
		if (undone[i] != (left == NULL) || !other)
			fail_msg("row %d", i);
		api_status = 0;
		api_back();
		assert_string_equal(unprepare(f, "a", UID_A), "");
		assert_string_equal(unprepare(f, "b", UID_B), "");
	}
}

/* Kubelet comes back for a claim that is being asked for. */
static void orphan_superseded(void **state)
{
	struct fixture *f = *state;

	api_put("a", UID_A, CARD0);
	assert_string_equal(prepare(f, "a", UID_A), ANSWER_CARD0);
	f->orphan_grace_us = 10000;
	restart(f);
	api_away = true;
	run_for(100000);
	assert_string_equal(unprepare(f, "a", UID_A), "");
	assert_null(api_requests);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(prepare_and_undo),
		TEST(empty_call),
		TEST(refused_claims),
		TEST(nothing_of_ours),
		TEST(overlap_released),
		TEST(overlap_timeout),
		TEST(unprepare_supersedes),
		TEST(given_up),
		TEST(same_function_twice),
		TEST(half_pairs),
		TEST(all_or_nothing),
		TEST(other_content),
		TEST(same_claim_twice),
		TEST(without_api_and_inventory),
		TEST(stop_while_busy),
		TEST(unwritable_cdi),
		TEST(full_disk),
		TEST(environment_of_pod),
		TEST(recovery),
		TEST(renumbered),
		TEST(vanished),
		TEST(renewal_fails),
		TEST(environment_of_kept),
		TEST(later_version_kept),
		TEST(unreadable_record),
		TEST(lost_record),
		TEST(orphans),
		TEST(orphan_superseded),
	};

	/* the refusals are wanted: warnings would only hide what goes wrong */
	log_init(LOG_FORMAT_TEXT, LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The publisher: one write at a time, each chosen by slice_plan_next() from what is there now, so
 * that nothing has to be remembered about a sequence of writes that was interrupted.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "publish/internal.h"

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"

#define DEBOUNCE_US (300 * 1000ULL) /* a wipe is many events */
#define RELIST_US (300 * 1000000ULL)
#define BACKOFF_MIN_US (250 * 1000ULL)
#define BACKOFF_MAX_US (30 * 1000000ULL)
#define FORBIDDEN_RETRY_US (30 * 1000000ULL)

struct publisher {
	struct kube *kube;
	struct publish_options options;
	char *driver, *node_name;
	struct inventory *inv;

	json_t *wanted; /* publish_specs(); NULL: no inventory yet */
	bool no_pf; /* the API server drops counters */
	bool no_lists; /* … or refuses list attributes */
	bool refused; /* it called "wanted" invalid: wait for other content or the next full list */
	bool warned_cards, warned_gpus, warned_changed;

	struct kube_watch *watch;
	bool listed; /* "store" can be relied on */
	struct slice_store store;
	char *node_uid; /* NULL: not known, or to be read again */

	struct kube_request *request; /* the one in flight */
	struct slice_plan plan; /* what it does */
	json_t *target, *sent; /* the slice it changes or NULL; the spec it writes or NULL */
	struct loop_timer *sync_timer, *relist_timer;
	bool sync_due;
	uint64_t hold_until_us; /* back-off */
	unsigned int failures; /* in a row */

	bool in_sync;
	uint64_t since_us; /* when it began not to be */
	unsigned int writes;
	char watch_error[sizeof(((struct err *)0)->msg)];
	char write_error[sizeof(((struct err *)0)->msg)];
};

static void sync_pool(struct publisher *p);

static void schedule(struct publisher *p, uint64_t delay_us)
{
	if (p->sync_due)
		return;
	p->sync_due = true;
	loop_timer_set(p->sync_timer, delay_us);
}

static void on_sync_timer(void *data)
{
	struct publisher *p = data;

	p->sync_due = false;
	sync_pool(p);
}

static void on_relist_timer(void *data)
{
	struct publisher *p = data;

	p->refused = false; /* what the API server checks may have changed: an upgrade, a policy */
	kube_watch_relist(p->watch);
	loop_timer_set(p->relist_timer, RELIST_US);
}

static void out_of_sync(struct publisher *p)
{
	if (p->in_sync) {
		p->in_sync = false;
		p->since_us = clock_us();
		p->writes = 0;
	}
}

/* Log an error once until it becomes another one or goes away. */
static bool is_news(char *last, size_t size, const char *text)
{
	if (strncmp(last, text, size - 1) == 0)
		return false;
	snprintf(last, size, "%s", text);
	return true;
}

/* Only what the watch tells can be trusted from here on. */
static void distrust(struct publisher *p)
{
	p->listed = false;
	kube_watch_relist(p->watch);
}

static void back_off(struct publisher *p, uint64_t at_least_us)
{
	uint64_t delay = BACKOFF_MIN_US << (p->failures < 7 ? p->failures : 7);

	p->failures++;
	if (delay > BACKOFF_MAX_US)
		delay = BACKOFF_MAX_US;
	if (delay < at_least_us)
		delay = at_least_us;
	p->hold_until_us = clock_us() + delay;
}

/* Slices of a Node that was made anew vanish, as their owner has another UID: read it again. */
static void forget_node(struct publisher *p)
{
	free(p->node_uid);
	p->node_uid = NULL;
}

static void on_listed(json_t *items, void *data)
{
	struct publisher *p = data;
	unsigned int changes = store_listed(&p->store, items, clock_us());

	p->listed = true;
	p->watch_error[0] = '\0';
	if (changes & STORE_DOUBTFUL)
		loop_timer_set(p->relist_timer, STORE_GRACE_US);
	if (changes & STORE_LOST)
		forget_node(p);
	sync_pool(p);
}

static void on_changed(const char *type, json_t *object, void *data)
{
	struct publisher *p = data;
	unsigned int changes = store_event(&p->store, type, object);

	if (changes & STORE_LOST)
		forget_node(p);
	if (!p->request)
		strlist_done(&p->store.gone);
	if (changes & STORE_CHANGED)
		schedule(p, DEBOUNCE_US);
}

static void on_watch_failed(const struct err *err, void *data)
{
	struct publisher *p = data;

	if (!is_news(p->watch_error, sizeof(p->watch_error), err->msg))
		return;
	if (err->kind == ERR_PERMANENT)
		log_error("slices cannot be published: the API server refuses to list and watch "
			  "resourceslices; give the driver's ServiceAccount these rights (RBAC)",
			  KV("error", "%s", err->msg));
	else if (err->kind == ERR_NOT_FOUND)
		log_error("slices cannot be published: the cluster does not serve "
			  "resource.k8s.io/v1; Kubernetes 1.34 or newer is needed",
			  KV("error", "%s", err->msg));
	else
		log_warn("slices cannot be watched, trying again", KV("error", "%s", err->msg));
}

static const struct kube_watch_ops watch_ops = {
	.listed = on_listed,
	.changed = on_changed,
	.failed = on_watch_failed,
};

static void set_wanted(struct publisher *p)
{
	struct publish_options options = p->options;
	_cleanup_json_ json_t *wanted = NULL;

	if (p->no_pf)
		options.kinds &= ~(unsigned int)PUBLISH_PF;
	if (p->no_lists)
		options.root_list = options.numa_list = false;
	wanted = publish_specs(p->inv, &options);
	if (p->wanted && json_equal(p->wanted, wanted))
		return;
	json_decref(p->wanted);
	p->wanted = TAKE_PTR(wanted);
	p->refused = false;
	p->failures = 0;
	out_of_sync(p);
}

static bool has_counters(const json_t *spec)
{
	const json_t *device;
	size_t i;

	if (json_array_size(json_object_get(spec, "sharedCounters")))
		return true;
	json_array_foreach(json_object_get(spec, "devices"), i, device)
		if (json_array_size(json_object_get(device, "consumesCounters")))
			return true;
	return false;
}

/*
 * With its feature gate off the API server drops the values of a list, and calls an attribute
 * without value invalid; one that does not know lists does the same.  Its message names then the
 * attribute itself ("attributes[NAME]: "), not what is in it.
 */
static bool lacks_list_values(const char *message, const json_t *sent)
{
	json_t *device, *value;
	const char *key;
	size_t i;

	json_array_foreach(json_object_get(sent, "devices"), i, device)
		json_object_foreach(json_object_get(device, "attributes"), key, value) {
			_cleanup_free_ char *field = xasprintf("attributes[%s]: ", key);

			if ((json_object_get(value, "ints") || json_object_get(value, "strings")) &&
			    strstr(message, field))
				return true;
		}
	return false;
}

static void leave_lists(struct publisher *p, const char *text)
{
	log_error("the API server takes no list attributes (feature gate DRAListTypeAttributes, "
		  "off by default): publishing one value each, as with --pcie-root=auto and "
		  "--numa=scalar; turn the gate on in API server and scheduler and start the "
		  "driver again, or leave these options",
		  KV("error", "%s", text));
	p->no_lists = true;
	set_wanted(p);
}

/* Fields whose feature gate is off are dropped without a word: compare the answer. */
static void check_answer(struct publisher *p, const json_t *answer, const json_t *sent)
{
	const json_t *spec = json_object_get(answer, "spec");

	if (!spec) {
		distrust(p);
		return;
	}
	if (slice_same_content(spec, sent))
		return;
	if (has_counters(sent) && !has_counters(spec)) {
		log_warn(
			"the API server drops shared counters (feature gate "
			"DRAPartitionableDevices, on by default since Kubernetes 1.36): publishing "
			"cards without their functions; start the driver again when it is on",
			KV("slice", "%s", json_path_string(answer, "metadata.name")));
		p->no_pf = true;
		set_wanted(p);
		return;
	}
	if (!p->no_lists && devices_have_lists(json_object_get(sent, "devices")) &&
	    !devices_have_lists(json_object_get(spec, "devices"))) {
		leave_lists(p, "it dropped them");
		return;
	}
	if (!p->warned_changed)
		log_warn("the API server stored something else than it was sent",
			 KV("slice", "%s", json_path_string(answer, "metadata.name")));
	p->warned_changed = true;
}

/* The pool is as wanted: say it once. */
static void report(struct publisher *p)
{
	size_t devices = 0;

	if (p->in_sync)
		return;
	p->in_sync = true;
	for (size_t i = 0; i < json_array_size(p->wanted); i++)
		devices +=
			json_array_size(json_object_get(json_array_get(p->wanted, i), "devices"));
	log_info("slices published", KV("pool", "%s", p->node_name),
		 KV("generation", "%lld", p->plan.generation),
		 KV("slices", "%zu", json_array_size(p->wanted)), KV("devices", "%zu", devices),
		 KV("writes", "%u", p->writes),
		 KV("ms", "%.1f", (double)(clock_us() - p->since_us) / 1000));
}

static void write_failed(struct publisher *p, const struct kube_reply *reply, const json_t *sent)
{
	const struct err *err = &reply->err;
	bool news = is_news(p->write_error, sizeof(p->write_error), err->msg);

	switch (err->kind) {
	case ERR_INVALID:
		if (!p->no_lists && lacks_list_values(err->msg, sent)) {
			leave_lists(p, err->msg);
			return;
		}
		p->refused = true;
		if (news)
			log_error("the API server calls a slice of ours invalid; trying again when "
				  "the hardware changes and every few minutes",
				  KV("error", "%s", err->msg));
		return;
	case ERR_PERMANENT:
		back_off(p, FORBIDDEN_RETRY_US);
		if (news)
			log_error(
				"slices cannot be published: RBAC or an admission policy refuses; "
				"check the ClusterRole of the driver's ServiceAccount and that it "
				"writes slices of its own node only",
				KV("error", "%s", err->msg));
		break;
	case ERR_CONFLICT:
		log_debug("slice changed meanwhile, listing again", KV("error", "%s", err->msg));
		if (p->failures)
			back_off(p, 0);
		else
			p->failures++;
		break;
	default:
		back_off(p, 0);
		if (news)
			log_warn("slices cannot be written, trying again",
				 KV("error", "%s", err->msg));
		break;
	}
	/* Whether it was done is not known, or things are not as we thought. */
	distrust(p);
}

static void on_written(const struct kube_reply *reply, void *data)
{
	struct publisher *p = data;
	_cleanup_json_ json_t *target = TAKE_PTR(p->target), *sent = TAKE_PTR(p->sent);
	const char *uid = json_path_string(target, "metadata.uid");
	bool gone = uid && reply->err.kind == ERR_NOT_FOUND;

	p->request = NULL;
	if (gone || (p->plan.op == SLICE_DELETE && reply->err.code == 0)) {
		store_removed(&p->store, uid);
	} else if (reply->err.code) {
		write_failed(p, reply, sent);
		strlist_done(&p->store.gone);
		sync_pool(p);
		return;
	} else {
		store_wrote(&p->store, reply->body, sent, clock_us());
		check_answer(p, reply->body, sent);
	}
	strlist_done(&p->store.gone);
	p->writes++;
	p->failures = 0;
	p->write_error[0] = '\0';
	sync_pool(p);
}

static void node_failed(struct publisher *p, const struct err *err)
{
	bool news = is_news(p->write_error, sizeof(p->write_error), err->msg);

	back_off(p, err->kind == ERR_PERMANENT ? FORBIDDEN_RETRY_US : 0);
	if (news && (err->kind == ERR_PERMANENT || err->kind == ERR_NOT_FOUND))
		log_error(
			"slices cannot be published: the Node that owns them cannot be read; check "
			"--node-name and the right to get nodes (RBAC)",
			KV("node", "%s", p->node_name), KV("error", "%s", err->msg));
	else if (news)
		log_warn("the Node that owns the slices cannot be read, trying again",
			 KV("node", "%s", p->node_name), KV("error", "%s", err->msg));
}

static void on_node(const struct kube_reply *reply, void *data)
{
	struct publisher *p = data;
	const char *uid = json_path_string(reply->body, "metadata.uid");

	p->request = NULL;
	if (reply->err.code == 0 && uid) {
		free(p->node_uid);
		p->node_uid = xstrdup(uid);
	} else {
		node_failed(p, &reply->err);
	}
	sync_pool(p);
}

static void read_node(struct publisher *p)
{
	_cleanup_free_ char *path = xasprintf("/api/v1/nodes/%s", p->node_name);
	const struct kube_call call = { .method = "GET", .path = path };

	p->request = kube_send(p->kube, &call, on_node, p);
}

static void send_delete(struct publisher *p)
{
	json_t *object = p->store.a[p->plan.stored].object;
	_cleanup_free_ char *path =
		xasprintf(SLICES "/%s", json_path_string(object, "metadata.name"));
	_cleanup_json_ json_t *body = json_new_object();
	json_t *conditions = json_new_object();
	const struct kube_call call = { .method = "DELETE", .path = path, .body = body };

	json_set_string(body, "apiVersion", "v1");
	json_set_string(body, "kind", "DeleteOptions");
	json_set_string(conditions, "uid", json_path_string(object, "metadata.uid"));
	json_set_string(conditions, "resourceVersion",
			json_path_string(object, "metadata.resourceVersion"));
	json_set(body, "preconditions", conditions);
	p->target = json_incref(object);
	p->request = kube_send(p->kube, &call, on_written, p);
}

static void send_spec(struct publisher *p)
{
	json_t *spec = json_array_get(p->wanted, p->plan.index);
	_cleanup_free_ char *path = NULL;
	_cleanup_json_ json_t *body = NULL;
	struct kube_call call = { .method = "POST" };

	if (p->plan.op == SLICE_UPDATE) {
		json_t *object = p->store.a[p->plan.stored].object;

		p->target = json_incref(object);
		call.method = "PUT";
		path = xasprintf(SLICES "/%s", json_path_string(object, "metadata.name"));
		body = slice_updated(object, spec, p->plan.generation);
	} else {
		path = xstrdup(SLICES);
		body = slice_object(&p->options, spec, p->plan.index, p->plan.generation,
				    p->node_uid);
	}
	call.path = path;
	call.body = body;
	p->sent = json_incref(spec);
	p->request = kube_send(p->kube, &call, on_written, p);
}

/* Do the next thing that brings the pool nearer to what is wanted. */
static void sync_pool(struct publisher *p)
{
	uint64_t now = clock_us();

	if (!p->listed || !p->wanted || p->request || p->refused)
		return;
	if (now < p->hold_until_us) {
		schedule(p, p->hold_until_us - now);
		return;
	}
	slice_plan_next(p->store.a, p->store.n, p->wanted, p->node_name, &p->plan);
	if (p->plan.op == SLICE_NOTHING) {
		report(p);
		return;
	}
	out_of_sync(p);
	if (p->plan.op == SLICE_DELETE)
		send_delete(p);
	else if (p->plan.op == SLICE_CREATE && !p->node_uid)
		read_node(p);
	else
		send_spec(p);
}

static void warn_about_gpus(struct publisher *p, const struct inventory *inv)
{
	size_t n = 0;

	for (size_t i = 0; p->options.kinds & PUBLISH_GPU && i < inv->n_gpus; i++)
		n += !publish_can_serve(
			&inv->gpus[i]); /* divided ones have a warning of their own */
	if (n && !p->warned_gpus)
		log_warn("GPUs that are not NVIDIA's are not published: let their vendor's own DRA "
			 "driver hand them out (--gpu=off)",
			 KV("gpus", "%zu", n));
	p->warned_gpus = n > 0;
}

void publisher_set(struct publisher *p, struct inventory *inv)
{
	bool no_pf = publish_effective_kinds(inv, p->options.kinds) != p->options.kinds;

	if (no_pf && !p->warned_cards)
		log_warn("functions of atomic cards are not published: the scheduler cannot search "
			 "cards and functions of more cards than the limit in time",
			 KV("limit", "%d", PUBLISH_PF_MAX_CARDS));
	p->warned_cards = no_pf;
	warn_about_gpus(p, inv);
	inventory_ref(inv);
	inventory_unref(p->inv);
	p->inv = inv;
	set_wanted(p);
	sync_pool(p);
}

int publisher_new(struct loop *loop, struct kube *kube, const struct publish_options *options,
		  struct publisher **ret, struct err *err)
{
	_cleanup_free_ char *query = NULL;
	struct publisher *p;

	if (!is_dns_subdomain(options->driver) || !is_dns_subdomain(options->node_name))
		return err_set(err, ERR_INVALID, EINVAL,
			       "driver name '%.64s' or node name '%.64s' is not a DNS subdomain",
			       options->driver, options->node_name);
	p = xnew(struct publisher);
	p->kube = kube;
	p->driver = xstrdup(options->driver);
	p->node_name = xstrdup(options->node_name);
	p->options = *options;
	p->options.driver = p->driver;
	p->options.node_name = p->node_name;
	p->since_us = clock_us();
	p->sync_timer = loop_timer_new(loop, on_sync_timer, p);
	p->relist_timer = loop_timer_new(loop, on_relist_timer, p);
	loop_timer_set(p->relist_timer, RELIST_US);
	query = xasprintf("fieldSelector=spec.driver%%3D%s%%2Cspec.nodeName%%3D%s", p->driver,
			  p->node_name);
	p->watch = kube_watch_new(kube, SLICES, query, &watch_ops, p);
	*ret = p;
	return 0;
}

struct publisher *publisher_free(struct publisher *p)
{
	if (!p)
		return NULL;
	if (p->request)
		kube_cancel(p->request);
	kube_watch_free(p->watch);
	loop_timer_free(p->sync_timer);
	loop_timer_free(p->relist_timer);
	inventory_unref(p->inv);
	slice_store_done(&p->store);
	json_decref(p->wanted);
	json_decref(p->target);
	json_decref(p->sent);
	free(p->node_uid);
	free(p->driver);
	free(p->node_name);
	free(p);
	return NULL;
}

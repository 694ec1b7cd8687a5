// SPDX-License-Identifier: Apache-2.0
#include "prepare/claim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#define CONFIG_API_VERSION "twinrail.dev/v1"
#define CONFIG_KIND "NicConfig"

char *request_main(const char *request)
{
	return xstrndup(request, (size_t)(strchrnul(request, '/') - request));
}

static bool request_valid(const char *request)
{
	_cleanup_free_ char *main_name = request_main(request);
	const char *slash = strchr(request, '/');

	return is_dns_label(main_name) && (!slash || is_dns_label(slash + 1));
}

/* A string member of at most "max" bytes. */
static int get_string(const json_t *object, const char *key, size_t max, const char **ret,
		      struct err *err)
{
	const char *s = json_string_value(json_object_get(object, key));

	if (!s || !*s || strlen(s) > max)
		return err_set(err, ERR_INVALID, EINVAL,
			       "\"%s\" of the allocation is missing, empty or too long", key);
	*ret = s;
	return 0;
}

json_t *nic_config_to_json(const struct nic_config *config)
{
	json_t *o = json_new_object();

	if (config->half_pair != HALF_PAIR_UNSET)
		json_set_string(o, "halfPairPolicy",
				config->half_pair == HALF_PAIR_ALLOW ? "Allow" : "Refuse");
	return o;
}

static int half_pair_from_json(const json_t *value, enum half_pair_policy *ret, struct err *err)
{
	const char *s = json_string_value(value);

	if (s && streq(s, "Refuse"))
		*ret = HALF_PAIR_REFUSE;
	else if (s && streq(s, "Allow"))
		*ret = HALF_PAIR_ALLOW;
	else
		return err_set(err, ERR_INVALID, EINVAL,
			       "halfPairPolicy is \"%.32s\": use Refuse or Allow", s ? s : "");
	return 0;
}

/* Object iterators of jansson take no const pointer; nothing is changed. */
static json_t *unconst(const json_t *value)
{
	return (json_t *)(uintptr_t)value;
}

int nic_config_from_json(const json_t *object, struct nic_config *ret, struct err *err)
{
	struct nic_config c = { 0 };
	const char *key;
	json_t *value;
	int r;

	if (!json_is_object(object))
		return err_set(err, ERR_INVALID, EINVAL, "the configuration is not an object");
	json_object_foreach(unconst(object), key, value) {
		if (streq(key, "apiVersion") || streq(key, "kind"))
			continue;
		if (!streq(key, "halfPairPolicy"))
			return err_set(err, ERR_INVALID, EINVAL,
				       "unknown field \"%.64s\": known is halfPairPolicy", key);
		r = half_pair_from_json(value, &c.half_pair, err);
		if (r < 0)
			return r;
	}
	*ret = c;
	return 0;
}

static int parse_parameters(const json_t *parameters, struct nic_config *ret, struct err *err)
{
	const char *version = json_string_value(json_object_get(parameters, "apiVersion"));
	const char *kind = json_string_value(json_object_get(parameters, "kind"));
	_cleanup_free_ char *text = parameters ? json_text(parameters) : NULL;

	if (text && strlen(text) > CLAIM_PARAMETERS_MAX)
		return err_set(err, ERR_INVALID, EINVAL, "parameters are longer than %d bytes",
			       CLAIM_PARAMETERS_MAX);
	if (!version || !kind || !streq(version, CONFIG_API_VERSION) || !streq(kind, CONFIG_KIND))
		return err_set(
			err, ERR_INVALID, EINVAL,
			"parameters are \"%.64s\" \"%.64s\": use apiVersion " CONFIG_API_VERSION
			", kind " CONFIG_KIND,
			version ? version : "", kind ? kind : "");
	return nic_config_from_json(parameters, ret, err);
}

/* "requests" of a config: empty, the full reference, or the main name (kubelet-and-api.md 3.6). */
static bool applies(const json_t *requests, const char *request)
{
	_cleanup_free_ char *main_name = request_main(request);
	json_t *value;
	size_t i;

	if (json_array_size(requests) == 0)
		return true;
	json_array_foreach(unconst(requests), i, value) {
		const char *s = json_string_value(value);

		if (s && (streq(s, request) || streq(s, main_name)))
			return true;
	}
	return false;
}

/* One entry of allocation.devices.config, when it has the wanted source. */
static int apply_config(struct claim *c, const json_t *entry, const char *driver,
			const char *wanted_source, struct err *err)
{
	const char *source = json_path_string(entry, "source");
	const char *owner = json_path_string(entry, "opaque.driver");
	const json_t *requests = json_object_get(entry, "requests");
	struct nic_config config;
	int r;

	if (!owner || !streq(owner, driver))
		return 0;
	if (!source || (!streq(source, "FromClass") && !streq(source, "FromClaim")))
		return err_set(err, ERR_INVALID, EINVAL, "unknown source \"%.32s\"",
			       source ? source : "");
	if (!streq(source, wanted_source))
		return 0;
	if (requests &&
	    (!json_is_array(requests) || json_array_size(requests) > CLAIM_REQUESTS_MAX))
		return err_set(err, ERR_INVALID, EINVAL, "\"requests\" is not a list of at most %d",
			       CLAIM_REQUESTS_MAX);
	r = parse_parameters(json_path(entry, "opaque.parameters"), &config, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->n_results; i++)
		if (config.half_pair != HALF_PAIR_UNSET && applies(requests, c->results[i].request))
			c->results[i].config.half_pair = config.half_pair;
	return 0;
}

static int parse_configs(struct claim *c, const json_t *configs, const char *driver,
			 struct err *err)
{
	static const char *const sources[] = { "FromClass", "FromClaim" };
	json_t *entry;
	size_t i;

	if (configs && (!json_is_array(configs) || json_array_size(configs) > CLAIM_CONFIGS_MAX))
		return err_set(err, ERR_INVALID, EINVAL,
			       "the allocation's \"config\" is not a list of at most %d",
			       CLAIM_CONFIGS_MAX);
	for (size_t s = 0; s < ARRAY_SIZE(sources); s++) {
		json_array_foreach(unconst(configs), i, entry) {
			if (apply_config(c, entry, driver, sources[s], err) < 0)
				return err_wrap(err, "opaque config %zu (%s)", i, sources[s]);
		}
	}
	return 0;
}

static int parse_result(struct claim *c, size_t *cap, const json_t *entry, const char *driver,
			struct err *err)
{
	const char *owner, *request, *pool, *device;
	const json_t *share = json_object_get(entry, "shareID");
	struct claim_result *res;

	if (get_string(entry, "driver", 253, &owner, err) < 0)
		return err->code;
	if (!streq(owner, driver))
		return 0;
	if (get_string(entry, "request", 127, &request, err) < 0 ||
	    get_string(entry, "pool", 253, &pool, err) < 0 ||
	    get_string(entry, "device", 253, &device, err) < 0)
		return err->code;
	if (!request_valid(request))
		return err_set(err, ERR_INVALID, EINVAL, "\"%s\" is not a request name", request);
	if (share && (!json_is_string(share) || !is_uid(json_string_value(share))))
		return err_set(err, ERR_INVALID, EINVAL, "\"shareID\" is not a UID");
	res = array_push(c->results, c->n_results, *cap);
	res->request = xstrdup(request);
	res->pool = xstrdup(pool);
	res->device = xstrdup(device);
	res->share_id = xstrdup_null(json_string_value(share));
	res->admin_access = json_is_true(json_object_get(entry, "adminAccess"));
	return 0;
}

static int parse_results(struct claim *c, const json_t *results, const char *driver,
			 struct err *err)
{
	size_t i, cap = 0;
	json_t *entry;

	/* an allocation without devices has no list */
	if (results && (!json_is_array(results) || json_array_size(results) > CLAIM_RESULTS_MAX))
		return err_set(err, ERR_INVALID, EINVAL,
			       "the allocation's \"results\" is not a list of at most %d",
			       CLAIM_RESULTS_MAX);
	json_array_foreach(unconst(results), i, entry) {
		if (parse_result(c, &cap, entry, driver, err) < 0)
			return err_wrap(err, "result %zu", i);
	}
	return 0;
}

static int parse_consumers(struct claim *c, const json_t *consumers, struct err *err)
{
	json_t *entry;
	size_t i;

	if (consumers && !json_is_null(consumers) &&
	    (!json_is_array(consumers) || json_array_size(consumers) > CLAIM_CONSUMERS_MAX))
		return err_set(err, ERR_INVALID, EINVAL,
			       "\"reservedFor\" is not a list of at most %d consumers",
			       CLAIM_CONSUMERS_MAX);
	c->n_consumers = json_array_size(consumers);
	json_array_foreach(unconst(consumers), i, entry) {
		const char *group = json_path_string(entry, "apiGroup");
		const char *resource = json_path_string(entry, "resource");
		const char *name = json_path_string(entry, "name");
		const char *uid = json_path_string(entry, "uid");

		if ((group && *group) || !resource || !streq(resource, "pods") || !name || !uid)
			continue;
		if (!is_dns_subdomain(name) || !is_uid(uid))
			return err_set(err, ERR_INVALID, EINVAL,
				       "entry %zu of \"reservedFor\" names no valid pod", i);
		if (!c->pod_name) {
			c->pod_name = xstrdup(name);
			c->pod_uid = xstrdup(uid);
		}
	}
	return 0;
}

static int parse_identity(struct claim *c, const json_t *object, const char *uid, struct err *err)
{
	const char *namespace = json_path_string(object, "metadata.namespace");
	const char *name = json_path_string(object, "metadata.name");
	const char *have = json_path_string(object, "metadata.uid");

	if (!namespace || !name || !have || !is_dns_label(namespace) || !is_dns_subdomain(name))
		return err_set(err, ERR_INVALID, EINVAL,
			       "the API server's answer is not a ResourceClaim");
	c->namespace = xstrdup(namespace);
	c->name = xstrdup(name);
	c->uid = xstrdup(uid);
	if (!streq(have, uid))
		return err_set(err, ERR_CONFLICT, ESTALE,
			       "it was replaced: kubelet asks for uid %s, the API server has "
			       "%.64s; delete the pod that uses the old one",
			       uid, have);
	return 0;
}

static int parse(struct claim *c, const json_t *object, const char *driver, const char *uid,
		 struct err *err)
{
	const json_t *allocation = json_path(object, "status.allocation");
	int r;

	r = parse_identity(c, object, uid, err);
	if (r < 0)
		return r;
	if (!json_is_object(allocation))
		return err_set(err, ERR_RETRY, EAGAIN,
			       "it is not allocated: the scheduler has to allocate it first");
	r = parse_results(c, json_path(allocation, "devices.results"), driver, err);
	if (r < 0)
		return r;
	r = parse_configs(c, json_path(allocation, "devices.config"), driver, err);
	if (r < 0)
		return r;
	return parse_consumers(c, json_path(object, "status.reservedFor"), err);
}

int claim_parse(const json_t *object, const char *driver, const char *uid, struct claim **ret,
		struct err *err)
{
	_cleanup_(claim_freep) struct claim *c = xnew(struct claim);
	struct err local = { 0 };
	int r;

	r = parse(c, object, driver, uid, &local);
	if (r < 0) {
		if (c->name)
			err_wrap(&local, "claim %s/%s", c->namespace, c->name);
		if (err)
			*err = local;
		return r;
	}
	*ret = TAKE_PTR(c);
	return 0;
}

struct claim *claim_free(struct claim *claim)
{
	if (!claim)
		return NULL;
	for (size_t i = 0; i < claim->n_results; i++) {
		struct claim_result *r = &claim->results[i];

		free(r->request);
		free(r->pool);
		free(r->device);
		free(r->share_id);
	}
	free(claim->results);
	free(claim->namespace);
	free(claim->name);
	free(claim->uid);
	free(claim->pod_name);
	free(claim->pod_uid);
	free(claim);
	return NULL;
}

bool claim_uses_pool(const struct claim *claim, const char *pool)
{
	for (size_t i = 0; i < claim->n_results; i++)
		if (streq(claim->results[i].pool, pool))
			return true;
	return false;
}

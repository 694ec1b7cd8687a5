// SPDX-License-Identifier: Apache-2.0
#include "cmd/topology_options.h"

#include <errno.h>
#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "topo/pattern.h"
#include "topo/prefix.h"

#define LIST_MAX 256
#define DOMAIN_MAX 64 /* of a string attribute (resource.k8s.io/v1) */

const char *const topology_pcie_root_words[] = { "auto", "function", "data-direct", "list", NULL };
const char *const topology_numa_words[] = { "scalar", "list", NULL };

/* An option that is not given and an empty one (a chart's default) are the same. */
static bool is_given(const char *value)
{
	return value && *value;
}

/* Splits a list into "ret" anew. */
static int split(const char *option, const char *value, struct strlist *ret, struct err *err)
{
	strlist_done(ret);
	if (!is_given(value))
		return 0;
	strlist_split(ret, value, ',');
	if (ret->n == 0 || ret->n > LIST_MAX)
		return err_set(err, ERR_INVALID, EINVAL,
			       "%s: \"%.60s\" has %zu elements; give 1 to %d with commas between",
			       option, value, ret->n, LIST_MAX);
	return 0;
}

static int check_patterns(const char *option, const char *value, struct strlist *ret,
			  struct err *err)
{
	int r = split(option, value, ret, err);

	for (size_t i = 0; r == 0 && i < ret->n; i++) {
		r = nic_pattern_check(ret->items[i], err);
		if (r < 0)
			err_wrap(err, "%s", option);
	}
	return r;
}

static int check_addresses(struct topology_options *t, struct err *err)
{
	int r = split("--node-ip", t->node_ip, &t->node_addresses, err);

	for (size_t i = 0; r == 0 && i < t->node_addresses.n; i++) {
		const char *text = t->node_addresses.items[i];
		struct ip_prefix prefix;

		if (strchr(text, '/') || !ip_prefix_parse(text, &prefix))
			r = err_set(err, ERR_INVALID, EINVAL,
				    "--node-ip: \"%.60s\" is no IP address; give those of "
				    "status.hostIPs of the pod",
				    text);
	}
	return r;
}

static int check_domain(const struct topology_options *t, struct err *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";
	const char *id = t->nvlink_domain;

	if (!is_given(id) || (strlen(id) <= DOMAIN_MAX && !id[strspn(id, letters)]))
		return 0;
	return err_set(err, ERR_INVALID, EINVAL,
		       "--nvlink-domain: \"%.80s\" is no domain; give ClusterUUID.CliqueID, as in "
		       "the label nvidia.com/gpu.clique of the node",
		       id);
}

int topology_check(struct topology_options *t, struct err *err)
{
	int r = check_patterns("--nic-include", t->nic_include, &t->include, err);

	if (r == 0)
		r = check_patterns("--nic-exclude", t->nic_exclude, &t->exclude, err);
	if (r == 0)
		r = check_addresses(t, err);
	if (r == 0)
		r = check_domain(t, err);
	return r;
}

int topology_read_platforms(struct topology_options *t, struct err *err)
{
	_cleanup_(platforms_freep) struct platforms *platforms = NULL;
	_cleanup_free_ char *text = NULL;
	size_t len;
	int r;

	if (!is_given(t->platform_file))
		return 0;
	r = file_read(t->platform_file, YAML_MAX_BYTES, &text, &len, &t->platforms_error);
	if (r == 0 && t->platform_text && t->platforms_error.code == 0 &&
	    streq(text, t->platform_text))
		return 0;
	if (r == 0)
		r = platforms_parse(text, len, t->platform_file, &platforms, &t->platforms_error);
	if (r < 0) {
		err_wrap(&t->platforms_error, "--platform-file");
		if (err)
			*err = t->platforms_error;
		return r;
	}
	err_reset(&t->platforms_error);
	platforms_free(t->platforms);
	t->platforms = TAKE_PTR(platforms);
	free(t->platform_text);
	t->platform_text = TAKE_PTR(text);
	return 1;
}

bool topology_load(const char *command, struct topology_options *t)
{
	struct err err = { 0 };

	if (topology_check(t, &err) == 0 && topology_read_platforms(t, &err) >= 0)
		return true;
	fprintf(stderr, "twinrail %s: %s\n", command, err.msg);
	return false;
}

void topology_set(const struct topology_options *t, struct topo_options *to)
{
	to->pcie_root = (enum pcie_root_policy)t->pcie_root;
	to->numa_lists = t->numa == 1;
	to->nvlink_domain = is_given(t->nvlink_domain) ? t->nvlink_domain : NULL;
	to->include = &t->include;
	to->exclude = &t->exclude;
	to->node_addresses = t->node_addresses.n ? &t->node_addresses : NULL;
	to->platforms = t->platforms;
	to->platforms_error = t->platforms_error.code ? t->platforms_error.msg : NULL;
}

void topology_unused_patterns(const struct topo_options *to, const struct inventory *inv,
			      void (*tell)(const char *option, const char *pattern, void *data),
			      void *data)
{
	static const char *const names[] = { "--nic-include", "--nic-exclude" };
	const struct strlist *const lists[] = { to->include, to->exclude };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t k = 0; lists[i] && k < lists[i]->n; k++)
			if (!nic_pattern_fits(lists[i]->items[k], inv))
				tell(names[i], lists[i]->items[k], data);
}

void topology_options_done(struct topology_options *t)
{
	strlist_done(&t->include);
	strlist_done(&t->exclude);
	strlist_done(&t->node_addresses);
	free(t->platform_text);
	t->platform_text = NULL;
	t->platforms = platforms_free(t->platforms);
}

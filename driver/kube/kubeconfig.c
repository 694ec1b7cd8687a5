// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"
#include "kube/internal.h"

/* The kubeconfig that is read: its text for messages, its directory for relative paths. */
struct source {
	const char *path;
	const json_t *root;
	struct err *err;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct source *s, const char *fmt,
							...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	return err_set(s->err, ERR_INVALID, EINVAL, "kubeconfig %s: %s", s->path, text);
}

/* The member "what" of the entry "name" in the list "list". */
static int find_entry(const struct source *s, const char *list, const char *what, const char *name,
		      json_t **ret)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(s->root, list), i, entry) {
		if (!streq_null(json_path_string(entry, "name"), name))
			continue;
		*ret = json_object_get(entry, what);
		if (!json_is_object(*ret))
			return refuse(s, "%s \"%s\" has no \"%s\"", list, name, what);
		return 0;
	}
	return refuse(s, "there is no entry \"%s\" in \"%s\"", name, list);
}

/* A string member; *ret is borrowed, NULL when it is absent or "". */
static int get_string(const struct source *s, const json_t *object, const char *key,
		      const char **ret)
{
	const json_t *v = json_object_get(object, key);

	*ret = json_string_value(v);
	if (v && !json_is_null(v) && !*ret)
		return refuse(s, "\"%s\" must be a string", key);
	if (*ret && !**ret)
		*ret = NULL;
	return 0;
}

/* Paths in a kubeconfig are relative to its directory. */
static char *resolve(const struct source *s, const char *file)
{
	const char *slash = strrchr(s->path, '/');

	if (file[0] == '/' || !slash)
		return xstrdup(file);
	return xasprintf("%.*s/%s", (int)(slash - s->path), s->path, file);
}

/* PEM text from "<key>-data" (base64) or from the file named in "<key>"; NULL when absent. */
static int get_pem(const struct source *s, const json_t *object, const char *key, char **ret)
{
	_cleanup_free_ char *data_key = xasprintf("%s-data", key), *path = NULL, *text = NULL;
	const char *data = NULL, *file = NULL;
	int r;

	r = get_string(s, object, data_key, &data);
	if (r == 0)
		r = get_string(s, object, key, &file);
	if (r < 0)
		return r;
	if (data) {
		text = kube_base64_text(data);
		if (!text)
			return refuse(s, "\"%s\" is not base64 of a text", data_key);
	} else if (file) {
		path = resolve(s, file);
		r = file_read(path, KUBE_SECRET_MAX, &text, NULL, s->err);
		if (r < 0)
			return err_wrap(s->err, "kubeconfig %s: \"%s\"", s->path, key);
	}
	if (text && !strstr(text, "-----BEGIN "))
		return refuse(s, "\"%s\" has no PEM text", data ? data_key : key);
	*ret = TAKE_PTR(text);
	return 0;
}

static int read_cluster(const struct source *s, const json_t *cluster, struct kube_config *c)
{
	const char *server = NULL, *name = NULL;
	bool plain;
	int r;

	r = get_string(s, cluster, "server", &server);
	if (r == 0)
		r = get_string(s, cluster, "tls-server-name", &name);
	if (r < 0)
		return r;
	if (!server)
		return refuse(s, "the cluster has no \"server\"");
	if (json_is_true(json_object_get(cluster, "insecure-skip-tls-verify")))
		return refuse(s, "\"insecure-skip-tls-verify\" is not supported: give "
				 "\"certificate-authority-data\"");
	if (json_object_get(cluster, "proxy-url"))
		return refuse(s, "\"proxy-url\" is not supported: the API server must be reachable "
				 "directly");
	r = kube_check_server(server, &plain, s->err);
	if (r < 0)
		return err_wrap(s->err, "kubeconfig %s", s->path);
	c->server = xstrdup(server);
	c->tls_server_name = xstrdup_null(name);
	r = get_pem(s, cluster, "certificate-authority", &c->ca_data);
	if (r < 0)
		return r;
	if (!c->ca_data && !plain)
		return refuse(s, "the cluster has no \"certificate-authority-data\"; TLS is always "
				 "verified");
	return 0;
}

static int read_user(const struct source *s, const json_t *user, struct kube_config *c)
{
	static const char *const unsupported[] = { "exec", "auth-provider", "username", "as" };
	const char *token = NULL, *file = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++)
		if (json_object_get(user, unsupported[i]))
			return refuse(s,
				      "the user's \"%s\" is not supported: use a token (kubectl "
				      "create token SERVICEACCOUNT) or a client certificate",
				      unsupported[i]);
	r = get_string(s, user, "token", &token);
	if (r == 0)
		r = get_string(s, user, "tokenFile", &file);
	if (r == 0)
		r = get_pem(s, user, "client-certificate", &c->cert_data);
	if (r == 0)
		r = get_pem(s, user, "client-key", &c->key_data);
	if (r < 0)
		return r;
	if (!c->cert_data != !c->key_data)
		return refuse(s, "the user needs both \"client-certificate\" and \"client-key\"");
	c->token = xstrdup_null(token);
	c->token_file = file ? resolve(s, file) : NULL;
	return 0;
}

int kube_config_file(const char *path, struct kube_config *ret, struct err *err)
{
	_cleanup_json_ json_t *root = NULL;
	struct kube_config c = { 0 };
	struct source s = { .path = path, .err = err };
	const char *current = NULL, *cluster_name = NULL, *user_name = NULL;
	json_t *context = NULL, *cluster = NULL, *user = NULL;
	int r = yaml_read(path, &root, err);

	if (r < 0)
		return err_wrap(err, "kubeconfig");
	s.root = root;
	r = get_string(&s, root, "current-context", &current);
	if (r < 0)
		return r;
	if (!current)
		return refuse(&s, "\"current-context\" is not set");
	r = find_entry(&s, "contexts", "context", current, &context);
	if (r == 0)
		r = get_string(&s, context, "cluster", &cluster_name);
	if (r == 0)
		r = get_string(&s, context, "user", &user_name);
	if (r < 0)
		return r;
	if (!cluster_name)
		return refuse(&s, "context \"%s\" names no cluster", current);
	r = find_entry(&s, "clusters", "cluster", cluster_name, &cluster);
	if (r == 0)
		r = read_cluster(&s, cluster, &c);
	if (r == 0 && user_name)
		r = find_entry(&s, "users", "user", user_name, &user);
	if (r == 0 && user_name)
		r = read_user(&s, user, &c);
	if (r < 0) {
		kube_config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "kube/internal.h"

#define PEM "-----BEGIN X-----\n"
#define PEM64 "LS0tLS1CRUdJTiBYLS0tLS0K" /* base64 of PEM */

static char dir[] = "/tmp/twinrail-test-config-XXXXXX";

static char *write_file(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", dir, name);

	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, 0, NULL), 0);
	return path;
}

/* A kubeconfig with these members of its cluster and its user; 0 or a negative errno. */
static int load(const char *cluster, const char *user, struct kube_config *ret, struct err *err)
{
	_cleanup_free_ char *text = xasprintf("apiVersion: v1\n"
					      "kind: Config\n"
					      "current-context: two\n"
					      "clusters:\n"
					      "- name: first\n"
					      "  cluster: {server: https://wrong}\n"
					      "- name: second\n"
					      "  cluster: {%s}\n"
					      "users:\n"
					      "- name: me\n"
					      "  user: {%s}\n"
					      "contexts:\n"
					      "- name: one\n"
					      "  context: {cluster: first, user: me}\n"
					      "- name: two\n"
					      "  context: {cluster: second, user: me}\n",
					      cluster, user);
	_cleanup_free_ char *path = write_file("config", text);

	return kube_config_file(path, ret, err);
}

static void test_file(void **state)
{
	_cleanup_free_ char *ca = write_file("ca.crt", PEM "ca");
	_cleanup_free_ char *cert = write_file("cert", PEM "cert");
	_cleanup_free_ char *key = write_file("key", PEM "key");
	_cleanup_free_ char *token_file = xasprintf("%s/sub/token", dir);
	struct kube_config c = { 0 };
	struct err err = { 0 };

	(void)state;
	/* paths are relative to the kubeconfig; "-data" wins */
	assert_int_equal(load("server: 'https://h:6443', certificate-authority: ca.crt",
			      "client-certificate: cert, client-key: key, tokenFile: sub/token", &c,
			      &err),
			 0);
	assert_string_equal(c.server, "https://h:6443");
	assert_string_equal(c.ca_data, PEM "ca");
	assert_string_equal(c.cert_data, PEM "cert");
	assert_string_equal(c.key_data, PEM "key");
	assert_string_equal(c.token_file, token_file);
	assert_null(c.token);
	assert_null(c.tls_server_name);
	kube_config_done(&c);
	assert_null(c.server);

	assert_int_equal(load("server: 'https://h', certificate-authority: ca.crt, "
			      "certificate-authority-data: " PEM64 ", tls-server-name: other",
			      "token: t, client-certificate-data: " PEM64
			      ", client-key-data: " PEM64,
			      &c, &err),
			 0);
	assert_string_equal(c.ca_data, PEM);
	assert_string_equal(c.cert_data, PEM);
	assert_string_equal(c.token, "t");
	assert_string_equal(c.tls_server_name, "other");
	kube_config_done(&c);

	/* http to this machine needs no CA, and a user may have nothing */
	assert_int_equal(load("server: 'http://127.0.0.1:8001/'", "", &c, &err), 0);
	kube_config_done(&c);
	assert_int_equal(load("server: 'http://[::1]:8001'", "token: ''", &c, &err), 0);
	assert_null(c.token);
	kube_config_done(&c);
	assert_int_equal(load("server: 'http://localhost:8001'", "", &c, &err), 0);
	kube_config_done(&c);
	unlink(ca);
	unlink(cert);
	unlink(key);
}

static void test_refused(void **state)
{
	static const char good[] = "server: 'https://h', certificate-authority-data: " PEM64;
	static const struct {
		const char *cluster, *user, *why;
	} cases[] = {
		{ "server: 'https://h'", "", "no \"certificate-authority-data\"" },
		{ "server: 'http://10.0.0.1:80'", "", "must begin with https://" },
		{ "server: 'http://localhost.example.org'", "", "must begin with https://" },
		{ "server: 'ftp://h'", "", "must begin with https://" },
		{ "server: 'https://user:pw@h'", "", "without user" },
		{ "server: 'https://h/?x=y'", "", "without user and query" },
		{ "server: 'not an address'", "", "is not an address" },
		{ "server: 5", "", "\"server\" must be a string" },
		{ "x: y", "", "no \"server\"" },
		{ "server: 'https://h', insecure-skip-tls-verify: true", "", "insecure-skip" },
		{ "server: 'https://h', proxy-url: 'http://p'", "", "proxy-url" },
		{ "server: 'https://h', certificate-authority-data: '!!'", "", "not base64" },
		{ "server: 'https://h', certificate-authority-data: AAAA", "", "not base64" },
		{ "server: 'https://h', certificate-authority-data: aGVsbG8=", "", "no PEM text" },
		{ "server: 'https://h', certificate-authority: nowhere.crt", "", "nowhere.crt" },
		{ good, "exec: {command: aws}", "\"exec\" is not supported: use a token" },
		{ good, "auth-provider: {name: gcp}", "\"auth-provider\" is not supported" },
		{ good, "username: a, password: b", "\"username\" is not supported" },
		{ good, "as: admin", "\"as\" is not supported" },
		{ good, "client-certificate-data: " PEM64, "both" },
		{ good, "client-key-data: " PEM64, "both" },
		{ good, "token: [a]", "\"token\" must be a string" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kube_config c = { 0 };
		struct err err = { 0 };

		assert_int_not_equal(load(cases[i].cluster, cases[i].user, &c, &err), 0);
		assert_null(c.server);
		if (!strstr(err.msg, cases[i].why) || !strstr(err.msg, "/config"))
			fail_msg("wanted \"%s\" in \"%s\"", cases[i].why, err.msg);
	}
}

static void test_structure(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "a: 1", "\"current-context\" is not set" },
		{ "current-context: [", "not valid YAML: line" },
		{ "[1, 2]", "\"current-context\" is not set" },
		{ "current-context: x", "no entry \"x\" in \"contexts\"" },
		{ "current-context: x\ncontexts: 5", "no entry \"x\" in \"contexts\"" },
		{ "current-context: x\ncontexts: [{name: x}]",
		  "contexts \"x\" has no \"context\"" },
		{ "current-context: x\ncontexts: [{name: x, context: {user: u}}]",
		  "context \"x\" names no cluster" },
		{ "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]",
		  "no entry \"c\" in \"clusters\"" },
		{ "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		  "clusters: [{name: c, cluster: {server: 'http://127.0.0.1'}}]",
		  "no entry \"u\" in \"users\"" },
	};
	struct kube_config c = { 0 };
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *path = write_file("config", cases[i].text);

		assert_true(kube_config_file(path, &c, &err) < 0);
		if (!strstr(err.msg, cases[i].why) || !strstr(err.msg, path))
			fail_msg("wanted \"%s\" in \"%s\"", cases[i].why, err.msg);
	}
	assert_int_equal(kube_config_file("/nowhere/config", &c, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nowhere/config"));
}

static void test_account(void **state)
{
	_cleanup_free_ char *ca = write_file("ca.crt", PEM), *token = write_file("token", "t");
	struct kube_config c = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(kube_config_account(dir, "10.96.0.1", "443", &c, &err), 0);
	assert_string_equal(c.server, "https://10.96.0.1:443");
	assert_string_equal(c.ca_file, ca);
	assert_string_equal(c.token_file, token);
	kube_config_done(&c);
	assert_int_equal(kube_config_account(dir, "fd00::1", "6443", &c, &err), 0);
	assert_string_equal(c.server, "https://[fd00::1]:6443");
	kube_config_done(&c);
	assert_int_equal(kube_config_account(dir, "[fd00::1]", "6443", &c, &err), 0);
	assert_string_equal(c.server, "https://[fd00::1]:6443");
	kube_config_done(&c);

	assert_true(kube_config_account(dir, NULL, "443", &c, &err) < 0);
	assert_non_null(strstr(err.msg, "--kubeconfig"));
	assert_true(kube_config_account(dir, "10.96.0.1", "", &c, &err) < 0);
	assert_true(kube_config_account(dir, "10.96.0.1", "0", &c, &err) < 0);
	assert_true(kube_config_account(dir, "10.96.0.1", "70000", &c, &err) < 0);
	unlink(token);
	assert_int_equal(kube_config_account(dir, "10.96.0.1", "443", &c, &err), -ENOENT);
	assert_non_null(strstr(err.msg, dir));
	unlink(ca);

	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_true(kube_config_in_cluster(&c, &err) < 0);
	assert_null(c.server);
}

static void test_base64(void **state)
{
	static const struct {
		const char *in, *out;
	} good[] = {
		{ "", "" },
		{ "Zg==", "f" },
		{ "Zm8=", "f\x6f" },
		{ "Zm9v", "foo" },
		{ "Zm9vYg==", "foob" },
		{ "Zm9vYmE=", "fooba" },
		{ "Zm9vYmFy", "foobar" },
		{ " Zm9v\nYmFy\r\n", "foobar" },
		{ "+/+/", "\xfb\xff\xbf" },
	};
	static const char *const bad[] = { "Z",	      "Zg",	  "Zg=",      "Zg===",
					   "=",	      "Zg==Zg==", "Zm9v====", "-_-_",
					   "Zm9\x80", "AA==",	  "Zm8=b" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_free_ char *text = kube_base64_text(good[i].in);

		assert_non_null(text);
		assert_string_equal(text, good[i].out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (kube_base64_text(bad[i]))
			fail_msg("\"%s\" was taken", bad[i]);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	_cleanup_free_ char *path = xasprintf("%s/config", dir);

	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_structure), cmocka_unit_test(test_account),
		cmocka_unit_test(test_base64),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

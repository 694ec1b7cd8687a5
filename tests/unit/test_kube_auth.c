// SPDX-License-Identifier: Apache-2.0
#include "unit/kube_client.h"

static void write_text(const char *path, const char *text)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, 0, NULL), 0);
}

static void test_token(void **state)
{
	struct ctx *c = *state;
	_cleanup_free_ char *path = xasprintf("%s/token", dir);
	struct kube_config config = { .server = c->api.url, .token_file = path };

	/* no file yet: a clear error, and no call out of kube_send() */
	new_client(c, &config);
	get(c, NODES "/n1");
	assert_int_equal(c->status, 0);
	assert_int_equal(c->err.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(c->err.msg, path));

	write_text(path, "a b\r\nX-Evil: 1\n");
	get(c, NODES "/n1");
	assert_int_equal(c->err.kind, ERR_INVALID);

	write_text(path, "one\n");
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"set_token\",\"token\":\"one\"}");
	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);

	/* rotated: the 401 makes us look, and nobody else sees it */
	write_text(path, "two\n");
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"set_token\",\"token\":\"two\"}");
	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);

	/* the new one is not better */
	write_text(path, "three\n");
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"set_token\",\"token\":\"zero\"}");
	get(c, NODES "/n1");
	assert_int_equal(c->status, 401);
	assert_int_equal(c->err.kind, ERR_PERMANENT);
	assert_non_null(strstr(c->err.msg, path));

	/* a file that is gone for a while does no harm */
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"set_token\",\"token\":\"three\"}");
	unlink(path);
	c->kube->token_us -= 61 * 1000000ULL;
	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);

	/* an old one is read again without a 401 */
	write_text(path, "four\n");
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"set_token\",\"token\":\"four\"}");
	fakeapi_do(&c->api, "DELETE", "/_log", NULL);
	c->kube->token_us -= 61 * 1000000ULL;
	get(c, NODES "/n1");
	assert_int_equal(c->status, 200);
	{
		json_t *log = fakeapi_call(&c->api, "GET", "/_log", NULL);

		assert_int_equal(json_array_size(log), 1);
		json_decref(log);
	}

	new_client(c, &(struct kube_config){ .server = c->api.url, .token = (char *)"wrong" });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 401);
	fakeapi_do(&c->api, "POST", "/_control", "{\"op\":\"set_token\",\"token\":null}");
	unlink(path);
}

static void test_tls(void **state)
{
	struct ctx *c = *state;
	_cleanup_free_ char *cert = xasprintf("%s/tls.crt", dir),
			    *key = xasprintf("%s/tls.key", dir);
	_cleanup_free_ char *text = NULL;
	char other[] = "/tmp/twinrail-test-ca-XXXXXX";
	_cleanup_free_ char *other_cert = NULL, *other_key = NULL;
	struct fakeapi tls, second;
	struct err err = { 0 };
	struct kube *none;

	assert_non_null(mkdtemp(other));
	other_cert = xasprintf("%s/tls.crt", other);
	other_key = xasprintf("%s/tls.key", other);
	fakeapi_start(&tls, "--tls", dir);
	fakeapi_start(&second, "--tls", other);
	assert_int_equal(kube_new(c->loop, &(struct kube_config){ .server = tls.url }, &none, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, "no CA"));

	new_client(c, &(struct kube_config){ .server = tls.url, .ca_file = cert });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 404);
	for (int i = 0; i < 10; i++)
		get(c, NODES "/n1");

	assert_int_equal(file_read(cert, 65536, &text, NULL, NULL), 0);
	new_client(c, &(struct kube_config){ .server = tls.url, .ca_data = text });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 404);

	/* the name in the certificate is another than the address: wrong, unless we are told */
	new_client(c, &(struct kube_config){ .server = tls.url,
					     .ca_data = text,
					     .tls_server_name = (char *)"localhost" });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 404);
	new_client(c, &(struct kube_config){ .server = tls.url,
					     .ca_data = text,
					     .tls_server_name = (char *)"example.org" });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 0);
	assert_int_equal(c->err.kind, ERR_PERMANENT);

	/* another CA; a CA file that is none; and none of the system's CAs helps */
	new_client(c, &(struct kube_config){ .server = tls.url, .ca_file = other_cert });
	get(c, NODES "/n1");
	assert_int_equal(c->status, 0);
	assert_int_equal(c->err.kind, ERR_PERMANENT);
	assert_int_equal(c->err.code, -EKEYREJECTED);
	assert_non_null(strstr(c->err.msg, "not trusted"));
	new_client(c, &(struct kube_config){ .server = tls.url, .ca_file = (char *)"/nowhere" });
	get(c, NODES "/n1");
	assert_int_equal(c->err.kind, ERR_PERMANENT);

	fakeapi_stop(&tls);
	fakeapi_stop(&second);
	unlink(cert);
	unlink(key);
	unlink(other_cert);
	unlink(other_key);
	rmdir(other);
}

static void test_client_certificate(void **state)
{
	struct ctx *c = *state;
	_cleanup_free_ char *cert = xasprintf("%s/tls.crt", dir);
	_cleanup_free_ char *key = xasprintf("%s/tls.key", dir);
	_cleanup_free_ char *cert_text = NULL, *key_text = NULL;
	struct kube_config config = { 0 };
	struct fakeapi tls;

	fakeapi_start(&tls, "--mtls", dir);
	assert_int_equal(file_read(cert, 65536, &cert_text, NULL, NULL), 0);
	assert_int_equal(file_read(key, 65536, &key_text, NULL, NULL), 0);
	config.server = tls.url;
	config.ca_file = cert;
	new_client(c, &config);
	get(c, NODES "/n1");
	assert_int_equal(c->status, 0);

	config.cert_data = cert_text;
	config.key_data = key_text;
	new_client(c, &config);
	get(c, NODES "/n1");
	assert_int_equal(c->status, 404);

	config.key_data = cert_text; /* not a key */
	new_client(c, &config);
	get(c, NODES "/n1");
	assert_int_equal(c->err.kind, ERR_PERMANENT);
	assert_non_null(strstr(c->err.msg, "client certificate"));
	fakeapi_stop(&tls);
	unlink(cert);
	unlink(key);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_token),
		TEST(test_tls),
		TEST(test_client_certificate),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}

// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "rpc/dra.h"

#define UID "0c2d5e9e-91c4-44c0-8b1c-3f3f4d3b6f10"
#define LONG_NAME "gpu-nic-pairs.production.example.com" /* 36 characters */

static void check(const char *driver, const char *registry, const char *uid, const char *service,
		  const char *registration)
{
	_cleanup_free_ char *dir = xasprintf("/var/lib/kubelet/plugins/%s", driver);
	_cleanup_free_ char *want_s = xasprintf("%s/%s", dir, service);
	_cleanup_free_ char *want_r = xasprintf("%s/%s", registry, registration);
	_cleanup_free_ char *s = NULL, *r = NULL;
	struct err err = { 0 };

	assert_int_equal(dra_socket_paths(driver, dir, registry, uid, &s, &r, &err), 0);
	assert_string_equal(s, want_s);
	assert_string_equal(r, want_r);
}

/* "/r/ddd…", "len" bytes. */
static const char *registry_of(size_t len)
{
	static char dir[128];

	memset(dir, 'd', len);
	memcpy(dir, "/r/", 3);
	dir[len] = '\0';
	return dir;
}

static void test_plain(void **state)
{
	(void)state;
	check("twinrail.dev", "/var/lib/kubelet/plugins_registry", NULL, "dra.sock",
	      "twinrail.dev-reg.sock");
	check("twinrail.dev", "/var/lib/kubelet/plugins_registry", "", "dra.sock",
	      "twinrail.dev-reg.sock");
}

/* Expected names made by RollingUpdateRegistrarSocketFile() of
 * k8s.io/dynamic-resource-allocation/kubeletplugin v0.37.2. */
static void test_rolling(void **state)
{
	const char *kubelet = "/var/lib/kubelet/plugins_registry";
	const char *dra = "dra-" UID ".sock";

	(void)state;
	check("twinrail.dev", kubelet, UID, dra, "twinrail.dev-" UID "-reg.sock");
	check(LONG_NAME, kubelet, UID, dra, LONG_NAME "-tqFP6-v1Ii4-reg.sock");
	check("twinrail.dev", registry_of(48), UID, dra, "twinrail.dev-" UID "-reg.sock");
	check("twinrail.dev", registry_of(50), UID, dra, "twinrail.dev-tqFP6-v1Ii4-reg.sock");
	check("twinrail.dev", registry_of(73), UID, dra, "twinrail.dev-tqFP6-v1Ii4-reg.sock");
	check(LONG_NAME, registry_of(71), UID, dra, "dra-1tQW4ygpEWygHt00nA2_Ig-reg.sock");
}

static void refuse(const char *driver, const char *dir, const char *registry, const char *uid,
		   const char *text)
{
	char *s = NULL, *r = NULL;
	struct err err = { 0 };

	assert_true(dra_socket_paths(driver, dir, registry, uid, &s, &r, &err) < 0);
	assert_int_equal(err.kind, ERR_INVALID);
	if (!strstr(err.msg, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.msg);
	assert_null(s);
	assert_null(r);
}

static void test_refused(void **state)
{
	(void)state;
	refuse(LONG_NAME "a", "/p", "/r", NULL, "37 characters, at most 36");
	refuse("Twinrail", "/p", "/r", NULL, "not a DNS subdomain");
	refuse("a/b", "/p", "/r", NULL, "not a DNS subdomain");
	refuse("twinrail.dev", "p", "/r", NULL, "absolute");
	refuse("twinrail.dev", "/p", "r", NULL, "absolute");
	refuse("twinrail.dev", "/p", "/r", "../x", "pod UID");
	assert_int_equal(dra_driver_name_check(LONG_NAME, NULL), 0);
	assert_int_equal(dra_driver_name_check(LONG_NAME "a", NULL), -ENAMETOOLONG);
	assert_int_equal(dra_driver_name_check("Twinrail", NULL), -EINVAL);
	refuse("twinrail.dev", "/p", registry_of(90), NULL, "112 bytes, at most 107");
	refuse(LONG_NAME, "/p", registry_of(72), UID, "108 bytes, at most 107");
	refuse("twinrail.dev", registry_of(70), "/r", UID, "at most 107");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_rolling),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

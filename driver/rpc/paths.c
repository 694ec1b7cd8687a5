// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "rpc/dra.h"

/* With kubelet's default directories a longer name makes service sockets of more than 107 bytes. */
#define DRIVER_NAME_MAX 36

static bool fits(const char *path)
{
	return strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path);
}

/* RFC 4648 base64url without padding. */
static char *base64url(const uint8_t *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	char *out = xmalloc(len * 4 / 3 + 3), *p = out;
	uint32_t bits = 0;
	unsigned int n = 0;

	for (size_t i = 0; i < len; i++) {
		bits = bits << 8 | data[i];
		for (n += 8; n >= 6; n -= 6)
			*p++ = digits[bits >> (n - 6) & 63];
	}
	if (n)
		*p++ = digits[bits << (6 - n) & 63];
	*p = '\0';
	return out;
}

/* The first "n" bytes of the SHA-256 of "text" as base64url. */
static char *short_hash(const void *text, size_t len, size_t n)
{
	uint8_t sum[SHA256_SIZE];

	sha256(text, len, sum);
	return base64url(sum, n);
}

/* The three candidates of k8s.io/dynamic-resource-allocation/kubeletplugin: the first that fits. */
static char *registration_path(const char *driver, const char *dir, const char *uid)
{
	_cleanup_free_ char *full = xasprintf("%s/%s-%s-reg.sock", dir, driver, uid);
	_cleanup_free_ char *hash = short_hash(uid, strlen(uid), 8);
	_cleanup_free_ char *half = xasprintf("%s/%s-%s-reg.sock", dir, driver, hash);
	_cleanup_free_ char *both_hash = NULL;
	struct buf both = { 0 };

	if (fits(full))
		return TAKE_PTR(full);
	if (fits(half))
		return TAKE_PTR(half);
	buf_add(&both, driver, strlen(driver) + 1);
	buf_str(&both, uid);
	both_hash = short_hash(both.data, both.len, 16);
	buf_done(&both);
	return xasprintf("%s/dra-%s-reg.sock", dir, both_hash);
}

int dra_driver_name_check(const char *name, struct err *err)
{
	if (!is_dns_subdomain(name))
		return err_set(err, ERR_INVALID, EINVAL,
			       "driver name \"%s\" is not a DNS subdomain: use lower-case letters, "
			       "digits, '-' and '.', like twinrail.dev",
			       name);
	if (strlen(name) > DRIVER_NAME_MAX)
		return err_set(err, ERR_INVALID, ENAMETOOLONG,
			       "driver name \"%s\" has %zu characters, at most %d fit into the "
			       "paths of kubelet's sockets: choose a shorter name",
			       name, strlen(name), DRIVER_NAME_MAX);
	return 0;
}

int dra_socket_paths(const char *driver_name, const char *plugin_dir, const char *registry_dir,
		     const char *pod_uid, char **ret_service, char **ret_registration,
		     struct err *err)
{
	_cleanup_free_ char *service = NULL, *registration = NULL;
	bool rolling = pod_uid && *pod_uid;
	int r = dra_driver_name_check(driver_name, err);

	if (r < 0)
		return r;
	if (plugin_dir[0] != '/' || registry_dir[0] != '/')
		return err_set(err, ERR_INVALID, EINVAL,
			       "directories \"%s\" and \"%s\" must be absolute: kubelet opens the "
			       "sockets by the same path",
			       plugin_dir, registry_dir);
	if (rolling && !is_uid(pod_uid))
		return err_set(err, ERR_INVALID, EINVAL,
			       "pod UID \"%.80s\" is not a UID: take it from metadata.uid through "
			       "the downward API",
			       pod_uid);

	if (rolling) {
		service = xasprintf("%s/dra-%s.sock", plugin_dir, pod_uid);
		registration = registration_path(driver_name, registry_dir, pod_uid);
	} else {
		service = xasprintf("%s/dra.sock", plugin_dir);
		registration = xasprintf("%s/%s-reg.sock", registry_dir, driver_name);
	}
	for (int i = 0; i < 2; i++) {
		const char *path = i == 0 ? service : registration;

		if (!fits(path))
			return err_set(err, ERR_INVALID, ENAMETOOLONG,
				       "socket path %s of driver \"%s\" has %zu bytes, at most 107 "
				       "are possible: choose a shorter driver name or directory",
				       path, driver_name, strlen(path));
	}
	*ret_service = TAKE_PTR(service);
	*ret_registration = TAKE_PTR(registration);
	return 0;
}

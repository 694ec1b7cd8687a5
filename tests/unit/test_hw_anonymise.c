// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hw/anonymise.h"
#include "hw/anonymise_map.h"
#include "hw/vpd.h"

/* What the content of the file "path" becomes; malloc'ed. */
static char *value(struct anonymiser *a, const char *path, const char *data)
{
	struct buf b = { 0 };

	anonymise_value(a, path, data, strlen(data), &b);
	return buf_take(&b);
}

static char *text(struct anonymiser *a, const char *data)
{
	return anonymise_text(a, data);
}

static int setup(void **state)
{
	*state = anonymiser_new("test");
	return 0;
}

static int teardown(void **state)
{
	anonymiser_free(*state);
	return 0;
}

/* Is "text" like "pattern"?  "*" is any character; the text differs from what "was" there. */
static void assert_like(const char *text, const char *pattern, const char *was)
{
	size_t n = strlen(pattern);
	bool like = strlen(text) == n && !streq(text, was);

	for (size_t i = 0; like && i < n; i++)
		like = pattern[i] == '*' || pattern[i] == text[i];
	if (!like)
		fail_msg("\"%s\" instead of \"%s\"", text, pattern);
}

static void assert_same(struct anonymiser *a, const char *data)
{
	_cleanup_free_ char *out = text(a, data);

	assert_string_equal(out, data);
}

/* Bus addresses, versions, numbers and words identify nothing. */
static void test_stays(void **state)
{
	static const char *const texts[] = {
		"sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/net/enp3s0f0np0",
		"sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/VMBUS:00",
		"../../../10000:e1:00.0",
		"0x15b3",
		"40.46.7004",
		"1.2.3.4", /* a version, in sysfs */
		"580.65.06",
		"6.1.0-57-amd64",
		"MT_0000001513",
		"400 Gb/sec (4X NDR)",
		"4: ACTIVE",
		"231:192",
		"00:11:22:33:44:55:66",
		"xfe80::1",
		"fe80::1x",
		"00:00:00:00:00:00",
		"ff:ff:ff:ff:ff:ff",
		"0000:0000:0000:0000",
		"0000:0000:0000:0000:0000:0000:0000:0000",
		"00000000-0000-0000-0000-000000000000",
		"::",
		"::1",
		"GPU-\?\?\?\?\?\?\?\?-\?\?\?\?", /* until the GPU was used */
		"123456789012",
		"0123456789abcdef",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_same(*state, texts[i]);
}

static void test_mac(void **state)
{
	_cleanup_free_ char *mac = text(*state, "a0:88:c2:01:02:03\n");
	_cleanup_free_ char *upper = text(*state, "A0:88:C2:01:02:03\n");
	_cleanup_free_ char *name = text(*state, "../net/enxa088c2010203/x");
	_cleanup_free_ char *other = text(*state, "a088c2010204");
	_cleanup_free_ char *multicast = text(*state, "33:33:ff:01:02:03");
	_cleanup_free_ char *digits = xstrdup("");

	assert_like(mac, "02:**:**:**:**:**\n", "a0:88:c2:01:02:03\n");
	for (char *p = upper; *p; p++)
		if (*p >= 'A' && *p <= 'F')
			*p = (char)(*p - 'A' + 'a');
	assert_string_equal(upper, mac);
	/* In a name, once it was seen; other digits are no MAC address. */
	free(digits);
	digits = xasprintf("../net/enx%.2s%.2s%.2s%.2s%.2s%.2s/x", mac, mac + 3, mac + 6, mac + 9,
			   mac + 12, mac + 15);
	assert_string_equal(name, digits);
	assert_string_equal(other, "a088c2010204");
	assert_like(multicast, "33:33:**:**:**:**", "33:33:ff:01:02:03");
}

static void parse(const char *gid, uint8_t *bytes)
{
	_cleanup_free_ char *line = xstrdup(gid);

	assert_int_equal(inet_pton(strchr(gid, ':') ? AF_INET6 : AF_INET, str_rstrip(line), bytes),
			 1);
}

/* EUI-64 with the bit turned, and the vendors' 0300: both follow the MAC address. */
static void test_guid_of_mac(void **state)
{
	_cleanup_free_ char *gid = text(*state, "fe80:0000:0000:0000:a288:c2ff:fe01:0203");
	_cleanup_free_ char *guid = text(*state, "a088:c203:0001:0203");
	_cleanup_free_ char *global = text(*state, "2001:db8::a288:c2ff:fe01:203");
	_cleanup_free_ char *mac = text(*state, "a0:88:c2:01:02:03");
	uint8_t b[16], m[6], g[16];

	sscanf(mac, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx", &m[0], &m[1], &m[2], &m[3], &m[4],
	       &m[5]);
	parse(gid, b);
	assert_like(gid, "fe80:0000:0000:0000:****:**ff:fe**:****", "");
	assert_memory_equal(b + 8,
			    ((uint8_t[]){ m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5] }), 8);
	assert_int_equal(sscanf(guid, "%2hhx%2hhx:%2hhx%2hhx:%2hhx%2hhx:%2hhx%2hhx", &g[0], &g[1],
				&g[2], &g[3], &g[4], &g[5], &g[6], &g[7]),
			 8);
	assert_memory_equal(g, ((uint8_t[]){ m[0], m[1], m[2], 0x03, 0, m[3], m[4], m[5] }), 8);
	parse(global, g);
	assert_memory_equal(g + 8, b + 8, 8);
}

/* The GID of an InfiniBand port ends in the port's GUID, in any subnet. */
static void test_gid_of_guid(void **state)
{
	_cleanup_free_ char *guid = text(*state, "1234:5678:9abc:def0");
	_cleanup_free_ char *local = text(*state, "fe80:0000:0000:0000:1234:5678:9abc:def0");
	_cleanup_free_ char *subnet = text(*state, "fec0:0000:0000:0007:1234:5678:9abc:def0");
	_cleanup_free_ char *ipoib =
		text(*state, "80:00:02:08:fe:80:00:00:00:00:00:00:12:34:56:78:9a:bc:de:f0");
	_cleanup_free_ char *plain = text(*state, "x123456789abcdef0");
	_cleanup_free_ char *swapped = text(*state, "f0debc9a78563412");
	_cleanup_free_ char *eight = text(*state, "12:34:56:78:9a:bc:de:f0");
	uint8_t b[8];

	assert_like(guid, "****:****:****:****", "1234:5678:9abc:def0");
	assert_string_equal(local + 20, guid);
	assert_like(subnet, "fe**:****:****:****:****:****:****:****", "");
	assert_string_equal(subnet + 20, guid);
	assert_int_equal(sscanf(guid, "%2hhx%2hhx:%2hhx%2hhx:%2hhx%2hhx:%2hhx%2hhx", &b[0], &b[1],
				&b[2], &b[3], &b[4], &b[5], &b[6], &b[7]),
			 8);
	for (size_t i = 0; i < 8; i++) {
		_cleanup_free_ char *byte = xasprintf("%02x", b[i]);

		assert_memory_equal(ipoib + 36 + 3 * i, byte, 2);
		assert_memory_equal(plain + 1 + 2 * i, byte, 2);
		assert_memory_equal(swapped + 14 - 2 * i, byte, 2);
		assert_memory_equal(eight + 3 * i, byte, 2);
	}
	assert_memory_equal(ipoib, "80:00:02:08:fe:80:00", 20);
}

static unsigned int shared_bits(const uint8_t *a, const uint8_t *b, unsigned int size)
{
	for (unsigned int i = 0; i < 8 * size; i++)
		if ((a[i / 8] ^ b[i / 8]) & 0x80 >> i % 8)
			return i;
	return 8 * size;
}

/* Two addresses share as many bits as they did; each stays in its block. */
static void check_pairs(struct anonymiser *a, const char *const *addresses, size_t n,
			unsigned int size)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			uint8_t x[16], y[16], mx[16], my[16];

			parse(addresses[i], x);
			parse(addresses[k], y);
			memcpy(mx, x, size);
			memcpy(my, y, size);
			map_ip(a, mx, size, 8 * size);
			map_ip(a, my, size, 8 * size);
			if (shared_bits(x, y, size) != shared_bits(mx, my, size))
				fail_msg("%s and %s share another prefix", addresses[i],
					 addresses[k]);
		}
	}
}

static void test_prefixes(void **state)
{
	static const char *const v4[] = { "10.1.0.5",	   "10.1.0.6",	    "10.1.7.255",
					  "10.1.8.1",	   "10.200.0.1",    "11.0.0.1",
					  "192.168.128.1", "192.168.129.1", "192.169.0.1",
					  "172.16.0.1",	   "172.31.255.1",  "172.32.0.1",
					  "100.64.0.1",	   "8.8.8.8",	    "203.0.113.9" };
	static const char *const v6[] = { "fd20:0:0:3::1", "fd20:0:0:3::2",   "fd20:0:0:4::1",
					  "fd21::1",	   "fc00::1",	      "2001:db8::1",
					  "2001:db8:1::1", "2600:1f00::1234", "3fff::1" };

	check_pairs(*state, v4, ARRAY_SIZE(v4), 4);
	check_pairs(*state, v6, ARRAY_SIZE(v6), 16);
}

/* The start of what an address becomes. */
static void test_scopes(void **state)
{
	static const struct {
		const char *address;
		uint8_t first, mask, second, second_mask;
	} v4[] = {
		{ "10.9.8.7", 10, 0xff, 0, 0 },
		{ "100.64.1.2", 100, 0xff, 64, 0xc0 },
		{ "169.254.3.4", 169, 0xff, 254, 0xff },
		{ "172.20.3.4", 172, 0xff, 16, 0xf0 },
		{ "192.168.3.4", 192, 0xff, 168, 0xff },
		{ "239.1.2.3", 0xe0, 0xf0, 0, 0 },
		{ "127.1.2.3", 127, 0xff, 1, 0xff },
		{ "255.255.255.255", 255, 0xff, 255, 0xff },
	}, v6[] = {
		{ "fd00:1::5", 0xfd, 0xff, 0, 0 }, { "fc00:1::5", 0xfc, 0xff, 0, 0 },
		{ "fe80::5", 0xfe, 0xff, 0x80, 0xff }, { "2600::5", 0x20, 0xe0, 0, 0 },
		{ "ff02::1", 0xff, 0xff, 2, 0xff },
	};

	for (size_t i = 0; i < ARRAY_SIZE(v4); i++) {
		uint8_t b[16];

		parse(v4[i].address, b);
		map_ip(*state, b, 4, 32);
		assert_int_equal(b[0] & v4[i].mask, v4[i].first);
		assert_int_equal(b[1] & v4[i].second_mask, v4[i].second);
	}
	for (size_t i = 0; i < ARRAY_SIZE(v6); i++) {
		uint8_t b[16];

		parse(v6[i].address, b);
		map_ip(*state, b, 16, 128);
		assert_int_equal(b[0] & v6[i].mask, v6[i].first);
		assert_int_equal(b[1] & v6[i].second_mask, v6[i].second);
	}
}

/* Public addresses never become private or special ones, whatever the key. */
static void test_public_stays_public(void **state)
{
	(void)state;
	for (unsigned int seed = 0; seed < 50; seed++) {
		_cleanup_free_ char *name = xasprintf("%u", seed);
		struct anonymiser *a = anonymiser_new(name);

		for (unsigned int i = 0; i < 256; i++) {
			uint8_t b[4] = { (uint8_t)i, 168, (uint8_t)seed, 1 }, before[4];
			bool special = i == 0 || i == 10 || i == 127 || i == 192 || i >= 224;
			bool was;

			memcpy(before, b, 4);
			map_ip(a, b, 4, 32);
			was = b[0] == 0 || b[0] == 10 || b[0] == 127 || b[0] >= 224 ||
			      (b[0] == 192 && b[1] == 168) || (b[0] == 169 && b[1] == 254) ||
			      (b[0] == 172 && b[1] >> 4 == 1) || (b[0] == 100 && b[1] >> 6 == 1);
			if (was != special)
				fail_msg("%u.168.%u.1 became %u.%u", i, seed, b[0], b[1]);
		}
		anonymiser_free(a);
	}
}

static void test_ip_texts(void **state)
{
	struct anonymiser *a = *state;
	_cleanup_free_ char *host =
		value(a, "twinrail/addresses", "eth0 10.1.0.0/24 scope global\n");
	_cleanup_free_ char *route =
		value(a, "twinrail/routes",
		      "default via 10.1.0.0 dev eth0 metric 100\n10.1.0.0/24 dev eth0\n"
		      "10.0.0.0/8 dev a\n::/0 dev b\n0.0.0.0/0 dev c\nfe80::/64 dev d\n");
	_cleanup_free_ char *gid = text(a, "0000:0000:0000:0000:0000:ffff:0a01:0000");
	_cleanup_free_ char *mapped = text(a, "::ffff:10.1.0.0"), *fact = NULL;
	_cleanup_free_ char *neighbour = value(
		a, "twinrail/neighbours", "10.1.0.0 dev eth0 lladdr a0:88:c2:01:02:03 PERMANENT\n");
	unsigned int ip[4], net[4], hex[2];

	assert_int_equal(sscanf(host, "eth0 10.%u.%u.%u/24 scope global\n", &ip[1], &ip[2], &ip[3]),
			 3);
	fact = xasprintf("default via 10.%u.%u.%u dev eth0 metric 100\n", ip[1], ip[2], ip[3]);
	assert_memory_equal(route, fact, strlen(fact));
	assert_int_equal(sscanf(route + strlen(fact), "10.%u.%u.%u/24", &net[1], &net[2], &net[3]),
			 3);
	/* The subnet has the address in it, and no bits behind its prefix. */
	assert_int_equal(net[1], ip[1]);
	assert_int_equal(net[2], ip[2]);
	assert_int_equal(net[3], 0);
	assert_int_not_equal(ip[3], 0);
	assert_non_null(strstr(route, "\n10.0.0.0/8 dev a\n::/0 dev b\n0.0.0.0/0 dev c\n"
				      "fe80::/64 dev d\n"));
	assert_int_equal(sscanf(gid, "0000:0000:0000:0000:0000:ffff:%4x:%4x", &hex[0], &hex[1]), 2);
	assert_int_equal(hex[0] << 16 | hex[1], 10U << 24 | ip[1] << 16 | ip[2] << 8 | ip[3]);
	free(fact);
	fact = xasprintf("::ffff:10.%u.%u.%u", ip[1], ip[2], ip[3]);
	assert_string_equal(mapped, fact);
	assert_memory_equal(neighbour, fact + 7, strlen(fact) - 7);
	assert_non_null(strstr(neighbour, " dev eth0 lladdr 02:"));
	assert_null(strstr(neighbour, "a0:88"));
}

static void test_uuid(void **state)
{
	_cleanup_free_ char *gpu =
		text(*state, "GPU UUID: \t GPU-5d9f84df-5085-4b3b-925d-77f992a54a57\n");
	_cleanup_free_ char *again = text(*state, "5d9f84df-5085-4b3b-925d-77f992a54a57");
	_cleanup_free_ char *plain = text(*state, "5d9f84df50854b3b925d77f992a54a57");
	_cleanup_free_ char *path =
		text(*state, "VMBUS:00/5d9f84df-5085-4b3b-925d-77f992a54a57/pci0101:00");
	_cleanup_free_ char *more = text(*state, "5d9f84df-5085-4b3b-925d-77f992a54a578");

	assert_like(gpu, "GPU UUID: \t GPU-********-****-4***-****-************\n",
		    "GPU UUID: \t GPU-5d9f84df-5085-4b3b-925d-77f992a54a57\n");
	assert_memory_equal(gpu + 16, again, 36);
	assert_memory_equal(path + 9, again, 36);
	assert_string_equal(path + 45, "/pci0101:00");
	assert_memory_equal(plain, again, 8);
	assert_memory_equal(plain + 20, again + 24, 12);
	assert_string_equal(more, "5d9f84df-5085-4b3b-925d-77f992a54a578");
}

static void test_named_files(void **state)
{
	struct anonymiser *a = *state;
	_cleanup_free_ char *serial = value(a, "sys/a/serial_number", "PCB-12ab \n");
	_cleanup_free_ char *host = value(a, "proc/sys/kernel/hostname", "gpu-node-17\n");
	_cleanup_free_ char *unique = value(a, "sys/a/unique_id", "1a2b3c4d5e6f7081\n");
	_cleanup_free_ char *kfd = value(a, "sys/n/properties",
					 "cpu_cores_count 0\nunique_id 1885667171979194497\nx 1");
	_cleanup_free_ char *none = value(a, "sys/a/unique_id", "0\n");
	_cleanup_free_ char *word = value(a, "sys/a/unique_id", "xyz1\n");
	_cleanup_free_ char *expected = NULL;

	assert_like(serial, "***-**** \n", "PCB-12ab \n");
	assert_true(serial[4] >= '0' && serial[4] <= '9' && serial[7] >= 'a');
	assert_like(host, "***-****-**\n", "gpu-node-17\n");
	/* The same number in both. */
	assert_like(unique, "****************\n", "1a2b3c4d5e6f7081\n");
	expected = xasprintf("cpu_cores_count 0\nunique_id %llu\nx 1", strtoull(unique, NULL, 16));
	assert_string_equal(kfd, expected);
	assert_string_equal(none, "0\n");
	assert_like(word, "****\n", "xyz1\n");
}

/* mlx5 gives the system image GUID with the last byte first. */
static void test_switch_id(void **state)
{
	struct anonymiser *a = *state;
	_cleanup_free_ char *early = value(a, "sys/a/phys_switch_id", "0302010003c288a0\n");
	_cleanup_free_ char *guid = text(a, "a088:c203:0001:0203");
	_cleanup_free_ char *late = value(a, "sys/a/phys_switch_id", "0302010003c288a0\n");
	_cleanup_free_ char *mac = value(a, "sys/a/phys_port_id", "a088c2010203\n");
	_cleanup_free_ char *odd = value(a, "sys/a/phys_switch_id", "0123456789abcdef01\n");
	unsigned int b[8];

	assert_string_equal(early, late);
	assert_int_equal(sscanf(guid, "%2x%2x:%2x%2x:%2x%2x:%2x%2x", &b[0], &b[1], &b[2], &b[3],
				&b[4], &b[5], &b[6], &b[7]),
			 8);
	for (size_t i = 0; i < 8; i++) {
		_cleanup_free_ char *byte = xasprintf("%02x", b[7 - i]);

		assert_memory_equal(late + 2 * i, byte, 2);
	}
	assert_like(mac, "02**********\n", "a088c2010203\n");
	assert_like(odd, "******************\n", "0123456789abcdef01\n");
}

static void vpd(struct anonymiser *a, const char *in, size_t len, char *out)
{
	struct buf b = { 0 };

	anonymise_value(a, "sys/devices/x/vpd", in, len, &b);
	assert_int_equal(b.len, len);
	memcpy(out, b.data, len);
	buf_done(&b);
}

static void test_vpd(void **state)
{
	static const char in[] = "\x82\x04\0Card\x90\x3d\0"
				 "PN\x06MCX-75"
				 "SN\x09MT2242X27"
				 "V3\x10"
				 "ec1f3ab59f12ed1a"
				 "VA\x0eMLX:MN=MLNX:CS"
				 "RV\x01\x5a"
				 "\x91\x06\0YA\x03T-1\x78trailer";
	static const char bad[] = "\x90\x0a\0SN\x20"
				  "12345678";
	static const char binary[] = "\x90\x06\0SN\x03\x01"
				     "ab\x78";
	char out[sizeof(in)], again[sizeof(in)], valid[sizeof(in)];
	uint8_t sum = 0;

	vpd(*state, in, sizeof(in) - 1, out);
	out[sizeof(in) - 1] = '\0';
	assert_memory_equal(out, in, 19); /* name and part number */
	assert_memory_equal(out + 19, "SN\x09", 3);
	assert_memory_not_equal(out + 22, in + 22, 9);
	assert_true(out[22] >= 'A' && out[22] <= 'Z' && out[24] >= '0' && out[24] <= '9');
	assert_memory_equal(out + 31, "V3\x10", 3);
	assert_memory_not_equal(out + 34, in + 34, 16);
	assert_int_equal(strspn(out + 34, "0123456789abcdef"), 16);
	assert_memory_equal(out + 50, in + 50, 21); /* VA, and a checksum that was wrong */
	assert_memory_equal(out + 71, "\x91\x06", 2);
	assert_memory_not_equal(out + 77, "T-1", 3);
	assert_int_equal(out[78], '-');
	assert_memory_equal(out + 80, "\x78\xff\xff\xff\xff\xff\xff\xff", 8);
	vpd(*state, in, sizeof(in) - 1, again);
	assert_memory_equal(out, again, sizeof(in) - 1);
	/* A valid checksum stays valid. */
	memcpy(valid, in, sizeof(in));
	for (size_t i = 0; i < 70; i++)
		sum = (uint8_t)(sum + (uint8_t)in[i]);
	valid[70] = (char)-sum;
	vpd(*state, valid, sizeof(in) - 1, again);
	sum = 0;
	for (size_t i = 0; i < 71; i++)
		sum = (uint8_t)(sum + (uint8_t)again[i]);
	assert_int_equal(sum, 0);
	/* Broken stays broken, and nothing of it is kept. */
	vpd(*state, bad, sizeof(bad) - 1, out);
	assert_memory_equal(out, "\x90\x0a\0SN\x20\xff\xff\xff\xff\xff\xff\xff", 13);
	vpd(*state, binary, sizeof(binary) - 1, out);
	assert_memory_equal(out, "\x90\x06\0SN\x03\xff\xff\xff\x78", 10);
}

static unsigned int next_random(unsigned int *state)
{
	*state = *state * 1103515245 + 12345; /* any series does */
	return *state >> 16;
}

/* Whatever the bytes are: what can be parsed still can, with as many keywords, and else not. */
static void test_vpd_like_before(void **state)
{
	static const char good[] = "\x82\x04\0Card\x90\x1d\0"
				   "SN\x04"
				   "AB12"
				   "V3\x08"
				   "ec1f3ab5"
				   "SN\x05"
				   "AB12 RV\0"
				   "\x78\x91\x06\0YA\x03T-1\x78";
	unsigned int random = 1, parsed = 0;

	for (int i = 0; i < 20000; i++) {
		char in[sizeof(good)], out[sizeof(good)];
		size_t len = sizeof(good) - 1 - next_random(&random) % 4;
		struct vpd before = { 0 }, after = { 0 };
		int r;

		memcpy(in, good, sizeof(good));
		for (unsigned int k = next_random(&random) % 3; k > 0; k--)
			in[next_random(&random) % len] = (char)next_random(&random);
		vpd(*state, in, len, out);
		r = vpd_parse(in, len, &before);
		parsed += r == 0;
		assert_int_equal(vpd_parse(out, len, &after), r);
		assert_int_equal(before.sn ? strlen(before.sn) : 0,
				 after.sn ? strlen(after.sn) : 0);
		assert_int_equal(before.v3 ? strlen(before.v3) : 0,
				 after.v3 ? strlen(after.v3) : 0);
		vpd_done(&before);
		vpd_done(&after);
	}
	assert_in_range(parsed, 5000, 19000);
}

/* A Device Serial Number is the EUI-64 of the card. */
static void test_config(void **state)
{
	char in[0x120] = { 0 }, *out;
	/* 0x100: AER, next at 0x10c; there the serial number, next at 0x100 */
	static const uint8_t caps[] = { 0x01, 0x00, 0xc1, 0x10, 0,    0,    0,	  0,
					0,    0,    0,	  0,	0x03, 0x00, 0x01, 0x10,
					0x03, 0x02, 0x01, 0x00, 0x03, 0xc2, 0x88, 0xa0 };
	_cleanup_free_ char *guid = text(*state, "a088:c203:0001:0203");
	struct buf b = { 0 };
	unsigned int g[8];

	memcpy(in + 0x100, caps, sizeof(caps));
	anonymise_value(*state, "sys/devices/x/config", in, sizeof(in), &b);
	assert_int_equal(b.len, sizeof(in));
	out = b.data;
	assert_memory_equal(out, in, 0x110);
	assert_int_equal(sscanf(guid, "%2x%2x:%2x%2x:%2x%2x:%2x%2x", &g[0], &g[1], &g[2], &g[3],
				&g[4], &g[5], &g[6], &g[7]),
			 8);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal((uint8_t)out[0x110 + i], g[7 - i]);
	assert_memory_equal(out + 0x118, in + 0x118, 8);
	buf_done(&b);
	/* Lists that run in a circle or out of the space. */
	memcpy(in + 0x10c, "\x01\0\x01\x10", 4);
	anonymise_value(*state, "config", in, sizeof(in), &b);
	assert_memory_equal(b.data, in, sizeof(in));
	buf_done(&b);
	memset(in, 0xff, sizeof(in));
	anonymise_value(*state, "config", in, sizeof(in), &b);
	anonymise_value(*state, "config", in, 64, &b);
	anonymise_value(*state, "config", "", 0, &b);
	assert_int_equal(b.len, sizeof(in) + 64);
	buf_done(&b);
}

/* A file with zero bytes is text between them. */
static void test_binary(void **state)
{
	static const char in[] = "x\0a0:88:c2:01:02:03\0\0y";
	struct buf b = { 0 };

	anonymise_value(*state, "sys/x", in, sizeof(in) - 1, &b);
	assert_int_equal(b.len, sizeof(in) - 1);
	assert_memory_equal(b.data,
			    "x\0"
			    "02:",
			    5);
	assert_memory_equal(b.data + 19, "\0\0y", 3);
	buf_done(&b);
}

/* Other keys give other values; serial numbers of which there are few stay different. */
static void test_keys(void **state)
{
	struct anonymiser *a = anonymiser_new(NULL), *b = anonymiser_new(NULL);
	_cleanup_free_ char *x = text(a, "a0:88:c2:01:02:03"), *y = text(b, "a0:88:c2:01:02:03");
	_cleanup_free_ char *again = text(a, "a0:88:c2:01:02:03");
	struct strlist seen = { 0 };

	(void)state;
	assert_string_equal(x, again);
	assert_string_not_equal(x, y);
	for (int i = 0; i < 100; i++) {
		_cleanup_free_ char *serial = xasprintf("%c%d", 'A' + i / 10, i % 10), *out = NULL;

		out = value(a, "serial_number", serial);
		assert_string_not_equal(out, serial);
		assert_false(strlist_has(&seen, out));
		strlist_add(&seen, out);
	}
	strlist_done(&seen);
	anonymiser_free(a);
	anonymiser_free(b);
	assert_null(anonymiser_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guid_of_mac, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gid_of_guid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prefixes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scopes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_public_stays_public, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ip_texts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uuid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_switch_id, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vpd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_vpd_like_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_binary, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

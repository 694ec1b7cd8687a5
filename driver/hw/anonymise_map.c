// SPDX-License-Identifier: Apache-2.0
#include "hw/anonymise_map.h"

#include <ctype.h>
#include <search.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/sha256.h"

#define HASHED_MAX 512 /* longer texts are hashed by their hash */
#define SERIAL_TRIES 16

struct known {
	size_t n;
	uint8_t bytes[GUID_SIZE];
};

struct pair {
	char *from, *to;
};

struct anonymiser {
	uint8_t key[SHA256_SIZE];
	void *known; /* trees of <search.h>: MAC addresses and GUIDs that were seen */
	void *by_from, *by_to; /* the same serial numbers (struct pair) */
};

struct anonymiser *anonymiser_new(const char *seed)
{
	struct anonymiser *a = xnew(struct anonymiser);

	if (seed)
		sha256(seed, strlen(seed), a->key);
	else if (getrandom(a->key, sizeof(a->key), 0) != (ssize_t)sizeof(a->key))
		abort(); /* 32 bytes come whole, on every kernel that has it */
	return a;
}

static void pair_free(void *node)
{
	struct pair *pair = node;

	free(pair->from);
	free(pair->to);
	free(pair);
}

static void keep(void *node)
{
	(void)node;
}

struct anonymiser *anonymiser_free(struct anonymiser *a)
{
	if (a) {
		tdestroy(a->known, free);
		tdestroy(a->by_to, keep);
		tdestroy(a->by_from, pair_free);
		free(a);
	}
	return NULL;
}

/* What replaces "data" comes from here: a keyed hash, other for each "use". */
static void keyed(const struct anonymiser *a, char use, unsigned int round, const void *data,
		  size_t len, uint8_t out[SHA256_SIZE])
{
	uint8_t in[SHA256_SIZE + 2 + HASHED_MAX], digest[SHA256_SIZE];

	if (len > HASHED_MAX) {
		sha256(data, len, digest);
		data = digest;
		len = sizeof(digest);
	}
	memcpy(in, a->key, SHA256_SIZE);
	in[SHA256_SIZE] = (uint8_t)use;
	in[SHA256_SIZE + 1] = (uint8_t)round;
	memcpy(in + SHA256_SIZE + 2, data, len);
	sha256(in, SHA256_SIZE + 2 + len, out);
}

static bool all(const uint8_t *data, size_t n, uint8_t value)
{
	for (size_t i = 0; i < n; i++)
		if (data[i] != value)
			return false;
	return true;
}

static int cmp_known(const void *x, const void *y)
{
	const struct known *a = x, *b = y;

	return a->n == b->n ? memcmp(a->bytes, b->bytes, a->n) : a->n < b->n ? -1 : 1;
}

static bool is_known(const struct anonymiser *a, const uint8_t *bytes, size_t n)
{
	struct known key = { .n = n };

	memcpy(key.bytes, bytes, n);
	return tfind(&key, &a->known, cmp_known) != NULL;
}

static void know(struct anonymiser *a, const uint8_t *bytes, size_t n)
{
	struct known *known;

	if (is_known(a, bytes, n))
		return;
	known = xnew(struct known);
	known->n = n;
	memcpy(known->bytes, bytes, n);
	if (!tsearch(known, &a->known, cmp_known))
		abort(); /* only memory can fail */
}

bool known_mac(const struct anonymiser *a, const uint8_t mac[MAC_SIZE])
{
	return is_known(a, mac, MAC_SIZE);
}

bool known_guid(const struct anonymiser *a, const uint8_t guid[GUID_SIZE])
{
	return is_known(a, guid, GUID_SIZE);
}

void know_guid(struct anonymiser *a, const uint8_t guid[GUID_SIZE])
{
	if (!all(guid, GUID_SIZE, 0))
		know(a, guid, GUID_SIZE);
}

void map_mac(struct anonymiser *a, uint8_t mac[MAC_SIZE])
{
	uint8_t digest[SHA256_SIZE];
	size_t kept = 0;

	if (all(mac, MAC_SIZE, 0) || all(mac, MAC_SIZE, 0xff))
		return;
	know(a, mac, MAC_SIZE);
	keyed(a, 'm', 0, mac, MAC_SIZE, digest);
	if (mac[0] & 1) {
		/* 33:33 is IPv6's multicast, 01:00:5e IPv4's. */
		kept = mac[0] == 0x33 ? 2 : 3;
	} else {
		mac[0] = 0x02; /* locally administered, one device */
		kept = 1;
	}
	memcpy(mac + kept, digest, MAC_SIZE - kept);
}

void map_guid(struct anonymiser *a, uint8_t guid[GUID_SIZE])
{
	/* EUI-64 in an interface part has the bit "locally administered" the other way round. */
	bool eui64 = guid[3] == 0xff && guid[4] == 0xfe;
	bool vendor = guid[3] == 0x03 && guid[4] == 0x00;
	uint8_t flip = eui64 ? 0x02 : 0, digest[SHA256_SIZE];
	uint8_t mac[MAC_SIZE] = { guid[0] ^ flip, guid[1], guid[2], guid[5], guid[6], guid[7] };

	if (all(guid, GUID_SIZE, 0) || all(guid, GUID_SIZE, 0xff))
		return;
	if (!eui64 && !vendor) {
		keyed(a, 'g', 0, guid, GUID_SIZE, digest);
		memcpy(guid, digest, GUID_SIZE);
		return;
	}
	map_mac(a, mac);
	guid[0] = mac[0] ^ flip;
	memcpy(guid + 1, mac + 1, 2);
	memcpy(guid + 5, mac + 3, 3);
}

void map_uuid(struct anonymiser *a, uint8_t uuid[16])
{
	uint8_t digest[SHA256_SIZE];

	if (all(uuid, 16, 0) || all(uuid, 16, 0xff))
		return;
	keyed(a, 'u', 0, uuid, 16, digest);
	/* RFC 9562: version and variant */
	digest[6] = (digest[6] & 0x0f) | (uuid[6] & 0xf0);
	digest[8] = (digest[8] & 0x3f) | (uuid[8] & 0xc0);
	memcpy(uuid, digest, 16);
}

uint64_t map_number(struct anonymiser *a, uint64_t number)
{
	uint8_t digest[SHA256_SIZE];
	uint64_t mapped;

	if (number == 0)
		return 0;
	keyed(a, 'n', 0, &number, sizeof(number), digest);
	memcpy(&mapped, digest, sizeof(mapped));
	return mapped;
}

void map_coins(const struct anonymiser *a, size_t size, const uint8_t *address, size_t n,
	       uint8_t coins[32])
{
	keyed(a, size == 4 ? '4' : '6', 0, address, n, coins);
}

static int cmp_from(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;

	return strcmp(a->from, b->from);
}

static int cmp_to(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;

	return strcmp(a->to, b->to);
}

/* Hexadecimal digits of one case, both digits and letters: a UUID or key, not a word. */
static bool is_hex_text(const char *s, size_t n, const char *letters)
{
	return n >= 8 && strspn(s, letters) == n && strcspn(s, "0123456789") < n &&
	       strspn(s, "0123456789") < n;
}

/* "from" with other digits for digits, other letters for letters; the rest stays. */
static char *other_serial(const struct anonymiser *a, const char *from, unsigned int try)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
	size_t n = strlen(from);
	bool is_lower = is_hex_text(from, n, lower), is_upper = is_hex_text(from, n, upper);
	_cleanup_free_ char *block = xasprintf("%u %s", try, from);
	uint8_t digest[SHA256_SIZE];
	char *to = xstrdup(from);

	for (size_t i = 0; i < n; i++) {
		unsigned int random;

		if (i % SHA256_SIZE == 0)
			keyed(a, 's', (unsigned int)(i / SHA256_SIZE), block, strlen(block),
			      digest);
		random = digest[i % SHA256_SIZE];
		if (is_lower || is_upper)
			to[i] = (is_lower ? lower : upper)[random % 16];
		else if (isdigit((unsigned char)to[i]))
			to[i] = (char)('0' + random % 10);
		else if (isupper((unsigned char)to[i]))
			to[i] = (char)('A' + random % 26);
		else if (islower((unsigned char)to[i]))
			to[i] = (char)('a' + random % 26);
	}
	return to;
}

/* The replacement of "from": another text that nothing else was replaced by. */
static const char *serial_of(struct anonymiser *a, const char *from)
{
	struct pair *pair = xnew(struct pair), **found;

	pair->from = xstrdup(from);
	found = tfind(pair, &a->by_from, cmp_from);
	if (found) {
		pair_free(pair);
		return (*found)->to;
	}
	for (unsigned int try = 0; try < SERIAL_TRIES; try++) {
		free(pair->to);
		pair->to = other_serial(a, from, try);
		if (!streq(pair->to, from) && !tfind(pair, &a->by_to, cmp_to))
			break;
	}
	if (!tsearch(pair, &a->by_from, cmp_from) || !tsearch(pair, &a->by_to, cmp_to))
		abort(); /* only memory can fail */
	return pair->to;
}

void map_serial(struct anonymiser *a, char *text, size_t n)
{
	_cleanup_free_ char *from = NULL;

	while (n > 0 && text[n - 1] == ' ')
		n--; /* padding */
	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < 0x20 || text[i] > 0x7e) {
			memset(text, 0xff, n);
			return;
		}
	}
	from = xstrndup(text, n);
	memcpy(text, serial_of(a, from), n);
}

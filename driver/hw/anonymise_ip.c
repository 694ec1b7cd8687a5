// SPDX-License-Identifier: Apache-2.0
/*
 * IP addresses are replaced bit by bit: whether a bit is turned depends on the key and on all bits
 * before it, so two addresses share as many leading bits afterwards as they did before (the idea of
 * Xu, Fan, Ammar and Moon, "Prefix-preserving IP address anonymization").  No bit is turned that
 * would take an address into or out of a block that means something.
 */
#include <string.h>

#include "base/mem.h"
#include "hw/anonymise_map.h"

struct block {
	uint8_t bytes[16];
	unsigned int bits;
};

static const struct block blocks4[] = {
	{ { 0 }, 8 }, /* "this network" */
	{ { 10 }, 8 }, /* RFC 1918 */
	{ { 100, 64 }, 10 }, /* RFC 6598 */
	{ { 127 }, 8 }, /* loopback: all of it stays, see map_ip4() */
	{ { 169, 254 }, 16 }, /* link-local */
	{ { 172, 16 }, 12 }, /* RFC 1918 */
	{ { 192, 168 }, 16 }, /* RFC 1918 */
	{ { 224 }, 4 }, /* multicast */
	{ { 255, 255, 255, 255 }, 32 },
};

static const struct block blocks6[] = {
	{ { 0 }, 64 },		{ { 0x20 }, 3 }, /* global */
	{ { 0xfc }, 8 }, /* ULA */
	{ { 0xfd }, 8 }, /* ULA with a random prefix */
	{ { 0xfe, 0x80 }, 64 }, /* link-local, InfiniBand's default subnet */
	{ { 0xfe, 0x80 }, 10 }, { { 0xfe, 0xc0 }, 10 }, /* site-local, InfiniBand */
	{ { 0xff }, 8 }, /* multicast */
};

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int rest = bits % 8;

	return memcmp(a, b, bits / 8) == 0 &&
	       (rest == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0);
}

/* Is there a block below the first "bits" of the address, which would be moved? */
static bool moves_block(const struct block *blocks, size_t n, const uint8_t *address,
			unsigned int bits)
{
	for (size_t i = 0; i < n; i++)
		if (blocks[i].bits > bits && same_bits(blocks[i].bytes, address, bits))
			return true;
	return false;
}

/* The first "bits" of the address; the others become zero. */
static void turn_bits(const struct anonymiser *a, uint8_t *address, size_t size, unsigned int bits)
{
	const struct block *blocks = size == 4 ? blocks4 : blocks6;
	size_t n = size == 4 ? ARRAY_SIZE(blocks4) : ARRAY_SIZE(blocks6);
	uint8_t from[16], coins[32];

	memcpy(from, address, size);
	for (unsigned int i = 0; i < 8 * size; i++) {
		unsigned int at = i / 8, bit = i % 8;
		uint8_t mask = (uint8_t)(0x80 >> bit);
		unsigned int node = 1U << bit | from[at] >> (8 - bit); /* 1 … 255 */

		if (i >= bits) {
			address[at] &= (uint8_t)~mask;
			continue;
		}
		if (bit == 0)
			map_coins(a, size, from, at, coins);
		if (coins[node / 8] >> node % 8 & 1 && !moves_block(blocks, n, from, i))
			address[at] ^= mask;
	}
}

static void map_ip4(const struct anonymiser *a, uint8_t *address, unsigned int bits)
{
	if (address[0] != 127)
		turn_bits(a, address, 4, bits);
}

/* The last 4 bytes are an IPv4 address: mapped, NAT64 (RFC 6052), or of the old compatible form. */
static bool has_ip4(const uint8_t *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const uint8_t compatible[12] = { 0 };

	return memcmp(address, mapped, 12) == 0 || memcmp(address, nat64, 12) == 0 ||
	       (memcmp(address, compatible, 12) == 0 && (address[12] || address[13]));
}

/* The second half was made from a MAC address or is the GUID of a port. */
static bool has_guid(const struct anonymiser *a, const uint8_t *address)
{
	static const uint8_t none[8] = { 0 }, link_local[8] = { 0xfe, 0x80 };
	const uint8_t *part = address + 8;

	return memcmp(address, none, 8) == 0 || memcmp(address, link_local, 8) == 0 ||
	       (part[3] == 0xff && part[4] == 0xfe) || known_guid(a, part);
}

static void map_multicast(const struct anonymiser *a, uint8_t *address, unsigned int bits)
{
	static const uint8_t zeros[12] = { 0 };
	uint8_t coins[32];

	/* ff02::1 and the like are the same everywhere. */
	if (bits < 128 || memcmp(address + 2, zeros, sizeof(zeros)) == 0)
		return;
	map_coins(a, 16, address, 16, coins);
	memcpy(address + 2, coins, 14);
}

void map_ip(struct anonymiser *a, uint8_t *address, size_t size, unsigned int bits)
{
	static const uint8_t zeros[16] = { 0 };

	if (memcmp(address, zeros, size) == 0)
		return;
	if (size == 4) {
		map_ip4(a, address, bits);
	} else if (has_ip4(address) && bits >= 96) {
		map_ip4(a, address + 12, bits - 96);
	} else if (memcmp(address, zeros, 15) == 0 && address[15] == 1) {
		return; /* loopback */
	} else if (address[0] == 0xff) {
		map_multicast(a, address, bits);
	} else if (bits == 128 && has_guid(a, address)) {
		uint8_t guid[GUID_SIZE];

		memcpy(guid, address + 8, sizeof(guid));
		turn_bits(a, address, 16, 64);
		map_guid(a, guid);
		memcpy(address + 8, guid, sizeof(guid));
	} else {
		turn_bits(a, address, 16, bits);
	}
}

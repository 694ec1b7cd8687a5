// SPDX-License-Identifier: Apache-2.0
/* What identifies a card in its vital product data and configuration space. */
#include <string.h>

#include "base/mem.h"
#include "hw/anonymise_map.h"

enum { TAG_NAME = 0x82, TAG_READ_ONLY = 0x90, TAG_READ_WRITE = 0x91, TAG_SMALL_END = 0x0f };
enum { CFG_EXTENDED = 0x100, CAP_SERIAL = 0x0003 };

struct vpd_area {
	struct anonymiser *a;
	uint8_t *data;
	const uint8_t *before; /* the same bytes, unchanged */
};

/* What a part is: part number, engineering change, manufacturer, location and so on. */
static bool is_harmless(const uint8_t *keyword, size_t n)
{
	static const char names[][3] = { "PN", "EC", "MN", "FG", "LC", "PG", "RV" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (memcmp(keyword, names[i], 2) == 0)
			return true;
	/* Which keyword is what: "MLX:MN=MLNX:CSKU=V2:UUID=V3:…" */
	return memcmp(keyword, "VA", 2) == 0 && n >= 4 && memcmp(keyword + 3, "MLX:", 4) == 0;
}

static uint8_t sum(const uint8_t *data, size_t n)
{
	uint8_t total = 0;

	while (n > 0)
		total += data[--n];
	return total;
}

/* The first byte of RV makes the sum of all bytes up to it zero; if it did, it does. */
static void fix_checksum(const struct vpd_area *vpd, size_t at)
{
	if (sum(vpd->before, at + 1) == 0)
		vpd->data[at] -= sum(vpd->data, at + 1);
}

static void vpd_keywords(const struct vpd_area *vpd, size_t at, size_t end)
{
	while (end - at >= 3) {
		uint8_t *p = vpd->data + at;
		size_t n = p[2];

		if (n > end - at - 3) {
			/* Broken: stays so, for the same reason. */
			memset(p + 3, 0xff, end - at - 3);
			return;
		}
		if (!is_harmless(p, n))
			map_serial(vpd->a, (char *)p + 3, n);
		else if (memcmp(p, "RV", 2) == 0 && n > 0)
			fix_checksum(vpd, at + 3);
		at += 3 + n;
	}
}

void anonymise_vpd(struct anonymiser *a, uint8_t *data, size_t len)
{
	_cleanup_free_ uint8_t *before = xmalloc(len + 1);
	const struct vpd_area vpd = { a, data, before };
	size_t at = 0;

	memcpy(before, data, len);
	while (at < len) {
		uint8_t tag = data[at];
		size_t head = tag & 0x80 ? 3 : 1, n;

		if (len - at < head)
			return;
		n = head == 3 ? data[at + 1] | (size_t)data[at + 2] << 8 : tag & 7U;
		at += head;
		if (n > len - at || (head == 1 && tag >> 3 == TAG_SMALL_END)) {
			memset(data + at, 0xff, len - at); /* nobody reads on here */
			return;
		}
		if (tag == TAG_READ_ONLY || tag == TAG_READ_WRITE)
			vpd_keywords(&vpd, at, at + n);
		else if (tag != TAG_NAME)
			memset(data + at, 0xff, n);
		at += n;
	}
}

/* A Device Serial Number is an EUI-64 with the last byte first. */
static void map_reversed(struct anonymiser *a, uint8_t *bytes)
{
	uint8_t guid[GUID_SIZE];

	for (size_t i = 0; i < GUID_SIZE; i++)
		guid[i] = bytes[GUID_SIZE - 1 - i];
	map_guid(a, guid);
	for (size_t i = 0; i < GUID_SIZE; i++)
		bytes[i] = guid[GUID_SIZE - 1 - i];
}

void anonymise_config(struct anonymiser *a, uint8_t *data, size_t len)
{
	size_t at = CFG_EXTENDED;

	/* A list that runs in a circle ends: there is room for so many. */
	for (size_t i = 0; i < len / 4 && at >= CFG_EXTENDED && at + 4 <= len; i++) {
		unsigned int id = data[at] | (unsigned int)data[at + 1] << 8;

		if (id == CAP_SERIAL && at + 4 + GUID_SIZE <= len) {
			map_reversed(a, data + at + 4);
			return; /* there is one at most */
		}
		at = (data[at + 2] >> 4 | (size_t)data[at + 3] << 4) & 0xffcU;
	}
}

// SPDX-License-Identifier: Apache-2.0
/* Finding what is to be replaced; how each kind is replaced is in anonymise_map.c. */
#include "hw/anonymise.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "hw/anonymise_map.h"

#define HEX "0123456789abcdefABCDEF"

struct scanner {
	struct anonymiser *a;
	bool ip4; /* four numbers with dots are an address, no version */
	bool hosts; /* "10.1.0.0/31" is an address in a subnet, not the subnet */
	struct buf *out;
};

static bool is_hex(char c)
{
	return c && strchr(HEX, c);
}

static uint8_t hex_value(char c)
{
	return (uint8_t)(isdigit((unsigned char)c) ? c - '0'
						   : tolower((unsigned char)c) - 'a' + 10);
}

/* Two digits per byte; other characters are passed over. */
static void parse_hex(const char *text, size_t n, uint8_t *bytes)
{
	size_t digits = 0;

	for (size_t i = 0; i < n; i++) {
		if (!is_hex(text[i]))
			continue;
		if (digits % 2 == 0)
			bytes[digits / 2] = 0;
		bytes[digits / 2] |= (uint8_t)(hex_value(text[i]) << (digits % 2 ? 0 : 4));
		digits++;
	}
}

/* The bytes written as "form" is, in its case. */
static void add_hex(struct buf *out, const char *form, size_t n, const uint8_t *bytes)
{
	bool upper = false;
	size_t digits = 0;

	for (size_t i = 0; i < n; i++)
		upper |= is_hex(form[i]) && isupper((unsigned char)form[i]);
	for (size_t i = 0; i < n; i++) {
		char c = form[i];

		if (is_hex(c)) {
			uint8_t v = bytes[digits / 2] >> (digits % 2 ? 0 : 4) & 15;

			c = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[v];
			digits++;
		}
		buf_add(out, &c, 1);
	}
}

/* "text" is "groups" groups of "width" digits with ":" between them. */
static bool has_groups(const char *text, size_t n, size_t groups, size_t width)
{
	if (n != groups * (width + 1) - 1)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((text[i] == ':') != (i % (width + 1) == width) || text[i] == '.')
			return false;
	return true;
}

/* "/64" behind an address; the number of characters. */
static size_t prefix_length(const char *p, unsigned int max, unsigned int *ret)
{
	size_t digits = *p == '/' ? strspn(p + 1, "0123456789") : 0;
	_cleanup_free_ char *number = digits ? xstrndup(p + 1, digits) : NULL;

	if (!number || parse_uint(number, max, ret) < 0)
		return 0;
	return digits + 1;
}

static bool host_bits(const uint8_t *address, size_t size, unsigned int prefix)
{
	for (unsigned int i = prefix; i < 8 * size; i++)
		if (address[i / 8] & 0x80 >> i % 8)
			return true;
	return false;
}

/* "text" of "n" bytes is an address; "/64" may follow it. */
static void scan_ip(const struct scanner *s, const char *text, size_t n, uint8_t *address,
		    size_t size)
{
	unsigned int bits = (unsigned int)(8 * size), prefix = bits;
	char shown[INET6_ADDRSTRLEN];

	if (prefix_length(text + n, bits, &prefix) == 0 || s->hosts ||
	    host_bits(address, size, prefix))
		prefix = bits;
	map_ip(s->a, address, size, prefix);
	if (has_groups(text, n, 8, 4)) {
		add_hex(s->out, text, n, address);
		return;
	}
	inet_ntop(size == 4 ? AF_INET : AF_INET6, address, shown, sizeof(shown));
	buf_str(s->out, shown);
}

/* MAC addresses, GUIDs and IP addresses.  False: it is none of them. */
static bool scan_colons(const struct scanner *s, const char *text, size_t n)
{
	_cleanup_free_ char *word = NULL;
	uint8_t bytes[20];

	if (has_groups(text, n, MAC_SIZE, 2)) {
		parse_hex(text, n, bytes);
		map_mac(s->a, bytes);
	} else if (has_groups(text, n, GUID_SIZE, 2) || has_groups(text, n, 4, 4)) {
		parse_hex(text, n, bytes);
		know_guid(s->a, bytes);
		map_guid(s->a, bytes);
	} else if (has_groups(text, n, 20, 2)) {
		/* IPoIB: queue pair number and GID */
		parse_hex(text, n, bytes);
		map_ip(s->a, bytes + 4, 16, 128);
	} else {
		word = xstrndup(text, n);
		if (inet_pton(AF_INET6, word, bytes) == 1)
			scan_ip(s, text, n, bytes, 16);
		else if (s->ip4 && inet_pton(AF_INET, word, bytes) == 1)
			scan_ip(s, text, n, bytes, 4);
		else
			return false;
		return true;
	}
	add_hex(s->out, text, n, bytes);
	return true;
}

static bool is_uuid(const char *p)
{
	for (size_t i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? p[i] != '-' : !is_hex(p[i]))
			return false;
	}
	return !is_hex(p[36]);
}

static void reverse(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t first = bytes[i];

		bytes[i] = bytes[n - 1 - i];
		bytes[n - 1 - i] = first;
	}
}

/* A GUID in either order of bytes; false when there is no such one. */
static bool map_known_guid(struct anonymiser *a, uint8_t *bytes)
{
	if (known_guid(a, bytes)) {
		map_guid(a, bytes);
		return true;
	}
	reverse(bytes, GUID_SIZE);
	if (!known_guid(a, bytes))
		return false;
	map_guid(a, bytes);
	reverse(bytes, GUID_SIZE);
	return true;
}

/* At the first of "n" hexadecimal digits: how many characters were replaced, 0: none. */
static size_t scan_digits(const struct scanner *s, const char *p, size_t n)
{
	uint8_t bytes[16];
	size_t len = n;

	if (n == 8 && is_uuid(p)) {
		len = 36;
		parse_hex(p, len, bytes);
		map_uuid(s->a, bytes);
	} else if (n == 32) {
		parse_hex(p, n, bytes);
		map_uuid(s->a, bytes);
	} else if (n == 16) {
		parse_hex(p, n, bytes);
		if (!map_known_guid(s->a, bytes))
			return 0;
	} else if (n == 12) {
		parse_hex(p, n, bytes);
		if (!known_mac(s->a, bytes))
			return 0;
		map_mac(s->a, bytes);
	} else {
		return 0;
	}
	add_hex(s->out, p, len, bytes);
	return len;
}

/* How many characters at "p", before which "previous" stands, were replaced; 0: none. */
static size_t scan_at(const struct scanner *s, const char *p, char previous)
{
	size_t digits = strspn(p, HEX), word = strspn(p, HEX ":.");
	bool begins = !isalnum((unsigned char)previous) && !strchr("_:.", previous);

	while (word > 1 && p[word - 1] == '.')
		word--;
	if (begins && word > digits && !isalnum((unsigned char)p[word]) && p[word] != '_' &&
	    scan_colons(s, p, word))
		return word;
	return digits && !is_hex(previous) ? scan_digits(s, p, digits) : 0;
}

static void scan(const struct scanner *s, const char *text)
{
	char previous = ' ';

	while (*text) {
		size_t n = scan_at(s, text, previous);

		if (n == 0) {
			n = 1;
			buf_add(s->out, text, 1);
		}
		previous = text[n - 1];
		text += n;
	}
}

char *anonymise_text(struct anonymiser *a, const char *text)
{
	struct buf out = { 0 };

	scan(&(const struct scanner){ .a = a, .out = &out }, text);
	return buf_take(&out);
}

/* A whole file that is one number, serial number or name: what it is without white space around. */
static size_t body(const char *data, size_t len)
{
	while (len > 0 && isspace((unsigned char)data[len - 1]))
		len--;
	return len;
}

static void add_serial(struct anonymiser *a, const char *data, size_t len, struct buf *out)
{
	_cleanup_free_ char *copy = xmalloc(len + 1);

	memcpy(copy, data, len);
	map_serial(a, copy, body(data, len));
	buf_add(out, copy, len);
}

/* The MAC address or system image GUID of a switch without colons, or anything else. */
static void add_switch_id(struct anonymiser *a, const char *data, size_t len, struct buf *out)
{
	size_t n = body(data, len);
	uint8_t bytes[GUID_SIZE];

	if (strspn(data, HEX) != n || (n != 2 * MAC_SIZE && n != 2 * GUID_SIZE)) {
		add_serial(a, data, len, out);
		return;
	}
	parse_hex(data, n, bytes);
	if (n == 2 * MAC_SIZE) {
		map_mac(a, bytes);
	} else if (!map_known_guid(a, bytes)) { /* which leaves them the other way round */
		bool little_endian = bytes[3] == 0x03 && bytes[4] == 0x00;

		if (!little_endian)
			reverse(bytes, GUID_SIZE);
		map_guid(a, bytes);
		if (little_endian)
			reverse(bytes, GUID_SIZE);
	}
	add_hex(out, data, n, bytes);
	buf_add(out, data + n, len - n);
}

/* amdgpu's "unique_id" is hexadecimal; "unique_id 12" of KFD's properties is the same in decimal. */
static void add_unique_id(struct anonymiser *a, const char *data, size_t len, struct buf *out)
{
	_cleanup_free_ char *text = xstrndup(data, body(data, len));
	uint64_t number;

	if (parse_u64(text, 16, &number) < 0) {
		add_serial(a, data, len, out);
		return;
	}
	number = map_number(a, number);
	buf_printf(out, "%s%0*" PRIx64 "\n", starts_with(text, "0x") ? "0x" : "",
		   number ? 16 : (int)strlen(text), number);
}

static void add_properties(struct anonymiser *a, const char *data, struct buf *out)
{
	static const char name[] = "unique_id ";
	const struct scanner s = { .a = a, .out = out };

	while (*data) {
		size_t n = strcspn(data, "\n"), digits;
		_cleanup_free_ char *line = xstrndup(data, n);
		uint64_t number;

		digits = starts_with(line, name) ? strlen(name) : 0;
		if (digits && parse_u64(line + digits, 10, &number) == 0)
			buf_printf(out, "%s%" PRIu64, name, map_number(a, number));
		else
			scan(&s, line);
		data += n;
		if (*data) {
			buf_str(out, "\n");
			data++;
		}
	}
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (streq(name, *names))
			return true;
	return false;
}

void anonymise_value(struct anonymiser *a, const char *path, const char *data, size_t len,
		     struct buf *out)
{
	static const char *const serials[] = {
		"serial_number",  "product_serial",  "board_serial",
		"chassis_serial", "board_asset_tag", "chassis_asset_tag",
		"node_desc",	  "hostname",	     NULL
	};
	static const char *const switch_ids[] = { "phys_switch_id", "phys_port_id", NULL };
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct scanner s = {
		.a = a,
		.ip4 = starts_with(path, "twinrail/"),
		.hosts = streq(path, "twinrail/addresses"),
		.out = out,
	};
	size_t before = out->len;

	if (streq(name, "vpd") || streq(name, "config")) {
		buf_add(out, data, len);
		if (len > 0 && *name == 'v')
			anonymise_vpd(a, (uint8_t *)out->data + before, len);
		else if (len > 0)
			anonymise_config(a, (uint8_t *)out->data + before, len);
	} else if (strlen(data) != len) {
		/* Binary, and nothing that is known: as far as it is text. */
		for (size_t at = 0; at < len; at += strlen(data + at) + 1) {
			scan(&s, data + at);
			if (at + strlen(data + at) < len)
				buf_add(out, "", 1);
		}
	} else if (is_one_of(name, serials)) {
		add_serial(a, data, len, out);
	} else if (is_one_of(name, switch_ids)) {
		add_switch_id(a, data, len, out);
	} else if (streq(name, "unique_id")) {
		add_unique_id(a, data, len, out);
	} else if (streq(name, "properties")) {
		add_properties(a, data, out);
	} else {
		scan(&s, data);
	}
}

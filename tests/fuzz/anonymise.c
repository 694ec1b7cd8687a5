// SPDX-License-Identifier: Apache-2.0
/* What a recording replaces, in files of any content; the first byte says which file it is. */
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "hw/anonymise.h"
#include "hw/vpd.h"

static const char *const files[] = {
	"sys/devices/a/vpd",	"sys/devices/a/config",	    "sys/devices/a/address",
	"sys/a/phys_switch_id", "sys/a/unique_id",	    "sys/a/properties",
	"sys/a/serial_number",	"proc/sys/kernel/hostname", "twinrail/addresses",
	"twinrail/routes",
};

/* Bytes, or a serial number, of which nothing is kept when it has a new line. */
static bool one_word(const char *path)
{
	static const char *const lines[] = { "address", "properties", "addresses", "routes" };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (streq(strrchr(path, '/') + 1, lines[i]))
			return false;
	return true;
}

static size_t count(const char *data, size_t len, char c)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += data[i] == c;
	return n;
}

/* Vital product data can be parsed as before, and has keywords of the same length. */
static void check_vpd(const char *in, const char *out, size_t len)
{
	struct vpd before = { 0 }, after = { 0 };

	CHECK(vpd_parse(in, len, &before) == vpd_parse(out, len, &after), "another answer");
	CHECK((before.sn ? strlen(before.sn) : 0) == (after.sn ? strlen(after.sn) : 0), "SN");
	CHECK((before.v3 ? strlen(before.v3) : 0) == (after.v3 ? strlen(after.v3) : 0), "V3");
	vpd_done(&before);
	vpd_done(&after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct anonymiser *a = anonymiser_new("fuzz");
	size_t file = size ? data[0] % ARRAY_SIZE(files) : 0, len = size ? size - 1 : 0;
	_cleanup_free_ char *in = xstrndup("", 0), *name = NULL;
	struct buf learned = { 0 }, first = { 0 }, second = { 0 };

	in = xrealloc(in, len + 1, 1);
	memcpy(in, data + (size ? 1 : 0), len);
	in[len] = '\0';
	anonymise_value(a, files[file], in, len, &learned);
	anonymise_value(a, files[file], in, len, &first);
	anonymise_value(a, files[file], in, len, &second);
	CHECK(first.len == second.len &&
		      (!first.len || !memcmp(first.data, second.data, first.len)),
	      "other values the second time");
	if (!one_word(files[file]))
		CHECK(count(in, len, '\n') == count(first.data, first.len, '\n'), "lines");
	CHECK(file > 1 || first.len == len, "%zu bytes of %zu", first.len, len);
	if (file == 0 && len)
		check_vpd(in, first.data, len);
	name = anonymise_text(a, in);
	CHECK(strlen(name) <= 16 * strlen(in), "%zu bytes of %zu", strlen(name), strlen(in));
	buf_done(&learned);
	buf_done(&first);
	buf_done(&second);
	anonymiser_free(a);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Vital Product Data, as a card's EEPROM has it. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "hw/vpd.h"

static void check_value(const char *value)
{
	size_t n = value ? strlen(value) : 1;

	CHECK(n > 0 && n <= 255, "%zu bytes", n);
	CHECK(!value || value[n - 1] != ' ', "padding was kept");
	for (const char *p = value; p && *p; p++)
		CHECK(*p >= 0x20 && *p <= 0x7e, "byte %02x", (unsigned char)*p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vpd vpd = { 0 }, again = { 0 };
	int r = vpd_parse(data, size, &vpd);

	CHECK(r == 0 || r == -EBADMSG, "%d", r);
	CHECK(r == 0 || (!vpd.sn && !vpd.v3), "something was written in spite of the error");
	check_value(vpd.sn);
	check_value(vpd.v3);
	CHECK(vpd_parse(data, size, &again) == r, "another answer the second time");
	CHECK(streq_null(vpd.sn, again.sn) && streq_null(vpd.v3, again.v3), "other values");
	vpd_done(&vpd);
	vpd_done(&again);
	return 0;
}

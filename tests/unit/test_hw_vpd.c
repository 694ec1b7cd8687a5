// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "hw/vpd.h"

#define BYTES(text) text, sizeof(text) - 1

static void assert_vpd(const void *data, size_t len, const char *sn, const char *v3)
{
	/* A copy without spare bytes, so that reading too far is seen by sanitizers. */
	void *copy = xmalloc(len);
	struct vpd vpd = { 0 };

	memcpy(copy, data, len);
	assert_int_equal(vpd_parse(copy, len, &vpd), 0);
	assert_true(streq_null(vpd.sn, sn));
	assert_true(streq_null(vpd.v3, v3));
	vpd_done(&vpd);
	free(copy);
}

static void assert_bad(const void *data, size_t len)
{
	void *copy = xmalloc(len);
	struct vpd vpd = { 0 };

	if (len)
		memcpy(copy, data, len);
	assert_int_equal(vpd_parse(copy, len, &vpd), -EBADMSG);
	assert_null(vpd.sn);
	assert_null(vpd.v3);
	free(copy);
}

static void test_good(void **state)
{
	(void)state;
	assert_vpd(BYTES("\x82\x03\x00"
			 "NIC\x90\x10\x00PN\x02P1SN\x03"
			 "123V3\x02"
			 "ab\x78"),
		   "123", "ab");
	/* Padding, no end tag, a small resource before, and the checksum keyword. */
	assert_vpd(BYTES("\x0a"
			 "xx\x90\x0d\x00SN\x05"
			 "12   RV\x02\x00\x00"),
		   "12", NULL);
	assert_vpd(BYTES("\x90\x00\x00\x78"), NULL, NULL);
	/* An empty or blank value is no value. */
	assert_vpd(BYTES("\x90\x09\x00SN\x00V3\x03   "), NULL, NULL);
	/* The same value twice says nothing new. */
	assert_vpd(BYTES("\x90\x08\x00SN\x01"
			 "1SN\x01"
			 "1"),
		   "1", NULL);
}

static void test_malformed(void **state)
{
	static const char whole[] = "\x82\x03\x00"
				    "NIC\x90\x0b\x00SN\x03"
				    "123V3\x02"
				    "ab\x78";

	(void)state;
	assert_bad("", 0);
	assert_bad(BYTES("\x78"));
	assert_bad(BYTES("\xff\xff\xff\xff\xff\xff"));
	assert_bad(BYTES("\x00\x00\x00\x00"));
	assert_bad(BYTES("\x82\x03\x00NIC\x78"));
	assert_bad(BYTES("\x90"));
	assert_bad(BYTES("\x90\x05"));
	/* A keyword that is longer than its area, and half a keyword. */
	assert_bad(BYTES("\x90\x05\x00SN\x03"
			 "12"));
	assert_bad(BYTES("\x90\x02\x00SN"));
	/* Two serial numbers, and one that no person can read. */
	assert_bad(BYTES("\x90\x08\x00SN\x01"
			 "1SN\x01"
			 "2"));
	assert_bad(BYTES("\x90\x05\x00SN\x02\x01\x02"));
	assert_bad(BYTES("\x90\x05\x00SN\x02"
			 "a\x00"));
	for (size_t n = 0; n < sizeof(whole) - 2; n++)
		assert_bad(whole, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

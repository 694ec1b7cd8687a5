// SPDX-License-Identifier: Apache-2.0
#include "hw/vpd.h"

#include <errno.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/str.h"

enum { TAG_READ_ONLY = 0x90, TAG_SMALL_END = 0x0f };

/* Keep a value; spaces at its end are padding.  An empty one is as good as none. */
static int keep(char **slot, const unsigned char *value, size_t n)
{
	_cleanup_free_ char *text = NULL;

	for (size_t i = 0; i < n; i++)
		if (value[i] < 0x20 || value[i] > 0x7e)
			return -EBADMSG;
	text = str_rstrip(xstrndup((const char *)value, n));
	if (!*text)
		return 0;
	if (*slot)
		return streq(*slot, text) ? 0 : -EBADMSG;
	*slot = TAKE_PTR(text);
	return 0;
}

static int parse_keywords(const unsigned char *p, size_t len, struct vpd *vpd)
{
	while (len > 0) {
		size_t n;
		char **slot = NULL;

		if (len < 3 || p[2] > len - 3)
			return -EBADMSG;
		n = p[2];
		if (memcmp(p, "SN", 2) == 0)
			slot = &vpd->sn;
		else if (memcmp(p, "V3", 2) == 0)
			slot = &vpd->v3;
		if (slot && keep(slot, p + 3, n) < 0)
			return -EBADMSG;
		p += 3 + n;
		len -= 3 + n;
	}
	return 0;
}

int vpd_parse(const void *data, size_t len, struct vpd *ret)
{
	const unsigned char *p = data;

	while (len > 0) {
		struct vpd vpd = { 0 };
		size_t head = p[0] & 0x80 ? 3 : 1, n;

		if (len < head)
			break;
		n = head == 3 ? p[1] | (size_t)p[2] << 8 : p[0] & 7U;
		if (head == 1 && p[0] >> 3 == TAG_SMALL_END)
			break;
		if (n > len - head)
			break;
		if (p[0] == TAG_READ_ONLY) {
			int r = parse_keywords(p + head, n, &vpd);

			if (r < 0)
				vpd_done(&vpd);
			else
				*ret = vpd;
			return r;
		}
		p += head + n;
		len -= head + n;
	}
	return -EBADMSG;
}

void vpd_done(struct vpd *vpd)
{
	free(vpd->sn);
	free(vpd->v3);
	*vpd = (struct vpd){ 0 };
}

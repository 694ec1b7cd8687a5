/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_VPD_H
#define TWINRAIL_HW_VPD_H

#include <stddef.h>

/* The keywords we use of a function's Vital Product Data; NULL when absent. */
struct vpd {
	char *sn, *v3;
};

/*
 * Parse VPD as the PCI specification lays it out: large resources 0x82 (name), 0x90 (read-only
 * area), 0x91 (read-write area), end tag 0x78.  Stops at the end tag or the end of the read-only
 * area.  -EBADMSG when lengths do not fit, a value is not printable ASCII, a keyword comes twice
 * with different values, or there is no read-only area; *ret is written on success only.
 */
int vpd_parse(const void *data, size_t len, struct vpd *ret) __attribute__((warn_unused_result));
void vpd_done(struct vpd *vpd);

#endif

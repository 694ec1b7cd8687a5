/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_PATTERN_H
#define TWINRAIL_TOPO_PATTERN_H

#include "topo/inventory.h"

#define PATTERN_MAX_BYTES 64

/* "*" stands for any text, "?" for one byte; the whole of "text" must match. */
bool glob_match(const char *pattern, const char *text);

/*
 * Patterns of NICs, each with "*" and "?": a PCI address ("0000:03:00.*", two colons), ids
 * ("15b3:1021", one colon, hexadecimal), "role=storage", else the name of the link ("eth*").
 * "*" alone is any NIC.
 *
 * -EINVAL: it cannot match anything; the text says what is wrong and what is allowed.
 */
int nic_pattern_check(const char *pattern, struct err *err) __attribute__((warn_unused_result));

/* It asks for the role, which is known later than the rest. */
bool nic_pattern_is_role(const char *pattern);

/* The pattern has been checked. */
bool nic_pattern_match(const char *pattern, const struct topo_nic *nic);
bool nic_pattern_fits(const char *pattern, const struct inventory *inv); /* any NIC of it */

/* "15b3:1021" with "*" and "?": both halves of four digits at most.  False: it is no such thing. */
bool id_pattern_is_valid(const char *pattern);
bool id_pattern_match(const char *pattern, unsigned int vendor, unsigned int device);
/* One of them matches. */
bool id_patterns_match(const struct strlist *patterns, unsigned int vendor, unsigned int device);

#endif

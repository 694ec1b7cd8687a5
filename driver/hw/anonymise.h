/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_ANONYMISE_H
#define TWINRAIL_HW_ANONYMISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/*
 * Replacing what identifies a machine in a recording, so that relations stay: equal values are
 * replaced equally, and
 *	- a GUID or GID that was made from a MAC address (EUI-64, or 0300 in the middle) is
 *	  made from the replaced one; the interface part of a GID is replaced as a GUID is;
 *	- IP addresses keep the prefixes that they share and their scope: private stays private (in
 *	  the same block), ULA ULA, link-local link-local; default, unspecified and loopback stay;
 *	- a serial number keeps its length and where it has digits and letters.
 * MAC addresses become locally administered ones: the documentation range has too few for VFs.
 * Nobody can tell what was there without the key, which is random unless there is a seed.
 */
struct anonymiser;

struct anonymiser *anonymiser_new(const char *seed); /* NULL: a random key */
struct anonymiser *anonymiser_free(struct anonymiser *a); /* NULL is fine; returns NULL */

/*
 * A name, path or link target with what in it looks like an address, GUID or UUID replaced, or is a
 * MAC address or GUID that was replaced before, without colons.  malloc'ed.
 */
char *anonymise_text(struct anonymiser *a, const char *text);

/*
 * Append the content of the file at "path" to "out".  What is replaced depends on its name: vital
 * product data, configuration space, serial numbers and host names are known by it.
 */
void anonymise_value(struct anonymiser *a, const char *path, const char *data, size_t len,
		     struct buf *out);

#endif

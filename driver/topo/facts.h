/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_FACTS_H
#define TWINRAIL_TOPO_FACTS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "hw/machine.h"

/*
 * What was last seen of the links of NICs, for the time when they are in a pod: the host then does
 * not show the network device, its names in the GIDs, what was made on it, and (with network
 * namespaces of RDMA devices of their own) the RDMA device.  docs/design.md §6.  No I/O.
 *
 * The facts are those of one boot, by PCI address; they hold no MAC addresses.
 */
struct facts;

#define FACTS_VERSION 1

/* "boot_id": as the kernel writes it, hexadecimal digits and dashes. */
struct facts *facts_new(const char *boot_id);
struct facts *facts_free(struct facts *facts); /* NULL is fine; returns NULL */

/* Does a claim hold this PCI function?  Asked only for functions of which something is hidden. */
typedef bool facts_held_fn(const char *bus_id, void *data);

/*
 * The machine as it would be with the hidden links: where a function is there with the driver it
 * had, something of it is gone and a claim holds it, what was seen before takes its place.  Of all
 * other functions what is seen now is remembered, and what is gone is forgotten.  A machine that
 * could be read in part only must not be given.
 *
 * The result belongs to "facts", until the next call; it borrows from "machine".
 */
const struct hw_machine *facts_apply(struct facts *facts, const struct hw_machine *machine,
				     facts_held_fn *held, void *data);

/* Functions that had something hidden in the last facts_apply(). */
size_t facts_hidden(const struct facts *facts);

/* Something is remembered, or forgotten, since facts_to_text() was called last. */
bool facts_changed(const struct facts *facts);

/* A JSON object; equal facts give equal bytes.  malloc'ed. */
char *facts_to_text(struct facts *facts);

/*
 * What facts_to_text() gave; that of another boot is left out.  ERR_INVALID: it is malformed, or
 * of another version; nothing is remembered then.
 */
int facts_from_json(struct facts *facts, const json_t *object, struct err *err)
	__attribute__((warn_unused_result));

/* facts_json.c: one device each; what is not known has no key. */
json_t *facts_netdev_to_json(const struct hw_netdev *netdev);
json_t *facts_rdma_to_json(const struct hw_rdma *rdma);
/* False: malformed; *ret is as before.  The caller frees the members. */
bool facts_netdev_from_json(const json_t *object, struct hw_netdev *ret);
bool facts_rdma_from_json(const json_t *object, struct hw_rdma *ret);

#endif

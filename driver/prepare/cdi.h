/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_CDI_H
#define TWINRAIL_PREPARE_CDI_H

#include <jansson.h>

#include "base/err.h"
#include "prepare/record.h"

/*
 * The Container Device Interface specification of one claim: <cdi dir>/<driver>-<uid>.json with
 * kind "<driver>/claim" and one device "<uid>-<request>" for each request that needs anything.
 * It is a pure function of the record, so it is written without fsync and made again when it is
 * missing or different.  The claim's uid is in every name because runtimes cache specifications.
 */

/* New reference; NULL when no request of the claim needs a CDI device of ours. */
json_t *cdi_spec(const struct record *record, const char *driver);

/* "<driver>/claim=<uid>-<request>"; NULL when the device's request has none; malloc'ed. */
char *cdi_device_id(const struct record *record, const struct record_device *device,
		    const char *driver);

/* Make the file equal to cdi_spec(); makes "dir".  The text names the folder and the cure. */
int cdi_ensure(const char *dir, const struct record *record, const char *driver, struct err *err)
	__attribute__((warn_unused_result));

/* The path of the file; malloc'ed. */
char *cdi_path(const char *dir, const char *uid, const char *driver);
/* What the file holds, new reference; NULL: it is not there, cannot be read, or is no JSON. */
json_t *cdi_load(const char *dir, const char *uid, const char *driver);

/* A file that is not there is success. */
int cdi_remove(const char *dir, const char *uid, const char *driver, struct err *err)
	__attribute__((warn_unused_result));

/* Remove what killed writers left behind. */
void cdi_remove_stale(const char *dir, const char *driver);

/*
 * The id under which a vendor's own specification in one of "dirs" (NULL-terminated) defines a GPU:
 * "<kind>=<uuid>", or, for toolkits that write indexes only, the device whose single numbered node
 * is "node" ("/dev/nvidia3").  A device in a later folder hides its namesake in an earlier one, as in
 * the runtime.  "uuid" and "node" may be NULL.  malloc'ed.  ERR_NOT_FOUND names the
 * id and how to make the specification; ERR_INVALID when two files of one folder define it.
 */
int cdi_vendor_id(const char *const *dirs, const char *kind, const char *uuid, const char *node,
		  char **ret, struct err *err) __attribute__((warn_unused_result));

#endif

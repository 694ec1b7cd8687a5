/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_PREPARE_STRAY_H
#define TWINRAIL_PREPARE_STRAY_H

#include "prepare/journal.h"
#include "topo/inventory.h"

/*
 * Claims whose CDI file stands while their record was lost: it was set aside, or cannot be read.  A
 * pod may be running with them, so they hold the NICs whose device nodes the file names (a GPU
 * leaves no trace there) until they are unprepared.  Adds them to "list" as record_holder() makes
 * records.  A folder or a file that cannot be read adds nothing.
 */
void stray_add(const char *cdi_dir, const char *driver, const struct inventory *inv,
	       struct record_list *list);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_CMD_AGENT_FACTS_H
#define TWINRAIL_CMD_AGENT_FACTS_H

#include "hw/machine.h"
#include "prepare/prepare.h"

/*
 * <data dir>/facts.json: the facts of NICs whose links are in pods (topo/facts.h), over restarts of
 * the agent in one boot.
 */
struct agent_facts;

/* "preparer" tells what claims hold, and must live longer. */
struct agent_facts *agent_facts_new(const char *data_dir, const struct preparer *preparer);
struct agent_facts *agent_facts_free(struct agent_facts *f); /* NULL is fine; returns NULL */

/*
 * facts_apply(): what topo_build() is to be given; valid until the next call, and as long as
 * "machine" is.  One that could be read in part only is given back as it is.  Writes the file when
 * something changed, without fsync: after a crash of the node there is another boot.
 */
const struct hw_machine *agent_facts_apply(struct agent_facts *f, const struct hw_machine *machine);

#endif

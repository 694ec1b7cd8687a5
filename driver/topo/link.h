/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_LINK_H
#define TWINRAIL_TOPO_LINK_H

#include "hw/machine.h"
#include "topo/inventory.h"

/*
 * The PCI Express link of a function to the bridge above it.  "degraded" compares with what both
 * ends can do; it is unknown as soon as something that could tell is not known.  "width_only": the
 * speed says nothing, as a GPU lowers it when it is idle.
 */
struct topo_link link_of(const struct hw_machine *machine, const struct hw_pci *pci,
			 bool width_only);

/* The bridge directly above a function, or NULL. */
const struct hw_pci *link_upstream(const struct hw_machine *machine, const struct hw_pci *pci);

#endif

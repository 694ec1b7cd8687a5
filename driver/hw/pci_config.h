/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_PCI_CONFIG_H
#define TWINRAIL_HW_PCI_CONFIG_H

#include <stddef.h>

#include "hw/machine.h"

/* Bytes of a PCI Express function's configuration space, and what anybody may read of it. */
#define PCI_CONFIG_MAX 4096
#define PCI_CONFIG_HEADER 64

/* What we use of a function's configuration space (PCI and PCI Express base specifications). */
struct pci_config {
	enum hw_port_type port_type; /* of a bridge; without the Express capability: OTHER */
	int acs; /* HW_ACS_… bits; 0 without that capability; HW_UNKNOWN: not in the data */
	/* The walk ended before both were known, since it needs this many bytes; 0: it did not. */
	size_t wanted;
};

/*
 * Parse the first "len" bytes.  0; -EBADMSG: shorter than a header; -ENODEV: it reads ff, the
 * function does not answer.  A list of capabilities that runs in a circle, or out of where it may
 * be, ends and leaves the rest unknown.  *ret is written on success only.
 */
int pci_config_parse(const void *data, size_t len, struct pci_config *ret)
	__attribute__((warn_unused_result));

#endif

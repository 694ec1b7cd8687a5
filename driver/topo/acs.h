/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TOPO_ACS_H
#define TWINRAIL_TOPO_ACS_H

#include "topo/path.h"

/*
 * Whether Access Control Services send the NIC's peer-to-peer traffic to this GPU up to the root
 * complex instead of through the switch (PCI Express base specification, Access Control Services):
 * requests are redirected where they enter the switch, at the NIC's port by P2P Request Redirect;
 * the answers to reads enter at the GPU's port, where P2P Completion Redirect counts.  Only the
 * two ports below the nearest common bridge can turn traffic around.  Unknown when the devices
 * are not below one root complex, when the place of one is not known, or when neither has a port
 * of its own there.
 */
enum tri acs_redirects(const struct place *nic, const struct place *gpu);

/*
 * The same of one of those two ports, with these control bits (negative: not read): the NIC's turns
 * requests, the GPU's answers to reads.
 */
enum tri acs_port_redirects(int acs, bool is_nics);

/* The control bits as the kernel's "pci=config_acs=" writes them: "0011101"; "text" gets it. */
#define ACS_TEXT_SIZE 8
void acs_text(int acs, char text[ACS_TEXT_SIZE]);

#endif

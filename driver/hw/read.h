/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_READ_H
#define TWINRAIL_HW_READ_H

#include "hw/machine.h"
#include "hw/root.h"

/*
 * Internal to hw/: each reader fills its part of the machine.  None fails: what cannot be read is
 * left out, with a warning where a person would miss it.
 */
#define HW_MAX_PCI 65536
#define HW_MAX_NETDEVS 16384
#define HW_MAX_RDMA 4096
#define HW_MAX_PORTS 16384 /* of one device, one for each representor, too; up to 255 are kept */
#define HW_MAX_GIDS 1024

void hw_read_node(const struct hw_root *root, struct hw_machine *machine);
void hw_read_pci(const struct hw_root *root, struct hw_machine *machine);
void hw_read_net(const struct hw_root *root, struct hw_machine *machine);
void hw_read_ip(const struct hw_root *root, struct hw_machine *machine);
void hw_read_rdma(const struct hw_root *root, struct hw_machine *machine);
void hw_read_verbs(const struct hw_root *root, struct hw_machine *machine);
void hw_read_gpus(const struct hw_root *root, struct hw_machine *machine);

/* hw_read_again() that tells "recorder" (may be NULL) what is read. */
int hw_read_recorded(const char *root, unsigned int parts, struct hw_recorder *recorder,
		     struct hw_machine *machine, struct err *err)
	__attribute__((warn_unused_result));

/* Forget what the reader of that name has filled in. */
void hw_clear_node(struct hw_machine *machine);
void hw_clear_pci(struct hw_machine *machine);
void hw_clear_net(struct hw_machine *machine);
void hw_clear_ip(struct hw_machine *machine);
void hw_clear_rdma(struct hw_machine *machine);
void hw_clear_gpus(struct hw_machine *machine);

/* A warning of the part that is being read.  "code" must be static. */
void hw_warn(struct hw_machine *machine, const char *code, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Take back all warnings but the first "n". */
void hw_unwarn(struct hw_machine *machine, size_t n);

/* Warn with "code" that list "object" ("what") cannot be read; the part is incomplete. */
void hw_unreadable(struct hw_machine *machine, const char *code, const char *object,
		   const char *what, int r);

/* "231:192" → 231, 192; both HW_UNKNOWN when it is not of that form. */
void hw_parse_dev(const char *text, int *major, int *minor);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_BUS_ID_H
#define TWINRAIL_BASE_BUS_ID_H

#include <stdbool.h>

/*
 * Addresses of PCI functions as the kernel writes them: "0000:03:00.0", lower case, a domain of
 * four digits or more (VMD: "10000:01:00.0"), function 0-7.
 */
bool is_bus_id(const char *s);

/*
 * With a domain of exactly four digits: the form of the standard attributes pciBusID and pcieRoot
 * (k8s.io/dynamic-resource-allocation, deviceattribute).
 */
bool is_standard_bus_id(const char *s);

/* All but the function number is equal. */
bool bus_id_same_slot(const char *a, const char *b);

/* Compare as numbers, also domains of 8 digits and upper case; <0, 0, >0. */
int bus_id_cmp(const char *a, const char *b);

#endif

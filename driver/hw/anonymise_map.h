/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_ANONYMISE_MAP_H
#define TWINRAIL_HW_ANONYMISE_MAP_H

#include "hw/anonymise.h"

/* Internal to anonymising: one value to another, in place.  Zeros stand for "not set" and stay. */

#define MAC_SIZE 6
#define GUID_SIZE 8

/* Broadcast stays; of a multicast address the prefix stays. */
void map_mac(struct anonymiser *a, uint8_t mac[MAC_SIZE]);

/* A GUID or the interface part of a GID, with the MAC address that it is made from, if it is. */
void map_guid(struct anonymiser *a, uint8_t guid[GUID_SIZE]);

/* True when map_mac() has seen it. */
bool known_mac(const struct anonymiser *a, const uint8_t mac[MAC_SIZE]);

/* A device has this GUID: know_guid() has seen it. */
void know_guid(struct anonymiser *a, const uint8_t guid[GUID_SIZE]);
bool known_guid(const struct anonymiser *a, const uint8_t guid[GUID_SIZE]);

/*
 * An address of 4 or 16 bytes; with "bits" < 8 * size the prefix of so many bits, the others become
 * zero.
 */
void map_ip(struct anonymiser *a, uint8_t *address, size_t size, unsigned int bits);

/* Random bits for what follows the first "n" bytes of an address of "size" bytes. */
void map_coins(const struct anonymiser *a, size_t size, const uint8_t *address, size_t n,
	       uint8_t coins[32]);

void map_uuid(struct anonymiser *a, uint8_t uuid[16]);
uint64_t map_number(struct anonymiser *a, uint64_t number);

/* "n" bytes of a serial number or name.  Bytes that are not printable become ff. */
void map_serial(struct anonymiser *a, char *text, size_t n);

/* Vital product data; configuration space with a Device Serial Number capability. */
void anonymise_vpd(struct anonymiser *a, uint8_t *data, size_t len);
void anonymise_config(struct anonymiser *a, uint8_t *data, size_t len);

#endif

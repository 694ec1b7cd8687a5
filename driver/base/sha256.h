/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_SHA256_H
#define TWINRAIL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

/* SHA-256 (FIPS 180-4) of "len" bytes; for names and checksums, not for secrets. */
void sha256(const void *data, size_t len, uint8_t out[SHA256_SIZE]);

#endif

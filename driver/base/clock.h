/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_BASE_CLOCK_H
#define TWINRAIL_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic time in microseconds: for durations and deadlines. */
uint64_t clock_us(void);

/* Wall clock in microseconds since 1970: for people and the API server. */
int64_t time_now_us(void);

#define TIME_RFC3339_MAX 32
/* "2026-01-02T03:04:05.678Z" */
void time_rfc3339(int64_t us, char out[TIME_RFC3339_MAX]);

#endif

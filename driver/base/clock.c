// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

uint64_t clock_us(void)
{
	return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

int64_t time_now_us(void)
{
	return read_clock(CLOCK_REALTIME);
}

void time_rfc3339(int64_t us, char out[TIME_RFC3339_MAX])
{
	time_t seconds = (time_t)(us / 1000000);
	char date[24];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, TIME_RFC3339_MAX, "%s.%03dZ", date, (int)(us / 1000 % 1000));
}

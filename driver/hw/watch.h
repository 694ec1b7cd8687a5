/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_WATCH_H
#define TWINRAIL_HW_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "hw/hw.h"
#include "loop/loop.h"

/*
 * What the running kernel tells of changes: uevents (devices, drivers, modules), rtnetlink (links,
 * addresses, routes, rules) and, on kernels that have it, RDMA netlink.  Events come in flocks, so
 * one change is told for each: when HW_WATCH_QUIET_US have passed without another, at most
 * HW_WATCH_LIMIT_US after the first.  While they do not end, at most one in HW_WATCH_PACE_US is
 * told, after HW_WATCH_BURST that were told at once.
 */
#define HW_WATCH_QUIET_US (50 * 1000ULL)
#define HW_WATCH_LIMIT_US (150 * 1000ULL)
#define HW_WATCH_PACE_US (500 * 1000ULL)
#define HW_WATCH_BURST 4

#define HW_CAUSE_MAX 96

struct hw_change {
	unsigned int parts; /* HW_PART_…: what to read again */
	unsigned int events; /* how many said so */
	bool lost; /* some did not fit into the socket: all parts */
	uint64_t since_us; /* clock_us() when the first was read */
	char cause[HW_CAUSE_MAX]; /* the first: "link gpu0rdma0", "uevent remove 0000:03:00.0" */
};

struct hw_watch;
typedef void hw_watch_fn(const struct hw_change *change, void *data);

/*
 * Listen in the network namespace of this process, which has to be the host's: uevents of network
 * devices come to the namespace of the device, others to those that the first user namespace owns.
 * The error says what cannot be listened to; without RDMA netlink it works all the same.
 */
int hw_watch_new(struct loop *loop, hw_watch_fn *fn, void *data, struct hw_watch **ret,
		 struct err *err) __attribute__((warn_unused_result));
struct hw_watch *hw_watch_free(struct hw_watch *watch); /* NULL is fine; returns NULL */

/*
 * Take in what has come by now: the parts of events that were not told yet.  What was read
 * meanwhile of these parts may be half old and half new.  They will be told as usual.
 */
unsigned int hw_watch_pending(struct hw_watch *watch);

/*
 * The parts that one message can have changed; 0: none.  Of any bytes.  "cause" becomes its short
 * text when there are any.  Internal, and for tests.
 */
unsigned int hw_watch_uevent(const void *message, size_t len, char cause[HW_CAUSE_MAX]);
unsigned int hw_watch_rtnetlink(const void *datagram, size_t len, unsigned int *events,
				char cause[HW_CAUSE_MAX]);

#endif

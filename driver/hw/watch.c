// SPDX-License-Identifier: Apache-2.0
#include "hw/watch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#define GROUP_KERNEL 1 /* of NETLINK_KOBJECT_UEVENT; 2 is udev's */
/* RDMA_NL_GROUP_NOTIFY of rdma/rdma_netlink.h, in Linux 6.12 and later */
#define GROUP_RDMA_NOTIFY 4
#define RECEIVE_BYTES (4 * 1024 * 1024)
#define MESSAGE_BYTES (32 * 1024)
#define DRAIN_MAX 256 /* datagrams in one go: other work of the loop has its turn */

enum source { SOURCE_UEVENT, SOURCE_ROUTE, SOURCE_RDMA, SOURCES };

static const char *const source_names[SOURCES] = { "uevents", "rtnetlink", "RDMA netlink" };

struct watched {
	struct hw_watch *watch;
	enum source source;
	int fd; /* -1: not there */
	struct loop_fd *loop_fd;
};

struct hw_watch {
	struct loop *loop;
	hw_watch_fn *fn;
	void *data;
	struct watched sources[SOURCES];
	struct loop_timer *timer;
	struct hw_change change; /* what is to be told; parts 0: nothing */
	uint64_t last_us; /* the last event */
	bool has_rdma, rdma_asked; /* the RDMA core is there; it has answered */
	uint64_t paced_us; /* when as many as HW_WATCH_PACE_US allows would have been told */
};

/* Arm the timer for what is to be told; each event may put it off a little. */
static void schedule(struct hw_watch *w)
{
	const uint64_t burst = HW_WATCH_PACE_US * (HW_WATCH_BURST - 1);
	uint64_t now = clock_us(), due = w->last_us + HW_WATCH_QUIET_US;

	if (due > w->change.since_us + HW_WATCH_LIMIT_US)
		due = w->change.since_us + HW_WATCH_LIMIT_US;
	if (w->paced_us > burst && due < w->paced_us - burst)
		due = w->paced_us - burst;
	loop_timer_set(w->timer, due > now ? due - now : 0);
}

static void note(struct hw_watch *w, unsigned int parts, unsigned int events, const char *cause)
{
	if (!parts)
		return;
	w->last_us = clock_us();
	if (!w->change.parts) {
		w->change.since_us = w->last_us;
		snprintf(w->change.cause, sizeof(w->change.cause), "%s", cause);
	}
	w->change.parts |= parts;
	w->change.events += events;
	schedule(w);
}

static void lost(struct hw_watch *w, enum source source)
{
	char cause[HW_CAUSE_MAX];

	snprintf(cause, sizeof(cause), "lost events of %s", source_names[source]);
	w->change.lost = true;
	note(w, HW_PART_ALL, 1, cause);
}

static void on_datagram(struct hw_watch *w, enum source source, const void *data, size_t len)
{
	char cause[HW_CAUSE_MAX] = "RDMA device";
	unsigned int parts = HW_PART_RDMA, events = 1;

	if (source == SOURCE_UEVENT) {
		parts = hw_watch_uevent(data, len, cause);
		w->has_rdma = w->has_rdma || parts == HW_PART_RDMA;
	} else if (source == SOURCE_ROUTE) {
		events = 0;
		parts = hw_watch_rtnetlink(data, len, &events, cause);
	}
	note(w, parts, events, cause);
}

/* One datagram; false when there is none. */
static bool receive(struct watched *s)
{
	_Alignas(struct nlmsghdr) char data[MESSAGE_BYTES];
	struct sockaddr_nl from = { 0 };
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1
	};
	ssize_t n = recvmsg(s->fd, &msg, MSG_DONTWAIT);

	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0 || (msg.msg_flags & MSG_TRUNC)) {
		/* ENOBUFS: the socket was full; the error goes away by being read */
		lost(s->watch, s->source);
		return n >= 0 || errno == ENOBUFS;
	}
	/* Any process may send to the group; only the kernel has the number 0. */
	if (from.nl_pid == 0)
		on_datagram(s->watch, s->source, data, (size_t)n);
	return true;
}

static void drain(struct watched *s)
{
	for (int i = 0; i < DRAIN_MAX && receive(s); i++)
		;
}

static void on_readable(int fd, uint32_t events, void *data)
{
	(void)fd;
	(void)events;
	drain(data);
}

static int join(int fd, enum source source)
{
	static const int route[] = { RTNLGRP_LINK,	 RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
				     RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE,  RTNLGRP_IPV4_RULE,
				     RTNLGRP_IPV6_RULE,	 RTNLGRP_NEXTHOP };
	static const int uevent[] = { GROUP_KERNEL }, rdma[] = { GROUP_RDMA_NOTIFY };
	static const struct {
		const int *groups;
		size_t n;
	} all[SOURCES] = {
		[SOURCE_UEVENT] = { uevent, 1 },
		[SOURCE_ROUTE] = { route, ARRAY_SIZE(route) },
		[SOURCE_RDMA] = { rdma, 1 },
	};

	for (size_t i = 0; i < all[source].n; i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &all[source].groups[i],
			       sizeof(int)) < 0 &&
		    all[source].groups[i] != RTNLGRP_NEXTHOP) /* Linux 5.3 */
			return -errno;
	return 0;
}

static int open_source(struct hw_watch *w, enum source source, struct err *err)
{
	static const int protocols[SOURCES] = { NETLINK_KOBJECT_UEVENT, NETLINK_ROUTE,
						NETLINK_RDMA };
	const struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	struct watched *s = &w->sources[source];
	int size = RECEIVE_BYTES, r = 0;

	s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocols[source]);
	if (s->fd < 0)
		r = -errno;
	/* More than the system's limit needs CAP_NET_ADMIN; with less, events may be lost. */
	if (r == 0 && setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0 &&
	    setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) < 0)
		r = -errno;
	/* The kernel sends nothing to a socket without an address. */
	if (r == 0 && bind(s->fd, (const struct sockaddr *)&own, sizeof(own)) < 0)
		r = -errno;
	if (r == 0)
		r = join(s->fd, source);
	if (r < 0)
		err_errno(err, ERR_PERMANENT, r, "cannot listen to %s", source_names[source]);
	else
		r = loop_add_fd(w->loop, s->fd, EPOLLIN, on_readable, s, &s->loop_fd, err);
	if (r < 0) {
		closep(&s->fd);
		s->fd = -1;
	}
	return r;
}

/*
 * Asking for the protocol would load the RDMA core, so it is asked for when that is there; that may
 * be later, and a uevent tells.  A kernel without the protocol or the group has uevents only; what
 * else stands in the way (no descriptor is left) may be gone at the next change.
 */
static void open_rdma(struct hw_watch *w)
{
	struct err err = { 0 };
	int r;

	if (!w->has_rdma || w->rdma_asked)
		return;
	r = open_source(w, SOURCE_RDMA, &err);
	w->rdma_asked = r == 0 || r == -EPROTONOSUPPORT || r == -EINVAL;
	if (r < 0)
		log_debug("no events of RDMA devices beyond uevents", KV("error", "%s", err.msg));
}

static void tell(void *data)
{
	struct hw_watch *w = data;
	struct hw_change change = w->change;
	uint64_t now = clock_us();

	w->change = (struct hw_change){ 0 };
	w->paced_us = (w->paced_us > now ? w->paced_us : now) + HW_WATCH_PACE_US;
	open_rdma(w);
	w->fn(&change, w->data);
}

int hw_watch_new(struct loop *loop, hw_watch_fn *fn, void *data, struct hw_watch **ret,
		 struct err *err)
{
	struct hw_watch *w = xnew(struct hw_watch);
	int r;

	*w = (struct hw_watch){ .loop = loop, .fn = fn, .data = data };
	for (enum source i = 0; i < SOURCES; i++)
		w->sources[i] = (struct watched){ .watch = w, .source = i, .fd = -1 };
	w->timer = loop_timer_new(loop, tell, w);
	r = open_source(w, SOURCE_UEVENT, err);
	if (r == 0)
		r = open_source(w, SOURCE_ROUTE, err);
	if (r < 0) {
		hw_watch_free(w);
		return r;
	}
	w->has_rdma = access("/sys/class/infiniband", F_OK) == 0;
	open_rdma(w);
	*ret = w;
	return 0;
}

unsigned int hw_watch_pending(struct hw_watch *watch)
{
	for (enum source i = 0; i < SOURCES; i++)
		if (watch->sources[i].fd >= 0)
			drain(&watch->sources[i]);
	return watch->change.parts;
}

struct hw_watch *hw_watch_free(struct hw_watch *watch)
{
	if (!watch)
		return NULL;
	for (enum source i = 0; i < SOURCES; i++) {
		loop_remove_fd(watch->sources[i].loop_fd);
		closep(&watch->sources[i].fd);
	}
	loop_timer_free(watch->timer);
	free(watch);
	return NULL;
}

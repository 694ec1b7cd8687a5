// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel and a recording tell of changes and RDMA devices.  The first byte chooses: a
 * uevent, an rtnetlink datagram, the recorded answers of the verbs library.
 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "fuzz.h"
#include "hw/machine.h"
#include "hw/verbs.h"
#include "hw/watch.h"

static void check_change(unsigned int parts, const char *cause)
{
	CHECK((parts & ~(unsigned int)HW_PART_ALL) == 0, "parts %x", parts);
	CHECK(memchr(cause, '\0', HW_CAUSE_MAX), "the cause has no end");
}

static void fuzz_uevent(const uint8_t *data, size_t size)
{
	char cause[HW_CAUSE_MAX] = "";

	check_change(hw_watch_uevent(data, size, cause), cause);
}

static void fuzz_rtnetlink(const uint8_t *data, size_t size)
{
	char cause[HW_CAUSE_MAX] = "";
	unsigned int events = 0, parts;
	/* the kernel's buffers are aligned */
	void *copy = xmalloc(size ? size : 1);

	if (size)
		memcpy(copy, data, size);
	parts = hw_watch_rtnetlink(copy, size, &events, cause);
	check_change(parts, cause);
	CHECK((parts != 0) == (events != 0), "parts %x of %u events", parts, events);
	free(copy);
}

static struct hw_machine *new_machine(void)
{
	struct hw_machine *m = xnew(struct hw_machine);
	struct hw_rdma *rdma = array_push(m->rdma, m->n_rdma, m->cap_rdma);

	rdma->name = xstrdup("mlx5_0");
	*array_push(rdma->ports, rdma->n_ports, rdma->cap_ports) =
		(struct hw_rdma_port){ .port = 1, .active_mtu = HW_UNKNOWN };
	return m;
}

static void fuzz_verbs(const uint8_t *data, size_t size)
{
	struct hw_machine *m = new_machine(), *again = new_machine();
	_cleanup_free_ char *text = xstrndup((const char *)data, size), *printed = NULL,
			    *printed_again = NULL;

	hw_verbs_parse(text, m);
	CHECK(m->n_warnings <= 1, "%zu warnings", m->n_warnings);
	printed = hw_verbs_print(m);
	hw_verbs_parse(printed, again);
	printed_again = hw_verbs_print(again);
	CHECK(streq(printed, printed_again), "%s is %s", printed, printed_again);
	CHECK(again->n_warnings == 0, "what was printed cannot be read: %s", printed);
	hw_free(m);
	hw_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const fuzz[])(const uint8_t *, size_t) = { fuzz_uevent, fuzz_rtnetlink,
								 fuzz_verbs };

	if (size)
		fuzz[data[0] % ARRAY_SIZE(fuzz)](data + 1, size - 1);
	return 0;
}

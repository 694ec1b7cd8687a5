// SPDX-License-Identifier: Apache-2.0
/* The platform file of an administrator: it is read whole or refused with line and key. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "topo/platform.h"

static void check_list(const struct strlist *list, const char *what)
{
	for (size_t i = 0; i < list->n; i++)
		CHECK(*list->items[i], "an empty text in %s", what);
}

static void check_entry(const struct platforms *platforms, size_t i)
{
	const struct platform *p = &platforms->items[i];

	CHECK(p->name && *p->name, "entry %zu has no name", i);
	for (size_t k = 0; k < i; k++)
		CHECK(!streq(platforms->items[k].name, p->name), "two entries are called %s",
		      p->name);
	CHECK(!p->shipped, "%s claims to be ours", p->name);
	CHECK(p->rails >= TOPO_UNKNOWN && p->rails <= PLATFORM_MAX_RAIL + 1, "%d rails", p->rails);
	CHECK(p->match.gpu_count.min <= p->match.gpu_count.max, "no count of GPUs fits");
	CHECK(p->match.nic_count.min <= p->match.nic_count.max, "no count of NICs fits");
	for (size_t k = 0; k < p->n_rail_map; k++)
		CHECK(p->rail_map[k].rail >= 0 && p->rail_map[k].rail <= PLATFORM_MAX_RAIL,
		      "rail %d", p->rail_map[k].rail);
	check_list(&p->match.gpu_ids, "gpu ids");
	check_list(&p->match.nic_ids, "nic ids");
	check_list(&p->match.dmi_vendor, "DMI vendors");
	check_list(&p->match.dmi_product, "DMI products");
	check_list(&p->match.functions, "functions");
	check_list(&p->rail_names, "rail names");
	check_list(&p->atomic_cards, "atomic cards");
	check_list(&p->environment, "environment");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct platforms *platforms = NULL;
	struct err err = { 0 };
	int r = platforms_parse((const char *)data, size, "platforms.yaml", &platforms, &err);

	CHECK(r == 0 || r == -EINVAL, "%d: %s", r, err.msg);
	if (r < 0) {
		CHECK(!platforms, "something was given in spite of the error");
		CHECK(strstr(err.msg, "platforms.yaml"), "the text does not name the file: %s",
		      err.msg);
		return 0;
	}
	CHECK(platforms && err.msg[0] == '\0', "success with the text \"%s\"", err.msg);
	for (size_t i = 0; i < platforms->n; i++)
		check_entry(platforms, i);
	platforms_free(platforms);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "base/mem.h"
#include "base/str.h"
#include "topo/output.h"

/* Generations of PCI Express by the transfer rate of a lane (PCI Express base specification). */
static int generation(int speed_mts)
{
	static const int speeds[] = { 2500, 5000, 8000, 16000, 32000, 64000 };

	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i] == speed_mts)
			return (int)i + 1;
	return 0;
}

static void add(struct buf *text, int speed_mts, int width)
{
	int gen = generation(speed_mts);

	if (gen)
		buf_printf(text, "Gen%d", gen);
	else if (speed_mts > 0)
		buf_printf(text, "%d.%d GT/s", speed_mts / 1000, speed_mts % 1000 / 100);
	if (width > 0)
		buf_printf(text, "%sx%d", speed_mts > 0 ? " " : "", width);
}

char *topo_link_text(const struct topo_link *link)
{
	struct buf text = { 0 };

	if (link->speed_mts <= 0 && link->width <= 0)
		return NULL;
	add(&text, link->speed_mts, link->width);
	if (link->degraded == TRI_YES && (link->max_speed_mts > 0 || link->max_width > 0)) {
		buf_str(&text, " of ");
		add(&text, link->max_speed_mts, link->max_width);
	}
	return buf_take(&text);
}

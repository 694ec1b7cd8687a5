// SPDX-License-Identifier: Apache-2.0
/* platforms.yaml as part of the binary; the Makefile knows that this file depends on it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "topo/platform.h"

/* Assemblers look for the file from where make runs: the project's directory. */
__asm__(".pushsection .rodata\n"
	".global platforms_yaml\n"
	".hidden platforms_yaml\n"
	"platforms_yaml:\n"
	".incbin \"driver/topo/platforms.yaml\"\n"
	".global platforms_yaml_end\n"
	".hidden platforms_yaml_end\n"
	"platforms_yaml_end:\n"
	".byte 0\n"
	".popsection\n");

extern const char platforms_yaml[], platforms_yaml_end[];

static struct platforms *shipped;

static void parse_shipped(void)
{
	struct err err = { 0 };
	size_t len = (size_t)(platforms_yaml_end - platforms_yaml);

	if (platforms_parse(platforms_yaml, len, "driver/topo/platforms.yaml", &shipped, &err) <
	    0) {
		/* The unit tests read it, so a binary that was tested cannot come here. */
		fprintf(stderr, "twinrail: %s\n", err.msg);
		abort();
	}
	for (size_t i = 0; i < shipped->n; i++)
		shipped->items[i].shipped = true;
}

const struct platforms *platforms_shipped(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, parse_shipped);
	return shipped;
}

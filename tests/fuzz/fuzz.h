/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_TESTS_FUZZ_H
#define TWINRAIL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What all fuzz targets share; each is one file with this function (libFuzzer). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise is a finding, as a crash is. */
#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);            \
			fprintf(stderr, __VA_ARGS__);                                              \
			fputc('\n', stderr);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif

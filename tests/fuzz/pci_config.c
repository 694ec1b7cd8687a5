// SPDX-License-Identifier: Apache-2.0
/* The configuration space of a PCI function: lists of capabilities that lead anywhere. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "hw/pci_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pci_config config = { .wanted = SIZE_MAX }, again = { .wanted = SIZE_MAX };
	int r = pci_config_parse(data, size, &config);

	CHECK(r == 0 || r == -EBADMSG || r == -ENODEV, "%d", r);
	CHECK((r == -EBADMSG) == (size < PCI_CONFIG_HEADER), "%d for %zu bytes", r, size);
	CHECK(r == 0 || config.wanted == SIZE_MAX, "something was written in spite of the error");
	CHECK(pci_config_parse(data, size, &again) == r, "another answer the second time");
	if (r < 0)
		return 0;
	CHECK(config.port_type <= HW_PORT_OTHER, "port type %d", config.port_type);
	CHECK(config.acs >= HW_UNKNOWN && config.acs <= 0xffff, "ACS %d", config.acs);
	CHECK(config.wanted == 0 || (config.wanted > size && config.wanted <= PCI_CONFIG_MAX),
	      "wants %zu bytes, has %zu", config.wanted, size);
	CHECK(config.port_type == again.port_type && config.acs == again.acs &&
		      config.wanted == again.wanted,
	      "other values the second time");
	return 0;
}

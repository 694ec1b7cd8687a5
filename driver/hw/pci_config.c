// SPDX-License-Identifier: Apache-2.0
#include "hw/pci_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* Byte offsets in configuration space. */
enum { CFG_STATUS = 0x06, CFG_CAPABILITIES = 0x34, CFG_EXTENDED = 0x100 };
enum { STATUS_CAP_LIST = 0x10, CAP_EXPRESS = 0x10, EXT_CAP_ACS = 0x0d };

struct config {
	const unsigned char *data;
	size_t len;
	size_t wanted;
};

/* Little endian, "n" bytes; false, and noted, when they are not in the data. */
static bool get(struct config *cfg, size_t at, size_t n, uint32_t *ret)
{
	uint32_t v = 0;

	if (at + n > cfg->len) {
		cfg->wanted = at + n <= PCI_CONFIG_MAX ? at + n : 0;
		return false;
	}
	for (size_t i = n; i-- > 0;)
		v = v << 8 | cfg->data[at + i];
	*ret = v;
	return true;
}

static enum hw_port_type port_type_of(uint32_t express_flags)
{
	switch (express_flags >> 4 & 0xf) {
	case 4:
		return HW_PORT_ROOT;
	case 5:
		return HW_PORT_UPSTREAM;
	case 6:
		return HW_PORT_DOWNSTREAM;
	default:
		return HW_PORT_OTHER;
	}
}

/* *ret_express: it has the capability, and with it an extended configuration space. */
static enum hw_port_type find_port_type(struct config *cfg, bool *ret_express)
{
	uint32_t status, at, head;

	*ret_express = false;
	if (!get(cfg, CFG_STATUS, 2, &status))
		return HW_PORT_UNKNOWN;
	if (!(status & STATUS_CAP_LIST))
		return HW_PORT_OTHER;
	if (!get(cfg, CFG_CAPABILITIES, 1, &at))
		return HW_PORT_UNKNOWN;
	/* At most one capability per four bytes: a list that runs in a circle ends. */
	for (size_t i = 0; i < CFG_EXTENDED / 4; i++) {
		at &= 0xfc;
		if (at == 0)
			return HW_PORT_OTHER;
		/* Identifier, next, and two bytes of the capability's own. */
		if (at < PCI_CONFIG_HEADER || !get(cfg, at, 4, &head))
			return HW_PORT_UNKNOWN;
		if ((head & 0xff) == CAP_EXPRESS) {
			*ret_express = true;
			return port_type_of(head >> 16);
		}
		at = head >> 8 & 0xff;
	}
	return HW_PORT_UNKNOWN;
}

static int find_acs(struct config *cfg)
{
	uint32_t at = CFG_EXTENDED, head, control;

	/* At most one capability per eight bytes. */
	for (size_t i = 0; i < (PCI_CONFIG_MAX - CFG_EXTENDED) / 8; i++) {
		if (!get(cfg, at, 4, &head))
			return HW_UNKNOWN;
		/* All zero, or no extended space behind this bridge: the list is empty. */
		if (at == CFG_EXTENDED && (head == 0 || head == UINT32_MAX))
			return 0;
		if ((head & 0xffff) == EXT_CAP_ACS)
			return get(cfg, at + 6, 2, &control) ? (int)(control & 0x7f) : HW_UNKNOWN;
		at = head >> 20 & 0xffc;
		if (at == 0)
			return 0;
		if (at < CFG_EXTENDED)
			return HW_UNKNOWN;
	}
	return HW_UNKNOWN;
}

int pci_config_parse(const void *data, size_t len, struct pci_config *ret)
{
	struct config cfg = { data, len < PCI_CONFIG_MAX ? len : PCI_CONFIG_MAX, 0 };
	uint32_t vendor;
	bool express;

	if (len < PCI_CONFIG_HEADER)
		return -EBADMSG;
	if (get(&cfg, 0, 2, &vendor) && vendor == 0xffff)
		return -ENODEV;
	*ret = (struct pci_config){ .port_type = find_port_type(&cfg, &express) };
	if (express)
		ret->acs = find_acs(&cfg);
	else if (ret->port_type == HW_PORT_UNKNOWN)
		ret->acs = HW_UNKNOWN;
	ret->wanted = cfg.wanted;
	return 0;
}

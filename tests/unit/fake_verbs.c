// SPDX-License-Identifier: Apache-2.0
/*
 * A verbs library for test_hw_verbs: one device "mlx5_0" whose answers FAKE_VERBS chooses: "" good,
 * "nosys" no list, "unopened", "hollow" (opens, has no port), "guid", "down" (other than sysfs).
 * It counts the devices that were opened.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_get_device_list

unsigned int fake_verbs_opens(void);
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *context, char *buf, size_t len);

static struct ibv_device device;
static struct ibv_context context;
static unsigned int opens;

static int is(const char *word)
{
	const char *mode = getenv("FAKE_VERBS");

	return mode && strcmp(mode, word) == 0;
}

unsigned int fake_verbs_opens(void)
{
	return opens;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	struct ibv_device **list;

	if (is("nosys")) {
		errno = ENOSYS;
		return NULL;
	}
	list = calloc(2, sizeof(*list));
	if (list)
		list[0] = &device;
	*n = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d == &device ? "mlx5_0" : NULL;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	opens++;
	return is("unopened") || d != &device ? NULL : &context;
}

int ibv_close_device(struct ibv_context *c)
{
	return c == &context ? 0 : -1;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *attr)
{
	const unsigned char guid[] = { 0xa0, 0x88, 0xc2, 0x03, 0, 0x12, 0x34, 0x56 };

	memset(attr, 0, sizeof(*attr));
	if (c != &context || is("hollow"))
		return 0;
	memcpy(&attr->node_guid, guid, sizeof(guid));
	memcpy(&attr->sys_image_guid, guid, sizeof(guid));
	if (is("guid"))
		attr->node_guid ^= 1;
	attr->phys_port_cnt = 1;
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "28.39.1002");
	return 0;
}

int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

	if (c != &context || port != 1)
		return EINVAL;
	attr->state = is("down") ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	attr->active_mtu = IBV_MTU_4096;
	return 0;
}

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *c, char *buf, size_t len)
{
	if (c != &context || is("nodirect"))
		return ENODEV;
	snprintf(buf, len, "/sys/devices/pci0009:00/0009:00:00.0/0009:03:00.0");
	return 0;
}

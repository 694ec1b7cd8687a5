// SPDX-License-Identifier: Apache-2.0
#include "cmd/published.h"

#include <errno.h>

#include "rpc/dra.h"

const char *const published_gpu_words[] = { "off", "own", NULL };
const char *const published_mirror_words[] = { "on", "off", NULL };

int published_check(struct published *p, struct publish_options *ret, struct err *err)
{
	unsigned int kinds;

	if (!p->node_name)
		return err_set(err, ERR_INVALID, EINVAL,
			       "--node-name is missing: set TWINRAIL_NODE_NAME from the field "
			       "spec.nodeName of the pod");
	if (!is_dns_subdomain(p->node_name))
		return err_set(err, ERR_INVALID, EINVAL,
			       "--node-name '%s' cannot be a node's name: give the name that "
			       "\"kubectl get nodes\" shows",
			       p->node_name);
	if (dra_driver_name_check(p->driver_name, err) < 0)
		return err_wrap(err, "--driver-name");
	if (publish_parse_kinds(p->publish, &kinds, err) < 0)
		return err_wrap(err, "--publish");
	if (kinds & PUBLISH_GPU && p->gpu == 0)
		return err_set(
			err, ERR_INVALID, EINVAL,
			"--publish names gpu, but --gpu is off: GPUs are the vendor's driver's "
			"then; give --gpu=own, or leave gpu out");
	if (topology_check(&p->topology, err) < 0)
		return err->code;
	if (p->gpu == 1)
		kinds |= PUBLISH_GPU;
	*ret = (struct publish_options){
		.driver = p->driver_name,
		.node_name = p->node_name,
		.kinds = kinds,
		.mirror = p->mirror == 0,
		.root_list = p->topology.pcie_root == PCIE_ROOT_LIST,
		.numa_list = p->topology.numa == 1,
	};
	return 0;
}

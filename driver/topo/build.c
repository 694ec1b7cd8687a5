// SPDX-License-Identifier: Apache-2.0
#include "topo/build.h"

#include "base/mem.h"
#include "base/str.h"

void topo_warn(struct builder *b, const char *code, const char *object, const char *fmt, ...)
{
	struct topo_warning *w = array_push(b->inv->warnings, b->inv->n_warnings, b->cap_warnings);
	va_list ap;

	va_start(ap, fmt);
	*w = (struct topo_warning){ code, str_printable(xstrdup(object), false),
				    str_printable(xvasprintf(fmt, ap), false) };
	va_end(ap);
}

struct inventory *topo_build(const struct hw_machine *machine, const struct topo_options *options)
{
	static const struct topo_options defaults = { .pcie_root = PCIE_ROOT_AUTO };
	struct builder b = {
		.machine = machine,
		.options = options ? options : &defaults,
		.inv = xnew(struct inventory),
		.data_direct = topo_has_data_direct(machine),
	};
	struct inventory *inv = b.inv;

	*inv = (struct inventory){
		.refs = 1,
		.node_name = xstrdup_null(b.options->node_name),
		.virtual_machine = machine->hypervisor,
		.rdma_cm_major = machine->rdma_cm_major,
		.rdma_cm_minor = machine->rdma_cm_minor,
		.nvlink_domain = xstrdup_null(b.options->nvlink_domain),
		.nvlink_domain_size = TOPO_UNKNOWN,
	};
	for (size_t i = 0; i < machine->n_warnings; i++)
		topo_warn(&b, machine->warnings[i].code, machine->warnings[i].object, "%s",
			  machine->warnings[i].message);
	topo_add_gpus(&b);
	topo_add_nics(&b);
	topo_set_platform(&b);
	topo_match_data_direct(&b);
	topo_add_cards(&b);
	topo_set_roots(&b);
	topo_set_frontends(&b);
	topo_add_pairs(&b);
	topo_set_links(&b);
	topo_set_acs(&b);
	topo_set_class(&b);
	topo_set_rails(&b);
	topo_set_excluded(&b);
	topo_set_best(&b);
	topo_set_gpu_groups(&b);
	topo_check_platform(&b);
	topo_check_routes(&b);
	topo_keep_bridges(&b);

	for (size_t i = 0; i < inv->n_nics; i++)
		place_done(&b.nics[i].place);
	for (size_t i = 0; i < inv->n_gpus; i++)
		place_done(&b.gpus[i]);
	free(b.functions);
	free(b.nics);
	free(b.gpus);
	return inv;
}

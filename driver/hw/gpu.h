/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TWINRAIL_HW_GPU_H
#define TWINRAIL_HW_GPU_H

#include "hw/machine.h"
#include "hw/root.h"

/* Internal to hw/: the readers of GPUs, one per vendor. */
#define HW_MAX_GPUS 1024

/* The entry of that function, a new one where there is none.  Valid until the next call. */
struct hw_gpu *hw_gpu_of(struct hw_machine *machine, const char *bus_id);

/* AMD: what the compute driver (KFD) and amdgpu tell of the functions they drive. */
void hw_read_amd(const struct hw_root *root, struct hw_machine *machine);

#endif

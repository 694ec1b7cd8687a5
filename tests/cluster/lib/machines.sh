# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The fake machine of each worker: a recorded machine unpacked to a folder that the node sees as /machine, and the CDI
# spec that NVIDIA's tools would have made there. Needs STATE.

MACHINES=(gb300 hgx-h100) # of worker 1 and worker 2

# unpack_machines: (re)make the folders; kept in place, since running nodes have them mounted
unpack_machines() {
	local m fixture new
	for m in "${MACHINES[@]}"; do
		mkdir -p "$STATE/machines/$m"
		fixture=$TOP/tests/fixtures/$m.machine
		if [ ! -x "$TOP/build/twinrail" ] || [ ! -f "$fixture" ]; then
			say "WARNING: machine $m stays empty: $([ -f "$fixture" ] && echo build/twinrail || echo "tests/fixtures/$m.machine") is missing; later: make && tests/cluster/lab machines"
			continue
		fi
		new=$STATE/machines/.new-$m
		rm -rf "$new"
		"$TOP/build/twinrail" snapshot --unpack "$fixture" "$new" > "$STATE/unpack-$m.log" 2>&1 ||
			die "twinrail snapshot --unpack $fixture failed:" "$(tail -n 5 "$STATE/unpack-$m.log")"
		find "$STATE/machines/$m" -mindepth 1 -delete
		cp -a "$new/." "$STATE/machines/$m/"
		rm -rf "$new"
	done
}

# cdi_specs: what nvidia-ctk would have written on each worker, from the GPUs of its machine
cdi_specs() {
	local m node
	for m in "${MACHINES[@]}"; do
		[ -d "$STATE/machines/$m/proc/driver/nvidia/gpus" ] || continue
		node=$(node_name "$m")
		"$HERE/lib/nvidia-cdi" "$STATE/machines/$m" > "$STATE/nvidia-$m.yaml"
		lab_docker exec -i "$node" sh -c 'mkdir -p /var/run/cdi && cat > /var/run/cdi/.nvidia.tmp && mv /var/run/cdi/.nvidia.tmp /var/run/cdi/nvidia.yaml' \
			< "$STATE/nvidia-$m.yaml"
	done
}

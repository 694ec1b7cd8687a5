# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What is needed to understand a failed run, in one folder. Needs STATE and a cluster that may be half dead.

collect_logs() {
	local dir=$1 k=(timeout 20 "$STATE/bin/kubectl") what pod node
	mkdir -p "$dir/nodes"
	cp "$STATE"/*.log "$dir/" 2> /dev/null || true
	if [ -x "$STATE/bin/kubectl" ] && "${k[@]}" get --raw /readyz > /dev/null 2>&1; then
		"${k[@]}" get nodes,pods,daemonsets,deviceclasses -A -o wide > "$dir/overview.txt" 2>&1 || true
		"${k[@]}" get events -A --sort-by=.lastTimestamp > "$dir/events.txt" 2>&1 || true
		for what in resourceslices deviceclasses resourceclaims resourceclaimtemplates pods events; do
			"${k[@]}" get "$what" -A -o yaml > "$dir/$what.yaml" 2>&1 || true
		done
		for pod in $("${k[@]}" -n twinrail get pods -o name 2> /dev/null); do
			"${k[@]}" -n twinrail describe "$pod" > "$dir/${pod#pod/}.describe.txt" 2>&1 || true
			"${k[@]}" -n twinrail logs --timestamps --all-containers "$pod" > "$dir/${pod#pod/}.log" 2>&1 || true
			"${k[@]}" -n twinrail logs --timestamps --all-containers --previous "$pod" > "$dir/${pod#pod/}.previous.log" 2> /dev/null ||
				rm -f "$dir/${pod#pod/}.previous.log"
		done
	else
		echo "the API server did not answer" > "$dir/overview.txt"
	fi
	for node in $(lab_nodes); do
		lab_docker exec "$node" journalctl --no-pager -u kubelet -u containerd > "$dir/nodes/$node-journal.txt" 2>&1 || true
		# shellcheck disable=SC2016 # for the shell on the node
		lab_docker exec "$node" sh -c 'for f in /var/run/cdi/* /var/lib/kubelet/plugins/twinrail.dev/claims/*; do
			[ ! -f "$f" ] || { echo "== $f"; cat "$f"; echo; }; done; ls -laR /var/lib/kubelet/plugins /var/lib/kubelet/plugins_registry' \
			> "$dir/nodes/$node-driver.txt" 2>&1 || true
	done
	timeout 90 "$STATE/bin/kind" export logs "$dir/kind" --name "$CLUSTER" > "$dir/kind.txt" 2>&1 || true
	say "logs are in ${dir#"$PWD"/}"
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The docker that carries the nodes: the user's own where it can get kind's node image, else one of ours, in a pid,
# network and mount namespace of its own. Needs STATE, RUN and ID (see lab).

kind_default_image() { grep -aoE 'kindest/node:v[0-9.]+@sha256:[0-9a-f]{64}' "$(find_tool kind)" | head -n 1; }

published_node_image() {
	if [ -n "${TWINRAIL_NODE_IMAGE:-}" ]; then
		echo "$TWINRAIL_NODE_IMAGE"
	elif [ "$K8S_MINOR" = 1.37 ]; then
		kind_default_image
	else
		echo "kindest/node:$(kubernetes_version)"
	fi
}

# user_docker_usable: does the user's docker run, and has it (or gets it) a node image?
user_docker_usable() {
	local image
	command -v docker > /dev/null 2>&1 && timeout 20 docker info > /dev/null 2>&1 || return 1
	image=$(published_node_image) && [ -n "$image" ] || return 1
	docker image inspect "$image" > /dev/null 2>&1 || timeout 600 docker pull -q "$image" > /dev/null 2>&1
}

# choose_docker: prints own or user
choose_docker() {
	case ${TWINRAIL_DOCKER:-auto} in
	own | user) echo "$TWINRAIL_DOCKER" ;;
	auto) if user_docker_usable; then echo user; else echo own; fi ;;
	*) die "TWINRAIL_DOCKER=$TWINRAIL_DOCKER is not one of auto, own, user" ;;
	esac
}

own_docker() { DOCKER_HOST="unix://$RUN/d.sock" docker "$@"; }

start_own_docker() {
	need_root
	need docker.io=dockerd docker.io=docker iproute2=ip util-linux=unshare
	if alive "$RUN/ns.pid" && own_docker version > /dev/null 2>&1; then
		return 0
	fi
	stop_own_docker
	mkdir -p "$RUN" "$STATE/docker"
	chmod 700 "$RUN"
	(
		exec {LOCK_FD}>&-
		exec setsid unshare --net --mount --pid --fork --kill-child=KILL --mount-proc --propagation slave \
			"$HERE/lib/dockerd-ns" "$RUN" "$STATE/docker" "$CGROUP" > "$STATE/dockerd.log" 2>&1 < /dev/null
	) &
	sleep 0.2
	record_pid $! "$RUN/ns.pid"
	wait_for 40 docker_answers || die "our docker did not start; the end of $STATE/dockerd.log:" "$(tail -n 8 "$STATE/dockerd.log")"
}
docker_answers() {
	alive "$RUN/ns.pid" || return 1
	own_docker version > /dev/null 2>&1
}

# The process that holds the namespaces, as seen from here (child of unshare)
ns_init() { head -n 1 "/proc/$(pid_of "$RUN/ns.pid")/task/$(pid_of "$RUN/ns.pid")/children" | awk '{print $1}'; }

stop_own_docker() {
	local init
	if alive "$RUN/ns.pid"; then
		init=$(ns_init)
		[ -z "$init" ] || kill -TERM "$init" 2> /dev/null || true
		wait_for 15 not_alive || kill -KILL "$(pid_of "$RUN/ns.pid")" 2> /dev/null || true
		wait_for 10 not_alive || say "process $(pid_of "$RUN/ns.pid") does not end"
	fi
	remove_cgroups
	rm -rf "$RUN"
}
not_alive() { ! alive "$RUN/ns.pid"; }

# Everything of the lab is in one cgroup per hierarchy; processes that linger there are of a killed run.
remove_cgroups() {
	local root dir
	for root in /sys/fs/cgroup /sys/fs/cgroup/*; do
		dir=$root/$CGROUP
		[ -d "$dir" ] || continue
		[ ! -e "$dir/cgroup.kill" ] || echo 1 > "$dir/cgroup.kill" || true
		wait_for 5 rmdir_tree "$dir" || say "cgroup $dir could not be removed"
	done
}
rmdir_tree() {
	find "$1" -depth -type d -exec rmdir {} + 2> /dev/null || true
	[ ! -d "$1" ]
}

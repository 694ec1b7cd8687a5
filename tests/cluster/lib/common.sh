# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2034 # the variables are for those who source it
# Paths, logging, locks and hashes shared by the cluster scripts. Source it after `set -euo pipefail`.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOP=$(cd "$HERE/../.." && pwd)
CACHE=${TWINRAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/twinrail}/cluster
K8S_MINOR=${K8S_MINOR:-1.37}
TWINRAIL_IMAGE=twinrail.dev/twinrail:dev
BUSYBOX_IMAGE=twinrail.dev/test-busybox:1
BASE_IMAGE=docker.io/library/debian:12-slim

say() { printf '%s [%4ds] %s\n' "${SELF:-lab}" "$SECONDS" "$*" >&2; }
die() {
	printf '%s: %s\n' "${SELF:-lab}" "$1" >&2
	shift
	(($# == 0)) || printf '    %s\n' "$@" >&2
	exit "${DIE_STATUS:-2}"
}

# need PACKAGE=COMMAND ...: stop with one apt-get line that names everything missing
need() {
	local p missing=()
	for p in "$@"; do
		command -v "${p#*=}" > /dev/null 2>&1 || missing+=("${p%%=*}")
	done
	((${#missing[@]} == 0)) || die "missing commands; install them with:" "apt-get install -y --no-install-recommends ${missing[*]}"
}

need_root() { [ "$(id -u)" = 0 ] || die "this needs root (own network namespace, own docker)" "run it with sudo, or start a docker that can pull kind's node image"; }

# hash_of FILE_OR_STRING ...: 12 hex digits over the contents of files (with folders walked) and the strings themselves
hash_of() {
	local a
	for a in "$@"; do
		if [ -d "$a" ]; then
			(cd "$a" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum)
		elif [ -f "$a" ]; then
			sha256sum < "$a"
		else
			printf '%s\n' "$a"
		fi
	done | sha256sum | cut -c1-12
}

# with_lock NAME COMMAND ...: one such command at a time on this machine
with_lock() {
	local name=$1 fd
	shift
	mkdir -p "$CACHE/locks"
	exec {fd}> "$CACHE/locks/$name"
	flock "$fd"
	"$@"
	exec {fd}>&-
}

# alive PIDFILE: the file holds "PID STARTTIME" of a process that still runs (a recycled pid does not count)
alive() {
	local pid start
	[ -s "$1" ] || return 1
	read -r pid start < "$1" || return 1
	[ "$(start_time "$pid")" = "$start" ]
}
start_time() { sed -E 's/.*\) //' "/proc/$1/stat" 2> /dev/null | cut -d' ' -f20; }
pid_of() { cut -d' ' -f1 "$1"; }
record_pid() { printf '%s %s\n' "$1" "$(start_time "$1")" > "$2"; }

# wait_for SECONDS COMMAND ...: until it succeeds
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.2
	done
}

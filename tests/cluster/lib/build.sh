# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Binaries of a cluster from pinned Go modules (go/*), each set cached under a hash of its inputs.

GO_MINOR_NEEDED=26

go_setup() {
	need golang-go=go
	export CGO_ENABLED=0 GOWORK=off GOFLAGS="${GOFLAGS:-} -buildvcs=false"
	local minor
	minor=$(GOTOOLCHAIN=local go env GOVERSION | sed -E 's/^go1\.([0-9]+).*/\1/')
	# An older go fetches the toolchain that go.mod asks for, as a module.
	((minor >= GO_MINOR_NEEDED)) || export GOTOOLCHAIN=auto
	((minor >= 21)) || die "go 1.$minor is too old" "Debian 12: apt-get install -y -t bookworm-backports golang-go"
}

module_version() { awk -v m="$2" '$1 == "require" && $2 == m {print $3} $1 == m {print $2}' "$HERE/go/$1/go.mod" | head -n 1; }

kubernetes_set() {
	[ -d "$HERE/go/kubernetes-$K8S_MINOR" ] || die "K8S_MINOR=$K8S_MINOR is not known" "known: $(cd "$HERE/go" && echo kubernetes-*)"
	echo "kubernetes-$K8S_MINOR"
}
kubernetes_version() { module_version "$(kubernetes_set)" k8s.io/kubernetes; }

# recipe SET: the arguments of `go build`, one per line, with OUT for the output folder
recipe() {
	local ld="-s -w" version v=k8s.io/component-base/version
	case $1 in
	kubernetes-*)
		version=$(kubernetes_version)
		printf '%s\n' -ldflags "$ld -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=${K8S_MINOR#1.}" -o OUT/ \
			k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kube-proxy,kubelet,kubeadm,kubectl}
		;;
	etcd) printf '%s\n' -ldflags "$ld" -o OUT/etcd go.etcd.io/etcd/server/v3 ;;
	containerd)
		printf '%s\n' -ldflags "$ld" -tags no_btrfs,no_devmapper,no_zfs -o OUT/ \
			github.com/containerd/containerd/v2/cmd/{containerd,ctr,containerd-shim-runc-v2}
		;;
	cni)
		printf '%s\n' -ldflags "$ld" -o OUT/ \
			github.com/containernetworking/plugins/plugins/{main/ptp,main/bridge,main/loopback,ipam/host-local}
		;;
	crictl) printf '%s\n' -ldflags "$ld" -o OUT/crictl sigs.k8s.io/cri-tools/cmd/crictl ;;
	kind) printf '%s\n' -ldflags "$ld" -o OUT/kind sigs.k8s.io/kind ;;
	helm) printf '%s\n' -ldflags "$ld" -o OUT/helm helm.sh/helm/v4/cmd/helm ;;
	# seccomp: without the tag every pod sandbox fails
	runc) printf '%s\n' -ldflags "$ld" -tags seccomp -o OUT/runc github.com/opencontainers/runc ;;
	*) die "no recipe for $1" ;;
	esac
}

# set_dir SET: where its binaries are (or will be)
set_dir() { echo "$CACHE/bin/$1-$(hash_of "$HERE/go/$1" "$(recipe "$1")" "$(uname -m)")"; }

build_set() {
	local dir
	dir=$(set_dir "$1")
	[ -d "$dir" ] || with_lock build build_set_locked "$1" "$dir"
}

build_set_locked() {
	local name=$1 dir=$2 t=$SECONDS args
	[ ! -d "$dir" ] || return 0
	go_setup
	rm -rf "$CACHE/bin/".tmp-*
	mkdir -p "$CACHE/bin/.tmp-$name"
	say "building $name from Go modules (cached afterwards)"
	mapfile -t args < <(recipe "$name" | sed "s#OUT/#$CACHE/bin/.tmp-$name/#")
	(
		cd "$HERE/go/$name"
		# runc is the one with C inside
		[ "$name" != runc ] || {
			need libseccomp-dev=gcc pkg-config=pkg-config
			export CGO_ENABLED=1
		}
		go build -trimpath "${args[@]}" 2> "$CACHE/bin/.tmp-$name.log"
	) || die "building $name failed:" "$(grep -v '^go: downloading' "$CACHE/bin/.tmp-$name.log" | tail -n 20)"
	mv -T "$CACHE/bin/.tmp-$name" "$dir"
	rm -f "$CACHE/bin/.tmp-$name.log"
	say "built $name in $((SECONDS - t)) s"
}

# everything a home-built node needs
node_sets() { echo "$(kubernetes_set)" etcd containerd cni crictl runc; }

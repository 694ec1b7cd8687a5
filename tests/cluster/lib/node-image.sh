# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# kind's node image without a registry: the base files of kind's own Go module, Debian's systemd, our binaries, and the
# images of the control plane. Its archive is cached under a hash of all that goes into it (this file, too).

node_image_name() { echo "kindest/node:$(kubernetes_version)"; }
node_image_tar() {
	local s dirs=()
	for s in $(node_sets); do dirs+=("$(basename "$(set_dir "$s")")"); done
	echo "$CACHE/node/$(kubernetes_version)-$(hash_of "${dirs[@]}" "$HERE/go/kind" "$HERE/lib/node-image.sh" "$HERE/lib/oci-archive").tar"
}

# node_image: make the archive of the home-built node image unless it is cached
node_image() {
	local tar s
	tar=$(node_image_tar)
	[ ! -f "$tar" ] || return 0
	for s in $(node_sets) kind; do build_set "$s"; done
	base_image
	with_lock node-image node_image_locked "$tar"
}

node_image_locked() {
	local tar=$1 t=$SECONDS version x base bin s list pause kind_module
	[ ! -f "$tar" ] || return 0
	need buildah=buildah musl-tools=musl-gcc
	go_setup
	version=$(kubernetes_version)
	say "making $(node_image_name) (cached afterwards)"
	mkdir -p "$CACHE/node"
	rm -rf "$CACHE/node/".ctx-*
	x=$CACHE/node/.ctx-$version
	mkdir -p "$x"/{bin,cni,proxy} "$x.img"
	kind_module=$(cd "$HERE/go/kind" && go list -m -f '{{.Dir}}' sigs.k8s.io/kind)
	[ -n "$kind_module" ] || kind_module=$(cd "$HERE/go/kind" && go mod download -json sigs.k8s.io/kind | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	cp -r --no-preserve=mode "$kind_module/images/base/files" "$x/files"
	bin=$(set_dir "$(kubernetes_set)")
	for s in "$(kubernetes_set)" containerd crictl runc; do cp "$(set_dir "$s")"/* "$x/bin/"; done
	rm -f "$x"/bin/kube-*
	cp "$(set_dir cni)"/* "$x/cni/"

	# images of the control plane, under the names that kubeadm will look for
	list=$("$bin/kubeadm" config images list --kubernetes-version "$version" 2> /dev/null)
	base=$(sed -n 's#/kube-apiserver:.*##p' <<< "$list")
	for s in kube-apiserver kube-controller-manager kube-scheduler; do
		"$HERE/lib/oci-archive" "$base/$s:$version" "$x.img/$s.tar" "$bin/$s:/usr/local/bin/$s" -- "/usr/local/bin/$s"
	done
	"$HERE/lib/oci-archive" "$(grep /etcd: <<< "$list")" "$x.img/etcd.tar" "$(set_dir etcd)/etcd:/usr/local/bin/etcd" -- /usr/local/bin/etcd
	pause=$(grep /pause: <<< "$list")
	printf 'int pause(void);\nint main(void) { for (;;) pause(); }\n' > "$x.img/pause.c"
	musl-gcc -static -Os -s -o "$x.img/pause" "$x.img/pause.c"
	"$HERE/lib/oci-archive" "$pause" "$x.img/pause.tar" "$x.img/pause:/pause" -- /pause
	cp "$bin/kube-proxy" "$x/proxy/"
	cat > "$x/proxy/Dockerfile" <<- D
		FROM $BASE_IMAGE
		RUN apt-get update && apt-get install -y --no-install-recommends nftables iptables conntrack kmod && rm -rf /var/lib/apt/lists/*
		COPY kube-proxy /usr/local/bin/
	D
	build_quiet "$CACHE/node/kube-proxy.log" --no-cache -t "$base/kube-proxy:$version" "$x/proxy"
	bud push -q "$base/kube-proxy:$version" "docker-archive:$x.img/kube-proxy.tar:$base/kube-proxy:$version" > /dev/null
	rm -rf "$x/proxy" "$x.img"/pause "$x.img/pause.c"

	# pods of one node reach each other, the API server and the outside; pods of different nodes do not
	cat > "$x/10.conflist" <<- D
		{"cniVersion": "1.0.0", "name": "kind", "plugins": [{"type": "ptp", "ipMasq": true, "ipMasqBackend": "nftables",
		 "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	D
	printf 'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: standard}\nprovisioner: none.invalid/none\n' > "$x/storage.yaml"
	# All of kind's own base image, with Debian's systemd, our binaries, and the images imported at build time
	cat > "$x/Dockerfile" <<- D
		FROM $BASE_IMAGE
		COPY files/usr/local/bin/ /usr/local/bin/
		COPY files/kind/ /kind/
		COPY files/etc/ /etc/
		RUN chmod 755 /kind /kind/bin /kind/bin/* /usr/local/bin/* \\
		 && DEBIAN_FRONTEND=noninteractive clean-install systemd conntrack iptables nftables iproute2 ethtool util-linux mount \\
		    kmod libseccomp2 pigz bash ca-certificates curl jq procps \\
		 && find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete \\
		 && rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* \\
		    /lib/systemd/system/local-fs.target.wants/* /lib/systemd/system/sockets.target.wants/*udev* \\
		    /lib/systemd/system/sockets.target.wants/*initctl* /lib/systemd/system/basic.target.wants/* \\
		 && echo ReadKMsg=no >> /etc/systemd/journald.conf && (test -e /sbin/init || ln -s /usr/lib/systemd/systemd /sbin/init) \\
		 && systemctl enable kubelet containerd undo-mount-hacks && systemctl mask systemd-binfmt \\
		 && mkdir -p /etc/kubernetes/manifests /opt/cni/bin /kind/manifests /etc/cni/net.d /usr/local/sbin
		COPY bin/ /usr/local/bin/
		COPY cni/ /opt/cni/bin/
		COPY storage.yaml /kind/manifests/default-storage.yaml
		COPY 10.conflist /etc/cni/net.d/
		RUN for f in kubeadm kubelet kubectl; do ln -sf /usr/local/bin/\$f /usr/bin/\$f; done \\
		 && ln -sf /usr/local/bin/runc /usr/local/sbin/runc && echo $version > /kind/version \\
		 && ctr oci spec | jq 'del(.process.rlimits)' > /etc/containerd/cri-base.json \\
		 && sed -i 's#sandbox_image = .*#sandbox_image = "$pause"#; s/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' \\
		    /etc/containerd/config.toml
		RUN containerd > /tmp/containerd.log 2>&1 & pid=\$!; for i in \$(seq 100); do ctr version > /dev/null 2>&1 && break; sleep 0.1; done; \\
		 for f in /img/*.tar; do ctr -n k8s.io images import --no-unpack \$f || { cat /tmp/containerd.log; exit 1; }; done; \\
		 kill \$pid; wait \$pid; rm -rf /tmp/containerd.log /run/containerd
		ENV container=docker
		STOPSIGNAL SIGRTMIN+3
		ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]
	D
	build_quiet "$CACHE/node/image.log" --no-cache --volume "$x.img:/img:ro" -t "$(node_image_name)" "$x"
	bud push -q "$(node_image_name)" "docker-archive:$tar.tmp:$(node_image_name)" > /dev/null
	mv "$tar.tmp" "$tar"
	# older archives of the same version are of no use any more
	find "$CACHE/node" -name "$version-*.tar" ! -path "$tar" -delete
	bud rmi -f "$(node_image_name)" > /dev/null 2>&1 || true
	rm -rf "$x" "$x.img"
	say "made $(node_image_name) in $((SECONDS - t)) s"
}

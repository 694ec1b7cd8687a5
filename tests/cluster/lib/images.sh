# shellcheck shell=bash
# Images made without a registry: a Debian base from the archive, kind's node image, the image of a Dockerfile.

# Our own image store: nothing of the user's is touched
bud() {
	local run=/run/twinrail-buildah
	BUILDAH_ISOLATION=chroot buildah --root "$CACHE/buildah" --runroot "$run" --storage-driver overlay "$@"
}

base_image() {
	need_root
	need buildah=buildah mmdebstrap=mmdebstrap
	bud inspect "$BASE_IMAGE" > /dev/null 2>&1 || with_lock base-image base_image_locked
}
base_image_locked() {
	local c dir
	! bud inspect "$BASE_IMAGE" > /dev/null 2>&1 || return 0
	say "making $BASE_IMAGE from the Debian archive"
	dir=$(mktemp -d "$CACHE/.base.XXXXXX")
	mmdebstrap --variant=minbase --include=ca-certificates bookworm "$dir/base.tar" 2> "$dir/log" ||
		die "mmdebstrap failed:" "$(tail -n 5 "$dir/log")"
	c=$(bud from scratch)
	bud add -q "$c" "$dir/base.tar" / > /dev/null
	bud config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$c"
	bud commit -q "$c" "$BASE_IMAGE" > /dev/null
	bud rm "$c" > /dev/null
	rm -rf "$dir"
}

node_image_name() { echo "kindest/node:$(kubernetes_version)"; }
node_image_tar() {
	local s dirs=()
	for s in $(node_sets); do dirs+=("$(basename "$(set_dir "$s")")"); done
	echo "$CACHE/node/$(kubernetes_version)-$(hash_of "${dirs[@]}" "$HERE/go/kind" "$HERE/lib/images.sh" "$HERE/lib/oci-archive").tar"
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
	build_quiet "$CACHE/node/kube-proxy.log" -t "$base/kube-proxy:$version" "$x/proxy"
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
	build_quiet "$CACHE/node/image.log" --volume "$x.img:/img:ro" -t "$(node_image_name)" "$x"
	bud push -q "$(node_image_name)" "docker-archive:$tar.tmp:$(node_image_name)" > /dev/null
	mv "$tar.tmp" "$tar"
	# older archives of the same version are of no use any more
	find "$CACHE/node" -name "$version-*.tar" ! -path "$tar" -delete
	bud rmi -f "$(node_image_name)" > /dev/null 2>&1 || true
	rm -rf "$x" "$x.img"
	say "made $(node_image_name) in $((SECONDS - t)) s"
}

# build_quiet LOG BUD_ARGUMENTS ...: buildah bud whose output is shown only when it fails
build_quiet() {
	local log=$1
	shift
	bud bud --pull-never --network host "$@" > "$log" 2>&1 || die "building an image failed; the end of $log:" "$(tail -n 15 "$log")"
}

# busybox_image: make the archive of the small image that the tests' pods run, unless it is there
busybox_tar() { echo "$CACHE/busybox-$(hash_of "$HERE/lib/oci-archive" "$(uname -m)" "$BUSYBOX_IMAGE").tar"; }
busybox_image() {
	local tar x applet links=()
	tar=$(busybox_tar)
	[ ! -f "$tar" ] || return 0
	mkdir -p "$CACHE"
	x=$(mktemp -d "$CACHE/.busybox.XXXXXX")
	if command -v busybox > /dev/null && ! ldd "$(command -v busybox)" > /dev/null 2>&1; then
		cp "$(command -v busybox)" "$x/busybox"
	else
		(cd "$x" && apt-get download -q busybox-static > log 2>&1 && dpkg-deb -x busybox-static_*.deb root) ||
			die "no static busybox:" "apt-get install -y busybox-static"
		cp "$x"/root/bin/busybox "$x/busybox" 2> /dev/null || cp "$x"/root/usr/bin/busybox "$x/busybox"
	fi
	for applet in sh ls cat env sleep printenv stat test echo grep sed awk nc wget ip find wc sort head tail mkdir rm true false id; do
		links+=("LINK:/bin/$applet=busybox")
	done
	"$HERE/lib/oci-archive" "$BUSYBOX_IMAGE" "$x/image.tar" "$x/busybox:/bin/busybox" "${links[@]}" -- /bin/busybox
	mv "$x/image.tar" "$tar"
	rm -rf "$x"
}

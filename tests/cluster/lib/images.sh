# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Images made without a registry: a Debian base from the archive, the image of a Dockerfile, a small one for pods.

# Our own image store: nothing of the user's is touched
bud() {
	local run
	run=/run/twinrail-buildah-$(printf %s "$CACHE" | sha256sum | cut -c1-8)
	# a mount namespace for each call: no mount stays behind
	BUILDAH_ISOLATION=chroot unshare --mount --propagation private buildah --root "$CACHE/buildah" --runroot "$run" --storage-driver overlay "$@"
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

# build_quiet LOG BUD_ARGUMENTS ...: buildah bud whose output is shown only when it fails
build_quiet() {
	local log=$1
	shift
	bud bud --force-rm --pull-never --network host "$@" > "$log" 2>&1 || die "building an image failed; the end of $log:" "$(tail -n 15 "$log")"
}

# busybox_image: make the archive of the small image that the tests' pods run, unless it is there
# (the second name is that of the examples below deploy/)
BUSYBOX_NAMES=$BUSYBOX_IMAGE,docker.io/library/busybox:1.37
busybox_tar() { echo "$CACHE/busybox-$(hash_of "$HERE/lib/oci-archive" "$(uname -m)" "$BUSYBOX_NAMES").tar"; }
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
	"$HERE/lib/oci-archive" "$BUSYBOX_NAMES" "$x/image.tar" "$x/busybox:/bin/busybox" "${links[@]}" -- /bin/busybox
	mv "$x/image.tar" "$tar"
	rm -rf "$x"
}

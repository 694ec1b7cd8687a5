#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compare proto/ with kubelet's own descriptors, then see that a changed number is noticed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
proto=$(cd "$here/../../../proto" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

files="dra/v1/dra_v1.proto dra/v1beta1/dra_v1beta1.proto pluginregistration/v1/registration.proto"

(cd "$here" && go build -o "$tmp/proto_check" .)
# shellcheck disable=SC2086
(cd "$proto" && protoc --descriptor_set_out="$tmp/ours.pb" -I. $files)
"$tmp/proto_check" "$tmp/ours.pb"

for edit in 's/string device_name = 3/string device_name = 13/' 's/string error = 2/bytes error = 2/' \
	's/rpc NodeUnprepareResources(/rpc NodeUnprepare(/' 's/optional string share_id/string share_id/'; do
	rm -rf "$tmp/p"
	cp -R "$proto" "$tmp/p"
	sed -i "$edit" "$tmp/p/dra/v1/dra_v1.proto"
	# shellcheck disable=SC2086
	(cd "$tmp/p" && protoc --descriptor_set_out="$tmp/wrong.pb" -I. $files)
	if "$tmp/proto_check" "$tmp/wrong.pb" >"$tmp/out"; then
		echo "the change $edit was not noticed" >&2
		exit 1
	fi
	sed 's/^/noticed: /' "$tmp/out"
done

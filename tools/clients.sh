#!/usr/bin/env bash
# Installs the programs that tests use: clients of `fullstroke serve`, and a browser for its pages.
# Never fails: tests that miss a program say so and are skipped.
set -uo pipefail

# program:package, as Debian and Ubuntu name them
wanted=(fio:fio nbdkit:nbdkit nbdinfo:libnbd-bin nbdcopy:libnbd-bin nbdsh:python3-libnbd
	qemu-img:qemu-utils qemu-io:qemu-utils nbdfuse:nbdfuse fusermount3:fuse3 mkfs.xfs:xfsprogs
	xfs_repair:xfsprogs mkfs.ext4:e2fsprogs e2fsck:e2fsprogs losetup:mount chromium:chromium)

PATH=$PATH:/usr/sbin:/sbin

missing() {
	local entry
	for entry in "${wanted[@]}"; do
		command -v "${entry%%:*}" >/dev/null || echo "${entry##*:}"
	done | sort -u | tr '\n' ' '
}

packages=$(missing)
[ -z "$packages" ] && exit 0

root=
[ "$(id -u)" = 0 ] || root="sudo -n"
if command -v apt-get >/dev/null && { [ -z "$root" ] || $root true 2>/dev/null; }; then
	echo "installing ${packages}for the tests"
	install() {
		# One by one: a package that the distribution lacks must not keep the others out.
		for package in $packages; do
			DEBIAN_FRONTEND=noninteractive $root apt-get install -y --no-install-recommends "$package"
		done
	}
	{ install || { $root apt-get update && install; }; } >/dev/null 2>&1
	packages=$(missing)
fi
[ -z "$packages" ] || echo "Some tests will be skipped. Install: sudo apt-get install -y $packages"
exit 0

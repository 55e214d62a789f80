# shellcheck shell=bash disable=SC2034,SC2154 # read by, and read from, capture.sh
# A large compilation: the Linux kernel, with debug information as distributors
# build it, from a cold source tree, two compilers at a time. The window opens
# with the first make and closes while the build is still running.

workload_title="compilation of the Linux kernel, make -j2"
workload_seconds=420
workload_memory=$((512 << 20))
workload_packages=(gcc make libc6-dev flex bison bc libelf-dev libssl-dev xz-utils cpio)
readonly kernel_package=${KERNEL_PACKAGE:-linux-source-6.1}

workload_prepare() {
    age_volume
    (cd "$scratch" && apt-get download -qq -o APT::Sandbox::User=root "$kernel_package")
    mkdir "$volume_mount/build"
    # The package holds the tree as a compressed archive within an archive.
    dpkg-deb --fsys-tarfile "$scratch/$kernel_package"_*.deb |
        tar -x --to-stdout "./usr/src/$kernel_package.tar.xz" |
        tar -x --xz --strip-components=1 -C "$volume_mount/build"
}

workload_warm() { :; }

workload_run() {
    local status=0
    # shellcheck disable=SC2016 # the inner shell expands these
    limited nice -n 10 timeout "$1" sh -e -c '
        cd "$0"
        make -s defconfig
        scripts/config --disable DEBUG_INFO_NONE --enable DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT
        make -s olddefconfig
        make -s -j2
    ' "$volume_mount/build" >"$scratch/build.log" 2>&1 || status=$?
    # 124: the window closed first, which is how it is meant to end.
    ((status == 0 || status == 124)) || fail "the build ended with status $status: $(tail -n 3 "$scratch/build.log")"
}

workload_stop() { :; }

workload_versions() {
    echo "source: $(basename "$scratch/$kernel_package"_*.deb .deb)"
    echo "compiler: $(gcc --version | head -n 1)"
}

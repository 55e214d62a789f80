#!/usr/bin/env python3
"""An array served over ublk, tried on a kernel that has it, in an emulated machine.

The machine is QEMU's, all in software, so that no root is needed and the host's kernel may be
any. Its kernel is that of --kernel: a folder with boot/vmlinuz-VERSION and
lib/modules/VERSION (`/`, unless given), or a Debian package linux-image-*.deb. Its disk is an
archive in memory with busybox, the program, what this needs, and the steps below. Members are files on
tmpfs. Prints a line for each step, and PASS; status 1 if a step fails, 2 if it cannot be
tried here.

Needs qemu-system-x86_64, a static busybox, mke2fs, e2fsck, blkdiscard, dd, ldd, cpio; dpkg-deb and tar for a package.
"""

import argparse
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from checks import Impossible, add_program, needs, program, unpacked

PACKAGES = "qemu-system-x86, busybox-static, e2fsprogs, util-linux, cpio"
# Files of a package that the machine needs.
WANTED = ["./boot/vmlinuz-*", "*/ublk_drv.ko*", "*/fs/ext4/*", "*/fs/jbd2/*", "*/fs/mbcache.ko*", "*/crc16.ko*", "*crc32c*.ko*"]
# For the machine to be done; it takes a minute where nobody else computes.
PATIENCE_S = 900
# Module names, and those that ext4 and its checksums need.
MODULES = re.compile(r"/(ublk_drv|ext4|jbd2|mbcache|crc16|crc32c[\w-]*|libcrc32c)\.ko(\.xz)?$")

INIT = r"""#!/bin/busybox sh
# The shell prefers its own programs to those of the host, which are called by their paths.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mkdir -p /dev /proc /sys /a /m /tmp /etc
mount -t devtmpfs none /dev; mount -t proc none /proc; mount -t sysfs none /sys
mount -t tmpfs -o size=400m none /a
touch /etc/mtab
ifconfig lo up
end() { sync; poweroff -f; }
fail() { echo "FAIL: $*"; cat /a/log; dmesg | tail -20; end; }
step() { echo "step: $*"; }
until_so() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -gt 600 ] && fail "waited a minute for: $1"; usleep 100000; done; }
sum_of() { sha256sum "$1" | cut -d' ' -f1; }
forget() { sync; echo 3 > /proc/sys/vm/drop_caches; }
assemble() {
	: > /a/log
	fullstroke array assemble /a/0 /a/1 /a/2 /a/3 --ublk --socket /a/socket --control /a/control --metrics 9100 > /a/log 2>&1 &
	server=$!
	until_so 'grep -q "^orders at" /a/log || ! kill -0 $server 2>/dev/null'
	grep -q 'serving vol (raid5 of 4, [a-z]*) at /dev/ublkb0$' /a/log || fail "not served"
	[ -S /a/socket ] || fail "no socket beside the device"
	[ -b /dev/ublkb0 ] || fail "no /dev/ublkb0"
}
count() { wget -qO- http://127.0.0.1:9100/metrics | sed -n "s/^fullstroke_requests_total{.*\"$1\"} //p"; }
queue() { cat /sys/block/ublkb0/queue/$1; }
gone() { until_so '[ ! -e /dev/ublkb0 ]'; }

step "kernel $(uname -r)"
fullstroke array assemble /a/0 --ublk --control /a/control > /a/log 2>&1 && fail "served without ublk"
grep -q 'cannot open `/dev/ublk-control`.*modprobe ublk_drv.*--socket' /a/log || fail "no word of /dev/ublk-control"
step "without ublk_drv: $(cat /a/log | tr '\n' ' ')"
depmod; modprobe crc32c_generic 2>/dev/null; modprobe ext4 || fail "no ext4"
modprobe ublk_drv || fail "no ublk_drv"
[ -c /dev/ublk-control ] || fail "no /dev/ublk-control"
step "/dev/ublk-control is there"

for n in 0 1 2 3; do truncate -s 48M /a/$n; done
fullstroke array create vol /a/0 /a/1 /a/2 /a/3 --layout raid5 --chunk 64KiB --sparse > /a/log 2>&1 || fail "not made"
assemble
size=$(blockdev --getsize64 /dev/ublkb0)
[ "$(queue rotational) $(queue fua) $(queue write_cache)" = "1 1 write back" ] || fail "rotational, fua, write_cache"
[ "$(queue discard_max_bytes)" -gt 0 ] && [ "$(queue write_zeroes_max_bytes)" -gt 0 ] || fail "discard, zeroes"
step "served: $size bytes, blocks of $(queue logical_block_size), requests up to $(queue max_sectors_kb) KiB"

dd if=/dev/urandom of=/a/data bs=1M count=64 2>/dev/null
dd if=/a/data of=/dev/ublkb0 bs=1M conv=fsync 2>/dev/null || fail "not written"
forget
dd if=/dev/ublkb0 of=/a/back bs=1M count=64 2>/dev/null
cmp /a/data /a/back || fail "what was read is not what was written"
flushes=$(count flush)
[ "$flushes" -gt 0 ] || fail "no flush came"
step "64 MiB written, flushed, read back; $(count write) writes, $(count read) reads, $flushes flushes"

/bin/dd if=/a/data of=/dev/ublkb0 bs=4k count=64 seek=20000 oflag=sync,direct 2>>/a/log || fail "no writes of 4 KiB"
/bin/dd if=/dev/ublkb0 of=/a/back bs=4k count=64 skip=20000 iflag=direct 2>/dev/null
cmp -n 262144 /a/data /a/back || fail "writes of 4 KiB"
rm /a/back
step "64 writes of 4 KiB, each durable; $(count flush) flushes"

lives=0
/bin/mke2fs -q -F -t ext4 -O has_journal,extent /dev/ublkb0 2>/a/mkfs || { cat /a/mkfs; fail "no file system"; }
while [ $lives -lt 4 ]; do
	mount -t ext4 /dev/ublkb0 /m || fail "not mounted"
	dd if=/dev/urandom of=/m/kept$lives bs=1M count=$((3 + lives)) 2>/dev/null
	sync
	sum_of /m/kept$lives > /a/sum$lives
	dd if=/dev/urandom of=/m/loose bs=64k count=400 2>/dev/null &
	writer=$!
	usleep $((200000 * (lives + 1)))
	kill -9 $server; wait $server 2>/dev/null
	wait $writer 2>/dev/null
	gone
	umount /m || umount -l /m
	assemble
	grep -q 'not stopped in order' /a/log || fail "a kill was not noticed"
	/bin/e2fsck -fp /dev/ublkb0 > /a/fsck 2>&1; [ $? -lt 4 ] || { cat /a/fsck; fail "file system is not whole"; }
	mount -t ext4 /dev/ublkb0 /m || fail "not mounted after a kill"
	n=0
	while [ $n -le $lives ]; do
		[ "$(sum_of /m/kept$n)" = "$(cat /a/sum$n)" ] || fail "file $n of life $lives is not what was flushed"
		n=$((n + 1))
	done
	umount /m
	fullstroke array scrub /a/control > /a/scrub 2>&1 || { cat /a/scrub; fail "parity"; }
	lives=$((lives + 1))
done
step "$lives kills (SIGKILL) under ext4: all $lives files that were flushed are there, parity follows from the data"

mount -t ext4 /dev/ublkb0 /m || fail "not mounted"
cp /a/data /m/last || fail "no room"
sum=$(sum_of /a/data)
dirty=$(sed -n 's/^Dirty: *\([0-9]*\) kB/\1/p' /proc/meminfo)
[ "$dirty" -gt 0 ] || fail "nothing was left to write at Ctrl-C"
kill -INT $server; wait $server; status=$?
[ $status = 0 ] || fail "Ctrl-C: status $status"
[ ! -e /dev/ublkb0 ] && [ ! -e /dev/ublkc0 ] || fail "the device is still there: $(ls /dev | grep ublk | tr '\n' ' ')"
umount /m 2>/dev/null || umount -l /m
assemble
grep -q 'not stopped in order' /a/log && fail "Ctrl-C: not stopped in order"
mount -t ext4 /dev/ublkb0 /m || fail "not mounted after Ctrl-C"
[ "$(sum_of /m/last)" = "$sum" ] || fail "what a file system had not written at Ctrl-C is lost"
umount /m
step "Ctrl-C under a mounted ext4: the device is gone; $dirty KiB that were not yet written were written before"

before=$(du -k /a/0 | cut -f1)
/bin/blkdiscard -f /dev/ublkb0 >> /a/log 2>&1 || fail "no discard"
forget
after=$(du -k /a/0 | cut -f1)
[ $after -lt $before ] || fail "room of a member: $before KiB before, $after KiB behind the discard"
cmp -n $size /dev/ublkb0 /dev/zero || fail "what was discarded is not zeros"
step "all discarded: member 0 has $after KiB instead of $before, $(count discard) discards"

dd if=/a/data of=/dev/ublkb0 bs=1M count=8 conv=fsync 2>/dev/null
writes=$(count write)
zeroes /dev/ublkb0 1048576 2097152 >> /a/log 2>&1 || fail "no zeroes"
[ $(($(count write) - writes)) -lt 8 ] || fail "zeroes were written as data"
forget
dd if=/dev/ublkb0 of=/a/back bs=1M count=8 2>/dev/null
(dd if=/a/data bs=1M count=1; dd if=/dev/zero bs=1M count=2; dd if=/a/data bs=1M skip=3 count=5) 2>/dev/null | cmp - /a/back || fail "zeroes"
step "2 MiB of zeroes as $(($(count write) - writes)) requests"

fullstroke array stop /a/control > /a/stop 2>&1 || { cat /a/stop; fail "stop"; }
wait $server || fail "stop: status"
[ ! -e /dev/ublkb0 ] && [ ! -e /dev/ublkc0 ] || fail "the device is still there"
step "stopped by order"
echo PASS
end
"""


def kernel_of(root):
    """The newest kernel there that has ublk as a module: its image, version and modules."""
    for module in sorted(root.glob("lib/modules/*/kernel/drivers/block/ublk_drv.ko*"), reverse=True):
        modules = module.parents[3]
        image = root / "boot" / f"vmlinuz-{modules.name}"
        if os.access(image, os.R_OK):
            return image, modules
    wanted = "lib/modules/VERSION/kernel/drivers/block/ublk_drv.ko with a boot/vmlinuz-VERSION that can be read"
    raise Impossible(f"no kernel with ublk: {root} has no {wanted}")


def archive_of(root, fullstroke, modules, at):
    for name in ["mke2fs", "e2fsck", "blkdiscard", "dd"]:
        add_program(program(name, PACKAGES), root)
    add_program(fullstroke, root, "fullstroke")
    shutil.copy(program("busybox", PACKAGES), root / "bin" / "busybox")
    linked = subprocess.run(["ldd", str(root / "bin/busybox")], capture_output=True, text=True)
    if "not a dynamic" not in linked.stdout + linked.stderr:
        raise Impossible("busybox is not static (Debian: busybox-static)")
    zeroes = root / "bin" / "zeroes"
    zeroes.write_text('#!/bin/sh\nexec /bin/blkdiscard -f -z -o "$2" -l "$3" "$1"\n')
    zeroes.chmod(0o755)
    for module in modules.rglob("*.ko*"):
        if not MODULES.search(str(module)):
            continue
        data = module.read_bytes()
        data = lzma.decompress(data) if module.suffix == ".xz" else data
        copy = root / "lib/modules" / modules.name / module.name.removesuffix(".xz")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with at.open("wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=files.encode(), stdout=out, check=True)


def emulate(image, archive):
    """Prints what the machine says of its steps, and all that it says once one has failed; answers whether all passed."""
    arguments = ["qemu-system-x86_64", "-accel", "tcg", "-m", "1024", "-smp", "2", "-nographic", "-no-reboot", "-nic", "none",
                 "-kernel", str(image), "-initrd", str(archive), "-append", "console=ttyS0 quiet loglevel=1 panic=-1"]
    passed, failed = False, False
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as machine:
        watch = threading.Timer(PATIENCE_S, machine.kill)
        watch.start()
        last = ""
        for line in machine.stdout:
            last = line.decode(errors="replace").rstrip()
            # The firmware has cleared the screen before the first step.
            step = last.find("step: ")
            said = last[step:] if step >= 0 else last
            failed |= said.startswith("FAIL")
            passed |= said == "PASS"
            if failed or step >= 0 or said == "PASS":
                print(said, flush=True)
        watch.cancel()
    if not passed and not failed:
        print(f"FAIL: the machine ended, or was ended after {PATIENCE_S} s; it said last: {last}")
    return passed and not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", type=Path, default=Path("/"), help="a folder with boot and lib/modules, or a package [default: /]")
    parser.add_argument("--fullstroke", type=Path, default=Path("target/debug/fullstroke"), help="the program")
    arguments = parser.parse_args()
    try:
        needs("qemu-system-x86_64", "ldd", "cpio")
        if not arguments.fullstroke.exists():
            raise Impossible(f"no such program: {arguments.fullstroke} (cargo build)")
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "package").mkdir()
            (folder / "root").mkdir()
            image, modules = kernel_of(unpacked(arguments.kernel, folder / "package", WANTED))
            archive_of(folder / "root", arguments.fullstroke, modules, folder / "archive")
            return 0 if emulate(image, folder / "archive") else 1
    except Impossible as error:
        print(f"cannot be tried here: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())

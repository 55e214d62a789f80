#!/usr/bin/env python3
"""A laboratory of real kernels: what Linux's md and OpenZFS do with requests, member I/O by member I/O.

Boots a Debian kernel in QEMU with md on null_blk members of a fixed latency, carries out a scenario
file, and prints each line of the file with the member I/O that the kernel issued (`block_rq_issue`).
With --drive, members are drives that `fullstroke serve` simulates at a slow speed; times are those
of the drives.
The emulation is in software, so that no root is needed and the host's kernel may be any.
With --counted the clock of the guest counts instructions, 1 ns each, and idle time passes at once: the guest is
as quick on each machine, and no slower than its members. The one processor runs the process of the requests before
md's threads, as if the process had a processor of its own.

A scenario consists of lines:

  array LEVEL MEMBERS [chunk=KIB] [layout=NAME] [bitmap=internal] [stripes=N] [ppl] [journal]
                         creates an array: mdadm's level and layout (raid5, raid10 layout=f2); ppl: with the
                         partial parity log; journal: the device behind the members is the journal, named J
  rest MS [sums]         lets time pass; the member I/O without a request, or its sums
  started                the member I/O of the creation of the array
  cold                   empties the stripe cache to 17 stripes
  fail N                 takes member N out
  add N                  takes member N out and adds it as a new one; md rebuilds it, and the sums of loads have
                         rebuilt_kib: what is written to it in the first half of a member after the first second of
                         the load, in which the I/O ends that md began without requests
  set FILE VALUE         writes a file of /sys/block/md0/md
  r OFFSET BYTES         a read; w is a write, s a write with O_DSYNC
  load KIND ORDER BYTES DEPTH COUNT OFFSET SPAN SEED
                         requests through libaio: kind r, w, m (both) or s (writes with
                         O_DSYNC); order seq or rand
  stream BYTES COUNT OFFSET
                         sequential writes through the page cache, and fsync
  show FILE              a file of /sys/block/md0

With --zfs the arrays are pools. The folder of --kernel then has zfs.ko, zpool, zfs and their libraries,
such as the unpacked packages linux-image-unsigned, linux-modules, zfsutils-linux, libzfs4linux,
libuutil3linux, libnvpair3linux, libblkid1, libuuid1, libudev1, libtirpc3t64, libssl3t64, libc6, zlib1g,
libgssapi-krb5-2, libkrb5-3, libk5crypto3, libkrb5support0, libcom-err2, libkeyutils1, libgcc-s1 and
libcap2 of Ubuntu 24.04 (Linux 6.8, OpenZFS 2.2.2), or those of Debian 12 with spl.ko and zfs.ko built from
zfs-dkms in lib/modules/VERSION/kernel/zfs (Linux 6.1, OpenZFS 2.3.2). The clock of the guest counts
instructions, 1 ns each, and idle time passes at once. So the guest is as quick on each machine. Two runs
differ by the ids of pools, which choose the places of metadata. Other lines of a scenario:

  pool BLOCK SIZE VDEVS [ashift=N]
                         creates a pool with a volume of blocks of BLOCK
  fill BYTES             writes the volume from its begin, and imports the pool anew: the ARC is empty
  load ...               as above, up to the end of the transaction group; bios that are parts of one I/O count once
  scrub                  a whole scrub
  replace OLD NEW        takes a member out, and a whole resilver to another one
  idle                   a transaction group without data

With --cache a cache on a flash device stands in front of a device (null_blk each). Needs dmsetup and
make-bcache (bcache-tools). Lines of a scenario:

  cache KIND MODE MIB [key=value ...]
                         bcache, dm-cache or dm-writecache on a flash device of MIB; keys are files of bcache,
                         or arguments of the policy of dm-cache and of dm-writecache
  load ..., stream ...   as above
  rest MS                lets time pass

After `->` are the time, reads/KiB+writes/KiB of both devices up to the end of the load, and the
counters of the cache: those of bcache, or `dmsetup status`.

After `->` a request has member I/O such as `R4@0K+4K`: a read of 4 KiB at offset 0 of the data of
member 4. A load has sums, the time, and for each member reads/KiB+writes/KiB. With --metadata writes
before the data count apart, as records, and since_ms is the time from the end of the line before.

Needs qemu-system-x86_64, a static busybox, mdadm, cc, ldd, cpio, modinfo; dpkg-deb for a package.
The exit status is 1 if the guest failed, 2 if something is missing.
"""

import argparse
import contextlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from checks import Impossible, add_program, needs, program, run, unpacked, until

HERE = Path(__file__).resolve().parent / "kernel-lab"
PACKAGES = "qemu-system-x86, busybox-static, mdadm, kmod, cpio, gcc"
# libcrc32c needs crc32c, but does not name the module.
WANTED = ["crc32c_generic", "virtio_pci", "virtio_blk", "null_blk", "raid0", "raid1", "raid10", "raid456"]
WANTED_OF_CACHES = ["crc32c_generic", "null_blk", "bcache", "dm-cache", "dm-cache-smq", "dm-writecache"]
WANTED_OF_POOLS = ["null_blk", "zfs"]
# For one scenario file; the emulation needs minutes where others compute, too.
PATIENCE_S = 7200


def kernel_of(root, needed="drivers/md/raid456"):
    """The image and the modules of the newest kernel of a folder that has md, or another module, and null_blk."""
    for base in ("lib/modules", "usr/lib/modules"):
        for module in sorted(root.glob(f"{base}/*/kernel/{needed}.ko*"), reverse=True):
            modules = next(folder for folder in module.parents if folder.name == "kernel").parent
            image = root / "boot" / f"vmlinuz-{modules.name}"
            if os.access(image, os.R_OK) and list(modules.rglob("null_blk.ko*")):
                return image, modules
    raise Impossible(f"no such kernel: {root} has no lib/modules/VERSION/kernel/{needed}.ko and "
                     "boot/vmlinuz-VERSION that can be read. `apt-get download` a package linux-image-* for --kernel")


def kernel_module(path):
    """The bytes of a module."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run([program("zstd", PACKAGES), "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    return data


def add_foreign_program(name, folder, root):
    """Copies a program of another distribution and its libraries from a folder of unpacked packages."""
    needs("readelf")

    def found(file):
        paths = [path for path in folder.rglob(file) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
        if not paths:
            raise Impossible(f"{file} is not in {folder}")
        return paths[0]

    def libraries(file):
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", file)):
            target = root / "lib" / library
            if not target.exists():
                source = found(library)
                shutil.copy(source, target)
                libraries(source)

    (root / "lib").mkdir(exist_ok=True)
    (root / "lib64").mkdir(exist_ok=True)
    shutil.copy(found("ld-linux-x86-64.so.2"), root / "lib64")
    source = found(name)
    shutil.copy(source, root / "bin" / name)
    libraries(source)


def modules_in_order(modules, wanted):
    """Paths of the wanted modules, each behind the modules that it needs."""
    paths = {path.name.split(".ko")[0].replace("-", "_"): path for path in modules.rglob("*.ko*")}
    order = []

    def add(name):
        path = paths.get(name.replace("-", "_"))
        # A module that is not there is part of the kernel's image.
        if path is None or path in order:
            return
        for needed in run(program("modinfo", PACKAGES), "-F", "depends", path).strip().split(","):
            if needed:
                add(needed)
        order.append(path)

    for name in wanted:
        add(name)
    return order


def archive_of(root, modules, scenario, arguments, at):
    """Writes the disk of the guest."""
    if arguments.zfs:
        for name in ("zpool", "zfs"):
            add_foreign_program(name, arguments.kernel, root)
    elif arguments.cache:
        for name in ("dmsetup", "make-bcache"):
            add_program(program(name, "dmsetup, bcache-tools"), root)
    else:
        add_program(program("mdadm", PACKAGES), root)
    shutil.copy(program("busybox", PACKAGES), root / "bin" / "busybox")
    run("cc", "-O1", "-static", "-o", root / "bin" / "requests", HERE / "requests.c")
    order = []
    wanted = WANTED_OF_POOLS if arguments.zfs else WANTED_OF_CACHES if arguments.cache else WANTED
    for path in modules_in_order(modules, wanted):
        copy = root / "lib/modules" / re.sub(r"\.(xz|zst)$", "", path.name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(kernel_module(path))
        order.append(copy.name)
    (root / "modules.order").write_text("\n".join(order) + "\n")
    queue = arguments.queue or (1024 if arguments.zfs else 64)
    null_blk = (f"nr_devices={0 if arguments.step_us else arguments.members} gb={arguments.gib} bs=512 memory_backed={arguments.memory} queue_mode=2 irqmode=2 "
                f"completion_nsec={arguments.latency_us * 1000} hw_queue_depth={queue} rotational={arguments.rotational}"
                + (f" max_sectors={arguments.max_sectors}" if arguments.max_sectors else ""))
    # Members of different latencies are made one by one.
    latencies = [arguments.latency_us * 1000 + member * arguments.step_us * 1000 for member in range(arguments.members)] if arguments.step_us else []
    apart = f"{arguments.gib * 1024} {arguments.memory} {queue} {arguments.max_sectors}"
    names = [f"vd{chr(ord('a') + member)}" if arguments.drive else f"nullb{member}" for member in range(arguments.members)]
    null_blk = "" if arguments.drive else null_blk
    (root / "settings").write_text(f"NULL_BLK='{null_blk}'\nNAMES='{' '.join(names)}'\nELEVATOR={arguments.elevator}\n"
                                   f"ROTATIONAL={arguments.rotational}\nWBT={arguments.wbt}\nHALF={arguments.gib << 20}\nLATENCIES='{' '.join(map(str, latencies))}'\nAPART='{apart}'\nFIRST={'first' if arguments.counted else ''}\nREBUILT=\nMODE={'all' if arguments.metadata else 'single'}\nRECORDS={int(arguments.metadata)}\n"
                                   f"ORIGIN_MIB={arguments.gib * 1024}\nORIGIN_US={arguments.latency_us}\nFLASH_US={arguments.flash_us}\nBLOCK=512\n")
    (root / "scenario").write_text(scenario)
    shutil.copy(HERE / ("pools.sh" if arguments.zfs else "caches.sh" if arguments.cache else "init.sh"), root / "init")
    (root / "init").chmod(0o755)
    files = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with at.open("wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=files.encode(), stdout=out, check=True)


@contextlib.contextmanager
def served(arguments, folder):
    """Starts `fullstroke serve` with an export for each member. Gives the socket, or None without --drive."""
    if not arguments.drive:
        yield None
        return
    stacks = []
    for member in range(arguments.members):
        stack = folder / f"member{member}.toml"
        stack.write_text(f'seed = {member + 1}\n[volume]\nlayout = "jbod"\ndrive = "{arguments.drive}"\ndrives = 1\n')
        stacks.append(stack)
    socket, log = folder / "members.sock", (folder / "serve.log").open("w+")
    command = [arguments.program, "serve", *stacks, "--socket", socket, "--speed", arguments.speed]
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as server:
        try:
            def listens():
                if server.poll() is not None:
                    log.seek(0)
                    raise Impossible(f"{command[0]} serve ended: {log.read().strip()}")
                return socket.exists()
            until("the members' socket", listens)
            yield socket
        finally:
            server.terminate()
            server.wait()


def disks_of(socket, members):
    """QEMU's options for members behind a socket: virtio disks with the 32 requests that a SATA disk takes."""
    options = []
    for member in range(members):
        name = f"member{member}"
        options += ["-drive", f"if=none,id={name},format=raw,cache=none,file=nbd+unix:///{name}?socket={socket}",
                    "-device", f"virtio-blk-pci,drive={name},queue-size=32,num-queues=1"]
    return options


def in_model_time(line, speed):
    """A line with its times in the time of the served drives."""
    return re.sub(r"( |_)ms=(\d+)", lambda found: f"{found[1]}ms={int(found[2]) * speed:.0f}", line)


def emulate(image, archive, out, arguments, socket):
    """Writes the lines of the guest to `out`. Returns true if all lines were carried out."""
    disks = disks_of(socket, arguments.members) if socket else []
    speed = arguments.speed if socket else 1
    # A clock of instructions has one processor. Idle time passes at once with `sleep=off`.
    clock = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-rtc", "clock=vm", "-smp", "1"]
    parallel = ["-accel", "tcg,thread=multi", "-smp", "2"]
    emulated = [*(clock if arguments.counted else parallel), "-m", "8192" if arguments.zfs else "3072"]
    command = ["qemu-system-x86_64", *disks, *emulated, "-nographic", "-no-reboot", "-nic", "none",
                 "-kernel", str(image), "-initrd", str(archive), "-append", "console=ttyS0 quiet loglevel=1 panic=-1 no_timer_check"]
    done, failed, last = False, False, ""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as machine:
        watch = threading.Timer(PATIENCE_S, machine.kill)
        watch.start()
        for line in machine.stdout:
            last = line.decode(errors="replace").rstrip()
            if "kernel: " in last:
                print("# Linux " + last.split("kernel: ", 1)[1], file=out, flush=True)
            elif last.startswith("out: "):
                print(in_model_time(last[5:], speed), file=out, flush=True)
            elif arguments.verbose or last.startswith("FAIL"):
                print(last, file=sys.stderr, flush=True)
            failed |= last.startswith("FAIL")
            done |= last == "DONE"
        watch.cancel()
    if not done:
        print(f"the machine ended, or was ended after {PATIENCE_S} s; its last line: {last}", file=sys.stderr)
    return done and not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", type=Path, help="the scenario file")
    parser.add_argument("--kernel", type=Path, default=Path("/"), help="a folder with boot and lib/modules, or a package [default: /]")
    parser.add_argument("--out", type=Path, help="the file of the results [default: standard output]")
    parser.add_argument("--members", type=int, default=8, help="number of members [default: 8]")
    parser.add_argument("--gib", type=int, default=1, help="size of a member in GiB [default: 1]")
    parser.add_argument("--latency-us", type=int, default=4000, help="time of a member's request in µs [default: 4000]")
    parser.add_argument("--step-us", type=int, default=0, help="each member needs this time longer than the member before, so that requests do not end together [default: 0]")
    parser.add_argument("--drive", help="members are drives of the library that `fullstroke serve` simulates, instead of null_blk")
    parser.add_argument("--speed", type=float, default=0.05, help="speed of the time of served drives; slow, so that the guest's own time hardly counts [default: 0.05]")
    parser.add_argument("--program", type=Path, default=Path("target/release/fullstroke"), help="the program that serves drives [default: target/release/fullstroke]")
    parser.add_argument("--elevator", default="none", help="elevator of the members; mq-deadline joins more [default: none]")
    parser.add_argument("--rotational", type=int, default=1, choices=[0, 1], help="1 if md shall take the members for disks [default: 1]")
    parser.add_argument("--wbt", type=int, default=1, choices=[0, 1], help="0 without the members' write-back throttling, which lets few writes through beside reads [default: 1, as Linux]")
    parser.add_argument("--max-sectors", type=int, default=0, help="sectors of the largest request of a member [default: the kernel's, 255]")
    parser.add_argument("--queue", type=int, default=0, help="requests of a member that are carried out at a time [default: 64, with --zfs 1024]")
    parser.add_argument("--memory", type=int, default=1, choices=[0, 1], help="1 if members keep their data [default: 1]")
    parser.add_argument("--metadata", action="store_true", help="print member I/O before the data, at a negative offset, too")
    parser.add_argument("--zfs", action="store_true", help="arrays are pools; --kernel is a folder of unpacked packages")
    parser.add_argument("--cache", action="store_true", help="a cache on a flash device in front of a device, instead of an array")
    parser.add_argument("--counted", action="store_true", help="the clock of the guest counts instructions, 1 ns each; always with --zfs, never with --drive")
    parser.add_argument("--flash-us", type=int, default=500, help="time of a request of the flash device in µs [default: 500]")
    parser.add_argument("--verbose", action="store_true", help="print everything that the guest says")
    arguments = parser.parse_args()
    # Served drives take the time of the host.
    arguments.counted = (arguments.counted or arguments.zfs) and not arguments.drive
    try:
        needs("qemu-system-x86_64", "ldd", "cpio", "cc")
        scenario = arguments.scenario.read_text()
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "package").mkdir()
            (folder / "root" / "bin").mkdir(parents=True)
            image, modules = kernel_of(unpacked(arguments.kernel, folder / "package"), *["zfs/zfs"] * arguments.zfs)
            archive_of(folder / "root", modules, scenario, arguments, folder / "archive")
            with (arguments.out.open("w") if arguments.out else os.fdopen(os.dup(1), "w")) as out, served(arguments, folder) as socket:
                return 0 if emulate(image, folder / "archive", out, arguments, socket) else 1
    except Impossible as error:
        print(f"cannot be tried here: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main())

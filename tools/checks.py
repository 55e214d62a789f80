"""What the checks of this folder share: programs that are run, and what cannot be."""

import contextlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

PATIENCE_S = 60
# Debian keeps programs for root outside the usual PATH.
SEARCHED = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]


class Impossible(Exception):
    """Something could not be run."""


def run(*arguments):
    """What a program prints, which must succeed."""
    arguments = [str(argument) for argument in arguments]
    done = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Impossible(f"{' '.join(arguments)}\n{done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def needs(*programs):
    """All of these programs must be there."""
    missing = [str(program) for program in programs if not shutil.which(str(program))]
    if missing:
        raise Impossible(f"missing: {', '.join(missing)} (make clients installs what tests use)")


def program(name, packages):
    """The path of a program of one of these Debian packages."""
    found = shutil.which(name, path=os.pathsep.join(SEARCHED))
    if not found:
        raise Impossible(f"missing: {name} (Debian: {packages})")
    return Path(found)


def unpacked(kernel, into, wanted=("*",)):
    """The folder of a package's files, or the folder itself. Of a package, files that match a pattern of `wanted`."""
    if kernel.is_dir():
        return kernel
    if not kernel.exists():
        raise Impossible(f"no such file: {kernel}")
    needs("dpkg-deb", "tar")
    archive = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(kernel)], stdout=subprocess.PIPE)
    unpack = ["tar", "-x", "-C", str(into), "--wildcards", *wanted]
    # tar complains about a pattern without a match. The search for the kernel names the missing file then.
    done = subprocess.run(unpack, stdin=archive.stdout, capture_output=True, check=False)
    if archive.wait() != 0:
        raise Impossible(f"{kernel} is no package: {done.stderr.decode(errors='replace').strip()}")
    return into


def add_program(source, root, name=None):
    """Copies a program and its libraries into the root of a guest."""
    target = root / "bin" / (name or source.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    listed = subprocess.run(["ldd", str(source)], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    for library in re.findall(r"(/\S+) \(0x", listed.stdout):
        copy = root / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)


def until(what, found):
    """What `found` answers as soon as it answers something."""
    end = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        if time.monotonic() > end:
            raise Impossible(f"{what}: not in {PATIENCE_S} s")
        time.sleep(0.02)
    return answer


def run_quietly(*arguments):
    """Whether a program succeeds."""
    return subprocess.run([str(one) for one in arguments], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def process(*arguments):
    """A program in the background, which ends with the block."""
    running = subprocess.Popen([str(argument) for argument in arguments],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextlib.contextmanager
def block_device(uri, place):
    """What an NBD server has, as a file at `place` by nbdfuse, and that as a block device."""
    place.touch()
    fuse, loop = subprocess.Popen(["nbdfuse", str(place), uri]), None
    try:
        until("nbdfuse", lambda: place.stat().st_size > 0)
        loop = run("losetup", "--find", "--show", "--direct-io=on", place).strip()
        yield loop
    finally:
        if loop:
            run("losetup", "--detach", loop)
        # The loop device goes a moment after it was detached.
        until("the end of nbdfuse", lambda: run_quietly("fusermount3", "-u", place) or fuse.poll() is not None)
        fuse.wait()

"""What the checks of this folder share: programs that are run, and what cannot be."""

import contextlib
import shutil
import subprocess
import time

PATIENCE_S = 60


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

#!/usr/bin/env python3
"""Does an array that pulls while it is idle spare its readers, live as in simulation?

Serves a disk at its own speed, puts a cache in front of it for each of two clients, and runs
fio in both: one reads at random, the other writes at random and never flushes. Once the caches
are deaf, once they hear the disk. Beside it the same, simulated. Where loop devices may be
made, once more with the kernel's own page cache for the writer, alone and made to heed the
disk. Needs fio and nbdfuse; takes about four minutes, or eight.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.join(ROOT, "target/release/fullstroke")
STACK = os.path.join(ROOT, "stacks/signals/two-clients.toml")
SECONDS = 100
HALF = 10 * 10**9  # each client's part of the disk, as in the stack

SERVED = """title = "The disk of two-clients.toml, served"
[[opportunities]]
kind = "idle-flush-on"
wait = "20ms"

[volume]
layout = "jbod"
drive = "maxtor-atlas-10k-v-73gb-c0k"
"""

JOBS = {
    "reader": ["--rw=randread", "--thinktime=40000", "--offset=0"],
    "writer": ["--rw=randwrite", "--thinktime=15000", f"--offset={HALF // 4096 * 4096}"],
}


def wait_for(path, process):
    """Until a server's socket, or nbdfuse's file, is there."""
    for _ in range(400):
        if os.path.exists(path) and (os.path.getsize(path) > 0 or path.endswith(".sock")):
            return
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended with {process.returncode}")
        time.sleep(0.05)
    sys.exit(f"{path} does not come")


def last_value(text):
    """The last of several JSON values."""
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        text = text[end:].strip()
    return value


def serve(folder):
    """The disk, served, and its socket."""
    stack = os.path.join(folder, "served.toml")
    with open(stack, "w") as file:
        file.write(SERVED)
    array = os.path.join(folder, "array.sock")
    server = subprocess.Popen([PROGRAM, "serve", stack, "--socket", array], stdout=subprocess.DEVNULL)
    wait_for(array, server)
    return server, array


def show(folder, name, socket):
    """An export as a file."""
    shown = os.path.join(folder, name)
    open(shown, "w").close()
    mount = subprocess.Popen(["nbdfuse", shown, f"nbd+unix:///?socket={socket}"])
    wait_for(shown, mount)
    return mount, shown


def fio(name, shown, direct):
    return subprocess.Popen(
        ["fio", f"--name={name}", f"--filename={shown}", "--bs=4k", "--ioengine=psync", f"--direct={int(direct)}",
         f"--size={HALF // 4096 * 4096}", "--time_based", f"--runtime={SECONDS}", "--randseed=1", "--output-format=json"] + JOBS[name],
        stdout=subprocess.PIPE, text=True)


def waited(result):
    """How long reads took, in ms."""
    read = result["jobs"][0]["read"]["clat_ns"]
    return {"mean": read["mean"] / 1e6, "p99": read["percentile"]["99.000000"] / 1e6, "max": read["max"] / 1e6}


def live(folder, deaf):
    """Reads' latencies in ms, and what the writer's cache says at the end."""
    server, array = serve(folder)
    caches, mounts, jobs = {}, {}, {}
    for name in JOBS:
        socket = os.path.join(folder, name + ".sock")
        command = [PROGRAM, "cache", array, "--socket", socket, "--size", "192MiB", "--write-back", "2.6.17", "--json"]
        caches[name] = subprocess.Popen(command + ["--deaf"] * deaf, stdout=subprocess.PIPE, text=True)
        wait_for(socket, caches[name])
        mounts[name], shown = show(folder, name, socket)
        jobs[name] = fio(name, shown, direct=True)
    results = {name: json.loads(job.communicate()[0]) for name, job in jobs.items()}
    said = {}
    for name in JOBS:
        subprocess.run(["fusermount3", "-u", os.path.join(folder, name)], check=True)
        mounts[name].wait()
        caches[name].terminate()
        said[name] = last_value(caches[name].communicate()[0])
        os.remove(os.path.join(folder, name))
    server.terminate()
    server.wait()
    return waited(results["reader"]), said["writer"]


def with_kernel(folder, heeds):
    """The same, where the writer's pages are the kernel's, of a loop device."""
    server, array = serve(folder)
    mount, shown = show(folder, "disk", array)
    loop = subprocess.check_output(["losetup", "-f", "--show", shown], text=True).strip()
    command = [PROGRAM, "heed", array, "--on", loop, "--json"]
    heed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) if heeds else None
    jobs = {"reader": fio("reader", shown, direct=True), "writer": fio("writer", loop, direct=False)}
    results = {name: json.loads(job.communicate()[0]) for name, job in jobs.items()}
    heeded = None
    if heed:
        heed.terminate()
        heeded = last_value(heed.communicate()[0])
    subprocess.run(["losetup", "-d", loop], check=True)
    subprocess.run(["fusermount3", "-u", shown], check=True)
    mount.wait()
    server.terminate()
    server.wait()
    return waited(results["reader"]), heeded


def may_loop():
    """Whether loop devices may be made here."""
    return shutil.which("losetup") and subprocess.run(["losetup", "-f"], capture_output=True).returncode == 0 and os.geteuid() == 0


def simulated(pulls):
    """The same of the stack's reader."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(STACK)) as folder:
        text = open(STACK).read()
        if not pulls:
            start, end = text.index("[[opportunities]]"), text.index("[volume]")
            text = text[:start] + text[end:]
        stack = os.path.join(folder, "stack.toml")
        with open(stack, "w") as file:
            file.write(text)
        report = json.loads(subprocess.check_output([PROGRAM, "run", stack, "--json"]))
    reader = next(one for one in report["workloads"] if one["name"] == "reader")["response_ms"]
    return {key: reader[key] for key in ("mean", "p99", "max")}


def main():
    for program in ("fio", "nbdfuse", "fusermount3"):
        if not shutil.which(program):
            sys.exit(f"skipped: {program} is not installed (make clients)")
    print(f"{'reads':28}{'mean':>9}{'p99':>9}{'max':>9}   ms")
    for deaf in (True, False):
        row = simulated(not deaf)
        name = "simulated, " + ("nobody pulls" if deaf else "the disk pulls")
        print(f"{name:28}{row['mean']:9.1f}{row['p99']:9.1f}{row['max']:9.1f}", flush=True)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            row, writer = live(folder, deaf)
        name = "live, " + ("deaf caches" if deaf else "caches that listen")
        print(f"{name:28}{row['mean']:9.1f}{row['p99']:9.1f}{row['max']:9.1f}   "
              f"{writer['written_pulled_mb']:.1f} of {writer['written_mb']:.1f} MB pulled in {writer['pulls']} PULLs", flush=True)
    if not may_loop():
        print("the kernel's page cache: skipped, no loop devices may be made here")
        return
    for heeds in (False, True):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            row, heeded = with_kernel(folder, heeds)
        name = "live, the kernel " + ("heeds" if heeds else "alone")
        said = f"   {heeded['written_mb']:.1f} MB written in {heeded['pulls']} PULLs" if heeded else ""
        print(f"{name:28}{row['mean']:9.1f}{row['p99']:9.1f}{row['max']:9.1f}{said}", flush=True)


if __name__ == "__main__":
    main()

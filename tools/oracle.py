#!/usr/bin/env python3
"""Writes samples/oracle again from the reference data that it is an excerpt of.

    tools/oracle.py REFERENCE [--program target/release/fullstroke]

REFERENCE is the folder with `oracle` and `traces` (beside a checkout: ../shared). Of
each case the oracle holds the first 200 requests as CSV of our own, and the SHA-256 of
the whole unpacked file, by which the full tests know that they run on the same data.
The traces are decoded here by the published descriptions of their formats, not by
fullstroke: the tests hold the readers to what this script found.
"""

import argparse
import gzip
import hashlib
import pathlib
import re
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
ORACLE = ROOT / "samples/oracle"
REQUESTS = 200

# Trace, disk: the settings and schedulers whose answers are tested.
MECHANICS = {
    ("cheetah9LP", "burst20"): [
        *("mech." + order for order in "fcfs look_lbn look_cyl clook_lbn clook_cyl sstf_lbn sstf_cyl sptf asptf".split()),
        "nocache.fcfs",
        *("cache." + order for order in "fcfs clook_lbn look_lbn sstf_lbn sptf".split()),
        *("cachez.indisk_q32_" + order for order in "fcfs clook_lbn sstf_lbn sptf".split()),
    ],
    ("cheetah9LP", "mix7030_poisson20"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    ("cheetah9LP", "mix7030_spaced"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    ("cheetah9LP", "rread4k_poisson15"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    ("cheetah9LP", "rread4k_spaced"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    ("cheetah9LP", "rread64k_spaced"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    ("cheetah9LP", "seqread64k_20ms"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    ("cheetah9LP", "seqread64k_6ms"): ["mech.fcfs"],
    ("cheetah9LP", "seqwrite64k_20ms"): ["mech.fcfs", "nocache.fcfs", "cache.fcfs"],
    **{("cheetah9LP", f"raid{level}x8.mix6733_4k_spaced"): ["mech"] for level in (0, 1, 4, 5)},
    ("atlas10k", "burst20"): ["mech.sptf"],
    ("atlas10k", "mix7030_spaced"): ["mech.fcfs"],
    ("atlas10k", "rread4k_spaced"): ["mech.fcfs"],
}
# Disks that were measured; of those marked the reference has DiskSim's answers too.
DISKS = {
    "hp_c2247a": True, "cheetah9LP": True, "ibm18es": True, "barracuda": True, "atlas10k": True,
    "atlas_III": False, "hp_c2490a": False, "hp_c3323a": False,
}
# Drive files: the parameter file, and whether it is read as it is written.
DRIVES = {
    "cheetah9LP.nocache": ("mechanics/param/cheetah9LP.nocache.fcfs.parv", True),
    "cheetah9LP.cache": ("mechanics/param/cheetah9LP.cache.fcfs.parv", True),
    "cheetah9LP.cachez": ("mechanics/param/cheetah9LP.cachez.q32fcfs.parv", True),
    "atlas10k.mech": ("mechanics/param/atlas10k.mech.diskspecs", True),
    **{disk: (f"disks/{disk}.parv", False) for disk in DISKS},
}
# Disks whose parameters the rules of an import are tried on.
RULES = {"hp_c2247a": "hp_c2247a", "hp_c3323a": "hp_c3323a_validate", "barracuda": "barracuda"}


class Source:
    """A file of the reference, unpacked, and its digest."""

    def __init__(self, folder, name):
        path = folder / name
        self.name = name.removesuffix(".gz")
        self.bytes = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
        self.digest = hashlib.sha256(self.bytes).hexdigest()

    def lines(self):
        return self.bytes.decode("latin-1").splitlines()


def plain(number):
    """The shortest text of a decimal number."""
    return number.rstrip("0").rstrip(".") if "." in number else number


def write(name, sources, header, rows):
    """One CSV: lines `# column SHA-256 file`, the names of the columns, the rows."""
    text = [f"# {column} {source.digest} {source.name}" for column, source in sources]
    text.append(",".join(header))
    text += [",".join(str(field) for field in row) for row in rows]
    path = ORACLE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n")
    print(f"{name}: {len(rows)} requests")


def mechanics(folder):
    for (disk, trace), columns in MECHANICS.items():
        asked, answers, sources = None, [], []
        for column in columns:
            kind, *order = column.split(".")
            source = Source(folder, f"mechanics/{'.'.join([disk, kind, trace, *order])}.csv.gz")
            rows = [line.split(",") for line in source.lines()[1 : REQUESTS + 1]]
            request = [[plain(row[0]), row[1], row[2], row[3]] for row in rows]
            if asked is not None and asked != request:
                raise SystemExit(f"{source.name}: other requests than {sources[0][1].name}")
            asked = request
            answers.append([plain(row[4]) for row in rows])
            sources.append((column, source))
        rows = [request + list(times) for request, *times in zip(asked, *answers)]
        write(f"mechanics/{disk}.{trace}.csv", sources, ["arrival_ms", "lbn", "sectors", "operation", *columns], rows)


def disks(folder):
    for disk, simulated in DISKS.items():
        source = Source(folder, f"disks/{disk}.trace.gz")
        sources = [("service_us", source)]
        rows = [line.split() for line in source.lines()[:REQUESTS]]
        rows = [[*row[:4], plain(row[4]), plain(row[5])] for row in rows]
        header = ["operation", "cache", "lbn", "sectors", "service_us", "think_us"]
        if simulated:
            beside = Source(folder, f"validate/{disk}.csv.gz")
            sources.append(("disksim_ms", beside))
            header.append("disksim_ms")
            lines = [line.split(",") for line in beside.lines()]
            column = lines[0].index("disksim_ms")
            for row, other in zip(rows, lines[1:]):
                if row[2] != other[1]:
                    raise SystemExit(f"{beside.name}: other requests than {source.name}")
                row.append(plain(other[column]))
        write(f"disks/{disk}.csv", sources, header, rows)


def drives(folder, program):
    for name, (parameters, as_written) in DRIVES.items():
        arguments = [program, "drive", "import", str(folder / parameters)] + (["--as-written"] if as_written else [])
        text = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        path = ORACLE / f"drives/{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"drives/{name}.toml")


# Parameter files: the words of a small grammar.
WORDS = re.compile(r"#[^\n]*|[{}\[\],=]|[^\s{}\[\],=#][^{}\[\],=#\n]*")


def block(words, folder):
    """The keys of a block whose opening brace was the last word."""
    keys = {}
    while (word := words.pop(0)) != "}":
        if word == ",":
            continue
        if words.pop(0) != "=":
            raise SystemExit(f"{word}: no value")
        keys[word] = value(words, folder)
    return keys


def value(words, folder):
    word = words.pop(0)
    if word == "[":
        items = []
        while words[0] != "]":
            items.append(value(words, folder))
            if words[0] == ",":
                words.pop(0)
        words.pop(0)
        return items
    if word.startswith("source "):
        return blocks(folder, word.split()[1])[0][1]
    if words[0] == "{":
        words.pop(0)
        return {"kind": word.split()[0], **block(words, folder)}
    if word.endswith(".seek"):
        points = [line.split(",") for line in (folder / word).read_text().splitlines()[1:] if "," in line]
        return [[int(point[0]), float(point[1])] for point in points]
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        return word


def blocks(folder, name):
    """The blocks of a file: heading, keys."""
    words = [word.strip() for word in WORDS.findall((folder / name).read_text()) if not word.startswith("#")]
    found = []
    while words:
        word = words.pop(0)
        if words and words[0] == "{":
            words.pop(0)
            found.append((word, {"kind": word.split()[0], **block(words, folder)}))
    return found


def toml_of(item):
    if isinstance(item, dict):
        return "{ " + ", ".join(f'"{key}" = {toml_of(value)}' for key, value in item.items()) + " }"
    if isinstance(item, list):
        return "[" + ", ".join(toml_of(value) for value in item) + "]"
    return f'"{item}"' if isinstance(item, str) else repr(item)


def parameters(folder):
    for disk, file in RULES.items():
        specs = next(keys for heading, keys in blocks(folder, f"{file}.diskspecs") if heading.startswith("disksim_disk"))
        buses = [keys for heading, keys in blocks(folder, f"{disk}.parv") if heading.startswith("disksim_bus ")]
        lines = ["# The parameters of a disk as numbers: keys as DiskSim's manual names them.", "[bus]"]
        lines += [f'"{key}" = {toml_of(value)}' for key, value in buses[-1].items() if not key.startswith("Print")]
        lines.append("[disk]")
        lines += [f'"{key}" = {toml_of(value)}' for key, value in specs.items() if not key.startswith("Print")]
        path = ORACLE / f"parameters/{disk}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        print(f"parameters/{disk}.toml")


# Traces. Each decoder yields (arrival ns, operation, byte or sector range, response ns or None).


def sectors(offset, size):
    start = offset // 512
    return start, (offset + size + 511) // 512 - start


def ns(text, unit):
    """A decimal number of units of `unit` ns, exactly."""
    whole, _, part = text.strip().partition(".")
    digits = len(str(unit)) - 1
    return int(whole) * unit + int((part + "0" * digits)[:digits] or 0)


def msr(source):
    for line in source.lines():
        time, _, _, kind, offset, size, response = line.split(",")
        yield int(time) * 100, kind[0], *sectors(int(offset), int(size)), int(response) * 100 or None


def blkreplay(source):
    for line in source.lines():
        fields = [field.strip() for field in line.split(";")]
        if len(fields) >= 4 and re.fullmatch(r"[\d.]+", fields[0]):
            delay, duration = ns(fields[4], 10**9), ns(fields[5], 10**9)
            yield ns(fields[0], 10**9), fields[3][0], int(fields[1]), int(fields[2]), delay + duration if duration else None


def vscsi(source):
    for at in range(0, len(source.bytes) - 31, 32):
        _, length, _, command, _, lbn, time = struct.unpack_from("<IIIHHQQ", source.bytes, at)
        if command in (0x08, 0x28, 0x88, 0xA8, 0x0A, 0x2A, 0x8A, 0xAA):
            kind = "R" if command in (0x08, 0x28, 0x88, 0xA8) else "W"
            yield time * 1000, kind, lbn, (length + 511) // 512, None


def hp_srt(source):
    at, blocks_bytes = source.bytes.index(b"\x0c") + 1, 256
    while at + 48 <= len(source.bytes):
        word = struct.unpack_from(">12I", source.bytes, at)
        if word[1] & 0xFFFF == 1:
            arrival = word[2] * 10**9 + word[3] * 1000
            yield arrival, "R" if word[11] & 1 else "W", *sectors(word[7] * blocks_bytes, word[6]), word[5] * 1000
        at += word[0]


def mqsim(source):
    for line in source.lines():
        time, _, lbn, count, kind = line.split()
        yield int(time), "R" if kind == "1" else "W", int(lbn), int(count), None


def hfplayer(source):
    rows = [line.lstrip("#").split(",") for line in source.lines() if line.strip()]
    place = {name: at for at, name in enumerate(rows[0])}
    for row in rows[1:]:
        field = lambda name: row[place[name]]
        kind = field("CMD.S")[0]
        latency = ns(field("LATENCY_USECS.D"), 1000)
        yield ns(field("ELAPSED_USECS.D"), 1000), kind, int(field("LBA.I")), int(field("NBLKS.I")), latency


def matched(events, arrives):
    """Requests of (time, action, kind, sector, count) events; the completion of the same range answers."""
    requests, waiting = [], {}
    for time, action, kind, sector, count in sorted(events, key=lambda event: event[0]):
        if action == arrives:
            waiting.setdefault((sector, count), []).append(len(requests))
            requests.append([time, kind, sector, count, None])
        elif action == "C" and waiting.get((sector, count)):
            request = requests[waiting[sector, count].pop(0)]
            request[4] = time - request[0]
    return [tuple(request) for request in requests]


def blktrace(source):
    at, events = 0, []
    while at + 48 <= len(source.bytes):
        _, _, time, sector, size, action, _, _, _, _, payload = struct.unpack_from("<IIQQIIIIIHH", source.bytes, at)
        at += 48 + payload
        flags = action >> 16
        if action & 0xFF in (1, 8) and not flags & 0x300 and size:
            events.append((time, "Q" if action & 0xFF == 1 else "C", "W" if flags & 2 else "R", sector, size // 512))
    return matched(events, "Q")


def blkparse(source):
    events = []
    for line in source.lines():
        fields = line.split()
        if len(fields) >= 10 and fields[5] in ("I", "C") and fields[8] == "+":
            kind = "W" if "W" in fields[6] else "R"
            events.append((ns(fields[3], 10**9), fields[5], kind, int(fields[7]), int(fields[9])))
    return matched(events, "I")


TRACES = {
    "blkreplay/linux-mysql.load.gz": blkreplay,
    "blkreplay/linux-webserver-2.load.gz": blkreplay,
    "blkreplay/windows-shared-server.load.gz": blkreplay,
    "msr/rsrch_1.csv.gz": msr,
    "msr/wdev_1.csv.gz": msr,
    "msr/wdev_3.csv.gz": msr,
    "vscsi/cloudPhysicsIO.vscsi.gz": vscsi,
    "blktrace/sample.blktrace.0.gz": blktrace,
    "blktrace/ext4.blkparse.txt.gz": blkparse,
    "hpl/ajw.1week.srt.gz": hp_srt,
    "hfplayer/small-tpch.csv.gz": hfplayer,
    "mqsim/tpcc-small.head2000.trace": mqsim,
}


def traces(folder):
    for name, decode in TRACES.items():
        source = Source(folder, name)
        requests = sorted(decode(source), key=lambda request: request[0])
        origin = requests[0][0]
        rows = [
            [time - origin, kind, start, count, "" if response is None else response]
            for time, kind, start, count, response in requests[:REQUESTS]
        ]
        header = ["arrival_ns", "operation", "start_sector", "sectors", "response_ns"]
        write(f"traces/{pathlib.Path(name).name.split('.')[0]}.csv", [(str(len(requests)), source)], header, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=pathlib.Path)
    parser.add_argument("--program", default=str(ROOT / "target/release/fullstroke"))
    arguments = parser.parse_args()
    oracle = arguments.reference / "oracle"
    mechanics(oracle)
    disks(oracle)
    drives(oracle, arguments.program)
    parameters(oracle / "disks")
    traces(arguments.reference / "traces")


if __name__ == "__main__":
    main()

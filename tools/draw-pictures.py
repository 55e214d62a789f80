#!/usr/bin/env python3
"""Draws three pictures of ARCHITECTURE.md: docs/access.svg, docs/raid5-plan.svg and docs/nbd-byte.svg.

    tools/draw-pictures.py [--program FILE]

The times come from runs of the program (`run --log`), the layout of RAID 5 from md's left-symmetric rotation, which is the
default of the layout `raid5`. `make pictures` builds the program and draws.
"""

import argparse
import csv
import pathlib
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 1000

STYLE = """
  .sheet { fill: #ffffff } .box { fill: #f2f5f9; stroke: #7d8794; stroke-width: 1.2 }
  text { font-family: "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; fill: #1c2530; text-anchor: middle; font-size: 12px }
  .title { font-size: 15px; font-weight: bold; text-anchor: start } .left { text-anchor: start } .small { font-size: 10.5px; fill: #46515e }
  .strong { font-weight: bold }
  .overhead { fill: #d9dde3 } .seek { fill: #9cc3ee } .rotation { fill: #f4cf8f } .transfer { fill: #a5d6a7 }
  .data { fill: #e9f1fb; stroke: #7d8794 } .parity { fill: #fbe6c9; stroke: #7d8794 } .chosen { stroke: #d2491a; stroke-width: 3 }
  .when { fill: #e9f1fb; stroke: #2b6cb0; stroke-width: 1.4 } .where { fill: #fbf1ea; stroke: #d2491a; stroke-width: 1.4 }
  .way { stroke: #d2491a; stroke-width: 2.5; fill: none } .tip { fill: #d2491a }
  .back { stroke: #2b6cb0; stroke-width: 2.5; fill: none } .back-tip { fill: #2b6cb0 }
  .axis { stroke: #6a7380; stroke-width: 1 }
  @media (prefers-color-scheme: dark) {
    .sheet { fill: #12171e } .box { fill: #1b222c; stroke: #8a94a2 } text { fill: #e8edf3 } .small { fill: #b3bdc9 }
    .overhead { fill: #4a525e } .seek { fill: #2b5c92 } .rotation { fill: #7a5716 } .transfer { fill: #2f6b35 }
    .data { fill: #15243a } .parity { fill: #4a3414 } .when { fill: #15243a; stroke: #78b4f0 } .where { fill: #38211a; stroke: #ff8a5c }
    .chosen, .way { stroke: #ff8a5c } .tip { fill: #ff8a5c } .back { stroke: #78b4f0 } .back-tip { fill: #78b4f0 } .axis { stroke: #aab4c0 }
  }
"""


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(words)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="3"/>'


def arrow(kind: str, tip: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    """A straight arrow, horizontal or vertical."""
    (x1, y1), (x2, y2) = start, end
    sides = {(True, True): ((-10, -6), (-10, 6)), (True, False): ((10, -6), (10, 6)), (False, True): ((-6, -10), (6, -10)), (False, False): ((-6, 10), (6, 10))}
    (a, b), (c, d) = sides[(y1 == y2, x2 > x1 or y2 > y1)]
    return (
        f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'
        f'<polygon class="{tip}" points="{x2:g},{y2:g} {x2 + a:g},{y2 + b:g} {x2 + c:g},{y2 + d:g}"/>'
    )


def write(name: str, label: str, height: int, drawn: list[str]) -> None:
    body = "\n".join(drawn)
    (ROOT / "docs" / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{escape(label)}">\n'
        f"<!-- Drawn by tools/draw-pictures.py. -->\n<style>{STYLE}</style>\n"
        f'<rect class="sheet" width="{WIDTH}" height="{height}"/>\n{body}\n</svg>\n'
    )


def first_request(program: str, stack: str) -> dict[str, float]:
    """The times of the first request of a run, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        path, log = pathlib.Path(folder) / "stack.toml", pathlib.Path(folder) / "log.csv"
        path.write_text(stack)
        subprocess.run([program, "run", str(path), "--log", str(log)], check=True, stdout=subprocess.DEVNULL)
        with log.open() as rows:
            row = next(csv.DictReader(rows))
    return {key.removesuffix("_ns"): int(value) / 1e6 for key, value in row.items() if key.endswith("_ns")}


ACCESS = """seed = 3
[workload]
kind = "synthetic"
requests = 1
size = "1MiB"
read_share = 1.0
arrivals = { process = "closed", outstanding = 1 }
[volume]
drive = "seagate-ironwolf-8tb"
"""

PARTS = [
    ("overhead", "overhead", "the drive reads the command"),
    ("seek", "seek", "the arm moves to the cylinder and settles"),
    ("rotation", "rotation", "the first sector comes under the head"),
    ("transfer", "transfer", "all sectors pass under the head, with track switches"),
]


def access(program: str) -> None:
    times = first_request(program, ACCESS)
    whole = times["response"]
    left, width, top = 40, 920, 90
    drawn = [
        text(left, 34, "One access: a read of 1 MiB at a random place of a 7,200 rpm drive (seagate-ironwolf-8tb)", "title"),
        text(left, 58, f"response time {whole:.1f} ms; the parts add up exactly. A write into the buffer, or a read hit, ends after overhead and bus.", "left small"),
    ]
    at = float(left)
    for row, (key, name, meaning) in enumerate(PARTS):
        length = width * times[key] / whole
        drawn.append(box(key, at, top, max(length, 2.0), 46))
        if length > 80:
            drawn.append(text(at + length / 2, top + 20, name, "strong"))
            drawn.append(text(at + length / 2, top + 37, f"{times[key]:.2f} ms"))
        at += length
        y = 196 + 22 * row
        drawn.append(box(key, left, y - 12, 16, 16))
        drawn.append(text(left + 26, y, f"{name}, {times[key]:.2f} ms: {meaning}", "left"))
    step = 5
    for tick in range(0, int(whole) + 1, step):
        x = left + width * tick / whole
        drawn.append(f'<line class="axis" x1="{x:.1f}" y1="{top + 46}" x2="{x:.1f}" y2="{top + 54}"/>')
        drawn.append(text(x, top + 70, f"{tick} ms", "small"))
    write("access.svg", "One drive access as a time line", 290, drawn)


RAID5 = """seed = 3
[workload]
kind = "synthetic"
requests = 1
size = "4KiB"
read_share = 0.0
arrivals = { process = "closed", outstanding = 1 }
[volume]
layout = "raid5"
like = "ideal"
drive = "seagate-ironwolf-8tb"
write_cache = false
drives = 5
"""


def raid5(program: str) -> None:
    times = first_request(program, RAID5)
    members, rows, left, top, width, height = 5, 5, 40, 84, 82, 30
    drawn = [text(left, 34, "A RAID 5 plan: a write of 4 KiB changes one chunk and the parity of its row", "title")]
    for member in range(members):
        drawn.append(text(left + member * (width + 8) + width / 2, top - 10, f"member {member}", "strong"))
    row_of_write, chunk_of_write = 2, 1
    for row in range(rows):
        # md's left-symmetric rotation (`raid5_compute_sector` in drivers/md/raid5.c, ALGORITHM_LEFT_SYMMETRIC).
        parity = members - 1 - row % members
        for place in range(members):
            member = (parity + 1 + place) % members
            x, y = left + member * (width + 8), top + row * (height + 6)
            is_parity = place == members - 1
            chosen = row == row_of_write and (is_parity or place == chunk_of_write)
            kind = ("parity" if is_parity else "data") + (" chosen" if chosen else "")
            drawn.append(box(kind, x, y, width, height))
            words = f"parity {row}" if is_parity else f"chunk {row * (members - 1) + place}"
            drawn.append(text(x + width / 2, y + 20, words))
    x = 510
    first, second = times["parity"], times["response"] - times["parity"]
    lines = [
        ("strong left", "The row is locked against other writes."),
        ("left", f"Phase 0, {first:.1f} ms: two members read old data and old parity."),
        ("left", "new parity = old parity xor old data xor new data"),
        ("left", f"Phase 1, {second:.1f} ms: both write new data and new parity."),
        ("strong left", f"The write is complete after {times['response']:.1f} ms; the row is unlocked."),
        ("left small", "Each phase ends with its slower member. Phase 1 waits for the next revolution,"),
        ("left small", "because the heads have just passed the sectors. A write of a whole row"),
        ("left small", "needs no phase 0. If one member has failed, its data follow from the others."),
    ]
    drawn += [text(x, 96 + 24 * at, words, kind) for at, (kind, words) in enumerate(lines)]
    write("raid5-plan.svg", "A RAID 5 plan: rows, parity, and the two phases of a small write", 290, drawn)


# Left, top, kind, first line, second line.
STATIONS = [
    (20, 130, "box", "client", "write 4 KiB"),
    (180, 130, "box", "real/nbd", "bytes to request"),
    (340, 130, "box", "real/live: ticket", "client, request, payload"),
    (540, 70, "when", "the model: WHEN", "host, volume, drives in simulated time"),
    (540, 190, "where", "the store: WHERE", "mark the region, plan, parity, journal"),
    (830, 190, "where", "sparse files", "one file per member"),
]


def nbd() -> None:
    widths = {"box": 140, "when": 250, "where": 250}
    drawn = [text(20, 34, "One NBD byte: the model decides when a write ends, the store decides where its bytes go", "title")]
    for x, y, kind, name, caption in STATIONS:
        width = 150 if x in (340, 830) else widths[kind]
        drawn.append(box(kind, x, y, width, 52))
        drawn.append(text(x + width / 2, y + 22, name, "strong"))
        drawn.append(text(x + width / 2, y + 40, caption, "small"))
    drawn += [
        arrow("way", "tip", (160, 148), (180, 148)),
        arrow("way", "tip", (320, 148), (340, 148)),
        '<polyline class="way" points="490,148 514,148 514,96"/>',
        arrow("way", "tip", (514, 96), (540, 96)),
        text(515, 66, "extent only", "small"),
        arrow("way", "tip", (665, 122), (665, 190)),
        text(672, 160, "end of the write in simulated time = real time", "left small"),
        arrow("way", "tip", (790, 216), (830, 216)),
        '<polyline class="back" points="665,242 665,282 90,282 90,190"/>',
        arrow("back", "back-tip", (90, 190), (90, 182)),
        text(378, 274, "reply; after a flush or FUA, once the files are synced", "small"),
    ]
    write("nbd-byte.svg", "The way of one NBD write through model and store", 300, drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "target/release/fullstroke"), help="fullstroke; default target/release/fullstroke")
    program = parser.parse_args().program
    if not pathlib.Path(program).exists():
        sys.exit(f"{program}: not found. Build it: cargo build --release --package fullstroke")
    access(program)
    raid5(program)
    nbd()


if __name__ == "__main__":
    main()

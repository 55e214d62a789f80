#!/usr/bin/env python3
"""Draws docs/storeys.svg: the storeys of crates/, their crates, and a request that falls through them.

    tools/draw-storeys.py [FILE]

The crates are read from the folders. The script stops if a folder has a crate for which no place is given here, or if a
place names a crate that no folder has. crates/cli/tests/all/storeys.rs holds the picture to the folders, too.
"""

import pathlib
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent

# All figures are pixels of the picture.
WIDTH, HEIGHT = 1000, 942
ROOM_WIDTH, ROOM_HEIGHT = 118, 40

# Storey -> (left, top, width, height, the sentence that says what the storey is for).
STOREYS = {
    "cli": (240, 14, 300, 60, "the commands"),
    "web": (560, 14, 200, 60, "the page in a browser"),
    "answers": (20, 92, 392, 134, "simulated, compared, explained"),
    "real": (432, 92, 548, 134, "real clients, devices and clocks"),
    "input": (20, 244, 960, 80, "files become graphs of layers"),
    "path": (20, 342, 960, 486, "the way of a request: no clock, no thread, no file"),
    "ground": (20, 846, 960, 80, "what every layer shares: no clock, no thread"),
}

# The column in the middle of the picture is the way of every request.
MIDDLE = 441
# Crate -> (left, top, caption).
ROOMS = {
    "answers": {
        "advise": (36, 120, "which layout"),
        "study": (160, 120, "papers, claims"),
        "lab": (284, 120, "candidates, ranked"),
        "predict": (36, 174, "closed forms"),
        "report": (160, 174, "pages, charts"),
        "measure": (284, 174, "times, their parts"),
    },
    "real": {
        "calibrate": (448, 120, "disk to model"),
        "replay": (582, 120, "traces on devices"),
        "transport": (716, 120, "sockets, ublk"),
        "nbd": (850, 120, "the protocol"),
        "device": (448, 174, "disks and files"),
        "store": (582, 174, "durable bytes"),
        "live": (716, 174, "the real clock"),
    },
    "input": {
        "disksim": (36, 274, "its disks"),
        "trace": (160, 274, "traces, all formats"),
        "stack": (MIDDLE, 274, "stack file to graph"),
    },
    "path": {
        "workload": (MIDDLE, 374, "requests are born"),
        "host": (MIDDLE, 438, "page cache, elevator"),
        "stage": (MIDDLE, 502, "several hosts share"),
        "controller": (MIDDLE, 566, "hardware cache"),
        "volume": (MIDDLE, 630, "layouts, parity plans"),
        "link": (MIDDLE, 694, "loop, bus, lanes"),
        "drive": (MIDDLE, 758, "queue, arm, platter"),
        "fio": (36, 374, "job files"),
        "programs": (166, 374, "calls on files"),
        "vfs": (296, 374, "carries calls out"),
        "files": (166, 438, "where files lie"),
        "memory": (296, 438, "pages, write-back"),
        "opportunity": (296, 502, "PULL and PUSH"),
        "pool": (296, 630, "pools like ZFS"),
        "blockcache": (296, 566, "a flash cache"),
        "smart": (700, 726, "disks do parity"),
    },
    "ground": {
        "units": (36, 874, "times, addresses"),
        "contract": (171, 874, "what crosses layers"),
        "counters": (306, 874, "names, help texts"),
        "engine": (MIDDLE, 874, "graph and clock"),
        "tracks": (576, 874, "where tracks begin"),
        "parity": (711, 874, "P and Q"),
        "table": (846, 874, "columnar files"),
    },
}

# A picture in a page has no style of that page: both colour schemes stand in the file itself.
STYLE = """
  .sheet { fill: #ffffff } .storey { stroke: #c4c9d1; stroke-width: 1 }
  .cli, .web { fill: #f3f1fa } .answers { fill: #edf6f0 } .real { fill: #fbf1ea } .input { fill: #f2f5f9 }
  .path { fill: #e9f1fb } .ground { fill: #eceae4 }
  .room { fill: #ffffff; stroke: #7d8794; stroke-width: 1.2 }
  .falls { fill: #fff3ee; stroke: #d2491a; stroke-width: 1.8 }
  text { font-family: "DejaVu Sans", Verdana, Helvetica, Arial, sans-serif; fill: #1c2530; text-anchor: middle }
  .name { font-size: 14px; font-weight: bold } .caption { font-size: 10.5px; fill: #46515e }
  .title { font-size: 14px; font-weight: bold; text-anchor: start } .purpose { font-size: 11.5px; font-weight: normal; fill: #46515e }
  .note { font-size: 11.5px; text-anchor: start; fill: #1c2530 }
  .request { stroke: #d2491a; stroke-width: 5; fill: none } .head { fill: #d2491a }
  .client { stroke: #d2491a; stroke-width: 2.5; stroke-dasharray: 7 4; fill: none }
  .answer { stroke: #2b6cb0; stroke-width: 2.2; fill: none } .answer-head { fill: #2b6cb0 }
  .plain { stroke: #6a7380; stroke-width: 1.8; fill: none } .plain-head { fill: #6a7380 }
  @media (prefers-color-scheme: dark) {
    .sheet { fill: #12171e } .storey { stroke: #46505e }
    .cli, .web { fill: #221f33 } .answers { fill: #17281f } .real { fill: #2e2119 } .input { fill: #1b222c }
    .path { fill: #15243a } .ground { fill: #26241e }
    .room { fill: #1a212b; stroke: #8a94a2 } .falls { fill: #38211a; stroke: #ff8a5c }
    text, .note { fill: #e8edf3 } .caption, .purpose { fill: #b3bdc9 }
    .request, .client { stroke: #ff8a5c } .head { fill: #ff8a5c }
    .answer { stroke: #78b4f0 } .answer-head { fill: #78b4f0 } .plain { stroke: #aab4c0 } .plain-head { fill: #aab4c0 }
  }
"""


def crates() -> dict[str, set[str]]:
    """The crates of each storey that has rooms, from the folders."""
    found = {}
    for storey in STOREYS:
        folder = ROOT / "crates" / storey
        if not (folder / "Cargo.toml").exists():
            found[storey] = {manifest.parent.name for manifest in folder.glob("*/Cargo.toml")}
    return found


def check() -> None:
    for storey, names in crates().items():
        placed = set(ROOMS[storey])
        if names - placed:
            sys.exit(f"crates/{storey} has {sorted(names - placed)}; expected a place for each in ROOMS of {sys.argv[0]}")
        if placed - names:
            sys.exit(f"ROOMS of {sys.argv[0]} has {sorted(placed - names)} in {storey}; crates/{storey} has no such folder")


def head(kind: str, x: float, y: float, towards: str) -> str:
    """An arrow's head with its point at x, y."""
    sides = {"down": ((-7, -11), (7, -11)), "up": ((-7, 11), (7, 11)), "left": ((11, -7), (11, 7)), "right": ((-11, -7), (-11, 7))}
    (x1, y1), (x2, y2) = sides[towards]
    return f'<polygon class="{kind}" points="{x},{y} {x + x1},{y + y1} {x + x2},{y + y2}"/>'


def line(kind: str, *points: tuple[float, float]) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{x},{y}" for x, y in points)}"/>'


def note(x: float, y: float, *lines: str) -> str:
    return "".join(f'<text class="note" x="{x}" y="{y + 15 * n}">{escape(text)}</text>' for n, text in enumerate(lines))


def storeys() -> list[str]:
    drawn = []
    for name, (left, top, width, height, purpose) in STOREYS.items():
        if name in ("cli", "web"):  # The roofs.
            corners = f"{left + 40},{top} {left + width - 40},{top} {left + width},{top + height} {left},{top + height}"
            drawn.append(f'<polygon class="storey {name}" points="{corners}"/>')
            drawn.append(f'<text class="name" x="{left + width / 2}" y="{top + 26}">crates/{name}</text>')
            drawn.append(f'<text class="caption" x="{left + width / 2}" y="{top + 44}">{escape(purpose)}</text>')
            continue
        drawn.append(f'<rect class="storey {name}" x="{left}" y="{top}" width="{width}" height="{height}" rx="5"/>')
        drawn.append(
            f'<text class="title" x="{left + 16}" y="{top + 18}">crates/{name}'
            f'<tspan class="purpose" dx="10">{escape(purpose)}</tspan></text>'
        )
    return drawn


def rooms() -> list[str]:
    drawn = []
    for storey, places in ROOMS.items():
        for name, (left, top, caption) in places.items():
            falls = storey == "path" and left == MIDDLE
            centre = left + ROOM_WIDTH / 2
            drawn.append(
                f'<rect class="{"room falls" if falls else "room"}" x="{left}" y="{top}" width="{ROOM_WIDTH}" height="{ROOM_HEIGHT}" rx="4"/>'
                f'<text class="name" x="{centre}" y="{top + 17}">{name}</text>'
                f'<text class="caption" x="{centre}" y="{top + 32}">{escape(caption)}</text>'
            )
    return drawn


def ways() -> list[str]:
    """The lines: a request down, a client's request, the bytes, the completion up."""
    centre = MIDDLE + ROOM_WIDTH / 2
    right = MIDDLE + ROOM_WIDTH
    column = sorted(top for left, top, _ in ROOMS["path"].values() if left == MIDDLE)
    drawn = [line("request", (centre, column[0] + ROOM_HEIGHT), (centre, column[-1] - 9))]
    drawn += [head("head", centre, top - 1, "down") for top in column[1:]]
    # The lab runs the graph of a stack file.
    drawn += [line("plain", (402, 140), (422, 140), (422, 294), (432, 294)), head("plain-head", 440, 294, "right")]
    drawn += [line("plain", (centre, 314), (centre, 366)), head("plain-head", centre, 373, "down")]
    # A client's request enters below the workload: clients are the workload.
    drawn += [
        line("client", (909, 160), (909, 194), (843, 194)),
        head("head", 835, 194, "left"),
        line("client", (775, 214), (775, 458), (right + 9, 458)),
        head("head", right + 1, 458, "left"),
        line("plain", (716, 194), (708, 194)),
        head("plain-head", 701, 194, "left"),
    ]
    # Calls of programs reach the page cache, and the page cache's reads and writes the block layer.
    drawn += [
        line("client", (284, 394), (288, 394)),
        head("head", 295, 394, "right"),
        line("client", (355, 414), (355, 430)),
        head("head", 355, 437, "down"),
        line("client", (414, 458), (432, 458)),
        head("head", 440, 458, "right"),
    ]
    # Disks that compute parity stand in the place of link and drive.
    drawn += [line("client", (right, 650), (759, 650), (759, 718)), head("head", 759, 725, "down")]
    # The completion.
    drawn += [line("answer", (right, 778), (620, 778), (620, 394), (right + 9, 394)), head("answer-head", right + 1, 394, "left")]
    drawn += [
        note(630, 390, "completions and notice", "go up the same edges"),
        note(785, 390, "a client's request enters", "where a workload would stand"),
        note(36, 600, "A request falls through the layers that", "its stack file names.", "", "Each layer is told the time with each", "event, and answers with effects."),
        note(36, 706, "Bytes of real clients move when the model", "says that their request has finished:", "live asks store, and store carries out", "the same layout's plan."),
    ]
    return drawn


def picture() -> str:
    parts = storeys() + ways() + rooms()
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="The storeys of crates/, and a request that falls through them">\n'
        f"<!-- Drawn by tools/draw-storeys.py. -->\n<style>{STYLE}</style>\n"
        f'<rect class="sheet" width="{WIDTH}" height="{HEIGHT}" rx="8"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    check()
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "storeys.svg"
    target.write_text(picture())


if __name__ == "__main__":
    main()

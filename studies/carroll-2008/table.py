#!/usr/bin/env python3
"""Carroll's claims beside what fullstroke obtains.

usage: table.py [--only C-3] [--jobs 2] [--write]

Runs the stacks of `stacks/` with target/release/fullstroke (or the program named
in FULLSTROKE) and prints two tables: what is published beside what is obtained,
and what becomes of it with one thing changed. With --write, puts them into
README.md. Ends with 0 whether or not the claims hold: what does not is a result,
too.

| file | what |
|---|---|
| `table.py` | the command |
| `claims.py` | what "near" and "alike" mean; a row of the table |
| `fullstroke.py` | runs stacks |
| `arrays.py` | his arrays and schedulers |
| `deadline_fixes.py` | C-1, C-2 |
| `readers.py` | what C-3, C-4 and C-7 share |
| `random_readers.py` | C-3 |
| `sequential_readers.py` | C-4 |
| `anticipation.py` | C-5 |
| `analytic.py` | C-6 |
| `scaled_expiries.py` | C-7 |
| `variations.py` | one thing changed |
"""

import argparse
import os
import time

import analytic
import anticipation
import deadline_fixes
import random_readers
import scaled_expiries
import sequential_readers
import variations
from fullstroke import HERE, Laboratory

CLAIMS = {
    "C-1": deadline_fixes.batch_count,
    "C-2": deadline_fixes.start_sector,
    "C-3": random_readers.rows,
    "C-4": sequential_readers.rows,
    "C-5": anticipation.rows,
    "C-6": analytic.rows,
    "C-7": scaled_expiries.rows,
}

HEADINGS = ["claim", "what", "published", "obtained", "verdict"]

BEGIN, END = "<!-- table.py writes from here -->", "<!-- to here -->"


def main():
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description="Carroll's claims beside what fullstroke obtains.")
    parser.add_argument("--only", action="append", choices=sorted(CLAIMS), help="only this claim (may be repeated)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    arguments = parser.parse_args()
    if arguments.write and arguments.only:
        parser.error("--write writes the whole table; leave --only out")
    began = time.monotonic()
    laboratory = Laboratory(arguments.jobs)
    rows = [row for name in arguments.only or sorted(CLAIMS) for row in CLAIMS[name](laboratory)]
    tables = [markdown(HEADINGS, [row.cells() for row in rows])]
    if not arguments.only:
        tables.append(markdown(variations.HEADINGS, variations.lines(laboratory)))
    text = "\n\n".join(tables)
    print(text)
    print(f"\n{len(laboratory.results)} runs in {time.monotonic() - began:.0f} s")
    if arguments.write:
        write(text)


def markdown(headings, rows):
    """A table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write(tables):
    """Replaces what stands between the markers of README.md."""
    readme = HERE / "README.md"
    text = readme.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise SystemExit(f"{readme}: expected one line `{BEGIN}` and, behind it, one line `{END}`")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    readme.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()

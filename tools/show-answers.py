#!/usr/bin/env python3
"""Write the answers in README.md, docs/start.md and the tutorials again.

    tools/show-answers.py PROGRAM

A `text` block behind a block of commands shows what the commands print. The script runs the
commands in the root of the checkout and replaces each shown line by the most similar printed line.
A line without a similar printed line stays and is named. The figures in the sentences around the
blocks are not changed: read the sentences again.
"""

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "docs/start.md", *sorted(map(str, Path("docs").glob("tutorial-*.md")))]
# Least similarity of a shown line and a printed line that are the same row.
SIMILAR = 0.5


def words(line):
    return " ".join(line.split())


def is_label(word):
    return not re.fullmatch(r"[-+≈?]?[\d.,]+|best|[≈?±-]|", word)


def similarity(shown, printed):
    """Labels tell rows apart, figures do not."""
    labels = [[word for word in words(line).split() if is_label(word)] for line in (shown, printed)]
    of_labels = difflib.SequenceMatcher(None, *labels).ratio()
    columns = abs(len(shown.split()) - len(printed.split()))
    return of_labels + 0.1 * difflib.SequenceMatcher(None, shown, printed).ratio() - 0.02 * columns


def paragraph(lines, number):
    """The lines around the line `number`, up to the next empty lines."""
    begin = end = number
    while begin > 0 and lines[begin - 1].strip():
        begin -= 1
    while end < len(lines) and lines[end].strip():
        end += 1
    return lines[begin:end]


def table_of(shown, printed):
    """The printed lines of the table whose header the shown lines have; all lines without one."""
    for number, line in enumerate(printed):
        if words(line) == words(shown[0]):
            return paragraph(printed, number)
    return printed


def printed_by(program, commands, folder):
    lines = []
    for command in commands.replace("make demo", "fullstroke compare stacks/demo/*.toml").splitlines():
        command = command.split(" #")[0].strip()
        if command.startswith("fullstroke "):
            command = re.sub(r"^fullstroke\b", str(program), command)
            # Files that a command writes go to a folder of their own.
            command = re.sub(r"(--report|--plot|-o) (\S+)", rf"\1 {folder}/\2", command)
            output = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
            if output.returncode != 0:
                sys.exit(f"{command}\n{output.stderr}")
            lines += output.stdout.splitlines()
    return lines


def shown_again(page, program, folder):
    path = ROOT / page
    parts = re.split(r"(```\w*\n.*?```)", path.read_text(), flags=re.S)
    blocks = [number for number, part in enumerate(parts) if part.startswith("```")]
    for commands, output in zip(blocks, blocks[1:]):
        if not (parts[commands].startswith("```\n") and parts[output].startswith("```text\n")):
            continue
        printed = printed_by(program, parts[commands][4:-3], folder)
        shown = parts[output][8:-3].splitlines()
        lines = []
        for line in shown:
            if not line.strip() or any(words(line) in words(own) for own in printed):
                lines.append(line)
                continue
            rows = table_of(paragraph(shown, len(lines)), printed)
            best = max(rows, key=lambda own: similarity(line, own))
            if similarity(line, best) < SIMILAR:
                print(f"{page}: no printed line is like: {line}")
                best = line
            else:
                print(f"{page}:\n- {line}\n+ {best}")
            lines.append(best)
        parts[output] = "```text\n" + "\n".join(lines) + "\n```"
    path.write_text("".join(parts))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for page in PAGES:
            shown_again(page, program, folder)


main()

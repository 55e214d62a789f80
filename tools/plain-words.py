#!/usr/bin/env python3
"""Counts habits that make the project's prose hard to read. `make lint` runs the check.

    tools/plain-words.py              a row per crate and per document, marks that are exceeded end in `!`
    tools/plain-words.py --check      the same, and status 1 if any mark is exceeded
    tools/plain-words.py --worst 20   the sentences with the highest share of pronouns and relative words

The prose is the doc comments of each crate and the running text of each document: code, tables and
the generated pages are left out. A mark is a count per 1,000 words, a sentence length, or a share of
sentences. The marks lie a little above those of redb, quinn and TigerBeetle. A count says nothing
about a single sentence: the goal is that a reader understands a sentence at the first reading.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = {
    "what": {"what", "whatever"},
    "who": {"who", "whom", "whose", "whoever"},
    "it": {"it", "its", "they", "them", "their", "theirs"},
    "that": {"that", "which"},
    "those": {"those", "these", "such"},
}
MARKS = {"what": 3.0, "who": 2.0, "it": 20.0, "that": 20.0, "those": 5.0, "mean": 17.0, "long": 30.0, "What…": 1.0}
# A unit with fewer words has no meaningful rates.
LEAST_WORDS = 150
# Pages that quote sources word for word, or that are generated from quoted parts.
QUOTED = ("studies/", "docs/reference", "docs/metrics.md", "docs/fio.md")


def doc_comments(text):
    """The blocks of `///` and `//!` lines of a Rust file."""
    blocks, block = [], []
    for line in text.splitlines() + [""]:
        comment = re.match(r"\s*//[/!](?!/)\s?(.*)", line)
        if comment:
            block.append(comment.group(1))
        elif block:
            blocks.append("\n".join(block))
            block = []
    return blocks


def sentences(block):
    """Each sentence of a block with its words."""
    block = re.sub(r"```.*?(?:```|\Z)", "", block, flags=re.S)
    block = re.sub(r"^ {4}.*$", "", block, flags=re.M)
    block = re.sub(r"^\s*\|.*$", "", block, flags=re.M)
    block = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", block)
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*#]|\d+\.)\s", block):
        for sentence in re.split(r"(?<=[.!?;:])\s+(?=[A-Z`\[(*])", " ".join(paragraph.split())):
            words = re.findall(r"[A-Za-z'][A-Za-z'_-]*", sentence)
            if len(words) > 1:
                yield sentence, words


def units():
    """The crates and documents: a name, and blocks of prose."""
    for manifest in sorted(ROOT.glob("crates/**/Cargo.toml")):
        folder = manifest.parent
        blocks = [block for file in sorted(folder.rglob("*.rs")) for block in doc_comments(file.read_text())]
        yield str(folder.relative_to(ROOT)), blocks
    for file in sorted(ROOT.rglob("*.md")):
        name = str(file.relative_to(ROOT))
        if not name.startswith(("target/", "fuzz/", ".", *QUOTED)) and "/target/" not in name:
            yield name, [file.read_text()]


def figures(found):
    lengths = sorted(len(words) for _, words in found)
    total = sum(lengths)
    lower = [[word.lower() for word in words] for _, words in found]
    rates = {
        name: 1000 * sum(word in group for words in lower for word in words) / total
        for name, group in WORDS.items()
    }
    rates["mean"] = total / len(lengths)
    rates["long"] = lengths[int(0.9 * (len(lengths) - 1))]
    rates["What…"] = 100 * sum(words[0] == "what" for words in lower) / len(lower)
    return total, rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--worst", type=int, default=0)
    given = parser.parse_args()
    heavy, exceeded = [], []
    print(f"{'per 1,000 words':<32}{'words':>7}" + "".join(f"{name:>8}" for name in MARKS))
    for name, blocks in units():
        found = [sentence for block in blocks for sentence in sentences(block)]
        if sum(len(words) for _, words in found) < LEAST_WORDS:
            continue
        total, rates = figures(found)
        over = [mark for mark, most in MARKS.items() if rates[mark] > most]
        cells = "".join(f"{rates[mark]:>7.1f}{'!' if mark in over else ' '}" for mark in MARKS)
        print(f"{name:<32}{total:>7}{cells}")
        exceeded += [f"{name}: {mark} {rates[mark]:.1f}, at most {MARKS[mark]}" for mark in over]
        for sentence, words in found:
            count = sum(word.lower() in group for word in words for group in WORDS.values())
            heavy.append((count / (len(words) + 4), name, sentence))
    for _, name, sentence in sorted(heavy, reverse=True)[: given.worst]:
        print(f"{name}: {sentence}")
    if given.check and exceeded:
        sys.exit("prose beyond a mark (tools/plain-words.py --help):\n" + "\n".join(exceeded))


if __name__ == "__main__":
    main()

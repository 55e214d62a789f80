#!/usr/bin/env python3
"""A preprocessor of mdBook: links of pages that leave docs/ become the path of the file within the project.

The site has docs/ alone; sources, results and schemas are the project's, and a link to them would lead nowhere.
"""

import json
import re
import sys


def leaving(path: str) -> re.Pattern:
    """The links of a page that leave docs/: a page in a folder of docs/ needs one more `../` for that."""
    return re.compile(r"\[([^\]]*)\]\((?:\.\./){%d}([^)#\s]+)(#[^)\s]*)?\)" % (1 + path.count("/")))


def plain(match: re.Match) -> str:
    words, path = match[1], match[2]
    return f"`{path}`" if words.strip("`") in path else f"{words} (`{path}`)"


def mend(items: list) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            chapter["content"] = leaving(chapter["path"] or "").sub(plain, chapter["content"])
            mend(chapter["sub_items"])


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    mend(book.get("items") or book.get("sections"))
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()

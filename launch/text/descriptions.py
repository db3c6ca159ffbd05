"""Debian's package descriptions in two languages: Translation-* index files, joined by the MD5 of
the English one. Paragraphs and list items are paired by position where both sides have as many.
"""

import re

# A line that begins an item of a list: its bullet or number, its text.
ITEM = re.compile(r" *(?:[*+•·–—-]|(?:o|\d{1,2}[.)]|\([a-z0-9]\))(?=\s))\s*(?P<text>\S.*)")

# What follows a hyphen that stands for an omitted word, as in "Ein- und Ausgabe".
SUSPENDED = re.compile(r"(?:and|or|to|und|oder|bzw|sowie|bis|et|ou)\b")


def read_index(lines, language):
    """Yields (package, md5, [first line, long description lines...]) of a Translation-xx file."""
    field = f"Description-{language}:"
    package = md5 = ""
    body = None
    for line in [*lines, ""]:
        line = line.rstrip("\n")
        if line.startswith(" ") and body is not None:
            body.append(line[1:])
        elif line.startswith(field):
            body = [line[len(field):].strip()]
        elif line.startswith("Package:"):
            package = line.split(":", 1)[1].strip()
        elif line.startswith("Description-md5:"):
            md5 = line.split(":", 1)[1].strip()
        elif not line.strip():
            if body is not None and md5:
                yield package, md5, body
            package = md5 = ""
            body = None


def joined(line, following):
    """Two lines of one paragraph; a compound cut behind its hyphen is made whole again."""
    following = following.strip()
    if re.search(r"\w-$", line) and not SUSPENDED.match(following):
        return line + following
    return f"{line} {following}"


def sections(body):
    """Cuts a long description into sections (between lines with a lone dot) of (kind, text).

    Kinds: "paragraph", "item" (its bullet removed), "verbatim" (indented lines without a bullet).
    """
    result = [[]]
    item_indent = None
    for line in body:
        if line.strip() == ".":
            result.append([])
            item_indent = None
            continue
        match = ITEM.fullmatch(line)
        indent = len(line) - len(line.lstrip(" "))
        last = result[-1][-1] if result[-1] else None
        if match and (indent > 0 or line.startswith("* ")):
            result[-1].append(["item", match["text"]])
            item_indent = indent
        elif last and last[0] == "item" and (indent > item_indent or item_indent == 0):
            last[1] = joined(last[1], line)
        elif indent > 0:
            result[-1].append(["verbatim", line.strip()])
        elif last and last[0] == "paragraph":
            last[1] = joined(last[1], line)
        else:
            result[-1].append(["paragraph", line.strip()])
    return [[tuple(unit) for unit in section] for section in result if section]


def paired_units(source, target):
    """Yields (source text, target text, reason to drop it or "") for two descriptions."""
    yield source[0], target[0], ""
    source, target = sections(source[1:]), sections(target[1:])
    if len(source) != len(target):
        for section in source:
            for _, text in section:
                yield text, "", "descriptions have different numbers of paragraphs"
        return
    for left, right in zip(source, target):
        same = [kind for kind, _ in left] == [kind for kind, _ in right]
        for i, (kind, text) in enumerate(left):
            if not same:
                yield text, "", "lists have different numbers of items"
            else:
                yield text, right[i][1], "verbatim lines" if kind == "verbatim" else ""


def families(package_index_lines):
    """Package -> family, from a Packages index: the start of the name of its source package.

    "texlive-base" and "texlive-extra" are one family, as are all of "python-*".
    """
    result = {}
    package = source = ""
    for line in [*package_index_lines, ""]:
        if line.startswith("Package:"):
            package = line.split(":", 1)[1].strip()
        elif line.startswith("Source:"):
            source = line.split(":", 1)[1].split("(")[0].strip()
        elif not line.strip() and package:
            result[package] = family(source or package)
            package = source = ""
    return result


def family(source_package):
    """The start of a name, up to the first hyphen, dot, plus or digit that follows a letter."""
    return re.match(r"[^a-z]*[a-z]*", source_package)[0] or source_package

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that docs/architecture.md names what exists. The page is divided into units: a list item, a table row, a
paragraph. In backticks,

- a path (`src/...`, `include/...`, `tests/...`, `docs/...`, `cmake/...`) exists;
- a name (`name()`, `Class::name()`, `Class`) is defined by the next path of its unit: it occurs there as an identifier
  outside of comments, in a folder in any file of it; a name that no path follows occurs somewhere in src or include;
- a file name alone (`queue.h`) is a header of include/muster.

Each module of src has a row in the page and a box in the picture, in the layer that layers.py gives it."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE, PICTURE = "docs/architecture.md", "docs/pictures/architecture.svg"
PATH = re.compile(r"(?:src|include|tests|docs|cmake|bindings|examples)/[\w./-]*")
NAME = re.compile(r"((?:\w+::)*)([A-Za-z_]\w*)(\(\))?")
HEADER = re.compile(r"\w+\.h")
PLAIN = re.compile(r"[a-z][a-z0-9]*")  # a word, such as a scheme or a thread's name: no identifier to look for
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
read_already = {}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def code(path):
    """The code of a file, or of all files of a folder, without comments."""
    if path not in read_already:
        whole = os.path.join(ROOT, path)
        names = [whole] if os.path.isfile(whole) else [
            os.path.join(folder, name) for folder, _, files in os.walk(whole) for name in sorted(files)
            if name.endswith((".cpp", ".hpp", ".h", ".c", ".py", ".txt"))]
        read_already[path] = "\n".join(COMMENT.sub("", read(name)) for name in names)
    return read_already[path]


def units(text):
    """List items, table rows and paragraphs, each with the number of its first line."""
    unit, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        starts = re.match(r"\s*(\d+\.|-|\||#|$)", line)
        if starts and unit:
            yield first, " ".join(unit)
            unit = []
        if line.strip():
            if not unit:
                first = number
            unit.append(line.strip())


def missing(name, places):
    """What of a name does not occur in the code of the places."""
    scopes, last, called = NAME.fullmatch(name).groups()
    text = "\n".join(code(place) for place in places)
    words = [scope for scope in scopes.split("::") if scope]
    found = all(re.search(rf"\b{word}\b", text) for word in words)
    return not (found and re.search(rf"\b{last}\b" + (r"\s*(?:<[^;(]*>)?\s*\(" if called else ""), text))


def complaints(text):
    for number, unit in units(text):
        names = []
        for token in re.findall(r"`([^`]+)`", unit):
            if PATH.fullmatch(token):
                if not os.path.exists(os.path.join(ROOT, token)):
                    yield f"{PAGE}:{number}: {token} does not exist"
                    continue
                yield from (f"{PAGE}:{number}: {token} has no {name}" for name in names if missing(name, [token]))
                names = []
            elif HEADER.fullmatch(token):
                if not os.path.exists(os.path.join(ROOT, "include", "muster", token)):
                    yield f"{PAGE}:{number}: there is no include/muster/{token}"
            elif NAME.fullmatch(token) and not PLAIN.fullmatch(token):
                names.append(token)
        yield from (f"{PAGE}:{number}: neither src nor include has {name}" for name in names
                    if missing(name, ["src", "include"]))


def layers():
    """Where the modules are in layers.py: {module: number of its row}."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import layers  # pylint: disable=import-outside-toplevel
    return {module: row for row, modules in enumerate(layers.LAYERS) for module in modules.split()}


def picture_complaints(page, picture):
    row_of = layers()
    folders = {name for name in os.listdir(os.path.join(ROOT, "src")) if os.path.isdir(os.path.join(ROOT, "src", name))}
    modules = folders - {"cli", "plugins"}
    boxes = {name: float(y) for y, name in re.findall(r'<text class="module"[^>]* y="([\d.]+)"[^>]*>(\w+)<', picture)}
    yield from (f"{PAGE}: no row for src/{name}" for name in sorted(folders) if f"| `src/{name}`" not in page)
    yield from (f"{PICTURE}: no box for {name}" for name in sorted(modules - set(boxes)))
    yield from (f"{PICTURE}: there is no module {name}" for name in sorted(set(boxes) - modules))
    known = [name for name in boxes if name in modules]
    for one in known:
        for other in known:
            if row_of[one] > row_of[other] and boxes[one] >= boxes[other]:
                yield f"{PICTURE}: {one} is not above {other}"


def main():
    page = read(PAGE)
    wrong = list(complaints(page)) + list(picture_complaints(page, read(PICTURE)))
    # The check itself: a name that is changed is found.
    for old in ("Stream::write()", "src/stream/pipe.cpp"):
        if old in page and not list(complaints(page.replace(f"`{old}`", f"`{old[:-2]}_not_there{old[-2:]}`"))):
            wrong.append(f"architecture.py does not notice that {old} was changed")
    checked = len(re.findall(r"`[^`]+`", page))
    print("\n".join(wrong) if wrong else f"architecture: {checked} names and paths, ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

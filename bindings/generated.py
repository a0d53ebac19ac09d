# SPDX-License-Identifier: MIT
"""What the generators of the bindings share: the public surface, and files that are kept in step with it."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MARK = "do not edit"  # in the first lines of what a generator has written


def surface(without=()):
    """The model that tests/abi/api.py makes of the headers, but for those named."""
    made = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "abi", "api.py"), "--json"],
                          stdout=subprocess.PIPE, check=True)
    model = json.loads(made.stdout)
    headers = [header for header in model.pop("headers") if header not in without]
    return dict({kind: [item for item in items if item["header"] in headers] for kind, items in model.items()},
                headers=headers)


def parts(model):
    """(name, header, its part of the model) for each header that declares something, after those it includes."""
    ordered = []

    def put(header):
        if header in ordered or header not in model["headers"]:
            return
        with open(os.path.join(ROOT, "include", header), encoding="utf-8") as file:
            for included in re.findall(r"^#include <(muster/\w+\.h)>", file.read(), re.M):
                put(included)
        ordered.append(header)
    for header in model["headers"]:
        put(header)
    for header in ordered:
        part = {kind: [item for item in items if item["header"] == header]
                for kind, items in model.items() if kind != "headers"}
        if any(part.values()):
            yield os.path.basename(header)[:-len(".h")], header, part


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def left_over(files):
    """What an earlier surface has left beside the files in folders that hold nothing else."""
    for folder in {os.path.dirname(path) for path in files}:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and path not in files and MARK in (read(path) or "")[:300]:
                yield path


def main(generator, doc, files):
    """A generator as a command. `files`: {path below the generator's folder: text}, made when it is called."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(doc, file=sys.stderr)
        return 2
    folder = os.path.dirname(os.path.abspath(generator))
    wanted = {os.path.join(folder, path): text for path, text in files().items()}
    wanted.update({path: None for path in left_over(wanted)})
    wrong = [path for path, text in sorted(wanted.items()) if read(path) != text]
    for path in wrong:
        shown = os.path.relpath(path, ROOT)
        if sys.argv[1:]:
            print("%s is out of step with the headers: run %s" % (shown, os.path.relpath(generator, ROOT)))
        elif wanted[path] is None:
            os.remove(path)
            print("removed:", shown)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(wanted[path])
            print("written:", shown)
    return 1 if wrong and sys.argv[1:] else 0

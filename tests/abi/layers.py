#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the layers: a module includes its own folder, lower layers and the standard library; code that uses Muster
from outside (bindings, examples, API tests, the command, plug-ins) includes the public headers only. The command and the
plug-ins of this repository may also include SHARED: headers of base that need the standard library only, or, for ciphers,
libsodium and ipsec-mb."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The lowest layer first; modules of one layer may include each other.
LAYERS = [
    "base",
    "context queue",
    "process epoch atomic",
    "stream",
    "transport plugin serve broker",
    "am message message_queue socket forwarder poller store store_serve store_server short",
    "rendezvous rendezvous_serve agent",
    "cluster worker manager group memory metrics trace",
]
# The folders of a module, in the same way. Files in the module's own folder may include all of them.
FOLDERS = {
    "cluster": [
        "launch",
        "member broadcast",
        "lifecycle managers worker",
    ],
    "store": ["table", "journal", "wire", "backend", "file", "client", "served", "standby", "server", "open"],
    "rendezvous": ["machine", "member", "dynamic", "static", "served", "open"],
}
LAYER = {module: layer for layer, modules in enumerate(LAYERS) for module in modules.split()}
NOT_FOR = {"transport": ("plugin", "serve", "broker")}  # of the same layer, but not for this module


def is_above(other, module):
    return LAYER.get(other, 99) > LAYER[module] or other in NOT_FOR.get(module, ())


OUTSIDE = ("bindings/", "examples/", "tests/api/", "tests/install/", "src/cli/", "src/plugins/")
SHARED = {f"base/{name}.hpp" for name in ("aes_gcm", "back_off", "codec", "key_hash", "libc", "percent", "terminal_line", "text",
                                         "time")}
WEAK = re.compile(r"gnu::weak|__attribute__\s*\(\(\s*weak|#\s*pragma\s+weak")
# Free functions at the top level of a file, as clang-format lays them out.
FUNCTION = re.compile(r"^(?!using|typedef|friend|return|else|case)[A-Za-z_\[][\w:<>,&*\[\] \n]*?[ *&](\w+)\([^;{}]*\)"
                      r"[^;{}()]*([;{])", re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)


def sources():
    names = [os.path.relpath(os.path.join(folder, name), ROOT)
             for part in ("include", "src", "tests", "examples", "bindings")
             for folder, _, files in os.walk(os.path.join(ROOT, part)) for name in files]
    return sorted(name for name in names if name.endswith((".c", ".h", ".cpp", ".hpp")))


def wrong_folder(name, target):
    """Is `target` in a folder of the same module as `name` that the folder of `name` may not include?"""
    own, other = re.match(r"src/(\w+)/(\w+)/", name), re.match(r"(\w+)/(?:(\w+)/)?", target)
    if not own or not other or own.group(1) not in FOLDERS or own.group(1) != other.group(1):
        return False
    row = {folder: number for number, names in enumerate(FOLDERS[own.group(1)]) for folder in names.split()}
    return own.group(2) not in row or row.get(other.group(2), 99) > row[own.group(2)]


def complaints(name):
    """What is wrong with the includes of one file."""
    module = None
    found = re.match(r"(?:src|include/muster(?:/inline)?)/(\w+)(?:/|\.h$)", name)
    outside = name.startswith(OUTSIDE)
    if found and not outside:
        module = found.group(1)
        if name == "include/muster/muster.h":  # everything in one include
            return
        if module not in LAYER:
            yield f"{name}: {module} is not in LAYERS of tests/abi/layers.py; add it there and to docs/architecture.md"
            return
    if not module and not outside:
        return
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        text = file.read()
    for quote, target in INCLUDE.findall(text):
        public = re.fullmatch(r"muster/(\w+)\.h", target)
        inner = re.match(r"(\w+)/", target) if quote == '"' else None
        if quote == '"' and name.removeprefix("src/") in SHARED and target not in SHARED:
            yield f"{name}: includes {target!r}; plug-ins include this header, so it needs the standard library alone"
        if public:
            other = public.group(1)
            if module and is_above(other, module):
                yield f"{name}: includes <{target}> from a layer above {module}"
        elif ".." in target.split("/"):
            yield f"{name}: includes {target!r}; name files from the top of src, or beside this one"
        elif inner and inner.group(1) in LAYER:
            if outside and target in SHARED and name.startswith("src/"):
                continue
            if outside:
                yield f"{name}: includes {target!r}; code outside of the library includes public headers only"
            elif is_above(inner.group(1), module):
                yield f"{name}: includes {target!r} from a layer above {module}"
            elif wrong_folder(name, target):
                yield f"{name}: includes {target!r} from a folder above its own, see FOLDERS in tests/abi/layers.py"
        elif name.startswith("include/") and target not in ("stddef.h", "stdint.h"):
            yield f"{name}: includes {target!r}; public headers need stddef.h and stdint.h alone"


def hidden_edges():
    """Functions that a module declares and another one defines: calls past the includes, which a weak or repeated
    declaration hides from the check above."""
    declared, defined = {}, {}
    for name in sources():
        found = re.match(r"src/(\w+)/", name)
        if not found or name.startswith(OUTSIDE) or found.group(1) not in LAYER:
            continue
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            text = COMMENT.sub("", file.read())
        if WEAK.search(text) and name != "src/base/libc.cpp":  # its weak symbols are of the C library
            yield f"{name}: a weak symbol hides which modules need each other"
        for function, end in FUNCTION.findall(text):
            (defined if end == "{" else declared).setdefault(function, {}).setdefault(found.group(1), name)
    for function, by in sorted(declared.items()):
        for module, name in by.items():
            definitions = defined.get(function, {})
            if definitions and module not in definitions:
                other = next(iter(definitions.values()))
                yield f"{name}: declares {function}(), which {other} defines; include the header of that module"


def main():
    wrong = [text for name in sources() for text in complaints(name)] + list(hidden_edges())
    print("\n".join(wrong) if wrong else "layers: ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

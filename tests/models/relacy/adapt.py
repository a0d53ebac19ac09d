#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes copies of the pipe's sources that run over relacy: the same lines, with the model's atomics, mutexes and bytes
in place of the machine's (world.hpp), and a number on each memory order that is not relaxed.

    adapt.py <root of the tree> <folder for the copies>

Writes adapted.hpp and orders.txt there, the latter: number, tab, order, tab, function, tab, the line."""

import pathlib
import re
import sys

FILES = tuple(f"src/stream/pipe{part}" for part in (".hpp", "_buffer.hpp", "_park.cpp", ".cpp", "_consumer.cpp"))
# What must be found, and what comes in its place; sizes are as small as the protocol allows.
REPLACED = [
    (r"std::atomic<", "model::atomic<"),
    (r"std::(recursive_)?mutex\b", r"model::\1mutex"),
    (r"\bmemcpy\(", "model::copy("),
    (r"::operator new\(capacity, ring_alignment, std::nothrow\)", "model::make_bytes(capacity)"),
    (r"::operator delete\(data, ring_alignment\)", "model::end_bytes(data)"),
    (r"\bnew \(std::nothrow\)", "new"),  # relacy knows the plain one
    (r"uncancelled::write\(", "model::write("),
    (r"\bsched_yield\(\)", "model::yield()"),
    (r"first_ring_bytes = 4096", "first_ring_bytes = 2"),
    (r"std::(min|max)\((?!\{)", r"std::\1<uint64_t>("),  # a model::var among its arguments
    (r"\balignas\(128\) ", ""),
    (r"static_assert\(sizeof\(PipeControl\).*", ""),
    (r'#include ".*"', ""),
    (r"#pragma once", ""),
]
# A link of the chain passes from the producer to the consumer and back: its fields must never be used by both at once.
LINK = re.compile(r"^struct Pipe::Buffer \{.*?^\};", re.M | re.S)
FIELD = re.compile(r"^    (uint64_t|bool|unsigned char \*)\s*(\w+) = (\w+);", re.M)
ORDER = re.compile(r"std::memory_order_(\w+)")
FUNCTION = re.compile(r"^(?:\S.*[ *]Pipe::|    \S.*[ *&])(\w+)\(.*\{")


def adapt(root, out):
    table = []
    used = set()
    copies = []
    for name in FILES:
        lines = []
        function = "?"
        for line in (root / name).read_text().splitlines():
            code = line.split("//")[0]
            named = FUNCTION.search(code)
            if named and named[1] not in ("if", "for", "while", "switch"):
                function = named[1]

            def numbered(match):
                if match[1] == "relaxed":
                    return "rl::mo_relaxed"
                table.append((match[1], function, code.strip()))
                return f"model::order({len(table)}, rl::mo_{match[1]})"

            lines.append(ORDER.sub(numbered, code))
        text = "\n".join(lines) + "\n"
        for pattern, instead in REPLACED:
            text, count = re.subn(pattern, instead, text)
            if count:
                used.add(pattern)
        text = LINK.sub(lambda link: FIELD.sub(r"    model::var<\1> \2{\3};", link[0]), text)
        copies.append(f'#line 1 "{name}"\n{text}')
    for pattern, _ in REPLACED:
        if pattern not in used:
            sys.exit(f"adapt.py: nothing in the pipe's sources is {pattern}: change both together")
    (out / "adapted.hpp").write_text("#pragma once\n" + "".join(copies))
    (out / "orders.txt").write_text("".join(f"{n}\t{o}\t{f}\t{c}\n" for n, (o, f, c) in enumerate(table, 1)))


if __name__ == "__main__":
    adapt(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes copies of the sources of the pipe, of epochs, or of spare memory, that run over relacy: the same lines, with the model's atomics,
mutexes and bytes in place of the machine's (world.hpp), and a number on each memory order that is not relaxed.

    adapt.py <pipe|epoch|spare_memory> <root of the tree> <folder for the copies>

Writes adapted.hpp (for epochs adapted_layout.hpp, too) and orders.txt there, the latter: number, tab, order, tab, function, tab, the line."""

import pathlib
import re
import sys

PIPE_FILES = tuple(f"src/stream/pipe{part}" for part in (".hpp", "_buffer.hpp", "_park.cpp", ".cpp", "_consumer.cpp"))
# What must be found, and what comes in its place; sizes are as small as the protocol allows.
PIPE_REPLACED = [
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
EPOCH_FILES = ("src/epoch/layout.hpp", "include/muster/inline/epoch.h", "src/epoch/garbage.cpp", "src/epoch/tokens.cpp",
               "src/epoch/epoch.cpp")
EPOCH_REPLACED = [
    # the token of C, whose words are atomic by builtins and std::atomic_ref
    (r"__atomic_(load|store|exchange)_n\(&token->epoch(?:, )?", r"token->epoch.\1("),
    (r"__atomic_load_n\(global, ", "global->load("),
    (r"__ATOMIC_RELAXED", "rl::mo_relaxed"),
    (r"const uint64_t \*const global = .*?;", "const model::atomic<uint64_t> *const global = model_global;"),
    (r"__atomic_signal_fence\(.*?\);", ""),
    (r"__atomic_thread_fence\((.*)\);", r"rl::atomic_thread_fence(\1, model::place());"),
    (r"muster_epoch_token\b", "ModelToken"),
    (r"std::atomic_ref<uint64_t> (\w+)\(\) noexcept \{ return std::atomic_ref\((.*?)\); \}",
     r"model::atomic<uint64_t> &\1() noexcept { return \2; }"),
    (r"std::atomic<", "model::atomic<"),
    (r"std::extent_v<decltype\(EpochSlot::seals\)>", "4"),
    (r"seals\[8\]", "seals[4]"),
    (r"static_cast<int32_t>\(::syscall\(SYS_gettid\)\)", "0"),
    # sizes are as small as the protocol allows
    (r"batch_objects = 21", "batch_objects = 1"),
    (r"#if defined\(__x86_64__\)", "#if 0"), # the form of other processors, which has to hold by C++'s rules alone
    (r"bag_objects = 64", "bag_objects = 2"),
    (r"idle_polls_limit = 64", "idle_polls_limit = 1"),
    (r"uint64_t ripe_end;", "uint64_t ripe_end = 0;"),
    (r"(uint32_t (?:free_bags|fresh_bags|idle_polls)|uint64_t tried_(?:tail|epoch)|bool is_freeing);", r"\1 = 0;"),
    (r"entry\(slot, (slot\.head\.load\(.*?\))\)\.free", r"DeferredObject(entry(slot, \1)).free"),
    (r"\balignas\(\d+\) ", ""),
    (r"static_assert\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\);", ""),
    (r"#include .*", ""),
    (r"#(pragma once|ifndef MUSTER_INLINE.*|define MUSTER_INLINE.*)", ""),
    (r"\n#endif\n$", "\n"),
]
SPARE_MEMORY_FILES = ("src/base/spare_memory.hpp",)
SPARE_MEMORY_REPLACED = [
    (r"std::atomic<", "model::atomic<"),
    (r"std::mutex\b", "model::mutex"),
    (r"std::lock_guard hold\(lock_\)", "std::lock_guard<model::mutex> hold(lock_)"),
    (r"Piece \*next;", "model::var<Piece *> next;"),
    (r"Piece \*first_ = nullptr;", "model::var<Piece *> first_;"),
    (r"std::exchange\((\w+), (\w+->next)\)", r"model::replace<Piece *>(\1, \2)"),
    (r"new \(memory\) Piece\b", "model::begin_piece<Piece>(memory)"),
    (r"::operator new\(bytes_\)", "model::make_piece<Piece>()"),
    (r"::operator delete\(", "model::end_piece<Piece>("),
    (r"most = 1024", "most = 2"),
    (r"\balignas\(64\) ", ""),
    (r"#include .*", ""),
    (r"#pragma once", ""),
]
SUBJECTS = {"pipe": (PIPE_FILES, PIPE_REPLACED), "epoch": (EPOCH_FILES, EPOCH_REPLACED),
            "spare_memory": (SPARE_MEMORY_FILES, SPARE_MEMORY_REPLACED)}
# Of the files of functions: those that the model runs. The others are about processes that die, and about memory.
EPOCH_FUNCTIONS = {
    "src/epoch/garbage.cpp": ("take_bag", "pop", "push", "defer", "stamp_now", "seal", "refresh_ripe", "is_protected", "free_first",
                              "free_ripe", "free_orphans", "poll"),
    "src/epoch/tokens.cpp": ("claim", "become", "register_token", "abandon", "unregister_token", "protect"),
    "src/epoch/epoch.cpp": ("advance", "scan"),
}
DEFINITION = re.compile(r"^\S[^\n]*\bEpoch::(\w+)\([^;{]*?\{.*?^\}\n", re.M | re.S)
# A link of the chain passes from the producer to the consumer and back: its fields must never be used by both at once.
LINK = re.compile(r"^struct Pipe::Buffer \{.*?^\};", re.M | re.S)
FIELD = re.compile(r"^    (uint64_t|bool|unsigned char \*)\s*(\w+) = (\w+);", re.M)
ORDER = re.compile(r"std::memory_order_(\w+)|__ATOMIC_(ACQUIRE|RELEASE|SEQ_CST)")
FUNCTION = re.compile(r"^(?:\S.*[ *&](?:Pipe|Epoch)::|    \S.*[ *&]|static inline void )(\w+)\(.*\{")


def adapt(subject, root, out):
    files, replaced = SUBJECTS[subject]
    table = []
    used = set()
    copies = []
    for name in files:
        source = (root / name).read_text()
        if name in EPOCH_FUNCTIONS:
            found = {match[1]: match[0] for match in DEFINITION.finditer(source)}
            missing = [function for function in EPOCH_FUNCTIONS[name] if function not in found]
            if missing:
                sys.exit(f"adapt.py: {name} has no {missing}")
            source = "namespace muster {\n" + "\n".join(found[function] for function in EPOCH_FUNCTIONS[name]) + "}\n"
        lines = []
        function = "?"
        for line in source.splitlines():
            code = re.sub(r"/\*.*?(\*/|$)", "", line.split("//")[0]) if subject == "epoch" else line.split("//")[0]
            if subject == "epoch" and re.match(r" \*| {5,}\*", line):
                code = "" # within a comment of C
            named = FUNCTION.search(code)
            if name in EPOCH_FUNCTIONS and "Epoch::" not in code:
                named = None
            if named and named[1] not in ("if", "for", "while", "switch"):
                function = named[1]

            def numbered(match):
                order = match[1] or match[2].lower()
                if order == "relaxed":
                    return "rl::mo_relaxed"
                table.append((order, function, code.strip()))
                return f"model::order({len(table)}, rl::mo_{order})"

            lines.append(ORDER.sub(numbered, code))
        text = "\n".join(lines) + "\n"
        for pattern, instead in replaced:
            text, count = re.subn(pattern, instead, text)
            if count:
                used.add(pattern)
        if subject == "pipe":
            text = LINK.sub(lambda link: FIELD.sub(r"    model::var<\1> \2{\3};", link[0]), text)
        copies.append(f'#line 1 "{name}"\n{text}')
    for pattern, _ in replaced:
        if pattern not in used:
            sys.exit(f"adapt.py: nothing in the sources of the {subject} is {pattern}: change both together")
    if subject == "epoch":
        (out / "adapted_layout.hpp").write_text("#pragma once\n" + copies.pop(0))
    (out / "adapted.hpp").write_text("#pragma once\n" + "".join(copies))
    (out / "orders.txt").write_text("".join(f"{n}\t{o}\t{f}\t{c}\n" for n, (o, f, c) in enumerate(table, 1)))


if __name__ == "__main__":
    adapt(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))

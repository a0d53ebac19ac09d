#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keeps the public surface honest, and hands it to binding generators.

    api.py check [name...] [--library build/dev/libmuster.so]     all checks, or the named ones
    api.py update      writes tests/abi/{layout,symbols}.txt and cmake/muster.map from the headers
    api.py --json      the surface as JSON: functions, structs (with offsets), enums, callbacks, opaque types
    api.py --cdef      the surface as the C text that LuaJIT's ffi.cdef and cffi load

Exit status 77: a named check needs a tool that is not here; the text says which.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import surface

HERE = os.path.dirname(os.path.abspath(__file__))
MAP = os.path.join(surface.ROOT, "cmake", "muster.map")
SYMBOLS = os.path.join(HERE, "symbols.txt")
LAYOUT = os.path.join(HERE, "layout.txt")
SKIP = 77


class Missing(Exception):
    """A tool is not installed."""


def need(*names):
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise Missing(" or ".join(names))


def run(command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def slurp(path):
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    if slurp(path) == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    print("written:", os.path.relpath(path, surface.ROOT))


# What the tables hold.

def cdef_text():
    everything = "".join(f"#include <{name}>\n" for name in surface.headers())
    made = run(["cc", "-E", "-P", "-nostdinc", "-DMUSTER_API=", "-I", os.path.join(HERE, "stubs"), "-I",
                surface.INCLUDE, "-xc", "-"], everything)
    if made.returncode:
        raise surface.Refused(made.stderr)
    return made.stdout


def since_of(model):
    """Names with the version they came in; a name keeps what the table says of it."""
    return {function["name"]: function["doc"]["since"] or "?" for function in model["functions"]}


def symbols_text(model):
    rows = [f"{name} {since}" for name, since in sorted(since_of(model).items())]
    return "# Exported functions and the version each came in; written by api.py update.\n" + "\n".join(rows) + "\n"


def map_text(model):
    """One node per minor release, each naming its functions; newer nodes build on older ones."""
    def order(since):
        return [int(part) if part.isdigit() else -1 for part in since.split(".")]
    by_since = {}
    for name, since in since_of(model).items():
        by_since.setdefault(since, []).append(name)
    text, before = "", ""
    for since in sorted(by_since, key=order):
        names = "".join(f"    {name};\n" for name in sorted(by_since[since]))
        hidden = "" if before else "  local:\n    *;\n"
        text += f"MUSTER_{since} {{\n  global:\n{names}{hidden}}}{before};\n"
        before = f" MUSTER_{since}"
    return text


def layout_text(model):
    lines = ["# Sizes, offsets and values of the public surface on 64-bit Linux; written by api.py update."]
    for struct in sorted(model["structs"], key=lambda struct: struct["name"]):
        lines.append(f"struct {struct['name']} size {struct['size']} align {struct['align']}")
        for field in struct["fields"]:
            lines.append(f"  {field['offset']:4} {field['size']:4} {surface.declare(field['type'], field['name'])}")
    for enum in sorted(model["enums"], key=lambda enum: enum["name"]):
        lines.append(f"enum {enum['name']}")
        lines += [f"  {value['value']:4} {value['name']}" for value in enum["values"]]
    for alias in model["aliases"]:
        lines.append(f"typedef {surface.declare(alias['type'], alias['name'])}")
    for callback in sorted(model["callbacks"], key=lambda callback: callback["name"]):
        lines.append(f"callback {callback['returns']['c']} {callback['name']}({surface.parameters(callback['params'])})")
    for function in sorted(model["functions"], key=lambda function: function["name"]):
        lines.append(f"function {function['returns']['c']} {function['name']}({surface.parameters(function['params'])})")
    return "\n".join(lines) + "\n"


# The checks: each yields its complaints.

def check_headers(model, library):
    """Each header stands alone in every language version a consumer may use."""
    for compiler, language, standards in (("gcc", "c", "99 11 17"), ("g++", "c++", "11 14 17 20"),
                                          ("clang", "c", "99 11 17"), ("clang++", "c++", "11 14 17 20")):
        need(compiler)
        for name in model["headers"] + surface.inline_headers():
            for standard in standards.split():
                made = run([compiler, f"-x{language}", f"-std={language}{standard}", "-pedantic", "-Wall", "-Wextra",
                            "-Werror", "-fsyntax-only", "-I", surface.INCLUDE, "-"],
                           f"#include <{name}>\n#include <{name}>\nextern int unused;\n")
                if made.returncode:
                    yield f"{name} does not stand alone with {compiler} -std={language}{standard}:\n{made.stderr}"


def check_aarch64(model, library):
    """The inline functions compile and assemble for aarch64, with and without the large system extensions."""
    clang = need("clang")
    source = "".join(f"#include <{name}>\n" for name in surface.inline_headers()) + (
        "int change(muster_aba *cell, muster_aba *expected);\n"
        "int change(muster_aba *cell, muster_aba *expected) {\n"
        "    return muster_aba_compare_exchange_inline(cell, expected, muster_aba_exchange_inline(cell, 1).count);\n"
        "}\n"
        "void pins(muster_epoch_token *token);\n"
        "void pins(muster_epoch_token *token) {\n"
        "    muster_epoch_pin_inline(token);\n"
        "    muster_epoch_unpin_inline(token);\n"
        "}\n")
    for architecture in ("armv8-a", "armv8.1-a"):
        made = run([clang, "-c", "-xc", "-std=c99", "--target=aarch64-linux-gnu", f"-march={architecture}",
                    "-ffreestanding", "-O2", "-Wall", "-Wextra", "-Werror", "-I", surface.INCLUDE, "-o", os.devnull, "-"],
                   source)
        if made.returncode:
            yield f"the inline functions do not compile for {architecture}:\n{made.stderr}"


def check_luajit(model, library):
    """LuaJIT's ffi.cdef reads the surface and agrees on every size, offset and value."""
    luajit = need("luajit")
    script = ["local ffi = require 'ffi'", f"ffi.cdef [==[\n{cdef_text()}\n]==]",
              "local function same(what, a, b) if a ~= b then print(what, 'LuaJIT', a, 'C', b) end end"]
    for struct in model["structs"]:
        name = struct["name"]
        script.append(f"same('sizeof {name}', ffi.sizeof('{name}'), {struct['size']})")
        script += [f"same('offset {name}.{field['name']}', ffi.offsetof('{name}', '{field['name']}'), {field['offset']})"
                   for field in struct["fields"]]
    script += [f"same('{value['name']}', tonumber(ffi.C.{value['name']}), {value['value']})"
               for enum in model["enums"] for value in enum["values"]]
    # Locals of one chunk are limited, calls are not.
    made = run([luajit, "-"], "\n".join(script))
    if made.returncode or made.stdout:
        yield "LuaJIT: " + made.stdout + made.stderr
    if library:
        names = "".join(f"local _ = lib.{function['name']}\n" if number % 150 else
                        f"end\ndo\nlocal _ = lib.{function['name']}\n"
                        for number, function in enumerate(model["functions"], 1))
        made = run([luajit, "-"], script[0] + "\n" + script[1] + f"\nlocal lib = ffi.load('{library}')\ndo\n{names}end\n")
        if made.returncode:
            yield "LuaJIT cannot resolve: " + made.stderr


def python_with(module):
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and run([python, "-c", f"import {module}"]).returncode == 0:
            return python
    raise Missing(f"python3-{module}")


def check_cffi(model, library):
    """Python's cffi reads the surface and agrees on every size, offset and value."""
    script = ["import cffi", "ffi = cffi.FFI()", f"ffi.cdef({cdef_text()!r})",
              "def same(what, a, b):\n    if a != b: print(what, 'cffi', a, 'C', b)"]
    for struct in model["structs"]:
        name = struct["name"]
        script.append(f"same('sizeof {name}', ffi.sizeof('{name}'), {struct['size']})")
        script += [f"same('offset {name}.{field['name']}', ffi.offsetof('{name}', '{field['name']}'), {field['offset']})"
                   for field in struct["fields"]]
    if library:
        script.append(f"lib = ffi.dlopen({library!r})")
        script += [f"lib.{function['name']}" for function in model["functions"]]
        script += [f"same('{value['name']}', lib.{value['name']}, {value['value']})"
                   for enum in model["enums"] for value in enum["values"]]
    made = run([python_with("cffi"), "-"], "\n".join(script))
    if made.returncode or made.stdout:
        yield "cffi: " + made.stdout + made.stderr


def differences(what, one, one_name, other, other_name):
    for name in sorted(set(one) - set(other)):
        yield f"{what} {name} is {one_name} but not {other_name}"
    for name in sorted(set(other) - set(one)):
        yield f"{what} {name} is {other_name} but not {one_name}"


def check_symbols(model, library):
    """Declared = version script = symbols.txt = exported; nothing else leaves the library."""
    declared = since_of(model)
    mapped = re.findall(r"^\s+(muster_\w+);", slurp(MAP), re.M)
    yield from differences("function", declared, "declared", mapped, "in cmake/muster.map")
    if "*" in re.sub(r"local:\s+\*;", "", slurp(MAP)):
        yield "cmake/muster.map exports by a wildcard; names are listed"
    recorded = dict(line.split() for line in slurp(SYMBOLS).splitlines() if line and line[0] != "#")
    yield from differences("function", declared, "declared", recorded, "in tests/abi/symbols.txt")
    for name in sorted(set(recorded) & set(declared)):
        if recorded[name] != declared[name]:
            yield f"{name}: the header says @since {declared[name]}, tests/abi/symbols.txt says {recorded[name]}"
    if not library:
        raise Missing("a built library (--library)")
    exported = {}
    for line in run([need("nm"), "-D", "--defined-only", library]).stdout.splitlines():
        _, kind, name = line.split()
        if kind != "A":
            name, _, node = name.partition("@@")
            exported[name] = (kind, node)
    yield from differences("function", declared, "declared", exported, "exported")
    for name, (kind, node) in exported.items():
        if kind != "T":
            yield f"{name} is exported as {kind}; only functions are part of the surface"
        if node != f"MUSTER_{declared.get(name)}":
            yield f"{name} is exported with node {node or 'none'}"


def check_needed(model, library):
    """The library needs the C library alone, and no text relocation or executable stack."""
    if not library:
        raise Missing("a built library (--library)")
    dynamic = run([need("readelf"), "-dW", library]).stdout
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not re.match(r"(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so\.\d+$", name):
            yield f"the library needs {name}: only the C library may be needed"
    for flag in ("TEXTREL", "RPATH", "RUNPATH"):
        if f"({flag})" in dynamic:
            yield f"the library has {flag}"
    if "NODELETE" not in dynamic:
        yield "the library can be unloaded under its own threads: -z nodelete is missing"
    if re.search(r"GNU_STACK.*E ", run(["readelf", "-lW", library]).stdout):
        yield "the library asks for an executable stack"
    newest = max((tuple(map(int, found.split("."))) for found in
                  re.findall(r"\bGLIBC_([\d.]+)", run(["readelf", "-VW", library]).stdout)), default=(0,))
    if newest > (2, 36):
        yield f"the library needs glibc {'.'.join(map(str, newest))}; 2.36 is promised"


def documented(where, doc):
    if len(doc["brief"]) < 8 or re.search(r"\b(TODO|TBD|FIXME)\b", doc["brief"] + doc["detail"]):
        yield f"{where}: no sentence says what it is"


def check_docs(model, library):
    """Every function, parameter, status, field and value says what it is; threads, blocking and age are told."""
    values = {value["name"] for enum in model["enums"] for value in enum["values"]}
    for callable_ in model["functions"] + model["callbacks"]:
        where, doc = f"{callable_['header']}: {callable_['name']}", callable_["doc"]
        yield from documented(where, doc)
        names = [param["name"] for param in callable_["params"]]
        told = [param["name"] for param in doc["params"]]
        if names != told:
            yield f"{where}: parameters are {names}, documented are {told}"
        for param in doc["params"]:
            if len(param["text"]) < 4:
                yield f"{where}: @param {param['name']} says nothing"
        for retval in doc["retvals"]:
            if retval["name"] not in values:
                yield f"{where}: @retval {retval['name']} is no value of the surface"
            if len(retval["text"]) < 4:
                yield f"{where}: @retval {retval['name']} says nothing"
        returns = callable_["returns"]["c"]
        if returns == "void" and (doc["retvals"] or doc["returns"]):
            yield f"{where}: returns nothing, but a result is documented"
        if returns != "void" and not doc["retvals"] and not doc["returns"]:
            yield f"{where}: returns {returns}, but no @retval or @return says what"
    for function in model["functions"]:
        where, doc = f"{function['header']}: {function['name']}", function["doc"]
        if function["returns"]["c"] == "muster_status" and not doc["retvals"]:
            yield f"{where}: returns a status, but no @retval says which"
        for param in doc["params"]:
            if param["direction"] not in ("in", "out", "in,out"):
                yield f"{where}: @param {param['name']} lacks [in] or [out]"
        for tag in ("threads", "blocks", "since"):
            if not doc[tag]:
                yield f"{where}: @{tag} is missing"
        if doc["since"] and not re.fullmatch(r"\d+\.\d+", doc["since"]):
            yield f"{where}: @since {doc['since']} is no version"
    for kind in ("structs", "enums", "opaque", "aliases"):
        for entry in model[kind]:
            yield from documented(f"{entry['header']}: {entry['name']}", entry["doc"])
            for member in entry.get("fields", []) + entry.get("values", []):
                if len(member["doc"]) < 4:
                    yield f"{entry['header']}: {entry['name']}.{member['name']} is not documented"


def check_form(model, library):
    """Names, growth and types follow the rules every consumer depends on."""
    for function in model["functions"]:
        if not re.fullmatch(r"muster_[a-z0-9]+(_[a-z0-9]+)*", function["name"]):
            yield f"{function['name']}: functions are named muster_<concept>_<verb>"
    for enum in model["enums"]:
        for value in enum["values"]:
            if not value["name"].startswith("MUSTER_"):
                yield f"{value['name']}: values are named MUSTER_<CONCEPT>_<NAME>"
            if not -2**31 <= value["value"] < 2**31:
                yield f"{value['name']}: does not fit an int"
    for struct in model["structs"]:
        if struct["name"].endswith(("_config", "_ops")) and struct["fields"][0]["name"] != "struct_size":
            yield f"{struct['name']}: growing structs begin with uint32_t struct_size"
        end = 0
        for field in struct["fields"]:
            if field["offset"] != end:
                yield f"{struct['name']}.{field['name']}: {field['offset'] - end} bytes of padding before it; name them"
            end = field["offset"] + field["size"]
        if end != struct["size"]:
            yield f"{struct['name']}: {struct['size'] - end} bytes of padding at its end; name them"
    known = {"void", "char", "int", "size_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "uint8_t", "uint16_t",
             "int8_t", "int16_t", "float", "double"}
    known |= {entry["name"] for kind in ("aliases", "structs", "opaque", "callbacks") for entry in model[kind]}
    structs = {struct["name"] for struct in model["structs"]}

    def types(entry, where):
        for inner in entry["params"]:
            yield from type_of(inner["type"], f"{where}({inner['name']})", True)
        yield from type_of(entry["returns"], f"{where} returns", True)

    def type_of(type_, where, by_value):
        if "callback" in type_:
            yield from types(type_["callback"], where)
        elif type_["name"] not in known:
            yield f"{where}: {type_['name']} is no type for a public surface"
        elif by_value and not type_["pointers"] and type_["name"] in structs:
            yield f"{where}: {type_['name']} is passed by value"

    for entry in model["functions"] + model["callbacks"]:
        yield from types(entry, entry["name"])
    for struct in model["structs"]:
        for field in struct["fields"]:
            yield from type_of(field["type"], f"{struct['name']}.{field['name']}", False)


def check_layout(model, library):
    """Sizes, offsets, values and signatures are those of tests/abi/layout.txt."""
    was, now = slurp(LAYOUT).splitlines(), layout_text(model).splitlines()
    if was != now:
        import difflib
        yield ("the surface changed; if that is meant: tests/abi/api.py update, and a line in CHANGELOG.md under ABI\n"
               + "\n".join(difflib.unified_diff(was, now, "layout.txt", "headers", lineterm="", n=1)))


CHECKS = {"form": check_form, "headers": check_headers, "aarch64": check_aarch64,
          "luajit": check_luajit, "cffi": check_cffi,
          "symbols": check_symbols, "needed": check_needed, "docs": check_docs, "layout": check_layout}


def main(arguments):
    library = None
    if "--library" in arguments:
        at = arguments.index("--library")
        library = os.path.abspath(arguments[at + 1])
        del arguments[at:at + 2]
    command = arguments[0] if arguments else "check"
    names = arguments[1:] or list(CHECKS)
    if command not in ("check", "update", "--json", "--cdef") or not set(names) <= set(CHECKS):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        if command == "--cdef":
            print(cdef_text())
            return 0
        model = surface.read()
    except surface.Refused as refused:
        print(refused)
        return 1
    if command == "--json":
        json.dump(model, sys.stdout, indent=1)
        print()
        return 0
    if command == "update":
        write(SYMBOLS, symbols_text(model))
        write(MAP, map_text(model))
        write(LAYOUT, layout_text(model))
        return 0
    worst = 0
    for name in names:
        try:
            complaints = list(CHECKS[name](model, library))
        except Missing as missing:
            print(f"{name}: skipped, {missing} is not here")
            worst = worst or SKIP
            continue
        for complaint in complaints:
            print(f"{name}: {complaint}")
        if complaints:
            worst = 1
        else:
            print(f"{name}: ok")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what the headers document as a C++ table: documented.py <tests/abi/api.py> <output>.

Each row holds a function's name, whether it returns a muster_status, whether its last parameter is a muster_error, and
the statuses of its @retval list. The list is generated from the headers at build time, so no copy of it can be out of
date.
"""
import json
import subprocess
import sys


def main():
    surface = json.loads(subprocess.run([sys.executable, sys.argv[1], "--json"], check=True, capture_output=True).stdout)
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        for function in sorted(surface["functions"], key=lambda f: f["name"]):
            returns = function["returns"]
            is_status = returns["name"] == "muster_status" and returns["pointers"] == 0
            params = function["params"]
            has_error = bool(params) and params[-1]["type"]["c"].startswith("muster_error *")
            names = [r["name"] for r in function["doc"].get("retvals") or []]
            statuses = ", ".join(names)
            out.write('{"%s", %s, %s, {%s}},\n' % (function["name"], str(is_status).lower(), str(has_error).lower(),
                                                 statuses))


main()

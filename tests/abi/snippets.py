#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles every whole C program that stands in the README and the guide: what a newcomer copies must build."""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
wrong = seen = 0
for path in [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)):
    with open(path, encoding="utf-8") as file:
        programs = [text for text in re.findall(r"^```c\n(.*?)^```", file.read(), re.S | re.M) if "main(" in text]
    for program in programs:
        seen += 1
        made = subprocess.run(["cc", "-xc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                               os.path.join(ROOT, "include"), "-"], input=program, capture_output=True, text=True,
                              check=False)
        if made.returncode:
            wrong += 1
            print(f"{os.path.relpath(path, ROOT)}: a program does not compile:\n{made.stderr}")
print(f"{seen} programs, {wrong} do not compile")
sys.exit(1 if wrong or not seen else 0)

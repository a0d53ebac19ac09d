# SPDX-License-Identifier: MIT
"""Runs a command that starts processes, and tells after which time the last of them ran, and when all had ended:
    starting.py --command COMMAND ARGUMENT... --scale PERCENT
What it starts prints `at_us`, the monotonic clock in microseconds; the last of these counts."""

import subprocess
import sys
import time

command = sys.argv[2:sys.argv.index("--scale")]
begun = time.monotonic()
output = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
ended = time.monotonic()
stamps = [float(line.partition("\t")[2]) for line in output.splitlines() if line.startswith("at_us\t")]
print(f"ms\t{max(stamps) * 1e-3 - begun * 1e3:.6g}")
print(f"whole_ms\t{(ended - begun) * 1e3:.6g}")

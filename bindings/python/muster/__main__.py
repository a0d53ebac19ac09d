# SPDX-License-Identifier: MIT
"""`python -m muster ...` is the command `muster ...`: run, store, broker, rdzv, and checks."""
import os
import shutil
import sys


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    packaged = os.path.join(here, "bin", "muster")
    command = os.environ.get("MUSTER_COMMAND") or (packaged if os.path.exists(packaged) else shutil.which("muster"))
    if command is None:
        sys.exit("muster: the command was not found; name it in MUSTER_COMMAND, or install it")
    if command == packaged:  # with the library and the plug-ins of this package
        others = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = os.path.join(here, "lib") + (":" + others if others else "")
        os.environ.setdefault("MUSTER_PLUGIN_PATH", os.path.join(here, "plugins"))
    os.execv(command, ["muster", *sys.argv[1:]])


if __name__ == "__main__":
    main()

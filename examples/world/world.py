#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One world of many runtimes: Python with torch, Julia, Rust, Lua, and a rank of MPI meet in one rendezvous, and sum arrays
of numbers by one group. One of them is killed; the others form the next round, and go on with four.

    world.py [NAME ...]     which one is killed: python, julia, rust, lua or mpi; by default lua

The programs beside this one are the members. Each prints a line for each round; `muster top` shows all of them, since each
publishes its metrics in the store in which they meet, and in the end `muster trace` joins what they have traced. examples/run world builds what is needed and sets the environment."""
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

here = pathlib.Path(__file__).resolve().parent
root = here.parent.parent
build = pathlib.Path(os.environ.get("MUSTER_BUILD", root / "build" / "minimal"))
sys.path.insert(0, str(root / "bindings" / "python"))

import muster  # noqa: E402

commands = {
    "python": [sys.executable, here / "member.py"],
    "julia": [os.environ.get("MUSTER_JULIA", "julia"), "--startup-file=no", here / "member.jl"],
    "rust": [build / "rust" / "release" / "examples" / "world_member"],
    "lua": ["luajit", here / "member.lua"],
    "mpi": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "1", build / "examples" / "world" / "member_mpi"],
}
command = build / "bin" / "muster"
most_seconds = 180  # for one step: Julia compiles what a member uses


class Member:
    def __init__(self, name, url, lines, traces):
        self.name = name
        environment = dict(os.environ, MUSTER_TRACE=traces)
        self.process = subprocess.Popen([str(part) for part in commands[name]] + [url], stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.reader = threading.Thread(target=self.read, args=(lines,), daemon=True)
        self.reader.start()

    def read(self, lines):
        for line in self.process.stdout:
            lines.put((self.name, line.strip()))
        lines.put((self.name, None))

    def kill(self, number):
        """`number`: the process of the member itself, which mpirun has started in one case."""
        os.kill(number, signal.SIGKILL)


def run(victim, traces):
    print(f"== {victim} will be killed", flush=True)
    lines, numbers = queue.Queue(), {}
    with muster.StoreServer() as server:
        store = muster.Store(server.address)
        members = {name: Member(name, server.address, lines, traces) for name in commands}

        def await_lines(names, beginning):
            missing = set(names)
            while missing:
                name, line = lines.get(timeout=most_seconds)
                if line is None:
                    if name in missing:
                        sys.exit(f"{name} has ended")
                    continue
                if not line.startswith("ready"):
                    print(f"{name:7} {line}", flush=True)
                if name in missing and line.startswith(beginning):
                    missing.remove(name)
                    numbers.setdefault(name, int(line.split()[1]) if beginning == "ready" else 0)
                elif "wrong" in line:
                    sys.exit(f"{name} has another sum")

        try:
            await_lines(members, "ready")
            store.set("start", b"now")
            await_lines(members, "5 members")
            top = subprocess.run([command, "top", "--once", "--of", server.address], capture_output=True, text=True)
            print(top.stdout, flush=True)
            if any(name not in top.stdout for name in members):
                sys.exit(f"muster top does not show all of them: {top.stderr}")
            members[victim].kill(numbers[victim])
            others = [name for name in members if name != victim]
            await_lines(others, "4 members")
            for name in others:
                if members[name].process.wait(most_seconds) != 0:
                    sys.exit(f"{name} has failed")
            files = sorted(str(file) for file in pathlib.Path(traces).iterdir())
            joined = subprocess.run([command, "trace", "--join", build / "world.pftrace", *files], capture_output=True, text=True)
            if joined.stdout.count("group all-reduce") != len(others):
                sys.exit(f"not all of them are in the trace: {joined.stdout}{joined.stderr}")
            print(f"{victim} was killed, and the others have finished; {build / 'world.pftrace'} has what they did", flush=True)
        finally:
            for member in members.values():
                if member.process.poll() is None:
                    member.process.kill()


def main():
    os.environ.setdefault("MUSTER_SECRET", "the members of one world")
    for name, command in commands.items():
        if shutil.which(str(command[0])) is None:
            print(f"skipped: {name} needs {command[0]}")
            sys.exit(77)
    for victim in sys.argv[1:] or ["lua"]:
        if victim not in commands:
            sys.exit(f"{victim}: not one of {', '.join(commands)}")
        with tempfile.TemporaryDirectory() as traces:
            run(victim, traces)


if __name__ == "__main__":
    main()

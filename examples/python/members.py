#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Four processes get ranks by a rendezvous and average numbers together. One of them is killed in the middle: the others
learn which one, join the next round, and go on with three.

    PYTHONPATH=bindings/python MUSTER_LIBRARY=build/release/libmuster.so examples/python/members.py"""
import array
import os
import signal
import subprocess
import sys

import muster


def member(url):
    run = muster.Rendezvous("averages", url, min=3, max=4, last_call=2)
    numbers, steps = array.array("d", [float(os.getpid())] * 1000), 0
    while steps < 20:
        round_ = run.join(timeout=60)
        group = muster.Group(round_)
        print(f"round {round_.number}: rank {round_.rank} of {round_.world}", flush=True)
        try:
            while steps < 20:
                if steps == 10 and round_.world == 4 and round_.rank == 2:
                    os.kill(os.getpid(), signal.SIGKILL)
                group.all_reduce(numbers)
                for place in range(len(numbers)):
                    numbers[place] /= round_.world
                steps += 1
            group.close()
        except muster.PeerGone as problem:
            print(f"rank {round_.rank}: {problem}", flush=True)
    run.exit(timeout=60)
    print("every number is the same" if len(set(numbers)) == 1 else "the numbers differ", flush=True)


def main():
    os.environ.setdefault("MUSTER_SECRET", "the members of one example")
    with muster.StoreServer() as server:
        members = [subprocess.Popen([sys.executable, __file__, server.address]) for _ in range(4)]
        statuses = sorted(one.wait(120) for one in members)
    if statuses != [-signal.SIGKILL, 0, 0, 0]:
        sys.exit(f"the members ended with {statuses}")
    print("three of four members have finished")


if __name__ == "__main__":
    member(sys.argv[1]) if len(sys.argv) > 1 else main()

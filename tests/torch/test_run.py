# SPDX-License-Identifier: MIT
"""torch.distributed under `muster run`: test_run.py <muster> starts the nodes of each job, and this file is its program.

The workers know of Muster nothing but the variables of their environment, which are torchrun's.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from datetime import timedelta

NODES, WORKERS_OF_A_NODE = 2, 2
WORLD = NODES * WORKERS_OF_A_NODE
SUM = float(sum(range(1, WORLD + 1)))


def reduce_once():
    """A job that its first run does not end: who killed a worker sees the others do it again."""
    import torch
    import torch.distributed as distributed

    distributed.init_process_group("gloo", init_method="env://", timeout=timedelta(seconds=60))
    rank, world = distributed.get_rank(), distributed.get_world_size()
    sum_of_all = torch.ones(4) * (rank + 1)
    distributed.all_reduce(sum_of_all)
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    most = int(os.environ["TORCHELASTIC_MAX_RESTARTS"])
    print(f"restart {restarts} of {most}: rank {rank} of {world} has {sum_of_all.tolist()} pid {os.getpid()}", flush=True)
    while restarts == 0:
        signal.pause()
    leave_together(distributed.distributed_c10d._get_default_store(), rank, world)


def leave_together(store, rank, world):
    """Who leaves first takes his part of gloo along, and rank 0 the store."""
    for step in ("done", "left"):
        store.set(f"{step}/{rank}", "1")
        if step == "done" or rank == 0:
            store.wait([f"{step}/{other}" for other in range(world)])


def fail():
    """What torch's @record writes down is what the command tells."""
    from torch.distributed.elastic.multiprocessing.errors import record

    @record
    def main():
        if os.environ["RANK"] == "1":
            raise ValueError("no such thing as a 7th dimension")
        signal.pause()

    main()


class Node:
    """One `muster run`, and what it said so far."""

    def __init__(self, muster, *arguments):
        command = [muster, "run", "--nproc-per-node", WORKERS_OF_A_NODE, *arguments]
        self.process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []

    def until(self, pattern, count=1):
        """The matches, when there are so many in what it has said since the last call."""
        found = []
        while len(found) < count:
            line = self.process.stdout.readline()
            assert line, f"ended without {count} of /{pattern}/:\n" + "".join(self.lines)
            self.lines.append(line)
            match = re.search(pattern, line)
            if match:
                found.append(match)
        return found

    def end(self):
        """Its exit status, and all that it said."""
        self.lines.append(self.process.communicate()[0])
        return self.process.returncode, "".join(self.lines)


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def program(role):
    return ["--", sys.executable, __file__, "worker", role]


def test_workers_reduce_and_do_it_again_when_one_was_killed(muster):
    # The node that has the address first serves the store.
    meeting = ["--nnodes", NODES, "--rdzv", f"tcp://127.0.0.1:{free_port()}", "--run-id", "gloo", "--max-restarts", 2]
    nodes = [Node(muster, *meeting, *program("reduce_once")) for _ in range(NODES)]
    reduced = r"restart (\d+) of 2: rank (\d+) of (\d+) has (\[.*\]) pid (\d+)"

    def expect_all_reduced(restarts):
        told = [match for node in nodes for match in node.until(reduced, WORKERS_OF_A_NODE)]
        assert sorted(int(match[2]) for match in told) == list(range(WORLD)), told
        assert {match.group(1, 3, 4) for match in told} == {(str(restarts), str(WORLD), str([SUM] * 4))}, told
        return told

    victim = expect_all_reduced(0)[-1]
    os.kill(int(victim[5]), signal.SIGKILL)
    for node in nodes:
        node.until(f"\\(rank {victim[2]}\\) was killed by signal 9, SIGKILL")
    expect_all_reduced(1)
    for node in nodes:
        status, text = node.end()
        assert status == 0, text


def test_what_record_writes_is_told(muster):
    status, text = Node(muster, "--standalone", *program("fail")).end()
    assert status == 1, text
    assert "(rank 1) failed with exit code 1: ValueError: no such thing as a 7th dimension" in text, text


def main():
    if sys.argv[1] == "worker":
        globals()[sys.argv[2]]()
        sys.stdout.flush()
        os._exit(0)  # torch's threads of a group need not be waited for
    tests = [body for name, body in globals().items() if name.startswith("test_")]
    for body in tests:
        body(sys.argv[1])
        print(f"ok {body.__name__}", flush=True)
    print(f"{len(tests)} passed")


if __name__ == "__main__":
    main()

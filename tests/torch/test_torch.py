# SPDX-License-Identifier: MIT
"""torch's own elastic rendezvous and process groups on Muster's store: test_torch.py <url> starts the members."""

import datetime
import os
import subprocess
import sys
import threading
import time

import torch
import torch.distributed
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout

from muster_store import Connection, MusterBackend, MusterError, MusterStore

MEMBERS = 3


def handler(url, run_id, least, most, **seconds):
    connection = Connection(url)
    timeout = RendezvousTimeout(**{name: datetime.timedelta(seconds=s) for name, s in seconds.items()})
    return DynamicRendezvousHandler.from_backend(run_id, MusterStore(connection), MusterBackend(connection, run_id),
                                                 least, most, timeout=timeout)


def member(url, run_id, least, most):
    """One process of a job: meets the others by torch's rendezvous, and reduces with them by gloo."""
    meeting = handler(url, run_id, least, most, last_call=2) # keeps what is Python of the store
    found = meeting.next_rendezvous()
    store, rank, world = found if isinstance(found, tuple) else (found.store, found.rank, found.world_size) # torch 2.4
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world,
                                         timeout=datetime.timedelta(seconds=60))
    sum_of_all = torch.ones(4) * (rank + 1)
    torch.distributed.all_reduce(sum_of_all)
    torch.distributed.barrier()
    print(f"rank {rank} of {world}: {sum_of_all.tolist()}", flush=True)
    # Who leaves first takes his part of gloo along.
    store.add("left", 1)
    while rank == 0 and int(store.add("left", 0)) < world:
        time.sleep(0.01)


def start(*arguments):
    return subprocess.Popen([sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def test_processes_meet_and_reduce(url):
    members = [start(url, "job", MEMBERS, MEMBERS) for _ in range(MEMBERS)]
    lines = sorted(one.communicate(timeout=120)[0].strip() for one in members)
    total = float(sum(range(1, MEMBERS + 1)))
    assert lines == [f"rank {i} of {MEMBERS}: {[total] * 4}" for i in range(MEMBERS)], lines
    assert all(one.returncode == 0 for one in members)


def test_fewer_than_the_most_go_on_after_the_last_call(url):
    members = [start(url, "fewer", 2, 5) for _ in range(2)]
    lines = sorted(one.communicate(timeout=120)[0].strip() for one in members)
    assert lines == [f"rank {i} of 2: {[3.0] * 4}" for i in range(2)], lines


def test_one_too_few_is_told(url):
    alone = handler(url, "alone", 2, 2, join=2)
    try:
        alone.next_rendezvous()
        raise AssertionError("one of two is no world")
    except Exception as failed:
        assert type(failed).__name__ == "RendezvousTimeoutError", failed


def test_the_store_is_one_of_torchs(url):
    one, other = MusterStore(Connection(url)), MusterStore(Connection(url))
    one.set("k", "v")
    assert other.get("k") == b"v"
    assert one.add("n", 5) == 5 and other.add("n", -2) == 3 and one.get("n") == b"3"
    assert one.compare_set("c", "", "first") == b"first"
    assert other.compare_set("c", "", "second") == b"first"
    assert other.compare_set("c", "first", "second") == b"second"
    assert one.compare_set("absent", "something", "x") == b"something"
    assert one.delete_key("k") and not one.delete_key("k")
    # A wait of one thread does not hold up the calls of another on the same store, as torch's own does.
    late = threading.Thread(target=lambda: one.wait(["late"], datetime.timedelta(seconds=20)))
    late.start()
    begun = time.monotonic()
    one.set("meanwhile", "1")
    assert time.monotonic() - begun < 5
    other.set("late", "1")
    late.join()
    try:
        one.wait(["never"], datetime.timedelta(seconds=0.1))
        raise AssertionError("a wait in vain")
    except MusterError as failed:
        assert 'wait for "never": absent after 0.1' in str(failed), failed
    prefixed = torch.distributed.PrefixStore("of", one)
    prefixed.set("k", "deep")
    assert other.get("of/k") == b"deep"


def main():
    if len(sys.argv) > 2:
        return member(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    tests = [body for name, body in globals().items() if name.startswith("test_")]
    for body in tests:
        body(sys.argv[1])
        print(f"ok {body.__name__}", flush=True)
    print(f"{len(tests)} passed, with torch {torch.__version__}")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # torch's threads of a group need not be waited for

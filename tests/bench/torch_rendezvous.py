#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch's dynamic rendezvous over its TCPStore under the load of rendezvous.c, from the last join to all ranks. Each
node is a process. It has no events of deaths: there is nothing to measure."""

import argparse
import ctypes
import datetime
import multiprocessing
import os
import signal
import socket
import time

import torch.distributed
from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend, dynamic_rendezvous

context = multiprocessing.get_context("fork")


def store(port, server):
    return torch.distributed.TCPStore("127.0.0.1", port, None, server, timeout=datetime.timedelta(seconds=60),
                                      wait_for_workers=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--what", default="last")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--scale", type=int, default=100)
    options = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ready, done = context.Semaphore(0), context.Semaphore(0)
    go = context.Event()
    end = context.Value(ctypes.c_double, 0)

    def serve():
        kept = store(port, True)
        ready.release()
        signal.pause()
        del kept

    def be_node(me):
        mine = store(port, False)
        backend = c10d_rendezvous_backend.C10dRendezvousBackend(mine, "bench")
        handler = dynamic_rendezvous.DynamicRendezvousHandler.from_backend("bench", mine, backend, options.nodes,
                                                                           options.nodes)
        if me == 0:  # it comes last
            ready.release()
            go.wait()
        else:
            ready.release()
        handler.next_rendezvous()
        with end.get_lock():
            end.value = max(end.value, time.monotonic())
        done.release()
        signal.pause()

    children = [context.Process(target=serve, daemon=True)]
    children[0].start()
    ready.acquire()
    for me in range(options.nodes):
        children.append(context.Process(target=be_node, args=(me,), daemon=True))
        children[-1].start()
    for _ in range(options.nodes):
        ready.acquire()
    time.sleep(3)  # the others look once a second
    begin = time.monotonic()
    go.set()
    for _ in range(options.nodes):
        done.acquire()
    print(f"ms\t{(end.value - begin) * 1e3:.3f}", flush=True)
    for child in children:
        os.kill(child.pid, signal.SIGKILL)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A member of examples/world: sums tensors of torch, where it is installed, otherwise arrays."""
import array
import os
import sys

import muster

try:
    import torch
except ImportError:
    torch = None

own = 1  # each member adds another power of two, so the sum shows which members take part


def sum_is_right(group, expected):
    numbers = torch.full((1000,), float(own), dtype=torch.float64) if torch else array.array("d", [own] * 1000)
    group.all_reduce(numbers.numpy() if torch else numbers)
    return all(number == expected for number in numbers)


def main(url):
    store = muster.Store(url)
    metrics = muster.Metrics(store, name="python", interval=0.5)
    run = muster.Rendezvous("world", url, min=4, max=5, last_call=2)
    print("ready", os.getpid(), flush=True)
    store.get("start")
    world = 5
    while world == 5:
        round_ = run.join(timeout=60)
        world = round_.world
        group = muster.Group(round_)
        try:
            members = array.array("d", [own])
            group.all_reduce(members)
            good = sum_is_right(group, members[0])
            print(f"{world} members in round {round_.number}, the sum is {'right' if good else 'wrong'}", flush=True)
            count = 1
            while world == 5 or count < 20:  # with five, until one of them dies
                good = sum_is_right(group, members[0])
                if not good:
                    sys.exit("wrong")
                count += 1
            group.close()
        except muster.PeerGone as problem:
            print(problem, flush=True)
    run.exit(timeout=60)
    metrics.close()


main(sys.argv[1])

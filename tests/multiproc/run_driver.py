#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_driver.py <muster> <hosted|tcp|unix|kept|etcd|URL> [--member PROGRAM] [--hosts] [--seed N] [--seeds N] [--steps N]
[--nodes N] [--seconds S]

Random steps over the nodes of a run: processes are killed by SIGKILL, stopped, continued, asked to leave and restarted by
the same command; workers are killed, or members abort their round; a store on a disk is killed and restarted; nodes are cut
off from all others, and the cut is healed. After each 50 steps the faults end. Checked: in each round each rank is given once
and all say one size of it (one world at a time); in no store a write of a round is accepted after one of a later round; when
the faults have ended all nodes are in one world within a time limit; at the end no process and no file is left, and the
descriptors of this process do not grow.

hosted: a node serves the store. tcp, unix: `muster store` in memory; kept: with a folder; etcd: an etcd of the sequence's own.
A URL: a store that exists. (A store in a file, `file:///path`, is no store for a rendezvous: it can neither watch nor lease.)

Nodes are those of `muster run`, whose workers hold no view of a round, or, in half of the seeds, the program given by --member,
which writes through the view of each round. --hosts: in two of three seeds each node is a host with a network of its own, which
can be cut off; without the rights for that, and over a unix store, that is left out.

Where a node serves the store it can die between the promises of the members and the round that they promise; then the
members end with that reason (docs/adr/0011), the run is begun anew, and that is counted.
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

from driver_places import Broken, Network, Store, enter_own_network
from driver_sequence import Sequence


def show(options, sequence, seed, broken):
    print("seed %d (%s): %s\nsteps: %s" % (seed, sequence.text_of(), broken, "; ".join(sequence.history[-options.history:])))
    for node in sequence.nodes:
        with open(sequence.path(node.name + ".log"), "a+", encoding="utf-8", errors="replace") as file:
            file.seek(0)
            print("---- %s\n%s" % (node.name, "".join(file.readlines()[-15:])))


def keep_stacks(sequence):
    for node in sequence.nodes:
        if node.process and shutil.which("gdb"):
            with open(sequence.path(node.name + ".stacks"), "w", encoding="ascii") as file:
                subprocess.run(["gdb", "-batch", "-p", str(node.process.pid), "-ex", "thread apply all backtrace"],
                               stdout=file, stderr=subprocess.DEVNULL, check=False)


def run(options, network, seed):
    """The sequence of a seed, or None where something was wrong."""
    sequence = Sequence(options, network, seed)
    try:
        sequence.run()
    except Broken as broken:
        show(options, sequence, seed, broken)
        if options.keep:
            keep_stacks(sequence)
            print("kept: " + sequence.folder)
        sequence.clean(options.keep)
        return None
    except BaseException:
        sequence.clean()
        raise
    try:
        sequence.clean()
    except Broken as broken:
        print("seed %d: %s" % (seed, broken))
        return None
    return sequence


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("muster")
    parser.add_argument("store")
    parser.add_argument("--member")
    parser.add_argument("--hosts", action="store_true")
    parser.add_argument("--keep", action="store_true", help="the folder of a sequence that failed stays, with stacks")
    parser.add_argument("--verbose", action="store_true", help="a line for each seed")
    parser.add_argument("--history", type=int, default=60, help="how many of the last steps are shown")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MUSTER_SEED", "1")))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0)
    options = parser.parse_args()
    options.muster = os.path.abspath(options.muster)
    options.member = options.member and os.path.abspath(options.member)
    if options.store not in Store.KINDS and "://" not in options.store:
        parser.error("no kind of store: " + options.store)
    return options


def main():
    options, network = arguments(), None
    if options.hosts and options.store in ("hosted", "tcp", "kept", "etcd"):
        if enter_own_network():
            network = Network(options.nodes)
        else:
            print("no network namespaces for this user: nodes are not cut off")
    begin, seed, rounds, begun_anew, slowest, opened = time.monotonic(), options.seed, 0, 0, 0, None
    statuses = {}
    while (time.monotonic() < begin + options.seconds if options.seconds else seed < options.seed + options.seeds):
        sequence = run(options, network, seed)
        if sequence is None:
            return 1
        rounds += sequence.worlds.count
        begun_anew += sequence.begun_anew
        slowest = max(slowest, sequence.slowest)
        for status, count in sequence.writes.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
        if options.verbose:
            print("seed %d (%s): %d rounds, %d begun anew, whole again within %.1f s" % (
                seed, sequence.text_of(), sequence.worlds.count, sequence.begun_anew, sequence.slowest))
            print("".join("  %s\n" % reason for reason in sequence.reasons), end="", flush=True)
        seed += 1
        now_open = len(os.listdir("/proc/self/fd"))
        opened = opened or now_open
        if now_open > opened:
            print("descriptors of this process grow: %d, %d at first" % (now_open, opened))
            return 1
    took, count = time.monotonic() - begin, seed - options.seed
    print("%s: seeds %d to %d of %d steps, %d rounds, %d begun anew, whole again within %.1f s, %.0f s, %.1f steps/s" % (
        options.store.split(":")[0], options.seed, seed - 1, options.steps, rounds, begun_anew, slowest, took,
        count * options.steps / took))
    if statuses:
        print("writes: " + ", ".join("%d %s" % (n, status) for status, n in sorted(statuses.items())))
    return 0


sys.exit(main())

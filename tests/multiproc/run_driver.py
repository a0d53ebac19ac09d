#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run_driver.py <muster> <hosted|tcp|kept|URL> [--seed N] [--seeds N] [--steps N] [--nodes N] [--seconds S]

Random steps over the nodes of a `muster run`: processes are killed by SIGKILL, stopped, continued, asked to leave and
restarted by the same command; workers are killed; a store in a folder is killed and restarted. After each sequence the
faults end. Checked: in each round each rank is given once and all workers see one size (one world at a time), round numbers
never go back, and when the faults have ended all nodes are in one world within a time limit.

hosted: a node serves the store. tcp: `muster store` in memory; kept: with a folder. A URL: a store that exists, such as
etcd. --seconds runs seeds until the time is over, and checks that no process or file is left and that the descriptors of this
process do not grow.

Where a node serves the store it can die between the promises of the members and the round that they promise; then the
members end with that reason (docs/adr/0011), the run is begun anew, and that is counted.
"""
import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

WHOLE_WITHIN = 60  # seconds, for all nodes to be in one world once the faults have ended


class Broken(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Sequence:
    def __init__(self, muster, store, seed, node_count, steps):
        self.muster, self.kind, self.steps = muster, store, steps
        self.random = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="driver.")
        self.worlds = os.path.join(self.folder, "worlds")
        open(self.worlds, "w", encoding="ascii").close()
        self.names = ["n%d" % i for i in range(node_count)]
        self.fixed = self.random.random() < 0.5
        self.processes, self.stopped, self.history = {}, set(), []
        self.run_number, self.begun_anew, self.store, self.seen = 0, 0, None, 0
        self.store_port = free_port()
        self.run_id = "driver-%d-%d" % (os.getpid(), seed)
        self.environment = dict(os.environ, MUSTER_SECRET="a secret of the test job",
                                MUSTER_STATE_DIR=os.path.join(self.folder, "state"))
        if store in ("tcp", "kept"):
            self.start_store()
        self.url = store if ":" in store else "tcp://127.0.0.1:%d" % self.store_port
        if store in ("tcp", "kept"):
            self.url += "?host=no"

    def note(self, text):
        self.history.append(text)

    # ---- processes
    def start_store(self):
        command = [self.muster, "store", "--listen", "tcp://127.0.0.1:%d" % self.store_port]
        if self.kind == "kept":
            command += ["--no-sync", "--data-dir", os.path.join(self.folder, "store")]
        with open(os.path.join(self.folder, "store.log"), "ab") as log:
            self.store = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=self.environment)
        if not self.store.stdout.readline().startswith(b"listening"):
            raise Broken("the store does not start")

    def start(self, name):
        least = len(self.names) if self.fixed else 1
        program = ('echo "%d $MUSTER_ROUND $RANK $WORLD_SIZE %s $$" >>%s; while ! [ -e %s/go ]; do sleep 0.1; done'
                   % (self.run_number, name, self.worlds, self.folder))
        command = [self.muster, "run", "--nnodes", "%d:%d" % (least, len(self.names)), "--keep-alive", "0.2",
                   "--last-call", "0.3", "--join-timeout", "20", "--max-restarts", "1000000", "--grace", "1", "--rdzv",
                   self.url, "--run-id", "%s-%d" % (self.run_id, self.run_number), "--log", "info", "--", "sh", "-c",
                   program]
        with open(os.path.join(self.folder, name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                    env=self.environment)

    def end(self, name, number):
        process = self.processes.pop(name)
        process.send_signal(number)
        if name in self.stopped:
            process.send_signal(signal.SIGCONT)
        process.wait()
        self.stopped.discard(name)

    def living(self):
        for name, process in list(self.processes.items()):
            if process.poll() is not None:  # it gave up, as a join that has found no majority does
                self.note("%s ended with %d" % (name, process.returncode))
                del self.processes[name]
                self.stopped.discard(name)
        return sorted(self.processes)

    # ---- steps
    def step(self):
        living = self.living()
        dead = [name for name in self.names if name not in living]
        running = [name for name in living if name not in self.stopped]
        dice = self.random.random()
        if dead and dice < 0.35:
            name = self.random.choice(dead)
            self.note("start " + name)
            self.start(name)
        elif running and dice < 0.5:
            count = len(running) if self.random.random() < 0.1 else 1
            for name in self.random.sample(running, count):
                self.note("kill " + name)
                self.end(name, signal.SIGKILL)
        elif self.stopped and dice < 0.7:
            name = self.random.choice(sorted(self.stopped))
            self.note("continue " + name)
            self.processes[name].send_signal(signal.SIGCONT)
            self.stopped.discard(name)
        elif running and dice < 0.77:
            name = self.random.choice(running)
            self.note("stop " + name)
            self.processes[name].send_signal(signal.SIGSTOP)
            self.stopped.add(name)
        elif running and dice < 0.8 and self.kind != "hosted":  # a run that all have left may begin anew
            name = self.random.choice(running)
            self.note("leave " + name)
            self.end(name, signal.SIGTERM)
        elif dice < 0.87:
            self.kill_worker()
        elif self.kind == "kept" and dice < 0.9:
            self.note("restart the store")
            self.store.kill()
            self.store.wait()
            self.store.stdout.close()
            self.start_store()
        time.sleep(self.random.choice((0, 0.01, 0.05, 0.2)))

    def kill_worker(self):
        with open(self.worlds, encoding="ascii") as file:
            lines = file.read().splitlines()
        if not lines:
            return
        name, pid = lines[-1].split()[4:6]
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if self.folder.encode() not in file.read():
                    return
            os.kill(int(pid), signal.SIGKILL)
            self.note("kill the worker of " + name)
        except OSError:
            pass

    # ---- what has to be so
    def check(self):
        """One world at a time; returns the newest round of this run in which all nodes are."""
        ranks, sizes, nodes = {}, {}, {}
        with open(self.worlds, encoding="ascii") as file:
            for line in file.read().splitlines():
                run, number, rank, size, name = line.split()[:5]
                key = (int(run), int(number))
                if (key, rank) in ranks:
                    raise Broken("rank %s of round %d was given to %s and to %s" % (rank, key[1], ranks[key, rank], name))
                ranks[key, rank] = name
                if sizes.setdefault(key, size) != size:
                    raise Broken("round %d has sizes %s and %s" % (key[1], sizes[key], size))
                nodes.setdefault(key, set()).add(name)
        whole = [number for (run, number), names in nodes.items()
                 if run == self.run_number and len(names) == len(self.names)]
        return max(whole, default=0)

    def calm(self):
        for name in sorted(self.stopped):
            self.processes[name].send_signal(signal.SIGCONT)
        self.stopped.clear()
        before = self.check()
        until = time.monotonic() + WHOLE_WITHIN
        settled = None
        while time.monotonic() < until:
            for name in self.names:
                if name not in self.living():
                    self.note("start " + name)
                    self.start(name)
                    settled = None
            found = self.check()
            if found != before or (found and settled):
                if settled == found:
                    return
                settled = found
            time.sleep(0.2)
        if self.kind != "hosted" or not self.gave_up():
            raise Broken("not all nodes are in one world %d s after the faults have ended" % WHOLE_WITHIN)
        self.begun_anew += 1
        self.note("begin anew")
        for name in self.living():
            self.end(name, signal.SIGKILL)
        self.run_number += 1

    def gave_up(self):
        for name in self.names:
            with open(os.path.join(self.folder, name + ".log"), "rb") as file:
                if b"are in reach" in file.read():
                    return True
        return False

    def run(self):
        for _ in range(max(1, self.steps // 50)):
            for _ in range(50):
                self.step()
            self.check()
            self.calm()

    def clean(self, keep):
        for name in self.living():
            self.end(name, signal.SIGKILL)
        if self.store:
            self.store.kill()
            self.store.wait()
            self.store.stdout.close()
        open(os.path.join(self.folder, "go"), "w", encoding="ascii").close()
        if not keep:
            shutil.rmtree(self.folder)


def run(arguments, seed):
    sequence = Sequence(arguments.muster, arguments.store, seed, arguments.nodes, arguments.steps)
    try:
        sequence.run()
    except Broken as broken:
        print("seed %d: %s\nsteps: %s" % (seed, broken, "; ".join(sequence.history[-60:])))
        for name in sequence.names:
            with open(os.path.join(sequence.folder, name + ".log"), encoding="utf-8", errors="replace") as file:
                print("---- %s\n%s" % (name, "".join(file.readlines()[-12:])))
        with open(sequence.worlds, encoding="ascii") as file:
            print("---- worlds\n" + "".join(file.readlines()[-20:]))
        sequence.clean(False)
        return None
    rounds = sequence.check()
    sequence.clean(False)
    return rounds, sequence.begun_anew


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("muster")
    parser.add_argument("store")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("MUSTER_SEED", "1")))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0)
    arguments = parser.parse_args()
    arguments.muster = os.path.abspath(arguments.muster)
    begin, seed, rounds, begun_anew, descriptors = time.monotonic(), arguments.seed, 0, 0, None
    while time.monotonic() - begin < arguments.seconds if arguments.seconds else seed < arguments.seed + arguments.seeds:
        done = run(arguments, seed)
        if done is None:
            return 1
        rounds += done[0]
        begun_anew += done[1]
        seed += 1
        opened = len(os.listdir("/proc/self/fd"))
        descriptors = descriptors or opened
        if opened > descriptors:
            print("descriptors of this process grow: %d, %d at first" % (opened, descriptors))
            return 1
    print("%s: %d sequences of %d steps, rounds up to %d in sum, %d begun anew, %.0f s" % (
        arguments.store.split(":")[0], seed - arguments.seed, arguments.steps, rounds, begun_anew, time.monotonic() - begin))
    return 0


sys.exit(main())

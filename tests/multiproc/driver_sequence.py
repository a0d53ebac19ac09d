# SPDX-License-Identifier: MIT
"""A random sequence of steps of run_driver.py, and what has to be so after each."""
import os
import random
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from driver_places import Broken, Network, Store, die_with_parent

WHOLE_WITHIN = 30  # seconds, for all nodes to be in one world once the faults have ended; no join gives up sooner
WHOLE_WITHIN_HOSTED = 60  # there it may, after 10 s, and is begun again
WHOLE_WITHIN_ETCD = 60  # whose leases are five times as long
LAST_CALL_MS = 300
QUIET = 0.2  # seconds without a new worker or the end of a node


class Node:
    def __init__(self, index):
        self.index, self.name = index, "n%d" % index
        self.life = 0  # counts its processes
        self.process = self.ended = None  # ended: a descriptor that is readable when the process has ended
        self.stopped = False
        self.round = self.worker = 0  # its latest, of the process that runs
        self.identity = b""  # of the run that this is a round of, where a node serves the store
        self.gave_up = False  # by itself, in this run


class Worlds:
    """What workers and members have said of their rounds; says at once what is wrong."""

    def __init__(self):
        self.ranks, self.sizes, self.newest, self.count = {}, {}, {}, 0

    def see(self, run, number, rank, size, name, pid):
        """`run`: its name, and its identity where that may be another under the same name."""
        key, holder = (run, number), (name, pid)
        first = self.ranks.setdefault((key, rank), holder)
        if first != holder:
            raise Broken("rank %s of round %d was given to %s and to %s" % (rank, number, first[0], name))
        if self.sizes.setdefault(key, size) != size:
            raise Broken("round %d has sizes %s and %s" % (number, self.sizes[key], size))
        self.count += number > self.newest.get(run, 0)
        self.newest[run] = max(number, self.newest.get(run, 0))


class Writes:
    """What members have written through the views of their rounds. In one store no write of a round is accepted after one
    of a later round: revisions say what was first, and no clock is needed."""

    def __init__(self):
        self.versions, self.places, self.statuses = {}, {}, {}

    def read(self, path):
        try:
            with open(path, encoding="ascii") as file:
                file.seek(self.places.get(path, 0))
                text = file.read()
        except FileNotFoundError:
            return
        whole = text[:text.rfind("\n") + 1]
        self.places[path] = self.places.get(path, 0) + len(whole)
        for line in whole.splitlines():
            run, number, home, status, version = line.split()
            run = run.split("/")[0]
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == "MUSTER_OK":
                rounds = self.versions.setdefault((run, home), {})
                first, last = rounds.get(int(number), (int(version), int(version)))
                rounds[int(number)] = (min(first, int(version)), max(last, int(version)))

    def check(self):
        for (run, home), rounds in self.versions.items():
            numbers = sorted(rounds)
            for before, after in zip(numbers, numbers[1:]):
                if rounds[before][1] >= rounds[after][0]:
                    raise Broken("at %s a write of round %d was accepted at revision %d, one of round %d at %d" % (
                        home, before, rounds[before][1], after, rounds[after][0]))


class Sequence:
    def __init__(self, options, network, seed):
        self.options, self.kind = options, options.store
        self.random = random.Random(seed)
        # An etcd waits for the disk, and a lease of 3 s is over where that is slow.
        in_memory = self.kind == "etcd" and os.access("/dev/shm", os.W_OK)
        self.folder = tempfile.mkdtemp(prefix="driver.", dir="/dev/shm" if in_memory else None)
        self.nodes = [Node(i) for i in range(options.nodes)]
        self.fixed = self.random.random() < 0.5
        self.network = network if self.random.random() < 0.7 else None
        self.as_members = options.member is not None and self.random.random() < 0.5
        self.history, self.worlds, self.writes = [], Worlds(), Writes()
        self.run_number, self.begun_anew, self.slowest, self.text = 0, 0, 0, b""
        self.reasons = []  # for which the run was begun anew
        self.run_id = "driver-%d-%d" % (os.getpid(), seed)
        os.mkfifo(os.path.join(self.folder, "worlds"))
        os.mkfifo(os.path.join(self.folder, "end"))  # nobody writes there
        self.said = os.open(os.path.join(self.folder, "worlds"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self.environment = dict(os.environ, MUSTER_SECRET="a secret of the test job",
                                MUSTER_STATE_DIR=os.path.join(self.folder, "state"))
        self.store = Store(options.muster, self.kind, self.folder, self.environment, self.host(), self.node_host())

    def host(self):
        return "10.99.0.1" if self.network else "127.0.0.1"

    def node_host(self):
        return Network.address(0) if self.network else "127.0.0.1"

    def text_of(self):
        return "%s, %s, %s" % ("members" if self.as_members else "muster run", "fixed size" if self.fixed else "elastic",
                               "hosts of their own" if self.network else "one host")

    def note(self, text):
        self.history.append(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def join_timeout(self):
        return 10 if self.kind == "hosted" else 100

    def limits(self):
        return len(self.nodes) if self.fixed else 1, len(self.nodes)

    # ---- processes
    def start(self, node):
        self.note("start " + node.name)
        node.life += 1
        which = "%d/%d" % (self.run_number, node.life)
        least, most = self.limits()
        run, keep_alive = "%s-%d" % (self.run_id, self.run_number), self.store.keep_alive()
        if self.as_members:
            command = [self.options.member, self.store.url, run, node.name, str(least), str(most),
                       str(round(1000 * keep_alive)), which, self.path("worlds"),
                       self.path(node.name + ".writes"), str(self.join_timeout())]
        else:
            program = 'echo "%s $MUSTER_ROUND $RANK $WORLD_SIZE %s $$" >%s; read -r end <%s' % (
                which, node.name, self.path("worlds"), self.path("end"))
            command = [self.options.muster, "run", "--nnodes", "%d:%d" % (least, most), "--keep-alive", str(keep_alive),
                       "--last-call", str(LAST_CALL_MS / 1000), "--join-timeout", str(self.join_timeout()), "--max-restarts", "1000000", "--grace", "1", "--rdzv",
                       self.store.url, "--run-id", run, "--log", "info", "--", "sh", "-c", program]
        environment = self.environment
        if self.network:  # hosts share no files
            environment = dict(environment, MUSTER_STATE_DIR=self.path("state." + node.name))

        def before():
            die_with_parent()
            if self.network:
                self.network.enter(node.index)

        with open(self.path(node.name + ".log"), "ab") as log:
            node.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                            preexec_fn=before)
        node.ended = os.pidfd_open(node.process.pid)
        node.round, node.stopped = 0, False

    def end(self, node, number):
        node.process.send_signal(number)
        if node.stopped:
            node.process.send_signal(signal.SIGCONT)
        self.forget(node)

    def forget(self, node):
        node.process.wait()
        os.close(node.ended)
        node.process = node.ended = None
        node.stopped, node.round, node.identity = False, 0, b""

    def wait(self, seconds):
        """Until a worker has begun or a node has ended, or the time is over, which is False."""
        poll = select.poll()
        poll.register(self.said, select.POLLIN)
        for node in self.nodes:
            if node.process:
                poll.register(node.ended, select.POLLIN)
        happened = bool(poll.poll(1000 * seconds))
        self.read_worlds()
        for node in self.nodes:
            if node.process and node.process.poll() is not None:  # it gave up, as a join that has found no majority does
                self.note("%s ended with %d" % (node.name, node.process.returncode))
                node.gave_up = True
                self.forget(node)
        return happened

    def read_worlds(self):
        try:
            while piece := os.read(self.said, 65536):
                self.text += piece
        except BlockingIOError:
            pass
        lines = self.text.split(b"\n")
        self.text = lines.pop()
        for line in lines:
            which, number, rank, size, name, pid = line.decode("ascii").split()
            run, life = which.split("/")
            node = self.nodes[int(name[1:])]
            current = int(run) == self.run_number and int(life) == node.life and node.process
            identity = self.identity(node) if self.kind == "hosted" and current else b""
            if self.kind == "hosted" and not identity:
                continue  # its process has ended
            self.worlds.see((int(run), identity), int(number), rank, size, name, pid)
            if current:
                node.round, node.worker, node.identity = int(number), int(pid), identity

    def identity(self, node):
        """Where a node serves the store a process that knows of no member begins a run anew under its name, as rendezvous.h
        says. Runs are told apart by what the state file has, which is written before a round begins."""
        least, most = self.limits()
        before = struct.pack("<HBIIq", 33, 2, least, most, LAST_CALL_MS * 1000000)
        folder = "/proc/%d/fd/" % node.process.pid
        try:
            for name in os.listdir(folder):
                if "/state" in os.readlink(folder + name):
                    with open(folder + name, "rb") as file:
                        text = file.read()
                    at = text.rfind(before)
                    if at >= 0:
                        return text[at + len(before):][:16]
        except OSError:
            pass
        return b""

    def newest(self):
        return self.worlds.newest.get((self.run_number, self.nodes[0].identity), 0)

    # ---- steps
    def step(self):
        living = [node for node in self.nodes if node.process]
        dead = [node for node in self.nodes if not node.process]
        running = [node for node in living if not node.stopped]
        stopped = [node for node in living if node.stopped]
        dice = self.random.random()
        if dead and dice < 0.35:
            self.start(self.random.choice(dead))
        elif running and dice < 0.5:
            count = len(running) if self.random.random() < 0.1 else 1
            for node in self.random.sample(running, count):
                self.note("kill " + node.name)
                self.end(node, signal.SIGKILL)
        elif stopped and dice < 0.65:
            self.go_on(self.random.choice(stopped))
        elif self.network and self.network.cut_off and dice < 0.71:
            self.heal(self.random.choice(sorted(self.network.cut_off)))
        elif running and dice < 0.77:
            self.stop(self.random.choice(running))
        elif running and dice < 0.8 and self.kind != "hosted":  # a run that all have left may begin anew
            node = self.random.choice(running)
            self.note("leave " + node.name)
            self.end(node, signal.SIGTERM)
        elif dice < 0.87:
            if living:
                self.fail(self.random.choice(living))
        elif self.store.can_restart() and dice < 0.9:
            self.note("restart the store")
            self.store.restart()
        elif self.network and dice < 0.96:
            self.cut(self.random.randrange(len(self.nodes)))
        self.wait(self.random.choice((0, 0.01, 0.05, 0.2, 0.5)))

    def stop(self, node):
        self.note("stop " + node.name)
        node.process.send_signal(signal.SIGSTOP)
        node.stopped = True

    def go_on(self, node):
        self.note("continue " + node.name)
        node.process.send_signal(signal.SIGCONT)
        node.stopped = False

    def cut(self, index):
        self.note("cut n%d" % index)
        self.network.cut(index)

    def heal(self, index):
        self.note("heal n%d" % index)
        self.network.heal(index)

    def fail(self, node):
        """Ends the worker of a node that runs, or a member aborts its round; whether that could be done."""
        if node.round == 0 or node.stopped:
            return False
        try:
            if not self.as_members:
                with open("/proc/%d/cmdline" % node.worker, "rb") as file:
                    if self.folder.encode() not in file.read():
                        return False
            os.kill(node.worker, signal.SIGUSR1 if self.as_members else signal.SIGKILL)
        except OSError:
            return False
        self.note(("the round is aborted by " if self.as_members else "kill the worker of ") + node.name)
        return True

    # ---- what has to be so
    def check(self):
        self.read_worlds()
        for node in self.nodes:
            self.writes.read(self.path(node.name + ".writes"))
        self.writes.check()

    def is_whole(self):
        return self.newest() > 0 and all(node.process and node.round == self.newest() and
                                         node.identity == self.nodes[0].identity for node in self.nodes)

    def calm(self):
        """The faults end: all nodes are in one world within a time limit, and go on to the next where one fails."""
        begun = time.monotonic()
        for index in sorted(self.network.cut_off) if self.network else ():
            self.heal(index)
        for node in self.nodes:
            if node.process and node.stopped:
                self.go_on(node)
        for node in self.nodes:
            node.gave_up = False
        within = {"hosted": WHOLE_WITHIN_HOSTED, "etcd": WHOLE_WITHIN_ETCD}.get(self.kind, WHOLE_WITHIN)
        after, fails = 0, self.random.random() < 0.5
        while time.monotonic() < begun + within:
            for node in self.nodes:
                if not node.process:
                    self.start(node)
            if self.kind == "hosted" and all(node.gave_up for node in self.nodes):
                return self.begin_anew()
            if not self.is_whole() or self.newest() <= after:
                self.wait(0.5)
            elif not self.wait(QUIET):
                if not fails:
                    self.slowest = max(self.slowest, time.monotonic() - begun)
                    return None
                newest = self.newest()
                if self.fail(self.nodes[0]):
                    after, fails = newest, False
        raise Broken("not all nodes are in one world %d s after the faults have ended" % within)

    def begin_anew(self):
        self.begun_anew += 1
        self.note("begin anew")
        for node in self.nodes:
            with open(self.path(node.name + ".log"), encoding="utf-8", errors="replace") as file:
                words = [line.strip() for line in file if "join:" in line]
            self.reasons.append(node.name + ": " + (words or [""])[-1])
        for node in self.nodes:
            if node.process:
                self.end(node, signal.SIGKILL)
        self.run_number += 1

    def run(self):
        for done in range(0, self.options.steps, 50):
            if self.kind == "hosted" and self.network:
                # Without a file a process on the host of the URL may begin a run of its own when it is cut off, and is right.
                self.calm()
            for _ in range(min(50, self.options.steps - done)):
                self.step()
            self.check()
            self.calm()
        self.check()

    def clean(self, keep=False):
        for node in self.nodes:
            if node.process:
                self.end(node, signal.SIGKILL)
        for index in sorted(self.network.cut_off) if self.network else ():
            self.network.heal(index)
        self.store.stop()
        os.close(self.said)
        left = self.left_over()
        if not keep:
            shutil.rmtree(self.folder)
        if left:
            raise Broken("left behind: " + ", ".join(left))

    def left_over(self):
        """Processes of this sequence that do not end: the guards of killed nodes need a moment for the workers."""
        found, until = [], time.monotonic() + 10
        for pid in os.listdir("/proc"):
            try:
                with open("/proc/%s/cmdline" % int(pid), "rb") as file:
                    if self.folder.encode() not in file.read():
                        continue
                ended = os.pidfd_open(int(pid))
            except (OSError, ValueError):
                continue
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            if not poll.poll(1000 * max(0, until - time.monotonic())):
                found.append(pid)
            os.close(ended)
        return found

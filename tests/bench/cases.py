# SPDX-License-Identifier: MIT
"""What is measured: groups of cases, each with Muster's program and those of its peers."""

import collections
import functools
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# better: "low" or "high". value: which line of a program's output. muster: None for what is only told.
# scale: percent of the usual count of messages.
Case = collections.namedtuple("Case", "group name metric unit better value muster peers scale", defaults=[100])

MB80 = 80_000_000
SIZES = {64: "64 B", 65536: "64 KiB", 1 << 20: "1 MiB", MB80: "80 MB"}
ONE, TWO = "one core", "two cores"

MPI = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2",
       "--mca", "pml", "ob1", "--mca", "btl", "self,vader"]
NO_CMA = ["--mca", "btl_vader_single_copy_mechanism", "none"]


def command(program, what, size=64, cores=TWO, **more):
    line = [program, "--what", what, "--size", str(size), "--cores", cores.split()[0]]
    for key, value in more.items():
        line += [f"--{key}", value]
    return line


def latency(group, name, muster, peers):
    return Case(group, name, "half round trip", "us", "low", "us", muster, peers)


def wake_up(group, name, muster, peers):
    return Case(group, name, "parked wake-up", "us", "low", "us", muster, peers)


def throughput(group, name, muster, peers):
    return Case(group, name, "throughput", "GB/s", "high", "gbps", muster, peers)


def message_rate(group, name, muster, peers):
    return Case(group, name, "message rate", "1/s", "high", "rate", muster, peers)


def limits():
    for over, name in (("memcpy", "memcpy from memory"), ("memcpy-cached", "memcpy within the cache")):
        for size in (65536, MB80) if over == "memcpy" else (65536,):
            yield throughput("limits", f"{name}, {SIZES[size]}", None,
                             [("memcpy", command("limits", "oneway", size, over=over))])
    for over in ("futex", "eventfd"):
        for cores in (ONE, TWO):
            yield wake_up("limits", f"{over} hand-over, {cores}", None,
                          [(over, command("limits", "handover", cores=cores, over=over))])
    for cores in (ONE, TWO):
        yield wake_up("limits", f"futex hand-over between processes, {cores}", None,
                      [("futex", command("limits", "handover", cores=cores, over="futex", mode="processes"))])
    for over, name in (("mapped", "mapped, first read"), ("populated", "mapped with its pages, first read"),
                       ("copied", "copied into huge pages, first read"), ("mapped-again", "mapped, second read")):
        yield Case("limits", f"80 MB of another process, {name}", "time", "us", "low", "us", None,
                   [(over, command("limits", "latency", MB80, over=over))])
    yield Case("limits", "system call", "time", "us", "low", "us", None,
               [("getppid", command("limits", "latency", over="syscall"))])


def stream():
    def ring(what, size, cores, mode):
        return command("ring", what, size, cores, over="threads", mode=mode)

    for size in (64, 65536, MB80):
        measure = message_rate if size == 64 else throughput
        peers = [(f"ring, {how}", ring("oneway", size, TWO, how)) for how in ("park", "spin", "hybrid")]
        yield measure("stream", f"in-process {SIZES[size]}, {TWO}", command("pair", "oneway", size), peers)
    yield latency("stream", f"in-process 64 B, spinning, {TWO}", command("pair", "latency"),
                  [("ring, hybrid", ring("latency", 64, TWO, "hybrid")), ("ring, spin", ring("latency", 64, TWO, "spin"))])
    for cores in (ONE, TWO):
        yield wake_up("stream", f"in-process 64 B, {cores}", command("pair", "handover", cores=cores),
                      [("futex hand-over", command("limits", "handover", cores=cores, over="futex")),
                       ("ring, park", ring("handover", 64, cores, "park"))])


def shm():
    def link(*arguments):
        return command("link", *arguments, over="shm")

    def peers(what, size, cores, *names):
        every = {
            "Open MPI vader": MPI + command("mpi", what, size, cores),
            "Open MPI vader without CMA": MPI + NO_CMA + command("mpi", what, size, cores),
            "Unix socket": command("sockets", what, size, cores, over="unix"),
            "ring, park": command("ring", what, size, cores, over="processes", mode="park"),
            "ring, hybrid": command("ring", what, size, cores, over="processes", mode="hybrid"),
        }
        return [(name, every[name]) for name in names]

    yield latency("shm", f"64 B, spinning, {TWO}", link("latency"),
                  peers("latency", 64, TWO, "Open MPI vader", "Unix socket", "ring, hybrid"))
    for cores in (ONE, TWO):
        yield wake_up("shm", f"64 B, {cores}", link("handover", 64, cores),
                      [("futex hand-over", command("limits", "handover", cores=cores, over="futex", mode="processes"))] +
                      peers("handover", 64, cores, "Unix socket", "ring, park"))
    yield message_rate("shm", f"64 B, {TWO}", link("oneway"),
                       peers("oneway", 64, TWO, "Open MPI vader", "Open MPI vader without CMA", "Unix socket",
                             "ring, park"))
    for size in (65536, 1 << 20, MB80):
        yield throughput("shm", f"{SIZES[size]}, {TWO}", link("oneway", size),
                         peers("oneway", size, TWO, "Open MPI vader", "Open MPI vader without CMA", "Unix socket",
                               "ring, park"))


def socket_group(over):
    def peers(what, size, cores):
        return [(f"blocking {over} socket", command("sockets", what, size, cores, over=over)),
                (f"libuv {over}", command("uv", what, size, cores, over=over))]

    def link(what, size=64, cores=TWO, over=over):
        return command("link", what, size, cores, over=over)

    def tls(what, size=64):
        return [("TLS 1.3, AES-256-GCM", command("tls", what, size, over="TLS_AES_256_GCM_SHA384"))]

    for cores in (ONE, TWO):
        yield latency(over, f"64 B, {cores}", link("latency", 64, cores), peers("latency", 64, cores))
    for size in (65536, 1 << 20, MB80):
        yield throughput(over, f"{SIZES[size]}, {TWO}", link("oneway", size), peers("oneway", size, TWO))
    yield message_rate(over, f"64 B, {TWO}", link("oneway"), peers("oneway", 64, TWO))
    if over == "tcp":
        # As dialled without options: both processes are of one user on one host, so the bytes go by shared memory.
        upgraded = dict(over="tcp-upgraded")
        yield latency(over, f"moved to shared memory, 64 B, {TWO}", link("latency", **upgraded), peers("latency", 64, TWO))
        yield throughput(over, f"moved to shared memory, 80 MB, {TWO}", link("oneway", MB80, **upgraded),
                         peers("oneway", MB80, TWO))
        # What two hosts get. Both sides have the secret; TLS checks no certificate here.
        for size in (65536, 1 << 20, MB80):
            yield throughput(over, f"sealed, {SIZES[size]}, {TWO}", link("oneway", size, over="tcp-sealed"),
                             tls("oneway", size) + (peers("oneway", size, TWO) if size == MB80 else []))
        yield latency(over, f"sealed, 64 B, {TWO}", link("latency", over="tcp-sealed"), tls("latency"))
        yield throughput(over, f"sealed without AES instructions, 80 MB, {TWO}",
                         ["env", "MUSTER_NO_AES=1"] + link("oneway", MB80, over="tcp-sealed"),
                         [("TLS 1.3, ChaCha20-Poly1305", command("tls", "oneway", MB80, over="TLS_CHACHA20_POLY1305_SHA256"))])


def message():
    """A dealer and a router; the stream is Muster's own over the same transport."""
    for over, zmq_over in (("inproc", "inproc"), ("shm", "ipc"), ("tcp", "tcp")):
        def peers(what):
            stream = command("pair", what) if over == "inproc" else command("link", what, over=over)
            return [("libzmq dealer and router", command("zmq_message", what, over=zmq_over)), ("stream", stream)]

        yield latency("message", f"{over}, 64 B, {TWO}", command("message", "latency", over=over), peers("latency"))
        yield message_rate("message", f"{over}, 64 B, {TWO}", command("message", "oneway", over=over), peers("oneway"))
    for over in ("shm", "tcp"):
        yield latency("message", f"{over}, loaned, 1 MiB, {TWO}", command("message", "latency", 1 << 20, over=over, mode="loaned"),
                      [("message of 64 B", command("message", "latency", over=over)),
                       ("message of 1 MiB", command("message", "latency", 1 << 20, over=over)),
                       ("libzmq dealer and router", command("zmq_message", "latency", 1 << 20, over="ipc" if over == "shm" else over))])
    for what, measure in (("latency", latency), ("oneway", message_rate)):
        yield measure("message", f"star, 64 B, {TWO}", command("message", what, over="broker"),
                      [("libzmq dealer and router with a proxy", command("zmq_message", what, over="proxy"))])


def collective():
    """Processes of one host; ranks above two share the two cores of the machine that CI has."""
    def mpirun(ranks, idle, *words):
        yielding = ["--mca", "mpi_yield_when_idle", "1" if idle else "0"]
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), "--mca", "pml",
                "ob1", "--mca", "btl", "self,vader", *yielding, "mpi_group", *words]

    def case(what, size, ranks, name):
        words = ["--what", what, "--size", str(size)]
        counted = [*words, "--ranks", str(ranks)]
        peers = [("Open MPI", mpirun(ranks, False, *words)), ("Open MPI, yield_when_idle", mpirun(ranks, True, *words)),
                 ("Gloo", ["gloo_group", *counted])]
        # Without yields an operation of many ranks takes milliseconds, and some runs do not end.
        left = peers if ranks <= 4 else peers[1:]
        return Case("collective", f"{what}, {name}{ranks} ranks", "time", "us", "low", "us", ["group", *counted], left)

    smoke = "--smoke" in sys.argv
    for ranks in (4,) if smoke else (2, 4, 8, 16):
        for what in ("all-reduce", "broadcast", "reduce-scatter"):
            for size, name in ((8, "8 B"), (65536, "64 KiB"), (1 << 20, "1 MiB"), (64 << 20, "64 MiB"))[:2 if smoke else 4]:
                if what != "reduce-scatter" or size > 8: # of one element per rank at least
                    yield case(what, size, ranks, name + ", ")
    yield case("barrier", 0, 8 if smoke else 64, "")
    yield Case("collective", "waiting in a barrier, 8 ranks", "processor", "%", "low", "percent",
               ["group", "--what", "idle", "--ranks", "8"], [])
    yield Case("collective", "a rank killed, all-reduce of 64 MiB, 8 ranks", "until all know", "ms", "low", "ms",
               ["group", "--what", "death", "--size", str(64 << 20), "--ranks", "8"], [])


def epoch():
    """Reclamation: nanoseconds per operation of a thread. The first four are workloads of the paper on the Chapel modules."""
    def words(what, threads):
        return ["--what", what, "--threads", str(threads)]

    def row(what, threads, name, muster="muster"):
        peers = [(peer, ["epoch", "--over", over, *words(what, threads)]) for peer, over in
                 (("Concurrency Kit", "ck"), ("liburcu memb", "urcu-memb"), ("liburcu qsbr", "urcu-qsbr"))]
        if what != "end": # the buffer of libcds has a limit; crossbeam frees in steps of its own
            peers.append(("libcds buffered RCU", ["epoch", "--over", "cds-gpb", *words(what, threads)]))
            peers.append(("crossbeam", ["epoch_rust", *words(what, threads)]))
        return Case("epoch", f"{name}, {threads} thread{'s' * (threads > 1)}", "time", "ns", "low", "ns",
                    ["epoch", "--over", muster, *words(what, threads)], peers)

    def tail(threads, allocator, metric, unit, value):
        def over(which):
            return ["env", f"LD_PRELOAD={allocator}", "epoch", "--over", which, *words("tail", threads)]
        of = allocator.partition(".")[0].replace("lib", "") or "glibc"
        return Case("epoch", f"defer and reclaim each, fenced, {of}, {threads} threads", metric, unit, "low", value,
                    over("muster-fenced"), [("Concurrency Kit", over("ck"))])

    for threads in (1, 2):
        yield row("pin", threads, "pin and unpin")
        yield row("pin", threads, "pin and unpin by the C call", "muster-call")
        yield row("pin", threads, "pin and unpin, fenced", "muster-fenced")
        for what, name in (("batch", "after 1024"), ("each", "after each"), ("end", "at the end")):
            yield row(what, threads, f"defer, reclaim {name}")
            yield row(what, threads, f"defer, reclaim {name}, fenced", "muster-fenced")
    for allocator in ("", "libjemalloc.so.2", "libmimalloc.so.2.0"):
        yield tail(2, allocator, "mean", "ns", "ns")
        yield tail(2, allocator, "99.9 %", "ns", "p999_ns")
        yield tail(2, allocator, "objects that wait, peak", "", "peak")
        yield tail(2, allocator, "objects that wait, mean", "", "mean_waiting")
    yield Case("epoch", "a reader protects one object and stays", "objects that wait", "", "low", "pending",
               ["epoch", "--over", "muster", "--what", "stalled"], [])


def atomic():
    """25 % each of read, write, compare-and-exchange and exchange on one cell (a workload of the paper on the Chapel
    modules); compare-and-exchange between two processes of a host."""
    def cell(over, words):
        return ["atomic", "--over", over, *words]

    for threads in (1, 2):
        words = ["--what", "mix", "--threads", str(threads)]
        name = f"{threads} thread{'s' * (threads > 1)}"
        yield Case("atomic", f"word by the C call, {name}", "time", "ns", "low", "ns", cell("word-call", words),
                   [("std::atomic", cell("std-atomic", words)), ("Rust atomics", ["epoch_rust", *words])])
        for how, over in (("inline", "aba"), ("by the C call", "aba-call")):
            yield Case("atomic", f"ABA cell {how}, {name}", "time", "ns", "low", "ns", cell(over, words),
                       [("libatomic", cell("libatomic", words))])
    ranks = [("OpenSHMEM", ["oshrun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "atomic_shmem"])]
    ranks += [(f"MPI osc/{osc}", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", "--mca",
                                  "osc", osc, "atomic_mpi"]) for osc in ("sm", "ucx")]
    for how, over, bare in (("word by the C call", "word-call", "std-atomic"), ("ABA cell inline", "aba", "libatomic")):
        bare_name = "std::atomic" if bare == "std-atomic" else bare
        yield Case("atomic", f"exchange by another process, {how}", "time", "ns", "low", "ns",
                   cell(over, ["--what", "remote"]), [(bare_name, cell(bare, ["--what", "remote"])), *ranks])
        yield Case("atomic", f"exchange by two processes at once, {how}", "time", "ns", "low", "ns",
                   cell(over, ["--what", "contended"]), [(bare_name, cell(bare, ["--what", "contended"]))])


def pgas():
    """Active messages, and memory that is not mapped: what the library of the owner does, its host idle or computing.
    A time is half of a round trip, as that of the stream."""
    def am(what, over, mode):
        return command("am", what, 8, TWO, over=over, mode=mode)

    for over in ("shm", "tcp", "unix"):
        stream = [("stream", command("link", "latency", 8, over=over))]
        for mode in ("idle", "computing"):
            yield latency("pgas", f"call over {over}, 8 B, the owner {mode}", am("latency", over, mode), stream)
        yield message_rate("pgas", f"begun requests over {over}, 8 B", am("oneway", over, "idle"), [])
    for over in ("shm", "tcp"):
        def elsewhere(what, size=8, over=over):
            return ["memory", "--over", "muster", "--what", what, "--size", str(size), "--mode", over]

        stream = [("stream", command("link", "latency", 8, over=over))]
        for what, name in (("fetch", "fetch-add"), ("exchange", "compare-and-exchange"), ("put", "put 8 B")):
            yield latency("pgas", f"{name} elsewhere over {over}", elsewhere(what), stream)
        for what in ("put", "get"):
            for name, line, size in ((f"{what} 64 KiB", what, 65536), (f"{what} 64 KiB, 16 begun", f"begun-{what}", 65536),
                                     (f"{what} 1 MiB", what, 1 << 20), (f"{what} 80 MB", what, MB80)):
                yield throughput("pgas", f"{name} elsewhere over {over}", elsewhere(line, size),
                                 [("stream", command("link", "oneway", size, over=over))])
    yield from locales()


def locales():
    """The workloads of the paper on AtomicObject and EpochManager, and a hash table, by 2 to 8 locales together."""
    def workload(what, ranks, remote=50, mode="mapped"):
        return ["locales", "--what", what, "--ranks", str(ranks), "--remote", str(remote), "--mode", mode]

    def rate(name, line, peers):
        return Case("pgas", name, "operations", "1/s", "high", "rate", line, peers)

    for ranks in (2, 4, 8):
        shmem = ["oshrun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "locales_shmem"]
        for what, name in (("mix", "mix of atomics"), ("table", "hash table")):
            yield rate(f"{name}, {ranks} locales", workload(what, ranks), [("OpenSHMEM", [*shmem, "--what", what])])
        for what, name in (("1", "each"), ("1024", "1024"), ("end", "all")):
            yield rate(f"defer, reclaim after {name}, {ranks} locales", workload(f"defer-{what}", ranks), [])
    for remote in (0, 100):
        yield rate(f"defer, reclaim after 1024, {remote} % remote, 2 locales", workload("defer-1024", 2, remote), [])
    for remote in (0, 50, 100):
        yield rate(f"mix of atomics by messages, {remote} % remote, 2 locales", workload("mix", 2, remote, "messages"), [])
    yield rate("hash table by messages, 2 locales", workload("table", 2, 50, "messages"), [])


def memory():
    """Rank 0 uses the segment of rank 1, another process of the host."""
    def over(which, what, size=64):
        return ["memory", "--over", which, "--what", what, "--size", str(size)]

    ranks = [("OpenSHMEM", ["oshrun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "atomic_shmem"])]
    ranks += [("MPI osc/sm", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", "--mca", "osc",
                              "sm", "atomic_mpi"])]
    for what, name in (("fetch", "fetch-add"), ("exchange", "compare-and-exchange")):
        peers = [("instruction", over("bare", what)), *(ranks if what == "exchange" else [])]
        yield Case("memory", f"{name} on an address found inline", "time", "ns", "low", "ns", over("address", what), peers)
        yield Case("memory", f"{name} by the C call", "time", "ns", "low", "ns", over("muster", what), peers)
    for what in ("put", "get"):
        yield Case("memory", f"{what} 8 B by the C call", "time", "ns", "low", "ns", over("muster", what, 8),
                   [("memcpy", over("bare", what, 8))])
        for size in (65536, MB80):
            yield throughput("memory", f"{what} {SIZES[size]}", over("muster", what, size),
                             [("memcpy", over("bare", what, size)),
                              ("stream over shm", command("link", "oneway", size, over="shm"))])
    for size in (64, 1000):
        yield Case("memory", f"allocate and free {size} B", "time", "ns", "low", "ns", over("muster", "allocate", size),
                   [("malloc of glibc, one process", over("malloc", "allocate", size))])


def star():
    """Two members and the broker, three processes; the peers have as many."""
    def member(over, what, size):
        return command("star", what, size, TWO, over=over)

    def plain(what, size, over="plain", mode="whole"):
        return command("zmq_star", what, size, TWO, over=over, mode=mode)

    def tcp(what, size, over="tcp"):
        return command("sockets", what, size, TWO, over=over)

    direct = ("direct tcp", tcp("oneway", MB80))
    yield throughput("star", "moved to shared memory, 80 MB", member("introduced", "oneway", MB80), [direct])
    for over, plain_over, curve in (("through-no-curve", "plain", ""), ("through", "curve", " with CURVE")):
        def peers(what, size):
            yield f"plain star{curve}", plain(what, size, plain_over)
            if size == MB80:
                yield f"plain star{curve}, 256 KiB segments", plain(what, size, plain_over, "segments")
            if not curve:
                yield "tcp relay", tcp(what, size, "tcp-relay")

        case = f"through the broker{curve}"
        bulk = throughput("star", f"{case}, 80 MB", member(over, "oneway", MB80), [*peers("oneway", MB80)] +
                          ([] if curve else [direct]))
        yield bulk._replace(scale=40)
        yield message_rate("star", f"{case}, 64 B", member(over, "oneway", 64), [*peers("oneway", 64)])._replace(scale=40 if curve else 100)
        yield latency("star", f"{case}, 64 B", member(over, "latency", 64), [*peers("latency", 64)])

    def load(mode, over="through-no-curve"):
        return command("star_load", "latency", 64, TWO, over=over, mode=mode)

    for whose, name in (("other", "of two others beside a bulk transfer"), ("same", "to the reader of a bulk transfer")):
        for value, metric in (("us", "round trip"), ("us99", "round trip, p99")):
            yield Case("star", f"64 B {name}", metric, "us", "low", value, load(f"fair-{whose}"),
                       [("idle star", load(f"idle-{whose}"))])
        for value, metric in (("segments", "delay"), ("segments99", "delay, p99")):
            yield Case("star", f"64 B {name}", metric, "segments of 256 KiB", "low", value, load(f"fair-{whose}"), [])
    for over, curve in (("through-no-curve", ""), ("through", " with CURVE")):
        yield Case("star", f"through the broker{curve}, 20 MB from one to 8", "time", "ms", "low", "ms", load("to-all", over),
                   [("to each by itself", load("to-each", over))])
    for value, metric in (("mb", "growth of the broker's memory"), ("late_mb", "growth in the second half"),
                          ("queued_mb", "bytes under way")):
        yield Case("star", "a stopped reader, 8 senders", metric, "MB", "low", value, load("memory"), [])
    for value, who in (("broker_ms", "the broker"), ("member_ms", "a member")):
        yield Case("star", "100 idle streams", f"processor time of {who}", "ms/s", "low", value, load("streams", "through"), [])


def mpi():
    def muster(what, size, over, way="moved"):
        return MPI + command("mpi_stream", what, size, over=over, mode=way)

    def raw(what, size):
        return [("Open MPI vader", MPI + command("mpi", what, size)),
                ("Open MPI vader without CMA", MPI + NO_CMA + command("mpi", what, size))]

    ways = (("host", "driven by the host"), ("thread", "with the context's thread"))
    for way, name in (("moved", "moved to shared memory"), ("through", "through MPI")):
        for over, how in ways:
            probed = [("Open MPI vader by MPI_Improbe", MPI + command("mpi", "latency", 64, mode="probe"))]
            yield latency("mpi", f"{name}, {how}, 64 B", muster("latency", 64, over, way),
                          raw("latency", 64) + (probed if way == "through" else []))
        for over, how in ways:
            yield message_rate("mpi", f"{name}, {how}, 64 B", muster("oneway", 64, over, way), raw("oneway", 64))
        for size in (65536, 1 << 20, MB80):
            for over, how in ways:
                yield throughput("mpi", f"{name}, {how}, {SIZES[size]}", muster("oneway", size, over, way),
                                 raw("oneway", size))
        for over, how in ways:
            yield Case("mpi", f"{name}, {how}, connected and idle", "processor time", "%", "low", "idle",
                       muster("latency", 64, over, way + "-idle"),
                       [("Open MPI vader", MPI + command("mpi", "latency", mode="idle"))])


@functools.lru_cache(None)
def python_with_torch():
    """Debian's package is for Debian's python3, which need not be the first on the path. None: there is none."""
    for python in ("/usr/bin/python3", sys.executable):
        look = [python, "-c", "import importlib.util as i, sys; sys.exit(i.find_spec('torch') is None)"]
        if os.path.exists(python) and subprocess.run(look, check=False).returncode == 0:
            return python
    return None


def store():
    def load(what, **more):
        return ["store", "--what", what] + [word for key, value in more.items() for word in (f"--{key}", str(value))]

    def peers(op, clients, **more):
        yield "epoll echo", load("sync", over="echo", clients=clients, **more)
        if python_with_torch():
            yield "torch TCPStore", [python_with_torch(), os.path.join(HERE, "torch_store.py"), "--op", op, "--clients",
                                     str(clients)] + [w for k, v in more.items() for w in (f"--{k}", str(v))]

    for clients in (1, 64):
        for op in ("add", "get", "set"):
            others = list(peers(op, clients)) if op != "set" else [("epoll echo", load("sync", over="echo", clients=clients))]
            mine = load("sync", op=op, clients=clients)
            yield Case("store", f"{op}, {clients} clients", "operations", "1/s", "high", "rate", mine, others)
            yield Case("store", f"{op}, {clients} clients", "99th percentile", "us", "low", "p99_us", mine, others)
    one_at_a_time = [("epoll echo, one at a time", load("sync", over="echo", clients=1))]
    yield Case("store", "set, pipelined", "operations", "1/s", "high", "rate", load("pipelined", op="set"), one_at_a_time)
    yield Case("store", "get, pipelined", "operations", "1/s", "high", "rate", load("pipelined", op="get"), one_at_a_time)
    yield Case("store", "add, 1 busy beside 4000 idle", "operations", "1/s", "high", "rate",
               load("sync", op="add", idle=4000),
               [("itself alone", load("sync", op="add"))] + [p for p in peers("add", 1, idle=4000) if p[0] != "epoll echo"])
    yield Case("store", "1000 clients of one process", "until connected", "ms", "low", "ms", load("connect", clients=1000),
               [("epoll echo", load("connect", over="echo", clients=1000))])
    yield Case("store", "1000 clients of one process, begun together", "until connected", "ms", "low", "ms",
               load("connect", op="together", clients=1000),
               [("epoll echo, one after the other", load("connect", over="echo", clients=1000))])
    yield Case("store", "an idle client", "server's memory", "bytes", "low", "bytes", load("memory", clients=4000), [])
    if shutil.which("etcd"):
        for op in ("get", "set"):
            once = [("libcurl, done once", ["etcd_latency", "--op", op, "--over", "curl-once"])] if op == "set" else []
            yield Case("store", f"{op} over etcd", "median", "us", "low", "p50_us", ["etcd_latency", "--op", op],
                       [("libcurl alone", ["etcd_latency", "--op", op, "--over", "curl"])] + once)


def rendezvous():
    """Nodes with a connection each, in two processes; so the peers."""
    def nodes(what, count, rounds=5):
        return ["rendezvous", "--what", what, "--nodes", str(count), "--processes", "2", "--rounds", str(rounds)]

    def peers(what, count):
        if what == "last" and shutil.which("etcd"): # a death is noticed there when the lease ends, after seconds
            yield "over etcd", [os.path.join(HERE, "../conformance/with-etcd")] + nodes(what, count, 1) + \
                ["--url", "etcd://%/"]
        if what == "last" and python_with_torch():
            yield "torch dynamic", [python_with_torch(), os.path.join(HERE, "torch_rendezvous.py"), "--nodes", str(count)]

    for count in (2, 3, 64, 256, 1000, 4000, 10000):
        yield Case("rendezvous", f"{count} nodes, from the last join to all ranks", "time", "ms", "low", "ms",
                   nodes("last", count, 5 if count <= 1000 else 1), [*peers("last", count)] if count <= 64 else [])
    for count in (3, 64, 1000):
        yield Case("rendezvous", f"{count} nodes, from kill -9 to the event at all", "time", "ms", "low", "ms",
                   nodes("death", count, 1), [*peers("death", count)] if count <= 64 else [])


def cluster():
    """Workers on this host, each a process; so the peers."""
    def program(what, workers=1, *more):
        return ["cluster", "--what", what, "--workers", str(workers), *more]

    def lua(what, workers=1):
        return ["luajit", os.path.join(HERE, "cluster.lua"), "--what", what, "--workers", str(workers)]

    def rust(what, workers=1):
        return ["cluster_rust", "--what", what, "--workers", str(workers)]

    def mpirun(workers, what="start", idle=False):
        yielding = ["--mca", "mpi_yield_when_idle", "1"] if idle else []
        return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(workers), *yielding,
                "mpi_cluster", "--what", what]

    def started(words):
        return [sys.executable, os.path.join(HERE, "starting.py"), "--command", *words]

    for count in (4, 32):
        peers = [("mpirun", started(mpirun(count))), ("mpirun, yield_when_idle", started(mpirun(count, idle=True)))]
        if shutil.which("parallel"):
            peers.append(("GNU parallel", started(["parallel", "--will-cite", f"-j{count}", "cluster", "--what", "stamp",
                                                   ":::", *map(str, range(count))])))
        for value, metric in (("ms", "until all have joined"), ("whole_ms", "until all have left")):
            yield Case("cluster", f"start of {count} workers", metric, "ms", "low", value, program("start", count), peers)

    waiting = [("bare stream in C, blocking", program("trip", 1, "--over", "blocking")),
               ("bare stream in C, at a queue", program("trip", 1, "--over", "queue"))]
    if shutil.which("luajit"):
        yield latency("cluster", "call in Lua", lua("call"), [("bare stream in Lua", lua("stream")), *waiting])
        yield Case("cluster", "map in Lua, 4 workers", "entries", "1/s", "high", "rate", lua("map", 4), [])
    yield latency("cluster", "call in Rust", rust("call"), [("bare stream in Rust", rust("stream")), *waiting])
    yield Case("cluster", "map in Rust, 4 workers", "entries", "1/s", "high", "rate", rust("map", 4), [])

    def broadcast(count, way):
        return ["cluster_broadcast", str(count), "80000000", way]

    for count in (4, 16):
        for way, metric in (("broadcast", "until each has it"), ("broadcast-read", "until each has read it")):
            yield Case("cluster", f"80 MB to {count}", metric, "ms", "low", "ms", broadcast(count, way),
                       [("single sends", broadcast(count, "single")),
                        ("single sends, tcp", broadcast(count, "single-tcp")),
                        ("MPI_Bcast", mpirun(count + 1, way)),
                        ("MPI_Bcast, yield_when_idle", mpirun(count + 1, way, idle=True))])
        yield Case("cluster", f"80 MB to {count}, no shared memory", "until each has it", "ms", "low", "ms",
                   broadcast(count, "tree"), [("single sends, tcp", broadcast(count, "single-tcp"))])

    for count in (100, 300, 1000):
        for value, metric, unit in (("ms", "until all have joined", "ms"), ("per_ms", "until joined, each", "ms"),
                                    ("master_kb", "master's memory, each", "kB"), ("worker_kb", "a worker's memory", "kB")):
            yield Case("cluster", f"{count} members", metric, unit, "low", value, program("members", count), [])


GROUPS = {
    "limits": limits,
    "stream": stream,
    "shm": shm,
    "tcp": lambda: socket_group("tcp"),
    "unix": lambda: socket_group("unix"),
    "message": message,
    "collective": collective,
    "epoch": epoch,
    "atomic": atomic,
    "memory": memory,
    "pgas": pgas,
    "star": star,
    "mpi": mpi,
    "store": store,
    "rendezvous": rendezvous,
    "cluster": cluster,
}

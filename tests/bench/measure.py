# SPDX-License-Identifier: MIT
"""Runs the cases, Muster and its peers taking turns, and prints one row per figure; see tests/bench/run."""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = ("group", "case", "metric", "unit", "muster", "peer", "peer value", "ratio", "target", "verdict")
failed = []


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def programs(folder):
    return os.path.join(folder, "tests", "bench")


def run(line, scale, folder):
    """One run of one program, of the build in `folder`: the figures it printed; none and a note when it failed."""
    words, at = list(line), place_of_program(line)
    if at is not None:
        words[at] = os.path.join(programs(folder), words[at])
    environment = {**os.environ, "MUSTER_BUILD": folder, "MUSTER_LIBRARY": os.path.join(folder, "libmuster.so"),
                   "MUSTER_PLUGIN_PATH": os.path.join(folder, "plugins")}
    process = subprocess.Popen(words + ["--scale", str(scale)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, process_group=0, env=environment)
    try:
        output, complaint = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        output, complaint = "", "still running after 60 s"
    if process.returncode != 0:
        failed.append(" ".join(line))
        say(f"failed ({process.returncode}): {' '.join(line)}: {complaint.strip()[-300:]}")
        return {}
    rows = (row.partition("\t") for row in output.splitlines())
    return {name: float(figure) for name, tab, figure in rows if tab}


class Runs:
    """The runs of a group. Rows that differ only in the figure they take from the same programs share their runs. A peer
    runs anew beside each command of Muster's, since a busy machine would be unfair to one of them; not so when
    `once`: nothing is compared then."""

    def __init__(self, once):
        self._once = once
        self._figures = {}

    def figure(self, case, line, scale, folder, turn):
        beside = () if self._once else tuple(case.muster or ())
        key = (beside, tuple(line), scale, folder, turn)
        if key not in self._figures:
            self._figures[key] = run(line, scale, folder)
            if self._figures[key] and case.value not in self._figures[key]:
                failed.append(" ".join(line))
                say(f"no {case.value} from {' '.join(line)}")
        return self._figures[key].get(case.value)


PROGRAMS = ("am", "pair", "link", "ring", "sockets", "tls", "uv", "mpi", "mpi_stream", "limits", "star", "star_load", "zmq_star",
            "message", "zmq_message", "group", "epoch", "epoch_rust", "atomic", "atomic_shmem", "atomic_mpi",
            "memory", "locales", "locales_shmem", "mpi_group", "gloo_group", "store", "rendezvous", "etcd_latency", "cluster",
            "cluster_broadcast", "cluster_rust", "mpi_cluster")
missing = set()


def place_of_program(line):
    """The first word that names a program of this folder: what follows are its options, which may be the same words
    (`store --what memory`). None where the line has only programs of the system."""
    return next((place for place, word in enumerate(line) if word in PROGRAMS), None)


def there(line):
    """Peers whose package is not installed were not built."""
    at = place_of_program(line)
    word = line[at or 0]
    if at is None or os.path.exists(os.path.join(programs(os.environ["MUSTER_BUILD"]), word)):
        if shutil.which(line[0], path=os.pathsep.join([programs(os.environ["MUSTER_BUILD"]), os.environ["PATH"]])):
            return True
    if word not in missing:
        missing.add(word)
        say(f"left out: {word} was not built (cmake/packages bench)")
    return False


def number(value):
    return "-" if value is None else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def read_targets():
    """(group, case, metric, peer) -> 'ratio >= 0.9' or 'value <= 2'."""
    targets = {}
    with open(os.path.join(HERE, "targets.tsv"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                group, case, metric, peer, target = line.rstrip("\n").split("\t")
                targets[group, case, metric, peer] = target
    return targets


def verdict(target, value, ratio):
    """A target is one comparison, or several joined by 'or'."""
    for part in target.split(" or "):
        what, how, bound = part.split()
        figure = ratio if what == "ratio" else value
        if figure is not None and (figure >= float(bound) if how == ">=" else figure <= float(bound)):
            return "ok"
    return "MISS"


def print_row(row, targets):
    """`row` holds the first eight columns; a peer's own target wins over one for every peer."""
    target = targets.get((row[0], row[1], row[2], row[5])) or targets.get((row[0], row[1], row[2], "*"), "")
    word = ""
    if target:
        figures = [float(row[i]) if row[i] not in ("", "-") else None for i in (4, 7)]
        word = verdict(target, figures[0], figures[1])
    print("\t".join(list(row) + [target, word]), flush=True)
    return word


def compared_with_before(case, folder):
    """The case with another build of Muster as its only peer."""
    return case._replace(peers=[("before", case.muster)]), {"before": folder}


def same_as_before(case, figures):
    """Is this build as fast as the one before: at most 5 % slower, or within the spread of the repeats?"""
    now, before = figures["muster"], figures["before"]
    if not all((*now, *before)) or not now or not before: # a value of 0; or it has failed, which is said
        return ""
    low = case.better == "low"
    ratio = statistics.median(before) / statistics.median(now) if low else statistics.median(now) / statistics.median(before)
    apart = min(now) > max(before) if low else max(now) < min(before)
    return "MISS" if ratio < 0.95 and apart else "ok"


def measure(case, repeats, scale, targets, runs, against):
    folder, folders = os.environ["MUSTER_BUILD"], {}
    if against:
        if not case.muster:
            return []
        case, folders = compared_with_before(case, against)
    lines = ([("muster", case.muster)] if case.muster else []) + [p for p in case.peers if there(p[1])]
    lines = [one for one in lines if there(one[1])]
    figures = {name: [] for name, _ in lines}
    for turn in range(repeats):
        for name, line in lines:
            figure = runs.figure(case, line, max(1, case.scale * scale // 100), folders.get(name, folder), turn)
            if figure is not None:
                figures[name].append(figure)
    middle = {name: statistics.median(values) if values else None for name, values in figures.items()}
    mine = middle.get("muster")
    words = []
    if not case.peers and lines:
        words.append(print_row((case.group, case.name, case.metric, case.unit, number(mine), "-", "-", "-"), targets))
    for name, _ in case.peers:
        if name not in middle:
            continue
        other, ratio = middle[name], None
        if mine and other:
            ratio = other / mine if case.better == "low" else mine / other
        row = (case.group, case.name, case.metric, case.unit, number(mine), name, number(other), number(ratio))
        if against:
            words.append(same_as_before(case, figures))
            print("\t".join([*row, "ratio >= 0.95 or within the spread", words[-1]]), flush=True)
        else:
            words.append(print_row(row, targets))
    return words


# Groups with a program of their own, which prints the first eight columns. The last ones run only when they are named.
OTHER = {group: ["julia/run", group] for group in ("julia", "julia-star", "julia-mpi")}
WHEN_NAMED = {"scale": ["scale/run"], "growth": ["growth/run"]}


def other_rows(group, smoke, repeats, targets):
    words = []
    program, *options = {**OTHER, **WHEN_NAMED}[group]
    line = [os.path.join(HERE, program)] + options
    with subprocess.Popen(line + (["--smoke"] if smoke else ["--repeats", str(repeats)]), stdout=subprocess.PIPE,
                          text=True, process_group=0) as process:
        for text in process.stdout:
            row = text.rstrip("\n").split("\t")
            if len(row) == 8:
                words.append(print_row(row, targets))
            else:
                say(text.rstrip("\n"))
    if process.returncode == 77:
        say(f"left out: {group}, see above")
    elif process.returncode != 0:
        failed.append(" ".join(line))
    return words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--against", metavar="FOLDER", type=os.path.abspath)
    arguments = parser.parse_args()
    smoke, repeats = arguments.smoke, 1 if arguments.smoke else arguments.repeats
    targets = {} if smoke else read_targets()
    print("\t".join(HEADER), flush=True)
    words = []
    for group in arguments.groups or [*cases.GROUPS, *(() if arguments.against else OTHER)]:
        if group in cases.GROUPS:
            runs = Runs(once=smoke)
            for case in cases.GROUPS[group]():
                words += measure(case, repeats, 1 if smoke else 100, targets, runs, arguments.against)
        else:
            words += other_rows(group, smoke, repeats, targets)
    if targets or arguments.against:
        say(f"{words.count('ok')} targets met, {words.count('MISS')} missed")
    for line in failed:
        say(f"FAILED {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: MIT
"""Tables and a picture of the rows of tests/bench/growth/run, for tests/bench/report."""
import math

import drawing
from drawing import pyplot

FAR = 100_000
STEEP = 2 # a power of the time from which nothing is calculated
NOUNS = {"broker": "members of a broker", "store": "clients of a store", "rendezvous": "nodes of a rendezvous",
         "cluster": "workers of a cluster", "broadcast": "receivers of 80 MB"}


def by_kind(rows):
    """kind -> size -> metric -> value in ms or kB."""
    kinds = {}
    for row in rows:
        kind, size = row["case"].split(", ")
        kinds.setdefault(kind, {}).setdefault(int(size), {})[row["metric"]] = float(row["muster"])
    return kinds


def power(sizes, metric):
    """The power of the size with which a figure grows between the two largest sizes; 1: a straight line."""
    (small, before), (large, after) = sorted(sizes.items())[-2:]
    if before[metric] <= 0 or after[metric] <= 0:
        return 0.0
    return math.log(after[metric] / before[metric]) / math.log(large / small)


def shown(value):
    return "" if value is None or value < 0 else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def table(rows):
    parts = []
    for kind, sizes in by_kind(rows).items():
        metrics = list(next(iter(sizes.values())))
        lines = [f"| {NOUNS[kind]} | " + " | ".join(f"{m}, {'kB' if m.startswith('memory') else 'ms'}" for m in metrics) + " |",
                 "|---" * (len(metrics) + 1) + "|"]
        for size, figures in sorted(sizes.items()):
            lines.append(f"| {size:,} | " + " | ".join(shown(figures.get(m)) for m in metrics) + " |")
        if len(sizes) > 1:
            largest = max(sizes)
            far = [sizes[largest][m] * (FAR / largest) ** power(sizes, m) for m in metrics]
            lines.append("| power of the size, between the last two | " + " | ".join(f"{power(sizes, m):.2f}" for m in metrics) + " |")
            if kind != "broadcast" and power(sizes, "time") < STEEP: # one host is the wrong place for so many otherwise
                lines.append(f"| {FAR:,}, by calculation | " + " | ".join(map(shown, far)) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def draw(rows, path):
    """Time, processor time and memory of one member against the size: a horizontal line is growth as a straight line."""
    kinds = by_kind(rows)
    figure, panels = pyplot.subplots(1, 3, figsize=(10, 3.2))
    for axes, (title, wanted) in zip(panels, (("time, each: ms", "time, each"), ("processor time, each: ms", "processor time, each"),
                                              ("memory, each: kB", "memory"))):
        for kind, sizes in kinds.items():
            for metric in next(iter(sizes.values())):
                if not metric.startswith(wanted):
                    continue
                points = sorted((size, figures[metric]) for size, figures in sizes.items() if figures[metric] > 0)
                label = kind if wanted != "memory" else f"{kind}: {metric.removeprefix('memory of ').removesuffix(', each')}"
                if points:
                    axes.plot(*zip(*points), marker="o", markersize=3, linewidth=1.2, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("size")
        axes.set_title(title, loc="left", fontsize=8)
        axes.legend(fontsize=6, frameon=False)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    drawing.save(figure, path)
    return True

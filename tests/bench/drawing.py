# SPDX-License-Identifier: MIT
"""Bars of rows of tests/bench/run, for tests/bench/plot and tests/bench/report."""
import csv
import re

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "muster", "font.size": 8})
from matplotlib import pyplot  # noqa: E402

GOOD, BAD, NO_TARGET = "#2a7f9e", "#c26a3d", "#9aa5ab"


def read_rows(path):
    """The rows of a file, in its order."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if "\t" in line), delimiter="\t"))


def save(figure, path):
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    pyplot.close(figure)


def draw(rows, path, title=None):
    """A bar for each row with a ratio: right of 1 Muster is better. A mark where its target is."""
    bars = [row for row in rows if row["ratio"] not in ("", "-") and float(row["ratio"]) > 0]
    if not bars:
        return False
    figure, axes = pyplot.subplots(figsize=(8.5, 0.7 + 0.19 * len(bars)))
    axes.set_xscale("log")
    for place, row in enumerate(bars):
        ratio = float(row["ratio"])
        color = {"ok": GOOD, "MISS": BAD}.get(row["verdict"], NO_TARGET)
        axes.barh(place, ratio - 1, left=1, height=0.7, color=color)
        axes.text(max(ratio, 1) * 1.06, place, f"{ratio:.3g}", va="center", fontsize=7)
        wanted = re.search(r"ratio >= ([0-9.]+)", row["target"])
        if wanted:
            axes.plot([float(wanted[1])] * 2, [place - 0.45, place + 0.45], color="#222222", linewidth=1.2)
    group = "" if title else "{group}: "
    labels = [(group + "{case}, {metric} / {peer}").format(**row) for row in bars]
    axes.axvline(1, color="#555555", linewidth=0.8)
    axes.set_yticks(range(len(bars)), labels)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    ratios = [float(row["ratio"]) for row in bars]
    axes.set_xlim(min(0.5, min(ratios) * 0.8), max(2, max(ratios) * 2))
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.set_xlabel("so many times better than the peer (blue: target met, orange: missed, grey: none; line: the target)")
    if title:
        axes.set_title(title, loc="left", fontweight="bold")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    save(figure, path)
    return True

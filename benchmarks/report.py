"""``python -m benchmarks report``: the report of many rows, in time and in bytes.

A forest of 100 trees of depth 10 on 20 columns is explained at 100 000 rows. Times are CPU seconds
of one thread after `fit`, the best of several warm calls; explaining the rows is part of it.
"""

import argparse
import os
import tempfile

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.timing import Table, at_most, best, summarize
from skattr import MeasureExplainer, write_report

BACKGROUND, COLUMNS = 10_000, 20
FLOORS = {"report": at_most(10), "size": at_most(1.5)}  # of the issue


def main(arguments):
    """Print the table, and say which floors hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 000 rows")
    n = 10_000 if parser.parse_args(arguments).quick else 100_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X @ rng.normal(size=COLUMNS)
    forest = RandomForestRegressor(100, max_depth=10, random_state=0, max_samples=0.1)
    forest.fit(X[:BACKGROUND], y[:BACKGROUND])
    explainer = MeasureExplainer(forest).fit(X[:BACKGROUND])
    table = Table(f"report of {n:,} rows x {COLUMNS} columns", ["forest"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.html")
        seconds = best(lambda: write_report(explainer, X, path), repeat=3)
        size = os.path.getsize(path) / 1e6
    explain = best(lambda: explainer.explain(X), repeat=3)
    table.add("write_report, CPU seconds", [seconds], FLOORS["report"])
    table.add("of which explain and predict", [explain])
    table.add("size of the file, MB", [size], FLOORS["size"])
    summarize(table.show())

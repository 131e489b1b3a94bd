"""Memory beyond input and output when many rows are explained."""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from campaign.results import Result
from skattr import Explanation, MeasureExplainer

LIMIT = 200  # MB


def resident() -> int:
    """Return the bytes of memory that this process has (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Peak:
    """The most memory while something runs, beyond what there was before."""

    def __enter__(self) -> Peak:
        self.before = self.most = resident()
        self.running = True
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while self.running:
            self.most = max(self.most, resident())
            time.sleep(0.002)

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()
        self.megabytes = (self.most - self.before) / 2**20


def bytes_of(explanation: Explanation) -> int:
    """Return the bytes of an explanation's own arrays: values, their errors, predictions."""
    arrays = (
        explanation.values, explanation.predictions, explanation.std_error,
        explanation.background_error, explanation.centered_background_error,
    )  # fmt: skip
    return sum(array.nbytes for array in arrays if array is not None)


def run(options: argparse.Namespace) -> Result:
    """Explain a million rows, or ten with `--full`, against a background of as many / 2."""
    result = Result("memory")
    n = 10_000_000 if options.full else 1_000_000
    X = np.random.default_rng(0).normal(size=(n, 5))
    forest = RandomForestRegressor(5, max_depth=6, random_state=0).fit(X[:2000], X[:2000, 0])
    explainer = MeasureExplainer(forest).fit(X[:2000])
    explainer.explain(X[:1000])
    with Peak() as peak:
        explanation = explainer.explain(X)
    explained = peak.megabytes - bytes_of(explanation) / 2**20
    result.check(explained <= LIMIT, f"{n:,} explained rows: {explained:.0f} MB above {LIMIT}")
    del explanation
    with Peak() as peak:
        MeasureExplainer(forest).fit(X[: n // 2])
    result.measured = (
        f"{n:,} rows explained in {explained:.0f} MB beyond input and output; "
        f"{n // 2:,} background rows in {peak.megabytes:.0f} MB beyond their input"
    )
    return result

"""How time and memory grow with rows, trees, columns, levels, classes and depth."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from campaign.memory import Peak, bytes_of
from campaign.results import Result
from skattr import MeasureExplainer

LIMIT = 1.1  # of the exponent
Made = tuple[Any, Any, Any]  # a model, the background, rows to explain


def _table(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, d))


def _forest(n_trees: int, X: np.ndarray, **settings: Any) -> RandomForestRegressor:
    forest = RandomForestRegressor(n_trees, **{"max_depth": 8, "random_state": 0, **settings})
    return forest.fit(X, X[:, 0] * X[:, 1] + X.sum(axis=1))


def explained_rows(size: int) -> Made:
    """Explained rows."""
    X = _table(2000, 8)
    return _forest(10, X), X, _table(size, 8)


def background_rows(size: int) -> Made:
    """Background rows."""
    X = _table(size, 8)
    return _forest(10, X[:2000]), X, X[:100]


def trees(size: int) -> Made:
    """Trees."""
    X = _table(1000, 8)
    return _forest(size, X), X, X


def columns(size: int) -> Made:
    """Columns; every one is used by some tree, as there are as many trees as columns."""
    X = _table(1000, size)
    return _forest(size, X, max_depth=4, max_features=8), X, X


def levels(size: int) -> Made:
    """Levels of a one-hot encoded column."""
    rng = np.random.default_rng(0)
    words = np.array([f"level{i}" for i in range(size)], object)
    chosen = np.r_[np.arange(size), rng.integers(0, size, 8 * size)]
    X = pd.DataFrame({"word": words[chosen], "x": rng.normal(size=len(chosen))})
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]), remainder="passthrough"
    )
    forest = RandomForestRegressor(5, max_leaf_nodes=64, max_features=0.3, random_state=0)
    return make_pipeline(encoded, forest).fit(X, rng.normal(size=len(X))), X, X[:1000]


def classes(size: int) -> Made:
    """Classes of a forest."""
    X = _table(2000, 6)
    forest = RandomForestClassifier(10, max_depth=8, random_state=0)
    return forest.fit(X, np.arange(2000) % size), X, X


def depth(size: int) -> Made:
    """Depth of trees that split one row off at each level, by one column after the other."""
    X = _table(1000, 8)
    X[np.arange(size), np.arange(size) % 8] = 10.0 + np.arange(size)
    y = _table(1000, 1)[:, 0]
    y[:size] = 4.0 ** np.arange(size)
    forest = RandomForestRegressor(10, bootstrap=False, max_depth=size, random_state=0).fit(X, y)
    assert max(tree.get_depth() for tree in forest) == size
    return forest, X, X


@dataclass(frozen=True)
class Axis:
    """What grows, how far, and under which measures."""

    make: Callable[[int], Made]
    largest: int  # sizes are a quarter and a half of it, and itself
    largest_full: int
    measures: tuple[str, ...] = ("main_effect", "conditional_effect", "shapley")
    limited: bool = True  # whether the exponent has a limit

    def sizes(self, full: bool) -> tuple[int, int, int]:
        """Return the sizes to measure."""
        largest = self.largest_full if full else self.largest
        return largest // 4, largest // 2, largest


AXES = (
    Axis(explained_rows, 400_000, 10_000_000, ("main_effect",)),
    Axis(explained_rows, 400_000, 2_000_000, ("conditional_effect",)),
    Axis(explained_rows, 80_000, 320_000, ("shapley",)),
    Axis(background_rows, 200_000, 5_000_000, ("main_effect",)),
    Axis(background_rows, 40_000, 400_000, ("conditional_effect", "shapley")),
    Axis(trees, 400, 2_000),
    # each bandwidth of Conditional is scored on 100 other columns, and on all if there are fewer:
    # below about 100 columns the measure itself takes the square of their number
    Axis(columns, 400, 1_000),
    Axis(levels, 800, 4_000),
    Axis(classes, 80, 200),
    Axis(depth, 48, 50, limited=False),
)


def run(options: argparse.Namespace) -> Result:
    """Measure fit and explain at three sizes for each axis and measure, and fit a power."""
    result = Result("growth")
    exponents: dict[str, float] = {}
    for axis in AXES:
        if options.axes and axis.make.__name__ not in options.axes:
            continue
        sizes = axis.sizes(options.full)
        what = axis.make.__name__.replace("_", " ")
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in axis.measures}
        for size in sizes:
            made = axis.make(size)
            for name in axis.measures:
                costs[name].append(_cost(name, made))
        for name in axis.measures:
            seconds, megabytes = np.transpose(costs[name])
            exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
            print(
                f"{name}, {what}: {', '.join(f'{size:,}' for size in sizes)} in "
                f"{', '.join(f'{each:.3g}' for each in seconds)} s and "
                f"{', '.join(f'{each:.0f}' for each in megabytes)} MB beyond input and output, "
                f"exponent {exponent:.2f}",
                flush=True,
            )
            if axis.limited:
                holds = exponent <= LIMIT
                result.check(holds, f"{name}, {what}: exponent {exponent:.2f} above {LIMIT}")
                exponents[what] = max(exponent, exponents.get(what, exponent))
    largest = ", ".join(f"{what} {exponent:.2f}" for what, exponent in exponents.items())
    result.measured = f"largest exponents: {largest}"
    return result


def _cost(measure: str, made: Made) -> tuple[float, float]:
    """Return the least processor time of several, and the memory beyond input and output."""
    model, background, X = made
    explainer = MeasureExplainer(model, measure)
    explainer.fit(background[:50]).explain(X[:10])
    with Peak() as peak:
        explanation = explainer.fit(background).explain(X, predictions=False)
    beyond = peak.megabytes - bytes_of(explanation) / 2**20
    del explanation
    best, spent = np.inf, 0.0
    for repeat in range(100):  # what is short is disturbed most, and repeated most
        start = time.process_time()
        explainer.fit(background).explain(X, predictions=False)
        seconds = time.process_time() - start
        best, spent = min(best, seconds), spent + seconds
        if spent > (2 if repeat >= 4 else 20):
            break
    return best, max(beyond, 0.0)

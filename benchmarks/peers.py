"""Partial dependence of other libraries, timed on the same models and background.

Peers are slow, so that only a part of their work is measured and scaled up; the output says which.
Both are warmed up on little data first. As for skattr, the time is the best of several calls, or
that of a single one if it takes more than ten seconds.
"""

import copy
import importlib.util

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.inspection import partial_dependence

from benchmarks.timing import best

POINTS = 100  # of the grid, for each column


def n_trees(model):
    """Return the number of trees (boosting: iterations) of a model."""
    boosting = isinstance(model, HistGradientBoostingRegressor)
    return model.n_iter_ if boosting else len(model.estimators_)


def shorter(model, n):
    """Return the model with its first n trees only."""
    model = copy.copy(model)
    if isinstance(model, HistGradientBoostingRegressor):
        model._predictors = model._predictors[:n]
    else:
        model.estimators_, model.n_estimators = model.estimators_[:n], n
    return model


def brute_force(model, X, j, values):
    """Return the partial dependence of column j at some values, by its definition."""
    Z, out = X.copy(), np.empty(len(values))
    for i, t in enumerate(values):
        Z[:, j] = t
        out[i] = model.predict(Z).mean()
    return out


def sklearn_seconds(model, X, points):
    """Return scikit-learn's seconds for all columns × 100 points, scaled up from one column."""
    settings = {"kind": "average", "method": "brute"}
    partial_dependence(model, X[:100], [0], grid_resolution=2, **settings)
    seconds = best(
        lambda: partial_dependence(model, X, [0], grid_resolution=points, **settings), warm=False
    )
    return seconds * X.shape[1] * POINTS / points


def woodelf_seconds(model, X, share):
    """Return woodelf's seconds for all columns, scaled up from a share of the trees, and its error.

    CPU, default settings, centred (which spares it a `predict`). By default it takes its float32
    path here; `use_woodelfhd=True` is exact in float64 and took 1.1, 1.4 and 1.6 times as long on
    HGB, on 10 trees of depth 10 and on one unlimited tree. The error is that of column x0 at five
    points, as a share of the spread.
    """
    from woodelf.pdp import woodelf_pdp

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    woodelf_pdp(shorter(model, 1), frame[:100], k=2, verbose=False)
    n = max(1, round(n_trees(model) * share))
    part = shorter(model, n)
    found = []

    def run():
        found[:] = woodelf_pdp(part, frame, k=POINTS, verbose=False)

    seconds = best(run, warm=False)
    curves, grid = found
    prediction = part.predict(X)
    truth = brute_force(part, X, 0, grid["x0"].to_numpy()[::20]) - prediction.mean()
    error = np.abs(curves["x0"][::20] - truth).max() / prediction.std()
    return seconds * n_trees(model) / n, error


def measure_peers(models, X, quick):
    """Return {row: one number per model} of the peers that are installed."""
    points, share = (10, 0.05) if quick else (POINTS, 1.0)
    print(f"peers: brute force is one column × {points} points, × {10 * POINTS // points}")
    out = {"brute": [sklearn_seconds(model, X, points) for model in models.values()]}
    if importlib.util.find_spec("woodelf") is None:
        print("peers: woodelf-explainer is not installed, and is left out")
        return out
    if share < 1:
        print(f"peers: woodelf runs on {share:.0%} of the trees, × {1 / share:g}")
    found = [woodelf_seconds(model, X, share) for model in models.values()]
    out["woodelf"], out["woodelf error"] = map(list, zip(*found, strict=True))
    return out

"""Shapley interaction indices of forests and boosting, against other libraries.

All pairs of 10 columns and their Shapley values, as one matrix per row: 200 explained rows against
1000 background rows. Times are CPU seconds of one thread, the best of several warm calls, one call
if it takes longer than ten seconds. Peers are slow, so that they run on a share of the trees, and
their time is scaled up; the output says which. woodelf-explainer has the same matrix. shap has
zeros off the diagonal (shap#1824) and shapiq before 1.8 path-dependent values only: both are
reported, not raced, unless they are right.
"""

import argparse
import contextlib
import importlib.util
import io
import sys
from math import comb

import numpy as np
import pandas as pd

from benchmarks.peers import n_trees, shorter
from benchmarks.timing import Table, at_least, at_most, best, summarize
from benchmarks.trees import MODELS, friedman

EXPLAINED, BACKGROUND = 200, 1000
LIMITS = {"faster": at_least(30, 30, 20), "error": at_most(1e-12, 1e-12, 1e-12)}
SHARES = {"HGB": 1.0, "depth 10": 0.1, "unlimited": 0.02}  # of the trees, for peers
CHECKED = (3, 24)  # explained and background rows of the definition


def matrix_of(model, background, rows):
    """Return the matrices of skattr."""
    from skattr import MeasureExplainer

    explainer = MeasureExplainer(model, "shapley").fit(background)
    return explainer.explain_pairs(rows, predictions=False).to_matrix()


def by_definition(model, background, rows):
    """Return the matrices by enumeration of all coalitions, (n, d, d)."""
    n, d = rows.shape
    members = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    worths = np.empty((2**d, n))
    for coalition, inside in enumerate(members):
        Z = np.where(inside, rows[:, None], background)
        worths[coalition] = model.predict(Z.reshape(-1, d)).reshape(n, -1).mean(axis=1)
    sizes, numbers = members.sum(axis=1), np.arange(2**d)
    result = np.zeros((n, d, d))
    singles = np.zeros((n, d))
    for j in range(d):
        alone = numbers[~members[:, j]]
        weights = _weights(d - 1)[sizes[alone]]
        singles[:, j] = weights @ (worths[alone | 1 << j] - worths[alone])
        for k in range(j):
            rest = numbers[~members[:, j] & ~members[:, k]]
            one, other = 1 << j, 1 << k
            second = worths[rest | one | other] - worths[rest | one] - worths[rest | other]
            half = _weights(d - 2)[sizes[rest]] @ (second + worths[rest]) / 2
            result[:, j, k] = result[:, k, j] = half
    at = np.arange(d)
    result[:, at, at] = singles - result.sum(axis=2)
    return result


def _weights(n):
    """Return the Shapley weights of coalitions of 0, …, n of n others."""
    return np.array([1 / ((n + 1) * comb(n, s)) for s in range(n + 1)])


def error(model, X):
    """Return the largest error at a few rows, as a share of the spread of f."""
    n, m = CHECKED
    rows, background = X[-n:], X[:m]
    wrong = matrix_of(model, background, rows) - by_definition(model, background, rows)
    return np.abs(wrong).max() / model.predict(X).std()


def frame(X):
    """Return rows as a frame, which woodelf takes."""
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def woodelf_matrix(model, background, rows):
    """Return woodelf's matrices."""
    from woodelf.explainer import WoodelfExplainer

    silent = io.StringIO()
    with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
        explainer = WoodelfExplainer(model, frame(background))
        return explainer.shap_interaction_values(frame(rows), verbose=False)


def shap_matrix(model, background, rows):
    """Return shap's matrices."""
    import shap

    explainer = shap.TreeExplainer(model, background, feature_perturbation="interventional")
    return explainer.shap_interaction_values(rows)


PEERS = {"woodelf": woodelf_matrix, "shap": shap_matrix}


def peer_seconds(name, matrix, model, X, share):
    """Return a peer's seconds, scaled up from a share of the trees, and its largest error."""
    part = shorter(model, max(1, round(n_trees(model) * share)))
    background, rows = X[:BACKGROUND], X[BACKGROUND : BACKGROUND + EXPLAINED]
    n, m = CHECKED
    found = matrix(part, X[:m], X[-n:])
    wanted = matrix_of(part, X[:m], X[-n:])
    wrong = np.abs(np.reshape(found, wanted.shape) - wanted).max() / part.predict(X).std()
    if wrong > 1e-3:
        return float("nan"), wrong
    seconds = best(lambda: matrix(part, background, rows), repeat=3, warm=False)
    return seconds * n_trees(model) / n_trees(part), wrong


def measure(models, X, options):
    """Return {row: one number per model}."""
    background, rows = X[:BACKGROUND], X[BACKGROUND : BACKGROUND + EXPLAINED]
    out = {"skattr": [], "error": []}
    for model in models.values():
        out["skattr"].append(best(lambda m=model: matrix_of(m, background, rows), repeat=5))
        out["error"].append(error(model, X))
    for name, matrix in PEERS.items():
        if options.skip_peers or importlib.util.find_spec(name) is None:
            print(f"{name} is left out")
            continue
        found = [
            peer_seconds(name, matrix, model, X, SHARES[label] * (0.5 if options.quick else 1.0))
            for label, model in models.items()
        ]
        out[name], out[f"{name} error"] = map(list, zip(*found, strict=True))
    return out


def main(arguments):
    """Train the models, print seconds and ratios, and say which limits hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shapley_interactions", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="fewer trees for peers")
    parser.add_argument("--skip-peers", action="store_true", help="measure skattr only")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args(arguments)
    X, y = friedman(10_000)
    models = {name: MODELS[name].fit(X, y) for name in options.models}
    print("peers run on", ", ".join(f"{SHARES[name]:.0%} ({name})" for name in models), "of trees")
    out = measure(models, X, options)
    which = [list(MODELS).index(name) for name in models]
    limits = {key: [bounds[i] for i in which] for key, bounds in LIMITS.items()}
    seconds = Table(f"CPU seconds, {EXPLAINED} × {BACKGROUND} rows", list(models))
    for name in ("skattr", *PEERS):
        if name in out:
            seconds.add(f"{name}, fit and all matrices", out[name])
    ratios = Table("ratios", list(models))
    raced = [out[name] for name in PEERS if name in out and not np.isnan(out[name]).all()]
    if raced:
        fastest = np.nanmin(raced, axis=0)
        ratios.add(
            "times faster than the best peer", list(fastest / out["skattr"]), limits["faster"]
        )
    ratios.add("largest error ÷ spread", out["error"], limits["error"])
    for name in PEERS:
        if name in out:
            ratios.add(f"largest error of {name} ÷ spread", out[f"{name} error"])
    print()
    seconds.show()
    summarize(ratios.show())


if __name__ == "__main__":
    main(sys.argv[1:])

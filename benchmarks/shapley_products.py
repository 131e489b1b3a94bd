"""Shapley values of an RBF machine against shap's exact and kernel explainers.

One thread, CPU time, after a first call. shap explains a few rows and is scaled up to all. Errors
are the largest difference from the enumeration of all coalitions, as a share of the spread of f,
with f in two ways: in extended precision from the support vectors, and by `predict` in float64.
Peers call the same `predict`, whose rounding their difference from the latter does not show.
"""

import importlib.util
from itertools import combinations
from math import comb

import numpy as np
from sklearn.svm import SVR

from benchmarks.timing import Table, at_least, at_most, best, summarize
from skattr import MeasureExplainer
from skattr.measures import Shapley

COLUMNS, EXPLAINED, BACKGROUND, SUPPORTS = 8, 200, 100, 500
PEER_ROWS = 4  # that peers explain
FASTER = 100  # the floor against the faster peer


def enumerate_coalitions(predict, background, x):
    """Return the Shapley values of one row by the definition."""
    d, worth = len(x), {}
    one = np.longdouble(1)
    for size in range(d + 1):
        for members in combinations(range(d), size):
            rows = background.copy()
            rows[:, list(members)] = x[list(members)]
            worth[frozenset(members)] = predict(rows).mean()
    values = np.zeros(d, np.longdouble)
    for members, value in worth.items():
        for j in set(range(d)) - members:
            weight = one / (d * comb(d - 1, len(members)))
            values[j] += weight * (worth[members | {j}] - value)
    return values


def in_extended_precision(model):
    """Return f of an RBF support vector regression, computed in long doubles."""
    supports = model.support_vectors_.astype(np.longdouble)
    coefficients = model.dual_coef_[0].astype(np.longdouble)
    gamma = np.longdouble(model._gamma)

    def predict(rows):
        gaps = rows.astype(np.longdouble)[:, None] - supports
        bumps = np.exp(-gamma * (gaps * gaps).sum(axis=2))
        return (bumps * coefficients).sum(axis=1) + np.longdouble(model.intercept_[0])

    return predict


def peers(predict, background, rows):
    """Return each of shap's explainers as a function that returns values of rows."""
    if importlib.util.find_spec("shap") is None:
        print("shap is not installed: it is left out")
        return {}
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    exact = shap.explainers.Exact(predict, masker)
    kernel = shap.KernelExplainer(predict, background)
    return {
        "shap Exact": lambda: exact(rows, silent=True).values,
        "shap Kernel": lambda: kernel.shap_values(rows, silent=True, nsamples=2**COLUMNS),
    }


def main(arguments=()):
    """Print seconds, ratios and errors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(SUPPORTS + BACKGROUND + EXPLAINED, COLUMNS))
    y = np.sin(X).sum(axis=1) + X[:, 0] * X[:, 1]
    model = SVR(C=10, epsilon=1e-4).fit(X[:SUPPORTS], y[:SUPPORTS])
    background, rows = np.split(X[SUPPORTS:], [BACKGROUND])
    few = rows[:PEER_ROWS]
    spread = model.predict(background).std()
    functions = (in_extended_precision(model), model.predict)
    truths = [np.array([enumerate_coalitions(f, background, x) for x in few]) for f in functions]

    def errors(values):
        return [float(np.abs(values - truth).max() / spread) for truth in truths]

    explainer = MeasureExplainer(model, Shapley()).fit(background)
    fit = best(lambda: MeasureExplainer(model, Shapley()).fit(background))
    ours = best(lambda: explainer.explain(rows, predictions=False))
    one = best(lambda: explainer.explain(rows[:1], predictions=False))
    our_errors = errors(explainer.explain(few).values)
    size = f"{len(model.support_)} support vectors, {EXPLAINED} × {BACKGROUND} rows"
    table = Table(
        f"Shapley values, {size}, {COLUMNS} columns",
        ["seconds", "times ours", "error, extended", "error, by predict"],
    )
    table.add("skattr, explain", [ours, 1.0, *our_errors])
    table.add("skattr, fit", [fit, None, None, None])
    table.add("skattr, explain one row", [one, None, None, None])
    for name, values in peers(model.predict, background, few).items():
        seconds = best(values, repeat=3, warm=False) * EXPLAINED / PEER_ROWS
        theirs = errors(values())
        faster = seconds / (fit + ours)
        floors = [None, *at_least(FASTER), None, None]
        table.add(f"{name}, from {PEER_ROWS} rows", [seconds, faster, *theirs], floors)
        ratios = [our / their for our, their in zip(our_errors, theirs, strict=True)]
        floors = [None, None, *at_most(1), None]
        table.add(f"  our error ÷ that of {name}", [None, None, *ratios], floors)
    return table.show()


if __name__ == "__main__":
    summarize(main())

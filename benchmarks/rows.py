"""Single rows: probabilities behind a link, ICE, counterfactuals and accumulated local effects.

``python -m benchmarks rows`` prints CPU seconds of one thread, best of three, and ratios. Peers are
`predict_proba` and `predict` themselves, scikit-learn's partial dependence (one call of the model
on the background for each value), and effector's ALE if it is installed (two evaluations per row
and column).
"""

import importlib.util
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.inspection import partial_dependence

from benchmarks.trees import friedman

POINTS = 100


def best(function, times=3):
    """Return the least CPU time of several calls."""
    found = []
    for _ in range(times):
        start = time.process_time()
        function()
        found.append(time.process_time() - start)
    return min(found)


def line(name, seconds, *ratios):
    """Print one line."""
    text = ", ".join(f"{what} {number:,.3g}" for what, number in ratios)
    print(f"{name:58} {seconds:9.4f} s   {text}", flush=True)


def small_case():
    """1221 background rows, 408 explained rows, 15 columns: fit and explain of probabilities."""
    from skattr import MeasureExplainer

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1629, 15)), columns=[f"c{k}" for k in range(15)])
    y = X["c0"] * X["c1"] + X["c2"] + rng.normal(size=len(X)) > 0
    model = HistGradientBoostingClassifier(max_iter=100).fit(X, y)

    def run():
        explainer = MeasureExplainer(model, output="proba").fit(X[:1221])
        return explainer.explain(X[1221:])

    run()
    line("probabilities, 1221 × 408 × 15: fit and explain", best(run), ("promised s", 3.0))


def large_case():
    """10 000 background rows, 10 columns, 200 trees of 31 leaves: fit of probabilities."""
    from skattr import MeasureExplainer

    X, y = friedman(10_000)
    model = HistGradientBoostingClassifier(max_iter=200, max_leaf_nodes=31, early_stopping=False)
    model.fit(X, y > np.median(y))

    def fit():
        return MeasureExplainer(model, "partial_dependence", output="proba").fit(X)

    explainer = fit()
    ours = best(fit)
    once = best(lambda: model.predict_proba(X))
    jumps = sum(len(explainer.curve(k).to_frame()) for k in range(10))
    one = best(
        lambda: partial_dependence(
            model, X, [0], response_method="predict_proba", grid_resolution=POINTS, method="brute",
            kind="average",
        ),
        1,
    )  # fmt: skip
    line(
        "probabilities, 10 000 × 10, 200 trees: fit, all curves",
        ours,
        ("÷ predict_proba", ours / once),
    )
    line(
        "  the finite sum at all cells, by predict_proba",
        jumps * once,
        ("× fit", jumps * once / ours),
    )
    line(f"  scikit-learn, all columns × {POINTS} points", 10 * one, ("× fit", 10 * one / ours))
    rows, values = X[:500], np.linspace(0, 1, POINTS)
    table = np.repeat(rows, POINTS, axis=0)
    table[:, 0] = np.tile(values, 500)
    grid = best(lambda: model.predict_proba(table))
    curves = best(lambda: explainer.ice(rows, 0))
    line(
        "ICE of 500 rows, one column, all jumps",
        curves,
        ("÷ predictions of 500 × 100", curves / grid),
    )


def forest_case():
    """Time counterfactuals of one row and ALE of all columns of a forest of depth 10."""
    from skattr import MeasureExplainer, counterfactual
    from skattr.measures import ALE, Removal

    X, y = friedman(10_000)
    forest = RandomForestRegressor(100, max_depth=10, random_state=0, n_jobs=1).fit(X, y)
    explainer = MeasureExplainer(forest).fit(X)
    target = float(np.quantile(y, 0.9))
    counterfactual(explainer, X[0], target)
    seconds = best(lambda: counterfactual(explainer, X[0], target))
    line("counterfactuals of one row, all columns, depth 10", seconds, ("promised s", 0.010))
    once = best(lambda: forest.predict(X))
    MeasureExplainer(forest, ALE()).fit(X)
    fit = best(lambda: MeasureExplainer(forest, ALE()).fit(X))
    line("ALE of all columns, depth 10: fit", fit, ("÷ predict", fit / once))
    if importlib.util.find_spec("effector") is not None:
        theirs = best(lambda: effector_ale(forest, X), 1)
        line("  effector, 20 bins", theirs, ("× fit", theirs / fit))
    removal = MeasureExplainer(forest, Removal()).fit(X)
    removal.explain(X[:100])
    seconds = best(lambda: removal.explain(X, predictions=False))
    line("removal, 10 000 rows, all columns, depth 10", seconds, ("÷ predict", seconds / once))


def effector_ale(model, X):
    """Accumulated local effects of all columns by effector."""
    import effector

    effects = effector.ALE(X, model.predict, nof_instances="all")
    bins = effector.axis_partitioning.Fixed(nof_bins=20, min_points_per_bin=0)
    effects.fit("all", binning_method=bins)


def main(arguments):
    """Print all lines."""
    for case in (small_case, large_case, forest_case):
        case()

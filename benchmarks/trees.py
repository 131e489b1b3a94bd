"""``python -m benchmarks trees``: exact attributions of forests and boosting.

Times are CPU seconds of one thread, the best of several warm calls, all in one process; only the
speed-up of two jobs is wall-clock time. Calls stop after ten seconds, so that what takes longer
is timed once. A number in parentheses is a limit that must hold.
"""

import argparse
import os
import pickle
import time

import numpy as np
from scipy.special import ndtr
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from benchmarks.memory import show_cache, show_import, show_memory
from benchmarks.peers import brute_force, measure_peers, n_trees, shorter
from benchmarks.timing import Table, at_least, at_most, best, summarize

MODELS = {
    "HGB": HistGradientBoostingRegressor(
        max_iter=200, max_leaf_nodes=31, early_stopping=False, random_state=0
    ),
    "depth 10": RandomForestRegressor(100, max_depth=10, random_state=0),
    "unlimited": RandomForestRegressor(100, random_state=0),
}
LIMITS = {  # in the order of MODELS
    "fit": at_most(4, 7, 15),
    "brute": at_least(200, 120, 60),
    "woodelf": at_least(6, 40, 60),
    "explain": at_most(0.2, 0.2, 0.2),
    "product": at_most(2, 2.5, 8),
    "jobs": at_least(1.5, 1.5, 1.5),
    "error": at_most(1e-10, 1e-10, 1e-10),
}
SECTIONS = ("speed", "peers", "jobs", "scaling", "pickle", "memory", "import", "cache")


def friedman(n, seed=0):
    """Return X (n, 10) and y (n,): Friedman's first function, two of its columns correlated.

    All columns are uniform on [0, 1]. Columns 0 and 1 are tied by a Gaussian copula of correlation
    0.8, the others are independent; 5 to 9 do not matter. With standard normal noise,
    y = 10 sin(π x0 x1) + 20 (x2 - 1/2)² + 10 x3 + 5 x4 + noise.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10))
    z = rng.standard_normal((n, 2))
    X[:, 0] = ndtr(z[:, 0])
    X[:, 1] = ndtr(0.8 * z[:, 0] + 0.6 * z[:, 1])
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, y + 10 * X[:, 3] + 5 * X[:, 4] + rng.standard_normal(n)


def explainer_of(model, measure="partial_dependence", n_jobs=None):
    """Return an explainer, not fitted yet."""
    from skattr import MeasureExplainer
    from skattr.measures import PartialDependence, ProductMarginal

    measures = {"partial_dependence": PartialDependence, "product_marginal": ProductMarginal}
    return MeasureExplainer(model, measure=measures[measure](), n_jobs=n_jobs)


def error(model, X, explainer, n_points):
    """Return the largest error of the curves at random points, as a share of the spread of f."""
    rng = np.random.default_rng(2)
    largest = 0.0
    for j in range(X.shape[1]):
        values = np.append(rng.random(n_points - 1), rng.choice(X[:, j]))
        wrong = explainer.curve(j)(values) - brute_force(model, X, j, values)
        largest = max(largest, np.abs(wrong).max())
    return largest / model.predict(X).std()


def measure_speed(models, X, options):
    """Return {row: one number per model}: times of skattr, and its error."""
    out = {"fit": [], "explain": [], "product": [], "error": []}
    for model in models.values():
        out["fit"].append(best(lambda m=model: explainer_of(m).fit(X)))
        explainer = explainer_of(model).fit(X)
        out["explain"].append(best(lambda e=explainer: e.explain(X, predictions=False).values))
        out["product"].append(best(lambda m=model: explainer_of(m, "product_marginal").fit(X)))
        out["error"].append(error(model, X, explainer, 2 if options.quick else 5))
    return out


def show_speed(models, X, options):
    """Print seconds, then ratios with their limits; return the checks."""
    predict = [best(lambda m=model: m.predict(X)) for model in models.values()]
    out = {"predict": predict}
    if "speed" in options.only:
        out |= measure_speed(models, X, options)
    if "peers" in options.only:
        out |= measure_peers(models, X, options.quick)
    seconds = Table(f"CPU seconds, {len(X)} rows", list(models))
    for key, label in SECONDS.items():
        if key in out:
            seconds.add(label, out[key])
    ratios = Table("ratios", list(models))
    for key, (label, above, below) in RATIOS.items():
        if above in out and below in out:
            values = [a / b for a, b in zip(out[above], out[below], strict=True)]
            ratios.add(label, values, limits(key, models))
    for key, label in ERRORS.items():
        if key in out:
            ratios.add(label, out[key], limits(key, models))
    print()
    seconds.show()
    return ratios.show()


SECONDS = {
    "predict": "predict",
    "fit": "fit, all 10 curves",
    "explain": "explain, no predictions",
    "product": "fit, ProductMarginal",
    "brute": "scikit-learn, brute, all columns × 100",
    "woodelf": "woodelf, all columns × 100",
}
RATIOS = {  # key of the limit: label, above the line, below it
    "fit": ("fit, all 10 curves ÷ predict", "fit", "predict"),
    "brute": ("times faster than brute force", "brute", "fit"),
    "woodelf": ("times faster than woodelf", "woodelf", "fit"),
    "explain": ("explain ÷ predict", "explain", "predict"),
    "product": ("fit of ProductMarginal ÷ predict", "product", "predict"),
    "brute / predict": ("brute force ÷ predict", "brute", "predict"),
    "woodelf / predict": ("woodelf ÷ predict", "woodelf", "predict"),
}
ERRORS = {
    "error": "largest error ÷ spread",
    "woodelf error": "largest error of woodelf ÷ spread, column x0",
}


def limits(key, models):
    """Return the limits of the models that run, or None."""
    if key not in LIMITS:
        return None
    return [limit for name, limit in zip(MODELS, LIMITS[key], strict=True) if name in models]


def show_jobs(models, X, options):
    """Print the speed-up of `fit` on two cores."""
    table = Table("wall-clock seconds of fit", list(models))
    times = {1: [], 2: []}
    for model in models.values():
        for n_jobs, found in times.items():
            explainer = explainer_of(model, n_jobs=n_jobs)
            found.append(best(lambda e=explainer: e.fit(X), clock=time.perf_counter))
    for n_jobs, found in times.items():
        table.add(f"n_jobs={n_jobs}", found)
    ratio = [one / two for one, two in zip(*times.values(), strict=True)]
    table.add(f"speed-up on {os.cpu_count()} cores", ratio, limits("jobs", models))
    print(f"(wall clock: other work counts; load {os.getloadavg()[0]:.1f} before)")
    return table.show()


def show_scaling(models, X, options):
    """Print `fit` at three numbers of rows and of trees: the time is affine if slopes agree."""
    rows = [len(X) // 4, len(X) // 2, len(X)]
    table = Table("CPU seconds of fit", list(models))
    times = [
        [best(lambda m=model, n=n: explainer_of(m).fit(X[:n]), 3) for model in models.values()]
        for n in rows
    ]
    add_slopes(table, times, rows, "rows")
    shares = [0.25, 0.5, 1.0]
    times = [[fit_of_share(model, X, share) for model in models.values()] for share in shares]
    add_slopes(table, times, shares, "of the trees")
    return table.show()


def fit_of_share(model, X, share):
    """Return the seconds of `fit` on the first trees of a model."""
    part = shorter(model, int(n_trees(model) * share))
    return best(lambda: explainer_of(part).fit(X), 3)


def add_slopes(table, times, sizes, what):
    """Add the times at three sizes, and the second slope over the first one (1 if affine)."""
    for size, row in zip(sizes, times, strict=True):
        table.add(f"{size} {what}", row)
    first, second = np.diff(np.array(times), axis=0) / np.diff(sizes)[:, None]
    table.add(f"  second slope ÷ first, {what}", list(second / first))
    start = np.array(times[0]) - first * sizes[0]
    table.add(f"  share of the constant, {what}", list(start / times[-1]))


def show_pickle(models, X, options):
    """Print what a fitted explainer adds to the pickle of its model."""
    table = Table("pickle (MB)", list(models))
    model_sizes = np.array([len(pickle.dumps(model)) for model in models.values()]) / 1e6
    sizes = [len(pickle.dumps(explainer_of(model).fit(X))) / 1e6 for model in models.values()]
    table.add("model", list(model_sizes))
    bounds = [
        1.0 if name == "HGB" else round(size / 5, 2)
        for name, size in zip(models, model_sizes, strict=True)
    ]
    table.add("explainer without its model", list(sizes - model_sizes), at_most(*bounds))
    return table.show()


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks trees", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points, trees and rows")
    parser.add_argument("--skip-peers", action="store_true", help="measure skattr only")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    options = parser.parse_args(arguments)
    options.only = set(options.only) - ({"peers"} if options.skip_peers else set())
    return options


def main(arguments):
    """Train the models, print every table that was asked for, and say which limits hold."""
    options = parse(arguments)
    X, y = friedman(10_000)
    needed = options.only - {"import", "cache"}
    models = {name: MODELS[name].fit(X, y) for name in MODELS if needed and name in options.models}
    checks = []
    if options.only & {"speed", "peers"}:
        checks += show_speed(models, X, options)
    for section, show in (("jobs", show_jobs), ("scaling", show_scaling), ("pickle", show_pickle)):
        if section in options.only:
            checks += show(models, X, options)
    if "memory" in options.only:
        checks += show_memory(models, X, options.quick)
    if "import" in options.only:
        checks += show_import()
    if "cache" in options.only:
        checks += show_cache()
    summarize(checks)

"""``python -m benchmarks pipelines``: a forest behind its preprocessing, and boosting libraries.

The forest is explained on the raw columns of a DataFrame, which scikit-learn's partial dependence
does too; xgboost and lightgbm are compared with their own `predict`. Times are CPU seconds of one
thread, the best of several warm calls, all in one process; calls stop after ten seconds, so that
what takes longer is timed once. A number in parentheses is a limit that must hold. The time of a
model that is explained as a black box counts as infinite.
"""

import argparse
import importlib.util
import json
import math
from functools import partial

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.peers import POINTS
from benchmarks.timing import Table, at_least, at_most, best, summarize
from benchmarks.trees import error, explainer_of, friedman

ROWS = 10_000
NUMBERS = [f"x{k}" for k in range(8)]
LEVELS = {"c5": 5, "c10": 10, "c20": 20, "c50": 50}  # column -> how many levels
TREES = 300  # of xgboost and lightgbm
LIMITS = {
    "fit": at_most(10),
    "explain": at_most(0.3),
    "brute": at_least(75),
    "error": at_most(1e-10),
}
BOOSTER_LIMITS = {  # library -> limits of fit ÷ predict, and of the errors
    "xgboost": (*at_most(20), *at_most(1e-5)),  # it adds its trees in float32
    "lightgbm": (*at_most(8), *at_most(1e-10)),
}


def mixed(n, seed=0):
    """Return a DataFrame of 8 numbers and 4 columns of strings, and y (n,).

    The numbers are columns 0 to 7 of `friedman`. All levels are equally likely, and each moves y by
    a normal number of its own.
    """
    array, y = friedman(n, seed)
    X = pd.DataFrame(array[:, : len(NUMBERS)], columns=NUMBERS)
    rng = np.random.default_rng(seed + 1)
    for name, n_levels in LEVELS.items():
        levels = rng.integers(n_levels, size=n)
        X[name] = [f"level {level}" for level in levels]
        y = y + rng.normal(0, 2, n_levels)[levels]
    return X, y


def forest_pipeline():
    """Return the pipeline: its one-hot columns are sparse, as they are by default."""
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), NUMBERS),
            ("levels", OneHotEncoder(handle_unknown="ignore"), list(LEVELS)),
        ]
    )
    return make_pipeline(columns, RandomForestRegressor(100, max_depth=10, random_state=0))


def brute_force(pipeline, X, name, values):
    """Return the partial dependence of a column at some values, by its definition."""
    return np.array([pipeline.predict(X.assign(**{name: t})).mean() for t in values])


def points_of(X, name, n, rng):
    """Return n values of the background and a new one: a number, or an unknown level."""
    new = "no such level" if name in LEVELS else rng.random()
    return [*rng.choice(X[name].to_numpy(object), n), new]


def pipeline_error(pipeline, X, explainer, n_points):
    """Return the largest error of the curves at some points, as a share of the spread of f."""
    rng = np.random.default_rng(2)
    largest = 0.0
    for name in X:
        values = points_of(X, name, n_points, rng)
        wrong = explainer.curve(name)(values) - brute_force(pipeline, X, name, values)
        largest = max(largest, np.abs(wrong).max())
    return largest / pipeline.predict(X).std()


def is_black_box(explainer):
    """Tell whether some column has no curve to look up: `fit` has then computed nothing."""
    columns = range(explainer.n_features_in_)
    return any(explainer.curve(j).kind == "function" for j in columns)


def our_seconds(model, X):
    """Return a fitted explainer, and the seconds of `fit` and of `explain` without predictions."""
    explainer = explainer_of(model).fit(X)
    if is_black_box(explainer):
        print(f"{type(model).__name__} is a black box:", explainer.describe(), sep="\n")
        return explainer, math.inf, math.inf
    fit = best(lambda: explainer_of(model).fit(X))
    return explainer, fit, best(lambda: explainer.explain(X, predictions=False).values)


def sklearn_seconds(pipeline, X, quick):
    """Return scikit-learn's seconds for all columns: 100 points of a number, all levels of others.

    When quick, a tenth of the points of one number and the levels of one column are timed, and
    scaled up.
    """

    def seconds(name, points):
        settings = {"kind": "average", "method": "brute", "categorical_features": list(LEVELS)}
        return best(
            lambda: partial_dependence(pipeline, X, [name], grid_resolution=points, **settings),
            repeat=1,
            warm=False,
        )

    if not quick:
        print("peers: scikit-learn's partial dependence is timed on all columns, once")
        return sum(seconds(name, POINTS) for name in X)
    number, level = NUMBERS[0], min(LEVELS, key=LEVELS.get)
    share, levels = POINTS // 10, LEVELS[level]
    times, more = len(NUMBERS) * POINTS / share, sum(LEVELS.values()) / levels
    print(f"peers: scikit-learn's partial dependence is {number} × {share} points, × {times:g},")
    print(f"  and {level} × {levels} levels, × {more:g}")
    return seconds(number, share) * times + seconds(level, POINTS) * more


def show_pipeline(options):
    """Print seconds, then ratios with their limits, of the forest's pipeline; return the checks."""
    X, y = mixed(ROWS)
    pipeline = forest_pipeline().fit(X, y)
    predict = best(lambda: pipeline.predict(X))
    explainer, fit, explain = our_seconds(pipeline, X)
    seconds = Table(f"CPU seconds, {ROWS} rows", ["pipeline"])
    seconds.add("pipeline.predict", [predict])
    seconds.add("  of which preprocessing", [best(lambda: pipeline[:-1].transform(X))])
    seconds.add(f"fit, all {X.shape[1]} curves", [fit])
    seconds.add("explain, no predictions", [explain])
    ratios = Table("ratios", ["pipeline"])
    ratios.add("fit ÷ predict", [fit / predict], LIMITS["fit"])
    ratios.add("explain ÷ predict", [explain / predict], LIMITS["explain"])
    if not options.skip_peers:
        brute = sklearn_seconds(pipeline, X, options.quick)
        seconds.add("scikit-learn, all columns", [brute])
        ratios.add("times faster than scikit-learn", [brute / fit], LIMITS["brute"])
    wrong = pipeline_error(pipeline, X, explainer, 1 if options.quick else 4)
    ratios.add("largest error ÷ spread", [wrong], LIMITS["error"])
    print()
    seconds.show()
    return ratios.show()


def booster(library):
    """Return a model of 300 trees that runs in one thread, not fitted yet."""
    if library == "xgboost":
        from xgboost import XGBRegressor

        return XGBRegressor(n_estimators=TREES, n_jobs=1, random_state=0)
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=TREES, n_jobs=1, random_state=0, verbose=-1)


class LeafSums:
    """An xgboost model whose leaves are added in float64, as skattr adds them."""

    def __init__(self, model):
        self.model = model
        learner = json.loads(model.get_booster().save_raw("json"))["learner"]
        trees = learner["gradient_booster"]["model"]["trees"]
        # a node's condition is its value where it is a leaf; all numbers are float32
        self.values = [np.array(tree["split_conditions"], np.float32) for tree in trees]
        score = json.loads(learner["learner_model_param"]["base_score"])
        self.start = np.ravel(score).astype(np.float32)[0]  # a list in new versions

    def predict(self, X):
        """Return the sums."""
        leaves = self.model.apply(X).astype(np.intp)  # (n, n_trees)
        total = np.full(len(X), self.start, np.float64)
        for values, leaf in zip(self.values, leaves.T, strict=True):
            total += values[leaf]
        return total


def show_boosters(options):
    """Print times and errors for the boosting libraries that are installed; return the checks."""
    found = [name for name in BOOSTER_LIMITS if importlib.util.find_spec(name) is not None]
    for name in sorted(set(BOOSTER_LIMITS) - set(found)):
        print(f"{name} is not installed, and is left out")
    if not found:
        return []
    X, y = friedman(ROWS)
    n_points = 2 if options.quick else 5
    rows = {key: [] for key in ("predict", "fit", "explain", "error", "leaf error")}
    for name in found:
        model = booster(name).fit(X, y)
        explainer, fit, explain = our_seconds(model, X)
        rows["predict"].append(best(lambda m=model: m.predict(X)))
        rows["fit"].append(fit)
        rows["explain"].append(explain)
        rows["error"].append(error(model, X, explainer, n_points))
        sums = LeafSums(model) if name == "xgboost" else None
        rows["leaf error"].append(error(sums, X, explainer, n_points) if sums else math.nan)
    return show_booster_tables(found, rows)


def show_booster_tables(found, rows):
    """Print seconds and ratios of the boosting libraries; return the checks."""
    seconds = Table(f"CPU seconds, {ROWS} rows, {TREES} trees", found)
    for key, label in {"predict": "predict, one thread", "fit": "fit, all 10 curves"}.items():
        seconds.add(label, rows[key])
    seconds.add("explain, no predictions", rows["explain"])
    fit_limits, error_limits = zip(*(BOOSTER_LIMITS[name] for name in found), strict=True)
    ratios = Table("ratios", found)
    predict = np.array(rows["predict"])
    ratios.add("fit, all 10 curves ÷ predict", list(rows["fit"] / predict), fit_limits)
    ratios.add("explain ÷ predict", list(rows["explain"] / predict))
    ratios.add("largest error ÷ spread", rows["error"], error_limits)
    exact = LIMITS["error"] * len(found)
    ratios.add("largest error, leaves added in float64", rows["leaf error"], exact)
    seconds.show()
    return ratios.show()


def one_hot(n_columns, n_levels, limited=True):
    """Return a forest behind one-hot columns, and its background.

    The forest has a fixed size, or is grown without limit; then all rows are the background.
    """
    rng = np.random.default_rng(0)
    n = 3 * n_levels
    # every level is there
    columns = [rng.permutation(np.arange(n) % n_levels) for _ in range(n_columns)]
    X = pd.DataFrame({f"c{k}": [f"level {v}" for v in own] for k, own in enumerate(columns)})
    X["x"] = rng.normal(size=n)
    y = rng.normal(size=n_levels)[columns[0]] + X.x
    names = [f"c{k}" for k in range(n_columns)]
    encoder = ("levels", OneHotEncoder(handle_unknown="ignore"), names)
    size = {"max_leaf_nodes": 128, "max_features": 0.05} if limited else {}
    forest = RandomForestRegressor(20, random_state=0, **size)
    steps = ColumnTransformer([encoder], remainder="passthrough")
    return make_pipeline(steps, forest).fit(X, y), X[:500] if limited else X


def show_growth():
    """Time fit and one curve behind one-hot columns, and with twice as many; return the checks."""
    cases = {
        "1 column, 4000 levels": ((1, 4000), (1, 8000)),
        "250 columns, 100 levels": ((250, 100), (500, 100)),
        "1 column, 2000 levels, unlimited": ((1, 2000, False), (1, 4000, False)),
    }
    rows = []
    for sizes in cases.values():
        made = [one_hot(*size) for size in sizes]
        rows.append([best(partial(fit_and_curve, *case)) for case in made])
    table = Table("growth of one-hot columns, CPU seconds of fit and one curve", list(cases))
    whole, doubles = zip(*rows, strict=True)
    table.add("as many", list(whole), [*at_most(2), None, None])
    table.add("twice as many", list(doubles), [None, None, *at_most(2)])
    table.add("twice ÷ once", list(np.divide(doubles, whole)), at_most(3) * len(cases))
    return table.show()


def fit_and_curve(model, X):
    """Fit an explainer, and tabulate a curve."""
    explainer_of(model).fit(X).curve("c0").to_frame()


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pipelines", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points")
    parser.add_argument("--skip-peers", action="store_true", help="no partial_dependence")
    return parser.parse_args(arguments)


def main(arguments):
    """Train the models, print the tables, and say which limits hold."""
    options = parse(arguments)
    summarize([*show_growth(), *show_pipeline(options), *show_boosters(options)])

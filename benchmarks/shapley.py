"""``python -m benchmarks shapley``: exact Shapley values of forests and boosting, and other models.

Times are CPU seconds of one thread, warm, all in one process; peers that take too long run on a
part of the trees or of the explained rows and are scaled up, which the output says. A number in
parentheses is a limit that must hold.
"""

import argparse
import warnings
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from benchmarks import shapley_any, shapley_peers, shapley_products
from benchmarks.shapley_products import enumerate_coalitions
from benchmarks.timing import Table, at_least, at_most, best, summarize
from benchmarks.trees import MODELS, friedman

SECTIONS = ("speed", "large", "latency", "wide", "error", "products", "any")
FASTER = (60, 50, 40)  # in the order of MODELS
EXPLAINED_AT_ONCE = (1, 5, 25)
PATIENCE = 300  # seconds that a peer may take, by the clock
SHORT_PATIENCE = 30  # the same where the fastest peer takes milliseconds

# trees that woodelf and shapiq run on, explained rows that shap runs on, in the order of MODELS
SHARES = {"speed": ((200, 10, 2), 2), "large": ((10, 2, 1), 1)}
SIZES = {"speed": 1000, "large": 10_000}

WIDE_MODELS = {
    "depth 10": RandomForestRegressor(20, max_depth=10, max_features=0.2, random_state=0),
    "depth 30": RandomForestRegressor(20, max_depth=30, max_features=0.2, random_state=0),
}
WIDE_COLUMNS, WIDE_ROWS = 200, 200


def explainer_of(model, Z):
    """Return a fitted explainer of Shapley values."""
    from skattr import MeasureExplainer

    return MeasureExplainer(model, "shapley").fit(Z)


def run(model, Z, X):
    """Fit and explain."""
    return explainer_of(model, Z).explain(X, predictions=False).values


def limits(bounds, models):
    """Return the limits of the models that run."""
    return [limit for name, limit in zip(MODELS, bounds, strict=True) if name in models]


def show_speed(models, peers, section):
    """Print seconds of fit and explain together, and times faster than the best peer."""
    n = SIZES[section]
    Z, X = friedman(n)[0], friedman(n, seed=1)[0]
    trees, rows = SHARES[section]
    table = Table(f"{n} explained × {n} background rows", list(models))
    ours = [best(lambda m=m: run(m, Z, X), 5, at_most=20.0) for m in models.values()]
    table.add("skattr, fit and explain (s)", ours)
    found = []
    for name in peers:
        scaled = name != "shap"
        times = [
            shapley_peers.within(
                PATIENCE, shapley_peers.seconds, name, model, Z, X,
                share if scaled else None, None if scaled else rows,
            )
            for model, share in zip(models.values(), limits(trees, models), strict=True)
        ]  # fmt: skip
        found.append(times)
        of = f"{'/'.join(map(str, trees))} trees" if scaled else f"{rows} explained rows"
        table.add(f"{name}, from {of} (s)", times)
    if peers:
        fastest = np.nanmin(np.array(found), axis=0)
        table.add(
            "times faster than the best peer",
            list(fastest / ours),
            limits(at_least(*FASTER), models),
        )
    return table.show()


def show_latency(models, peers):
    """Print milliseconds of few explained rows after `fit`."""
    Z, X = friedman(100)[0], friedman(100, seed=1)[0]
    checks = []
    ready = {name: explainer_of(model, Z) for name, model in models.items()}
    for n in EXPLAINED_AT_ONCE:
        table = Table(f"{n} explained × 100 background rows, after fit", list(models))
        ours = [
            1e3 * best(lambda e=e, n=n: e.explain(X[:n], predictions=False), 30, at_most=5.0)
            for e in ready.values()
        ]
        table.add("skattr (ms)", ours)
        found = []
        for name in peers:
            found.append([
                1e3
                * shapley_peers.within(
                    SHORT_PATIENCE, shapley_peers.latency, name, model, Z, X[:n]
                )
                for model in models.values()
            ])  # fmt: skip
            table.add(f"{name} (ms)", found[-1])
        if peers:
            ratio = np.array(ours) / np.nanmin(np.array(found), axis=0)
            table.add("skattr ÷ the best peer", list(ratio), limits(at_most(1, 1, 1), models))
        checks += table.show()
    return checks


def pair_values(tree, x, z, node=0, by_x=(), by_z=()):
    """Return the Shapley values of a scikit-learn tree for one background row, as a dict.

    Goes down the tree with the columns that a coalition must have (`by_x`) and must not have.
    """
    k = tree.feature[node]
    if k < 0:
        return leaf_values(float(tree.value[node, 0, 0]), by_x, by_z)
    sides = [tree.children_left, tree.children_right]
    x_side, z_side = (sides[int(np.float32(row[k]) > tree.threshold[node])][node] for row in (x, z))
    if x_side == z_side or k in by_x:
        return pair_values(tree, x, z, x_side, by_x, by_z)
    if k in by_z:
        return pair_values(tree, x, z, z_side, by_x, by_z)
    total = pair_values(tree, x, z, x_side, (*by_x, k), by_z)
    for j, value in pair_values(tree, x, z, z_side, by_x, (*by_z, k)).items():
        total[j] = total.get(j, 0.0) + value
    return total


def leaf_values(value, by_x, by_z):
    """Return the Shapley values of value · 1[a coalition has by_x and none of by_z]."""
    from math import comb

    a, b = len(by_x), len(by_z)
    result = {j: value / (a * comb(a + b, a)) for j in by_x}
    return result | {j: -value / (b * comb(a + b, b)) for j in by_z}


def show_wide(peers):
    """Print times of 200 columns and deep trees, and the error against pairs of rows."""
    rng = np.random.default_rng(0)
    X = rng.random((4000 + 2 * WIDE_ROWS, WIDE_COLUMNS))
    y = np.sin(6 * X[:, :20]).sum(axis=1) + X[:, 0] * X[:, 1] * 10
    models = {name: clone(m).fit(X[:4000], y[:4000]) for name, m in WIDE_MODELS.items()}
    Z, Q = np.split(X[4000:], 2)
    depth = max(tree.get_depth() for tree in models["depth 30"].estimators_)
    title = f"{WIDE_COLUMNS} columns, depth up to {depth}, {WIDE_ROWS} × {WIDE_ROWS} rows"
    table = Table(title, list(models))
    ours = [best(lambda m=m: run(m, Z, Q), 3) for m in models.values()]
    table.add("skattr, fit and explain (s)", ours)
    found = []
    for name in peers:
        trees, rows = (None, 2) if name == "shap" else (2, None)
        job = partial(shapley_peers.seconds, repeat=1)
        found.append([
            shapley_peers.within(PATIENCE, job, name, model, Z, Q, trees, rows)
            for model in models.values()
        ])  # fmt: skip
        of = f"{rows} explained rows" if name == "shap" else f"{trees} trees"
        table.add(f"{name}, from {of} (s)", found[-1])
    if peers:
        fastest = np.nanmin(np.array(found), axis=0)
        table.add("times faster than the best peer", list(fastest / ours), at_least(10, 10))
    errors = [wide_error(model, Z[:10], Q[:2]) for model in models.values()]
    table.add("largest error ÷ spread, by pairs of rows", errors, at_most(1e-12, 1e-12))
    return table.show()


def wide_error(model, Z, X):
    """Return the largest error of a few rows, as a share of the spread of f."""
    values = run(model, Z, X)
    truth = np.zeros(values.shape)
    for i, x in enumerate(X):
        for z in Z:
            for tree in model.estimators_:
                for j, value in pair_values(tree.tree_, x, z).items():
                    truth[i, j] += value / len(Z) / len(model.estimators_)
    return np.abs(values - truth).max() / model.predict(Z).std()


def show_error(models):
    """Print the error against enumeration, with the models trained on five columns."""
    X, y = friedman(10_000)
    X = X[:, :5]
    Z, Q = X[:100], friedman(3, seed=1)[0][:, :5]
    table = Table("5 columns, 3 × 100 rows", list(models))
    errors = []
    for model in models.values():
        fitted = clone(model).fit(X, y)
        truth = np.array([enumerate_coalitions(fitted.predict, Z, x) for x in Q])
        errors.append(float(np.abs(run(fitted, Z, Q) - truth).max() / fitted.predict(Z).std()))
    table.add("largest error ÷ spread", errors, limits(at_most(1e-12, 1e-12, 1e-12), models))
    return table.show()


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shapley", description=__doc__)
    parser.add_argument("--skip-peers", action="store_true", help="measure skattr only")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    return parser.parse_args(arguments)


def main(arguments):
    """Train the models, print every table that was asked for, and say which limits hold."""
    options = parse(arguments)
    peers = [] if options.skip_peers else shapley_peers.installed()
    models = {name: MODELS[name] for name in MODELS if name in options.models}
    if {"speed", "large", "latency"} & set(options.only):
        X, y = friedman(10_000)
        models = {name: model.fit(X, y) for name, model in models.items()}
    checks = []
    for section in ("speed", "large"):
        if section in options.only:
            checks += show_speed(models, peers, section)
    if "latency" in options.only:
        checks += show_latency(models, peers)
    if "wide" in options.only:
        checks += show_wide(peers)
    if "error" in options.only:
        checks += show_error(models)
    if "products" in options.only:
        checks += shapley_products.main()
    if "any" in options.only:
        with warnings.catch_warnings():
            shapley_any.main()
    summarize(checks)

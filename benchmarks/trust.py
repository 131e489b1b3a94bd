"""``python -m benchmarks trust``: errors from a finite background: what they cost, what they cover.

Cost: CPU seconds of one thread, the best of several warm calls, with folds over without. Coverage:
backgrounds are drawn from a population of rows, and the truth is the exact value for the whole
population, so that there is no error but that of the background. A number in parentheses is a limit
that must hold.
"""

import argparse
import pickle
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor

from benchmarks.timing import Limit, Table, at_most, best, summarize
from benchmarks.trees import MODELS, friedman

SECTIONS = ("cost", "coverage")
LIMITS = {"fit": (1.3, 1.6, 2.0), "explain": (1.5,) * 3, "pickle": (2.0,) * 3}
POPULATION = 20_000
SIZES = (50, 200, 1000, 5000)
LEVEL = 0.95


def explainer_of(model, measure="main_effect", folds="auto"):
    """Return an explainer, not fitted yet."""
    from skattr import MeasureExplainer

    return MeasureExplainer(model, measure, folds=folds)


def costs_of(model, X, measure="main_effect", folds="auto", repeat=10):
    """Return seconds of fit and of explain and the pickle's MB, without folds and with them."""
    found = []
    for number in (0, folds):
        fit = best(lambda n=number: explainer_of(model, measure, n).fit(X), repeat)
        explainer = explainer_of(model, measure, number).fit(X)
        explain = best(lambda e=explainer: e.explain(X, predictions=False), repeat)
        found.append((fit, explain, len(pickle.dumps(explainer)) / 1e6))
    return np.array(found)


def show_cost(options):
    """Print what folds cost; return the checks."""
    X, y = friedman(10_000)
    names = [name for name in MODELS if name in options.models]
    trees = {name: MODELS[name].fit(X, y) for name in names}
    checks = []
    for measure in ("main_effect", "partial_dependence"):
        costs = [costs_of(model, X, measure) for model in trees.values()]
        seconds = Table(f"{measure}, {len(X)} rows: CPU seconds, MB", names)
        ratios = Table("with folds ÷ without", names)
        for i, (what, bounds) in enumerate(LIMITS.items()):
            seconds.add(f"{what} without folds", [cost[0, i] for cost in costs])
            limits = at_most(*(bounds[list(MODELS).index(name)] for name in names))
            ratios.add(what, [cost[1, i] / cost[0, i] for cost in costs], limits)
        print()
        seconds.show()
        checks += ratios.show()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = MLPRegressor(hidden_layer_sizes=(32, 32), max_iter=20, random_state=0).fit(X, y)
    table = Table(
        "asked for, folds=32: with folds ÷ without, 1000 rows", ["fit", "explain", "pickle"]
    )
    for name, model, measure in (
        ("network of 32 × 32 units", network, "main_effect"),
        ("boosting, Shapley values", MODELS["HGB"].fit(X, y), "shapley"),
        ("boosting, product marginals", MODELS["HGB"], "product_marginal"),
        ("boosting, conditional", MODELS["HGB"], "conditional"),
    ):
        cost = costs_of(model, X[:1000], measure, 32, repeat=2)
        table.add(name, list(cost[1] / cost[0]))
    print()
    table.show()
    return checks


def population(seed=0):
    """Return rows with two dependent columns, a target, and weights that depend on the rows."""
    X, y = friedman(POPULATION, seed)
    X = np.ascontiguousarray(X[:, :5])
    return X, y, 0.5 + X[:, 3] + np.random.default_rng(seed).random(len(X))


def small_models(X, y):
    """Return models that are fitted once; only the background is drawn again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network need not converge
        return {
            "forest": RandomForestRegressor(10, max_depth=5, random_state=0).fit(
                X[:2000], y[:2000]
            ),
            "boosting": HistGradientBoostingRegressor(max_iter=20, max_leaf_nodes=15).fit(X, y),
            "network": MLPRegressor(hidden_layer_sizes=(10,), max_iter=30, random_state=0).fit(
                X, y
            ),
        }


def covered(model, measure, X, weights, n, repeat, rows, curve, importance):
    """Return the shares of values and importances whose intervals cover the truth, and the bias."""
    rng = np.random.default_rng(n)
    truth = explainer_of(model, measure, 0).fit(X, sample_weight=weights)
    values = truth.explain(rows, predictions=False)
    important = values.importance()
    exact = values.values if not curve else truth.curve(0)(rows[:, 0])[:, None]
    shares, of_importance, bias = [], [], []
    for _ in range(repeat):
        drawn = rng.integers(0, len(X), n)
        some = None if weights is None else weights[drawn]
        explainer = explainer_of(model, measure, 32).fit(X[drawn], sample_weight=some)
        found = explainer.explain(rows, predictions=False)
        low, high = found.interval(LEVEL)
        if curve:
            low, high = low[:, :1], high[:, :1]
        slack = 1e-12 * np.abs(exact).max()
        shares.append(((low - slack <= exact) & (exact <= high + slack)).mean())
        if not importance:
            continue
        frame = found.importance(error=True, level=LEVEL).loc[important.index]
        matters = important > 0.01 * important.max()  # else it is 0 but for rounding
        inside = (frame["low"] <= important) & (important <= frame["high"])
        of_importance.append(inside[matters].mean())
        bias.append((frame["importance"] / important - 1)[matters].mean())
    return np.mean(shares), np.mean(of_importance or 0), np.mean(bias or 0)


def show_coverage(options):
    """Print which share of 95 % intervals covers the truth; return the checks."""
    X, y, weights = population()
    models = small_models(X, y)
    rows = X[np.random.default_rng(1).choice(len(X), 20, replace=False)]
    kinds = {
        "values": ("partial_dependence", False, False),
        "values, weighted": ("partial_dependence", True, False),
        "curve of x0": ("partial_dependence", False, True),
        "centred values": ("main_effect", False, False),
        "Shapley values": ("shapley", False, False),
    }
    checks = []
    kinds = {kind: kinds[kind] for kind in kinds if options.kinds in ("all", kind)}
    for name in options.small:
        sizes = [n for n in SIZES if n <= options.largest]
        table = Table(f"{name}: share of {options.repeat} intervals that cover the truth, %",
                      [f"n = {n}" for n in sizes])  # fmt: skip
        others = {}
        for kind, (measure, weighted, curve) in kinds.items():
            if kind == "Shapley values" and name == "network":
                continue  # sampled there: the error of the approximation comes on top
            found = [
                covered(
                    models[name], measure, X, weights if weighted else None, n, options.repeat,
                    rows, curve, kind == "centred values",
                )
                for n in sizes
            ]  # fmt: skip
            shares = [100 * share for share, _, _ in found]
            low = [Limit("≥", 88 if n < 200 else 92) for n in sizes]
            table.add(kind, shares, low)
            if kind == "centred values":
                others["importance, coverage"] = [100 * share for _, share, _ in found]
                others["importance, bias"] = [100 * bias for _, _, bias in found]
        for label, numbers in others.items():
            table.add(label, numbers)
        print(flush=True)
        checks += table.show()
    return checks


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks trust", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--small", nargs="+", default=["forest", "boosting", "network"])
    parser.add_argument("--kinds", default="all", help="a line of the tables, or all")
    parser.add_argument("--repeat", type=int, default=400, help="backgrounds per line")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest background")
    return parser.parse_args(arguments)


def main(arguments):
    """Print the tables that were asked for, and say which limits hold."""
    options = parse(arguments)
    checks = []
    if "cost" in options.only:
        checks += show_cost(options)
    if "coverage" in options.only:
        checks += show_coverage(options)
    summarize(checks)

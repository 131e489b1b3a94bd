"""``python -m benchmarks trust``: errors from a finite background: what they cost, what they cover.

Cost: CPU seconds of one thread, the best of several warm calls, with folds over without. Coverage:
backgrounds are drawn from a population of rows, and the truth is the exact value for the whole
population, so that the only error is that of the background. A number in parentheses is a limit
that must hold.
"""

import argparse
import pickle
import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.neural_network import MLPRegressor

from benchmarks.timing import Between, Limit, Table, at_most, best, summarize
from benchmarks.trees import MODELS, friedman

SECTIONS = ("cost", "coverage")
LIMITS = {"fit": (1.3, 1.6, 2.0), "explain": (1.5,) * 3, "pickle": (2.0,) * 3}
POPULATION = 20_000
SIZES = (50, 200, 1000, 5000)
SMALL = ("forest", "boosting", "network")
FOLDS = 32
LEVEL = 0.95
PLACES = np.linspace(0.02, 0.98, 21)  # where curves are looked at
IMPORTANCES = "importances"
WEIGHTED = {"no": (False,), "yes": (True,), "both": (False, True)}


def explainer_of(model, measure="main_effect", folds="auto"):
    """Return an explainer, not fitted yet."""
    from skattr import MeasureExplainer

    # enough evaluations that Shapley values of a network with five columns are exact
    return MeasureExplainer(model, measure, folds=folds, max_evals=10**6)


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


def of_values(explainer, explanation):
    """Return the intervals of values."""
    return explanation.values, *explanation.interval(LEVEL)


def of_centered(explainer, explanation):
    """Return the intervals of centred values."""
    return of_values(explainer, explanation.centered())


def of_curves(explainer, explanation):
    """Return the intervals of the curves of all columns."""
    curves = [explainer.curve(name) for name in explanation.feature_names]
    ends = [(curve(PLACES), *curve.interval(PLACES, LEVEL)) for curve in curves]
    return tuple(np.array(ends).transpose(1, 0, 2))


def of_centered_curves(explainer, explanation):
    """Return the intervals of the curves of all columns, less their offset."""
    curves = [explainer.curve(name) for name in explanation.feature_names]
    ends = [
        (curve(PLACES) - curve.offset, *curve.interval(PLACES, LEVEL, centered=True))
        for curve in curves
    ]
    return tuple(np.array(ends).transpose(1, 0, 2))


def of_importances(explainer, explanation):
    """Return the intervals of importances."""
    frame = explanation.importance(error=True, level=LEVEL).loc[list(explanation.feature_names)]
    return tuple(frame[name].to_numpy() for name in ("importance", "low", "high"))


KINDS = {
    "partial_dependence": {
        "values": of_values,
        "centred values": of_centered,
        "curves": of_curves,
        "centred curves": of_centered_curves,
        IMPORTANCES: of_importances,
    },
    "shapley": {"Shapley values": of_values},
}


def covered(model, measure, X, weights, n, repeat, rows):
    """Return, for each kind of number, the share of intervals that cover the truth, and the bias.

    Numbers that do not depend on the background are left out; the bias is that of the mean over all
    backgrounds, relative to the truth.
    """
    kinds, rng = KINDS[measure], np.random.default_rng(n)
    whole = explainer_of(model, measure, FOLDS).fit(X, sample_weight=weights)
    explanation = whole.explain(rows, predictions=False)
    truth = {kind: intervals(whole, explanation)[0] for kind, intervals in kinds.items()}
    found = {kind: [] for kind in kinds}
    inside = {kind: np.zeros(value.shape) for kind, value in truth.items()}
    for _ in range(repeat):
        drawn = rng.integers(0, len(X), n)
        some = None if weights is None else weights[drawn]
        explainer = explainer_of(model, measure, FOLDS).fit(X[drawn], sample_weight=some)
        explanation = explainer.explain(rows, predictions=False)
        for kind, intervals in kinds.items():
            value, low, high = intervals(explainer, explanation)
            found[kind].append(value)
            inside[kind] += (low <= truth[kind]) & (truth[kind] <= high)
    result = {}
    for kind, value in truth.items():
        varies = np.std(found[kind], axis=0) > 1e-9 * np.abs(value).max()
        if kind == IMPORTANCES:
            varies &= value > 0.01 * value.max()  # of a column that does not matter it is all bias
        bias = np.mean(found[kind], axis=0)[varies] / value[varies] - 1
        result[kind] = inside[kind][varies].mean() / repeat, bias.mean()
    return result


def show_coverage(options):
    """Print which share of 95 % intervals covers the truth; return the checks."""
    X, y, weights = population()
    models = small_models(X, y)
    rows = X[np.random.default_rng(1).choice(len(X), 20, replace=False)]
    checks = []
    for name in options.small:
        table = Table(
            f"{name}: share of intervals of {options.repeat} backgrounds that cover the truth, %",
            [f"n = {n}" for n in options.sizes],
        )
        limits = [Limit("≥", 88) if n < 200 else Between(92, 97) for n in options.sizes]
        for measure in options.measures:
            for weighted in {"no": (False,), "yes": (True,), "both": (False, True)}[
                options.weights
            ]:
                found = [
                    covered(
                        models[name], measure, X, weights if weighted else None, n,
                        options.repeat, rows,
                    )
                    for n in options.sizes
                ]  # fmt: skip
                for kind in KINDS[measure]:
                    label = f"{kind}, weighted" if weighted else kind
                    shares = [100 * each[kind][0] for each in found]
                    table.add(label, shares, None if kind == IMPORTANCES else limits)
                    if kind == IMPORTANCES:
                        bias = [100 * each[kind][1] for each in found]
                        table.add(f"{label}: bias, % of them", bias)
        print()
        checks += table.show()
    return checks


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks trust", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--small", nargs="+", choices=SMALL, default=SMALL, help="for coverage")
    parser.add_argument("--measures", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--weights", choices=WEIGHTED, default="both")
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="of backgrounds")
    parser.add_argument("--repeat", type=int, default=400, help="backgrounds per number")
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

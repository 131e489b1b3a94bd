"""``python -m benchmarks conditional``: how well E[f(X) | X_j = t] is learned, and how fast.

By default: 10⁴ · MSE / Var f on four laws of six columns (`benchmarks.laws`, where the truth is
simulated), for each option of `Conditional`, for partial dependence, and for the kernel estimator
of shapr. The MSE is the mean over columns and over fresh values of each; ± is the standard error
over replicates, each with a background and values of its own. ``--speed`` and ``--faithfulness``
print those tables instead. A number in parentheses is a limit that must hold.
"""

import argparse
import sys

import numpy as np

from benchmarks.conditional_speed import show_speed
from benchmarks.laws import LAWS, D, codes_of, train, truth
from benchmarks.timing import Table, at_least, at_most, summarize
from benchmarks.xai_bench import show_faithfulness

OPTIONS = ("kernel", "local_linear", "knn", "gaussian", "copula", "gmm")
DEFAULT = "kernel"
SIZES = (200, 1000, 5000)
LIMITS_AT = 1000  # rows
SHAPR = {"sigma": 0.1, "eta": 0.95, "most": 1000}  # its default settings
BY_POINTS = ("gaussian", "copula")  # quasi-random, where the model is not affine
TOL = 2e-2  # of those: adds 0.2 to 2 to the numbers of the table


def measure_values(model, measure, X, rows):
    """Return the values of rows, (n, 6), with a measure learned on X."""
    from skattr import MeasureExplainer
    from skattr.engines import QuasiMonteCarlo

    by_points = getattr(measure, "estimator", None) in BY_POINTS
    engine = QuasiMonteCarlo(replicates=8) if by_points else "auto"
    explainer = MeasureExplainer(model, measure, engine=engine, tol=TOL, random_state=0).fit(X)
    return explainer.explain(rows, predictions=False).values


def shapr_values(model, X, rows):
    """Return the values of rows by shapr's `empirical` approach, conditioning on one column.

    Rows z_r of the background have weights exp(−D² / 2σ²), where D² = (t − z_rj)² / S_jj is the
    Mahalanobis distance for the covariance S of the background, over the number of conditioning
    columns squared, which is 1, and σ = 0.1. Weights are normalised, the smallest that
    together make no more than 1 − η = 5 % are dropped, at most 1000 rows are kept, and f is
    averaged over them with column j set to t. shapr refuses factors, so its users must encode
    categories: here they are numbered, and nearly all the weight is on rows that match.
    """
    numbers, at = codes_of(X), codes_of(rows)
    out = np.empty((len(at), D))
    for j in range(D):
        values, first, back = np.unique(at[:, j], return_index=True, return_inverse=True)
        distance = (values[:, None] - numbers[:, j]) ** 2 / numbers[:, j].var(ddof=1)
        distance -= distance.min(axis=1, keepdims=True)  # so that some weight is 1
        weights = np.exp(-0.5 * distance / SHAPR["sigma"] ** 2)
        means = [
            shapr_mean(model, X, j, rows, i, each) for i, each in zip(first, weights, strict=True)
        ]
        out[:, j] = np.array(means)[back]
    return out


def shapr_mean(model, X, j, rows, i, weights):
    """Return the weighted mean of f over the rows that shapr keeps, column j as in row i."""
    weights = weights / weights.sum()
    order = np.argsort(weights, kind="stable")
    kept = order[np.cumsum(weights[order]) > 1 - SHAPR["eta"]][-SHAPR["most"] :]
    if isinstance(X, np.ndarray):
        points = X[kept]
        points[:, j] = rows[i, j]
    else:
        name = X.columns[j]
        same = rows[name].iloc[np.full(len(kept), i)].array
        points = X.iloc[kept].assign(**{name: same})
    return np.average(model.predict(points), weights=weights[kept])


def methods():
    """Return {row of the table: function (model, background, rows) -> values}."""
    from skattr.measures import Conditional, PartialDependence

    def learned(measure):
        return lambda model, X, rows: measure_values(model, measure, X, rows)

    found = {option: learned(Conditional(option)) for option in OPTIONS}
    found["partial dependence"] = learned(PartialDependence())
    found["shapr-style kernel"] = shapr_values
    return found


def draw_values(name, law, model, options):
    """Return the rows that each replicate explains, their truth (n, 6), and Var f."""
    rng = np.random.default_rng(1)
    spread = model.predict(law.draw(200_000, rng)).var()
    rows = [law.draw(options.values, rng) for _ in range(options.replicates)]
    found = [truth(law, model, each, options.points) for each in rows]
    noise = 1e4 * np.mean([noise for _, noise in found]) / spread
    print(f"{name}: 10⁴ · simulation error of the truth / Var f {noise:.2g}", file=sys.stderr)
    if noise > 1:
        raise RuntimeError(f"the truth of {name} is too rough: simulate more than {options.points}")
    return [(each, exact) for each, (exact, _) in zip(rows, found, strict=True)], spread


def errors_of_law(name, options):
    """Return {(method, n): 10⁴ MSE / Var f of each replicate}, and {method: why it refused}."""
    law = LAWS[name]()
    model = train(law)
    values, spread = draw_values(name, law, model, options)
    errors, refusals = {}, {}
    for n in options.n:
        for replicate, (rows, exact) in enumerate(values):
            X = law.draw(n, np.random.default_rng((2, n, replicate)))
            for method, explain in methods().items():
                if method in refusals:
                    continue
                try:
                    wrong = explain(model, X, rows) - exact
                except ValueError as refusal:
                    refusals[method] = str(refusal)
                    continue
                errors.setdefault((method, n), []).append(1e4 * np.mean(wrong**2) / spread)
    return errors, refusals


def cell(errors):
    """Write a mean and its standard error over replicates."""
    if not errors:
        return "–"
    mean = np.mean(errors)
    if len(errors) == 1:
        return f"{mean:.0f}"
    return f"{mean:.0f} ± {np.std(errors, ddof=1) / np.sqrt(len(errors)):.1f}"


def show_quality(options):
    """Print one table for each number of rows, and the limits; return the checks."""
    laws = [name for name in LAWS if name in options.law]
    found = {name: errors_of_law(name, options) for name in laws}
    for n in options.n:
        table = Table(f"10⁴ MSE / Var f, n = {n}", laws)
        for method in methods():
            table.add(method, [cell(found[name][0].get((method, n))) for name in laws])
        table.show()
    show_refusals({name: refusals for name, (_, refusals) in found.items()})
    if LIMITS_AT not in options.n:
        print(f"(limits are those of n = {LIMITS_AT}, which was not run)")
        return []
    return show_limits(laws, {name: errors for name, (errors, _) in found.items()})


def show_refusals(refusals):
    """Print why there is a dash, each reason once: its first line."""
    where = {}
    for name, reasons in refusals.items():
        for method, reason in reasons.items():
            where.setdefault((name, reason.splitlines()[0]), []).append(method)
    for (name, reason), refused in where.items():
        print(f"– {', '.join(refused)} on {name}: {reason}")
    print()


def show_limits(laws, errors):
    """Print how the default compares with partial dependence, shapr and the best option."""

    def mean(name, method):
        return np.mean(errors[name].get((method, LIMITS_AT), np.nan))

    table = Table(f"the default, {DEFAULT}, n = {LIMITS_AT}", laws)
    ours = np.array([mean(name, DEFAULT) for name in laws])
    dependence = np.array([mean(name, "partial dependence") for name in laws])
    shapr = np.array([mean(name, "shapr-style kernel") for name in laws])
    best = np.array([np.nanmin([mean(name, option) for option in OPTIONS]) for name in laws])
    table.add("partial dependence ÷ default", list(dependence / ours), at_least(*[4.0] * len(laws)))
    table.add("shapr-style ÷ default", list(shapr / ours))
    bounds = [None if name == "Gaussian" else at_most(3.0)[0] for name in laws]
    table.add("default ÷ best option", list(ours / best), bounds)
    checks = table.show()
    if len(laws) < len(LAWS):
        return checks
    count = Table("the default", ["laws"])
    count.add("beats the shapr-style kernel on", [int((shapr > ours).sum())], at_least(3))
    return checks + count.show()


def parse(arguments):
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks conditional", description=__doc__)
    parser.add_argument("--speed", action="store_true", help="time and memory instead")
    parser.add_argument("--faithfulness", action="store_true", help="faithfulness instead")
    parser.add_argument("--quick", action="store_true", help="fewer values, sizes and replicates")
    parser.add_argument("--n", nargs="+", type=int, help=f"rows, default {SIZES}")
    parser.add_argument("--replicates", type=int, help="backgrounds of each size, default 4")
    parser.add_argument("--law", nargs="+", choices=LAWS, default=list(LAWS))
    options = parser.parse_args(arguments)
    options.n = options.n or ([LIMITS_AT] if options.quick else list(SIZES))
    options.replicates = options.replicates or (2 if options.quick else 4)
    options.values, options.points = (40, 512) if options.quick else (100, 1024)
    return options


def main(arguments):
    """Print what was asked for, and say which limits hold."""
    options = parse(arguments)
    if options.speed:
        summarize(show_speed(options))
    elif options.faithfulness:
        summarize(show_faithfulness(options))
    else:
        summarize(show_quality(options))

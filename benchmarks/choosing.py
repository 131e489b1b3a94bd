"""``python -m benchmarks choosing``: the gain of optimised measures, and the cost of choosing.

Linear models: weights uniform on [-1, 1]^6, α = .3, β = .1, 25 models to fit, 2000 to test. Feature
j is golden if |w_j| > β, retrieved if |phi_j| ≥ α.

Networks: six features on [0, 1]^6, one hidden layer of 32 ReLUs; all weights and biases are uniform
on [-1, 1], and each feature is left out of the network with probability ½. Feature j is golden if
the mean of ∂f/∂y_j over the domain is larger than β in absolute value. 150 networks to fit, 500 to
test.

In the column "as it is" features with |phi_j| ≥ α are retrieved. A measure may be scaled, so the
second column uses the factor that is best on the models to fit, for every measure. Partial
dependence is that of the uniform law, at a point drawn for each model. Times are CPU seconds of one
thread.
"""

import argparse

import numpy as np

from benchmarks.timing import Table, at_least, at_most, best, summarize
from skattr.axioms import check
from skattr.measures import Conditional, Expectation, PartialDependence
from skattr.metrics import f1
from skattr.optimize import FrankWolfeMeasure, ThresholdLoss, optimal_center

D, ALPHA, BETA = 6, 0.3, 0.1
FACTORS = np.geomspace(0.25, 16, 49)


def score(values, truth):
    """Return the mean F1 of attributions."""
    return float(np.mean(f1(values, truth, alpha=ALPHA, beta=BETA)))


def scores(fit, test):
    """Return F1 on the test models as they are, and with the best factor on the models to fit."""
    values, truth = fit
    factor = max(FACTORS, key=lambda c: score(c * values, truth))
    return [score(*test), score(factor * test[0], test[1])]


def linear(quick):
    """Print F1 of measures on linear models; return the checks."""
    rng = np.random.default_rng(0)
    fit = rng.uniform(-1, 1, (25, D))
    test = rng.uniform(-1, 1, (500 if quick else 2000, D))
    table = Table(f"F1, linear models, {len(test)} to test", ["as it is", "best factor"])

    def add(name, values, limits=None):
        found = scores((values(fit), fit), (values(test), test))
        table.add(name, found, limits)

    def partial_dependence(w):
        x = np.random.default_rng(1).random(w.shape)
        return w * x + (w.sum(axis=1, keepdims=True) - w) / 2

    def centred(w):
        return w * (np.random.default_rng(1).random(w.shape) - 0.5)

    add("partial dependence", partial_dependence)
    add("partial dependence, centred", centred)
    for metric in ("recall", "f1"):
        centers = np.array([
            optimal_center(fit, j, metric, alpha=ALPHA, beta=BETA).center for j in range(D)
        ])  # fmt: skip
        add(f"probability of optimal centre ({metric})", lambda w, m=centers: w @ m.T)
    learner = FrankWolfeMeasure(rng.random((200, D)), ThresholdLoss(ALPHA), "sensitive")
    learner.fit(fit, np.where(np.abs(fit) > BETA, np.sign(fit), 0.0))
    add("Frank-Wolfe, sensitive", learner.attributions, [None, *at_least(0.95)])
    add("δ_{e_j} - δ_0, not fitted", lambda w: w)
    return table.show()


class Network:
    """One hidden layer of ReLUs; some features are left out."""

    def __init__(self, rng, width=32):
        self.W = rng.uniform(-1, 1, (width, D)) * (rng.random(D) < 0.5)
        self.b, self.v = rng.uniform(-1, 1, (2, width))

    def __call__(self, Y):
        """Return its values at points."""
        return np.maximum(Y @ self.W.T + self.b, 0) @ self.v

    def slope(self, Y):
        """Return the mean gradient over points, (d,)."""
        return ((Y @ self.W.T + self.b > 0).mean(axis=0) * self.v) @ self.W


def pinned(networks, U, centre):
    """Return partial dependence over the points U, at a random point for each network."""
    x = np.random.default_rng(1).random((len(networks), D))
    values = np.empty((len(networks), D))
    for m, f in enumerate(networks):
        for j in range(D):
            Z = U.copy()
            Z[:, j] = x[m, j]
            values[m, j] = f(Z).mean() - centre * f(U).mean()
    return values


def networks(quick):
    """Print F1 of measures on ReLU networks; return the checks."""
    rng = np.random.default_rng(0)
    fit = [Network(rng) for _ in range(150)]
    test = [Network(rng) for _ in range(100 if quick else 500)]
    U, many = rng.random((256, D)), rng.random((4096, D))
    truth = [np.array([f.slope(many) for f in nets]) for nets in (fit, test)]
    table = Table(f"F1, ReLU networks, {len(test)} to test", ["as it is", "best factor"])

    def add(name, values, limits=None):
        found = scores((values(fit), truth[0]), (values(test), truth[1]))
        table.add(name, found, limits)

    add("partial dependence", lambda nets: pinned(nets, U, 0))
    add("partial dependence, centred", lambda nets: pinned(nets, U, 1))
    atoms = rng.random((500, D))
    wanted = np.where(np.abs(truth[0]) > BETA, np.sign(truth[0]), 0.0)
    for constraint in ("sensitive", "probability", None):
        learner = FrankWolfeMeasure(atoms, ThresholdLoss(ALPHA), constraint)
        learner.fit(fit, wanted)
        limits = [*at_least(0.85), None] if constraint == "sensitive" else None
        add(f"Frank-Wolfe, {constraint or 'signed'}", learner.attributions, limits)
    ends = np.vstack([np.eye(D), np.zeros(D)])
    add("δ_{e_j} - δ_0, not fitted",
        lambda nets: np.array([f(ends)[:-1] - f(ends)[-1] for f in nets]))  # fmt: skip
    return table.show()


def speed():
    """Print the time of choosing a measure; return the checks."""
    rng = np.random.default_rng(0)
    table = Table("CPU seconds", ["time"])
    weights = rng.uniform(-1, 1, (25, D))
    for metric in ("recall", "f1"):
        times = [
            best(lambda j=j, m=metric: optimal_center(weights, j, m, alpha=ALPHA, beta=BETA),
                 repeat=1, warm=False)
            for j in range(D)
        ]  # fmt: skip
        table.add(f"optimal_center, {metric}, 25 models, the slowest feature", [max(times)],
                  at_most(2))  # fmt: skip
    nets = [Network(rng) for _ in range(150)]
    slopes = np.array([f.slope(rng.random((4096, D))) for f in nets])
    wanted = np.where(np.abs(slopes) > BETA, np.sign(slopes), 0.0)
    atoms = rng.random((2000, D))
    for name, loss, targets in (
        ("squared", "squared", slopes),
        ("threshold", ThresholdLoss(ALPHA), wanted),
    ):
        learner = FrankWolfeMeasure(atoms, loss, "sensitive")
        seconds = best(lambda m=learner, t=targets: m.fit(nets, t), repeat=1, warm=False)
        table.add(f"Frank-Wolfe, {name}, 2000 atoms x 150 models, per feature", [seconds / D],
                  at_most(1))  # fmt: skip
    X = rng.normal(size=(1000, 20)) + rng.normal(size=(1000, 1))
    for measure in (PartialDependence() - Expectation(), Conditional() - Expectation()):
        seconds = best(lambda m=measure: check(m, X), repeat=2)
        table.add(f"axioms.check, 1000 x 20, {measure!r}", [seconds], at_most(5))
    return table.show()


def main(arguments):
    """Print the tables, and say which limits hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks choosing", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer models to test")
    quick = parser.parse_args(arguments).quick
    checks = [*linear(quick), *networks(quick), *speed()]
    print("δ_{e_j} - δ_0 needs no fitting, and is as good as what was optimised.\n")
    summarize(checks)

"""Uniform partial dependence of a 16-16 ReLU network: cells against grids and quasi-random points.

One value is δ_t ⊗ the uniform law on the other sides of [-1, 1]^d. Peers, all on one thread and on
the same float64 forward pass:

- the public code of the paper's authors, re-implemented from its description: a Riemann-Stieltjes
  sum over N^d cells, the integrand g at 2^d corners of each, f at the lower one, and the sign of
  the increment as written there, (-1)^{|ε|} (wrong for odd d);
- 2^20 scrambled Sobol points, made once, on the d - 1 other sides;
- Simpson's rule of torchquad (GPL, used here only) with at most 2^20 points, if it is installed;
  else the same composite rule written here.

Errors are in units of the standard deviation of f over the box. The truth is the sum over regions
that are cut by the last layer too, another computation than the one that is timed.
"""

import warnings
from functools import partial
from itertools import product

import numpy as np
from scipy.spatial import Delaunay
from scipy.stats import qmc
from sklearn.neural_network import MLPRegressor

from benchmarks.timing import Limit, Table, best, summarize
from skattr import MeasureExplainer
from skattr.measures import Uniform

GRIDS = {2: 1000, 3: 100, 4: 30}  # N of the authors' settings
POINTS = 2**20
VALUES = np.linspace(-0.9, 0.9, 50)  # over which the time of skattr is averaged
CHUNK = 2**16


def network(d, seed=0):
    """Return a perceptron d-16-16-1 with random weights."""
    rng = np.random.default_rng(seed)
    model = MLPRegressor(hidden_layer_sizes=(16, 16), max_iter=1)
    X = rng.uniform(-1, 1, (64, d))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, X[:, 0])
    shapes = [coef.shape for coef in model.coefs_]
    model.coefs_ = [rng.normal(size=(p, m)) / np.sqrt(p) for p, m in shapes]
    model.intercepts_ = [0.3 * rng.normal(size=m) for _, m in shapes]
    return model, X


def forward(model, X):
    """Return f(X), computed by numpy in place."""
    for weight, bias in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        X = X @ weight
        X += bias
        np.maximum(X, 0, out=X)
    return X @ model.coefs_[-1][:, 0] + model.intercepts_[-1][0]


def authors(f, d, t, n):
    """Return the sum over cells of f(lower corner) · Σ_ε (-1)^{|ε|} g(corner)."""
    edges = np.linspace(-1, 1, n + 1)

    def g(y):  # 1[y_0 >= t] times the uniform distribution function of the others
        return (y[:, 0] >= t) * np.prod((y[:, 1:] + 1) / 2, axis=1)

    total = 0.0
    for start in range(0, n**d, CHUNK):
        cells = np.arange(start, min(start + CHUNK, n**d))
        index = np.stack(np.unravel_index(cells, (n,) * d), axis=1)
        increment = np.zeros(len(cells))
        for corner in product((0, 1), repeat=d):
            increment += (-1) ** sum(corner) * g(edges[index + np.array(corner)])
        total += f(edges[index]) @ increment
    return total


def sobol(f, u, t):
    """Return the mean over points of the other sides."""
    total = 0.0
    for start in range(0, len(u), CHUNK):
        block = u[start : start + CHUNK]
        total += f(np.column_stack([np.full(len(block), t), 2 * block - 1])).sum()
    return total / len(u)


def simpson(f, d, t):
    """Return the composite Simpson rule on the d - 1 other sides."""
    try:
        import torch
        from torchquad import Simpson
    except ImportError:
        return composite_simpson(f, d, t)
    rule = Simpson()

    def at(y):
        y = y.numpy()
        return torch.from_numpy(f(np.column_stack([np.full(len(y), t), y])))

    domain = torch.tensor([[-1.0, 1.0]] * (d - 1), dtype=torch.float64)
    whole = rule.integrate(at, dim=d - 1, N=POINTS - 1, integration_domain=domain, backend="torch")
    return float(whole) / 2 ** (d - 1)


def composite_simpson(f, d, t):
    """Return the same rule, where torchquad is not installed."""
    n = int(POINTS ** (1 / (d - 1)))
    n -= 1 - n % 2  # an odd number of nodes
    nodes = np.linspace(-1, 1, n)
    weights = np.full(n, 2.0)
    weights[1::2], weights[[0, -1]] = 4.0, 1.0
    weights /= weights.sum()
    y = np.stack(np.meshgrid(*[nodes] * (d - 1), indexing="ij"), axis=-1).reshape(-1, d - 1)
    w = np.array([1.0])
    for _ in range(d - 1):
        w = np.multiply.outer(w, weights).reshape(-1)
    return f(np.column_stack([np.full(len(y), t), y])) @ w


def truth(explainer, d, t):
    """Return the value from regions that are cut by all layers, each integrated by a cone sum."""
    total = 0.0
    sides = [(t, t)] + [(-1.0, 1.0)] * (d - 1)
    for a, b, vertices, volume in explainer.pieces_.regions(sides):
        y = vertices[:, 1:]
        if d == 2 or volume < 1e-13:  # an interval, or too flat for Qhull
            mean = y.mean(axis=0)
        else:
            simplices = y[Delaunay(y).simplices]
            volumes = np.abs(np.linalg.det(simplices[:, 1:] - simplices[:, :1]))
            mean = volumes @ simplices.mean(axis=1) / volumes.sum()
        total += volume * (a[0, 0] * t + a[0, 1:] @ mean + b[0])
    return total / 2 ** (d - 1)


def show(options=None):
    """Print times and errors for d = 2, 3, 4; return the checks."""
    columns = ["d = 2", "d = 3", "d = 4"]
    times = Table("seconds for one value", columns)
    ratios = Table("times slower than cells", columns)
    errors = Table("error / sd of f", columns)
    t = 0.3137
    found = {name: [] for name in ("cells", "authors", "sobol", "simpson")}
    off = {name: [] for name in found}
    for d in GRIDS:
        model, X = network(d)
        f = partial(forward, model)
        explainer = MeasureExplainer(model, Uniform(), domain=[(-1, 1)] * d).fit(X)
        curve = explainer.curve(0)
        u = qmc.Sobol(d - 1, seed=0).random(POINTS)
        spread = f(np.random.default_rng(0).uniform(-1, 1, (10_000, d))).std()
        wanted = truth(explainer, d, t)
        calls = {
            "authors": partial(authors, f, d, t, GRIDS[d]),
            "sobol": partial(sobol, f, u, t),
            "simpson": partial(simpson, f, d, t),
        }
        found["cells"].append(best(lambda curve=curve: curve(VALUES)) / len(VALUES))
        off["cells"].append(abs(curve([t])[0] - wanted) / spread)
        for name, call in calls.items():
            found[name].append(best(call, repeat=3))
            off[name].append(abs(call() - wanted) / spread)
    fast = np.array(found["cells"])
    limits = {"authors": [500, 500, 500], "sobol": [None, 100, 20], "simpson": [None, 100, 20]}
    for name in found:
        times.add(name, found[name])
        if name == "cells":
            errors.add(name, off[name], [Limit("≤", 1e-12)] * 3)
            continue
        bounds = [bound and Limit("≥", bound) for bound in limits[name]]
        ratios.add(name, list(np.array(found[name]) / fast), bounds)
        errors.add(name, off[name])
    gains = Table("error / that of cells (at least 1e-16)", columns)
    for name in ("sobol", "simpson"):
        gain = np.array(off[name]) / np.maximum(off["cells"], 1e-16)
        gains.add(name, list(gain), [None, Limit("≥", 1e5), Limit("≥", 1e5)])
    checks = []
    for table in (times, ratios, errors, gains):
        checks = [*checks, *table.show()]
    return checks


if __name__ == "__main__":
    summarize(show())

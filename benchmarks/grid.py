"""``python -m benchmarks grid``: sums over grids and quasi-random points, for models of any kind.

1. Riemann-Stieltjes sums of d integrands at one row, against the method of the paper's code,
   written again in torch (`corner_sums`): all 2^d corners of every cell for every integrand, f at
   the lower corner. As published: single precision, all cells at once; tuned: double precision, in
   batches that fit into the cache. skattr uses double precision. f is free: it returns ones.
2. Evaluations of a smooth f for the same error: the lower-corner sum over N^d cells, which
   evaluates f once for all columns, against all levels and columns of one row in skattr.
3. Evaluations where columns are points (Dirac): only the free columns count.
4. Quasi-random against random points, 16 × 1024 of them: root mean square errors over columns and
   seeds. Both estimate the same attributions; random points are drawn for each column.
5. The time of `explain` beyond the time that the model spends on its points.

Times are CPU seconds of one thread, the best of several. A number in parentheses is a limit.
"""

import argparse
import time
import warnings

import numpy as np
import torch
from scipy.stats import qmc
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVR

from benchmarks.timing import Table, at_least, at_most, best, summarize
from skattr import MeasureExplainer
from skattr.engines import QuasiMonteCarlo, Riemann
from skattr.engines.evaluation.backends import Host
from skattr.engines.evaluation.grid_cells import add_up, cells
from skattr.measures import ProductMarginal, Stieltjes, Uniform

GRIDS = {(2, 1000): 4, (4, 30): 20, (6, 8): 40}  # (d, N): how many times faster, at least
BATCH = 2**12  # cells per batch of the tuned peer
FEWER = 100  # evaluations, at least
REPLICATES, POINTS = 16, 1024
SEEDS = 10
RATIOS = {"smooth": (10, 5, 3), "kinked": (8, 5, 3)}  # of the errors at d = 5, 10, 20, at least
OVERHEAD = 0.2  # of the model's own time, at most


def warm_up(y, x, j):
    """δ at x_j, uniform in the other columns: the paper's section 3.1 in any dimension."""
    value = 1.0 * (y[..., j] >= x[j])
    for k in range(y.shape[-1]):
        if k != j:
            value = value * y[..., k]
    return value


def smooth(y, x, j):
    """y_j² ∏ (y_k + x_k): every cell has weight."""
    value = y[..., j] * y[..., j]
    for k in range(y.shape[-1]):
        if k != j:
            value = value * (y[..., k] + x[k])
    return value


def corner_sums(g, x, n, f, dtype=torch.float64, batch=None):
    """Return Σ_cells f(lower corner) Δ(g_j; cell) for each column j, on n^d cells of [0, 1]^d."""
    d = len(x)
    x = torch.as_tensor(x, dtype=dtype)
    ends = torch.linspace(0, 1, n + 1, dtype=dtype)
    corners = torch.cartesian_prod(*[torch.tensor([0, 1])] * d).reshape(-1, d)
    signs = ((-1) ** (d - corners.sum(dim=1))).to(dtype)
    sums = torch.zeros(d, dtype=dtype)
    for start in range(0, n**d, batch or n**d):
        cell = torch.arange(start, min(start + (batch or n**d), n**d))
        place = torch.stack([cell // n**k % n for k in range(d)], dim=-1)
        values = f(ends[place])
        y = ends[place[:, None] + corners]  # (cells, 2^d, d)
        for j in range(d):
            sums[j] += (values * (signs * g(y, x, j)).sum(dim=-1)).sum()
    return sums.numpy()


class Free:
    """f = 1, at no cost."""

    names = ("one",)
    estimator = None
    ones = np.ones((2**16, 1))

    def __call__(self, X):
        """Return ones."""
        return self.ones[: len(X)]


def fitted(g, d):
    """Return the measure of an integrand on [0, 1]^d."""
    return Stieltjes(g).fit(np.array([[0.0] * d, [1.0] * d]))


def show_grids():
    """Print times of sums over grids; return the checks."""
    table = Table(
        "∫ f dg_j for all j, f free",
        ["skattr, ms", "times faster than published", "than tuned", "largest difference"],
    )
    for g in (warm_up, smooth):
        for (d, n), limit in GRIDS.items():
            x = np.linspace(0.3, 0.8, d)
            measure = fitted(g, d)

            def ours(m=measure, x=x, n=n, d=d):
                one = x[None]
                return [add_up(cells(Host(), m, one, (j,), n, "left"), Free())[0] for j in range(d)]

            def ones(y):
                return torch.ones(len(y), dtype=y.dtype)

            def peer(g=g, x=x, n=n, f=ones, **how):
                return corner_sums(g, x, n, f, **how)

            small = {"dtype": torch.float64, "batch": BATCH}
            seconds = best(ours)
            published = best(lambda p=peer: p(dtype=torch.float32), 3)
            tuned = best(lambda p=peer, small=small: p(**small), 3)
            gap = np.abs(np.array(ours()) - peer(**small)).max()
            table.add(
                f"{g.__name__}, d = {d}, N = {n}",
                [1e3 * seconds, published / seconds, tuned / seconds, gap],
                [None, *at_least(limit), None, *at_most(1e-9)],
            )
    return table.show()


class Counted:
    """A function that counts the rows it is evaluated at."""

    def __init__(self, function):
        self.function = function
        self.rows = 0

    def __call__(self, X):
        """Count the rows and evaluate the function."""
        self.rows += len(X)
        return self.function(X)


def wave(X):
    """Return exp of a sum, times a wave: a smooth function of all columns."""
    return np.exp(X.sum(axis=1) / 2) * np.cos(X[:, 0] + 2 * X[:, -1])


def unit(d, rows=2):
    """Return a background whose range is [0, 1]^d."""
    X = np.random.default_rng(0).random((rows, d))
    X[0], X[1] = 0.0, 1.0
    return X


def explained(f, measure, x, **settings):
    """Return the values of one row, and the number of evaluations in `explain`."""
    counted = Counted(f)
    explainer = MeasureExplainer(counted, measure, tol=np.inf, **settings).fit(unit(len(x)))
    counted.rows = 0
    values = explainer.explain(x[None], predictions=False).values[0]
    return values, counted.rows


def exact(f, x, points=40):
    """Return ∫ f(x_j, y_-j) dy_-j over the unit cube for each j, by Gauss-Legendre nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    nodes, weights = (nodes + 1) / 2, weights / 2
    d = len(x)
    values = []
    for j in range(d):
        grid = np.meshgrid(*[nodes] * (d - 1), indexing="ij")
        share = np.prod(np.meshgrid(*[weights] * (d - 1), indexing="ij"), axis=0)
        others = np.stack([axis.ravel() for axis in grid], axis=1)
        values.append(share.ravel() @ f(np.insert(others, j, x[j], axis=1)))
    return np.array(values)


def fewest(measure, x, truth, error, rule):
    """Return the evaluations of the smallest grid whose error is not larger, and its error."""
    points = 2
    while True:
        engine = Riemann(rule=rule, points=points)
        values, rows = explained(wave, measure, x, engine=engine, max_evals=1e7)
        if np.abs(values - truth).max() <= error:
            return rows, np.abs(values - truth).max()
        points += 1 if points < 16 else points // 4


def show_evaluations():
    """Print the number of evaluations of f for the same error; return the checks."""
    table = Table(
        "evaluations of f, one row, all columns",
        ["lower corners", "their error", "skattr", "its error", "times fewer"],
    )
    measures = {
        "Uniform": (Uniform(), "gauss"),
        "a general integrand": (Stieltjes(warm_up), "midpoint"),
    }
    for d, n in ((2, 300), (3, 50), (4, 20)):
        x = np.linspace(0.35, 0.85, d)
        truth = exact(wave, x)
        sums = corner_sums(warm_up, x, n, lambda y: torch.as_tensor(wave(y.numpy())), batch=BATCH)
        error = np.abs(sums - truth).max()
        for name, (measure, rule) in measures.items():
            rows, reached = fewest(measure, x, truth, error, rule)
            table.add(
                f"{name}, d = {d}, N = {n}",
                [n**d, error, rows, reached, n**d / rows],
                [None, None, None, None, *at_least(FEWER)],
            )
    return table.show()


def show_diracs():
    """Print the number of evaluations of f where columns are points; return the checks."""
    d, side, n_values = 10, 8, 5
    levels = (2, 3, side)  # as the error is the difference of levels
    background = unit(d, 50)
    background[:, 3:] = 0.5
    stepped = np.floor(background * n_values)  # columns of a few values: atoms
    grid = sum(n**2 for n in levels)
    cases = (
        (Uniform(), background, Riemann(points=side), grid),
        (Stieltjes(warm_up), background, Riemann("midpoint", side), grid),
        (ProductMarginal(), stepped, "finite_grid", (n_values + 1) ** 2),
    )
    table = Table(
        f"evaluations of f for one value, d = {d}, 2 columns free", ["evaluations", "÷ free grid"]
    )
    for measure, X, engine, alone in cases:
        counted = Counted(wave)
        explainer = MeasureExplainer(counted, measure, engine=engine).fit(X)
        counted.rows = 0
        explainer.explain(X[2:3], features=["x0"], predictions=False)
        ratio = counted.rows / alone
        table.add(type(measure).__name__, [counted.rows, ratio], [None, *at_most(1)])
    return table.show()


def product_of_waves(d):
    """Return a smooth function of d columns that is not a sum of functions of few columns."""
    scale = np.random.default_rng(d).uniform(0.5, 1.5, d) * 3 / np.sqrt(d)
    return lambda X: np.exp(X @ scale / 2) * np.cos(X @ scale[::-1])


def relu_network(d, width=32):
    """Return a random network with one layer of ReLUs, as torch starts them."""
    rng = np.random.default_rng(d)
    first, bias = rng.uniform(-1, 1, (d, width)) / np.sqrt(d), rng.uniform(-1, 1, width)
    last = rng.uniform(-1, 1, width) / np.sqrt(width)
    shift = bias / np.sqrt(d) - 0.5 * first.sum(axis=0)  # kinks in the middle of the cube
    return lambda X: np.maximum(X @ first + shift, 0) @ last


def nearly_exact(f, x):
    """Return ∫ f(x_j, y_-j) dy_-j for each j by 2^20 quasi-random points."""
    sums = np.zeros(len(x))
    sobol = qmc.Sobol(len(x), seed=np.random.default_rng(12345))
    for _ in range(16):
        y = sobol.random(2**16)
        for j in range(len(x)):
            kept = y[:, j].copy()
            y[:, j] = x[j]
            sums[j] += f(y).sum()
            y[:, j] = kept
    return sums / 2**20


def sampling_errors(f, x, truth):
    """Return the root mean square errors of quasi-random and of random points."""
    d = len(x)
    errors, random = [], []
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all points are used up: that is the comparison
            explainer = MeasureExplainer(
                f, Uniform(), engine=QuasiMonteCarlo(REPLICATES), tol=1e-12,
                max_evals=REPLICATES * POINTS, random_state=seed,
            )  # fmt: skip
            errors.append(explainer.fit(unit(d)).explain(x[None]).values[0] - truth)
        rng = np.random.default_rng(seed)
        for j in range(d):
            y = rng.random((REPLICATES * POINTS, d))
            y[:, j] = x[j]
            random.append(f(y).mean() - truth[j])
    return np.sqrt(np.mean(np.square(errors))), np.sqrt(np.mean(np.square(random)))


def show_sampling():
    """Print how much smaller the errors of quasi-random points are; return the checks."""
    table = Table(
        f"{REPLICATES} × {POINTS} points, {SEEDS} seeds",
        ["random", "quasi-random", "times smaller"],
    )
    for kind, model in (("smooth", product_of_waves), ("kinked", relu_network)):
        for d, limit in zip((5, 10, 20), RATIOS[kind], strict=True):
            x, f = np.linspace(0.2, 0.9, d), model(d)
            ours, random = sampling_errors(f, x, nearly_exact(f, x))
            limits = [None, None, *at_least(limit)]
            table.add(f"{kind}, d = {d}", [random, ours, random / ours], limits)
    return table.show()


class Timed:
    """A model that adds up the time of its own predictions."""

    def __init__(self, model):
        self.function = model.predict  # not "predict": it would be taken for an estimator
        self.seconds = 0.0

    def __call__(self, X):
        """Predict, with a clock."""
        start = time.process_time()
        values = self.function(X)
        self.seconds += time.process_time() - start
        return values


def overhead(model, X, rows, **settings):
    """Return the smallest time of `explain` beyond the model's own, as a share of that."""
    timed = Timed(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # max_evals says when to stop
        explainer = MeasureExplainer(timed, random_state=0, **settings).fit(X)
        shares = []
        for _ in range(5):
            timed.seconds = 0.0
            start = time.process_time()
            explainer.explain(rows, predictions=False)
            shares.append((time.process_time() - start) / timed.seconds - 1)
    return min(shares)


def show_overhead():
    """Print the time of `explain` beyond the model's own; return the checks."""
    rng = np.random.default_rng(0)
    X = rng.random((1000, 4))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(0, 0.1, len(X))
    models = {
        "MLPRegressor": MLPRegressor(max_iter=200, random_state=0),
        "SVR": SVR(),
        "KNeighborsRegressor": KNeighborsRegressor(),
        "RandomForestRegressor": RandomForestRegressor(random_state=0),
    }
    grid = {"engine": Riemann(points=20), "max_evals": 1e6}
    jobs = {
        "Uniform, grid of 20³": {"measure": Uniform(), **grid},
        "an integrand, grid of 20⁴": {"measure": Stieltjes(smooth), **grid},
        "Uniform, 16 × 1024 points": {
            "measure": Uniform(), "engine": QuasiMonteCarlo(), "tol": 1e-12, "max_evals": 2**14,
        },
    }  # fmt: skip
    table = Table("explain ÷ predict on the same points, less 1", list(jobs))
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it need not converge
            model.fit(X, y)
        rows = X[: 10 if name == "MLPRegressor" else 2]  # the others are slow
        found = [overhead(model, X, rows, **settings) for settings in jobs.values()]
        table.add(name, found, at_most(*[OVERHEAD] * len(found)))
    return table.show()


def main(arguments):
    """Print the tables, and say which limits hold."""
    torch.set_num_threads(1)
    shows = {
        "grids": show_grids,
        "evaluations": show_evaluations,
        "diracs": show_diracs,
        "sampling": show_sampling,
        "overhead": show_overhead,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks grid", description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[*shows, []], help="all by default")
    chosen = parser.parse_args(arguments).tables or list(shows)
    summarize([check for name in chosen for check in shows[name]()])

"""Complete curves of ReLU networks against batched forward passes: ``relu --lines``.

Without curves, each of 1000 values is put into all 500 rows, and torch evaluates these (in float32,
without gradients), some values at a time; the best of several batch sizes counts. CPU seconds of
one thread. A curve has all its knots, and is exact in float64.
"""

from itertools import pairwise

import numpy as np

from benchmarks.timing import Table, at_least, at_most, best

COLUMNS, ROWS, VALUES = 30, 500, 1000
NETWORKS = {"128": (128,), "128-128": (128, 128), "128-128-128": (128, 128, 128)}
LIMITS = {"128": None, "128-128": at_least(20), "128-128-128": at_least(10)}
BATCHES = (1, 4, 16)  # values at a time


def network(hidden, seed=0):
    """Return a torch module as it is initialised."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    widths = (COLUMNS, *hidden, 1)
    layers = []
    for p, m in pairwise(widths):
        layers += [torch.nn.Linear(p, m), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def forward_passes(module, X, values, batch):
    """Return the partial dependence of column 0 at some values."""
    import torch

    found = []
    rows = torch.tensor(X, dtype=torch.float32)
    with torch.no_grad():
        for start in range(0, len(values), batch):
            some = torch.tensor(values[start : start + batch], dtype=torch.float32)
            Z = rows.repeat(len(some), 1)
            Z[:, 0] = some.repeat_interleave(len(rows))
            found.append(module(Z).reshape(len(some), len(rows)).mean(dim=1))
    return torch.cat(found).numpy()


def error(pieces, X, curve):
    """Return the largest distance to forward passes in float64, in units of the spread of f."""
    x = curve.to_frame()["x"].to_numpy()
    x = x[(x > X[:, 0].min()) & (x < X[:, 0].max())]
    x = np.random.default_rng(0).choice(x, 300)
    x = np.concatenate([x, (x[1:] + x[:-1]) / 2])
    wanted = []
    for value in x:
        Z = X.copy()
        Z[:, 0] = value
        wanted.append(pieces.forward(Z).mean())
    return np.abs(curve(x) - wanted).max() / pieces.forward(X).std()


def measure(hidden):
    """Return seconds for all values by forward passes and for a curve, its knots and its error."""
    from skattr import MeasureExplainer
    from skattr.engines import RunOptions
    from skattr.engines.relu.lines import Lines

    module = network(hidden)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    values = rng.normal(size=VALUES)
    explainer = MeasureExplainer(module, "partial_dependence").fit(X)
    pieces, (term,) = explainer.pieces_, explainer._solution.terms
    curve = explainer.curve(0)
    some = values[: VALUES // 10]
    slow = min(best(lambda b=b: forward_passes(module, X, some, b), 3) for b in BATCHES) * 10
    fast = best(lambda: Lines().finish(pieces, term.passes[0].state, RunOptions(1)), 5) / COLUMNS
    look = best(lambda: curve(values), 10)
    return slow, fast, look, len(curve.to_frame()), error(pieces, X, curve)


def show(options):
    """Print the table; return its checks."""
    table = Table(
        f"{COLUMNS} columns, {ROWS} rows, {VALUES} values",
        ["torch passes (s)", "curve (s)", "lookup (s)", "ratio", "knots", "error ÷ spread"],
    )
    for name, hidden in NETWORKS.items():
        slow, fast, look, knots, off = measure(hidden)
        limit = LIMITS[name][0] if LIMITS[name] else None
        limits = [None, None, None, limit, None, at_most(1e-12)[0]]
        table.add(name, [slow, fast, look, slow / (fast + look), knots, off], limits)
    return table.show()

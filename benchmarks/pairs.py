"""``python -m benchmarks pairs``: exact pairs of columns of forests and boosting.

Times are CPU seconds of one thread, the best of several warm calls, all in one process. Calls stop
after ten seconds, so that what takes longer is timed once. A number in parentheses is a limit that
must hold.
"""

import argparse
import importlib.util
import subprocess
import sys
from itertools import combinations

import numpy as np
import pandas as pd
from sklearn.inspection import partial_dependence

from benchmarks import shapley_interactions
from benchmarks.peers import n_trees, shorter
from benchmarks.timing import Table, at_least, at_most, best, summarize
from benchmarks.trees import MODELS, explainer_of, friedman

LIMITS = {  # in the order of MODELS
    "weights": at_most(3, 10, 40),
    "surface": at_least(2000, 500, 200),
    "values": at_most(20, 60, 300),
    "error": at_most(1e-12, 1e-12, 1e-12),
    "memory": at_most(2000, 2000, 2000),
    "woodelf": at_least(20, 20, 20),
}
SECTIONS = ("speed", "surfaces", "shapley", "memory", "columns")
COARSE = 20  # values of each column of all surfaces
SHARES = {"HGB": 0.1, "depth 10": 0.02, "unlimited": 0.01}  # of the trees, which woodelf runs on
GRID = 50  # values of each column of a surface
# prints the largest resident memory of `fit` and of all pairs, beyond that of the model
MEMORY = """
import resource, sys
from benchmarks.trees import MODELS, explainer_of, friedman
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
X, y = friedman(10_000)
model = MODELS[sys.argv[1]].fit(X, y)
before = peak()
explainer_of(model).fit(X).explain_pairs(X[:1], predictions=False)
print(peak() - before)
"""


def limits(key, models):
    """Return the limits of the models that run, or None."""
    if key not in LIMITS:
        return None
    return [limit for name, limit in zip(MODELS, LIMITS[key], strict=True) if name in models]


def weigh_pairs(model, X):
    """Fit an explainer and compute the weights of all pairs."""
    explainer = explainer_of(model).fit(X)
    explainer.explain_pairs(X[:1], predictions=False)
    return explainer


def brute_force(model, X, options):
    """Return the seconds of scikit-learn's partial dependence of one pair on a grid.

    Few points are timed; the time of the others is the same, one `predict` each.
    """
    few = 3 if options.quick else 7

    def run():
        partial_dependence(
            model, X, [(0, 1)], method="brute", kind="average", grid_resolution=few,
            percentiles=(0, 1),
        )  # fmt: skip

    return best(run, 2) * (GRID / few) ** 2


def error(model, X, explainer, n_rows):
    """Return the largest error of all pairs at some rows, as a share of the spread of f."""
    rows = X[np.random.default_rng(2).integers(0, len(X), n_rows)]
    values = explainer.explain_pairs(rows, predictions=False).values
    largest, mean = 0.0, model.predict(X).mean()

    def pinned(x, *columns):
        Z = X.copy()
        Z[:, columns] = x[list(columns)]
        return model.predict(Z).mean()

    for x, found in zip(rows, values, strict=True):
        alone = [pinned(x, j) for j in range(X.shape[1])]
        for value, (j, k) in zip(found, combinations(range(X.shape[1]), 2), strict=True):
            wanted = pinned(x, j, k) - alone[j] - alone[k] + mean
            largest = max(largest, abs(value - wanted))
    return largest / model.predict(X).std()


def surface_on_grid(explainer):
    """Return the surface of one pair on a grid."""
    values = np.linspace(0.0, 1.0, GRID)
    return explainer.surface(0, 1).grid(values, values)


def measure(models, X, options):
    """Return {row: one number per model}: times of skattr and of scikit-learn, and the error."""
    out = {
        key: [] for key in ("predict", "weights", "surface", "first", "values", "brute", "error")
    }
    for model in models.values():
        out["predict"].append(best(lambda m=model: m.predict(X)))
        out["weights"].append(best(lambda m=model: weigh_pairs(m, X), 3))
        explainer = weigh_pairs(model, X)
        out["surface"].append(best(lambda e=explainer: surface_on_grid(e)))
        fresh = [explainer_of(model).fit(X) for _ in range(3)]
        out["first"].append(best(lambda f=fresh: surface_on_grid(f.pop()), 2))
        out["values"].append(best(lambda e=explainer: e.explain_pairs(X, predictions=False), 3))
        out["brute"].append(brute_force(model, X, options))
        out["error"].append(error(model, X, explainer, 1 if options.quick else 3))
    return out


SECONDS = {
    "predict": "predict",
    "weights": "fit and the weights of all 45 pairs",
    "surface": f"one {GRID} × {GRID} surface",
    "first": f"one {GRID} × {GRID} surface, no pair weighed before",
    "values": "all 45 pairs of all rows",
    "brute": f"scikit-learn, brute, one pair on {GRID} × {GRID}, from fewer points",
}
RATIOS = {  # key of the limit: label, above the line, below it
    "weights": ("fit and weights of all pairs ÷ predict", "weights", "predict"),
    "surface": ("surface, times faster than scikit-learn", "brute", "surface"),
    "first surface": ("first surface, times faster than scikit-learn", "brute", "first"),
    "values": ("all pairs of all rows ÷ predict", "values", "predict"),
}


def show_speed(models, X, options):
    """Print seconds, then ratios with their limits; return the checks."""
    out = measure(models, X, options)
    seconds = Table(f"CPU seconds, {len(X)} rows", list(models))
    for key, label in SECONDS.items():
        seconds.add(label, out[key])
    ratios = Table("ratios", list(models))
    for key, (label, above, below) in RATIOS.items():
        values = [a / b for a, b in zip(out[above], out[below], strict=True)]
        ratios.add(label, values, limits(key, models))
    ratios.add("largest error ÷ spread", out["error"], limits("error", models))
    print()
    seconds.show()
    return ratios.show()


def all_surfaces(model, X, values):
    """Fit an explainer, and return the surfaces of all pairs on a grid."""
    explainer = weigh_pairs(model, X)
    pairs = combinations(range(X.shape[1]), 2)
    return {(j, k): explainer.surface(j, k).grid(values[j], values[k]) for j, k in pairs}


def show_surfaces(models, X):
    """Print the time of all 45 surfaces against woodelf's joint partial dependence."""
    if importlib.util.find_spec("woodelf") is None:
        print("woodelf-explainer is not installed: its surfaces are left out")
        return []
    from woodelf.pdp import woodelf_pdp_joint

    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    values = np.quantile(X, np.linspace(0.05, 0.95, COARSE), axis=0).T
    table = Table(f"CPU seconds, all 45 surfaces on {COARSE} × {COARSE}", list(models))
    ours, theirs = [], []
    for name, model in models.items():
        ours.append(best(lambda m=model: all_surfaces(m, X, values), 2))
        n = max(1, round(n_trees(model) * SHARES[name]))
        part = shorter(model, n)

        def run(part=part):
            woodelf_pdp_joint(part, frame, k=COARSE, verbose=False)

        theirs.append(best(run, 1, warm=False) * n_trees(model) / n)
    shares = ", ".join(f"{SHARES[name]:.0%}" for name in models)
    table.add("skattr, with fit", ours)
    table.add(f"woodelf, from {shares} of the trees", theirs)
    ratio = [a / b for a, b in zip(theirs, ours, strict=True)]
    table.add("times faster than woodelf", ratio, limits("woodelf", models))
    return table.show()


def show_memory(models):
    """Print what `fit` and all pairs take beyond the model, each in a fresh process."""
    table = Table("memory (MB)", list(models))
    peaks = [
        float(subprocess.check_output([sys.executable, "-c", MEMORY, name])) for name in models
    ]
    table.add("fit and all 45 pairs", peaks, limits("memory", models))
    return table.show()


def show_columns():
    """Print the time of all pairs of 50 columns."""
    rng = np.random.default_rng(0)
    X, y = friedman(10_000)
    X = np.concatenate([X, rng.random((len(X), 40))], axis=1)
    y = y + X[:, 10:] @ rng.normal(size=40)
    table = Table("CPU seconds, 50 columns, 1225 pairs", list(MODELS))
    times = {"fit and weights": [], "all pairs of 1000 rows": []}
    for model in MODELS.values():
        model.fit(X, y)
        times["fit and weights"].append(best(lambda m=model: weigh_pairs(m, X), 1, warm=False))
        explainer = weigh_pairs(model, X)
        values = best(lambda e=explainer: e.explain_pairs(X[:1000], predictions=False), 1)
        times["all pairs of 1000 rows"].append(values)
    for label, values in times.items():
        table.add(label, values)
    table.show()
    return []


def main(arguments):
    """Train the models, print every table, and say which limits hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks pairs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer points and rows")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    options = parser.parse_args(arguments)
    checks = []
    X, y = friedman(10_000)
    models = {name: MODELS[name] for name in options.models}
    if {"speed", "surfaces"} & set(options.only):
        models = {name: model.fit(X, y) for name, model in models.items()}
    if "speed" in options.only:
        checks += show_speed(models, X, options)
    if "surfaces" in options.only:
        checks += show_surfaces(models, X)
    if "shapley" in options.only:
        shapley_interactions.main(["--quick"] if options.quick else [])
    if "memory" in options.only:
        checks += show_memory(models)
    if "columns" in options.only:
        checks += show_columns()
    summarize(checks)

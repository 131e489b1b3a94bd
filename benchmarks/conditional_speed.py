"""Time and memory of conditional measures: ``python -m benchmarks conditional --speed``.

CPU seconds of one thread, the best of several warm calls, as in `benchmarks.trees`, and as ratios
to `predict` of the same rows. Peaks of memory are those of a fresh process.
"""

import os
import pickle
import tempfile

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from benchmarks.memory import MB, child
from benchmarks.pipelines import forest_pipeline, is_black_box, mixed
from benchmarks.timing import Table, at_most, best
from benchmarks.trees import friedman

ROWS = 10_000
LEARN = (100_000, 20)  # rows and columns of the measure that is learned alone
LEARN_SECONDS = 5
LIMITS = {"fit": at_most(25, 30), "explain": at_most(0.5, 0.8)}  # forest, pipeline
MEGABYTES = 1000


def factors(n, d, seed=0):
    """Return X (n, d) with different values everywhere: three normal factors in shares, and noise.

    Every other column is the exponential of such a number, so half of them are skewed.
    """
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((3, d)) / 2
    X = rng.standard_normal((n, 3)) @ loadings + rng.standard_normal((n, d)) / 2
    X[:, ::2] = np.exp(X[:, ::2])
    return X


def conditional(model):
    """Return an explainer, not fitted yet."""
    from skattr import MeasureExplainer

    return MeasureExplainer(model, measure="conditional")


def models():
    """Return {name: (fitted model, its rows)}."""
    X, y = friedman(ROWS)
    forest = RandomForestRegressor(100, max_depth=10, random_state=0).fit(X, y)
    frame, target = mixed(ROWS)
    return {
        "depth 10": (forest, X),
        "scaler, one-hot, depth 10": (forest_pipeline().fit(frame, target), frame),
    }


def peak(task, stored, *arguments):
    """Return the peak of a task in a fresh process, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stored.pkl")
        with open(path, "wb") as file:
            pickle.dump(stored, file)
        return child(task, path, *arguments)["peak"] / MB


def show_learning():
    """Print time and memory of learning the measure alone; return the checks."""
    from skattr.measures import Conditional

    rows, columns = LEARN
    X = factors(rows, columns)
    Conditional().fit(X[:1000])  # loads the compiled kernels
    table = Table(f"learning the measure, {rows:,} × {columns}", ["Conditional().fit(X)"])
    table.add("CPU seconds", [best(lambda: Conditional().fit(X), 3)], at_most(LEARN_SECONDS))
    table.add("peak of the process (MB)", [peak("learn", X)], at_most(MEGABYTES))
    return table.show()


def show_models():
    """Print `fit` and `explain` as seconds and as ratios to `predict`; return the checks."""
    found = models()
    out = {"predict": [], "fit": [], "explain": [], "peak": []}
    for model, X in found.values():
        explainer = conditional(model).fit(X)
        if is_black_box(explainer):
            raise RuntimeError(f"a black box was timed: {explainer.describe()}")
        out["predict"].append(best(lambda m=model, X=X: m.predict(X)))
        out["fit"].append(best(lambda m=model, X=X: conditional(m).fit(X)))
        out["explain"].append(best(lambda e=explainer, X=X: e.explain(X, predictions=False).values))
        out["peak"].append(peak("fit", (model, X), "conditional"))
    seconds = Table(f"CPU seconds, {ROWS} rows", list(found))
    labels = {"predict": "predict", "fit": "fit, all curves", "explain": "explain, no predictions"}
    for key, label in labels.items():
        seconds.add(label, out[key])
    ratios = Table("ratios", list(found))
    for key, limits in LIMITS.items():
        values = np.array(out[key]) / out["predict"]
        ratios.add(f"{labels[key]} ÷ predict", list(values), limits)
    ratios.add("peak of the process during fit (MB)", out["peak"], at_most(MEGABYTES, MEGABYTES))
    seconds.show()
    return ratios.show()


def show_speed(options):
    """Print both parts; return the checks."""
    return show_learning() + show_models()

"""Measurements that need a process of their own: memory, import time, compilation.

Each measurement runs in a fresh process, ``python -m benchmarks.memory TASK ...``, which prints
one line of JSON. Peaks are read from VmHWM, which a process can reset; ``ru_maxrss`` cannot be
reset and starts at the size of the parent process, so it is used only where ``/proc`` is missing
(the numbers are then upper bounds).
"""

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.timing import Table, at_most

MB = 1e6


def resident(which):
    """Return the resident size in bytes: "VmRSS" now, "VmHWM" the peak since the last reset."""
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
        return int(lines[which].split()[0]) * 1024
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_peak():
    """Reset the peak to the current size, where the system allows it."""
    try:
        with open("/proc/self/clear_refs", "w") as clear:
            clear.write("5")
    except OSError:
        pass


def stored(path):
    """Return what the parent process stored: a model and its background, or rows."""
    with open(path, "rb") as file:
        return pickle.load(file)


def explainer_of(model, measure="partial_dependence"):
    """Return the explainer that is measured, not fitted yet."""
    from skattr import MeasureExplainer

    return MeasureExplainer(model, measure=measure)


def explain_task(path, rows, container):
    """Peak of `explain` on many rows: input, output, and what comes on top of them."""
    import numpy as np
    import pandas as pd

    model, background = stored(path)
    X = np.random.default_rng(1).random((int(rows), background.shape[1]))
    size = X.nbytes
    if container == "frame":
        names = [f"x{j}" for j in range(X.shape[1])]
        model.feature_names_in_ = np.array(names, dtype=object)  # as if it had seen a frame
        background, X = (pd.DataFrame(each, columns=names) for each in (background, X))
    explainer = explainer_of(model).fit(background)
    explainer.explain(X[:1000], predictions=False)  # loads the compiled kernels
    reset_peak()
    before, start = resident("VmRSS"), time.process_time()
    values = explainer.explain(X, predictions=False).values
    seconds, peak = time.process_time() - start, resident("VmHWM")
    extra = peak - before - values.nbytes
    found = {"input": size, "output": values.nbytes, "peak": peak, "extra": extra}
    return {**found, "seconds": seconds}


def fit_task(path, measure="partial_dependence"):
    """Peak of the process during `fit`, and its size before."""
    model, X = stored(path)
    explainer_of(model, measure).fit(X[:10])  # loads the compiled kernels
    reset_peak()
    before = resident("VmRSS")
    explainer_of(model, measure).fit(X)
    return {"before": before, "peak": resident("VmHWM")}


def learn_task(path):
    """Peak of the process while a conditional measure is learned, and its size before."""
    from skattr.measures import Conditional

    X = stored(path)
    Conditional().fit(X[:10])
    reset_peak()
    before = resident("VmRSS")
    Conditional().fit(X)
    return {"before": before, "peak": resident("VmHWM")}


def import_task():
    """CPU seconds of importing the dependencies, and of importing `skattr` after them."""
    start = time.process_time()
    import numba  # noqa: F401
    import numpy  # noqa: F401
    import pandas  # noqa: F401
    import scipy  # noqa: F401
    import sklearn.ensemble  # noqa: F401

    middle = time.process_time()
    import skattr  # noqa: F401

    return {"libraries": middle - start, "skattr": time.process_time() - middle}


def compile_task():
    """CPU seconds and compilations of a first, tiny use of every tree engine."""
    import numpy as np
    from numba.core import event
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    from skattr import MeasureExplainer
    from skattr.measures import PartialDependence, ProductMarginal

    X = np.random.default_rng(0).random((100, 3))
    y = X @ [1.0, 2.0, 3.0]
    models = [RandomForestRegressor(2, random_state=0), HistGradientBoostingRegressor(max_iter=2)]
    models = [model.fit(X, y) for model in models]
    start = time.process_time()
    with event.install_recorder("numba:compile") as recorder:
        for model in models:
            for measure in (PartialDependence(), ProductMarginal()):
                explainer = MeasureExplainer(model, measure=measure).fit(X)
                explainer.explain(X, predictions=False)
                explainer.curve(0)(X[:, 0])
    started = [each for _, each in recorder.buffer if each.is_start]
    return {"seconds": time.process_time() - start, "compiled": len(started)}


TASKS = {
    task.__name__.removesuffix("_task"): task
    for task in (explain_task, fit_task, learn_task, import_task, compile_task)
}


def child(task, *arguments, **environment):
    """Run one task in a fresh process and return what it found."""
    command = [sys.executable, "-m", "benchmarks.memory", task, *map(str, arguments)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def show_memory(models, X, quick):
    """Print peaks of `explain` on many rows and of `fit`; return the checks."""
    rows = 1_000_000 if quick else 10_000_000
    explain = Table(f"memory of explain, {rows:,} rows (MB)", ["array", "frame"])
    fit = Table("memory of fit, 10 000 rows (MB)", list(models))
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: os.path.join(folder, f"{name}.pkl") for name in models}
        for name, model in models.items():
            with open(paths[name], "wb") as file:
                pickle.dump((model, X), file)
        largest = list(paths.values())[-1]
        found = [child("explain", largest, rows, container) for container in explain.columns]
        fits = [child("fit", path) for path in paths.values()]
    for key in ("input", "output", "peak"):
        explain.add(key, [each[key] / MB for each in found])
    extra = [each["extra"] / MB for each in found]  # the limit is for 10 million rows
    explain.add("above input and output", extra, None if quick else at_most(200, 200))
    explain.add("CPU seconds", [each["seconds"] for each in found])
    fit.add("process before fit", [each["before"] / MB for each in fits])
    bounds = [*at_most(1000)] if "unlimited" in models else [None]  # the last model
    bounds = [None] * (len(fits) - 1) + bounds
    fit.add("peak of the process during fit", [each["peak"] / MB for each in fits], bounds)
    print(f"(explain is measured on {list(models)[-1]})")
    return explain.show() + fit.show()


def show_import():
    """Print the CPU time of importing `skattr`, the best of five processes."""
    found = [child("import") for _ in range(5)]
    table = Table("import (CPU seconds, best of 5 processes)", ["seconds"])
    libraries = min(each["libraries"] for each in found)
    table.add("numpy, scipy, sklearn.ensemble, pandas, numba", [libraries])
    table.add("skattr after these", [min(each["skattr"] for each in found)], at_most(0.5))
    return table.show()


def show_cache():
    """Print what a first and a second process compile."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (child("compile", NUMBA_CACHE_DIR=folder) for _ in range(2))
    table = Table("first use of every engine, tiny data", ["empty cache", "second process"])
    table.add("CPU seconds", [cold["seconds"], warm["seconds"]])
    table.add("kernels compiled", [cold["compiled"], warm["compiled"]], [None, *at_most(0)])
    return table.show()


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))

"""``python -m benchmarks cold``: the first `fit` and `explain` on a machine, which compile kernels.

Each case runs in a fresh process with an empty NUMBA_CACHE_DIR, and then in a second one that finds
what the first has compiled. CPU seconds; those of `fit` and `explain` exclude imports and training,
those of `skattr demo` are the whole process. A number in parentheses is a limit that must hold.
"""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

from benchmarks.timing import Table, at_most, summarize

# case -> (model, measure)
CASES = {
    "forest": ("forest", "partial_dependence"),
    "boosting": ("boosting", "partial_dependence"),
    "forest, Conditional": ("forest", "conditional"),
    "forest, ProductMarginal": ("forest", "product_marginal"),
    "MLP, one hidden layer": ((20,), "partial_dependence"),
    "MLP, two hidden layers": ((20, 20), "partial_dependence"),
    "MLP, three hidden layers": ((20, 20, 20), "partial_dependence"),
    "skattr demo": None,
}
LIMITS = {  # CPU seconds
    "forest": 6,
    "boosting": 6,
    "forest, Conditional": 8,
    "MLP, one hidden layer": 10,
    "MLP, two hidden layers": 10,
    "MLP, three hidden layers": 10,
    "skattr demo": 12,
}


def recorder():
    """Return a listener that adds up the CPU seconds of each function that numba compiles."""
    from numba.core import event

    class Recorder(event.Listener):
        def __init__(self):
            self.open, self.seconds = [], {}

        def on_start(self, event):
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__qualname__}"
            self.open.append([name, time.process_time(), 0.0])

        def on_end(self, event):
            name, start, inside = self.open.pop()
            seconds = time.process_time() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds - inside
            if self.open:
                self.open[-1][2] += seconds

    listener = Recorder()
    event.register("numba:compile", listener)
    return listener


def fitted(kind, X, y):
    """Return a small model."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.neural_network import MLPRegressor

    if kind == "forest":
        return RandomForestRegressor(20, random_state=0).fit(X, y)
    if kind == "boosting":
        return HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    return MLPRegressor(hidden_layer_sizes=kind, max_iter=20, random_state=0).fit(X, y)


def run(case):
    """Run a case in this process; print CPU seconds, and those of compiling each function."""
    warnings.simplefilter("ignore")
    listener = recorder()
    if CASES[case] is None:
        from skattr.cli import main

        start = 0.0
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "report.html")
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(None):
                main(["demo", "--out", out])
    else:
        import numpy as np

        from skattr import MeasureExplainer

        kind, measure = CASES[case]
        X = np.random.default_rng(0).random((300, 5))
        model = fitted(kind, X, X @ np.arange(5.0))
        start = time.process_time()
        MeasureExplainer(model, measure).fit(X).explain(X)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "compiled": listener.seconds}))


def child(case, folder):
    """Run a case in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.cold", case]
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def show(case, most):
    """Run a case twice; print where its time goes, and return the numbers of its row."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = child(case, folder), child(case, folder)
    compiled = cold["compiled"]
    total = sum(compiled.values())
    print(f"{case}: {len(compiled)} functions compiled in {total:.1f} s")
    for name, seconds in sorted(compiled.items(), key=lambda each: -each[1])[:most]:
        print(f"  {seconds:5.2f}  {name}")
    return [cold["seconds"], total, warm["seconds"], len(warm["compiled"])]


def main(arguments):
    """Run all cases, or those asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cold", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--kernels", type=int, default=5, help="functions to list (default: 5)")
    options = parser.parse_args(arguments)
    columns = ["empty cache", "of that compiling", "second process", "compiled then"]
    table = Table("CPU seconds", columns)
    for case in options.only:
        limits = [*at_most(LIMITS[case]), None] if case in LIMITS else [None, None]
        table.add(case, show(case, options.kernels), [*limits, None, *at_most(0)])
    print()
    summarize(table.show())


if __name__ == "__main__":
    run(sys.argv[1])

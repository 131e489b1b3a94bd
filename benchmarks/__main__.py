"""Run one benchmark: ``python -m benchmarks NAME [options]``, from the root of the repository."""

import importlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# name -> (module with a function main(arguments), what it prints)
BENCHMARKS = {
    "trees": ("benchmarks.trees", "forests and boosting against predict and peers"),
    "pairs": ("benchmarks.pairs", "surfaces and interactions of all pairs of columns"),
    "report": ("benchmarks.report", "the HTML report of many rows: time and size"),
    "shapley": ("benchmarks.shapley", "Shapley values: trees, kernel machines, black boxes"),
    "pipelines": ("benchmarks.pipelines", "raw columns behind preprocessing; boosting libraries"),
    "relu": ("benchmarks.relu", "ReLU networks: lines, polytopes, closed form"),
    "grid": ("benchmarks.grid", "any model: sums over grids, quasi-random points, their overhead"),
    "conditional": ("benchmarks.conditional", "conditional measures: error, speed, faithfulness"),
    "trust": ("benchmarks.trust", "errors from a finite background: their cost and coverage"),
    "rows": ("benchmarks.rows", "single rows: probabilities, ICE, counterfactuals, ALE"),
    "cold": ("benchmarks.cold", "the first fit and explain on a machine: what is compiled"),
    "distributed": ("benchmarks.distributed", "frames in parts: batches, Dask, Spark, and peers"),
    "refits": ("benchmarks.refits", "intervals over bootstrap refits: what they cover"),
    "choosing": ("benchmarks.choosing", "optimised measures: what they gain, what choosing costs"),
}
PACKAGES = (
    "skattr", "numpy", "scikit-learn", "numba", "pandas", "torch", "xgboost-cpu", "lightgbm",
    "catboost", "shap", "shapiq", "woodelf-explainer", "effector",
)  # fmt: skip
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA")


def names():
    """Return the table of benchmarks as text."""
    width = max(map(len, BENCHMARKS))
    lines = [f"  {name:{width}}  {about}" for name, (_, about) in BENCHMARKS.items()]
    return "\n".join(["usage: python -m benchmarks NAME [options]", "", *lines])


def machine():
    """Return the processor, the system and the versions, which belong to every figure."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = models[0] if models else platform.processor() or platform.machine()
    parts = [f"{processor}, {os.cpu_count()} cores, {platform.system()}"]
    parts.append(f"Python {platform.python_version()}")
    for package in PACKAGES:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


def main(arguments):
    """Import and run the benchmark that the first argument names."""
    name = arguments[0] if arguments else None
    if name in ("-h", "--help"):
        print(names())
        return 0
    if name not in BENCHMARKS:
        problem = "which benchmark?" if name is None else f"no benchmark is called {name!r}"
        print(f"{problem}\n{names()}", file=sys.stderr)
        return 2
    for library in THREADS:  # read when numpy is imported, so before any other import
        os.environ[f"{library}_NUM_THREADS"] = "1"
    print(machine(), end="\n\n", flush=True)
    importlib.import_module(BENCHMARKS[name][0]).main(arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Threads, fork, spawn, loky, threading and dask: the same bits."""

from __future__ import annotations

import argparse
import multiprocessing
import threading
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client
from joblib import parallel_config
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.neural_network import MLPRegressor

from campaign.results import Result
from skattr import MeasureExplainer


def run(options: argparse.Namespace) -> Result:
    """Explain the same rows in all ways, and compare the bits."""
    result = Result("workers")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    y = X["a"] * X["b"] + X["c"]
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=1000, tol=1e-2, random_state=0)
    settings = {"random_state": 0, "tol": 0.1}
    explainers = {
        "trees": MeasureExplainer(HistGradientBoostingRegressor(max_iter=20).fit(X, y)),
        "network": MeasureExplainer(network.fit(X, y), "uniform", **settings),
        "function": MeasureExplainer(_function, "shapley", max_evals=2000, **settings),
    }
    for name, explainer in explainers.items():
        explainer.fit(X)
        rows = X[:40] if name == "function" else X
        wanted = explainer.explain(rows).values
        for way, values in _all_ways(explainer, rows):
            result.check(np.array_equal(values, wanted), f"{name}, {way}: other bits")
    result.measured = "8 threads, fork, spawn, loky, threading, multiprocessing, dask"
    return result


def _function(X: pd.DataFrame) -> np.ndarray:
    return np.sin(X["a"].to_numpy()) * X["b"].to_numpy() + X["c"].to_numpy()


def _values(explainer: MeasureExplainer, X: Any) -> np.ndarray:
    # a forked process cannot predict with OpenMP (scikit-learn's boosting) if its parent did
    return np.asarray(explainer.explain(X, predictions=False).values)


def _all_ways(explainer: MeasureExplainer, X: Any) -> list[tuple[str, np.ndarray]]:
    found: list[tuple[str, np.ndarray]] = []

    def in_thread() -> None:
        found.append(("8 threads", _values(explainer, X)))

    threads = [threading.Thread(target=in_thread) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            values = pool.apply_async(_values, (explainer, X)).get(timeout=300)
            found.append((method, values))
    for backend in ("loky", "threading", "multiprocessing"):
        with parallel_config(backend=backend):
            found.append((backend, _values(explainer.set_params(n_jobs=2), X)))
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        with parallel_config(backend="dask"):
            found.append(("dask", _values(explainer, X)))
    explainer.set_params(n_jobs=None)
    return found

"""Shapley values of trees by other libraries, on the same models and rows.

Peers are slow: woodelf and shapiq run on some of the trees, shap on some of the explained rows, and
their times are scaled up; each of these costs is proportional. A peer that takes longer than it may
is stopped, and has no time. All are warmed up on little data first.
"""

import contextlib
import importlib.util
import multiprocessing
import os
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd

from benchmarks.peers import n_trees, shorter
from benchmarks.timing import best

PACKAGES = {"shap": "shap", "woodelf": "woodelf-explainer", "shapiq": "shapiq"}


def installed():
    """Return the peers that can run here, and print those that are left out."""
    found = []
    for name, package in PACKAGES.items():
        if importlib.util.find_spec(name) is None:
            print(f"peers: {package} is not installed, and is left out")
        elif name == "shapiq" and importlib.util.find_spec("shapiq.tree") is None:
            print(f"peers: shapiq {version(package)} has no interventional values: it is left out")
        else:
            print(f"peers: {package} {version(package)}")
            found.append(name)
    return found


def _frame(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _shap(model, Z):
    import shap

    explainer = shap.TreeExplainer(model, shap.maskers.Independent(Z, max_samples=len(Z)))
    return lambda X: explainer.shap_values(X, check_additivity=False)


def _woodelf(model, Z):
    from woodelf import WoodelfExplainer

    explainer = WoodelfExplainer(model, _frame(Z))
    return lambda X: explainer.shap_values(_frame(X), verbose=False)


def _shapiq(model, Z):
    from shapiq import TreeExplainer

    explainer = TreeExplainer(model, mode="interventional", reference_dataset=Z)
    return explainer.explain_X


MAKERS = {"shap": _shap, "woodelf": _woodelf, "shapiq": _shapiq}


def quiet(function, *arguments):
    """Call a function without what it prints and warns of."""
    with (
        warnings.catch_warnings(),
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        warnings.simplefilter("ignore")
        return function(*arguments)


def seconds(name, model, Z, X, trees=None, rows=None, repeat=2):
    """Return the CPU seconds of a peer that explains X, its own preparation included.

    `trees` and `rows` are how many of them it is run on; the time is scaled up to all.
    """
    part = model if trees is None else shorter(model, trees)
    some = X if rows is None else X[:rows]
    scale = n_trees(model) / n_trees(part) * len(X) / len(some)
    make = MAKERS[name]
    quiet(lambda: make(shorter(model, 1), Z[:50])(X[:2]))
    once = best(lambda: quiet(lambda: make(part, Z)(some)), repeat, warm=False, at_most=5.0)
    return once * scale


def latency(name, model, Z, X):
    """Return the CPU seconds of a peer that is ready and explains X."""
    call = quiet(MAKERS[name], model, Z)
    return best(lambda: quiet(call, X), 5, at_most=3.0)


def within(limit, function, *arguments):
    """Return function(*arguments) from a process of its own, NaN if it fails or takes too long."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run():
        try:
            sender.send(function(*arguments))
        except Exception:
            sender.send(np.nan)

    process = context.Process(target=run)
    process.start()
    result = receiver.recv() if receiver.poll(limit) else np.nan
    process.kill()
    process.join()
    return result

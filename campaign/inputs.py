"""A hundred bad inputs, and what is said of them."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from campaign.results import Result
from skattr import Explanation, MeasureExplainer, write_report
from skattr.measures import Atoms, Baseline, Conditional, Density, Expectation, Sampler, Stieltjes

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(30, 3)), columns=["age", "height", "weight"])
Y = (X["age"] * X["height"]).to_numpy()
TREE = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, Y)
NAMED = (ValueError, TypeError, KeyError, IndexError, AttributeError, OSError, ImportError)


def parameters() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield bad parameters of the explainer."""
    bad: dict[str, tuple] = {
        "tol": ("no", None, np.nan, -1, 0, [1]),
        "max_evals": ("no", None, np.nan, -1, 0, {}),
        "n_jobs": ("2", 0, 1.5, True, [2]),
        "random_state": ("no", 1.5, [1]),
        "verbose": ("no", 1.5, [1]),
        "measure": ("nonsense", 3, None, Conditional, [Expectation()]),
        "engine": ("nonsense", 3, None, "riemann"),
        "output": ("nonsense", 3, None, "proba"),
        "groups": ([], {"g": []}, {"g": ["nobody"]}, {"g": ["age"], "h": ["age"]}, "age"),
        "domain": ({"nobody": (0, 1)}, {"age": (2, 1)}, {"age": (0, np.inf)}, "age", [[0, 1]]),
        "output_names": (["a", "b"], "ab", [1], 3),
        "device": ("nowhere", 3),
    }
    for name, values in bad.items():
        for value in values:
            explainer = MeasureExplainer(TREE, **{name: value})
            text = type(value).__name__ if value is Conditional else repr(value)
            yield f"{name}={text}", lambda explainer=explainer: explainer.fit(X).explain(X)


def tables() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield bad tables for fit and explain."""
    fitted = MeasureExplainer(TREE).fit(X)
    bad: dict[str, Any] = {
        "None": None,
        "a path": "data.csv",
        "a Series": X["age"],
        "no rows": X[:0],
        "no columns": X[[]],
        "a column less": X[["age", "height"]],
        "a column more": X.assign(more=1.0),
        "another name": X.rename(columns={"age": "years"}),
        "a column twice": pd.concat([X, X[["age"]]], axis=1),
        "words": X.assign(age="old"),
        "complex numbers": X.to_numpy() + 1j,
        "three dimensions": np.zeros((2, 3, 1)),
        "one dimension": np.zeros(3),
        "a model": TREE,
        "an explainer": fitted,
        "a dict": {"age": [1.0]},
        "a number": 3,
        "dates": X.assign(age=pd.Timestamp("2024-01-01")),
        "lists": X.assign(age=[[1]] * 30),
    }
    for name, value in bad.items():
        yield f"fit({name})", lambda value=value: MeasureExplainer(TREE).fit(value)
        yield f"explain({name})", lambda value=value: fitted.explain(value)


def models() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield objects that are not models, and models that return nonsense."""
    nonsense: dict[str, Any] = {
        "None": None,
        "a class": DecisionTreeRegressor,
        "not fitted": LinearRegression(),
        "a number": 3,
        "a table": X,
        "a function of nothing": lambda: 1,
        "NaN": lambda X: np.full(len(X), np.nan),
        "infinity": lambda X: np.full(len(X), np.inf),
        "complex numbers": lambda X: np.full(len(X), 1j),
        "too few numbers": lambda X: np.zeros(1),
        "words": lambda X: np.full(len(X), "a"),
        "None for each row": lambda X: [None] * len(X),
        "sums that overflow": lambda X: np.full(len(X), 1.7e308),
    }
    for name, model in nonsense.items():
        yield f"model: {name}", lambda model=model: MeasureExplainer(model).fit(X)


def others() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield bad arguments of measures, curves, reports and files."""
    fitted = MeasureExplainer(TREE).fit(X)
    explanation = fitted.explain(X)
    measures = {
        "Baseline(3)": lambda: Baseline(3),
        "Baseline of words": lambda: Baseline({"age": "old", "height": 1, "weight": 1}),
        "Baseline without a column": lambda: Baseline({"age": 1}),
        "Conditional('nonsense')": lambda: Conditional("nonsense"),
        "Expectation('nonsense')": lambda: Expectation("nonsense"),
        "Atoms of nothing": lambda: Atoms([], []),
        "Stieltjes of a number": lambda: Stieltjes(3),
        "Density of a number": lambda: Density(3),
        "Sampler of a number": lambda: Sampler(3),
    }
    for name, make in measures.items():
        yield name, lambda make=make: MeasureExplainer(TREE, make()).fit(X).explain(X)
    calls: dict[str, Callable[[], Any]] = {
        "curve of nobody": lambda: fitted.curve("nobody"),
        "curve of output 7": lambda: fitted.curve("age", output=7),
        "curve at a word": lambda: fitted.curve("age")("old"),
        "features of nobody": lambda: fitted.explain(X, features=["nobody"]),
        "features=[]": lambda: fitted.explain(X, features=[]),
        "explain before fit": lambda: MeasureExplainer(TREE).explain(X),
        "weights of another length": lambda: MeasureExplainer(TREE).fit(X, sample_weight=[1.0]),
        "weights below 0": lambda: MeasureExplainer(TREE).fit(X, sample_weight=-np.ones(30)),
        "weights of 0": lambda: MeasureExplainer(TREE).fit(X, sample_weight=np.zeros(30)),
        "select output 7": lambda: explanation.select(7),
        "row 'nobody'": lambda: explanation["nobody"],
        "column 'nobody'": lambda: explanation[:, "nobody"],
        "report to a folder": lambda: write_report(fitted, X, "/"),
        "report to no folder": lambda: write_report(fitted, X, "/nowhere/report.html"),
        "report to a device": lambda: write_report(fitted, X, "/dev/null"),
        "report, arguments swapped": lambda: write_report(X, fitted, "report.html"),
        "load a folder": lambda: Explanation.load("/"),
        "load nothing": lambda: Explanation.load("/nowhere.npz"),
        "save to a folder": lambda: explanation.save("/"),
    }
    for flag in ("no", 1, None):
        calls[f"include_data={flag!r}"] = lambda flag=flag: write_report(
            fitted, X, "report.html", include_data=flag
        )
        calls[f"predictions={flag!r}"] = lambda flag=flag: fitted.explain(X, predictions=flag)
        calls[f"tidy={flag!r}"] = lambda flag=flag: explanation.to_frame(tidy=flag)
    yield from calls.items()


def run(options: argparse.Namespace) -> Result:
    """Try all of them and print their messages; every one must be a named error."""
    result = Result("inputs")
    longest = 0
    print(f"{'input':36} {'error':16} message")
    for make in (parameters, tables, models, others):
        for name, call in make():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call()
                result.check(False, f"{name}: nothing was said")
                kind, message = "none", ""
            except Exception as error:  # what it is decides whether it counts
                message = " ".join(str(error).split())
                kind = type(error).__name__
                result.check(isinstance(error, NAMED) and len(message) > 8, f"{name}: {error!r}")
            longest = max(longest, len(message))
            print(f"{name[:36]:36} {kind:16} {message}")
    result.measured = f"the longest message has {longest} characters"
    return result

"""The summary of a report, and the code that makes it again."""

from __future__ import annotations

import platform
import re
import sys
from importlib import metadata
from typing import Any

import numpy as np

from skattr import measures
from skattr._inputs import models
from skattr._utils.numbers import count, formatter, small
from skattr._version import __version__
from skattr.explanation import Explanation
from skattr.report.rows import ExplainedRows
from skattr.report.settings import Settings
from skattr.report.words import measure_text, shown, shown_value


def summary(explainer: Any, explained: ExplainedRows, settings: Settings) -> list[tuple[str, str]]:
    """Return the summary as (name, value) pairs, without the measure."""
    explanation = explained.explanation
    n, d = explained.n_rows, explanation.data.shape[1]
    g = len(explanation.feature_names)
    return [
        ("Model", model_name(explainer)),
        ("Read as", _read_as(explainer, settings)),
        ("Explains", explains(explanation)),
        ("Rows explained", f"{n:,} rows of {d:,} columns; {g:,} attributions"),
        ("Background", f"{explainer.n_background_:,} rows"),
        ("Mean of f over the background", _base(explanation)),
        ("Engine", ", ".join(dict.fromkeys(explanation.engine))),
        ("Accuracy", _accuracy(explainer, explanation)),
        ("Seed", _seed(explainer, explanation)),
        ("Versions", versions(explainer)),
        ("Run time", settings.run_time),
        ("Written", settings.date),
    ]


def _read_as(explainer: Any, settings: Settings) -> str:
    text = explainer.pieces_.describe()
    # a library may have said why a model is a black box, and quoted values
    return shown(text if settings.include_data else text.partition(":")[0], 400)


def subtitle(explainer: Any, explained: ExplainedRows) -> str:
    """Return the summary in one line."""
    kind = "exact" if explained.explanation.exact else "approximate"
    return (
        f"{model_name(explainer)} · {explained.n_rows:,} rows explained against "
        f"{explainer.n_background_:,} · {kind} · centred values"
    )


def explains(explanation: Explanation) -> str:
    """Return the scale of the values and the outputs, in words."""
    names = [shown(name) for name in explanation.output_names]
    return models.output_in_words(shown(explanation.scale), names)


def model_name(explainer: Any) -> str:
    """Return the class of the model, or those of its steps."""
    return shown(models.in_words(explainer.estimator_), 400)


def versions(explainer: Any) -> str:
    """Return the versions of the libraries that computed the values."""
    model = explainer.pieces_.output.estimator
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    library = type(model).__module__.partition(".")[0]
    names = ["numpy", "scikit-learn", "numba", "pandas"]
    if library in ("xgboost", "lightgbm", "catboost", "torch", "interpret"):
        names.append(library)
    parts = [f"skattr {__version__}", f"Python {platform.python_version()}"]
    for name in names:
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:  # under another name, such as xgboost-cpu
            parts.append(f"{name} {getattr(sys.modules.get(name), '__version__', 'unknown')}")
    return ", ".join(parts)


def _base(explanation: Explanation) -> str:
    base = np.atleast_1d(explanation.base_value)
    write = formatter(base)
    if len(base) == 1:
        return write(base[0])
    names = map(shown, explanation.output_names)
    return ", ".join(f"{name}: {write(b)}" for name, b in zip(names, base, strict=True))


def _accuracy(explainer: Any, explanation: Explanation) -> str:
    if explanation.exact:
        return "exact: every value is the integral, up to rounding"
    error = explanation.std_error
    largest = 0.0 if error is None else float(np.max(error))
    return (
        f"approximate: largest standard error {small(largest)} (tol={explainer.tol:g}, in units of "
        "the spread of f)"
    )


def _seed(explainer: Any, explanation: Explanation) -> str:
    if explanation.exact:
        return "none: nothing is random"
    return f"random_state={shown_value(explainer.random_state)}"


def code(explainer: Any, path: str, settings: Settings, compared: bool) -> str:
    """Return Python that makes the report again, given the model and the data."""
    defaults = type(explainer)(None).get_params(deep=False)
    params = explainer.get_params(deep=False)
    private = () if settings.include_data else ("domain",)
    changed = {
        name: "..." if name in private else shown(repr(value), 400)
        for name, value in params.items()
        if name not in ("estimator", "measure") and not _same(value, defaults[name])
    }
    text = measure_text(explainer.measure_, settings.include_data)
    kinds = sorted(set(measures.__all__).intersection(re.findall(r"\b(\w+)\(", text)))
    arguments = ["model", f"measure={text}"]
    arguments += [f"{name}={value}" for name, value in changed.items()]
    given = "".join(f", {name}={value!r}" for name, value in settings.changed().items())
    what = "[first_explainer, explainer]" if compared else "explainer"
    return "\n".join(
        [
            "from skattr import MeasureExplainer, write_report",
            f"from skattr.measures import {', '.join(kinds)}",
            "",
            f"explainer = MeasureExplainer({', '.join(arguments)})",
            f"explainer.fit(X_background)  # {count(explainer.n_background_)} rows",
            "explanation = explainer.explain(X)",
            f"write_report({what}, X, {shown(repr(path), 200)}{given})",
        ]
    )


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and not isinstance(a, np.ndarray) and bool(a == b))

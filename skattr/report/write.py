"""`write_report`: checks the arguments, explains the rows, and writes the file."""

from __future__ import annotations

import os
import time
from datetime import datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skattr._files.writing import check_writable, whole_file
from skattr._utils.messages import brief
from skattr.explanation import Explanation
from skattr.report.page import page, template_environment
from skattr.report.settings import MAX_OUTPUTS, Settings
from skattr.report.words import shown


def write_report(
    explainer: Any,
    X: Any,
    path: str | os.PathLike,
    *,
    title: str | None = None,
    features: Any = None,
    max_rows: int = 500,
    max_features: int = 20,
    max_outputs: int = MAX_OUTPUTS,
    include_data: bool = True,
    explanation: Explanation | None = None,
) -> str:
    """Explain rows and write one HTML file about them, which needs no network and no other file.

    It shows centred values: importance, a beeswarm, a panel with the curve of each column, a table
    of rows that can be sorted and searched, the waterfall of one row, warnings, checks, and the
    code that makes the report again. It can be read without JavaScript.

    Parameters
    ----------
    explainer : fitted MeasureExplainer
        The explainer.
    X : DataFrame or array (n, d)
        The rows to explain. Importance and beeswarm are those of all of them.
    path : path
        The file. It is replaced as a whole or not at all.
    title : str, optional
        The heading.
    features : list, optional
        Names (or positions) of the attributions to show; all by default.
    max_rows : int, default=500
        Rows in the table, spread evenly over X; the report says if there are more.
    max_features : int, default=20
        Columns shown, the most important ones; the others are summed up.
    max_outputs : int, default=5
        Outputs (classes) shown, the first ones.
    include_data : bool, default=True
        Whether the file may contain raw values. If not, it has neither values of X nor index
        labels: rows are named by their positions, and columns of levels have no curve. Curves of
        numbers still show the model's thresholds.
    explanation : Explanation, optional
        `explainer.explain(X)`, if there is one already; `features` is then ignored.

    Returns
    -------
    str
        The path.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer, write_report
    >>> from skattr.datasets import load_flats
    >>> X, y = load_flats()
    >>> X = X[["rooms", "balcony"]]
    >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> write_report(explainer, X, "report.html")  # doctest: +SKIP
    'report.html'
    """
    limits = {"max_rows": max_rows, "max_features": max_features, "max_outputs": max_outputs}
    for name, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {brief(value)}")
    _check_order(explainer, X, path)
    check_writable(path)
    check_is_fitted(explainer)
    environment = template_environment()
    start = time.perf_counter()
    run_time = "explanation given"
    if explanation is None:
        explanation = explainer.explain(X, features=features)
        run_time = f"explaining took {time.perf_counter() - start:.2f} s"
    _check_explanation(explainer, explanation, X)
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    heading = "Feature attributions" if title is None else shown(title, 200)
    settings = Settings(heading, **limits, include_data=include_data, run_time=run_time, date=date)
    html = page(environment, explainer, explanation.centered(), settings, os.fspath(path), start)
    with whole_file(path) as file:
        file.write(html.encode("utf-8"))
    return os.fspath(path)


def _check_order(explainer: Any, X: Any, path: Any) -> None:
    """Refuse arguments in the wrong order."""
    order = "the order is write_report(explainer, X, path)"
    if not hasattr(type(explainer), "explain"):
        got = brief(explainer)
        raise TypeError(f"explainer must be a fitted MeasureExplainer, got {got}; {order}")
    if isinstance(X, Explanation):
        raise TypeError("X must be a table, got an Explanation; pass it as explanation=")
    if isinstance(X, str | bytes | os.PathLike):
        raise TypeError(f"X must be a table, got {brief(X)}; {order}")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {brief(path)}; {order}")


def _check_explanation(explainer: Any, explanation: Explanation, X: Any) -> None:
    if len(explanation) == 0:
        raise ValueError("explanation must have rows, got one without any")
    if X is not None and len(X) != len(explanation):
        raise ValueError(f"the explanation has {len(explanation)} rows, X has {len(X)}")
    if explanation.output_names != tuple(explainer.output_names_):
        raise ValueError(
            f"the explanation is of {explanation.output_names}, the explainer of "
            f"{tuple(explainer.output_names_)}; give the one that this explainer made"
        )
    finite = np.isfinite(explanation.values).reshape(*explanation.values.shape[:2], -1).all(axis=2)
    if not finite.all():
        row, place = np.argwhere(~finite)[0].tolist()
        raise ValueError(
            f"the attribution of {explanation.feature_names[place]!r} in row {row} of the "
            "explanation is not finite, which a report cannot show: the model returns infinite "
            "values; leave such rows out, of the background too, or explain another output"
        )

"""`write_report`: checks the arguments, explains the rows, and writes the file."""

from __future__ import annotations

import os
import time
from datetime import datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skattr._files.writing import check_writable, whole_file
from skattr._utils.messages import brief, check_flag
from skattr.explanation import Explanation
from skattr.report.changes import check_target
from skattr.report.comparison import Other, check_outputs
from skattr.report.page import page, template_environment
from skattr.report.rows import ExplainedRows
from skattr.report.settings import Settings
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
    max_outputs: int = 5,
    include_data: bool = True,
    units: dict[Any, str] | None = None,
    output_unit: str = "",
    descriptions: dict[Any, str] | None = None,
    target: Any = None,
    slices: Any = None,
    labels: tuple[str, str] = ("first", "second"),
    explanation: Explanation | None = None,
) -> str:
    """Explain rows and write one HTML file about them, which needs no network and no other file.

    It says in a few sentences what the model does, and shows centred values: importance, a
    beeswarm, a panel with the curve of each column, a table of rows that can be sorted and
    searched, the waterfall of one row, what it would be with another value of a column, warnings,
    checks, and the code that makes the report again. It can be read without JavaScript.

    Parameters
    ----------
    explainer : fitted MeasureExplainer, or list of two
        The explainer. Two of them are compared: the report is about the second, with a section on
        what changed since the first, column by column.
    X : DataFrame or array (n, d), or list of two for two explainers
        The rows to explain. If they are many (four million numbers), they are explained in blocks:
        importance is that of all rows, and the figures and checks are those of rows spread evenly
        over X, which the report says.
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
        labels, nor the model's thresholds, which may be values of the data: rows are named by their
        positions, steps are drawn at round numbers, and other curves are left out. Attributions,
        predictions, classes and the names of columns are shown.
    units : dict, optional
        Units of columns, by name: {"area": "m²"}.
    output_unit : str, optional
        The unit of the output: "€".
    descriptions : dict, optional
        Descriptions of columns, by name: {"area": "living area"}.
    target : float or class, optional
        A prediction that rows are to reach, from either side, or a class: the report shows for 100
        rows which change of one column does it, as `counterfactual` finds it. By default the middle
        of a classifier of two classes, and nothing for other models. Black boxes have none.
    slices : column, optional
        A column of X whose levels or intervals are compared by importance and mean effects, as
        `metrics.by_slice` does.
    labels : two str, default=("first", "second")
        The names of two explainers.
    explanation : Explanation, optional
        `explainer.explain(X)` of one explainer, if there is one already; `features` is then
        ignored.

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
    check_flag("include_data", include_data)
    explainers, tables = _as_lists(explainer, X)
    for each, table in zip(explainers, tables, strict=True):
        _check_order(each, table, path)
    check_writable(path)
    for each in explainers:
        check_is_fitted(each)
    explainer, X = explainers[-1], tables[-1]
    if len(explainers) == 2:
        check_outputs([tuple(each.output_names_) for each in explainers])
        if explanation is not None:
            raise ValueError("explanation= is for one explainer; leave it out, and give X")
    target = check_target(explainer, target)
    environment = template_environment()
    start = time.perf_counter()
    run_time = "explanation given"
    if explanation is None:
        explained = ExplainedRows.explained(explainer, X, features)
        run_time = f"explaining took {time.perf_counter() - start:.2f} s"
    else:
        _check_explanation(explainer, explanation, X)
        explained = ExplainedRows.of(explanation)
    other = None
    if len(explainers) == 2:
        same = tables[0] is tables[1] and not explained.is_sample
        other = Other.of(explainers[0], tables[0], features, explained, same)
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    heading = "Feature attributions" if title is None else shown(title, 200)
    names = explained.explanation.feature_names
    settings = Settings(
        heading, run_time, date, **limits, include_data=include_data,
        units=_by_name("units", units, names), output_unit=_text("output_unit", output_unit),
        descriptions=_by_name("descriptions", descriptions, names),
        target=target, slices=slices, labels=_check_labels(labels),
    )  # fmt: skip
    html = page(environment, explainer, explained, settings, os.fspath(path), start, other)
    with whole_file(path) as file:
        file.write(html.encode("utf-8"))
    return os.fspath(path)


def _as_lists(explainer: Any, X: Any) -> tuple[list[Any], list[Any]]:
    """Return one or two explainers, and the table of each."""
    if not isinstance(explainer, list | tuple):
        return [explainer], [X]
    if len(explainer) != 2:
        raise ValueError(f"one explainer or two can be reported, got {len(explainer)}")
    two = isinstance(X, list | tuple) and len(X) == 2 and all(hasattr(x, "shape") for x in X)
    return list(explainer), list(X) if two else [X, X]


def _check_labels(labels: Any) -> tuple[str, str]:
    if not isinstance(labels, list | tuple) or len(labels) != 2:
        raise ValueError(f"labels must be two names, got {brief(labels)}")
    first, second = (_text("labels", label) for label in labels)
    return first, second


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, got {brief(value)}")
    return shown(value)


def _by_name(argument: str, given: Any, names: tuple[Any, ...]) -> dict[Any, str]:
    """Check a dict of texts by the name of a column."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise TypeError(f"{argument} must be a dict {{column: text}}, got {brief(given)}")
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{argument} has {brief(unknown[0])}, which is not explained; there are "
            f"{brief(list(names))}"
        )
    return {name: _text(f"{argument}[{name!r}]", value) for name, value in given.items()}


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

"""write_report: gathers the parts, fills the template, and puts one file in place."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import resources
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skattr._files.writing import check_writable, whole_file
from skattr._numbers import decimals, fixed, formatter, small
from skattr.explanation import Explanation
from skattr.messages import brief
from skattr.report import facts, figures
from skattr.report.tables import Column, row_labels, spread_rows
from skattr.report.words import measure_in_words, measure_text, shown

MAX_OUTPUTS = 5


@dataclass(frozen=True)
class Settings:
    """What was asked for, and what the summary says of this run."""

    title: str
    max_rows: int
    max_features: int
    max_outputs: int
    include_data: bool
    run_time: str
    date: str


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
    """Explain rows and write one HTML file about it: no network, no other file, no plugin.

    It shows centred values: importance, beeswarm, a panel with the curve of each column, a table
    of rows that can be sorted and searched, the waterfall of the row picked, warnings, checks, and
    the code that makes the report again. It can be read without JavaScript.

    Parameters
    ----------
    explainer : fitted MeasureExplainer
        What explains.
    X : DataFrame or array (n, d)
        The rows to explain. Importance and beeswarm are those of all of them.
    path : path
        The file. It is replaced as a whole or not at all.
    title : str, optional
        The heading.
    features : list, optional
        Names (or positions) of the attributions wanted; all by default.
    max_rows : int, default=500
        Rows in the table, spread evenly over X; the report says if there are more.
    max_features : int, default=20
        Columns shown, the most important ones; the others are summed up.
    max_outputs : int, default=5
        Outputs (classes) shown, the first ones.
    include_data : bool, default=True
        Whether raw values may be in the file. If not, it has neither values of X nor index labels:
        rows have their positions, columns of levels no curve. Curves of numbers still show the
        model's own thresholds.
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
            raise ValueError(f"{name} is an integer of at least 1, not {brief(value)}")
    _check_order(explainer, X, path)
    check_writable(path)
    check_is_fitted(explainer)
    environment = _environment()
    start = time.perf_counter()
    run_time = "explanation given"
    if explanation is None:
        explanation = explainer.explain(X, features=features)
        run_time = f"explaining took {time.perf_counter() - start:.2f} s"
    _check_explanation(explainer, explanation, X)
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    heading = "Feature attributions" if title is None else shown(title, 200)
    settings = Settings(heading, **limits, include_data=include_data, run_time=run_time, date=date)
    page = _page(environment, explainer, explanation.centered(), settings, os.fspath(path), start)
    with whole_file(path) as file:
        file.write(page.encode("utf-8"))
    return os.fspath(path)


def _check_order(explainer: Any, X: Any, path: Any) -> None:
    """Refuse arguments in another order."""
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


def _environment() -> Any:
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"write_report needs {error.name}: pip install 'skattr[report]'"
        ) from error
    return jinja2.Environment(
        loader=jinja2.PackageLoader("skattr", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _check_explanation(explainer: Any, explanation: Explanation, X: Any) -> None:
    if len(explanation) == 0:
        raise ValueError("the explanation has no rows to report on")
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


def _page(
    environment: Any,
    explainer: Any,
    explanation: Explanation,
    settings: Settings,
    path: str,
    start: float,
) -> str:
    """Return the HTML of a centred explanation."""
    rows = spread_rows(len(explanation), settings.max_rows)
    order = _by_importance(explanation)
    top = order[: settings.max_features]
    all_columns = [Column(explanation, j) for j in range(len(explanation.feature_names))]
    for j, column in enumerate(all_columns):
        if j in top or column.is_level:  # the others are not drawn, and have no levels to be new
            column.find_curve(explainer, j in top)
    labels = row_labels(explanation, rows, settings.include_data)
    table = table_data(explanation, [all_columns[j] for j in top], top, rows, labels, settings)
    with figures.style():
        outputs = [
            _output(explanation, o, all_columns, top, rows, labels, settings)
            for o in range(min(settings.max_outputs, len(explanation.output_names)))
        ]
    words, formula = measure_in_words(explainer.measure_)
    checked = facts.checks(explainer, explanation, rows, top)
    spent = f"; the whole report {time.perf_counter() - start:.1f} s"
    settings = replace(settings, run_time=settings.run_time + spent)
    script, css = _part("report.js"), _part("style.css")
    return environment.get_template("template.html.j2").render(
        settings=settings,
        subtitle=facts.subtitle(explainer, explanation),
        policy=_policy(script, css),
        script=_safe(script),
        css=_safe(css),
        data=_safe(as_json(table)),
        summary=facts.summary(explainer, explanation, settings),
        measure=shown(measure_text(explainer.measure_, settings.include_data), 600),
        words=words,
        formula=formula,
        warnings=facts.warnings(explainer, explanation, all_columns, settings.include_data),
        limits=_limits(explanation, rows, settings),
        outputs=outputs,
        table=table,
        checks=checked,
        number=_number,
        code=facts.code(
            explainer, os.path.basename(path), _changed(settings), settings.include_data
        ),
        describe=shown_lines(explainer.describe()) if settings.include_data else "",
    )


def _by_importance(explanation: Explanation) -> np.ndarray:
    size = np.abs(explanation.values).mean(axis=0)
    return np.argsort(-size.reshape(len(size), -1).mean(axis=1), kind="stable")


def shown_lines(text: str) -> str:
    """Return text of several lines, each shortened and harmless."""
    return "\n".join(shown(line, 400) for line in text.splitlines())


def _changed(settings: Settings) -> dict[str, Any]:
    """Return the settings that are not the default ones, as they are typed."""
    defaults = {
        "max_rows": 500,
        "max_features": 20,
        "max_outputs": MAX_OUTPUTS,
        "include_data": True,
    }
    return {
        name: getattr(settings, name)
        for name, value in defaults.items()
        if getattr(settings, name) != value
    }


def _limits(explanation: Explanation, rows: np.ndarray, settings: Settings) -> list[dict]:
    """Return what is not all shown, and the line of code that shows all of it."""
    n, g = explanation.values.shape[:2]
    sizes = [
        ("rows", "max_rows", len(rows), n),
        ("columns", "max_features", settings.max_features, g),
        ("outputs", "max_outputs", settings.max_outputs, len(explanation.output_names)),
    ]
    how = {
        "rows": "The table shows rows spread evenly over all; the figures show all rows.",
        "columns": "The most important ones are shown, the others are summed up.",
        "outputs": "The first ones are shown.",
    }
    return [
        {
            "what": what,
            "shown": f"{most:,}",
            "of": all_,
            "how": how[what],
            "code": f"write_report(explainer, X, path, {name}={all_})",
        }
        for what, name, most, all_ in sizes
        if most < all_
    ]


def table_data(
    explanation: Explanation,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    labels: list[str],
    settings: Settings,
) -> dict[str, Any]:
    """Return what the table and the row picker show: the rows, and for each output its values."""
    part = explanation[rows]
    outputs = []
    for name in part.output_names[: settings.max_outputs]:
        one = part.select(name)
        values = one.values[:, top]
        prediction = one.predictions
        error = None if one.std_error is None else one.std_error[:, top]
        places = decimals(one.values)
        outputs.append(
            {
                "name": shown(name),
                "decimals": places,
                "base": _rounded(one.base_value, places),
                "values": _rounded(values, places),
                "rest": _rounded(one.values.sum(axis=1) - values.sum(axis=1), places),
                "prediction": None if prediction is None else _rounded(prediction, places),
                "error": None if error is None else _rounded(error, places),
            }
        )
    texts = [column.texts(rows) for column in columns] if settings.include_data else None
    return {
        "rows": labels,
        "features": [column.name for column in columns],
        "more": len(explanation.feature_names) - len(columns),
        "remainder": explanation.remainder_name,
        "data": None if texts is None else [list(row) for row in zip(*texts, strict=True)],
        "outputs": outputs,
    }


def _number(places: int, value: float | None) -> str:
    return "–" if value is None else fixed(value, places)


def _rounded(values: Any, places: int) -> Any:
    """Return numbers for JSON: with six digits, more if decimals show them; None if not finite."""
    if np.ndim(values) > 0:
        return [_rounded(value, places) for value in values]
    if not np.isfinite(values):
        return None
    six = float(f"{values:.6g}")
    return six if places < 0 or abs(six) < 10.0 ** (6 - places) else round(float(values), places)


def _output(
    explanation: Explanation,
    o: int,
    columns: list[Column],
    top: np.ndarray,
    rows: np.ndarray,
    labels: list[str],
    settings: Settings,
) -> dict[str, Any]:
    """Return figures and panels of one output."""
    name = explanation.output_names[o]
    one = explanation.select(name)
    safe = shown(name)
    drawn = one if settings.include_data else figures.without_data(one)
    drawn = replace(drawn, feature_names=tuple(c.name for c in columns), output_names=(safe,))
    importance, beeswarm = figures.overview(drawn, settings.max_features, safe)
    size = np.abs(one.values).mean(axis=0)
    write = formatter(size)
    return {
        "name": safe,
        "importance": importance,
        "beeswarm": beeswarm,
        "ranking": [
            (columns[j].name, write(size[j]), _share(size, j))
            for j in np.argsort(-size, kind="stable")[: settings.max_features]  # as in the figure
        ],
        "panels": [_panel(one, o, j, columns[j], size, settings) for j in top],
        # its names hold raw values, and the table has all numbers anyway
        "waterfalls": _waterfalls(drawn, rows, labels, safe) if settings.include_data else [],
    }


def _share(size: np.ndarray, j: int) -> str:
    return f"{size[j] / size.sum():.1%}" if size.sum() > 0 else "–"


def _panel(
    one: Explanation, o: int, j: int, column: Column, size: np.ndarray, settings: Settings
) -> dict[str, Any]:
    curve, reason = column.curve_of(o), column.reason
    values = one.values[:, j]
    support = None if one.support is None else one.support[:, j]
    write = formatter(values)
    picture = figures.panel(
        curve, column, values, support, shown(one.output_names[0]), settings.include_data
    )
    if picture is None and not reason:
        reason = (
            "The curve shows values of the data; it is left out because include_data=False."
            if not settings.include_data
            else "The column has too many levels to draw."
        )
    numbers = [
        ("importance", f"{formatter(size)(size[j])} ({_share(size, j)} of all)"),
        ("centred values", f"{write(values.min())} to {write(values.max())}"),
    ]
    if one.std_error is not None:
        numbers.append(("largest standard error", small(one.std_error[:, j].max())))
    if support is not None:
        numbers.append(("least support", f"{support.min():.1f} rows"))
    if curve is not None:
        numbers.append(("curve", _kind(curve)))
    heading, lines = column.table(values) if settings.include_data else (("", ""), [])
    return {
        "name": column.name,
        "picture": picture,
        "reason": reason,
        "numbers": numbers + column.facts(settings.include_data),
        "heading": heading,
        "lines": lines,
    }


def _kind(curve: Any) -> str:
    if curve.kind == "function":
        return "a function, evaluated at the rows explained"
    return f"{curve.kind}, {len(curve.to_frame()):,} of them"


def _waterfalls(
    drawn: Explanation, rows: np.ndarray, labels: list[str], output: str
) -> list[figures.Picture]:
    """Return the waterfalls of the rows shown with the lowest, median and highest prediction."""
    part = drawn[rows]
    height = part.values.sum(axis=1) if part.predictions is None else part.predictions
    order = np.argsort(height, kind="stable")
    picked = dict.fromkeys(int(order[i]) for i in (0, len(order) // 2, -1))
    return [figures.waterfall(part, row, labels[row], output) for row in picked]


def _part(name: str) -> str:
    return resources.files("skattr.report").joinpath(name).read_text(encoding="utf-8")


def _safe(text: str) -> Any:
    """Mark text of ours, or JSON without `<`, `>` and `&`, as HTML."""
    from markupsafe import Markup  # comes with jinja2

    return Markup(text)


def as_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: ASCII without `<`, `>` and `&`."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _policy(script: str, css: str) -> str:
    """Return the Content-Security-Policy: our script and style by their hashes, nothing else."""
    return (
        f"default-src 'none'; img-src data:; script-src '{_hash(script)}'; "
        f"style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")

"""The page of a report: the template, filled with the parts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np

from skattr._utils.numbers import fixed
from skattr.explanation import Explanation
from skattr.report import facts, figures
from skattr.report.outputs import output_parts, table_data
from skattr.report.settings import Settings
from skattr.report.tables import Column, row_labels, spread_rows
from skattr.report.words import measure_in_words, measure_text, shown


def template_environment() -> Any:
    """Return the environment of the template, or say which library is missing."""
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


def page(
    environment: Any,
    explainer: Any,
    explanation: Explanation,
    settings: Settings,
    path: str,
    start: float,
) -> str:
    """Return the HTML about a centred explanation."""
    rows = spread_rows(len(explanation), settings.max_rows)
    order = _by_importance(explanation)
    top = order[: settings.max_features]
    all_columns = [Column(explanation, j) for j in range(len(explanation.feature_names))]
    for j, column in enumerate(all_columns):
        if j in top or column.is_level:  # to draw it, or to find levels the model does not know
            column.find_curve(explainer, j in top)
    labels = row_labels(explanation, rows, settings.include_data)
    table = table_data(explanation, [all_columns[j] for j in top], top, rows, labels, settings)
    with figures.style():
        outputs = [
            output_parts(explanation, o, all_columns, top, rows, labels, settings)
            for o in range(min(settings.max_outputs, len(explanation.output_names)))
        ]
    words, formula = measure_in_words(explainer.measure_)
    checked = facts.checks(explainer, explanation, rows, top)
    spent = f"; the whole report {time.perf_counter() - start:.1f} s"
    settings = replace(settings, run_time=settings.run_time + spent)
    script, css = _read("report.js"), _read("style.css")
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
            explainer, os.path.basename(path), settings.changed(), settings.include_data
        ),
        describe=_shown_lines(explainer.describe()) if settings.include_data else "",
    )


def _by_importance(explanation: Explanation) -> np.ndarray:
    size = np.abs(explanation.values).mean(axis=0)
    return np.argsort(-size.reshape(len(size), -1).mean(axis=1), kind="stable")


def _shown_lines(text: str) -> str:
    """Return text of several lines, each shortened and safe to show."""
    return "\n".join(shown(line, 400) for line in text.splitlines())


def _limits(explanation: Explanation, rows: np.ndarray, settings: Settings) -> list[dict]:
    """Return which parts are not shown completely, and the code that shows all of them."""
    n, g = explanation.values.shape[:2]
    sizes = [
        ("rows", "max_rows", len(rows), n),
        ("columns", "max_features", settings.max_features, g),
        ("outputs", "max_outputs", settings.max_outputs, len(explanation.output_names)),
    ]
    how = {
        "rows": "The table shows rows spread evenly over all; the figures show all rows.",
        "columns": "The most important ones are shown; the others are summed up.",
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


def _read(name: str) -> str:
    return resources.files("skattr.report").joinpath(name).read_text(encoding="utf-8")


def _safe(text: str) -> Any:
    """Mark trusted text as HTML: our own files, and JSON without `<`, `>` and `&`."""
    from markupsafe import Markup  # comes with jinja2

    return Markup(text)


def as_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: ASCII without `<`, `>` and `&`."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _policy(script: str, css: str) -> str:
    """Return the Content-Security-Policy: only our own script and style, by their hashes."""
    return (
        f"default-src 'none'; img-src data:; script-src '{_hash(script)}'; "
        f"style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _number(places: int, value: float | None) -> str:
    return "–" if value is None else fixed(value, places)

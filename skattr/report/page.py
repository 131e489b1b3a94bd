"""The page of a report: the template, filled with the parts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np

from skattr._utils.numbers import fixed
from skattr.report import figures
from skattr.report.changes import changes
from skattr.report.charts import charts
from skattr.report.checks import checks
from skattr.report.comparison import Other, compare
from skattr.report.interactions import find_interactions, interactions
from skattr.report.outputs import output_parts, table_data
from skattr.report.rows import ExplainedRows
from skattr.report.sentences import Facts, plain_words
from skattr.report.settings import Settings
from skattr.report.shares import shapley_rows
from skattr.report.slices import find_slices, slice_tables
from skattr.report.summary import code, subtitle, summary
from skattr.report.tables import Column, row_labels, spread_rows
from skattr.report.warnings import warnings
from skattr.report.what_if import what_if
from skattr.report.words import measure_in_words, measure_text, shown

FIRST_SCRIPT = 'document.documentElement.classList.add("js");'  # nothing hidden is laid out
SCRIPTS = ("base", "tabs", "table", "row", "what_if", "chart", "swarm", "columns", "start")


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
    explained: ExplainedRows,
    settings: Settings,
    path: str,
    start: float,
    other: Other | None,
) -> str:
    """Return the HTML about explained rows; `other` is the explainer to compare with."""
    explanation, size = explained.explanation, explained.size
    rows = spread_rows(len(explanation), settings.max_rows)
    order = np.argsort(-size.reshape(len(size), -1).mean(axis=1), kind="stable")
    top = order[: settings.max_features]
    all_columns = [
        Column(explanation, j, *settings.about(name))
        for j, name in enumerate(explanation.feature_names)
    ]
    for j, column in enumerate(all_columns):
        if j in top or column.is_level:  # to draw it, or to find levels the model does not know
            column.find_curve(explainer, j in top)
    labels = row_labels(explained, rows, settings.include_data)
    shapley = shapley_rows(explainer, explained, rows)
    shown_columns = [all_columns[j] for j in top]
    table = table_data(explanation, shown_columns, top, rows, labels, settings, shapley)
    places = [output["decimals"] for output in table["outputs"]]
    table["unit"] = settings.output_unit
    table["what_if"] = what_if(explainer, explanation, shown_columns, top, rows, places, settings)
    table["charts"] = charts(shown_columns, rows, table["what_if"], settings)
    table["changes"] = changes(explainer, explanation, shown_columns, rows, settings)
    slices = find_slices(explanation, settings)
    with figures.style():
        outputs = [
            output_parts(
                explained,
                o,
                all_columns,
                top,
                rows,
                labels,
                settings,
                shapley,
                explainer.n_background_,
            )
            for o in range(min(settings.max_outputs, len(explanation.output_names)))
        ]
        parts = find_interactions(explainer, explanation)
        if parts is not None:
            for o, output in enumerate(outputs):
                output["interactions"] = interactions(explainer, explained, parts, o, settings)
        for o, output in enumerate(outputs):
            if other is not None:
                output["comparison"] = compare(explainer, explained, other, o, settings)
            if slices is not None:
                output["slices"] = slice_tables(
                    slices, explanation.output_names[o], settings.slices, settings.output_unit
                )
    notes = warnings(
        explainer,
        explanation,
        all_columns,
        settings.include_data,
        shapley is not None,
        settings.output_unit,
    )
    for o, output in enumerate(outputs):
        output["sentences"] = plain_words(
            Facts(
                explainer, explained, o, all_columns, top, output["interactions"], notes, settings
            )
        )
    words, formula = measure_in_words(explainer.measure_)
    checked = checks(explainer, explanation, rows, top)
    spent = f"; the whole report {time.perf_counter() - start:.1f} s"
    settings = replace(settings, run_time=settings.run_time + spent)
    script, css = _script(), _read("style.css")
    return environment.get_template("template.html.j2").render(
        settings=settings,
        subtitle=subtitle(explainer, explained),
        policy=_policy((FIRST_SCRIPT, script), css),
        first_script=_safe(FIRST_SCRIPT),
        script=_safe(script),
        css=_safe(css),
        data=_safe(as_json(table)),
        summary=summary(explainer, explained, settings),
        measure=shown(measure_text(explainer.measure_, settings.include_data), 600),
        words=words,
        formula=formula,
        warnings=notes,
        limits=_limits(explained, rows, settings),
        outputs=outputs,
        table=table,
        slices_name="" if settings.slices is None else shown(settings.slices),
        shared=shapley is not None,
        adds_up=explanation.predictions is not None and explanation.adds_up(),
        measure_name=shown(explainer.measure_.in_words()),
        checks=checked,
        has_bands=explanation.background_error is not None,
        number=_number,
        code=code(explainer, os.path.basename(path), settings, other is not None),
        describe=_shown_lines(explainer.describe()) if settings.include_data else "",
    )


def _shown_lines(text: str) -> str:
    """Return text of several lines, each shortened and safe to show."""
    return "\n".join(shown(line, 400) for line in text.splitlines())


def _limits(explained: ExplainedRows, rows: np.ndarray, settings: Settings) -> list[dict]:
    """Return which parts are not shown completely, and the code that shows all of them."""
    n, g = explained.n_rows, len(explained.size)
    explanation = explained.explanation
    sizes = [
        ("rows", "max_rows", len(rows), n),
        ("columns", "max_features", settings.max_features, g),
        ("outputs", "max_outputs", settings.max_outputs, len(explanation.output_names)),
    ]
    how = {
        "rows": "The table shows rows spread evenly over all; the figures show all rows."
        if not explained.is_sample
        else "They are spread evenly over all.",
        "columns": "The most important ones are shown; the others are summed up.",
        "outputs": "The first ones are shown.",
    }
    some = {
        "what": "rows",
        "shown": f"{len(explanation):,}",
        "of": n,
        "how": "Figures, panels, warnings and checks are of rows spread evenly over all; "
        "importance is that of all rows.",
        "code": "write_report(explainer, X, path, explanation=explainer.explain(X))",
    }
    return [some] * explained.is_sample + [
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


# texts of JavaScript, comments, and the spaces around signs; a template may hold ${f("a", `b`)}
JAVASCRIPT = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|`(?:\$\{(?:[^`{}]|\{[^`{}]*\}|`(?:\$\{[^`{}]*\}|[^`])*`)*\}|[^`])*`'
    r"|/\*.*?\*/|[ ]*([-+*/%=<>!?:,;&|(){}\[\]]+)[ ]*",
    re.DOTALL,
)


def _script() -> str:
    """Return the JavaScript of the page as one function, without spaces and comments in it."""
    lines = "\n".join(_read(f"js/{name}.js") for name in SCRIPTS).splitlines()
    text = "\n".join(line.strip() for line in lines)
    text = JAVASCRIPT.sub(_tight, text)
    text = re.sub(r"\n+", "\n", text)
    return f'"use strict";(() => {{\n{text}\n}})();'


def _tight(found: re.Match) -> str:
    if found[0].startswith("/*"):
        return ""
    return found[0] if found[1] is None else found[1]


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


def _policy(scripts: tuple[str, ...], css: str) -> str:
    """Return the Content-Security-Policy: only our own scripts and style, by their hashes."""
    hashes = " ".join(f"'{_hash(script)}'" for script in scripts)
    return (
        f"default-src 'none'; img-src data:; script-src {hashes}; "
        f"style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _number(places: int, value: float | None) -> str:
    return "–" if value is None else fixed(value, places)

"""The sentences of a report: summary, warnings, checks, and the code that makes it again."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from skattr._inputs import frames, models
from skattr._utils.numbers import count, formatter, small
from skattr._version import __version__
from skattr.explanation import Explanation
from skattr.report.tables import Column
from skattr.report.words import measure_text, shown, shown_value

THIN = 30  # effective rows below which support is thin
SMALL = 1e-9  # relative errors up to which a certificate is good
NAMED = 8  # the most columns or levels that a warning names
LARGE = 0.1  # part of the spread above which the remainder is in large print


AS_ONE = "explain them as one: MeasureExplainer(model, groups={'name': ['a', 'b']})"
ADVICE = {  # what the remainder is -> why, and what to do
    "interactions": f"It is the joint effect of several columns. If you know which columns "
    f"act together, {AS_ONE}.",
    "not explained by single columns": f"It is the joint effect of several columns, and what "
    f"correlated columns explain together. To see it, {AS_ONE}.",
    "not explained by these columns": "Some columns were left out; explain all of them to see "
    "what remains then.",
}


@dataclass(frozen=True)
class Note:
    """A warning or a check: its title, its result, and "ok", "look" or "info"."""

    title: str
    text: str
    verdict: str = "look"
    large: bool = False  # whether it is in large print


def summary(explainer: Any, explanation: Explanation, settings: Any) -> list[tuple[str, str]]:
    """Return the summary as (name, value) pairs, without the measure."""
    n, d = explanation.data.shape
    g = len(explanation.feature_names)
    return [
        ("Model", model_name(explainer)),
        ("Read as", shown(explainer.pieces_.describe(), 400)),
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


def subtitle(explainer: Any, explanation: Explanation) -> str:
    """Return the summary in one line."""
    kind = "exact" if explanation.exact else "approximate"
    return (
        f"{model_name(explainer)} · {len(explanation):,} rows explained against "
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
    found = [f"skattr {__version__}", f"Python {platform.python_version()}"]
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:  # under another name, such as xgboost-cpu
            found.append(f"{name} {getattr(sys.modules.get(name), '__version__', 'unknown')}")
    return ", ".join(found)


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


# Warnings --------------------------------------------------------------------------------------


def warnings(
    explainer: Any, explanation: Explanation, columns: list[Column], include_data: bool
) -> list[Note]:
    """Return what a reader should know before trusting the values."""
    found = [
        _not_explained(explanation),
        _together(explainer),
        _thin(explanation),
        _missing(columns),
        *_unseen(columns, include_data),
        _approximate(explainer, explanation),
    ]
    if explainer.refuted_ is not None:
        found.append(Note("Black box", f"{explainer.refuted_}; it is explained as a black box"))
    return [note for note in found if note is not None]


def _remainder(one: Explanation) -> tuple[np.ndarray, float, float]:
    """Return what the values of one output leave of each prediction, its size, and the spread."""
    assert one.predictions is not None
    left = one.remainder().to_numpy()
    return left, float(np.sqrt(np.mean(left**2))), float(np.std(one.predictions))


def _not_explained(explanation: Explanation) -> Note | None:
    """Warn, in large print, if the values leave much of the predictions unexplained."""
    if explanation.predictions is None:
        return None
    parts = [(name, *_remainder(explanation.select(name))) for name in explanation.output_names]
    shares = [size / spread if spread > 0 else 0.0 for _, _, size, spread in parts]
    worst = int(np.argmax(shares))
    if not shares[worst] > LARGE:
        return None
    output, _, size, spread = parts[worst]
    write = formatter([size, spread])
    what = explanation.remainder_name
    which = f" of {shown(output)}" if len(parts) > 1 else ""
    return Note(
        f"{what.capitalize()}: {shares[worst]:.0%} of the spread",
        f"The values of a row do not add up to its prediction. What they leave has a root mean "
        f"square of {write(size)}, where the predictions{which} have a standard "
        f"deviation of {write(spread)}. {ADVICE[what]}",
        large=True,
    )


def _together(explainer: Any) -> Note | None:
    if not explainer.notes_:
        return None
    text = " ".join(explainer.notes_)
    return Note("Dependent columns", shown(text[0].upper() + text[1:], 600))


def _thin(explanation: Explanation) -> Note | None:
    support = explanation.support
    if support is None or not (support < THIN).any():
        return None
    few = support < THIN
    worst = np.argsort(-few.sum(axis=0), kind="stable")[:NAMED]
    names = [
        f"{shown(explanation.feature_names[j])} ({count(few[:, j].sum())} rows)"
        for j in worst
        if few[:, j].any()
    ]
    return Note(
        "Thin support",
        f"{count(few.sum())} of {count(few.size)} values stand on fewer than {THIN} background "
        f"rows (effective number; the least {support.min():.1f}): {', '.join(names)}",
    )


def _missing(columns: list[Column]) -> Note | None:
    gone = [(column.name, int(column.missing.sum())) for column in columns]
    gone = sorted([(name, n) for name, n in gone if n], key=lambda each: -each[1])
    if not gone:
        return None
    more = f" and {len(gone) - NAMED} more columns" if len(gone) > NAMED else ""
    listed = ", ".join(f"{name} ({count(n)} rows)" for name, n in gone[:NAMED])
    return Note(
        "Missing values", f"{listed}{more}. They are treated as the model treats them.", "info"
    )


def _unseen(columns: list[Column], include_data: bool) -> list[Note]:
    found = []
    for column in columns:
        known = column.levels()
        if known is None:
            continue
        new = [v for v in frames.distinct_levels(column.parts[0]) if v not in known]
        if new:
            rows = int(column.parts[0].isin(new).sum())
            listed = ", ".join(shown_value(v) for v in new[:NAMED])
            listed += f" and {len(new) - NAMED} more" if len(new) > NAMED else ""
            names = f": {listed}" if include_data else ""
            text = f"{column.name}: {count(len(new))} levels that the model does not know, "
            text += f"in {count(rows)} rows"
            found.append(Note("Unseen categories", text + names))
    return found


def _approximate(explainer: Any, explanation: Explanation) -> Note | None:
    if explanation.exact:
        return None
    text = "The values are estimates; tables and figures show or name their standard errors."
    spread = explainer.spread_
    if explanation.std_error is not None and spread is not None:
        size = explanation.std_error / (spread if explanation.std_error.ndim == 3 else spread[0])
        far = int((size > explainer.tol * (1 + 1e-9)).sum())
        if far:
            text += (
                f" {count(far)} of {count(size.size)} stopped at max_evals={explainer.max_evals} "
                f"with a standard error above tol; raise max_evals."
            )
    return Note("Approximate values", text)


# Checks ----------------------------------------------------------------------------------------


def checks(
    explainer: Any, explanation: Explanation, rows: np.ndarray, top: np.ndarray
) -> list[Note]:
    """Return what was verified, on some rows where all would be slow."""
    return [
        *(_gap(explanation.select(name)) for name in explanation.output_names[:NAMED]),
        _reading(explainer, explanation, rows),
        _repeat(explainer, explanation, rows, top),
        *_certificate(explanation),
        _errors(explanation),
    ]


def _gap(one: Explanation) -> Note:
    """Compare the sum of the values with the prediction."""
    title = f"What is left of {shown(one.output_names[0])}: {one.remainder_name}"
    if one.predictions is None:
        return Note(title, "not computed: the explanation has no predictions", "info")
    gap, size, spread = _remainder(one)  # (n,)
    write = formatter(gap)
    text = (
        f"prediction − mean of f − centred values: from {write(gap.min())} to {write(gap.max())}, "
        f"root mean square {write(size)}"
    )
    if spread > 0:
        text += f", {size / spread:.0%} of the spread of the predictions"
    scale = max(spread, float(np.abs(one.predictions).max()))
    if np.abs(gap).max() <= 1e-8 * scale:
        return Note(title, f"{text}. The values add up to the prediction.", "ok")
    return Note(title, f"{text}. {ADVICE[one.remainder_name]}", "info")


def _reading(explainer: Any, explanation: Explanation, rows: np.ndarray) -> Note:
    title = "Certificate: the model was read correctly"
    some = frames.take_rows(_as_fitted(explainer, explanation.data), rows)
    found = explainer.pieces_.reading(some)
    if found is None:
        return Note(title, "nothing was read: the model itself was evaluated", "ok")
    values, allowed = found
    off = np.abs(values - explainer.pieces_.predict(some))
    verdict = "ok" if (off <= allowed).all() else "look"
    text = (
        f"pieces and model differ by at most {small(off.max())} on {len(rows)} rows of this report"
    )
    return Note(title, text, verdict)


def _as_fitted(explainer: Any, data: Any) -> Any:
    names = explainer.column_names_
    is_named = frames.is_frame(data) and set(frames.labels(data)) == set(names)
    return frames.reorder(data, names) if is_named else data


def _repeat(explainer: Any, explanation: Explanation, rows: np.ndarray, top: np.ndarray) -> Note:
    """Explain a few rows on their own, and compare with their values among all rows."""
    few = rows[:: max(1, len(rows) // 5)][:5]
    names = [explanation.feature_names[j] for j in top]
    part = explanation[few]
    again = explainer.explain(part.data, features=names, predictions=False).centered()
    off = float(np.abs(again.values - part.values[:, top]).max())
    columns = "" if len(top) == explanation.values.shape[1] else f" in the {len(top)} columns shown"
    what = "1 row" if len(few) == 1 else f"{len(few)} rows"
    text = f"{what} explained once more{columns}, alone: largest difference {small(off)}"
    return Note("Certificate: the values can be computed again", text, "ok" if off == 0 else "look")


def _certificate(explanation: Explanation) -> list[Note]:
    """Report the error bounds of exact engines."""
    found = explanation.certificate or {}
    notes = []
    if "cells" in found:
        error = found["volume_error"]
        text = f"{found['cells']:,} cells were integrated; their volumes add up to those of the "
        text += f"boxes, relatively to within {small(error)}"
        notes.append(Note("Certificate: no region is lost", text, _small(error)))
    if "quadrature_error" in found:
        error = found["quadrature_error"]
        text = f"bounded by {small(error)}, in units of the output's largest possible change"
        notes.append(Note("Certificate: error of the quadrature", text, _small(error)))
    return notes


def _small(error: float) -> str:
    return "ok" if error <= SMALL else "look"


def _errors(explanation: Explanation) -> Note:
    if explanation.std_error is None:
        return Note("Error bars", "none: the values are exact up to rounding", "ok")
    error = explanation.std_error
    text = f"standard errors: median {small(np.median(error))}, largest {small(error.max())}"
    return Note("Error bars", text, "info")


# Code ------------------------------------------------------------------------------------------


def code(explainer: Any, path: str, settings: dict[str, Any], include_data: bool) -> str:
    """Return Python that makes the report again, given the model and the data."""
    defaults = type(explainer)(None).get_params(deep=False)
    params = explainer.get_params(deep=False)
    private = () if include_data else ("domain",)
    changed = {
        name: "..." if name in private else shown(repr(value), 400)
        for name, value in params.items()
        if name not in ("estimator", "measure") and not _same(value, defaults[name])
    }
    kinds = sorted({type(term).__name__ for _, term in _terms(explainer)})
    arguments = ["model", f"measure={measure_text(explainer.measure_, include_data)}"]
    arguments += [f"{name}={value}" for name, value in changed.items()]
    given = "".join(f", {name}={value!r}" for name, value in settings.items())
    return "\n".join(
        [
            "from skattr import MeasureExplainer, write_report",
            f"from skattr.measures import {', '.join(kinds)}",
            "",
            f"explainer = MeasureExplainer({', '.join(arguments)})",
            f"explainer.fit(X_background)  # {count(explainer.n_background_)} rows",
            "explanation = explainer.explain(X)",
            f"write_report(explainer, X, {shown(repr(path), 200)}{given})",
        ]
    )


def _terms(explainer: Any) -> list:
    from skattr.measures.base import as_terms

    return as_terms(explainer.measure_)


def _same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and not isinstance(a, np.ndarray) and bool(a == b))

"""The checks of a report: what was verified when it was written."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.numbers import formatter, percent, small
from skattr.explanation import Explanation
from skattr.report.notes import ADVICE, NAMED, Note, remainder
from skattr.report.words import shown

SMALL = 1e-9  # relative errors up to which a certificate is good


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
    gap, size, spread = remainder(one)  # (n,)
    write = formatter(gap)
    text = (
        f"prediction − mean of f − centred values: from {write(gap.min())} to {write(gap.max())}, "
        f"root mean square {write(size)}"
    )
    if spread > 0:
        text += f", {percent(size / spread)} of the spread of the predictions"
    scale = max(spread, float(np.abs(one.predictions).max()))
    if np.abs(gap).max() <= 1e-8 * scale:
        return Note(title, f"{text}. The values add up to the prediction.", "ok")
    return Note(title, f"{text}. {ADVICE[one.remainder_name]}", "info")


def _reading(explainer: Any, explanation: Explanation, rows: np.ndarray) -> Note:
    title = "Certificate: the model was read correctly"
    some = frames.take_rows(_as_fitted(explainer, explanation.data), rows)
    reading = explainer.pieces_.reading(some)
    if reading is None:
        return Note(title, "nothing was read: the model itself was evaluated", "ok")
    values, allowed = reading
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
    certificate = explanation.certificate or {}
    notes = []
    if "cells" in certificate:
        error = certificate["volume_error"]
        text = (
            f"{certificate['cells']:,} cells were integrated; their volumes add up to those of the "
        )
        text += f"boxes, relatively to within {small(error)}"
        notes.append(Note("Certificate: no region is lost", text, _small(error)))
    if "quadrature_error" in certificate:
        error = certificate["quadrature_error"]
        text = f"bounded by {small(error)}, in units of the output's largest possible change"
        notes.append(Note("Certificate: error of the quadrature", text, _small(error)))
    return notes


def _small(error: float) -> str:
    return "ok" if error <= SMALL else "look"


def _errors(explanation: Explanation) -> Note:
    if explanation.std_error is None:
        return Note("Errors of sampling", "none: the values are exact up to rounding", "ok")
    error = explanation.std_error
    text = f"standard errors: median {small(np.median(error))}, largest {small(error.max())}"
    return Note("Errors of sampling", text, "info")

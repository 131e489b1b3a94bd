"""The warnings of a report: what a reader should know before trusting the values."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.numbers import count, formatter, percent
from skattr.explanation import Explanation
from skattr.report.notes import ADVICE, NAMED, Note, as_large, remainder
from skattr.report.shapes import with_unit
from skattr.report.tables import Column
from skattr.report.words import shown, shown_value

THIN = 30  # effective rows below which support is thin
SHARED_HERE = " Under One row, this report shows the Shapley values of its rows."
LARGE = 0.1  # part of the spread above which the remainder is in large print


def warnings(
    explainer: Any,
    explanation: Explanation,
    columns: list[Column],
    include_data: bool,
    shared: bool,
    unit: str,
) -> list[Note]:
    """Return what a reader should know before trusting the values.

    `shared` is whether the report has Shapley values of its rows, too; `unit` is that of the
    output.
    """
    notes = [
        _not_explained(explanation, shared, unit),
        _together(explainer),
        _thin(explanation),
        _missing(columns),
        *_unseen(columns, include_data),
        _approximate(explainer, explanation),
    ]
    if explainer.refuted_ is not None:
        notes.append(Note("Black box", f"{explainer.refuted_}; it is explained as a black box"))
    return [note for note in notes if note is not None]


def _not_explained(explanation: Explanation, shared: bool, unit: str) -> Note | None:
    """Warn, in large print, if the values leave much of the predictions unexplained."""
    if explanation.predictions is None:
        return None
    parts = [(name, *remainder(explanation.select(name))) for name in explanation.output_names]
    shares = [size / spread if spread > 0 else 0.0 for _, _, size, spread in parts]
    worst = int(np.argmax(shares))
    if not shares[worst] > LARGE:
        return None
    output, left, size, spread = parts[worst]
    write = formatter([size, spread])
    what = explanation.remainder_name
    which = f" of {shown(output)}" if len(parts) > 1 else ""
    title = as_large(what, percent(shares[worst]), which)
    return Note(
        title[0].upper() + title[1:],
        f"The values of a row do not add up to its prediction. They leave "
        f"{with_unit(write(size), unit)} (root mean square), where the predictions{which} have a "
        f"standard deviation of {with_unit(write(spread), unit)}. The mean of what they leave is "
        f"{with_unit(write(left.mean()), unit)}; the rest differs from row to row and is "
        f"{percent((left.std() / spread) ** 2, 1)} of the variance of the predictions. "
        f"{ADVICE[what]}{SHARED_HERE if shared else ''}",
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
    notes = []
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
            notes.append(Note("Unseen categories", text + names))
    return notes


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

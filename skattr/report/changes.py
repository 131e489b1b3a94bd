"""Counterfactuals of rows: the smallest change of one column that brings a prediction to a target.

They come from `skattr.counterfactual`, which knows all jumps of a prediction; black boxes, which
would be evaluated at every value of the background, are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr._utils.numbers import decimals, fixed, percent
from skattr.counterfactuals import ALREADY, Goal, counterfactual
from skattr.explanation import Explanation
from skattr.pieces import BlackBox
from skattr.report.settings import Settings
from skattr.report.shapes import with_unit
from skattr.report.tables import Column, spread_rows
from skattr.report.words import shown, shown_value

ROWS = 100  # rows that have counterfactuals at most
NAMED = 5  # changes of a row that are shown
HEADINGS = ("column", "now", "change to", "prediction then", "background rows like that")


def check_target(explainer: Any, target: Any) -> Any:
    """Return the target, by default the middle between two classes; None if there is none."""
    if target is None:
        return _middle(explainer)
    pieces = explainer.pieces_
    classes = getattr(pieces.output.estimator, "classes_", [])
    if len(pieces.output.names) > 1 and not any(target == label for label in classes):
        raise ValueError(
            f"target must be one of the classes {brief(list(pieces.output.names))}, as there are "
            f"several outputs; got {brief(target)}"
        )
    Goal.of(target, None, pieces)  # raises if it is neither a number nor a class
    return target


def changes(
    explainer: Any,
    explanation: Explanation,
    columns: list[Column],
    rows: np.ndarray,
    settings: Settings,
) -> dict[str, Any] | None:
    """Return what would bring rows to the target, by the position of the row among those shown.

    None where there is no target, no data may be shown, or the model is a black box.
    """
    target = settings.target
    if target is None or not settings.include_data or isinstance(explainer.pieces_, BlackBox):
        return None
    some = spread_rows(len(rows), ROWS)
    data = frames.take_rows(explanation.data, rows[some])
    if isinstance(data, pd.DataFrame):
        data = data.reset_index(drop=True)  # labels may be duplicated
    names = [column.label for column in columns if not column.is_group]
    if not names:
        return None
    units = {column.label: (column.name, column.unit) for column in columns}
    frame = counterfactual(explainer, data, target, names)
    position = frame["row"] if "row" in frame else np.zeros(len(frame), int)
    places = decimals(frame[["before", "after"]].to_numpy(float))
    threshold = Goal.of(target, None, explainer.pieces_).number
    goal = _Words(target, threshold, places, settings.output_unit)
    parts = frame.groupby(np.asarray(position))
    rows_shown = {str(some[i]): _row(part, units, goal) for i, part in parts}
    return {
        "headings": HEADINGS,
        "all": len(some) == len(rows),
        "middle": target == _middle(explainer),
        "rows": rows_shown,
    }


def _middle(explainer: Any) -> float | None:
    """Return where the predicted class changes, of a classifier of two classes with one output."""
    output = explainer.pieces_.output
    classes = getattr(output.estimator, "classes_", None)
    two = isinstance(classes, np.ndarray) and len(classes) == 2
    if len(output.names) > 1 or not two:
        return None
    return 0.5 if output.scale == "proba" else 0.0


class _Words:
    """How predictions and the target are written."""

    def __init__(self, target: Any, threshold: float | None, places: int, unit: str) -> None:
        self.target, self.threshold, self.places, self.unit = target, threshold, places, unit

    def number(self, value: float) -> str:
        return with_unit(fixed(float(value), self.places), self.unit)

    def goal(self, before: float) -> str:
        if self.threshold is None:
            return f"for the class {shown(self.target)}"
        way = "to reach" if before < self.threshold else "to fall below"
        return f"{way} {self.number(self.threshold)}"


def _row(part: pd.DataFrame, units: dict, words: _Words) -> dict[str, Any]:
    """Return the changes of one row: most plausible ones first, and what cannot be done."""
    before = float(part["before"].iloc[0])
    start = f"The prediction is {words.number(before)}"
    if (part["note"] == ALREADY).any():
        return {"text": f"{start}, which is {words.goal(before)[4:]} already.", "lines": []}
    possible = part[part["after"].notna()].sort_values("share", ascending=False, kind="stable")
    possible = possible.drop_duplicates("column")[:NAMED]
    text = f"{start}; {words.goal(before)}, one column alone could change:"
    if not len(possible):
        text = f"{start}; {words.goal(before)}, no column alone is enough."
    lines = []
    for column, now, to, after, share in zip(
        *(possible[name] for name in ("column", "from", "to", "after", "share")), strict=True
    ):
        name, unit = units[column]
        like = "not known" if np.isnan(share) else "none" if share == 0 else percent(share, 1)
        texts = [with_unit(shown_value(value), unit) for value in (now, to)]
        lines.append([name, *texts, words.number(after), like])
    return {"text": text, "lines": lines}

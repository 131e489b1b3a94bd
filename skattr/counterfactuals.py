"""Counterfactuals of one column: the smallest change that brings a prediction to a target.

The prediction of a row as a function of one of its columns is known with all its jumps or knots
(`MeasureExplainer.ice`), so that "no value of this column does" is an answer too. Models that are
neither trees nor ReLU networks are searched at the values of the background.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skattr._inputs import frames
from skattr._inputs.checks import position, positions
from skattr._inputs.points import one_row
from skattr._utils.messages import brief
from skattr.curves import Curves
from skattr.explainer import MeasureExplainer
from skattr.solution.ice import curves_of_rows
from skattr.solution.nearest import (
    Column,
    Condition,
    NewValue,
    nearest_date,
    nearest_level,
    nearest_number,
    nearest_seen,
)

__all__ = ["counterfactual"]

COLUMNS = ["row", "column", "from", "to", "change", "before", "after", "share", "note"]
ALREADY = "already there"
NONE = "no value of this column does"
NONE_SEEN = "no value of the background does"
UNSEEN = "no background row has such a value"


def counterfactual(
    explainer: Any,
    row: Any,
    target: Any,
    features: Any = None,
    *,
    output: Any = None,
    bounds: dict[Any, tuple[float, float]] | None = None,
) -> pd.DataFrame:
    """Return for each column the smallest change that brings the prediction to a target.

    Parameters
    ----------
    explainer : MeasureExplainer
        Fitted. Its output is the prediction; its measure does not matter.
    row : DataFrame or array (n, d); Series, dict or array (d,) for one row
        The rows.
    target : float or label
        A threshold, which is to be reached from below, or to be fallen short of if the prediction
        is at least that now; or a class, which is to be predicted. A float is a threshold; other
        numbers are classes if the classifier has them.
    features : list, optional
        The columns that may change; all by default.
    output : str or int, optional
        The output that a threshold belongs to, if there are several.
    bounds : dict, optional
        {column: (low, high)}: the values that a column of numbers may take. A column that can only
        rise has the bounds (its value, inf).

    Returns
    -------
    DataFrame
        One line per row and column, sorted by columns: `row`, `column`, `from`, `to`, `change` (NaN
        for levels), the prediction `before` and `after`, `share` and `note`. Every level that does
        it has a line, by share. `share` is the share of the background with such a value: the same
        level, or a number in the same stretch of values that reach the target; NaN if the
        background came in batches. Where nothing does it, `to` is missing and `note` says so. A
        missing value goes to where such values begin, in the step that most of the background has,
        or to the median of the background if every number does it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = skattr.MeasureExplainer(tree).fit(X)
    >>> changes = skattr.counterfactual(explainer, X[0], 1.5)
    >>> changes[["column", "from", "to", "after", "note"]]
      column  from   to  after                          note
    0     x0   0.0  0.5    2.0
    1     x1   0.0  NaN    NaN  no value of this column does
    """
    if not isinstance(explainer, MeasureExplainer):
        raise TypeError(f"explainer must be a fitted MeasureExplainer, got {brief(explainer)}")
    check_is_fitted(explainer)
    model = explainer._model
    names = model.names
    table = _as_table(row, model)
    rows = explainer._aligned(table)
    chosen = positions(features, names, "features")
    limits = _read_bounds(bounds, names, model.row.X)
    goal = Goal.of(target, output, model)
    curves = curves_of_rows(explainer._solution, explainer._fitting.seen, rows, table, chosen)
    kept = explainer._fitting.pairs
    lines: list[tuple[int, tuple[Any, ...]]] = []
    values = frames.to_list(frames.column(rows, chosen[0])) if chosen else []
    before = [
        one([value])[0]
        for one, value in zip(curves[0].each() if values else (), values, strict=True)
    ]
    for k, of_column in zip(chosen, curves, strict=True):
        column = Column.of(k, model.row.X, kept.background, kept.weights, limits.get(k))
        lines += _lines(of_column, column, frames.to_list(frames.column(rows, k)), before, goal)
    order = sorted(range(len(lines)), key=lambda i: lines[i][0])
    frame = pd.DataFrame([lines[i][1] for i in order], columns=COLUMNS)
    return frame.drop(columns="row") if len(rows) == 1 else frame


@dataclass(frozen=True)
class Goal:
    """A threshold of one output, or a class."""

    number: float | None
    outputs: list[int]  # the outputs that matter
    klass: int | None = None  # position of the class among the outputs, or 0 and 1 of two classes
    middle: float | None = None  # of two classes with one output: where the label changes

    @classmethod
    def of(cls, target: Any, output: Any, model: Any) -> Goal:
        """Read a target."""
        names = list(model.output.names)
        classes = getattr(model.output.estimator, "classes_", None)
        several = classes is None or isinstance(classes, list)  # none, or several targets
        labels = [] if several else np.asarray(classes).tolist()
        is_class = not isinstance(target, float) and any(target == label for label in labels)
        if is_class:
            c = next(i for i, label in enumerate(labels) if target == label)
            if len(names) == 1:
                return cls(None, [0], c, 0.5 if model.output.scale == "proba" else 0.0)
            if len(names) != len(labels):
                raise ValueError(f"the outputs {names} are not the classes {labels}")
            return cls(None, list(range(len(names))), c)
        if isinstance(target, bool | str) or not np.isscalar(target) or not np.isreal(target):
            known = f" or a class of {labels}" if labels else ""
            raise ValueError(f"target must be a number{known}, got {brief(target)}")
        number = float(np.asarray(target))
        if np.isnan(number):
            raise ValueError("target must be a number, got NaN")
        if model.output.scale == "proba" and not 0 < number <= 1:
            raise ValueError(f"no probability reaches {number:g}: target must be in (0, 1]")
        if output is None and len(names) > 1:
            raise ValueError(f"there are several outputs: choose output= from {names}")
        return cls(number, [0 if output is None else position(output, names, "output", "output")])

    def condition(self, before: np.ndarray) -> Condition:
        """Return the function that tells which predictions reach the target; `before` is (k,)."""
        if self.number is not None:
            o, number, rises = self.outputs[0], self.number, before[self.outputs[0]] < self.number
            return lambda values: (values[:, o] >= number) == rises
        klass, middle = self.klass, self.middle
        if middle is not None:
            return lambda values: (values[:, 0] > middle) == (klass == 1)
        return lambda values: values.argmax(axis=1) == klass

    def shown(self, values: np.ndarray) -> float:
        """Return the number of a prediction (k,) that is shown."""
        several = self.klass is not None and self.middle is None
        return float(values[self.klass if several and self.klass is not None else self.outputs[0]])


def _lines(
    curves: Curves, column: Column, values: list, predictions: list[np.ndarray], goal: Goal
) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the lines of one column: the position of the row, and the line."""
    lines = []
    for i, (label, one) in enumerate(zip(curves.index, curves.each(), strict=True)):
        value, before = values[i], predictions[i]
        reached = goal.condition(before)
        start = (label, curves.feature, value)
        if reached(before[None])[0]:
            shown = goal.shown(before)
            line = (*start, value, 0.0, shown, shown, column.share_of(value), ALREADY)
            lines.append((i, line))
            continue
        new_values: list[NewValue] = _search(one, column)(one, column, value, reached)
        if not new_values:
            note = NONE if one.kind in ("steps", "linear", "levels") else NONE_SEEN
            empty = (None, np.nan, goal.shown(before), np.nan, np.nan)
            lines.append((i, (*start, *empty, note)))
        for each in new_values:
            differs = one.kind != "levels" and (column.dtype is not None or column.of_dates)
            change = each.to - value if differs else np.nan
            note = UNSEEN if each.share == 0 else ""
            after = goal.shown(each.after)
            line = (*start, each.to, change, goal.shown(before), after, each.share, note)
            lines.append((i, line))
    return lines


def _search(curve: Any, column: Column) -> Callable[..., list[NewValue]]:
    if curve.kind == "levels":
        return nearest_level
    if column.dtype is not None:
        return nearest_number
    return nearest_date if column.of_dates else nearest_seen


def _as_table(row: Any, model: Any) -> Any:
    """Return rows as a table; a dict, a Series or a one-dimensional array is one row."""
    like = model.row.X
    arrays = isinstance(row, np.ndarray) and isinstance(like, np.ndarray)
    if arrays and row.dtype == like.dtype and row.shape == like.shape[1:]:
        return row[None]
    if isinstance(row, dict | pd.Series) or (not frames.is_frame(row) and np.ndim(row) == 1):
        try:
            return one_row(row, like)
        except ValueError as error:
            text = str(error).replace("the Baseline's point", "the row")
            raise ValueError(text.replace("the Baseline's", "the row's")) from error
    return row


def _read_bounds(bounds: Any, names: list, row: Any) -> dict[int, tuple[float, float]]:
    if bounds is None:
        return {}
    if not isinstance(bounds, dict):
        raise ValueError(f"bounds must be a dict {{column: (low, high)}}, got {brief(bounds)}")
    result = {}
    for name, pair in bounds.items():
        k = position(name, names, "bounds")
        if not frames.is_number(row, k):
            raise ValueError(
                f"bounds: column {name!r} does not hold numbers; leave it out of features"
            )
        two = isinstance(pair, tuple | list) and len(pair) == 2
        if not two or not all(isinstance(end, Real) for end in pair) or not pair[0] <= pair[1]:
            raise ValueError(f"bounds of column {name!r} must be (low, high), got {brief(pair)}")
        result[k] = (float(pair[0]), float(pair[1]))
    return result

"""Curve: the attribution of one column as a function of its value, with names."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr.curves.base import ColumnFunction


class Curve:
    """phi_j as a function of x_j alone; made by `MeasureExplainer.curve`.

    Attributes
    ----------
    feature : label
        The column.
    kind : {"steps", "linear", "levels", "function"}
        A step function with all its jumps; a piecewise linear function with all its knots; one
        value per level; or a function that is evaluated when called.
    output_names : tuple of str
        The outputs.
    offset : array (k,), or None
        What centring subtracts, as in Explanation; None if not known.
    scale : str
        What the values are, as in Explanation.
    span : (float, float), or None
        The range of the background, where a piecewise linear function is plotted.
    measure_name : str
        The measure in words, "" if not known.
    order : tuple, or None
        The levels of a boolean column or of ordered categories, in their order.
    missing_seen : bool, or None
        Whether the background has missing values in the column; None if not known.
    """

    def __init__(
        self,
        feature: Any,
        output_names: tuple[str, ...],
        function: ColumnFunction,
        offset: np.ndarray | None = None,
        scale: str = "",
        span: tuple[float, float] | None = None,
        measure_name: str = "",
        order: tuple[Any, ...] | None = None,
        missing_seen: bool | None = None,
    ) -> None:
        self.feature = feature
        self.output_names = output_names
        self.offset = offset
        self.scale = scale
        self.span = span
        self.measure_name = measure_name
        self.order = order
        self.missing_seen = missing_seen
        self._function = function
        self._outputs = list(range(len(output_names)))  # among those of the function

    @property
    def kind(self) -> str:
        """The kind of the curve, see the class."""
        return self._function.kind

    @property
    def levels(self) -> list[Any] | None:
        """The levels that the model distinguishes, or None for a curve of numbers."""
        return self._function.levels()

    def select(self, output: str | int) -> Curve:
        """Return the curve of one output.

        Parameters
        ----------
        output : str or int
            The name of the output, or its position.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skattr import MeasureExplainer
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> curve = MeasureExplainer(tree).fit(X).curve("petal width (cm)")
        >>> curve.select("2").output_names
        ('2',)
        """
        o = position(output, list(self.output_names), "select", "output")
        one = copy(self)
        one.output_names = self.output_names[o : o + 1]
        one.offset = None if self.offset is None else self.offset[[o]]
        one._outputs = [self._outputs[o]]
        return one

    def __call__(self, values: Any) -> np.ndarray:
        """Return the attribution at some values, (m,), or (m, k) for several outputs."""
        if isinstance(values, str) or not np.iterable(values):
            values = [values]
        objects = isinstance(values, np.ndarray) and values.dtype.kind == "O" and values.ndim == 1
        if objects or not hasattr(values, "dtype"):  # which may hold strings and None
            values = frames.as_column(list(values))
        if np.ndim(values) != 1:
            raise ValueError(
                f"column {self.feature!r}: values must be one-dimensional, got shape {values.shape}"
            )
        if self._function.of_numbers and getattr(values.dtype, "kind", "O") not in "biufmM":
            text = next((value for value in values if isinstance(value, str)), None)
            if text is not None:  # some models would convert it
                raise ValueError(f"column {self.feature!r} must hold numbers, got {text!r}")
        self._function.warn_of_rounding(values)
        result = self._function.evaluate(values)[:, self._outputs]
        return result[:, 0] if len(self.output_names) == 1 else result

    @cached_property
    def _table(self) -> tuple[pd.DataFrame, np.ndarray]:
        return self._function.table()

    def to_frame(self) -> pd.DataFrame:
        """Return the curve as a table.

        Steps have the columns `lower, upper, closed, value`, one row for lower < x <= upper (the
        first row includes -inf, unless a row with `closed` "both" gives its value). Linear curves
        have `x, value` at all knots, with two rows where the value jumps (the first one holds up to
        x), three where a single number has another value, and one row beyond the knots on either
        side, from where the curve goes straight on. Levels, among them booleans, have `level, kind,
        value`. A function has `x, value` at the distinct values of the background. Several outputs
        have one column `value_<output>` each.

        Missing has a row: `closed` is "missing", `x` is NaN, or `kind` is "missing". The `kind` of
        a row of levels is "level", "missing" or "other", which stands for all levels that the model
        does not know; the `level` of the last two is only a name ("missing", "any other"), which a
        level may have too. If the model distinguishes None from NaN, there are the rows "missing
        (None)" and "missing (NaN)". If the model does not keep the names of levels (catboost), the
        table has the levels of the background, and "any other" only if these are all.
        """
        frame, values = self._table
        values = values[:, self._outputs]
        if len(self.output_names) == 1:
            return frame.assign(value=values[:, 0])
        columns = {f"value_{name}": values[:, o] for o, name in enumerate(self.output_names)}
        return pd.concat([frame, pd.DataFrame(columns, index=frame.index)], axis=1)

    def __repr__(self) -> str:
        return f"<Curve of {self.feature!r}: {self.kind}>"

"""Curve: the attribution of one column as a function of its value, with names."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr._intervals import NO_ERROR, check_level, half_width
from skattr._utils.messages import check_flag
from skattr.curves.background import BackgroundErrors
from skattr.curves.base import ColumnFunction
from skattr.curves.tables import with_values


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
    n_folds : int
        The number of folds of `background_error`, 0 if it is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> curve = explainer.curve("x0")
    >>> curve([0.0, 1.0])
    array([-1.5,  1.5])
    >>> curve.to_frame()
       lower  upper   closed  value
    0   -inf    0.5    right   -1.5
    1    0.5    inf    right    1.5
    2    NaN    NaN  missing    1.5
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
        errors: BackgroundErrors | None = None,
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
        self._errors = errors
        self._outputs = list(range(len(output_names)))  # among those of the function

    @property
    def kind(self) -> str:
        """The kind of the curve, see the class."""
        return self._function.kind

    @property
    def levels(self) -> list[Any] | None:
        """The levels that the model distinguishes, or None for a curve of numbers."""
        return self._function.levels()

    @property
    def of_numbers(self) -> bool:
        """Whether the curve takes only numbers."""
        return self._function.of_numbers

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
        values = as_values(values, self)
        self._function.warn_of_rounding(values)
        result = self._function.evaluate(values)[:, self._outputs]
        return result[:, 0] if len(self.output_names) == 1 else result

    @property
    def n_folds(self) -> int:
        """The number of folds of `background_error`, 0 if it is not known."""
        return 0 if self._errors is None else self._errors.n_folds

    def background_error(self, values: Any, centered: bool = False) -> np.ndarray | None:
        """Return the standard errors of a finite background at some values, or None.

        They are (m,), or (m, k) for several outputs: see `Explanation.background_error`. None if
        they are not computed, see `MeasureExplainer.describe`.

        Parameters
        ----------
        values : array (m,)
            Values of the column.
        centered : bool, default=False
            Whether to return the errors of the curve less its `offset`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.random.default_rng(0).random((200, 2))
        >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
        >>> MeasureExplainer(tree).fit(X).curve("x0").background_error([0.2, 0.8]).shape
        (2,)
        """
        check_flag("centered", centered)
        if self._errors is None:
            return None
        error = self._errors.at(centered, as_values(values, self))[:, self._outputs]
        return error[:, 0] if len(self.output_names) == 1 else error

    def interval(
        self, values: Any, level: float = 0.95, centered: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of intervals around the curve, from the rows of the background.

        Parameters
        ----------
        values : array (m,)
            Values of the column.
        level : float, default=0.95
            The probability with which the interval at one value covers the curve, with other rows
            of the same law as background.
        centered : bool, default=False
            Whether to return those of the curve less its `offset`.

        Returns
        -------
        low, high : arrays (m,), or (m, k) for several outputs

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.random.default_rng(0).random((200, 2))
        >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
        >>> curve = MeasureExplainer(tree).fit(X).curve("x0")
        >>> low, high = curve.interval([0.2, 0.8])
        >>> bool((low < curve([0.2, 0.8])).all())
        True
        """
        level = check_level(level)
        error = self.background_error(values, centered)
        if error is None:
            raise ValueError(NO_ERROR)
        value = self(values)
        if centered:
            value = value - self._offset()
        width = half_width(error, self.n_folds, None, level)
        return value - width, value + width

    def _offset(self) -> Any:
        """Return what centring subtracts, () or (k,)."""
        if self.offset is None:
            raise ValueError(f"{self!r} does not know its offset: use centered=False")
        return self.offset[0] if len(self.output_names) == 1 else self.offset

    def table_errors(self, centered: bool) -> np.ndarray:
        """Return `background_error` at the lines of `to_frame`, (m, k); NaN at "any other".

        Parameters
        ----------
        centered : bool
            Whether the errors are those of the centred curve.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
        >>> curve = MeasureExplainer(tree).fit(X).curve("bmi")
        >>> curve.table_errors(centered=False).shape == (len(curve.to_frame()), 1)
        True
        """
        if self._errors is None:
            raise ValueError(NO_ERROR)
        return self._errors.of_table(centered, self._table[0])[:, self._outputs]

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

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> explainer.curve("x1").to_frame()
           lower  upper   closed  value
        0   -inf    0.5    right   -1.0
        1    0.5    inf    right    1.0
        2    NaN    NaN  missing    1.0
        """
        frame, values = self._table
        return with_values(frame, values[:, self._outputs], self.output_names)

    def __repr__(self) -> str:
        return f"<Curve of {self.feature!r}: {self.kind}>"


def as_values(values: Any, curve: Any) -> Any:
    """Return values of the column of a curve as a one-dimensional column."""
    if isinstance(values, str) or not np.iterable(values):
        values = [values]
    objects = isinstance(values, np.ndarray) and values.dtype.kind == "O" and values.ndim == 1
    if objects or not hasattr(values, "dtype"):  # which may hold strings and None
        values = frames.as_column(list(values))
    if np.ndim(values) != 1:
        raise ValueError(
            f"column {curve.feature!r}: values must be one-dimensional, got shape {values.shape}"
        )
    if curve.of_numbers and getattr(values.dtype, "kind", "O") not in "biufmM":
        kinds = str | complex | np.complexfloating  # which numpy, or the model, would convert
        other = next((value for value in values if isinstance(value, kinds)), None)
        if other is not None:
            raise ValueError(f"column {curve.feature!r} must hold numbers, got {other!r}")
    return values

"""Curves: the prediction of single rows as a function of one of their columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs.checks import position
from skattr.curves.base import ColumnFunction
from skattr.curves.curve import as_values
from skattr.curves.tables import with_values


@dataclass(eq=False)
class RowCurve:
    """The prediction of one row, (m, k), as a function of one column."""

    curves: Curves
    function: int  # its position among the functions
    row: int  # its position among the rows of the function
    known: tuple[pd.DataFrame, np.ndarray] | None  # the table of the function

    @property
    def kind(self) -> str:
        """The kind of the curve, as in `Curve`."""
        return self.curves.kind

    def __call__(self, values: Any) -> np.ndarray:
        """Return the predictions at some values, (m, k)."""
        values = as_values(values, self.curves)
        return self._own(self.curves._functions[self.function].evaluate(values))

    def table(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the curve as a table, see `Curve.to_frame`, and its values, (m, k)."""
        frame, values = self.known or self.curves._functions[self.function].table()
        return frame, self._own(values)

    def _own(self, values: np.ndarray) -> np.ndarray:
        k = self.curves._n_outputs
        return values[:, self.row * k : (self.row + 1) * k]


class Curves:
    """f(t, x_{i,-j}) as a function of t for each row i (ICE); made by `MeasureExplainer.ice`.

    Attributes
    ----------
    feature : label
        The column.
    kind : {"steps", "linear", "levels", "function"}
        As in `Curve`: all jumps, all knots, one value per level, or evaluated when called.
    output_names : tuple of str
        The outputs.
    index : pandas Index
        The labels of the rows.
    data : DataFrame or array (n, d)
        The rows.
    scale : str
        What the values are, as in Explanation.
    span : (float, float), or None
        The range of the background, where piecewise linear curves are plotted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> curves = explainer.ice(X[:2], "x0")
    >>> curves([0.0, 1.0])  # one row each
    array([[0., 2.],
           [1., 5.]])
    """

    def __init__(
        self,
        feature: Any,
        output_names: tuple[str, ...],
        functions: Sequence[ColumnFunction],
        index: pd.Index,
        data: Any,
        scale: str = "",
        span: tuple[float, float] | None = None,
    ) -> None:
        self.feature = feature
        self.output_names = output_names
        self.index = index
        self.data = data
        self.scale = scale
        self.span = span
        # one function per row, or one for all rows, whose outputs are those of all rows in turn
        self._functions = functions
        self._outputs = list(range(len(output_names)))
        self._n_outputs = len(output_names)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def kind(self) -> str:
        """The kind of the curves, see the class."""
        return self._functions[0].kind

    @property
    def of_numbers(self) -> bool:
        """Whether the curves take only numbers."""
        return self._functions[0].of_numbers

    @property
    def levels(self) -> list[Any] | None:
        """The levels that the model distinguishes, or None for curves of numbers."""
        return self._functions[0].levels()

    def select(self, output: str | int) -> Curves:
        """Return the curves of one output.

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
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> explainer.ice(X[:3], "petal width (cm)").select("2")([0.2, 1.9]).shape
        (3, 2)
        """
        o = position(output, list(self.output_names), "select", "output")
        one = copy(self)
        one.output_names = self.output_names[o : o + 1]
        one._outputs = [self._outputs[o]]
        return one

    def __call__(self, values: Any) -> np.ndarray:
        """Return the predictions at some values, (n, m), or (n, m, k) for several outputs.

        Parameters
        ----------
        values : array or column (m,)
            Values of the column, the same for all rows.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
        >>> curves = MeasureExplainer(tree).fit(X).ice(X[:2], 0)
        >>> curves([0.0, 1.0])
        array([[0., 2.],
               [1., 5.]])
        """
        values = as_values(values, self)
        self._functions[0].warn_of_rounding(values)
        parts = [self._rows(function.evaluate(values)) for function in self._functions]
        return self._shaped(np.concatenate(parts))

    def _rows(self, values: np.ndarray) -> np.ndarray:
        """Return the values of one function, (m, rows · k), as (rows, m, k)."""
        return values.reshape(len(values), -1, self._n_outputs).transpose(1, 0, 2)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        values = values[..., self._outputs]
        return values[..., 0] if len(self.output_names) == 1 else values

    def tables(self) -> list[tuple[pd.DataFrame, np.ndarray]]:
        """Return for each row its table, as in `Curve.to_frame`, and its values, (m,) or (m, k).

        Rows that share their jumps share the frame.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
        >>> curves = MeasureExplainer(tree).fit(X).ice(X[:5], "bmi")
        >>> frame, values = curves.tables()[0]
        >>> len(frame) == len(values)
        True
        """
        result = []
        for function in self._functions:
            frame, values = function.table()
            result += [(frame, self._shaped(row)) for row in self._rows(values)]
        return result

    def each(self) -> Iterator[RowCurve]:
        """Yield the curve of each row, with all its outputs.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
        >>> curves = MeasureExplainer(tree).fit(X).ice(X[:5], "bmi")
        >>> [curve([0.0]).shape for curve in curves.each()]
        [(1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]
        """
        shared = len(self._functions) < len(self)
        table = self._functions[0].table() if shared and self.kind != "function" else None
        for i in range(len(self)):
            yield RowCurve(self, 0 if shared else i, i if shared else 0, table)

    def to_frame(self) -> pd.DataFrame:
        """Return all curves as one table: `row`, then the columns of `Curve.to_frame`.

        Several outputs have one column `value_<output>` each.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> explainer.ice(X[:1], "x0").to_frame()
           row  lower  upper   closed  value
        0    0   -inf    0.5    right    0.0
        1    0    0.5    inf    right    2.0
        2    0    NaN    NaN  missing    2.0
        """
        parts = []
        for label, (frame, values) in zip(self.index, self.tables(), strict=True):
            values = values.reshape(len(frame), -1)
            parts.append(with_values(frame, values, self.output_names))
            parts[-1].insert(0, "row", label)
        return pd.concat(parts, ignore_index=True)

    def __repr__(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        return f"<Curves of {self.feature!r} in {rows}: {self.kind}>"

"""Surface: the attribution of two columns together as a function of their values, with names."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr.curves.curve import Curve, as_values
from skattr.curves.pair_tables import PairTable
from skattr.curves.tables import with_values

CELLS = 100_000  # rows of a table of all cells


class Surface:
    """phi_jk as a function of x_j and x_k; made by `MeasureExplainer.surface`.

    It is the sum of the curves of both columns and of what they do together beyond that, less the
    offset, which both curves have.

    Attributes
    ----------
    features : (label, label)
        Both columns.
    curves : (Curve, Curve)
        The curve of each alone.
    output_names : tuple of str
        The outputs.
    offset : array (k,)
        What centring subtracts, as in Explanation; 0 for the interaction alone.
    scale : str
        What the values are, as in Explanation.
    measure_name : str
        The measure in words.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
    >>> surface = explainer.surface("x0", "x1")
    >>> surface([1.0, 2.0], [4.0, 5.0])
    array([ 4., 10.])
    >>> surface.interaction()([1.0, 2.0], [4.0, 5.0])
    array([1., 4.])
    """

    def __init__(
        self,
        curves: tuple[Curve, Curve],
        pair: PairTable,
        offset: np.ndarray,
        measure_name: str = "",
    ) -> None:
        first, second = curves
        self.features = (first.feature, second.feature)
        self.curves = curves
        self.output_names = first.output_names
        self.offset = offset
        self.scale = first.scale
        self.measure_name = measure_name
        self._pair = pair
        self._outputs = list(range(len(self.output_names)))  # among those of the pair
        self._alone = False  # whether it is the interaction alone

    def select(self, output: str | int) -> Surface:
        """Return the surface of one output, given by its name or its position.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skattr import MeasureExplainer
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> surface = explainer.surface("petal width (cm)", "petal length (cm)")
        >>> surface.select("2").output_names
        ('2',)
        """
        o = position(output, list(self.output_names), "select", "output")
        one = copy(self)
        one.output_names = self.output_names[o : o + 1]
        one.offset = self.offset[[o]]
        one.curves = (self.curves[0].select(output), self.curves[1].select(output))
        one._outputs = [self._outputs[o]]
        return one

    def interaction(self) -> Surface:
        """Return the surface of what both columns do together beyond each alone.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.surface("x0", "x1").interaction()([1.0, 2.0], [4.0, 5.0])
        array([1., 4.])
        """
        alone = copy(self)
        alone.offset = np.zeros_like(self.offset)
        alone._alone = True
        return alone

    def __call__(self, a: Any, b: Any) -> np.ndarray:
        """Return the values at points, (m,), or (m, k) for several outputs.

        Parameters
        ----------
        a, b : array (m,)
            The values of both columns.
        """
        first, second = self._values(a, b)
        if len(first) != len(second):
            raise ValueError(
                f"surface of {self.features}: both columns must have as many values, got "
                f"{len(first)} and {len(second)}; grid(a, b) takes all combinations"
            )
        return self._whole(self._pair.evaluate(first, second), *self._alone_at(first, second))

    def grid(self, a: Any, b: Any) -> np.ndarray:
        """Return the values at all combinations, (m_a, m_b), or (m_a, m_b, k).

        Parameters
        ----------
        a, b : array (m_a,) and array (m_b,)
            The values of both columns.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.surface("x0", "x1").grid([1.0, 2.0], [5.0, 6.0, 7.0])
        array([[ 5.,  6.,  7.],
               [10., 12., 14.]])
        """
        first, second = self._values(a, b)
        of_a, of_b = self._alone_at(first, second)
        return self._whole(self._pair.on_grid(first, second), of_a[:, None], of_b[None])

    def to_frame(self, a: Any = None, b: Any = None) -> pd.DataFrame:
        """Return the surface as a table: all cells, or all combinations of values.

        Parameters
        ----------
        a, b : array (m_a,) and array (m_b,), optional
            Values of both columns; by default all cells of the model, if there are few. Then the
            columns that describe a cell are those of `Curve.to_frame`, with `a_` or `b_` in front.

        Returns
        -------
        DataFrame
            One row per combination: the values `a` and `b` or the cells, and the `value`, or one
            column `value_<output>` each for several outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.surface("x0", "x1").to_frame([1.0, 2.0], [5.0])
             a    b  value
        0  1.0  5.0    5.0
        1  2.0  5.0   10.0
        """
        if (a is None) != (b is None):
            raise ValueError("to_frame needs the values of both columns, or of none")
        if a is not None:
            return self._frame_of_values(*self._values(a, b))
        tables = self._pair.tables()
        n_cells = None if tables is None else [len(labels) for labels, _, _ in tables]
        if tables is None or n_cells is None or n_cells[0] * n_cells[1] > CELLS:
            why = (
                "it is evaluated on demand, and has no cells"
                if n_cells is None
                else f"it has {n_cells[0]:,} × {n_cells[1]:,} cells, more than {CELLS:,}"
            )
            raise ValueError(
                f"surface of {self.features}: {why}; give the values of the table: to_frame(a, b)"
            )
        (first, codes_a, of_a), (second, codes_b, of_b) = tables
        values = self._whole(
            self._pair.on_cells(codes_a, codes_b),
            of_a[:, None, self._outputs], of_b[None, :, self._outputs],
        )  # fmt: skip
        left = first.add_prefix("a_").iloc[np.repeat(np.arange(len(first)), len(second))]
        right = second.add_prefix("b_").iloc[np.tile(np.arange(len(second)), len(first))]
        labels = pd.concat([left.reset_index(drop=True), right.reset_index(drop=True)], axis=1)
        return self._with_values(labels, values)

    def _frame_of_values(self, a: Any, b: Any) -> pd.DataFrame:
        rows_a = np.repeat(np.arange(len(a)), len(b))
        rows_b = np.tile(np.arange(len(b)), len(a))
        columns = {
            "a": frames.as_column(frames.to_list(frames.take_values(a, rows_a))),
            "b": frames.as_column(frames.to_list(frames.take_values(b, rows_b))),
        }
        return self._with_values(pd.DataFrame(columns).infer_objects(), self.grid(a, b))

    def _with_values(self, frame: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
        flat = values.reshape(len(frame), len(self.output_names))
        return with_values(frame, flat, self.output_names)

    def _values(self, a: Any, b: Any) -> tuple[Any, Any]:
        first, second = self.curves
        return as_values(a, first), as_values(b, second)

    def _alone_at(self, a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the curves at values, (m, k) each."""
        k = len(self.output_names)
        first, second = (
            curve(values).reshape(len(values), k)
            for curve, values in zip(self.curves, (a, b), strict=True)
        )
        return first, second

    def _whole(self, pair: np.ndarray, of_a: np.ndarray, of_b: np.ndarray) -> np.ndarray:
        values = pair[..., self._outputs]
        if not self._alone:
            values = values + (of_a + of_b - self.offset)
        return values[..., 0] if len(self.output_names) == 1 else values

    def __repr__(self) -> str:
        what = "interaction" if self._alone else "surface"
        return f"<Surface of {self.features[0]!r} and {self.features[1]!r}: {what}>"

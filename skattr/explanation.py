"""Explanation: the attributions of rows, with the data that they belong to."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skattr._exports import as_html, as_shap, tidy_frame, wide_frame
from skattr._files.storage import read, write
from skattr._inputs import frames
from skattr._intervals import NO_ERROR, check_level, half_width, importance_frame
from skattr._pair_matrix import pair_matrix
from skattr._selection import positions, row_index, selected_columns, selected_rows
from skattr._utils.messages import brief, check_flag

__all__ = ["Explanation"]

ROUNDING = 1e-6  # relative: several libraries predict in float32
MAIN_EFFECTS = ("PartialDependence()", "PartialDependence() - Expectation()")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explanation:
    """The attributions phi_j(x) of n rows, for g columns or groups of columns and k outputs.

    Arrays are read-only views of what was passed; nothing is copied.

    Select parts of it by `explanation[rows]` and `explanation[rows, columns]`. Integers, slices
    and boolean masks are positions, as in numpy, even if the index of X or its columns are
    integers. Everything else is a label: of rows in the index of X, `explanation["Rome"]`, of
    columns in `feature_names`, `explanation[:, "bmi"]`. One row and one column stay a table:
    `explanation[3].values` is (1, g). `np.asarray(explanation)` are the values.

    Parameters
    ----------
    values : array (n, g), or (n, g, k) for several outputs
        The attributions.
    base_value : float or array (k,)
        Weighted mean of f over the background, whatever the measure.
    offset : float, array (k,), or the shape of values
        What `centered` subtracts: the measure's mass times the integral of f against its reference.
    predictions : array (n,), (n, k) or None
        f at the rows explained.
    data : pandas or polars DataFrame, any eager frame that narwhals knows, or array (n, d)
        The X that was explained.
    feature_names : tuple of length g
        One label for each attribution, as in X; the name of a group is a str.
    columns : tuple of length g
        For each attribution the tuple of columns of X behind it; those of an array are x0, x1, …
    output_names : tuple of str, length k
        The outputs of f, all different.
    std_error : the shape of values, or None
        Standard errors; None if the values are exact.
    centered_error : the shape of values, or None
        Standard errors of values - offset; None if they equal `std_error`.
    background_error : the shape of values, or None
        Standard errors of a finite background: how much values would vary with other rows drawn
        from the same law, by the jackknife over `n_folds` folds. What a conditional measure has
        learned (bins, bandwidths) is held fixed. Those of trees are kept with seven digits. None
        if they are not computed (see `MeasureExplainer.describe`).
    centered_background_error : the shape of values, or None
        The same of values - offset, formed from centred values; None if `background_error` is.
    n_folds : int, default 0
        The number of folds of `background_error`.
    importance_by_fold : array (n_folds, g) or (n_folds, g, k), or None
        The importances with each fold deleted, once `importance(error=True)` was called.
    folds : object or None
        Computes `importance_by_fold`; it is kept neither in files nor in pickles.
    exact : bool
        Whether the values are integrals up to rounding.
    engine : tuple of str
        The engine of each term of the measure.
    measure : str
        The repr of the measure.
    measure_name : str, default ""
        The measure in words, for legends.
    reference : float, array (k,) or None
        The mean of f that the values of a measure without mass are relative to, if this is not
        `base_value`: Shapley values under `Uniform` add up to f(x) less the mean over the domain.
    support : array (n, g) or None
        Effective number of background rows behind each value.
    scale : str, default ""
        What the numbers are: "probability", "log-odds", "prediction", …; "" if it is not known.
    certificate : dict or None
        Bounds on the error of exact engines, beyond rounding: the number of "cells" and how far
        their volumes are from that of the box ("volume_error", of 1) on ReLU networks, a bound on
        "quadrature_error".
    singles : Explanation or None
        Of an explanation of pairs, that of the single columns and groups.
    shared : bool
        Whether the values of pairs are parts of the single values (Shapley, Banzhaf), and do not
        come on top of them.

    Examples
    --------
    >>> import numpy as np
    >>> from skattr.explanation import Explanation
    >>> explanation = Explanation(
    ...     values=np.array([[1.0, 3.0], [2.0, 1.0]]), base_value=2.0, offset=2.0,
    ...     data=np.zeros((2, 2)), feature_names=("x0", "x1"), columns=(("x0",), ("x1",)),
    ...     output_names=("prediction",), exact=True, engine=("rows",),
    ...     measure="PartialDependence()",
    ... )
    >>> explanation.importance()
    x1    1.0
    x0    0.5
    Name: importance, dtype: float64
    >>> explanation[1, "x1"].values
    array([[1.]])
    """

    values: np.ndarray
    base_value: float | np.ndarray
    offset: float | np.ndarray
    predictions: np.ndarray | None = None
    data: Any
    feature_names: tuple[Hashable, ...]
    columns: tuple[tuple[Hashable, ...], ...]
    output_names: tuple[str, ...]
    std_error: np.ndarray | None = None
    centered_error: np.ndarray | None = None
    exact: bool
    engine: tuple[str, ...]
    measure: str
    support: np.ndarray | None = None
    measure_name: str = ""
    reference: float | np.ndarray | None = None
    scale: str = ""
    certificate: dict[str, float] | None = None
    singles: Explanation | None = None
    shared: bool = False
    background_error: np.ndarray | None = None
    centered_background_error: np.ndarray | None = None
    n_folds: int = 0
    importance_by_fold: np.ndarray | None = None
    folds: Any = None

    def __post_init__(self) -> None:
        self._check_names()
        n, g, k = self.data.shape[0], len(self.feature_names), len(self.output_names)
        tail = () if k == 1 else (k,)
        full = (n, g, *tail)
        if k > 1 and np.ndim(self.offset) == 0:
            self._set("offset", np.full(k, self.offset))
        shapes = {"values": [full], "base_value": [tail], "offset": [tail, full],
                  "reference": [tail], "predictions": [(n, *tail)], "std_error": [full],
                  "centered_error": [full], "support": [(n, g)], "background_error": [full],
                  "centered_background_error": [full],
                  "importance_by_fold": [(self.n_folds, g, *tail)]}  # fmt: skip
        for name, allowed in shapes.items():
            array = getattr(self, name)
            if array is not None or name in ("values", "base_value", "offset"):
                self._set(name, _frozen(name, array, allowed))
        self._set("exact", bool(self.exact))
        if self.exact and self.std_error is not None:
            raise ValueError("std_error must be None if exact is True.")
        if (self.background_error is None) != (self.centered_background_error is None):
            raise ValueError("background_error and centered_background_error need each other.")
        if self.background_error is not None and self.n_folds < 2:
            raise ValueError(f"n_folds must be at least 2, got {self.n_folds!r}.")

    def _check_names(self) -> None:
        for name in ("feature_names", "columns", "output_names", "engine"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise ValueError(
                    f"{name} must be a tuple of at least one label, got {getattr(self, name)!r}."
                )
        if not all(labels and isinstance(labels, tuple) for labels in self.columns):
            raise ValueError(
                f"each of columns must be a tuple of labels, got {brief(self.columns)}."
            )
        g, k = len(self.feature_names), len(self.output_names)
        if len(self.columns) != g:
            raise ValueError(
                f"columns must have {g} entries, as feature_names, got {len(self.columns)}."
            )
        if len({*self.output_names}) < k or not all(isinstance(o, str) for o in self.output_names):
            raise ValueError(f"output_names must be different strings, got {self.output_names}.")
        if len(getattr(self.data, "shape", ())) != 2:
            raise ValueError(f"data must be a frame or an array (n, d), got {type(self.data)}.")
        positions(self.data, self.columns)  # raises if a column is not in data

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "folds": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # pickle and copy forget that arrays are read-only

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Explanation:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if isinstance(rows, tuple):
            raise TypeError(
                f"the index must be [rows] or [rows, columns], got {brief(key)}; for an output use "
                "select(output), for a row whose label is a tuple [[label]]"
            )
        at = selected_rows(rows, row_index(self.data), len(self))
        names = ["values", "predictions", "std_error", "centered_error", "support",
                 "background_error", "centered_background_error"]  # fmt: skip
        if np.ndim(self.offset) == self.values.ndim:  # else it is the same for all rows
            names.append("offset")
        part = replace(
            self,
            data=frames.take_rows(self.data, at),
            singles=None if self.singles is None else self.singles[at],
            importance_by_fold=None,
            **self._cut(names, at),
        )
        if isinstance(columns, slice) and columns == slice(None):
            return part
        chosen = selected_columns(columns, self.feature_names)
        names.remove("predictions")
        return replace(
            part,
            feature_names=tuple(self.feature_names[j] for j in chosen),
            columns=tuple(self.columns[j] for j in chosen),
            folds=None if self.folds is None else self.folds.take(chosen),
            **part._cut(names, (slice(None), chosen)),
        )

    def _cut(self, names: Sequence[str], at: Any) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in names}
        return {name: array[at] for name, array in arrays.items() if array is not None}

    def select(self, output: str | int) -> Explanation:
        """Return the explanation of one output, with values (n, g).

        `output` is its name or, if no output has that name, its position. The class 1 has the name
        "1", so `select(1)` is that class whatever its position.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skattr import MeasureExplainer
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> explainer = MeasureExplainer(tree).fit(X)
        >>> explainer.explain(X).select("2").values.shape
        (150, 4)
        """
        names = self.output_names
        if isinstance(output, Hashable) and str(output) in names:
            o = names.index(str(output))
        elif isinstance(output, int | np.integer) and -len(names) <= output < len(names):
            o = range(len(names))[output]
        else:
            raise ValueError(f"there is no output {brief(output)}; there are {brief(list(names))}")
        if len(names) == 1:
            return self
        cut = ["values", "base_value", "offset", "reference", "predictions", "std_error",
               "centered_error", "background_error", "centered_background_error",
               "importance_by_fold"]  # fmt: skip
        singles = None if self.singles is None else self.singles.select(output)
        return replace(
            self,
            output_names=(names[o],),
            singles=singles,
            folds=None if self.folds is None else self.folds.select(o),
            **self._cut(cut, (..., o)),
        )

    def centered(self) -> Explanation:
        """Return the explanation with values - offset, and offset 0.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1], "partial_dependence").fit(X)
        >>> explainer.explain(X).centered().values
        array([[-3., -2.],
               [ 1.,  0.]])
        """
        error = self.std_error if self.centered_error is None else self.centered_error
        return replace(
            self,
            values=self.values - self.offset,
            offset=0.0,
            std_error=error,
            exact=self.exact and error is None,
            background_error=self.centered_background_error,
            singles=None if self.singles is None else self.singles.centered(),
        )

    @property
    def start(self) -> float | np.ndarray:
        """What centred values are added to, () or (k,): the offset, or the mean of f if it is 0.

        The offset of a measure without mass is 0: its values are already relative to the mean of f
        (to `reference`, if there is one).
        """
        if self.singles is not None:
            return self.singles.start
        base = np.asarray(self.base_value if self.reference is None else self.reference)
        if np.ndim(self.offset) > base.ndim:  # it differs between rows
            return self.base_value
        start = np.where(np.abs(self.offset) > 1e-12 * np.abs(base), self.offset, base)
        return start if base.ndim else float(start)

    @property
    def remainder_name(self) -> str:
        """The name of the part of the predictions that the values do not explain."""
        if self.singles is not None:  # those of all columns
            g = len(self.singles.feature_names)
            every = len(self.feature_names) == g * (g - 1) // 2
            return f"not explained by single columns and {'pairs' if every else 'these pairs'}"
        explained = {k for some in positions(self.data, self.columns) for k in some}
        if len(explained) < self.data.shape[1]:
            return "not explained by these columns"
        main = " ".join(self.measure.split()) in MAIN_EFFECTS
        return "interactions" if main else "not explained by single columns"

    def remainder(self) -> pd.Series | pd.DataFrame:
        """Return the unexplained part of each prediction: f(x) - start - Σ_j (values - offset).

        For main effects, the default measure, these are the interactions of columns. For most
        measures it is not 0. If these are pairs, it is what single values and pairs together leave.
        A Series named `remainder_name`, or for several outputs a DataFrame
        with one column per output.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain(X).remainder()
        0    2.0
        1    2.0
        Name: interactions, dtype: float64
        """
        if self.predictions is None:
            raise ValueError("the remainder needs the predictions: explain(X, predictions=True)")
        left = self.predictions - self.start - self._explained().sum(axis=1)
        if left.ndim == 1:
            return pd.Series(left, index=row_index(self.data), name=self.remainder_name)
        return pd.DataFrame(
            left, index=row_index(self.data), columns=frames.as_index(self.output_names)
        )

    def _explained(self) -> np.ndarray:
        """Return the centred values that should add up to the predictions."""
        values = self.values - self.offset
        if self.singles is None:
            return values
        singles = self.singles.values - self.singles.offset
        return singles if self.shared else np.concatenate([singles, values], axis=1)

    def adds_up(self) -> bool:
        """Return whether the values of each row add up to its prediction, up to rounding.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain(X).adds_up()
        False
        >>> explainer.with_measure("shapley").explain(X).adds_up()
        True
        """
        if self.predictions is None:
            raise ValueError("adds_up needs the predictions: explain(X, predictions=True)")
        sizes = np.abs(self._explained()).sum(axis=1) + np.abs(self.predictions)
        sizes = sizes + np.abs(self.start)
        return bool((np.abs(self.remainder().to_numpy()) <= ROUNDING * sizes).all())

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper ends of intervals around the values.

        Their width comes from `background_error` and `std_error`, whichever there are: variances
        add up, and the quantile is that of Student's t. It has `n_folds` - 1 degrees of freedom
        where values are exact, and more where the error of the approximation dominates.

        Parameters
        ----------
        level : float, default=0.95
            The probability with which the interval of one value covers it, with other rows of the
            same law as background and other seeds.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from skattr import MeasureExplainer
        >>> X = np.random.default_rng(0).random((200, 2))
        >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] * X[:, 1])
        >>> explanation = MeasureExplainer(tree).fit(X).explain(X)
        >>> low, high = explanation.interval()
        >>> bool((low <= explanation.values).all() and (explanation.values <= high).all())
        True
        """
        level = check_level(level)
        if self.background_error is None and self.std_error is None:
            raise ValueError(NO_ERROR)
        width = half_width(self.background_error, self.n_folds, self.std_error, level)
        return self.values - width, self.values + width

    def importance(self, error: bool = False, level: float = 0.95) -> pd.Series | pd.DataFrame:
        """Return the mean over rows of |values - offset|, the largest first.

        A Series or, for several outputs, a DataFrame with one column per output, sorted by the mean
        over outputs. Ties keep the order of feature_names.

        Parameters
        ----------
        error : bool, default=False
            Whether to return a DataFrame with the columns `importance`, `error` (from a finite
            background, as `background_error`), `low` and `high`, with several outputs for each of
            them. A mean of absolute values is biased upwards by about as much as the values vary: a
            column that does not matter has a positive importance, and intervals near 0 lie too
            high. An error of the approximation, `std_error`, is not part of it.
        level : float, default=0.95
            The level of the interval from `low` to `high`.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain(X).importance()
        x0    2.0
        x1    1.0
        Name: importance, dtype: float64
        """
        check_flag("error", error)
        level = check_level(level)
        if len(self) == 0:
            raise ValueError("importance is a mean over rows, and this explanation has none.")
        mean = np.abs(self.values - self.offset).mean(axis=0)  # (g,) or (g, k)
        order = np.argsort(-mean.reshape(len(mean), -1).mean(axis=1), kind="stable")
        index = frames.as_index(self.feature_names)[order]
        if mean.ndim == 1:
            result = pd.Series(mean[order], index=index, name="importance")
        else:
            result = pd.DataFrame(
                mean[order], index=index, columns=frames.as_index(self.output_names)
            )
        if not error:
            return result
        return importance_frame(result, order, self._by_fold(), level, self.output_names)

    def _by_fold(self) -> np.ndarray:
        """Return the importances with each fold deleted, (G, g) or (G, g, k)."""
        if self.background_error is None:
            raise ValueError(NO_ERROR)
        if self.importance_by_fold is None:
            if self.folds is None:
                raise ValueError(
                    "files and pickles keep the errors of importances only if these were computed "
                    "before, and for all rows: call explain again"
                )
            self._set("importance_by_fold", self.folds.importance(self.data))
        assert self.importance_by_fold is not None
        return self.importance_by_fold

    def to_matrix(self) -> np.ndarray:
        """Return pairs and single values as one matrix per row, (n, g, g) or (n, g, g, k).

        Half of a pair's value stands on both sides of the diagonal. For Shapley and Banzhaf values
        the diagonal is the single value less its halves, so that each row adds up to a single
        value, as in shap's interaction values; for other measures it is the centred single value,
        and all entries add up to what single columns and pairs explain.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain_pairs(X).to_matrix()[0]
        array([[-3.,  1.],
               [ 1., -2.]])
        """
        if self.singles is None:
            raise ValueError("to_matrix needs pairs: use explainer.explain_pairs(X)")
        singles = self.singles.values - self.singles.offset
        return pair_matrix(
            self.values, self.feature_names, singles, self.singles.feature_names, self.shared
        )

    def to_frame(self, tidy: bool = False) -> pd.DataFrame:
        """Return the values as a pandas DataFrame with the index of X (0, 1, … if X has none).

        Parameters
        ----------
        tidy : bool, default False
            False: one column per attribution, (output, feature) if there are several outputs.
            True: one line per row, output and attribution, with the columns `row` (the index
            label), `output`, `feature`, `data` (the raw value, or a tuple of them for a group),
            `value`, `std_error` (NaN where exact) and, if it is known, `background_error`. It takes
            about 140 bytes per value while it is made: for millions of values, make it in parts,
            `explanation[:100_000]`.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain(X).to_frame()
            x0   x1
        0 -3.0 -2.0
        1  1.0  0.0
        >>> explainer.explain(X).to_frame(tidy=True)
           row      output feature  data  value  std_error
        0    0  prediction      x0   0.0   -3.0        NaN
        1    0  prediction      x1   1.0   -2.0        NaN
        2    1  prediction      x0   2.0    1.0        NaN
        3    1  prediction      x1   3.0    0.0        NaN
        """
        check_flag("tidy", tidy)
        return tidy_frame(self) if tidy else wide_frame(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file (a JSON header and arrays, no pickle), whole or not.

        Examples
        --------
        >>> import numpy as np
        >>> from skattr import MeasureExplainer
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
        >>> explainer = MeasureExplainer(lambda X: X[:, 0] * X[:, 1]).fit(X)
        >>> explainer.explain(X).save("values.npz")  # doctest: +SKIP
        """
        write(path, vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Explanation:
        """Read what `save` wrote, bit for bit; any other file raises a ValueError.

        Examples
        --------
        >>> from skattr import Explanation
        >>> Explanation.load("values.npz").values  # doctest: +SKIP
        """
        fields = read(path)
        try:
            singles = fields.pop("singles")
            return cls(**fields, singles=None if singles is None else cls(**singles))
        except ValueError as error:
            raise ValueError(f"{path} is a damaged Explanation: {error}") from error

    def to_shap(self) -> Any:
        """Return a shap.Explanation of the centred values, with `start` as base values.

        If they do not add up to the prediction, the last column is the `remainder`, so that shap's
        plots end at the prediction, and there is a warning.

        Examples
        --------
        >>> shap.plots.beeswarm(explanation.to_shap())  # doctest: +SKIP
        """
        return as_shap(self)

    def __repr__(self) -> str:
        measure = " ".join(self.measure.split())
        measure = measure if len(measure) <= 60 else measure[:59] + "…"
        kind = "exact" if self.exact else "approximate"
        if self.background_error is not None:
            kind += f", errors from the background by {self.n_folds} folds"
        return f"<Explanation {self.values.shape}: {measure}, {kind}>"

    def _repr_html_(self) -> str:
        return as_html(self)


def _frozen(name: str, array: Any, shapes: Sequence[tuple[Any, ...]]) -> Any:
    """Return a read-only view of a floating array, or a float; check its shape."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got dtype {array.dtype}.")
    if array.shape not in shapes:
        wanted = " or ".join(str(shape) if shape else "a single number" for shape in shapes)
        raise ValueError(f"{name} has shape {array.shape}, expected {wanted}.")
    if array.ndim == 0:
        return float(array)
    view = array.view() if array.dtype.kind == "f" else array.astype(float)
    view.flags.writeable = False
    return view

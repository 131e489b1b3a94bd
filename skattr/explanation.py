"""The result of explaining rows: it holds data, it computes and draws nothing new."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from skattr import frames
from skattr._numbers import count, formatter
from skattr.storage import read, write

_HTML_ROWS, _HTML_COLUMNS, _HTML_OUTPUTS = 10, 20, 5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Explanation:
    """The attributions phi_j(x) of n rows, for g columns or groups of columns and k outputs.

    Arrays are read-only views of what was passed; nothing is copied.

    Parameters
    ----------
    values : array (n, g), or (n, g, k) for several outputs
        The attributions.
    base_value : float or array (k,)
        Weighted mean of f over the background, whatever the measure.
    offset : float, array (k,), or the shape of values
        What `centered` takes off: the measure's mass times the integral of f against its reference.
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
        Standard errors; None where the values are exact.
    centered_error : the shape of values, or None
        Standard errors of values - offset; None where they are those of the values.
    exact : bool
        Whether the values are integrals up to rounding.
    engine : tuple of str
        The engine of each term of the measure.
    measure : str
        The repr of the measure.
    measure_name : str, default ""
        The measure in words, for legends.
    support : array (n, g) or None
        Effective number of background rows behind each value.
    scale : str, default ""
        What the numbers are: "probability", "log-odds", "prediction", …; "" where nobody knows.
    certificate : dict or None
        What exact engines know of their error beyond rounding: the number of "cells" and how far
        their volumes are from that of the box ("volume_error", of 1) on ReLU networks, a bound on
        "quadrature_error".

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
    scale: str = ""
    certificate: dict[str, float] | None = None

    def __post_init__(self) -> None:
        self._check_names()
        n, g, k = self.data.shape[0], len(self.feature_names), len(self.output_names)
        tail = () if k == 1 else (k,)
        full = (n, g, *tail)
        if k > 1 and np.ndim(self.offset) == 0:
            self._set("offset", np.full(k, self.offset))
        shapes = {"values": [full], "base_value": [tail], "offset": [tail, full],
                  "predictions": [(n, *tail)], "std_error": [full],
                  "centered_error": [full], "support": [(n, g)]}  # fmt: skip
        for name, allowed in shapes.items():
            array = getattr(self, name)
            if array is not None or name in ("values", "base_value", "offset"):
                self._set(name, _frozen(name, array, allowed))
        self._set("exact", bool(self.exact))
        if self.exact and self.std_error is not None:
            raise ValueError("std_error must be None where exact is True.")

    def _check_names(self) -> None:
        for name in ("feature_names", "columns", "output_names", "engine"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise ValueError(f"{name} must be a tuple, not empty; got {getattr(self, name)!r}.")
        if not all(own and isinstance(own, tuple) for own in self.columns):
            raise ValueError(f"each of columns must be a tuple of labels, got {self.columns!r}.")
        g, k = len(self.feature_names), len(self.output_names)
        if len(self.columns) != g:
            raise ValueError(f"there are {g} feature_names, but {len(self.columns)} columns.")
        if len({*self.output_names}) < k or not all(isinstance(o, str) for o in self.output_names):
            raise ValueError(f"output_names must be different strings, got {self.output_names}.")
        if len(getattr(self.data, "shape", ())) != 2:
            raise ValueError(f"data must be a frame or an array (n, d), got {type(self.data)}.")
        positions(self.data, self.columns)  # raises if a column is not in data

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # pickle and copy forget that arrays are read-only

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        at = _rows(rows, len(self))
        names = ["values", "predictions", "std_error", "centered_error", "support"]
        if np.ndim(self.offset) == self.values.ndim:  # else it is the same for all rows
            names.append("offset")
        return replace(self, data=frames.take_rows(self.data, at), **self._cut(names, at))

    def _cut(self, names: Sequence[str], at: Any) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in names}
        return {name: array[at] for name, array in arrays.items() if array is not None}

    def select(self, output: str | int) -> Explanation:
        """Return the explanation of one output, with values (n, g).

        `output` is its name or, where no output has that name, its position. The class 1 has the
        name "1", so `select(1)` is that class wherever it stands.
        """
        names = self.output_names
        if str(output) in names:
            place = names.index(str(output))
        elif isinstance(output, int | np.integer) and -len(names) <= output < len(names):
            place = range(len(names))[output]
        else:
            raise ValueError(f"There is no output {output!r}; the outputs are {str(names)[1:-1]}.")
        if len(names) == 1:
            return self
        cut = ["values", "base_value", "offset", "predictions", "std_error", "centered_error"]
        return replace(self, output_names=(names[place],), **self._cut(cut, (..., place)))

    def centered(self) -> Explanation:
        """Return the explanation with values - offset, and offset 0."""
        error = self.std_error if self.centered_error is None else self.centered_error
        return replace(
            self,
            values=self.values - self.offset,
            offset=0.0,
            std_error=error,
            exact=self.exact and error is None,
        )

    def importance(self) -> pd.Series | pd.DataFrame:
        """Return the mean over rows of |values - offset|, the largest first.

        A Series or, for several outputs, a DataFrame with one column an output, sorted by the mean
        over outputs. Ties stay in the order of feature_names.
        """
        if len(self) == 0:
            raise ValueError("importance is a mean over rows, and this explanation has none.")
        mean = np.abs(self.values - self.offset).mean(axis=0)  # (g,) or (g, k)
        order = np.argsort(-mean.reshape(len(mean), -1).mean(axis=1), kind="stable")
        index = _flat(self.feature_names)[order]
        if mean.ndim == 1:
            return pd.Series(mean[order], index=index, name="importance")
        return pd.DataFrame(mean[order], index=index, columns=list(self.output_names))

    def to_frame(self, tidy: bool = False) -> pd.DataFrame:
        """Return the values as a pandas DataFrame with the index of X (0, 1, … if X has none).

        Parameters
        ----------
        tidy : bool, default False
            False: a column for each attribution, (output, feature) if there are several outputs.
            True: a line for each row, output and attribution, with the columns `row` (the index
            label), `output`, `feature`, `data` (the raw value; of a group the tuple of them),
            `value` and `std_error` (NaN where exact).
        """
        index = self.data.index if isinstance(self.data, pd.DataFrame) else pd.RangeIndex(len(self))
        columns, k = _flat(self.feature_names), len(self.output_names)
        if tidy:
            return self._tidy(index, columns)
        if k > 1:
            unique = columns.unique()  # built from codes: labels may be duplicated, or tuples
            codes = [np.repeat(range(k), len(columns)), np.tile(unique.get_indexer(columns), k)]
            levels = [[*self.output_names], unique]
            columns = pd.MultiIndex(levels, codes, names=["output", "feature"])
        return pd.DataFrame(self._long(self.values), index=index, columns=columns, copy=True)

    def _tidy(self, index: pd.Index, features: pd.Index) -> pd.DataFrame:
        n, g, k = *self.values.shape[:2], len(self.output_names)
        raw = np.tile(raw_values(self.data, self.columns), k).ravel()
        data = pd.Series(raw, dtype=object)
        error = np.full_like(self.values, np.nan) if self.std_error is None else self.std_error
        columns = {
            "row": index.to_flat_index().repeat(k * g),
            "output": _flat(self.output_names).repeat(g).take(np.tile(range(k * g), n)),
            "feature": features.take(np.tile(range(g), n * k)),
            # One type throughout gets a dtype; integers among floats stay what they are.
            "data": data.infer_objects() if len({type(value) for value in raw}) == 1 else data,
            "value": self._long(self.values).ravel(),
            "std_error": self._long(error).ravel(),
        }
        return pd.DataFrame({name: pd.Series(column) for name, column in columns.items()})

    def _long(self, array: np.ndarray) -> np.ndarray:
        """Lay (n, g) or (n, g, k) out as (n, k * g)."""
        n, g, k = *self.values.shape[:2], len(self.output_names)
        return array.reshape(n, g, k).transpose(0, 2, 1).reshape(n, k * g)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one .npz file (a JSON header and arrays, no pickle), whole or not."""
        write(path, vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike) -> Explanation:
        """Read what `save` wrote, bit for bit; another file raises a ValueError that names it."""
        fields = read(path)
        try:
            return cls(**fields)
        except ValueError as error:
            raise ValueError(f"{path} is a damaged Explanation: {error}") from error

    def to_shap(self) -> Any:
        """Return a shap.Explanation of the centred values, with the offset as base values."""
        try:
            import shap
        except ImportError as error:
            raise ImportError("to_shap needs the package shap: pip install shap") from error
        data = raw_values(self.data, self.columns)
        if {type(value) for value in data.flat} <= {int, float, bool}:
            data = data.astype(float)
        # Where the offset differs between attributions a row's base value is the mean of them.
        base = np.broadcast_to(self.offset, self.values.shape).mean(axis=1)
        return shap.Explanation(
            values=self.values - self.offset,
            base_values=base,
            data=data,
            feature_names=[str(name) for name in self.feature_names],
            output_names=[*self.output_names] if len(self.output_names) > 1 else None,
        )

    def __repr__(self) -> str:
        measure = " ".join(self.measure.split())
        measure = measure if len(measure) <= 60 else measure[:59] + "…"
        kind = "exact" if self.exact else "approximate"
        return f"Explanation(shape={self.values.shape}, measure={measure}, {kind})"

    def _repr_html_(self) -> str:
        head, hidden = self[:_HTML_ROWS], len(self.output_names) - _HTML_OUTPUTS
        parts = [f"<p>{escape(repr(self))}</p>"]
        for name in self.output_names[:_HTML_OUTPUTS]:
            parts.append(_table(head.select(name).to_frame(), name, len(self)))
        if hidden > 0:
            parts.append(f"<p>{hidden} more outputs are not shown.</p>")
        return "<div>" + "\n".join(parts) + "</div>"


def _frozen(name: str, array: Any, shapes: Sequence[tuple]) -> Any:
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


def _flat(labels: Sequence[Hashable]) -> pd.Index:
    return pd.Index(list(labels), tupleize_cols=False)  # a tuple is one label


def _rows(key: Any, n: int) -> slice | np.ndarray:
    """Return rows as a slice of step 1, or as an array of positions >= 0."""
    if isinstance(key, slice):
        chosen = range(n)[key]
        return slice(chosen.start, chosen.stop) if chosen.step == 1 else np.array(chosen, np.intp)
    array = np.asarray(key)
    if array.dtype == bool and array.ndim == 1:
        if len(array) != n:
            raise IndexError(f"the mask has {len(array)} entries, the explanation {n} rows.")
        return np.flatnonzero(array)
    if isinstance(key, tuple) or array.ndim > 1 or (array.dtype.kind not in "iu" and array.size):
        raise TypeError(f"rows are taken by an int, a slice, a boolean mask or an array of ints, "
                        f"got {key!r}; for an output use select(output).")  # fmt: skip
    if np.any((array < -n) | (array >= n)):
        raise IndexError(f"there is no row {key!r} in an explanation of {n} rows.")
    places = array.astype(np.intp)
    places = np.where(places < 0, places + n, places)
    return slice(int(places), int(places) + 1) if array.ndim == 0 else places


def _table(frame: pd.DataFrame, output: str, n: int) -> str:
    """Return an HTML table of the first rows; labels may be hostile."""
    shown = frame.iloc[:, :_HTML_COLUMNS]
    caption = (
        f"{output}: {len(frame)} of {count(n)} rows, {shown.shape[1]} of {frame.shape[1]} columns"
    )
    lines = [["", *shown.columns]]
    columns = [list(map(formatter(column), column)) for column in shown.to_numpy().T]
    lines += [[label, *row] for label, *row in zip(shown.index, *columns, strict=True)]
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in line) for line in lines)
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


# Reading X, whatever frame it is ---------------------------------------------------------------


def positions(data: Any, columns: Sequence[tuple]) -> list[list[int]]:
    """Return for each attribution where its raw columns are in data."""
    places: dict[Hashable, list[int]] = {}
    for position, label in enumerate(frames.labels(data)):
        places.setdefault(_key(label), []).append(position)
    missing = [label for own in columns for label in own if _key(label) not in places]
    if missing:
        raise ValueError(f"columns names {missing[0]!r}, which is no column of data.")
    # Of duplicated labels, the second one named is the second column.
    return [[p.pop(0) if len(p := places[_key(c)]) > 1 else p[0] for c in own] for own in columns]


def _key(label: Any) -> Hashable:
    if isinstance(label, tuple):
        return tuple(_key(part) for part in label)
    return ... if label is pd.NA or label != label else label  # nan is not nan


def raw_values(data: Any, columns: Sequence[tuple]) -> np.ndarray:
    """Return the raw values behind each attribution, (n, g) objects; of a group a tuple."""
    raw = np.empty((data.shape[0], len(columns)), dtype=object)
    for j, own in enumerate(positions(data, columns)):
        lists = [frames.to_list(frames.column(data, position)) for position in own]
        column = lists[0] if len(own) == 1 else zip(*lists, strict=True)
        raw[:, j] = np.fromiter(column, dtype=object, count=len(raw))
    return raw

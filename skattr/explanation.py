"""Explanation: the attributions of rows, with the data that they belong to."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from skattr._files.storage import read, write
from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr._utils.numbers import count, formatter, raw

_HTML_ROWS, _HTML_COLUMNS, _HTML_OUTPUTS = 10, 20, 5
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
        What the numbers are: "probability", "log-odds", "prediction", …; "" if it is not known.
    certificate : dict or None
        Bounds on the error of exact engines, beyond rounding: the number of "cells" and how far
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
            raise ValueError("std_error must be None if exact is True.")

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
        at = _rows(rows, self._index(), len(self))
        names = ["values", "predictions", "std_error", "centered_error", "support"]
        if np.ndim(self.offset) == self.values.ndim:  # else it is the same for all rows
            names.append("offset")
        part = replace(self, data=frames.take_rows(self.data, at), **self._cut(names, at))
        if isinstance(columns, slice) and columns == slice(None):
            return part
        chosen = _columns(columns, self.feature_names)
        names.remove("predictions")
        return replace(
            part,
            feature_names=tuple(self.feature_names[j] for j in chosen),
            columns=tuple(self.columns[j] for j in chosen),
            **part._cut(names, (slice(None), chosen)),
        )

    def _index(self) -> pd.Index:
        """Return the labels of the rows: 0, 1, … if X has none."""
        if isinstance(self.data, pd.DataFrame):
            return self.data.index
        return pd.RangeIndex(len(self))

    def _cut(self, names: Sequence[str], at: Any) -> dict[str, Any]:
        arrays = {name: getattr(self, name) for name in names}
        return {name: array[at] for name, array in arrays.items() if array is not None}

    def select(self, output: str | int) -> Explanation:
        """Return the explanation of one output, with values (n, g).

        `output` is its name or, if no output has that name, its position. The class 1 has the name
        "1", so `select(1)` is that class whatever its position.
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
        cut = ["values", "base_value", "offset", "predictions", "std_error", "centered_error"]
        return replace(self, output_names=(names[o],), **self._cut(cut, (..., o)))

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

    @property
    def start(self) -> float | np.ndarray:
        """What centred values are added to, () or (k,): the offset, or the mean of f if it is 0.

        The offset of a measure without mass is 0: its values are already relative to the mean of f.
        """
        base = np.asarray(self.base_value)
        if np.ndim(self.offset) > base.ndim:  # it differs between rows
            return self.base_value
        start = np.where(np.abs(self.offset) > 1e-12 * np.abs(base), self.offset, base)
        return start if base.ndim else float(start)

    @property
    def remainder_name(self) -> str:
        """The name of the part of the predictions that the values do not explain."""
        explained = {k for some in positions(self.data, self.columns) for k in some}
        if len(explained) < self.data.shape[1]:
            return "not explained by these columns"
        main = " ".join(self.measure.split()) in MAIN_EFFECTS
        return "interactions" if main else "not explained by single columns"

    def remainder(self) -> pd.Series | pd.DataFrame:
        """Return the unexplained part of each prediction: f(x) - start - Σ_j (values - offset).

        For main effects, the default measure, these are the interactions of columns. For most
        measures it is not 0. A Series named `remainder_name`, or for several outputs a DataFrame
        with one column per output.
        """
        if self.predictions is None:
            raise ValueError("the remainder needs the predictions: explain(X, predictions=True)")
        left = self.predictions - self.start - (self.values - self.offset).sum(axis=1)
        if left.ndim == 1:
            return pd.Series(left, index=self._index(), name=self.remainder_name)
        return pd.DataFrame(left, index=self._index(), columns=list(self.output_names))

    def _adds_up(self) -> bool:
        """Return whether the values of each row add up to its prediction, up to rounding."""
        assert self.predictions is not None
        sizes = np.abs(self.values - self.offset).sum(axis=1) + np.abs(self.predictions)
        sizes = sizes + np.abs(self.start)
        return bool((np.abs(self.remainder().to_numpy()) <= ROUNDING * sizes).all())

    def importance(self) -> pd.Series | pd.DataFrame:
        """Return the mean over rows of |values - offset|, the largest first.

        A Series or, for several outputs, a DataFrame with one column per output, sorted by the mean
        over outputs. Ties keep the order of feature_names.
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
            False: one column per attribution, (output, feature) if there are several outputs.
            True: one line per row, output and attribution, with the columns `row` (the index
            label), `output`, `feature`, `data` (the raw value, or a tuple of them for a group),
            `value` and `std_error` (NaN where exact).
        """
        index = self._index()
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
            # A single type gets a dtype; mixed integers and floats stay objects.
            "data": data.infer_objects() if len({type(value) for value in raw}) == 1 else data,
            "value": self._long(self.values).ravel(),
            "std_error": self._long(error).ravel(),
        }
        return pd.DataFrame({name: pd.Series(column) for name, column in columns.items()})

    def _long(self, array: np.ndarray) -> np.ndarray:
        """Reshape (n, g) or (n, g, k) to (n, k * g)."""
        n, g, k = *self.values.shape[:2], len(self.output_names)
        return array.reshape(n, g, k).transpose(0, 2, 1).reshape(n, k * g)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file (a JSON header and arrays, no pickle), whole or not."""
        write(path, vars(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Explanation:
        """Read what `save` wrote, bit for bit; any other file raises a ValueError."""
        fields = read(path)
        try:
            return cls(**fields)
        except ValueError as error:
            raise ValueError(f"{path} is a damaged Explanation: {error}") from error

    def to_shap(self) -> Any:
        """Return a shap.Explanation of the centred values, with `start` as base values.

        If they do not add up to the prediction, the last column is the `remainder`, so that shap's
        plots end at the prediction, and there is a warning.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError("to_shap needs the package shap: pip install shap") from error
        data = raw_values(self.data, self.columns)
        if {type(value) for value in data.flat} <= {int, float, bool}:
            data = data.astype(float)
        else:  # shap cannot format dates
            data = np.vectorize(_date_as_text, otypes=[object])(data)
        values, names = self.values - self.offset, [str(name) for name in self.feature_names]
        if self.predictions is None:
            warnings.warn(
                "without predictions it is not known whether the values add up to them; use "
                "explain(X, predictions=True)",
                stacklevel=2,
            )
        elif not self._adds_up():
            values = np.concatenate([values, self.remainder().to_numpy()[:, None]], axis=1)
            data = np.concatenate([data, np.full((len(data), 1), np.nan)], axis=1)
            names.append(self.remainder_name)
            warnings.warn(
                f"the values do not add up to the prediction: the last column, {names[-1]!r}, is "
                "the difference",
                stacklevel=2,
            )
        return shap.Explanation(
            values=values,
            base_values=np.broadcast_to(self.start, (len(values), *values.shape[2:])).copy(),
            data=data,
            feature_names=names,
            output_names=[*self.output_names] if len(self.output_names) > 1 else None,
        )

    def __repr__(self) -> str:
        measure = " ".join(self.measure.split())
        measure = measure if len(measure) <= 60 else measure[:59] + "…"
        kind = "exact" if self.exact else "approximate"
        return f"<Explanation {self.values.shape}: {measure}, {kind}>"

    def _repr_html_(self) -> str:
        head, hidden = self[:_HTML_ROWS], len(self.output_names) - _HTML_OUTPUTS
        parts = [f"<p>{escape(repr(self))}</p>"]
        for name in self.output_names[:_HTML_OUTPUTS]:
            parts.append(_table(head.select(name).to_frame(), name, len(self)))
        if hidden > 0:
            parts.append(f"<p>{hidden} more outputs are not shown.</p>")
        return "<div>" + "\n".join(parts) + "</div>"


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


def _date_as_text(value: Any) -> Any:
    return raw(value) if isinstance(value, datetime.date) and not pd.isna(value) else value


def _flat(labels: Sequence[Hashable]) -> pd.Index:
    return pd.Index(list(labels), tupleize_cols=False)  # a tuple is one label


def _rows(key: Any, index: pd.Index, n: int) -> slice | np.ndarray:
    """Return rows as a slice of step 1, or as an array of positions >= 0."""
    if isinstance(key, slice):
        chosen = range(n)[key]
        return slice(chosen.start, chosen.stop) if chosen.step == 1 else np.array(chosen, np.intp)
    places = _positions(key, n, "row", "rows")
    if places is not None:
        if isinstance(key, pd.Series) and len(key) == n and not key.index.equals(index):
            raise IndexError("the mask has another index than the rows; use mask.to_numpy()")
    else:
        labels = key if isinstance(key, list | np.ndarray | pd.Index | pd.Series) else [key]
        places = np.concatenate([_labelled(label, index) for label in labels])
    one = len(places) == 1 and not np.iterable(key)
    return slice(int(places[0]), int(places[0]) + 1) if one else places


def _labelled(label: Any, index: pd.Index) -> np.ndarray:
    """Return the positions of the rows with a label."""
    if pd.api.types.is_integer_dtype(index):
        raise KeyError(
            f"there is no row {brief(label)}: the rows are labelled by integers, or not at all, "
            "and integers are positions"
        )
    try:
        return np.atleast_1d(np.arange(len(index))[index.get_loc(label)])
    except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError) as error:
        raise KeyError(f"there is no row {brief(label)} in the index of X") from error


def _columns(key: Any, names: Sequence[Hashable]) -> np.ndarray:
    """Return the positions of columns."""
    if isinstance(key, slice):
        chosen: np.ndarray | None = np.arange(len(names))[key]
    else:
        chosen = _positions(key, len(names), "column", "columns")
    if chosen is None:
        labels = key if isinstance(key, list | np.ndarray | pd.Index | pd.Series) else [key]
        known: dict[Hashable, int] = {_key(name): j for j, name in enumerate(names)}
        missing = [v for v in labels if not isinstance(v, Hashable) or _key(v) not in known]
        if missing:
            raise KeyError(
                f"there is no column {brief(missing[0])}; there are {brief(list(names))}"
            )
        chosen = np.array([known[_key(label)] for label in labels], np.intp)
    if not len(chosen):
        raise IndexError("at least one column must be selected")
    return chosen


def _positions(key: Any, n: int, one: str, many: str) -> np.ndarray | None:
    """Return integers and masks as positions >= 0; None for labels."""
    if isinstance(key, str | tuple) or (isinstance(key, list) and _holds_labels(key)):
        return None
    array = np.asarray(key)
    if array.ndim > 1:
        raise TypeError(f"{many} must be selected by a one-dimensional list, got {brief(key)}")
    if array.dtype == object and array.size and all(isinstance(v, bool) for v in array.flat):
        array = array.astype(bool)  # nullable booleans
    if array.dtype == bool and array.ndim == 1:
        if len(array) != n:
            raise IndexError(f"the mask has {len(array)} entries, the explanation {n} {many}.")
        return np.flatnonzero(array)
    if array.dtype.kind not in "iu" and array.size:
        return None
    if np.any((array < -n) | (array >= n)):
        raise IndexError(f"there is no {one} {brief(key)} in an explanation of {n} {many}.")
    places = np.atleast_1d(array).astype(np.intp)
    return np.where(places < 0, places + n, places)


def _holds_labels(key: list[Any]) -> bool:
    return any(not isinstance(v, int | bool | np.integer | np.bool_) for v in key)


def _table(frame: pd.DataFrame, output: str, n: int) -> str:
    """Return an HTML table of the first rows, with all labels escaped."""
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


# Reading X, of any type of frame ---------------------------------------------------------------


def positions(data: Any, columns: Sequence[tuple[Any, ...]]) -> list[list[int]]:
    """Return for each attribution the positions of its raw columns in data."""
    places: dict[Hashable, list[int]] = {}
    for position, label in enumerate(frames.labels(data)):
        places.setdefault(_key(label), []).append(position)
    missing = [label for labels in columns for label in labels if _key(label) not in places]
    if missing:
        raise ValueError(f"columns must be columns of data, got {missing[0]!r}.")
    # The second occurrence of a duplicated label is the second column.
    return [[p.pop(0) if len(p := places[_key(c)]) > 1 else p[0] for c in each] for each in columns]


def _key(label: Any) -> Hashable:
    if isinstance(label, tuple):
        return tuple(_key(part) for part in label)
    return ... if label is pd.NA or label != label else label  # nan is not nan


def raw_values(data: Any, columns: Sequence[tuple[Any, ...]]) -> np.ndarray:
    """Return the raw values of each attribution, (n, g) objects, as tuples for groups."""
    raw = np.empty((data.shape[0], len(columns)), dtype=object)
    for j, members in enumerate(positions(data, columns)):
        lists = [frames.to_list(frames.column(data, k)) for k in members]
        column = lists[0] if len(members) == 1 else zip(*lists, strict=True)
        raw[:, j] = np.fromiter(column, dtype=object, count=len(raw))
    return raw

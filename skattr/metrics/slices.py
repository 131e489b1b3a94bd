"""Slices: importance and mean values of groups of rows, such as the levels of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr._inputs.values import as_objects
from skattr._utils.messages import brief
from skattr.explanation import Explanation

FEW = 10  # different numbers or dates up to which each is a slice of its own
BINS = 5  # slices of a column with more of them


def by_slice(explanation: Explanation, by: Any, *, bins: Any = None) -> pd.DataFrame:
    """Return importance and mean values of the rows of each slice, with their standard errors.

    The rows are cut into slices: one per level of a column or, if it holds many numbers or dates,
    one per interval. Missing values are a slice of their own.

    Parameters
    ----------
    explanation : Explanation
        The attributions of the rows, of any measure; an explanation of pairs is taken too.
    by : label, or array (n,), list or Series
        A column of the explained X, by name or, if no column has that name, by position; or one
        label per row, such as a column that the model does not see. A pandas Series must have the
        index of X.
    bins : int or list, optional
        How numbers and dates are cut: the number of intervals with about the same number of rows,
        or the edges between them; an edge belongs to the interval below it. By default 5
        intervals, and none if there are at most 10 different values.

    Returns
    -------
    DataFrame
        One line per slice, output and attribution; attributions are ordered by their importance
        over all rows. Values are centred, as in `Explanation.importance`.

        - `slice`: the level, a `pandas.Interval`, or "missing"; `kind`: "level", "interval" or
          "missing", as a level may be named "missing"
        - `rows`: the number of rows of the slice
        - `output`, `feature`: as in `Explanation.to_frame(tidy=True)`
        - `importance`: the mean over the rows of the slice of |value|
        - `mean_value`: the mean over the rows of the slice of the value
        - `importance_row_error`, `mean_row_error`: their standard errors over the rows of the
          slice, that is, how far they would move with other rows of the same kind; NaN for a
          slice of one row. Neither the background's nor the model's own uncertainty is in them.
        - `approximation_error`, only if the values are approximate: the mean of `std_error`, a
          bound on what approximation adds to either error

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> from skattr.metrics import by_slice
    >>> X = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "income": [1.0, 3.0, 2.0, 6.0]})
    >>> model = LinearRegression().fit(X, X["age"] + 10 * X["income"])
    >>> explanation = MeasureExplainer(model).fit(X).explain(X)
    >>> frame = by_slice(explanation, ["north", "south", "north", "south"])
    >>> frame[["slice", "rows", "feature", "mean_value"]].round(6)
       slice  rows feature  mean_value
    0  north     2  income       -15.0
    1  north     2     age        -5.0
    2  south     2  income        15.0
    3  south     2     age         5.0
    """
    slices = Slices.of(explanation, by, bins)
    n, k = len(explanation), len(explanation.output_names)
    values = (explanation.values - explanation.offset).reshape(n, -1, k)
    order = np.argsort(-np.abs(values).mean(axis=(0, 2)), kind="stable")
    errors = explanation.centered().std_error
    errors = None if errors is None else errors.reshape(values.shape)
    parts = []
    for label, kind, rows in slices:
        numbers = means_over_rows(values[rows][:, order])  # (g, k) each
        if errors is not None:
            numbers["approximation_error"] = errors[rows][:, order].mean(axis=0)
        parts.append((label, kind, len(rows), numbers))
    return _frame(parts, [explanation.feature_names[j] for j in order], explanation.output_names)


def means_over_rows(values: np.ndarray) -> dict[str, np.ndarray]:
    """Return the means of |values| and values, (m, ...), over rows, and their standard errors."""
    sizes = np.abs(values)
    return {
        "importance": sizes.mean(axis=0),
        "importance_row_error": _error_of_mean(sizes),
        "mean_value": values.mean(axis=0),
        "mean_row_error": _error_of_mean(values),
    }


@dataclass
class Slices:
    """The rows of each slice: `codes` are positions among `labels`, -1 where it is missing."""

    labels: list[Any]
    kind: str  # of those that are not missing: "level" or "interval"
    codes: np.ndarray  # (n,)

    @classmethod
    def of(cls, explanation: Any, by: Any, bins: Any) -> Slices:
        """Check the arguments of `by_slice`, and cut the rows."""
        if not isinstance(explanation, Explanation):
            raise TypeError(
                "explanation must be an Explanation, which explainer.explain(X) returns; got "
                f"{brief(explanation)}"
            )
        if len(explanation) == 0:
            raise ValueError("slices are means over rows, and this explanation has none.")
        column, ordered = _column(_table(explanation, by))
        try:
            codes, distinct = pd.factorize(column, sort=True)
        except TypeError:  # there is no order between them
            codes, distinct = pd.factorize(column)
        if bins is not None:
            bins = _check_bins(bins, distinct, ordered)
        elif ordered and len(distinct) > FEW:
            bins = BINS
        if bins is None or (isinstance(bins, int) and len(distinct) <= bins):
            return cls(list(distinct), "level", codes)
        ends = _quantiles(codes, bins) if isinstance(bins, int) else _ends(distinct, bins)
        edges = [distinct[end - 1] for end in ends] if isinstance(bins, int) else list(bins)
        return cls._cut(codes, distinct, ends, edges)

    @classmethod
    def _cut(cls, codes: np.ndarray, distinct: Any, ends: np.ndarray, edges: list) -> Slices:
        """Return intervals up to and including each edge, which follows `ends` distinct values."""
        interval = np.searchsorted(ends, codes, side="right")  # (n,) intervals, empty ones too
        low, high = distinct[0], distinct[-1]
        labels: list[Any] = []
        numbers = np.full(len(edges) + 1, -1)
        for p in np.unique(interval[codes >= 0]).tolist():
            numbers[p] = len(labels)
            first = p == 0
            lower, upper = low if first else edges[p - 1], high if p == len(edges) else edges[p]
            labels.append(pd.Interval(lower, upper, closed="both" if first else "right"))
        return cls(labels, "interval", np.where(codes < 0, -1, numbers[interval]))

    def __iter__(self) -> Any:
        """Yield the label, the kind and the rows of each slice; missing ones come last."""
        order = np.argsort(self.codes, kind="stable")
        ends = np.searchsorted(self.codes[order], np.arange(-1, len(self.labels) + 1))
        for code, label in enumerate(self.labels):
            yield label, self.kind, order[ends[code + 1] : ends[code + 2]]
        if ends[1]:
            yield "missing", "missing", order[: ends[1]]


def name_of(explanation: Explanation, by: Any) -> str:
    """Return the name of what rows are cut by, "" if it has none."""
    labels = frames.labels(explanation.data)
    if _is_label(by, labels):
        return str(labels[position(by, labels, "by")])
    name = getattr(by, "name", None)
    return "" if name is None else str(name)


def _table(explanation: Explanation, by: Any) -> Any:
    """Return the column to slice by, as a table of one column."""
    data, n = explanation.data, len(explanation)
    if _is_label(by, frames.labels(data)):
        return frames.take_columns(data, [position(by, frames.labels(data), "by")])
    if isinstance(by, pd.Series):
        index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(n)
        if len(by) == n and not by.index.equals(index):
            raise ValueError("by has another index than the rows explained; use by.to_numpy()")
    elif isinstance(by, pd.Index | pd.api.extensions.ExtensionArray):
        by = pd.Series(by)
    elif nw.dependencies.is_into_series(by):
        by = nw.from_native(by, series_only=True)
    else:
        by = np.asarray(by) if hasattr(by, "shape") else frames.as_column(list(by))
    if np.ndim(by) != 1 or len(by) != n:
        raise ValueError(
            f"by must be a column of X or have one label for each of the {n} rows explained, got "
            f"shape {np.shape(by)}"
        )
    if isinstance(by, nw.Series):
        return by.alias("by").to_frame().to_native()
    return pd.DataFrame({"by": by}) if isinstance(by, pd.Series) else by[:, None]


def _is_label(by: Any, labels: list) -> bool:
    """Tell whether `by` is the label of a column, not a list of labels of rows."""
    if isinstance(by, tuple):
        return by in labels
    return not isinstance(by, list) and len(getattr(by, "shape", ())) == 0


def _column(table: Any) -> tuple[Any, bool]:
    """Return the only column of a table for `pandas.factorize`, and whether it may be cut."""
    values = frames.column(table, 0)
    if not frames.is_level(table, 0):
        if frames.is_number(table, 0) and values.dtype == object:
            return frames.to_float(values), True
        column = pd.Series(frames.to_array(values)) if isinstance(values, nw.Series) else values
        return column, column.dtype != object
    if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
        return values, False
    order = frames.level_order(table, 0)
    objects = as_objects(frames.to_list(values))
    if order is None or frames.is_boolean(table, 0):
        return objects, False
    return pd.Categorical(objects, categories=list(order), ordered=True), False


def _check_bins(bins: Any, distinct: Any, ordered: bool) -> Any:
    """Return a number of bins as an int, and edges as values that can be compared."""
    if not ordered:
        raise ValueError(f"bins={brief(bins)} cut numbers or dates, but by holds levels")
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 2:
            raise ValueError(f"bins must be at least 2, or a list of edges, got {bins}")
        return int(bins)
    if isinstance(bins, str) or np.ndim(bins) != 1 or not len(bins):
        raise ValueError(f"bins must be an int or a list of edges, got {brief(bins)}")
    kind = getattr(distinct.dtype, "kind", "O")
    convert: Any = {"M": pd.to_datetime, "m": pd.to_timedelta}.get(kind, np.array)
    try:
        edges = pd.Index(convert(list(bins)))
        rising = bool((edges[:-1] < edges[1:]).all()) and not edges.hasnans
        _ends(distinct, edges)
    except (TypeError, ValueError) as error:
        what = {"M": "dates", "m": "durations"}.get(kind, "numbers")
        raise ValueError(f"the edges in bins must be {what}, as by holds: {error}") from error
    if not rising:
        raise ValueError(f"the edges in bins must increase, got {brief(list(bins))}")
    return edges


def _ends(distinct: Any, edges: pd.Index) -> np.ndarray:
    """Return how many of the sorted distinct values are not above each edge."""
    return np.asarray(pd.Index(distinct).searchsorted(edges, side="right"))


def _quantiles(codes: np.ndarray, bins: int) -> np.ndarray:
    """Return how many distinct values are up to each quantile, without repeated ones."""
    below = np.cumsum(np.bincount(codes[codes >= 0]))  # rows up to each distinct value
    wanted = below[-1] * np.arange(1, bins) / bins
    ends = np.unique(np.searchsorted(below, wanted - 1e-9 * below[-1], side="left") + 1)
    return ends[ends < len(below)]


def _error_of_mean(values: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the first axis, NaN for a single row."""
    n = len(values)
    if n == 1:
        return np.full(values.shape[1:], np.nan)
    return (values - values[0]).std(axis=0, ddof=1) / np.sqrt(n)  # 0 where all are equal


def _frame(parts: list, features: list, outputs: tuple[str, ...]) -> pd.DataFrame:
    """Return slices, outputs and attributions as lines; numbers are (g, k)."""
    g, k = len(features), len(outputs)
    per_slice = g * k

    def labels(values: list, each: int, times: int) -> pd.Series:
        return frames.inferred(np.tile(np.repeat(as_objects(values), each), times))

    columns = {
        "slice": pd.Series(
            np.repeat(as_objects([label for label, *_ in parts]), per_slice), dtype=object
        ),
        "kind": labels([kind for _, kind, *_ in parts], per_slice, 1),
        "rows": np.repeat([rows for _, _, rows, _ in parts], per_slice),
        "output": labels(list(outputs), g, len(parts)),
        "feature": labels(features, 1, k * len(parts)),
    }
    for name in parts[0][3]:
        columns[name] = np.concatenate([numbers[name].T.ravel() for *_, numbers in parts])
    return pd.DataFrame(columns)

"""Rows and columns of an explanation, by position or label, and the raw values behind them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._utils.messages import brief


def row_index(data: Any) -> pd.Index:
    """Return the labels of the rows of a table: 0, 1, … if it has none."""
    return data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(data.shape[0])


def selected_rows(key: Any, index: pd.Index, n: int) -> slice | np.ndarray:
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


def selected_columns(key: Any, names: Sequence[Hashable]) -> np.ndarray:
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

"""One point that a user gives, such as a baseline, as a row of the kind of the background."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.values import as_objects, settle_one
from skattr._utils.messages import brief


def one_row(point: Any, like: Any) -> Any:
    """Return a point (array, dict, Series, one-row frame) as a row of the same kind as `like`."""
    names = frames.labels(like)
    values = _named_values(point, names)
    missing = [name for name in names if name not in values]
    if missing:
        raise ValueError(f"the Baseline's point has no value for {missing}")
    unknown = [name for name in values if name not in set(names)]
    if unknown:
        raise ValueError(f"the Baseline's point names unknown columns {unknown}; X has {names}")
    row = frames.take_rows(like, np.zeros(1, np.intp))
    if isinstance(row, pd.DataFrame):
        row = row.reset_index(drop=True)
    columns = {}
    for k, name in enumerate(names):
        what = f"the Baseline's value of column {name!r}"
        columns[k] = settle_one(values[name], frames.column(like, k), what)
    return frames.set_columns(row, columns)


def _named_values(point: Any, names: list) -> dict:
    """Return the values of a point by column, none of them cast to the dtype of another."""
    if frames.is_frame(point) or (isinstance(point, np.ndarray) and point.ndim == 2):
        if len(point) != 1:
            raise ValueError(f"a Baseline must be one point, got {len(point)} rows")
    if frames.is_frame(point):
        return {
            name: frames.to_list(frames.column(point, k))[0]
            for k, name in enumerate(frames.labels(point))
        }
    if isinstance(point, dict):
        return point
    if isinstance(point, pd.Series):
        return dict(zip(point.index, point.to_list(), strict=True))
    whole = isinstance(point, np.ndarray) or np.ndim(point) != 1
    array = np.asarray(point) if whole else as_objects(point)
    array = array[0] if array.ndim == 2 else array
    if array.ndim != 1:
        raise ValueError(
            f"a Baseline must be one point, with a value for each column, got {brief(point)}"
        )
    _check_length(len(array), names)
    return dict(zip(names, array.tolist(), strict=True))


def _check_length(length: int, names: list) -> None:
    if length != len(names):
        raise ValueError(f"the Baseline's point has {length} values, X has {len(names)} columns")

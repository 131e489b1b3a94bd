"""Sums of functions of one column, as one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skattr.curves.base import ColumnFunction
from skattr.curves.by_bin import ByCodeAndBin, SumByCodeAndBin
from skattr.curves.by_code import CodeFunction
from skattr.curves.linear import PiecewiseLinear, SumOfLines

SUMS: dict[type, Callable[..., Any]] = {
    ByCodeAndBin: SumByCodeAndBin,
    PiecewiseLinear: lambda base, parts, integrate: SumOfLines(base.values[0], parts),
}


def add_up(
    base: CodeFunction,
    parts: list[tuple[float, ColumnFunction]],
    integrate: Callable[[Any], np.ndarray],
) -> ColumnFunction | None:
    """Return base + Σ coefficient · part, or None if the sum has no table.

    `integrate` maps raw values that lie off a part to attributions.
    """
    kinds = {type(part) for _, part in parts}
    if not kinds:
        result: ColumnFunction = base
    elif len(kinds) == 1 and (kind := kinds.pop()) in SUMS:
        result = SUMS[kind](base, parts, integrate)
    else:
        return None
    return result if result.has_table else None

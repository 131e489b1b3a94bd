"""The section "How sure": how far other rows of the background would move the numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skattr._intervals import half_width, jackknife_interval
from skattr._utils.numbers import count, formatter, percent, small
from skattr.explanation import Explanation
from skattr.report.notes import NAMED
from skattr.report.rows import ExplainedRows
from skattr.report.shapes import with_unit
from skattr.report.tables import Column

NOT_TOLD = "includes 0 at every row explained: it cannot be told from no effect"


@dataclass(frozen=True, eq=False)
class Intervals:
    """95 % intervals of one output, from the rows of the background.

    Attributes
    ----------
    width : array (n, g)
        Half the widths of those of the centred values.
    low, high : array (g,), or None
        The ends of those of the importances, if they are known.
    """

    one: Explanation
    width: np.ndarray
    size: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None

    @classmethod
    def of(cls, explained: ExplainedRows, o: int) -> Intervals | None:
        """Return the intervals of output o; None if there is no error from the background."""
        explanation = explained.explanation
        one = explanation.select(explanation.output_names[o])
        if one.background_error is None:
            return None
        width = half_width(one.background_error, one.n_folds, one.std_error, 0.95)
        size, by_fold = explained.size, explained.by_fold
        size = size if size.ndim == 1 else size[:, o]
        if by_fold is None:
            return cls(one, width, size, None, None)
        by_fold = by_fold if by_fold.ndim == 2 else by_fold[:, :, o]
        return cls(one, width, size, *jackknife_interval(size, by_fold))

    def is_nothing(self, j: int) -> bool:
        """Return whether the effect of a column is 0, with any background."""
        return not self.one.values[:, j].any() and not self.width[:, j].any()

    def includes_zero(self, j: int) -> bool:
        """Return whether the intervals of all effects of a column, or of its importance, do."""
        if self.is_nothing(j):
            return False
        at_rows = (np.abs(self.one.values[:, j]) <= self.width[:, j]).all()
        return bool(at_rows or (self.low is not None and self.low[j] <= 0))

    def importance(self, j: int) -> str:
        """Return the interval of the importance of a column, "" if it is not known."""
        if self.low is None or self.high is None:
            return ""
        write = formatter(self.size)
        return f"{write(self.low[j])} to {write(self.high[j])}"

    def about(self, j: int, unit: str) -> str:
        """Return the interval of the effects of a column in words."""
        if self.is_nothing(j):
            return "none: the effect is 0 with any background"
        width = with_unit(small(np.median(self.width[:, j])), unit)
        text = f"± {width} at the median row (other backgrounds)"
        if self.includes_zero(j):
            return f"{text}; {NOT_TOLD}"
        away = float((np.abs(self.one.values[:, j]) > self.width[:, j]).mean())
        return f"{text}; it excludes 0 at {percent(away)} of the rows explained"


def how_sure(
    found: Intervals, columns: list[Column], top: np.ndarray, n_background: int, unit: str
) -> list[str]:
    """Return sentences on the intervals of one output."""
    sentences = [
        f"The background has {count(n_background)} rows. With other rows of the same kind, the "
        "effects would be a little different: bands, error bars and intervals in this report say "
        f"how different. They are 95 % intervals from the rows of the background, by a jackknife "
        f"over {found.one.n_folds} folds of them.",
        *_sizes(found, columns, top, unit),
        *_zeros(found, columns, top),
    ]
    error = found.one.std_error
    if error is not None:
        sentences.append(
            "The effects are approximate as well: the largest standard error of the approximation "
            f"is {small(error.max())}. The intervals of effects include it, those of importances "
            "do not."
        )
    sentences.append(
        "Importances are means of absolute effects, which errors make larger: the importance of a "
        "column without any effect is a little above 0."
    )
    sentences.append(
        "Not included is the data that the model was trained on. How far other training data would "
        "move the effects is measured by skattr.metrics.refit and skattr.metrics.stability."
    )
    return sentences


def _sizes(found: Intervals, columns: list[Column], top: np.ndarray, unit: str) -> list[str]:
    """Say how large the intervals are, compared with the effects."""
    there = [j for j in top if not found.is_nothing(j)]
    if not there:
        return []
    relative = {j: _relative(found, j) for j in there}
    widest = max(relative, key=lambda j: relative[j])
    first = there[0]
    text = (
        f"The most important column, {columns[first].name}, has intervals of ± "
        f"{with_unit(small(np.median(found.width[:, first])), unit)} at the median row, "
        f"{_percent(relative[first])} of its importance"
    )
    if widest != first:
        text += (
            f"; relative to importance, those of {columns[widest].name} are the widest of the "
            f"columns shown, {_percent(relative[widest])}"
        )
    return [f"{text}."]


def _relative(found: Intervals, j: int) -> float:
    """Return the width at the median row, relative to the importance."""
    size = float(found.size[j])
    return float(np.median(found.width[:, j])) / size if size > 0 else np.inf


def _percent(share: float) -> str:
    return percent(share, 1) if share < 1 else "more than 100 %"


def _zeros(found: Intervals, columns: list[Column], top: np.ndarray) -> list[str]:
    """Name the columns whose intervals include 0, and those without any effect."""
    unsure = [columns[j].name for j in top if found.includes_zero(j)]
    nothing = [columns[j].name for j in top if found.is_nothing(j)]
    sentences = []
    if unsure:
        many = len(unsure) > 1
        sentences.append(
            f"The interval of {_named(unsure)} includes 0, everywhere or that of its importance: "
            f"with this background, {'their effects' if many else 'its effect'} cannot be told "
            "from none."
        )
    else:
        sentences.append("No column shown has an interval that includes 0 everywhere.")
    if nothing:
        sentences.append(f"The effect of {_named(nothing)} is 0, whatever the background.")
    return sentences


def _named(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {count(more)} more" if more > 0 else "")

"""Band: the curves of one column in several models, summed up."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._inputs.checks import position
from skattr._utils.messages import check_flag
from skattr.curves import Curve
from skattr.metrics.spread import Spread

MOST = 100  # points at which functions are evaluated, as each may take many calls of the model
DENSE = 1000  # knots of piecewise linear functions
BETWEEN = 201  # even places between them


class Band:
    """The curves of one column in several models: their mean, spread and interval.

    Made by `Stability.curve`; `plot.curve(..., band=…)` draws it.

    Attributes
    ----------
    feature : label
        The column.
    kind : str
        As in Curve.
    output_names : tuple of str
        The outputs.
    curves : tuple of Curve
        One curve per model.
    interval_name : str
        What `low` and `high` are, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> from skattr.metrics import stability
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> models = [LinearRegression().fit(X, slope * X[:, 0]) for slope in (1.0, 2.0, 3.0)]
    >>> explainers = [MeasureExplainer(model).fit(X) for model in models]
    >>> band = stability(explainers, X).curve("x0")
    >>> band([0.0, 3.0]).round(6)
           output  mean  spread  low  high
    0  prediction  -3.0     1.5 -4.5  -1.5
    1  prediction   3.0     1.5  1.5   4.5
    """

    def __init__(self, curves: tuple[Curve, ...], rule: Spread) -> None:
        self.curves = curves
        self.feature = curves[0].feature
        self.output_names = curves[0].output_names
        self._rule = rule

    @cached_property
    def _tables(self) -> list[_Table]:
        return [_split(curve) for curve in self.curves]

    @cached_property
    def kind(self) -> str:
        """The kind of the curves, as in Curve."""
        # a model that does not use the column has one step, whatever the column holds
        several = zip(self.curves, self._tables, strict=True)
        kinds = [curve.kind for curve, table in several if len(table.frame) > 1]
        return kinds[0] if kinds else self.curves[0].kind

    @property
    def interval_name(self) -> str:
        """What `low` and `high` are, in words."""
        return self._rule.in_words(len(self.curves))

    def select(self, output: str | int) -> Band:
        """Return the band of one output, by name or position."""
        position(output, list(self.output_names), "select", "output")
        return Band(tuple(curve.select(output) for curve in self.curves), self._rule)

    def __call__(self, values: Any, *, centered: bool = True) -> pd.DataFrame:
        """Return mean, spread, low and high at some values, one block of lines per output.

        Parameters
        ----------
        values : array (p,)
            Values of the column.
        centered : bool, default=True
            Whether each curve is taken less its own offset.
        """
        values = values if np.iterable(values) and not isinstance(values, str) else [values]
        return self._summary(self._evaluated(values), centered)

    def to_frame(self, *, centered: bool = True) -> pd.DataFrame:
        """Return the band as a table: the columns of `Curve.to_frame`, with a summary as values.

        Step functions have one line per interval on which none of the curves jumps, levels one per
        level of any of them; other functions are taken at up to 100 values (1201 if they are
        piecewise linear).

        Parameters
        ----------
        centered : bool, default=True
            Whether each curve is taken less its own offset.
        """
        kinds = {curve.kind for curve in self.curves}
        if kinds == {"steps"}:
            points, values = self._steps()
        else:
            points, values = self._at_points()
        summary = self._summary(values, centered)
        k = len(self.output_names)
        repeated = pd.concat([points] * k, ignore_index=True)
        return pd.concat([repeated, summary], axis=1)

    def _summary(self, values: np.ndarray, centered: bool) -> pd.DataFrame:
        """Return numbers of models, (m, p, k), summed up, output by output."""
        check_flag("centered", centered)
        if centered:
            offsets = [curve.offset for curve in self.curves]
            if any(offset is None for offset in offsets):
                raise ValueError(f"the curves of {self.feature!r} do not know their offsets: use "
                                 "centered=False")  # fmt: skip
            values = values - np.array(offsets, float)[:, None, :]
        summary = self._rule.of(values)
        columns = {name: part.T.ravel() for name, part in summary._asdict().items()}
        names = frames.as_index(self.output_names).repeat(values.shape[1])
        return pd.DataFrame({"output": pd.Series(names), **columns})

    def _evaluated(self, values: Any) -> np.ndarray:
        """Return all curves at values, (m, p, k)."""
        k = len(self.output_names)
        return np.stack([np.asarray(curve(values)).reshape(-1, k) for curve in self.curves])

    def _steps(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the intervals between the jumps of all curves, and the values there."""
        uppers = [table.frame["upper"].to_numpy() for table in self._tables]
        edges = np.unique(np.concatenate([upper[:-1] for upper in uppers]))
        first = min(table.frame["lower"].iloc[0] for table in self._tables)
        last = max(upper[-1] for upper in uppers)
        points = pd.DataFrame({
            "lower": [first, *edges], "upper": [*edges, last], "closed": "right"
        })  # fmt: skip
        at = [np.append(np.searchsorted(upper[:-1], edges), len(upper) - 1) for upper in uppers]
        values = [table.values[rows] for table, rows in zip(self._tables, at, strict=True)]
        return self._with_special(points, np.stack(values), {"closed": "missing"})

    def _at_points(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return levels, or values of the column, and all curves there."""
        tables = [table.frame for table in self._tables if len(table.frame) > 1]
        if self.kind == "levels":
            of_levels = [table["level"] for table in tables if "level" in table]
            levels = list(dict.fromkeys(level for column in of_levels for level in column))
            frame = pd.DataFrame({"level": pd.Series(levels, dtype=object), "kind": "level"})
            return self._with_special(frame, self._evaluated(levels), {"kind": "missing"})
        columns = [table["x" if "x" in table else "upper"] for table in tables]
        points = np.unique(np.concatenate([column.to_numpy() for column in columns]))
        points = points[np.isfinite(points)] if points.dtype.kind == "f" else points
        most = DENSE if self.kind == "linear" else MOST
        if len(points) > most:
            points = points[np.linspace(0, len(points) - 1, most).round().astype(int)]
        if self.kind == "linear":  # a spread is not linear between knots
            points = np.union1d(points, np.linspace(points[0], points[-1], BETWEEN))
        return self._with_special(pd.DataFrame({"x": points}), self._evaluated(points), {})

    def _with_special(
        self, points: pd.DataFrame, values: np.ndarray, words: dict[str, str]
    ) -> tuple[pd.DataFrame, np.ndarray]:
        """Add the lines for missing values and for any other level, where all curves have them."""
        known = [name for table in self._tables for name in table.special]
        for name in dict.fromkeys(known):
            everywhere = [table.at_special(name) for table in self._tables]
            known_values = [value for value in everywhere if value is not None]
            if len(known_values) < len(everywhere):
                continue
            line: dict[str, Any] = {"level": name[0], "kind": name[1]} if "kind" in words else words
            line = {column: line.get(column, np.nan) for column in points}
            points = pd.concat([points, pd.DataFrame([line])], ignore_index=True)
            values = np.concatenate([values, np.stack(known_values)[:, None]], axis=1)
        return points, values


class _Table:
    """The table of a curve: its lines, their values (p, k), and those of missing and other ones."""

    def __init__(self, frame: pd.DataFrame, values: np.ndarray, special: dict) -> None:
        self.frame, self.values, self.special = frame, values, special

    def at_special(self, name: tuple[str, str]) -> np.ndarray | None:
        """Return the value (k,) of missing or other ones; a constant is the same everywhere."""
        if not self.special and len(self.values) == 1:
            return self.values[0]
        return self.special.get(name)


def _split(curve: Curve) -> _Table:
    """Return the table of a curve, with the lines for missing and other values apart."""
    k = len(curve.output_names)
    table = curve.to_frame()
    frame, values = table.iloc[:, :-k], table.iloc[:, -k:].to_numpy(float)
    if "kind" in frame:
        inside = (frame["kind"] == "level").to_numpy()
        names = list(zip(frame["level"], frame["kind"], strict=True))
    else:
        missing = frame["x"].isna() if "x" in frame else frame["closed"] == "missing"
        inside = ~missing.to_numpy(bool)
        names = [("missing", "missing")] * len(frame)
    special = {names[i]: values[i] for i in np.flatnonzero(~inside)}
    return _Table(frame[inside], values[inside], special)

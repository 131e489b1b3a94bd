"""The shape of an effect in words: rising, falling, flat, humped, in steps, by levels.

An effect is given by points (x, v): values of a column, and the centred attributions there, which
lie on the column's curve. The rules:

- it is flat if v changes by less than `FLAT` of the spread of the predictions;
- it has steps if v changes at no more than `JUMPS` places, and at most half of the points do, but
  for changes that are less than `TINY` of its range in all;
- it turns where v goes back by more than `TURN` of its range; without a turn it rises or falls,
  with one it has a hump or a valley;
- one that rises or falls has a slope where a line fits (R² of at least `FITS`, and no point is off
  by more than `OFF` of the range), or two slopes where two lines that meet fit, and much better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skattr._utils.numbers import MINUS, raw

FLAT = 0.01  # part of the spread of the predictions
JUMPS = 3
LARGEST = 1e12  # from here on, numbers have exponents
TINY = 0.05
TURN = 0.1  # part of the range of the effect
FITS = 0.97
OFF = 0.08
BETTER = 0.3  # squared errors of two lines, relative to those of one line
LEVEL = 0.1  # a slope relative to the other one, below which a line is flat
KNOTS = 64  # places where two lines may meet, tried twice


@dataclass(frozen=True)
class Words:
    """How numbers are written.

    Parameters
    ----------
    output_unit : str
        The unit of the output, or "".
    unit : str
        The unit of the column, or "".
    place : callable
        A value of the column as text.
    private : bool
        Whether values of the column, and slopes, must not be shown.
    """

    output_unit: str
    unit: str
    place: Callable[[float], str]
    private: bool

    def amount(self, value: float) -> str:
        """Return a size in the unit of the output."""
        return with_unit(digits(abs(value), 3), self.output_unit)

    def signed(self, value: float) -> str:
        """Return a value with its sign."""
        text = digits(value, 3)
        return with_unit(f"+{text}" if value > 0 else text, self.output_unit)

    def slope(self, value: float) -> str:
        """Return a slope, per unit of the column."""
        return f"by {self.amount(value)} per {self.unit or 'unit'}"


def digits(value: float, n: int) -> str:
    """Return a number in n digits, or four from 1000 on, with thousands separators.

    Examples
    --------
    >>> digits(1115.2, 4), digits(0.04424, 3), digits(-5.1, 3), digits(313485296.1, 3)
    ('1,115', '0.0442', '−5.1', '313,500,000')
    """
    if abs(value) >= 1000 and n <= 4 and abs(value) < LARGEST:
        return f"{float(f'{value:.4g}'):,.0f}".replace("-", MINUS)
    return raw(float(value), n)


def with_unit(text: str, unit: str) -> str:
    """Return a number with its unit.

    Examples
    --------
    >>> with_unit("5.1", "€"), with_unit("5.1", "")
    ('5.1 €', '5.1')
    """
    return f"{text} {unit}" if unit else text


def shape_of_numbers(
    x: np.ndarray, v: np.ndarray, spread: float, words: Words, error: float = 0.0
) -> str:
    """Return what an effect of numbers does, as a predicate ("rises by 5.1 per unit").

    Parameters
    ----------
    x : array (m,)
        Distinct numbers, sorted.
    v : array (m,)
        The effect there.
    spread : float
        The spread of the predictions.
    words : Words
        How numbers are written.
    error : float
        The largest standard error of v.
    """
    size = float(np.ptp(v))
    if size <= max(FLAT * spread, 3 * error):
        return f"is flat: it changes the prediction by no more than {words.amount(size)}"
    changes = np.abs(np.diff(v))
    order = np.argsort(-changes, kind="stable")
    left = changes.sum() - np.cumsum(changes[order])  # by the largest changes so far
    enough = int(np.argmax(left <= TINY * size)) + 1
    if enough <= JUMPS and 2 * enough < len(x):
        exact = left[enough - 1] <= 1e-9 * size
        return _steps(x, v, np.sort(order[:enough]), words, exact)
    turns = turning_points(v, max(TURN * size, 3 * error))
    if len(turns) == 2:
        return _one_way(x, v, words)
    high, low = int(np.argmax(v)), int(np.argmin(v))
    if len(turns) == 3:
        _, peak, _ = turns
        first, second = v[peak] - v[0], v[-1] - v[peak]
        verbs = ("rises", "falls") if first > 0 else ("falls", "rises")
        where = "at first" if words.private else f"up to {words.place(x[peak])}"
        return (
            f"{verbs[0]} by {words.amount(first)} {where}, then {verbs[1]} by "
            f"{words.amount(second)}"
        )
    ends = [f"{words.signed(v[i])}" for i in (high, low)]
    if not words.private:
        ends = [f"{end} at {words.place(x[i])}" for end, i in zip(ends, (high, low), strict=True)]
    return f"goes up and down {len(turns) - 1} times, between {ends[1]} and {ends[0]}"


def turning_points(v: np.ndarray, tolerance: float) -> list[int]:
    """Return both ends and the extremes between which v moves by more than the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> turning_points(np.array([0.0, 2.0, 1.9, 3.0, 0.0]), 0.5)
    [0, 3, 4]
    """
    turns, best, way = [0], 0, 0
    low = high = 0
    for i in range(1, len(v)):
        if way == 0:
            low, high = (i if v[i] < v[low] else low), (i if v[i] > v[high] else high)
            if v[i] - v[low] > tolerance:
                way, best = 1, i
            elif v[high] - v[i] > tolerance:
                way, best = -1, i
        elif way * (v[i] - v[best]) >= 0:
            best = i
        elif way * (v[best] - v[i]) > tolerance:
            turns.append(best)
            way, best = -way, i
    return [*turns, len(v) - 1]


def _steps(x: np.ndarray, v: np.ndarray, jumps: np.ndarray, words: Words, exact: bool) -> str:
    heights = [v[i + 1] - v[i] for i in jumps]
    flat = "" if exact else "nearly "
    if words.private:
        at_jumps = listed([words.signed(height) for height in heights])
        return f"is {flat}constant but for {_count(len(jumps), 'jump')}, of {at_jumps}"
    whole = (x == np.round(x)).all()
    places = [words.place(x[i] if whole else (x[i] + x[i + 1]) / 2) for i in jumps]
    if len(jumps) == 1:
        side = "higher" if heights[0] > 0 else "lower"
        size = words.amount(heights[0])
        return f"is {size} {side} above {places[0]} than below, and {flat}flat otherwise"
    pairs = zip(heights, places, strict=True)
    at_jumps = listed([f"{words.signed(height)} at {place}" for height, place in pairs])
    return f"is {flat}constant but for {_count(len(jumps), 'jump')}: {at_jumps}"


def listed(texts: list[str]) -> str:
    """Return an enumeration.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _one_way(x: np.ndarray, v: np.ndarray, words: Words) -> str:
    """Describe an effect that rises or falls all the way."""
    verb = "rises" if v[-1] > v[0] else "falls"
    if words.private:
        return f"{verb} by {words.amount(v[-1] - v[0])} in all"
    one, two = _fit(x, v), _two_lines(x, v)
    total = float(((v - v.mean()) ** 2).sum())
    better = two.error <= BETTER * one.error and one.error - two.error >= 0.01 * total
    if better and two.is_close(v):
        return _two_slopes(verb, two.slopes, words.place(two.knots[0]), words)
    if one.is_close(v):
        return f"{verb} {words.slope(one.slopes[0])}"
    ends = f"from {words.place(x[0])} to {words.place(x[-1])}"
    return f"{verb} by {words.amount(v[-1] - v[0])} in all, {ends}"


def _two_slopes(verb: str, slopes: np.ndarray, knot: str, words: Words) -> str:
    first, second = slopes
    if abs(second) < LEVEL * abs(first):
        return f"{verb} {words.slope(first)} up to {knot}, then is flat"
    if abs(first) < LEVEL * abs(second):
        return f"is flat up to {knot}, then {verb} {words.slope(second)}"
    return f"{verb} {words.slope(first)} up to {knot}, then {words.slope(second)}"


@dataclass(frozen=True, eq=False)
class Lines:
    """A line that bends at knots, fitted by least squares."""

    knots: tuple[float, ...]
    slopes: np.ndarray
    residuals: np.ndarray

    @property
    def error(self) -> float:
        """The sum of squared residuals."""
        return float((self.residuals**2).sum())

    def is_close(self, v: np.ndarray) -> bool:
        """Whether the line describes an effect."""
        total = float(((v - v.mean()) ** 2).sum())
        near = np.abs(self.residuals).max() <= OFF * np.ptp(v)
        return bool(near and self.error <= (1 - FITS) * total)


def _two_lines(x: np.ndarray, v: np.ndarray) -> Lines:
    """Fit two lines that meet where they fit best."""
    low, high = float(x[0]), float(x[-1])
    for _ in range(2):
        knots = np.linspace(low, high, KNOTS + 2)[1:-1]
        best = min((_fit(x, v, float(knot)) for knot in knots), key=lambda lines: lines.error)
        width = knots[1] - knots[0]
        low, high = best.knots[0] - width, best.knots[0] + width
    return best


def _fit(x: np.ndarray, v: np.ndarray, *knots: float) -> Lines:
    middle, scale = x.mean(), np.ptp(x)
    u = (x - middle) / scale
    bends = [np.maximum(u - (knot - middle) / scale, 0) for knot in knots]
    design = np.column_stack([np.ones_like(u), u, *bends])
    coefficients = np.linalg.lstsq(design, v, rcond=None)[0]
    return Lines(knots, np.cumsum(coefficients[1:]) / scale, v - design @ coefficients)

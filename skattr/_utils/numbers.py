"""Numbers and dates as people write them: thousands separators, and as many digits as help.

How many decimals a number gets depends on the numbers that it stands among: a price of 136,500
among prices has none, a probability of 0.137 among probabilities has three.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

MINUS = "\N{MINUS SIGN}"
SMALLEST, LARGEST = -6, 12  # powers of ten between which numbers are written without exponents
PLAIN = 10_000  # raw numbers below this have no separator: they may be years
RELATIVE = 1e-6  # a spread below this part of the largest number is taken for rounding


def decimals(values: Any) -> int:
    """Return how many decimals numbers like these need; -1 where only exponents can say them.

    Four digits of the largest (three below 1), three digits of the spread, none for integers.

    Examples
    --------
    >>> decimals([136_500.25, 98_000.5]), decimals([584.91, -12.3]), decimals([0.137, 0.02])
    (0, 1, 3)
    >>> decimals([1116.21, 1116.48]), decimals([3.0, 12.0]), decimals([3e-9])
    (3, 0, -1)
    """
    array = np.asarray(values, float).ravel()
    array = array[np.isfinite(array)]
    largest = float(np.abs(array).max()) if array.size else 0.0
    if largest == 0.0:
        return 0
    exponent = _exponent(largest)
    if not SMALLEST <= exponent < LARGEST:
        return -1
    if (array == np.round(array)).all():
        return 0
    places = max(0, 3 - exponent) if exponent >= 0 else 2 - exponent
    spread = float(np.ptp(array))
    if spread > RELATIVE * largest:
        places = max(places, 2 - _exponent(spread))
    return places


def formatter(values: Any, *, sign: bool = False, minus: str = "-") -> Callable[[float], str]:
    """Return a function that writes numbers like these, all with the same number of decimals.

    Examples
    --------
    >>> write = formatter([136_500.25, -98_000.5])
    >>> write(136_500.25), write(-98_000.5), write(0.0)
    ('136,500', '-98,000', '0')
    """
    places = decimals(values)
    return lambda value: fixed(value, places, sign=sign, minus=minus)


def fixed(value: float, places: int, *, sign: bool = False, minus: str = "-") -> str:
    """Return a number with so many decimals, or -1: with an exponent; what is not finite is "–"."""
    if not np.isfinite(value):
        return "–"
    text = f"{abs(value):.3e}" if places < 0 and value else f"{abs(value):,.{max(places, 0)}f}"
    if not any(digit in text for digit in "123456789"):
        return text  # what rounds to zero has no sign
    return (minus if value < 0 else "+" if sign else "") + text


def in_units(values: np.ndarray, places: int, more: int) -> np.ndarray:
    """Return whole multiples of 10**-(places + more) next to numbers, which `fixed` writes alike.

    Examples
    --------
    >>> in_units(np.array([0.12349999, -0.125]), 3, 2)  # 0.12350 could be written as 0.124
    array([ 12349, -12500])
    """
    scaled = values * 10.0**places
    printed = np.rint(scaled)
    near = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6  # where the product may be rounded over
    texts = [fixed(value, places).replace(",", "") for value in values[near]]
    printed[near] = np.rint(np.array(texts, float) * 10.0**places)
    times = 10**more
    units = np.rint(values * 10.0 ** (places + more))
    far = 2 * np.abs(units - printed * times) >= times  # halves are rounded either way
    if more:
        units = np.where(
            far, printed * times + np.sign(units - printed * times) * (times // 2 - 1), units
        )
    return units.astype(np.int64)


def number(value: float, *, sign: bool = False, minus: str = MINUS) -> str:
    """Return a number that stands alone.

    Examples
    --------
    >>> number(136_500.25), number(0.04424), number(-1.5)
    ('136,500', '0.0442', '−1.500')
    """
    return formatter([value], sign=sign, minus=minus)(value)


def count(n: int) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(100_000)
    '100,000'
    """
    return f"{n:,}"


def percent(share: float, places: int = 0) -> str:
    """Return a share.

    Examples
    --------
    >>> percent(0.388), percent(0.0179, 1)
    ('39 %', '1.8 %')
    """
    return f"{100 * share:.{places}f} %"


def small(value: float) -> str:
    """Return an error, or another number whose size alone matters, in two digits.

    Examples
    --------
    >>> small(1234.5), small(0.01234), small(1.234e-9), small(0.0)
    ('1,200', '0.012', '1.2e-09', '0')
    """
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else "–"
    exponent = _exponent(abs(float(f"{value:.1e}")))
    if not -4 <= exponent < LARGEST:
        return f"{value:.1e}"
    return f"{float(f'{value:.1e}'):,.{max(0, 1 - exponent)}f}"


def raw(value: Any, digits: int = 4, minus: str = MINUS) -> str:
    """Return one raw value of a table: a number in so many digits, a date, else its text.

    Numbers below 10,000 have no separator, for they may be years.

    Examples
    --------
    >>> raw(1996.0), raw(153_712.4), raw(-0.45781), raw(True), raw(None)
    ('1996', '153,712', '−0.4578', 'True', 'missing')
    >>> raw(pd.Timestamp("2024-02-01")), raw(pd.Timestamp("2024-02-01 12:30"))
    ('2024-02-01', '2024-02-01 12:30')
    """
    missing = pd.isna(value)
    if isinstance(missing, bool | np.bool_) and missing:
        return "missing"
    if isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer | float | np.floating):
        return _raw_number(value, digits, minus)
    if isinstance(value, np.datetime64 | date | datetime):
        return _date(pd.Timestamp(value))
    return str(value)


def ticks(values: Any, *, years: bool = False) -> list[str]:
    """Return the labels of evenly spaced numbers: with the decimals that they have, all alike.

    `years`: without separators where all are below 10,000.

    Examples
    --------
    >>> ticks([0, 50_000, 100_000]), ticks([-0.25, 0.0, 0.25]), ticks([1900, 1950], years=True)
    (['0', '50,000', '100,000'], ['−0.25', '0.00', '0.25'], ['1900', '1950'])
    """
    array = np.asarray(values, float)
    if not array.size:
        return []
    largest = float(np.abs(array).max())
    step = float(np.abs(np.diff(array)).min()) if len(array) > 1 else largest
    step = step or largest or 1.0
    if largest >= 10.0**LARGEST or step < 10.0**SMALLEST:
        return [f"{v:.4g}".replace("-", MINUS) for v in array.tolist()]
    off = [np.abs(np.round(array, places) - array).max() for places in range(12)]
    places = next((p for p, error in enumerate(off) if error <= 1e-3 * step), 11)
    labels = [fixed(v, places, minus=MINUS) for v in array.tolist()]
    return [label.replace(",", "") for label in labels] if years and largest < PLAIN else labels


def _exponent(size: float) -> int:
    return math.floor(math.log10(size))


def _raw_number(value: Any, digits: int, minus: str) -> str:
    if isinstance(value, int | np.integer):
        text = f"{abs(int(value)):,}"
        if len(text) > 15:
            text = f"{float(abs(int(value))):.{digits - 1}e}"
    elif not np.isfinite(value) or value == 0:
        text = str(abs(float(value))).removesuffix(".0")
    else:
        size = abs(float(value))
        exponent = _exponent(size)
        if SMALLEST <= exponent < LARGEST:
            text = f"{size:,.{max(0, digits - 1 - exponent)}f}"
            text = text.rstrip("0").rstrip(".") if "." in text else text
        else:
            text = f"{size:.{digits - 1}e}"
    if abs(value) < PLAIN:
        text = text.replace(",", "")
    return (minus if value < 0 else "") + text


def _date(value: pd.Timestamp) -> str:
    if value == value.normalize():
        return str(value.date())
    return value.strftime("%Y-%m-%d %H:%M" if not value.second else "%Y-%m-%d %H:%M:%S")

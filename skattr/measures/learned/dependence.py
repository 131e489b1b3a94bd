"""Strongly dependent columns: rank correlations of numbers, on some of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.stats import rankdata

from skattr._inputs import frames
from skattr.measures.background import Background
from skattr.measures.learned.bins import as_numbers

NAMED = 5  # pairs of dependent columns that are named
STRONG = 0.8  # size of a rank correlation
ROWS = 5000  # rows that are used, evenly spread


def dependent_columns(
    background: Background, attributions: Sequence
) -> tuple[tuple[int, int, float], ...]:
    """Return (k, l, rank correlation) of strongly dependent columns, the strongest first.

    Only pairs of different attributions. Columns of levels, and those that do not vary, are left
    out; a missing value has the lowest rank. O(rows · columns²), with at most `ROWS` rows.
    """
    some = np.unique(np.linspace(0, len(background) - 1, ROWS).astype(int))
    columns, ranks = [], []
    for k, name in enumerate(background.names):
        if background.levels[k]:
            continue
        values = as_numbers(frames.take_values(background.column(k), some), name)
        rank = rankdata(np.where(np.isnan(values), -np.inf, values))
        if np.ptp(rank) > 0:
            columns.append(k)
            ranks.append((rank - rank.mean()) / np.linalg.norm(rank - rank.mean()))
    if len(columns) < 2:
        return ()
    correlations = np.array(ranks) @ np.array(ranks).T
    group = {k: a for a, members in enumerate(attributions) for k in members}
    pairs = [
        (columns[a], columns[b], float(correlations[a, b]))
        for a, b in np.argwhere(np.triu(np.abs(correlations) > STRONG, 1))
        if group.get(columns[a]) != group.get(columns[b])
    ]
    return tuple(sorted(pairs, key=lambda each: -abs(each[2])))


def dependent_in_words(pairs: Iterable[tuple[int, int, float]], names: Sequence) -> str:
    """Return which columns are strongly dependent, and what to do, as a sentence."""
    strongest = sorted(pairs, key=lambda pair: -abs(pair[2]))
    named = [(names[k], names[m], r) for k, m, r in strongest[:NAMED]]
    listed = ", ".join(f"{a!r} and {b!r} ({r:.2f})" for a, b, r in named)
    rest = len(strongest) - NAMED
    more = f" and {rest} more pairs" if rest > 0 else ""
    first = [named[0][0], named[0][1]]
    return (
        f"strongly dependent columns (rank correlation): {listed}{more}. Given one, the other is "
        "known as well, so that both get what either does; explain them as one, "
        f"groups={{'together': {first!r}}}"
    )

"""Checks of the pairs that the explainer is asked for."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from skattr._inputs.checks import position
from skattr._utils.messages import brief
from skattr.attributions import Attributions, Pairs


def read_pairs(pairs: Any, singles: Attributions, columns: list[Any]) -> Pairs:
    """Return pairs of attributions: all, all with one attribution, or those of a list.

    Parameters
    ----------
    pairs : None, label or list of (label, label)
    singles : Attributions
        The columns and groups.
    columns : list
        The labels of the raw columns.
    """
    if len(singles) < 2:
        raise ValueError(f"a pair needs two attributions, but there is only {singles.names[0]!r}")
    if pairs is None:
        return Pairs.every(singles)
    if not isinstance(pairs, list):
        if isinstance(pairs, tuple) and pairs not in singles.names:
            raise ValueError(f"pairs must be a list of pairs, got {brief(pairs)}: write [{pairs}]")
        a = attribution(pairs, singles, columns, "pairs")
        return Pairs.of(singles, [(a, b) for b in range(len(singles)) if b != a])
    if not pairs:
        raise ValueError("pairs must be a list of at least one pair, got []; None takes all")
    members = [read_pair(pair, singles, columns, "pairs") for pair in pairs]
    seen: set[frozenset[int]] = set()
    for pair, both in zip(pairs, members, strict=True):
        if frozenset(both) in seen:
            raise ValueError(f"pairs: {pair!r} occurs in the list more than once")
        seen.add(frozenset(both))
    return Pairs.of(singles, members)


def read_pair(pair: Any, singles: Attributions, columns: list[Any], where: str) -> tuple[int, int]:
    """Return the positions of two different attributions."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ValueError(f"{where}: a pair must be (name, name), got {brief(pair)}")
    for one, other in (pair, pair[::-1]):
        _refuse_group_with_member(one, other, singles, columns, where)
    a, b = (attribution(each, singles, columns, where) for each in pair)
    if a == b:
        raise ValueError(
            f"{where}: {pair[0]!r} is paired with itself; the value of one column is that of "
            "explain"
        )
    return a, b


def attribution(label: Any, singles: Attributions, columns: list[Any], where: str) -> int:
    """Return the position of an attribution; a column in a group is refused by name."""
    group = _group_of(label, singles, columns)
    if group is not None:
        raise ValueError(
            f"{where}: column {label!r} belongs to the group {group!r}; pair the group instead"
        )
    return position(label, list(singles.names), where, "attribution")


def _group_of(label: Any, singles: Attributions, columns: list[Any]) -> Any:
    """Return the name of the group that a column belongs to, or None."""
    if not isinstance(label, Hashable) or label in singles.names or label not in columns:
        return None
    k = columns.index(label)
    return next(singles.names[a] for a, each in enumerate(singles) if k in each)


def _refuse_group_with_member(
    one: Any, other: Any, singles: Attributions, columns: list[Any], where: str
) -> None:
    group = _group_of(one, singles, columns)
    if group is not None and isinstance(other, Hashable) and other == group:
        raise ValueError(
            f"{where}: column {one!r} is in the group {group!r}, so that they are not a pair; pair "
            "the group with a column outside of it"
        )

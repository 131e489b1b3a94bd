"""Attributions: the sets of raw columns that values are computed for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

__all__ = ["Attributions", "Pairs"]


@dataclass(frozen=True, eq=False)
class Attributions(Sequence[tuple[int, ...]]):
    """The sets of columns that get a value each: columns, groups or pairs of columns.

    A sequence of tuples of column positions, with names. They may overlap, as pairs do.

    Parameters
    ----------
    names : tuple
        One label per attribution.
    columns : tuple of tuples of int
        The positions of the raw columns of each attribution.
    n_columns : int
        The number of raw columns.
    together : bool
        Whether several attributions are also pinned together, as pairs are.
    """

    names: tuple[Any, ...]
    columns: tuple[tuple[int, ...], ...]
    n_columns: int
    together: bool = field(default=False, kw_only=True)

    @classmethod
    def single(cls, names: Sequence[Any]) -> Attributions:
        """Return one attribution per column."""
        return cls(tuple(names), tuple((k,) for k in range(len(names))), len(names))

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(self.columns)

    def __getitem__(self, a: int) -> tuple[int, ...]:  # type: ignore[override]
        return self.columns[a]

    @property
    def disjoint(self) -> bool:
        """Whether no column belongs to two attributions."""
        members = [k for columns in self.columns for k in columns]
        return len(set(members)) == len(members)

    @property
    def is_partition(self) -> bool:
        """Whether every column belongs to exactly one attribution."""
        return sorted(k for columns in self.columns for k in columns) == list(range(self.n_columns))

    def partitions(self, one_each: bool = False) -> list[tuple[list[int], Attributions]]:
        """Split the attributions greedily into a small number of partitions of the columns.

        If `one_each`, attributions that are not a partition get one partition each.

        Returns
        -------
        list of (positions, partition)
            The partition begins with the attributions at these positions, followed by the
            remaining columns one by one.
        """
        if self.is_partition:
            return [(list(range(len(self))), self)]
        rounds: list[tuple[list[int], set[int]]] = []
        for a, columns in enumerate(self.columns):
            for positions, taken in () if one_each else rounds:
                if taken.isdisjoint(columns):
                    positions.append(a)
                    taken.update(columns)
                    break
            else:
                rounds.append(([a], set(columns)))
        return [(positions, self._completed(positions, taken)) for positions, taken in rounds]

    def _completed(self, positions: list[int], taken: set[int]) -> Attributions:
        rest = tuple(k for k in range(self.n_columns) if k not in taken)
        return Attributions(
            (*(self.names[a] for a in positions), *rest),
            (*(self.columns[a] for a in positions), *((k,) for k in rest)),
            self.n_columns,
        )


@dataclass(frozen=True, eq=False)
class Pairs(Attributions):
    """Pairs of attributions; the names are tuples, the columns those of both, sorted.

    Parameters
    ----------
    singles : Attributions
        The attributions that are paired, a partition of the columns.
    members : tuple of (int, int)
        The positions of both in `singles`, the first one before the second.
    """

    singles: Attributions
    members: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, singles: Attributions, members: Iterable[tuple[int, int]]) -> Pairs:
        """Return some pairs, given the positions of both in `singles`."""
        ordered = tuple((min(pair), max(pair)) for pair in members)
        return cls(
            tuple((singles.names[a], singles.names[b]) for a, b in ordered),
            tuple(tuple(sorted((*singles[a], *singles[b]))) for a, b in ordered),
            singles.n_columns,
            singles,
            ordered,
        )

    @classmethod
    def every(cls, singles: Attributions) -> Pairs:
        """Return all pairs."""
        return cls.of(singles, combinations(range(len(singles)), 2))

"""Attributions: the sets of raw columns that values are computed for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


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
    """

    names: tuple[Any, ...]
    columns: tuple[tuple[int, ...], ...]
    n_columns: int

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

    def partitions(self) -> list[tuple[list[int], Attributions]]:
        """Split the attributions greedily into a small number of partitions of the columns.

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
            for positions, taken in rounds:
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

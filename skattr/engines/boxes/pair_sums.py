"""Weights of boxes for pairs of attributions, and the functions and values made from them.

The interaction of a pair is a sum over the boxes that have conditions on both attributions
(docs/mathematics.md, section 11): of rectangles, if both are columns whose cells are known; for
groups, and columns whose cells are not known, explained rows go down the trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skattr.attributions import Pairs
from skattr.curves.base import Function
from skattr.curves.by_code import Constant
from skattr.curves.by_two_codes import ByTwoCodes
from skattr.engines.base import Request
from skattr.kernels.boxes.group_values import add_group
from skattr.kernels.boxes.pair_layout import Members, Sides, Weights, by_pair, fill_boxes
from skattr.kernels.boxes.rectangles import Rectangles
from skattr.pieces import Boxes, Grid


@dataclass(eq=False)
class PairBoxes:
    """The sides of boxes, and the number of pairs that meet in them."""

    members: Members
    sides: Sides
    start: np.ndarray  # (n_boxes + 1,) where the pairs of a box start, see pair_layout.Weights
    first: np.ndarray  # (n_pairs + 1,) where the boxes of a pair start

    @classmethod
    def of(cls, boxes: Boxes, pairs: Pairs) -> PairBoxes:
        """Find the boxes that have conditions on both attributions of a pair."""
        members = members_of(pairs, boxes.grid)
        return cls(members, *fill_boxes(boxes.table, members))

    def no_weights(self, boxes: Boxes) -> Weights:
        """Return weights that are 0."""
        g = len(self.members.column)
        return Weights(np.zeros((boxes.n_boxes, g + 1)), np.zeros(self.start[-1]), self.start)

    def sums(self, boxes: Boxes, weights: Weights, weight: float) -> PairSums:
        """Return the sums with these weights, `weight` in total."""
        box, both = by_pair(boxes.table, self.members, self.first, weights)
        return PairSums(self.members, self.sides, self.first, box, both, weights.singles, weight)


@dataclass(eq=False)
class PairSums:
    """The boxes of each pair with their weights."""

    members: Members
    sides: Sides
    first: np.ndarray  # (n_pairs + 1,)
    box: np.ndarray  # the boxes of the first pair, of the second one, …
    both: np.ndarray  # their weights without the conditions on both attributions of a pair
    singles: np.ndarray  # (n_boxes, g + 1)
    weight: float

    def mean(self, boxes: Boxes) -> np.ndarray:
        """Return the integral of f with no attribution pinned, (k,)."""
        total = boxes.constant.copy()
        weighted = boxes.table.values * (self.singles[:, -1:] / self.weight)
        for o in range(weighted.shape[1]):
            total += np.bincount(self.sides.output + o, weighted[:, o], len(total))
        return total

    def n_zeros(self) -> int:
        """Return the number of pairs that meet in no box: they are 0."""
        return int((np.diff(self.first) == 0).sum())

    def functions(self, boxes: Boxes, pairs: Pairs) -> list[Function | None]:
        """Return each pair as a function of two columns, 0 if it meets in no box."""
        result: list[Function | None] = []
        for p, members in enumerate(pairs.members):
            a, b = self._numbers(pairs, p)
            columns = self.members.column[a], self.members.column[b]
            if self.first[p] == self.first[p + 1]:
                result.append(Constant(np.zeros((1, boxes.n_outputs))))
            elif min(columns) < 0:
                result.append(None)
            else:
                assert len(members) == 2
                result.append(
                    ByTwoCodes(
                        boxes.grid, (int(columns[0]), int(columns[1])), (a, b),
                        self._rectangles(boxes, p), self.weight,
                    )
                )  # fmt: skip
        return result

    def _rectangles(self, boxes: Boxes, p: int) -> Rectangles:
        some = slice(self.first[p], self.first[p + 1])
        sides = self.sides
        return Rectangles(
            self.box[some], self.both[some], self.singles, boxes.table.values, sides.interval,
            sides.allowed, sides.word, sides.output, boxes.n_outputs,
        )  # fmt: skip

    def integrate(self, boxes: Boxes, request: Request) -> np.ndarray:
        """Return the values of pairs that are not functions of two codes, (n, g, k)."""
        pairs, codes = request.attributions, request.rows.codes
        assert isinstance(pairs, Pairs) and codes is not None
        result = request.zeros(boxes.n_outputs)
        for i, p in enumerate(request.chosen):
            columns = [list(pairs.singles[a]) for a in pairs.members[p]]
            # rows that agree in both attributions share one descent
            _, first, kind = np.unique(
                codes[[*columns[0], *columns[1]]], axis=1, return_index=True, return_inverse=True
            )
            values = self._at(boxes, p, columns, np.ascontiguousarray(codes[:, first]), pairs)
            result[:, i] = values[kind.reshape(-1)]
        return result

    def _at(
        self, boxes: Boxes, p: int, columns: list[list[int]], codes: np.ndarray, pairs: Pairs
    ) -> np.ndarray:
        """Return the values of a pair at codes (d, n), (n, k)."""
        some = slice(self.first[p], self.first[p + 1])
        box = self.box[some]
        plain = np.zeros(boxes.n_boxes)
        plain[box] = self.singles[box, -1]
        numbers = self._numbers(pairs, p)
        parts = [(1.0, [*columns[0], *columns[1]], self.both[some])]
        parts += [
            (-1.0, each, self.singles[box, a]) for each, a in zip(columns, numbers, strict=True)
        ]
        result = np.zeros((codes.shape[1], boxes.n_outputs))
        for sign, of_columns, weights in parts:
            in_group = np.zeros(len(codes), np.bool_)
            in_group[of_columns] = True
            of_boxes = np.zeros(boxes.n_boxes)
            of_boxes[box] = weights
            out = np.zeros_like(result)
            add_group(boxes.table, in_group, of_boxes, plain, codes, out)
            result += sign * out
        return result / self.weight

    def _numbers(self, pairs: Pairs, p: int) -> tuple[int, int]:
        """Return the numbers of both attributions of a pair among those that are paired."""
        owner, (a, b) = self.members.owner, pairs.members[p]
        return int(owner[pairs.singles[a][0]]), int(owner[pairs.singles[b][0]])


def members_of(pairs: Pairs, grid: Grid) -> Members:
    """Return the attributions that are paired; groups and open columns have no sides."""
    active = sorted({a for pair in pairs.members for a in pair})
    number = {a: i for i, a in enumerate(active)}
    owner = np.full(len(grid.cells), -1, np.int32)
    column = np.full(len(active), -1, np.int32)
    for a, i in number.items():
        columns = pairs.singles[a]
        owner[list(columns)] = i
        if len(columns) == 1 and not grid.cells[columns[0]].open:
            column[i] = columns[0]
    numbers = np.full((len(active), len(active)), -1, np.int32)
    for p, (a, b) in enumerate(pairs.members):
        numbers[number[a], number[b]] = numbers[number[b], number[a]] = p
    return Members(owner, column, numbers)

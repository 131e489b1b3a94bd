"""Tensors that are affine in inputs and units, and the layers that these units form.

A tensor (n, …) is kept as the table of its constants and slopes. Units that are used after the next
layer are carried on by units of slope 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skattr.pieces.parts import Layer


@dataclass(eq=False)
class Affine:
    """A tensor, each row of which is affine in the inputs and in the units found so far.

    A torch function that treats each row of a tensor by itself, and linearly, can be applied to the
    rows of the table.
    """

    table: Any  # (1 + inputs + units, …) a tensor of float64: the constants, then the slopes
    memory: object = field(default_factory=object)  # shared by tensors that may share their numbers

    def __post_init__(self) -> None:
        """Refuse tables that are not affine: rounded or infinite numbers."""
        if str(self.table.dtype) != "torch.float64":
            raise ValueError(f"it returns numbers of the type {self.table.dtype}")
        if not self.table.isfinite().all():
            raise ValueError("it returns numbers that are not finite")

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one row."""
        return tuple(self.table.shape[1:])

    def padded(self, rows: int) -> Any:
        """Return the table, with slopes 0 for units that came later."""
        import torch

        more = self.table.new_zeros((rows - len(self.table), *self.shape))
        return torch.cat([self.table, more])

    def times(self, factor: Any) -> Affine:
        """Return the tensor times a constant."""
        return Affine(self.table * self._row(factor))

    def plus(self, other: Any) -> Affine:
        """Return the sum with a constant or with another tensor."""
        if not isinstance(other, Affine):
            first = self.table.new_zeros((len(self.table), *(1 for _ in self.shape)))
            first[0] = 1.0
            return Affine(self.table + first * self._row(other))
        if len(self.shape) != len(other.shape):
            raise ValueError(f"it joins rows of shapes {self.shape} and {other.shape}")
        rows = max(len(self.table), len(other.table))
        return Affine(self.padded(rows) + other.padded(rows))

    def _row(self, constant: Any) -> Any:
        """Return a constant in the shape of a row."""
        import torch

        row = torch.as_tensor(constant, dtype=torch.float64)
        if row.ndim == self.table.ndim and len(row) == 1:
            row = row[0]
        if row.ndim > len(self.shape):
            raise ValueError(
                f"it joins rows of shape {self.shape} and a constant {tuple(row.shape)}"
            )
        return row


class Units:
    """All units found so far, each affine in the inputs and in units before it."""

    def __init__(self, n_inputs: int) -> None:
        self.n_inputs = n_inputs
        self.groups: list[tuple[np.ndarray, np.ndarray]] = []  # tables (rows, q), slopes (q,)

    @property
    def rows(self) -> int:
        """How many rows a table has that includes all units."""
        return 1 + self.n_inputs + sum(len(slopes) for _, slopes in self.groups)

    def inputs(self) -> Affine:
        """Return the inputs, (n, n_inputs)."""
        return self._last(self.n_inputs, (self.n_inputs,))

    def add(self, numbers: Affine, slope: Any = 0.0) -> Affine:
        """Add units, which return their number above 0 and slope times it below."""
        slopes = np.broadcast_to(np.asarray(slope, float), numbers.shape).ravel()
        table = numbers.table.reshape(len(numbers.table), len(slopes)).numpy()
        self.groups.append((table, slopes))
        return self._last(len(slopes), numbers.shape)

    def _last(self, q: int, shape: tuple[int, ...]) -> Affine:
        """Return the last q inputs or units as a tensor."""
        import torch

        table = torch.zeros(self.rows, q, dtype=torch.float64)
        table[self.rows - q :] = torch.eye(q)
        return Affine(table.reshape(-1, *shape))

    def layers(self, output: Affine) -> tuple[list[Layer], np.ndarray, np.ndarray]:
        """Sort units into layers, and carry those that are used later through the layers between.

        Returns
        -------
        layers, weight, bias
            The hidden layers; weight (k, m) and bias (k,) of the last affine map.
        """
        basis = self.rows - 1
        weight, bias, slope = np.zeros((basis, basis)), np.zeros(basis), np.ones(basis)
        level, end = np.zeros(basis, int), self.n_inputs
        for table, slopes in self.groups:
            group = slice(end, end + len(slopes))
            weight[group, : len(table) - 1] = table[1:].T
            bias[group], slope[group] = table[0], slopes
            # the units of one group are in one layer
            used = np.flatnonzero(table[1:].any(axis=1))
            level[group] = 1 + level[used].max(initial=0)
            end = group.stop
        last = output.padded(basis + 1).reshape(basis + 1, -1).numpy().T
        before = np.arange(self.n_inputs)  # what the layer before returns
        layers = []
        for number in range(1, int(level.max(initial=0)) + 1):
            new = np.flatnonzero(level == number)
            later = np.concatenate([weight[level > number], last[:, 1:]])
            carried = [i for i in before if later[:, i].any()]
            here = np.concatenate([new, np.array(carried, int)])
            fresh = np.isin(here, new)
            layer_weight = np.where(fresh[:, None], weight[here], np.eye(basis)[here])
            layers.append(
                Layer(
                    np.ascontiguousarray(layer_weight[:, before]),
                    np.where(fresh, bias[here], 0.0),
                    np.where(fresh, slope[here], 1.0),
                )
            )
            before = here
        return layers, np.ascontiguousarray(last[:, 1 + before]), last[:, 0].copy()

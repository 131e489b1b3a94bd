"""f as a ReLU network: affine maps with units between them (docs/mathematics.md, section 4)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.columnwise import Columnwise
from skattr.pieces.outputs import Output
from skattr.pieces.parts import Layer, Net
from skattr.pieces.preprocessing.pipeline import to_dense
from skattr.pieces.preprocessing.refusals import refusals
from skattr.pieces.preprocessing.tracks import Kind
from skattr.pieces.regions import Region, regions_of

EXTREME = 1e60  # weights beyond which products of a few overflow
NOISE = 1e-3  # rounding errors of a network, relative to f, from which on it is not read
FAR = 2.0**60  # a number compared to which the centre of a scaler is negligible


class Line(NamedTuple):
    """The inputs that come from a column of numbers: start + (x - origin) · direction."""

    origin: float
    positions: np.ndarray  # (q,) which inputs they are
    start: np.ndarray  # (q,)
    direction: np.ndarray  # (q,)
    missing: np.ndarray | None = None  # (q,) the inputs of a missing value, None if it is refused
    infinite: bool = False  # whether infinite values are accepted

    def folded(self, k: int) -> Line | None:
        """Return the line of the input x - origin, number k, if missing values lie on it too."""
        missing = None
        if self.missing is not None:
            c = int(np.abs(self.direction).argmax())
            missing = np.zeros(1)
            if self.direction[c]:
                missing += (self.missing[c] - self.start[c]) / self.direction[c]
            size = np.abs(self.start) + np.abs(self.missing)
            off = np.abs(self.start + missing * self.direction - self.missing)
            if (off > 1e-13 * size).any():
                return None
        return Line(self.origin, np.array([k]), np.zeros(1), np.ones(1), missing, self.infinite)


class ReluNetwork(Columnwise[Net]):
    """Affine maps with units between them that are linear on either side of 0.

    Readers bring networks into this form: BatchNorm is folded into the next affine map, a clipped
    unit is two ReLUs, a residual connection past a layer is a unit of slope 1. Computations are in
    float64, whatever the model's own type.

    Attributes
    ----------
    layers : list of Layer
        The hidden layers.
    weight, bias : arrays (k, m) and (k,)
        The last affine map.
    is_plain : bool
        Whether every used column is a number and reaches the network through scalers only. These
        are folded into the first layer then, and there is one input per raw column, x - origin.
        Otherwise the inputs are the outputs of the fitted steps.
    origin : array (p,)
        Where the inputs are 0, if `is_plain`: 0, or the centre of a scaler, so that data far from 0
        lose fewer digits.
    """

    layers: list[Layer]
    weight: np.ndarray
    bias: np.ndarray

    def __init__(self, parts: list[Net], output: Output, row: Any) -> None:
        super().__init__(parts, output, row)
        depth = max(len(part.layers) for part in parts)
        nets = [part.deepened(depth) for part in self.parts]
        self.layers = [_side_by_side(some) for some in zip(*(n.layers for n in nets), strict=True)]
        self.weight = np.concatenate([net.coefficients for net in nets], axis=1)
        self.bias = self.constant
        self.columns = np.array([track.column for tracks in self.tracks for track in tracks], int)
        self.is_plain = False
        self.origin = np.zeros(0)
        self.lines = {k: line for k in range(len(self.names)) if (line := self._line(k))}
        folded = {k: line.folded(k) for k, line in self.lines.items()}
        if all(folded.get(k) is not None for k in set(self.columns.tolist())):
            self._fold(folded)
        self._balance()

    def numbers(self, X: Any) -> np.ndarray:
        """Return the inputs, (n, p) in float64; refuses what the model refuses."""
        with refusals(X, self.row.X, self.inputs, self.behind_steps):
            inputs = self._inputs(X)
        if not self.is_plain:
            return inputs
        result = np.zeros((len(X), len(self.names)))
        for k in set(self.columns.tolist()):
            result[:, k] = frames.to_float(frames.column(X, k)) - self.origin[k]
            missing = self.lines[k].missing
            if missing is not None:
                result[np.isnan(result[:, k]), k] = missing[0]
        return result

    def own_numbers(self, X: Any, columns: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return which inputs come from some columns, (q,), and their values in X, (n, q).

        The other columns of X are ignored.
        """
        rows = frames.with_columns(self.row.X, {k: frames.column(X, k) for k in columns})
        column = np.arange(len(self.names)) if self.is_plain else self.columns
        positions = np.flatnonzero(np.isin(column, columns))
        return positions, self.numbers(rows)[:, positions]

    def forward(self, Z: np.ndarray) -> np.ndarray:
        """Return the network at inputs, (n, k)."""
        for layer in self.layers:
            Z = Z @ layer.weight.T + layer.bias
            with np.errstate(invalid="ignore"):  # 0 · inf, which is 0 here
                Z = np.where(Z >= 0, Z, np.where(layer.slope == 0, 0.0, layer.slope * Z))
        return Z @ self.weight.T + self.bias

    def local(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the affine model y ↦ A y + b of the region of each input, (n, k, p) and (n, k).

        A unit at exactly 0 counts as positive.
        """
        n, p = Z.shape
        A = np.broadcast_to(np.eye(p), (n, p, p))
        b = np.zeros((n, p))
        for layer in self.layers:
            z = Z @ layer.weight.T + layer.bias
            slope = np.where(z >= 0, 1.0, layer.slope)
            A = slope[:, :, None] * (layer.weight @ A)
            b = slope * (b @ layer.weight.T + layer.bias)
            Z = slope * z
        return self.weight @ A, b @ self.weight.T + self.bias

    def regions(self, domain: Any) -> Iterator[Region]:
        """Yield (a, b, vertices, volume) of each region of a box where f(x) = a · x + b.

        Their number grows fast with the number of columns: use it for few of them.

        Parameters
        ----------
        domain : array (d, 2) or dict
            The box: low and high of each raw column, or {column: (low, high)} of all.
        """
        return regions_of(self, domain)

    @override
    def reading(self, rows: Any) -> tuple[Any, Any]:
        Z = self.numbers(rows)
        return self.forward(Z), self.rounding(self.inputs(rows)) * self._size(Z)

    @override
    def cancellation(self, rows: Any) -> str | None:
        """Return whether the terms are so large that curves would be rounding errors, or None.

        A unit whose terms are 1e20 times as large as f is computed to 1e4 times f. The model may
        never use it where the rows are, but curves are sums of what all units do.
        """
        Z = self.numbers(rows)
        largest, terms = np.abs(self.forward(Z)).max(axis=0), self._size(Z).max(axis=0)
        # a sum that overflows is inf or NaN
        lost = (largest > 0) & ~(np.finfo(float).eps * terms <= NOISE * largest)
        if not lost.any():
            return None
        o = int(lost.argmax())
        return (
            f"the network adds terms up to {terms[o]:.0e} to results up to {largest[o]:.0e}, which "
            "float64 cannot do with enough digits"
        )

    def _size(self, Z: np.ndarray) -> np.ndarray:
        """Return the sum of the absolute values of all terms at inputs, (n, k)."""
        size: np.ndarray = np.abs(Z) + (np.abs(self.origin) if self.is_plain else 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            for layer in self.layers:
                size = size @ np.abs(layer.weight.T) + np.abs(layer.bias)
            return size @ np.abs(self.weight.T) + np.abs(self.bias)

    @override
    def describe(self) -> str:
        widths = [*(layer.weight.shape[1] for layer in self.layers), *self.weight.shape[::-1]]
        return f"a ReLU network {'-'.join(map(str, widths))}, computed in float64"

    def _inputs(self, X: Any) -> np.ndarray:
        """Return the inputs of all parts, (n, p)."""
        inputs = [np.asarray(to_dense(v), np.float64) for v in self.inputs(X)]
        return np.concatenate(inputs, axis=1)

    def _line(self, k: int) -> Line | None:
        """Return the line of a column, if its inputs are affine in its numbers."""
        tracks = [track for tracks in self.tracks for track in tracks]
        positions = np.array([c for c, track in enumerate(tracks) if track.column == k], int)
        straight = all(tracks[c].affine or tracks[c].kind == Kind.MISSING for c in positions)
        if not len(positions) or not straight or frames.is_level(self.row.X, k):
            return None

        def at(*values: float) -> np.ndarray:
            table = frames.with_columns(self.row.X, {k: np.array(values)})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._inputs(table)[:, positions]

        def if_accepted(value: float) -> np.ndarray | None:
            with suppress(ValueError):
                return at(value)[0]
            return None

        missing, infinite = if_accepted(np.nan), if_accepted(np.inf) is not None
        if missing is not None and np.isnan(missing).any():
            missing = None
        if not self.behind_steps:
            return Line(
                0.0, positions, np.zeros(len(positions)), np.ones(len(positions)), None, infinite
            )
        low, high = at(-FAR, FAR)
        direction = high / (2 * FAR) - low / (2 * FAR)
        origin = 0.0
        for c in np.flatnonzero(direction)[:1]:  # the zero of the first one
            for _ in range(2):  # once more, as steps round
                origin -= float(at(origin)[0, c] / direction[c])
        return Line(origin, positions, at(origin)[0], direction, missing, infinite)

    def _fold(self, folded: dict) -> None:
        """Fold the steps into the first affine map, which then takes raw columns."""
        d, p = len(self.names), len(self.columns)
        slopes, starts, self.origin = np.zeros((p, d)), np.zeros(p), np.zeros(d)
        for k, line in self.lines.items():
            slopes[line.positions, k], starts[line.positions] = line.direction, line.start
            self.origin[k] = line.origin
        self.lines = folded
        if self.layers:
            weight, bias, slope = self.layers[0]
            self.layers[0] = Layer(weight @ slopes, weight @ starts + bias, slope)
        else:
            self.bias = self.weight @ starts + self.bias
            self.weight = self.weight @ slopes
        self.is_plain = True

    def _balance(self) -> None:
        """Scale units whose numbers are so large or so small that products of them overflow.

        A unit is multiplied by a power of two and what it feeds by its inverse, which changes
        neither f nor a digit: s · relu(z) = relu(s · z).
        """
        for i, (weight, bias, slope) in enumerate(self.layers):
            size = np.maximum(np.abs(weight).max(axis=1, initial=0.0), np.abs(bias))
            extreme = (size > 0) & ((size < 1 / EXTREME) | (size > EXTREME))
            if not extreme.any():
                continue
            power = np.where(extreme, np.frexp(size)[1], 0)
            self.layers[i] = Layer(np.ldexp(weight, -power[:, None]), np.ldexp(bias, -power), slope)
            with np.errstate(over="ignore"):
                if i + 1 < len(self.layers):
                    following = self.layers[i + 1]
                    weight = np.ldexp(following.weight, power)
                    self.layers[i + 1] = following._replace(weight=weight)
                else:
                    weight = self.weight = np.ldexp(self.weight, power)
            if not np.isfinite(weight).all():
                raise Unreadable("the weights of the network are too large for float64")


def _side_by_side(layers: tuple[Layer, ...]) -> Layer:
    """Return one layer with the units of several."""
    weights, biases, slopes = zip(*layers, strict=True)
    return Layer(block_diag(*weights), np.concatenate(biases), np.concatenate(slopes))

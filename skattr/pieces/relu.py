"""f as a ReLU network: affine maps with kinks between them (MATH.md, section 4)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from skattr import frames
from skattr.pieces.columnwise import Columnwise, Front
from skattr.pieces.outputs import Output
from skattr.pieces.regions import Region, regions_of
from skattr.pieces.routes import refusals
from skattr.pieces.steps import MISSING

FAR = 2.0**60  # a number beside which the centre of a scaler is nothing
SINGLE = 1e-5  # how far a model that computes in float32 may be off


class Layer(NamedTuple):
    """Units z = weight · y + bias that return z where z >= 0, slope · z elsewhere.

    The slope is 0 for a ReLU, 0.01 for a leaky one, and 1 for a unit that passes its number on.
    """

    weight: np.ndarray  # (m, p) float64
    bias: np.ndarray  # (m,)
    slope: np.ndarray  # (m,)


@dataclass(eq=False)
class Net:
    """What a reader finds: a ReLU network on the inputs of one front."""

    front: Front
    layers: list[Layer]
    weight: np.ndarray  # (k, m) the last affine map
    constant: np.ndarray  # (k,) its bias
    steps: tuple = ()  # fitted steps in front of the front, the outermost first
    rounding: float = 1e-8  # how far the model's own arithmetic may be off

    def scaled(self, factor: float) -> Net:
        """Return factor · f."""
        return replace(self, weight=self.weight * factor, constant=self.constant * factor)

    def behind(self, *steps: Any) -> Net:
        """Return the same function behind more steps."""
        return replace(self, steps=(*steps, *self.steps))

    def plus(self, constant: Any) -> Net:
        """Return f + constant, a number or (k,)."""
        return replace(self, constant=self.constant + constant)

    def at_outputs(self, places: Any, k: int) -> Net:
        """Return the function with its outputs at some places among k."""
        return self.combined(np.eye(k)[places])

    def combined(self, weights: np.ndarray) -> Net:
        """Return f @ weights, (k, m): each new output is a weighted sum of those there are."""
        return replace(self, weight=weights.T @ self.weight, constant=self.constant @ weights)

    def at_columns(self, columns: list[int] | None) -> Net:
        """Return the function with some of its outputs."""
        if columns is None or len(self.weight) == 1:
            return self
        return replace(self, weight=self.weight[columns], constant=self.constant[columns])

    def deepened(self, depth: int) -> Net:
        """Return the same function with more layers, which pass numbers on."""
        m = self.weight.shape[1]
        more = [Layer(np.eye(m), np.zeros(m), np.ones(m))] * (depth - len(self.layers))
        return replace(self, layers=[*self.layers, *more])


class Line(NamedTuple):
    """The inputs that come from a column of numbers: start + (x - origin) · direction."""

    origin: float
    places: np.ndarray  # (q,) which inputs they are
    start: np.ndarray  # (q,)
    direction: np.ndarray  # (q,)
    missing: np.ndarray | None = None  # (q,) what they are if it is missing, None: it may not be
    infinite: bool = False  # whether it may be infinite

    def folded(self, k: int) -> Line | None:
        """Return the line of one input x - origin in place k, if a missing value lies on it too."""
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


class ReluNetwork(Columnwise):
    """Affine maps with units between them that are linear on either side of 0.

    Whatever was read is brought into this form: BatchNorm is folded into the next affine map, a
    clipped unit is two ReLUs, what a residual connection carries past a layer is a unit of slope 1.
    Computed in float64, whatever the model's own type.

    Attributes
    ----------
    layers : list of Layer
        The hidden layers.
    weight, bias : arrays (k, m) and (k,)
        The last affine map.
    is_plain : bool
        Whether every column that counts is a number and reaches the network through scalers only.
        They are folded then: there is one input a raw column, x - origin. Else the inputs are what
        the fitted steps give.
    origin : array (p,)
        Where the inputs are 0, if `is_plain`: 0, or the centre of a scaler. Far from 0 data lose
        fewer digits so.
    """

    layers: list[Layer]
    weight: np.ndarray
    bias: np.ndarray

    def __init__(self, parts: list[Net], output: Output, row: Any) -> None:
        super().__init__([part.at_columns(output.columns) for part in parts], output, row)
        depth = max(len(part.layers) for part in parts)
        parts = [part.deepened(depth) for part in self.parts]
        self.layers = [_beside(own) for own in zip(*(p.layers for p in parts), strict=True)]
        self.weight = np.concatenate([part.weight for part in parts], axis=1)
        self.bias = self.constant
        self.columns = np.array([track.column for tracks in self.tracks for track in tracks], int)
        self.is_plain = False
        self.origin = np.zeros(0)
        self.lines = {k: line for k in range(len(self.names)) if (line := self._line(k))}
        folded = {k: line.folded(k) for k, line in self.lines.items()}
        if all(folded.get(k) is not None for k in set(self.columns.tolist())):
            self._fold(folded)

    def numbers(self, X: Any) -> np.ndarray:
        """Return the inputs, (n, p) in float64; refuses what the model refuses."""
        with refusals(X, self.row.X, self.inputs, self.behind_steps):
            found = self._inputs(X)
        if not self.is_plain:
            return found
        result = np.zeros((len(X), len(self.names)))
        for k in set(self.columns.tolist()):
            result[:, k] = frames.to_float(frames.column(X, k)) - self.origin[k]
            missing = self.lines[k].missing
            if missing is not None:
                result[np.isnan(result[:, k]), k] = missing[0]
        return result

    def own_numbers(self, X: Any, columns: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return which inputs come from some columns, (q,), and what they are in X, (n, q).

        The other columns of X are not looked at.
        """
        rows = frames.with_columns(self.row.X, {k: frames.column(X, k) for k in columns})
        whose = np.arange(len(self.names)) if self.is_plain else self.columns
        places = np.flatnonzero(np.isin(whose, columns))
        return places, self.numbers(rows)[:, places]

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

        Their number grows fast with the columns: it is for few of them.

        Parameters
        ----------
        domain : array (d, 2) or dict
            The box: low and high of each raw column, or {column: (low, high)} of all.
        """
        return regions_of(self, domain)

    def reading(self, rows: Any) -> tuple[Any, Any]:
        """Return the network at some rows, and the rounding of numbers of that size."""
        Z = self.numbers(rows)
        size = np.abs(Z) + (np.abs(self.origin) if self.is_plain else 0.0)
        for layer in self.layers:
            size = size @ np.abs(layer.weight.T) + np.abs(layer.bias)
        size = size @ np.abs(self.weight.T) + np.abs(self.bias)
        single = any(inputs.dtype == np.float32 for inputs in self.inputs(rows))
        rounding = max([part.rounding for part in self.parts] + [SINGLE] * single)
        return self.forward(Z), rounding * size

    def describe(self) -> str:
        """Say how wide the layers are."""
        widths = [*(layer.weight.shape[1] for layer in self.layers), *self.weight.shape[::-1]]
        return f"a ReLU network {'-'.join(map(str, widths))}, computed in float64"

    def _inputs(self, X: Any) -> np.ndarray:
        """Return what the fitted steps and the checks of the model give, (n, p)."""
        found = [v.toarray() if sparse.issparse(v) else v for v in self.inputs(X)]
        return np.concatenate([np.asarray(v, np.float64) for v in found], axis=1)

    def _line(self, k: int) -> Line | None:
        """Return how the inputs of a column depend on its numbers, if that is affine."""
        tracks = [track for tracks in self.tracks for track in tracks]
        places = np.array([c for c, track in enumerate(tracks) if track.column == k], int)
        straight = all(tracks[c].affine or tracks[c].kind == MISSING for c in places)
        if not len(places) or not straight or frames.is_level(self.row.X, k):
            return None

        def at(*values: float) -> np.ndarray:
            table = frames.with_columns(self.row.X, {k: np.array(values)})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._inputs(table)[:, places]

        def taken(value: float) -> np.ndarray | None:
            with suppress(ValueError):
                return at(value)[0]
            return None

        missing, infinite = taken(np.nan), taken(np.inf) is not None
        if missing is not None and np.isnan(missing).any():
            missing = None
        if not self.behind_steps:
            return Line(0.0, places, np.zeros(len(places)), np.ones(len(places)), None, infinite)
        low, high = at(-FAR, FAR)
        direction = high / (2 * FAR) - low / (2 * FAR)
        origin = 0.0
        for c in np.flatnonzero(direction)[:1]:  # where the first of them is 0: steps round there
            for _ in range(2):
                origin -= float(at(origin)[0, c] / direction[c])
        return Line(origin, places, at(origin)[0], direction, missing, infinite)

    def _fold(self, folded: dict) -> None:
        """Let the first affine map begin at raw columns."""
        d, p = len(self.names), len(self.columns)
        slopes, starts, self.origin = np.zeros((p, d)), np.zeros(p), np.zeros(d)
        for k, line in self.lines.items():
            slopes[line.places, k], starts[line.places] = line.direction, line.start
            self.origin[k] = line.origin
        self.lines = folded
        if self.layers:
            weight, bias, slope = self.layers[0]
            self.layers[0] = Layer(weight @ slopes, weight @ starts + bias, slope)
        else:
            self.bias = self.weight @ starts + self.bias
            self.weight = self.weight @ slopes
        self.is_plain = True


def _beside(layers: tuple[Layer, ...]) -> Layer:
    """Return one layer made of the units of several networks."""
    weights, biases, slopes = zip(*layers, strict=True)
    return Layer(block_diag(*weights), np.concatenate(biases), np.concatenate(slopes))

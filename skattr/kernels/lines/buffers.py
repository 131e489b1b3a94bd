"""The arrays that walks along lines read and fill, grouped, and how large they have to be."""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import WORD
from skattr.kernels.lines.products import COLUMNS
from skattr.kernels.lines.vectors import aligned

UNITS = COLUMNS  # widths of layers are multiples of this
BLOCK = 4  # events that are passed together


class Units(NamedTuple):
    """A network behind its first affine map; layers stand one behind the other.

    Layers end with units of slope 1 and weight 0, so that their widths are multiples of UNITS.
    """

    widths: np.ndarray  # (L,) of the hidden layers
    slopes: np.ndarray  # (M,) of the negative side, of all hidden units
    weights: np.ndarray  # transposed, of layer 2, 3, …
    tiles: np.ndarray  # the same, as products.multiply takes them
    last: np.ndarray  # (k, m) the last affine map


class Start(NamedTuple):
    """All hidden units at u = 0, where 0 counts as where it goes to the right, for n lines."""

    values: np.ndarray  # (n, M)
    slopes: np.ndarray  # (n, M) to the right
    turns: np.ndarray  # (n, M) numbers that have the sign of the side
    positions: np.ndarray  # (n, m) where the units of the first layer are 0; inf: nowhere
    order: np.ndarray  # (n, m) the units in the order of these
    returned: np.ndarray  # (n, m) what a layer returns
    returned_slopes: np.ndarray  # (n, m)


class Events(NamedTuple):
    """Kinks of the inputs of a layer, in order, and what happens there."""

    time: np.ndarray  # where they are
    unit: np.ndarray  # the unit of the layer before that flips, or -1 if all slopes change
    amount: np.ndarray  # by how much the slope of what that unit returns rises
    row: np.ndarray  # s ← keep · s + factor · rows[row:], and up to the next event y ← y + du · s
    steps: np.ndarray  # (size, 3) factor, keep and du
    out: np.ndarray  # (size, k) slopes of the outputs behind them
    flips: np.ndarray  # (size, k) by how much these rise up to the next event; 0 between walks


class Layer(NamedTuple):
    """A hidden layer with m units, at u = 0 of a line: where it stands in the arrays of all."""

    slopes: np.ndarray  # (M,) of the negative side
    values: np.ndarray  # (n, M)
    turns: np.ndarray  # (n, M) numbers that have the sign of the side
    unit: int  # its first unit in `slopes`
    at: int  # and in `values` and `turns`, counted in the whole arrays
    m: int


class Line(NamedTuple):
    """A walk along a line."""

    side: float  # 1 to the right, -1 to the left
    weight: float  # by which rises are multiplied


class Knots(NamedTuple):
    """Where the output has kinks."""

    table: np.ndarray  # (N, 1 + k) u, and by how much the slopes of k outputs rise there
    ends: np.ndarray  # (n,) how many there are up to the end of line i


class Block(NamedTuple):
    """The units of a layer on their way past BLOCK events."""

    state: np.ndarray  # (2 · 3 · m,) before and behind four events, or vice versa, of eight units
    # at a time: where they are, their slopes, and numbers that have the sign of their sides
    crossing: np.ndarray  # bits of the units that may pass 0 meanwhile
    track: np.ndarray  # (2 · BLOCK,) a unit at four events: its slopes behind them, and its values
    flips: np.ndarray  # (2, BLOCK, m) behind event b: where, and by how much slopes rise
    flipped: np.ndarray  # (BLOCK, m) which units
    counts: np.ndarray  # (BLOCK,) how many


class WalkBuffers(NamedTuple):
    """Buffers for walks with up to E events at layers with up to m units."""

    events: Events
    block: Block
    rows: np.ndarray  # the weights, and E + BLOCK rows of m slopes
    returned: np.ndarray  # ((E + BLOCK) · m,) slopes of what the layer before returns at its events
    entering: np.ndarray  # (m,) slopes of what comes in


class DeepBuffers(NamedTuple):
    """What networks with more than two hidden layers need besides."""

    events: Events
    returned: np.ndarray  # ((E + BLOCK) · m,) slopes of what a layer returns
    active: np.ndarray  # (m,) units of the layer before whose slopes are not 0


def start_buffers(units: Units, n: int) -> Start:
    """Return buffers for n lines."""
    m, M = units.widths[0], len(units.slopes)
    values, slopes, turns = (aligned(n * M).reshape(n, M) for _ in range(3))
    widest = units.widths.max()
    returned, returned_slopes = (aligned(n * widest).reshape(n, widest) for _ in range(2))
    positions, order = np.empty((n, m)), np.empty((n, m), np.int64)
    return Start(values, slopes, turns, positions, order, returned, returned_slopes)


def walk_buffers(units: Units, events: int) -> WalkBuffers:
    """Return buffers for walks with a number of events."""
    m, k, end = int(units.widths.max()), len(units.last), len(units.weights)
    rows = aligned(end + (events + BLOCK) * m)
    rows[:end] = units.weights
    block = Block(
        aligned(2 * 3 * m), np.empty(-(-m // WORD), np.uint64), np.empty(2 * BLOCK),
        np.empty((2, BLOCK, m)), np.empty((BLOCK, m), np.int64), np.empty(BLOCK, np.int64),
    )  # fmt: skip
    returned = aligned((events + BLOCK) * m)
    return WalkBuffers(_event_buffers(events, k), block, rows, returned, np.empty(m))


def deep_buffers(units: Units, events: int) -> DeepBuffers | None:
    """Return what networks with more than two hidden layers need besides."""
    if len(units.widths) < 3:
        return None
    m, k = int(units.widths.max()), len(units.last)
    returned = aligned((events + BLOCK) * m)
    return DeepBuffers(_event_buffers(events, k), returned, np.empty(m, np.int64))


def knot_buffers(size: int, k: int, n: int) -> Knots:
    """Return buffers for the knots of n lines."""
    return Knots(np.empty((size, 1 + k)), np.empty(n, np.int64))


def _event_buffers(size: int, k: int) -> Events:
    """Return buffers for events, and some that do not happen."""
    size += BLOCK
    return Events(
        np.empty(size), np.empty(size, np.int64), np.empty(size), np.empty(size, np.int64),
        np.empty((size, 3)), np.empty((size, k)), np.zeros((size, k)),
    )  # fmt: skip

"""Sums of rectangles over the codes of two columns, at cells and at points.

Box b, with sides I_j and I_k in two columns, adds

    v_b (E_b,jk 1[s in I_j] 1[t in I_k] - E_b,j 1[s in I_j] - E_b,k 1[t in I_k] + A_b)

to the interaction of j and k at the codes s and t (docs/mathematics.md, section 11). Codes are
first mapped to those that are asked for, in which a side is a few runs. Then rectangles are added
at their corners to a table of differences or, if that would be large, a sweep over s keeps the sum
over t: O(1) for an end of a rectangle, O(asked / 64 + 64) for a point.

All sums are sums of integers, multiples of one small unit: they do not depend on the order of the
boxes, nor on what else is asked for, to the last bit.
"""

from typing import NamedTuple

import numpy as np

from skattr.kernels.boxes.bits import ZERO, drop_run, end_of_run, lowest, n_words
from skattr.kernels.boxes.layout import ADMITS, HIGH, LOW
from skattr.kernels.compiled import inlined, kernel

BITS = 61  # of the largest sum, in units
BLOCK = 6  # the sum over t is kept for single codes and for 2^BLOCK of them
DENSE = 2**18  # cells of a table that is always made: 2 MB


class Rectangles(NamedTuple):
    """The boxes that have conditions on two columns, with their sides and weights."""

    box: np.ndarray  # (m,)
    both: np.ndarray  # (m,) E_jk
    singles: np.ndarray  # (n_boxes, g + 1) E of each attribution; last, A
    values: np.ndarray  # (n_boxes, width)
    interval: np.ndarray  # (n_boxes, g, 3), see pair_layout.Sides
    allowed: np.ndarray
    word: np.ndarray
    output: np.ndarray  # (n_boxes,)
    n_outputs: int


class Axis(NamedTuple):
    """One of both columns: its attribution, its number of codes, and whether they have no order."""

    attribution: int
    n_codes: int
    is_set: bool


class Asked(NamedTuple):
    """The codes of a column that are asked for."""

    position: np.ndarray  # (n_codes + 1,) how many of them are smaller than each code
    n: int


class Runs(NamedTuple):
    """The sides of the boxes in one column, as runs of the codes that are asked for."""

    start: np.ndarray  # (m + 1,)
    low: np.ndarray
    high: np.ndarray  # behind the last one


def asked(codes, n_codes):
    """Return the codes that are asked for, and the positions of `codes` among them."""
    seen = np.zeros(n_codes, np.bool_)
    seen[codes] = True
    position = np.concatenate([[0], np.cumsum(seen)])
    return Asked(position, int(position[-1])), position[codes]


def at_cells(
    rectangles: Rectangles, a: Axis, b: Axis, codes_a: np.ndarray, codes_b: np.ndarray
) -> np.ndarray:
    """Return the sums at all pairs of codes of two columns, (m_a, m_b, k)."""
    (asked_a, at_a), (asked_b, at_b) = asked(codes_a, a.n_codes), asked(codes_b, b.n_codes)
    table = _Sums(rectangles, a, b, asked_a, asked_b).table()
    return table[at_a][:, at_b]


def at_points(
    rectangles: Rectangles,
    a: Axis,
    b: Axis,
    codes_a: np.ndarray,
    codes_b: np.ndarray,
    sweep: bool | None = None,
) -> np.ndarray:
    """Return the sums at points, (n, k), from a table or by a sweep; None: what costs less."""
    (asked_a, at_a), (asked_b, at_b) = asked(codes_a, a.n_codes), asked(codes_b, b.n_codes)
    sums = _Sums(rectangles, a, b, asked_a, asked_b)
    if sweep is None:
        sweep = asked_a.n * asked_b.n > max(DENSE, len(rectangles.box), len(codes_a))
    return sums.swept(at_a, at_b) if sweep else sums.points(at_a, at_b)


class _Sums:
    """Sums over asked codes, as integers and the unit that they count."""

    def __init__(self, rectangles, a, b, asked_a, asked_b):
        self.rectangles, self.a, self.b = rectangles, a.attribution, b.attribution
        self.shape = (asked_a.n, asked_b.n, rectangles.n_outputs)
        sizes = _sizes(rectangles, self.a, self.b)
        self.known = np.isfinite(sizes)
        exponent = np.frexp(np.where(self.known, sizes, 1.0))[1]
        self.unit = np.ldexp(1.0, np.maximum(exponent, -900) - BITS)
        self.runs = [_runs(rectangles, *each) for each in ((a, asked_a), (b, asked_b))]

    def _lines(self, table):
        """Return the parts of one column and the constant; add corners to a table, if any."""
        m_a, m_b, k = self.shape
        lines = [np.zeros((m + 1, k), np.int64) for m in (m_a, m_b)]
        constant = np.zeros(k, np.int64)
        _add_lines(
            self.rectangles, self.a, self.b, *self.runs, 1 / self.unit, *lines, constant, table
        )
        return *(np.cumsum(line[:-1], axis=0) for line in lines), constant

    def _numbers(self, integers):
        return np.where(self.known, integers * self.unit, np.nan)

    def _corners(self):
        """Return the part of both columns at all cells, (m_a, m_b, k), then what `_lines` does."""
        m_a, m_b, k = self.shape
        table = np.zeros((m_a + 1, m_b + 1, k), np.int64)
        lines = self._lines(table)
        table = table[:-1, :-1]
        np.cumsum(table, axis=0, out=table)
        np.cumsum(table, axis=1, out=table)
        return table, *lines

    def table(self):
        """Return the sums at all cells, (m_a, m_b, k)."""
        table, line_a, line_b, constant = self._corners()
        table += (line_a + constant)[:, None]
        table += line_b
        return self._numbers(table)

    def points(self, at_a, at_b):
        """Return the sums at points, (n, k), from a table."""
        table, line_a, line_b, constant = self._corners()
        return self._numbers(table[at_a, at_b] + line_a[at_a] + line_b[at_b] + constant)

    def swept(self, at_a, at_b):
        """Return the sums at points, (n, k), by a sweep over the first column."""
        m_a, m_b, k = self.shape
        line_a, line_b, constant = self._lines(np.zeros((0, 0, k), np.int64))
        runs_a, runs_b = self.runs
        n_events = 2 * len(runs_a.low)
        events = np.zeros(n_events, np.int64)
        bucket = np.zeros(m_a + 2, np.int64)
        order = np.argsort(at_a, kind="stable")
        result = np.zeros((len(at_a), k), np.int64)
        fine = np.zeros((m_b, k), np.int64)
        coarse = np.zeros(((m_b >> BLOCK) + 1, k), np.int64)
        _sweep(
            self.rectangles, runs_a, runs_b, 1 / self.unit, events, bucket,
            at_a, at_b, order, fine, coarse, result,
        )  # fmt: skip
        return self._numbers(result + line_a[at_a] + line_b[at_b] + constant)


def _runs(rectangles, axis, asked):
    """Return the sides of all boxes as runs of asked codes."""
    start = np.zeros(len(rectangles.box) + 1, np.int64)
    empty = np.zeros(0, np.int32)
    _fill_runs(rectangles, axis, asked.position, start, empty, empty, False)
    np.cumsum(start, out=start)
    low, high = np.zeros(start[-1], np.int32), np.zeros(start[-1], np.int32)
    _fill_runs(rectangles, axis, asked.position, start, low, high, True)
    return Runs(start, low, high)


@inlined
def _put_run(first, last, position, at, low, high, fill):
    """Write a run of codes down, unless none of them is asked for; return where the next goes."""
    begin = position[first]
    end = position[last + 1]
    if begin == end:
        return at
    if fill:
        low[at] = begin
        high[at] = end
    return at + 1


@kernel
def _fill_runs(rectangles, axis, position, start, low, high, fill):
    box, _, _, _, interval, allowed, word, _, _ = rectangles
    a, n_codes, is_set = axis
    for e in range(box.shape[0]):
        b = box[e]
        begin = start[e] if fill else np.int64(0)
        at = begin
        if is_set:
            for w in range(n_words(n_codes)):
                bits = allowed[b, word[a] + w]
                while bits != ZERO:
                    at = _put_run(
                        64 * w + lowest(bits), 64 * w + end_of_run(bits) - 1,
                        position, at, low, high, fill,
                    )  # fmt: skip
                    bits = drop_run(bits)
        else:
            first = interval[b, a, LOW]
            last = interval[b, a, HIGH]
            joined = interval[b, a, ADMITS] != 0 and first == 1 and first <= last
            if joined:
                first = 0
            elif interval[b, a, ADMITS]:
                at = _put_run(0, 0, position, at, low, high, fill)
            if first <= last:
                at = _put_run(first, last, position, at, low, high, fill)
        if not fill:
            start[e + 1] = at


def _sizes(rectangles, a, b):
    """Return the sums of the sizes of all terms of each output, (k,): bounds on every sum."""
    box, both, singles, values, *_, output, k = rectangles
    weight = both + singles[box, a] + singles[box, b] + singles[box, -1]
    sizes = np.zeros(k)
    with np.errstate(invalid="ignore"):  # of infinite values, whose sums are not known
        for o in range(values.shape[1]):
            sizes += np.bincount(output[box] + o, np.abs(values[box, o]) * weight, k)
    return sizes


@inlined
def _in_units(value, weight, per_unit):
    return np.int64(np.rint(value * weight * per_unit))


@kernel
def _add_lines(rectangles, a, b, runs_a, runs_b, per_unit, line_a, line_b, constant, table):
    """Add what depends on one column at the ends of runs; and corners to a table that has cells."""
    box, both, singles, values, _, _, _, output, _ = rectangles
    start_a, low_a, high_a = runs_a
    start_b, low_b, high_b = runs_b
    last = singles.shape[1] - 1
    dense = table.shape[0] > 0
    for e in range(box.shape[0]):
        i = box[e]
        for o in range(values.shape[1]):
            to = output[i] + o
            value = values[i, o]
            one_a = _in_units(value, singles[i, a], per_unit[to])
            one_b = _in_units(value, singles[i, b], per_unit[to])
            constant[to] += _in_units(value, singles[i, last], per_unit[to])
            for r in range(start_a[e], start_a[e + 1]):
                line_a[low_a[r], to] -= one_a
                line_a[high_a[r], to] += one_a
            for r in range(start_b[e], start_b[e + 1]):
                line_b[low_b[r], to] -= one_b
                line_b[high_b[r], to] += one_b
            if not dense:
                continue
            corner = _in_units(value, both[e], per_unit[to])
            for r in range(start_a[e], start_a[e + 1]):
                for s in range(start_b[e], start_b[e + 1]):
                    table[low_a[r], low_b[s], to] += corner
                    table[low_a[r], high_b[s], to] -= corner
                    table[high_a[r], low_b[s], to] -= corner
                    table[high_a[r], high_b[s], to] += corner


@inlined
def _add_run(fine, coarse, at, to, amount):
    if at < fine.shape[0]:
        fine[at, to] += amount
        coarse[at >> BLOCK, to] += amount


@kernel
def _sweep(
    rectangles, runs_a, runs_b, per_unit, events, bucket, at_a, at_b, order, fine, coarse, result
):
    """Add the rectangles that hold each point to its result, from the first code to the last."""
    box, both, _, values, _, _, _, output, _ = rectangles
    start_a, low_a, high_a = runs_a
    start_b, low_b, high_b = runs_b
    n_asked = bucket.shape[0] - 2
    # sort by counting: where rectangles begin and end; bucket i + 1 counts what is at i
    for r in range(low_a.shape[0]):
        bucket[low_a[r] + 1] += 1
        bucket[high_a[r] + 1] += 1
    for i in range(n_asked + 1):
        bucket[i + 1] += bucket[i]
    for e in range(box.shape[0]):
        for r in range(start_a[e], start_a[e + 1]):
            events[bucket[low_a[r]]] = 2 * e
            bucket[low_a[r]] += 1
            events[bucket[high_a[r]]] = 2 * e + 1
            bucket[high_a[r]] += 1
    event = np.int64(0)  # now bucket i is where those at i end
    query = np.int64(0)
    for i in range(n_asked):
        while event < bucket[i]:
            e = events[event] >> 1
            sign = 1 - 2 * (events[event] & 1)
            event += 1
            for o in range(values.shape[1]):
                to = output[box[e]] + o
                amount = sign * _in_units(values[box[e], o], both[e], per_unit[to])
                for s in range(start_b[e], start_b[e + 1]):
                    _add_run(fine, coarse, low_b[s], to, amount)
                    _add_run(fine, coarse, high_b[s], to, -amount)
        while query < order.shape[0] and at_a[order[query]] == i:
            point = order[query]
            query += 1
            t = at_b[point]
            first = (t >> BLOCK) << BLOCK
            for o in range(result.shape[1]):
                total = np.int64(0)
                for w in range(t >> BLOCK):
                    total += coarse[w, o]
                for w in range(first, t + 1):
                    total += fine[w, o]
                result[point, o] = total

"""Rows of data, weighted by the bin of x_j, on boxes: exact curves in one pass.

A curve has its jumps at the thresholds of the model and at the edges of the bins; it is looked up
by (code, bin). O(boxes · depth · rows / 64) and a few additions for each row that meets all but one
condition of a box (docs/mathematics.md, section 3, "Conditional by rows"). Groups, and columns
whose cells are not known in advance (open columns), are summed up for each explained row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._typing import override
from skattr._utils.parallel import in_order
from skattr.attributions import Attributions
from skattr.curves.by_bin import ByCodeAndBin
from skattr.engines.backgrounds import encode
from skattr.engines.base import Curves, Engine, Integral, Request, RunOptions
from skattr.engines.boxes.box_sums import owners, tree_blocks
from skattr.engines.boxes.one_violation import ROW_BLOCK
from skattr.engines.estimates import Estimate
from skattr.kernels.boxes import binned_violation, one_violation
from skattr.kernels.boxes.binned_violation import BinnedSums, Binning
from skattr.kernels.boxes.group_rows import add_pinned
from skattr.measures.base import Measure
from skattr.measures.learned.bins import Bins
from skattr.measures.learned.row_weights import RowWeights
from skattr.measures.learned.weights import Weights
from skattr.pieces import Boxes, Grid
from skattr.pieces.preprocessing.tracks import Kind

MAX_SUMS = 2**23  # numbers in the sums of one pass


@dataclass(eq=False)
class BinnedSum:
    """Σ_r ω_r κ f(t, z_{r,-j}) by code and bin of t, κ up to the normaliser of each bin of t.

    Shapes are those of `ByCodeAndBin`; by code + bin, the values at a missing t come last: the sum
    over the rows where the column is missing, and the sum over all rows.
    """

    k: int  # the column
    values: np.ndarray
    reach: np.ndarray | None = None
    partial: bool = False

    def merge(self, other: BinnedSum) -> BinnedSum:
        """Add the rows of another batch."""
        return replace(self, values=self.values + other.values)

    def curve(self, column: Weights, constant: np.ndarray) -> ByCodeAndBin:
        """Divide by the sums of the weights of all rows."""
        n = column.bins.n
        missing = n if column.norm[n] < column.norm[n + 1] else n + 1
        if self.reach is None:
            values = self.values.copy()
            values[:, n] = values[:, missing]
            return ByCodeAndBin(column.bins, constant + values / column.norm[:, None])
        ends = self.reach[1] + np.arange(n) + 1
        bins = np.searchsorted(ends, np.arange(len(self.values) - 2), side="right")
        values = self.values[:-2] / column.norm[np.minimum(bins, n - 1), None]
        last = self.values[missing - n - 2] / column.norm[n]
        values = constant + np.concatenate([values, last[None]])
        return ByCodeAndBin(column.bins, values, self.reach, self.partial)


@dataclass(eq=False)
class BinnedCurves:
    """Sums for the curves of single columns, and the rows for groups and open columns."""

    sums: list[BinnedSum | None]
    total: np.ndarray  # (k,) Σ_r ω_r f(z_r), without the constant of f
    weights: RowWeights
    grid: Grid | None
    codes: np.ndarray | None
    curves: list[ByCodeAndBin | None] = field(default_factory=list)


class BinnedRows(Engine):
    """Sums over boxes of the rows that meet all conditions but those on one column, by bin."""

    name = "binned_rows"
    kind = Boxes
    views = ("bins",)
    gives = "exact curves; groups row by row"
    needs_partition = True

    @override
    def cost(self, pieces: Boxes, measure: Measure) -> str:
        return (
            "fit: one pass of the background down all trees; explain: one lookup per value, for a "
            "group one pass of the background"
        )

    @override
    def prepare(
        self, pieces: Boxes, measure: Any, attributions: Attributions, options: RunOptions
    ) -> BinnedCurves:
        background, weights = measure.bins()
        grid, codes = encode(background, pieces.grid, options.n_jobs)
        pieces = pieces.on(grid)
        single = [len(c) == 1 and not grid.cells[c[0]].open for c in attributions]
        curved = tuple(c if one else () for c, one in zip(attributions, single, strict=True))
        curves: list[BinnedSum | None] = [None] * len(attributions)
        for some in _parts(curved, weights, pieces.n_outputs):
            part = tuple(c if j in some else () for j, c in enumerate(curved))
            layout = Layout(grid, weights, [curved[j][0] for j in some])
            sums = _sum_rows(pieces, part, layout, codes, weights, options)
            for j in some:
                curves[j] = layout.curve(curved[j][0], sums, weights)
        total = sums.fit @ weights.weight
        rest = not all(single) or any(curve is not None and curve.partial for curve in curves)
        return BinnedCurves(
            curves,
            total,
            weights if rest else weights.without_rows(),
            grid if rest else None,
            codes if rest else None,
        )

    @override
    def merge(self, a: BinnedCurves, b: BinnedCurves) -> BinnedCurves:
        codes = None
        if a.codes is not None and b.codes is not None:
            codes = np.concatenate([a.codes, b.codes], axis=1)
        sums = [
            None if one is None or other is None else one.merge(other)
            for one, other in zip(a.sums, b.sums, strict=True)
        ]
        weights = a.weights.merge(b.weights)
        return replace(b, sums=sums, total=a.total + b.total, weights=weights, codes=codes)

    @override
    def finish(self, pieces: Boxes, state: BinnedCurves, options: RunOptions) -> BinnedCurves:
        weights = state.weights.settled()
        curves = [
            None if each is None else each.curve(weights.columns[each.k], pieces.constant)
            for each in state.sums
        ]
        total = state.total / state.weights.total
        if state.codes is None:
            weights = weights.released()
        return replace(state, sums=[], total=total, weights=weights, curves=curves)

    @override
    def mean(self, pieces: Boxes, state: BinnedCurves) -> Estimate:
        return Estimate(pieces.constant + state.total)

    @override
    def curves(self, pieces: Boxes, state: BinnedCurves, attributions: Attributions) -> Curves:
        return state.curves

    @override
    def integrate(self, pieces: Any, state: Any, request: Request) -> Integral:
        grid, codes = state.grid.meet(request.X)
        boxes = pieces.on(grid)
        result = request.zeros(boxes.n_outputs)
        for i, columns in enumerate(request.columns):
            result[:, i] = _sum_pinned(boxes, state, request, codes, columns)
        return Integral(Estimate(boxes.constant + result))


def _parts(attributions: Sequence, weights: RowWeights, k: int) -> list[list[int]]:
    """Split the attributions of one column into parts whose sums fit in memory."""
    parts: list[list[int]] = [[]]
    size = 0
    for j, columns in enumerate(attributions):
        if columns:
            more = (weights.columns[columns[0]].bins.n + 2) ** 2 * k
            if size + more > MAX_SUMS and parts[-1]:
                parts.append([])
                size = 0
            parts[-1].append(j)
            size += more
    return parts


def _sum_pinned(
    boxes: Boxes,
    state: BinnedCurves,
    request: Request,
    codes: np.ndarray,
    columns: tuple[int, ...],
) -> np.ndarray:
    """Return Σ_r π_r(x) f(x_j, z_r,-j) without the constant, (n, k), once for equal rows."""
    assert state.codes is not None
    weights, rows = state.weights, state.codes
    bins = weights.bins_of(request.X, columns)
    members = list(columns)
    _, first, kind = np.unique(
        np.concatenate([codes[members], bins]), axis=1, return_index=True, return_inverse=True
    )
    is_member = np.zeros(len(codes), np.bool_)
    is_member[members] = True

    def one(i: int) -> np.ndarray:
        share = weights.given(columns, bins[:, i])
        out = np.zeros(boxes.n_outputs)
        x = np.ascontiguousarray(codes[:, i])
        add_pinned(boxes.table, is_member, rows, x, np.flatnonzero(share), share, out)
        return out

    sums = np.array(list(in_order(one, first.tolist(), request.options.n_jobs)))
    return sums.reshape(len(first), -1)[kind.reshape(-1)]


def _sum_rows(
    pieces: Boxes,
    attributions: Sequence,
    layout: Layout,
    codes: np.ndarray,
    weights: RowWeights,
    options: RunOptions,
) -> BinnedSums:
    """Run the kernel over all rows and trees in fixed blocks, added up in order."""
    column_owners = owners(attributions, pieces.grid)
    fits = []
    total = layout.empty(0, pieces.n_outputs)
    for start in range(0, len(weights.weight), ROW_BLOCK):
        block = slice(start, start + ROW_BLOCK)
        weight = weights.weight[block]
        rows = one_violation.index_rows(
            np.ascontiguousarray(codes[:, block]), weight, pieces.grid.offset
        )
        binning = layout.binning(weights, block)

        def run(
            trees: np.ndarray, rows: Any = rows, binning: Binning = binning, n: int = len(weight)
        ) -> BinnedSums:
            part = layout.empty(n, pieces.n_outputs)
            binned_violation.walk(pieces.table, trees, column_owners, rows, binning, part)
            return part

        fit = np.zeros((pieces.n_outputs, len(weight)))
        for part in in_order(run, tree_blocks(pieces), options.n_jobs):
            for whole, piece in zip(total[:-1], part[:-1], strict=True):
                whole += piece
            fit += part.fit
        fits.append(fit)
    return total._replace(fit=np.concatenate(fits, axis=1))


class Layout:
    """The positions of the sums of each column in flat arrays, and how they become a curve."""

    def __init__(self, grid: Grid, weights: RowWeights, columns: list[int]) -> None:
        self.grid = grid
        d = len(grid.cells)
        n_codes = np.diff(grid.offset)
        self.n_bins = np.array([column.bins.n + 2 for column in weights.columns])
        self.rises = np.zeros(d, np.bool_)
        self.partial = np.zeros(d, np.bool_)
        self.first = np.zeros(grid.offset[-1], np.int32)
        self.missing = np.full(d, -1)
        for k in columns:
            self._find_order(k, weights.columns[k].bins)
        chosen = np.isin(np.arange(d), columns)
        rows = np.where(self.rises, self.n_bins, n_codes) + 1
        self.whole = _starts(chosen * rows * self.n_bins)
        self.jumps = _starts(chosen * self.rises * (n_codes + self.n_bins))
        self.without = _starts(chosen * self.n_bins)
        self.tables = [weights.raw_table(k) if k in columns else np.zeros((0, 0)) for k in range(d)]
        self.kappa = np.concatenate([table.ravel() for table in self.tables])
        self.kappas = _starts(np.array([table.size for table in self.tables]))

    def _find_order(self, k: int, bins: Bins) -> None:
        """Check whether codes rise with bins, and find the bin in which each code begins."""
        cells = self.grid.cells[k]
        mains = [source.track for source in cells.inputs if source.track.kind != Kind.MISSING]
        known = (*Kind.UNCHANGED, Kind.MONOTONE, Kind.NUMBER)
        simple = len(mains) == 1 and mains[0].kind in known and not mains[0].replaced
        if bins.edges is None or len(bins.edges) == 0 or not cells.ordered or not simple:
            return
        if not frames.is_number(self.grid.row.X, k):
            return
        edges = self.grid.encode_values(k, bins.edges)
        near = mains[0].kind in Kind.UNCHANGED
        if (np.diff(edges) < 0).any() or (not near and edges[0] == edges[-1]):
            return  # codes fall with bins, or may fall
        self.partial[k] = not near
        missing = self.grid.missing_code(k)
        codes = slice(self.grid.offset[k], self.grid.offset[k + 1])
        self.rises[k] = True
        self.missing[k] = -1 if missing is None else missing
        self.first[codes] = np.searchsorted(edges, np.arange(cells.n_codes), side="left")

    def empty(self, n: int, k: int) -> BinnedSums:
        """Return sums that are 0, for n rows and k outputs."""
        return BinnedSums(
            np.zeros((k, self.whole[-1])),
            np.zeros((k, self.jumps[-1])),
            np.zeros((k, self.without[-1])),
            np.zeros((k, n)),
        )

    def binning(self, weights: RowWeights, block: slice) -> Binning:
        """Return the bins of a block of rows, and the layout of the sums."""
        assert weights.rows is not None
        return Binning(
            np.ascontiguousarray(weights.rows[:, block]),
            self.n_bins,
            self.rises,
            self.first,
            self.missing,
            self.kappa,
            self.kappas[:-1],
            self.whole[:-1],
            self.jumps[:-1],
            self.without[:-1],
        )

    def curve(self, k: int, sums: BinnedSums, weights: RowWeights) -> BinnedSum:
        """Return the sums by code and bin of column k."""
        assert weights.rows is not None
        m = self.n_bins[k]
        outputs = len(sums.fit)
        rows = weights.rows[k]
        plain = np.stack([np.bincount(rows, weights.weight * fit, m) for fit in sums.fit])
        plain += sums.without[:, self.without[k] : self.without[k + 1]]
        whole = sums.whole[:, self.whole[k] : self.whole[k + 1]].reshape(outputs, -1, m)
        if not self.rises[k]:
            return BinnedSum(k, self._by_code(k, plain, whole))
        first = self.first[self.grid.offset[k] : self.grid.offset[k + 1]]
        last = np.searchsorted(first, np.arange(m - 2), side="right") - 1  # of each bin
        jumps = sums.jumps[:, self.jumps[k] : self.jumps[k + 1]]
        values = self._rising(k, plain, whole, jumps, last)
        reach = np.stack([np.append(1, last[:-1]), last])
        return BinnedSum(k, values, reach, bool(self.partial[k]))

    def _by_code(self, k: int, plain: np.ndarray, whole: np.ndarray) -> np.ndarray:
        """Return the values by code and bin."""
        by_code = whole[:, :-1] + whole[:, -1:]  # the last row counts for all codes
        if self.grid.cells[k].ordered:
            np.cumsum(by_code[:, 1:], axis=1, out=by_code[:, 1:])
        return ((by_code + plain[:, None]) @ self.tables[k].T).transpose(1, 2, 0)

    def _rising(
        self,
        k: int,
        plain: np.ndarray,
        whole: np.ndarray,
        jumps: np.ndarray,
        last: np.ndarray,
    ) -> np.ndarray:
        """Return the values by code + bin, and missing; `last` is the last code of each bin."""
        table, n = self.tables[k], self.n_bins[k] - 2
        inner = np.cumsum(whole[:, :n], axis=1) + plain[:, None]
        level = np.einsum("bs,kbs->bk", table[:n], inner)
        values = np.zeros((jumps.shape[1] + 2, len(jumps)))  # what no code and bin reach stays 0
        begin = 0
        for b in range(n):
            end = last[b] + b + 1
            values[begin:end] = level[b] + np.cumsum(jumps[:, begin:end], axis=1).T
            begin = end
        values[-2:] = table[n:] @ (whole[:, -1] + plain).T
        return values


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

"""A fitted estimator, the output that is explained, and f as pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames
from skattr._inputs.checks import named_outputs
from skattr._utils.messages import warn
from skattr.engines import Rows
from skattr.pieces import Grid, Output, Pieces, as_pieces, choose_output
from skattr.pieces.preprocessing.row_independence import check_row_independence

BLOCK = 2**21  # numbers of X, or values, that are computed together, which bounds memory


class ReadModel:
    """An estimator, the output that is explained, and f as pieces.

    Parameters
    ----------
    estimator : fitted estimator or callable
    X : DataFrame or array (n, d)
        The background. The pieces are compared with the predictions there; if they differ, the
        model becomes a black box.
    output : str
        The output to explain, as in `MeasureExplainer`.
    output_names : list of str, optional
        The names of the outputs.

    Attributes
    ----------
    names : list
        The labels of the columns.
    named : bool
        Whether X is a frame.
    output : Output
        The output that is explained.
    row : PicklableTable
        One row that the model accepts.
    refuted : str or None
        Why the pieces do not agree with the predictions.
    grid : Grid or None
        The cells of the raw columns, if the pieces have any.
    scale : str
        The output in words.
    """

    def __init__(
        self, estimator: Any, X: Any, output: str, output_names: list[str] | None = None
    ) -> None:
        self.names = frames.labels(X)
        self.named = frames.is_frame(X)
        self.refuted: str | None = None
        self.output, self.row = self._choose_output(estimator, X, output)
        self.output.names = named_outputs(output_names, self.output.names)
        self._check(estimator, X)
        self.scale = self.output.scale_in_words(_spread_out(X))
        self.grid: Grid | None = self.pieces.grid
        self.name_levels(X)

    def _choose_output(self, estimator: Any, X: Any, output: str) -> tuple[Output, PicklableTable]:
        """Choose the output and read the model, at the first row that it accepts."""
        refusal: ValueError | None = None
        for row in frames.some_rows(X):
            row = frames.copy(row)
            try:
                chosen = choose_output(estimator, output, row)
                self._pieces: Pieces | None = as_pieces(chosen, row)
                return chosen, PicklableTable(row)
            except ValueError as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def _check(self, estimator: Any, X: Any) -> None:
        """Compare the pieces with the predictions; if they differ, use a black box."""
        self.refuted = self.pieces.refuted(_spread_out(X))
        check_row_independence(estimator, X, self.row.X)
        if self.refuted is not None:
            self._pieces = None
            warn(f"{self.refuted}; it is explained as a black box")

    @property
    def pieces(self) -> Pieces:
        """The model as pieces; read again when needed, never pickled."""
        if self._pieces is None:
            self._pieces = as_pieces(self.output, self.row.X, self.refuted)
        return self._pieces

    def name_levels(self, X: Any) -> None:
        """Learn the names of levels from X if the model does not keep them."""
        self.pieces.name_levels(X)
        if self.grid is not None and self.grid is not self.pieces.grid:  # pieces were read again
            self.grid.name_levels(X)

    def _grids(self) -> list[Grid]:
        return [addend.grid for addend in self.pieces.addends if addend.grid is not None]

    def anonymous_columns(self) -> list[int]:
        """Return the columns of levels for which the model keeps no names."""
        return sorted({k for g in self._grids() for k, c in enumerate(g.cells) if c.anonymous})

    def name_seen_levels(self, levels: dict[int, list[Any]]) -> None:
        """Learn the names of levels from those that batches of the background have."""
        for k, values in levels.items():
            if values:
                self.name_levels(self.rows_with({k: values}))

    def refuse_open_columns(self, what: str = "partial_fit") -> None:
        """Raise if the cells of a column depend on the data, so that batches differ."""
        columns = sorted({k for grid in self._grids() for k in grid.open_columns})
        if columns:
            names = [self.names[k] for k in columns]
            raise ValueError(
                f"{what}: the cells of the columns {names} depend on the data, because of the "
                "steps in front of the model; use fit with the whole background"
            )

    def as_background(self, X: Any) -> Any:
        """Return rows with the dtypes of the background wherever these represent them."""
        return frames.settled(X, self.row.X)

    def blocks(self, X: Any) -> list[slice]:
        """Return ranges of rows that are encoded together."""
        step = max(256, BLOCK // (len(self.names) * len(self.output.names)))
        return [slice(start, start + step) for start in range(0, len(X), step)]

    def encode(self, X: Any, pieces: Pieces | None) -> tuple[Pieces | None, Rows]:
        """Return rows with their codes, and pieces, if any, on a grid that has their cells."""
        if self.grid is None:
            return pieces, Rows(X)
        if pieces is not None:
            pieces, codes = pieces.meet(X)
        else:
            codes = self.grid.meet(X)[1]
        return pieces, Rows(X, codes)

    def predict(self, X: Any) -> np.ndarray:
        """Return the output at rows, (n,), or (n, k) for several outputs."""
        result = np.empty((len(X), len(self.output.names)))
        for block in self.blocks(X):
            result[block] = self.output(frames.take_rows(X, block))
        return result[:, 0] if result.shape[1] == 1 else result

    def takes_booleans_as_numbers(self, k: int) -> bool:
        """Tell whether a column of booleans reaches the model unchanged, as the numbers 0 and 1."""
        as_numbers = self.grid is not None and self.grid.cells[k].edges is not None
        return as_numbers and frames.is_boolean(self.row.X, k)

    def rows_with(self, columns: dict[int, Any]) -> Any:
        """Return copies of `row` with the values of some columns replaced."""
        return frames.with_columns(self.row.X, columns)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_pieces": None}


def _spread_out(X: Any) -> Any:
    """Return 64 rows at equal distances in X."""
    return frames.take_rows(X, np.unique(np.linspace(0, len(X) - 1, 64).astype(int)))

"""From an estimator to pieces."""

from __future__ import annotations

from typing import Any

from skattr._inputs import frames
from skattr.pieces import readers
from skattr.pieces.base import Pieces, Unreadable, unwrap
from skattr.pieces.black_box import BlackBox
from skattr.pieces.outputs import Output, resolve
from skattr.pieces.sum import Sum, by_kind


def choose_output(estimator: Any, output: str, X: Any) -> Output:
    """Choose the function to explain; X is one row."""
    model = unwrap(estimator)
    return resolve(model, output, readers.scales(model), readers.has_margin(model), X)


def as_pieces(output: Output, row: Any, refuted: str | None = None) -> Pieces:
    """Read the estimator of an output; `row` is one row of X.

    An estimator that no reader knows, or whose reading was refuted, is a black box.
    """
    if refuted is not None:
        return BlackBox(output, row, refuted)
    try:
        parts = readers.read(output.estimator, output.scale, len(frames.labels(row)))
        addends = [kind(some, output, row) for kind, some in by_kind(parts)]
        return addends[0] if len(addends) == 1 else Sum(addends, output, row)
    except Unreadable as reason:
        return BlackBox(output, row, str(reason))

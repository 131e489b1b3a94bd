"""From an estimator to pieces."""

from __future__ import annotations

from typing import Any

from skattr._inputs import frames
from skattr.pieces import readers
from skattr.pieces.base import Pieces, Unreadable, unwrap
from skattr.pieces.black_box import BlackBox
from skattr.pieces.linked import Linked, Margins
from skattr.pieces.outputs import Output, resolve
from skattr.pieces.sum import Sum, by_kind


def choose_output(estimator: Any, output: str, X: Any) -> Output:
    """Choose the function to explain; X is one row."""
    model = unwrap(estimator)
    return resolve(model, output, readers.scales(model), readers.has_margin(model), X)


def as_pieces(output: Output, row: Any, refuted: str | None = None) -> Pieces:
    """Read the estimator of an output; `row` is one row of X.

    An estimator is a sum of pieces, or a known link of such sums. One that no reader knows, or
    whose reading was refuted, is a black box.
    """
    if refuted is not None:
        return BlackBox(output, row, refuted)
    width = len(frames.labels(row))
    try:
        parts, link = readers.read_linked(output.estimator, output.scale, width)
        if link is None:
            return _sum(parts, output, row)
        margins = Margins(output, [f"margin {i}" for i in range(len(parts[0].constant))])
        margins.pieces = _sum(parts, margins, row)
        return Linked(margins.pieces, link, output, row)
    except Unreadable as reason:
        return BlackBox(output, row, str(reason))


def _sum(parts: list, output: Output, row: Any) -> Pieces:
    addends = [kind(some, output, row) for kind, some in by_kind(parts)]
    return addends[0] if len(addends) == 1 else Sum(addends, output, row)

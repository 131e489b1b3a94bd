"""Library models → pieces, one library a file; READERS is the whole table.

A reader has `scales(estimator)`: the outputs on which the estimator is a sum of its pieces, best
first, empty if it is none of its own; and `read(estimator, scale)`, which returns a list of Trees
or raises Unreadable with the reason.
"""

from __future__ import annotations

from typing import Any

from skattr.pieces.base import Unreadable
from skattr.pieces.boxes import Trees
from skattr.pieces.readers import ensembles, hist_gradient_boosting, sklearn_trees

READERS = (sklearn_trees, hist_gradient_boosting, ensembles)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which some reader finds pieces, best first."""
    return next((found for reader in READERS if (found := reader.scales(estimator))), ())


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read an estimator as trees."""
    for reader in READERS:
        found = reader.scales(estimator)
        if scale in found:
            return reader.read(estimator, scale)
        if found:
            raise Unreadable(
                f"{type(estimator).__name__} is a sum of boxes on the scale "
                f"{' or '.join(map(repr, found))}, not on {scale!r}"
            )
    raise Unreadable(f"there is no reader for {type(estimator).__name__}")

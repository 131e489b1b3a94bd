"""Library models → pieces, one library a file; READERS is the whole table.

A reader has `scales(estimator)`: the outputs on which the estimator is a sum of its pieces, best
first, empty if it is none of its own; and `read(estimator, scale)`, which returns a list of parts
(Trees, Linear) or raises Unreadable with the reason. A library whose answer before the link has no
method of scikit-learn's has `margin(estimator, X)` too, and `has_margin(estimator)` if only some of
its estimators have one; one whose own objects want containers of its own has
`predict(estimator, X)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.readers import (
    catboost,
    ensembles,
    hist_gradient_boosting,
    lightgbm,
    pipelines,
    sklearn_trees,
    xgboost,
)

READERS: tuple[Any, ...] = (
    sklearn_trees,
    hist_gradient_boosting,
    xgboost,
    lightgbm,
    catboost,
    pipelines,
    ensembles,
)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which some reader finds pieces, best first."""
    return next((found for reader in READERS if (found := reader.scales(estimator))), ())


def read(estimator: Any, scale: str) -> list:
    """Read an estimator as parts whose sum it is."""
    for reader in READERS:
        found = reader.scales(estimator)
        if scale in found:
            return reader.read(estimator, scale)
        if found:
            raise Unreadable(
                f"{type(estimator).__name__} is a sum of pieces on the scale "
                f"{' or '.join(map(repr, found))}, not on {scale!r}"
            )
    raise Unreadable(f"there is no reader for {type(estimator).__name__}")


def has_margin(estimator: Any) -> bool:
    """Tell whether a reader knows the estimator's answer before its link."""
    return _margin_reader(estimator) is not None


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the estimator's answer before its link."""
    return _margin_reader(estimator).margin(estimator, X)


def _margin_reader(estimator: Any) -> Any:
    for reader in READERS:
        if hasattr(reader, "margin") and getattr(reader, "has_margin", reader.scales)(estimator):
            return reader
    return None


def predict(estimator: Any, X: Any) -> Any:
    """Return the prediction of an estimator, which may be no scikit-learn estimator."""
    for reader in READERS:
        if hasattr(reader, "predict") and reader.scales(estimator):
            return reader.predict(estimator, X)
    return estimator.predict(X)

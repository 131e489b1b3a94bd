"""Library models → pieces, one library a file; READERS is the whole table.

A reader has `scales(estimator)`: the outputs on which the estimator is a sum of its pieces, best
first, empty if it is none of its own; and `read(estimator, scale)`, which returns a list of parts
(Trees, Linear, Bumps, Net) or raises Unreadable with the reason. It may also have

- `why_not(estimator)`: why an estimator that it knows has no scale, or None;
- `margin(estimator, X)`: the answer before the link, where no method of scikit-learn's gives it,
  and `has_margin(estimator)`, if only some of its estimators have one;
- `asks_width`, True where a model does not say how many columns it takes: `read` gets that too;
- `predict(estimator, X)`, where the library's own objects want containers of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.readers import (
    catboost,
    composites,
    ebm,
    ensembles,
    hist_gradient_boosting,
    kernels,
    lightgbm,
    linear,
    mlp,
    pipelines,
    sklearn_trees,
    torch,
    xgboost,
)

READERS: tuple[Any, ...] = (
    sklearn_trees,
    hist_gradient_boosting,
    xgboost,
    lightgbm,
    catboost,
    linear,
    kernels,
    mlp,
    torch,
    ebm,
    pipelines,
    ensembles,
    composites,
)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which some reader finds pieces, best first."""
    return next((found for reader in READERS if (found := reader.scales(estimator))), ())


def read(estimator: Any, scale: str, width: int | None = None) -> list:
    """Read an estimator, of a table of some width, as parts whose sum it is."""
    for reader in READERS:
        if scale in reader.scales(estimator):
            asked = (width,) if getattr(reader, "asks_width", False) else ()
            return reader.read(estimator, scale, *asked)
    raise Unreadable(why_none(estimator, scale))


def why_none(estimator: Any, scale: str | None = None) -> str:
    """Say why no reader finds pieces, on a scale or at all."""
    name = type(estimator).__name__
    if found := scales(estimator):
        where = " or ".join(map(repr, found))
        return f"{name} is a sum of pieces on the scale {where}, not on {scale!r}"
    reasons = (reader.why_not(estimator) for reader in READERS if hasattr(reader, "why_not"))
    return next((why for why in reasons if why), f"there is no reader for {name}")


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

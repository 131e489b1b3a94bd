"""Library models → parts, one module per library; READERS is the whole table.

A reader is a module with

- `scales(estimator)`: the scales on which the estimator is a sum of parts, best first; empty if the
  reader does not know the estimator;
- `read(estimator, scale)`: a list of parts (Trees, Linear, Bumps, Net); raises Unreadable with the
  reason.

It may also have

- `why_not(estimator)`: why an estimator that it knows has no scale, or None;
- `margin(estimator, X)`: the prediction before the link, where no public method returns it, and
  `has_margin(estimator)`, if only some of its estimators have one;
- `asks_width = True`, where a model does not say how many columns it takes: `read` gets that too;
- `link(estimator, scale)`, where the output on a scale is a known link of the margins on another
  one: that scale and the Link, or None; raises Unreadable if the link is not known;
- `read_linked(estimator, scale)`, where margins and link have to be made together: the parts of the
  margins and the Link, or None;
- `n_outputs(estimator, X)`: how many numbers the estimator predicts or decides by, where that is
  known without predicting, or None; raises what predicting X raises if X is refused;
- `predict(estimator, X)`, where the library's own objects need containers of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.links import Link
from skattr.pieces.readers import (
    behind_links,
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
    behind_links,
)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which some reader finds parts, best first."""
    return next((own for reader in READERS if (own := reader.scales(estimator))), ())


def read(estimator: Any, scale: str, width: int | None = None) -> list:
    """Return the parts whose sum an estimator is; `width` is the number of columns of X."""
    for reader in READERS:
        if scale in reader.scales(estimator):
            if getattr(reader, "asks_width", False):
                return reader.read(estimator, scale, width)
            return reader.read(estimator, scale)
    raise Unreadable(why_none(estimator, scale))


def read_linked(estimator: Any, scale: str, width: int | None = None) -> tuple[list, Link | None]:
    """Return parts and the link of their sum that an estimator is; None: it is the sum itself."""
    try:
        return read(estimator, scale, width), None
    except Unreadable as reason:
        try:
            linked = _behind_link(estimator, scale, width)
        except Unreadable as other:
            # of an estimator that is a sum on another scale only, it matters why there is no link
            readable = scales(estimator)
            raise (other if readable and scale not in readable else reason) from None
        if linked is None:
            raise
        return linked


def _behind_link(estimator: Any, scale: str, width: int | None) -> tuple[list, Link | None] | None:
    """Return parts and the link that an estimator is, or None."""
    for reader in READERS:
        if hasattr(reader, "read_linked"):
            more = (width,) if getattr(reader, "asks_width", False) else ()
            both = reader.read_linked(estimator, scale, *more)
            if both is not None:
                return both
    pair = link(estimator, scale)
    return None if pair is None else (read(estimator, pair[0], width), pair[1])


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the scale of the margins and the link that leads from there to a scale, if any."""
    links = (reader.link(estimator, scale) for reader in READERS if hasattr(reader, "link"))
    return next((pair for pair in links if pair is not None), None)


def why_none(estimator: Any, scale: str | None = None) -> str:
    """Return why no reader finds parts, on a scale or at all."""
    name = type(estimator).__name__
    if readable := scales(estimator):
        known = " or ".join(map(repr, readable))
        return f"{name} is a sum of pieces on the scale {known}, not on {scale!r}"
    reasons = (reader.why_not(estimator) for reader in READERS if hasattr(reader, "why_not"))
    return next((why for why in reasons if why), f"there is no reader for {name}")


def has_margin(estimator: Any) -> bool:
    """Tell whether a reader computes the estimator's prediction before its link."""
    return _margin_reader(estimator) is not None


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the estimator's prediction before its link."""
    return _margin_reader(estimator).margin(estimator, X)


def _margin_reader(estimator: Any) -> Any:
    for reader in READERS:
        if hasattr(reader, "margin") and getattr(reader, "has_margin", reader.scales)(estimator):
            return reader
    return None


def n_outputs(estimator: Any, X: Any) -> int | None:
    """Return how many numbers per row an estimator returns, if a reader knows, or None."""
    counts = (reader.n_outputs(estimator, X) for reader in READERS if hasattr(reader, "n_outputs"))
    return next((k for k in counts if k is not None), None)


def predict(estimator: Any, X: Any) -> Any:
    """Return the prediction of an estimator, of scikit-learn or not."""
    for reader in READERS:
        if hasattr(reader, "predict") and reader.scales(estimator):
            return reader.predict(estimator, X)
    return estimator.predict(X)

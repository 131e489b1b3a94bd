"""scikit-learn's Pipeline: its last step, behind the other ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from skattr.pieces import readers
from skattr.pieces.base import unwrap
from skattr.pieces.links import Link


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales of the last step."""
    return readers.scales(_last(estimator)) if isinstance(estimator, Pipeline) else ()


def read(estimator: Any, scale: str) -> list:
    """Read the last step, behind the other ones."""
    return [part.behind(*_steps(estimator)) for part in readers.read(_last(estimator), scale)]


def read_linked(estimator: Any, scale: str) -> tuple[list, Link | None] | None:
    """Read the margins and the link of the last step, behind the other ones."""
    if not isinstance(estimator, Pipeline):
        return None
    parts, link = readers.read_linked(_last(estimator), scale)
    return [part.behind(*_steps(estimator)) for part in parts], link


def why_not(estimator: Any) -> str | None:
    """Return why the last step has no scale."""
    return readers.why_none(_last(estimator)) if isinstance(estimator, Pipeline) else None


def has_margin(estimator: Any) -> bool:
    """Tell whether the last step has a margin."""
    return isinstance(estimator, Pipeline) and readers.has_margin(_last(estimator))


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the margin of the last step."""
    for step in _steps(estimator):
        X = step.transform(X)
    return readers.margin(_last(estimator), X)


def _last(pipeline: Pipeline) -> Any:
    return unwrap(pipeline.steps[-1][1])


def _steps(pipeline: Pipeline) -> list:
    return [step for _, step in pipeline.steps[:-1] if hasattr(step, "transform")]

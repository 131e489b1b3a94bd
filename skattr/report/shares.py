"""Rows that add up: Shapley values of the rows shown, where those of the measure do not add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.explanation import Explanation
from skattr.pieces import Additive, Boxes, Products
from skattr.report.rows import ExplainedRows

MOST = 20_000_000  # rows shown times background rows up to which they are cheap


def shapley_rows(explainer: Any, explained: ExplainedRows, rows: np.ndarray) -> Explanation | None:
    """Return the Shapley values of some rows, of the background of the explainer.

    They are for rows whose values do not add up, and where Shapley values are exact and cheap: the
    model was read as boxes, a sum or products, and the explainer keeps its background. Else None.
    """
    explanation = explained.explanation
    read = isinstance(explainer.pieces_, Boxes | Additive | Products)
    if explanation.predictions is None or not (read and explainer.keeps_background_):
        return None
    if explanation.remainder_name == "not explained by these columns" or explanation.adds_up():
        return None
    if len(rows) * explainer.n_background_ > MOST:
        return None
    try:
        shapley = explainer.with_measure("shapley", engine="exact")
        values = shapley.explain(frames.take_rows(explanation.data, rows)).centered()
    except ValueError:  # no exact engine, or one that would cost too much
        return None
    return values if values.feature_names == explanation.feature_names else None

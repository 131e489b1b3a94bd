"""The notes of a report: warnings and checks, and the advice that both give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skattr.explanation import Explanation

NAMED = 8  # the most columns, levels or outputs that are named

SHARED = "Shapley values share it out so that rows add up: MeasureExplainer(model, 'shapley')"
AS_ONE = "explain them as one: MeasureExplainer(model, groups={'name': ['a', 'b']})"
ADVICE = {  # what the remainder is -> why, and what to do
    "interactions": f"It is the joint effect of several columns. {SHARED}. If you know which "
    f"columns act together, {AS_ONE}.",
    "not explained by single columns": f"It is the joint effect of several columns, and what "
    f"correlated columns explain together. {SHARED}. Where columns are correlated, {AS_ONE}.",
    "not explained by these columns": "Some columns were left out; explain all of them to see "
    "what remains then.",
}


@dataclass(frozen=True)
class Note:
    """A warning or a check: its title, its result, and "ok", "look" or "info"."""

    title: str
    text: str
    verdict: str = "look"
    large: bool = False  # whether it is in large print


def as_large(what: str, share: str, which: str = "") -> str:
    """Return how large a remainder is, relative to the spread of the predictions.

    Its size is a root mean square around 0, not around its mean, so that it is not a part of the
    spread.

    Examples
    --------
    >>> as_large("interactions", "21 %")
    'interactions are as large as 21 % of the spread of the predictions'
    >>> as_large("not explained by these columns", "5 %")
    'what is not explained by these columns is as large as 5 % of the spread of the predictions'
    """
    subject = f"{what} are" if what == "interactions" else f"what is {what} is"
    return f"{subject} as large as {share} of the spread of the predictions{which}"


def remainder(one: Explanation) -> tuple[np.ndarray, float, float]:
    """Return what the values of one output leave of each prediction, its size, and the spread."""
    assert one.predictions is not None
    left = one.remainder().to_numpy()
    return left, float(np.sqrt(np.mean(left**2))), float(np.std(one.predictions))

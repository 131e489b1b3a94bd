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


def is_left_to(what: str) -> str:
    """Return a predicate for the part of the spread that a remainder has.

    Examples
    --------
    >>> is_left_to("interactions"), is_left_to("not explained by these columns")
    ('is due to interactions', 'is not explained by these columns')
    """
    return f"is due to {what}" if what == "interactions" else f"is {what}"


def remainder(one: Explanation) -> tuple[np.ndarray, float, float]:
    """Return what the values of one output leave of each prediction, its size, and the spread."""
    assert one.predictions is not None
    left = one.remainder().to_numpy()
    return left, float(np.sqrt(np.mean(left**2))), float(np.std(one.predictions))

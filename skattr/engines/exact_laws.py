"""Whether the laws of a product can be integrated exactly behind the fitted steps of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skattr.measures.base import Measure
from skattr.measures.laws import Inexact


def why_inexact(term: Measure, integrate: Callable[[Any, int], Any]) -> str | None:
    """Return why `integrate(law, k)` fails for a uniform law of a term, or None.

    A term that depends on the attribution alone has its laws in its members. One that was prepared
    has forgotten the background: it was asked before.
    """
    if not term.flat or term.background_ is None:
        return None
    if term.depends == "attribution":
        (term,) = term.members((tuple(range(len(term.background_.names))),))
    try:
        for _, laws in term.factors()[0]:
            for k, law in enumerate(laws):
                integrate(law, k)
    except Inexact as reason:
        return str(reason)
    return None

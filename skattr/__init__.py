"""skattr: feature attributions as integrals of the model against a measure of your choice."""

import importlib

from skattr._version import __version__
from skattr.curves import Curve
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.report import write_report

__all__ = [
    "Curve", "Explanation", "MeasureExplainer", "__version__", "axioms", "metrics", "optimize",
    "plot", "write_report",
]  # fmt: skip


_LAZY = ("axioms", "metrics", "optimize", "plot")  # modules imported when they are first asked for
_LATER = ("distributed",)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return importlib.import_module(f"skattr.{name}")
    if name in _LATER:  # an ImportError, because `from … import` would swallow another one's words
        raise ImportError(f"skattr.{name} is not built yet")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

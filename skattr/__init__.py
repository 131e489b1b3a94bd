"""skattr: feature attributions as integrals of the model against a measure of your choice.

Names are imported when they are first used (PEP 562), so that `import skattr` and
`skattr --help` do not wait for numba, pandas and scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from skattr._version import __version__

if TYPE_CHECKING:
    from skattr import (
        axioms,
        compat,
        datasets,
        distributed,
        engines,
        measures,
        metrics,
        optimize,
        plot,
    )
    from skattr.counterfactuals import counterfactual
    from skattr.curves import Curve, Curves, Surface
    from skattr.decomposition import Decomposition, decompose
    from skattr.explainer import MeasureExplainer
    from skattr.explanation import Explanation
    from skattr.report import write_report

__all__ = [
    "Curve", "Curves", "Decomposition", "Explanation", "MeasureExplainer", "Surface", "__version__",
    "axioms", "compat", "counterfactual", "datasets", "decompose", "distributed", "engines",
    "measures", "metrics", "optimize", "plot", "write_report",
]  # fmt: skip

_HOME = {
    "Curve": "skattr.curves",
    "Curves": "skattr.curves",
    "Surface": "skattr.curves",
    "Decomposition": "skattr.decomposition",
    "decompose": "skattr.decomposition",
    "Explanation": "skattr.explanation",
    "MeasureExplainer": "skattr.explainer",
    "counterfactual": "skattr.counterfactuals",
    "write_report": "skattr.report",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value  # found at once from now on
        return value
    if name in __all__:
        return import_module(f"skattr.{name}")  # the import system keeps modules itself
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)

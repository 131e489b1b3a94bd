"""Measures: families μ_{j,x}, learned from a background, closed under +, - and scalar *."""

from collections.abc import Callable
from typing import Any

from skattr._utils.messages import brief
from skattr.measures.ale import ALE
from skattr.measures.atoms import Atoms, Sampler
from skattr.measures.base import LinearCombination, Measure
from skattr.measures.coalitions import Banzhaf, Shapley
from skattr.measures.coefficients import Coefficient, ScaledCoefficient
from skattr.measures.conditional import Conditional
from skattr.measures.density import Density
from skattr.measures.empirical import Baseline, Dirac, Expectation, PartialDependence
from skattr.measures.marginal_effect import MarginalEffect
from skattr.measures.product import ProductMarginal, Uniform
from skattr.measures.removal import Removal
from skattr.measures.stieltjes import Stieltjes

__all__ = [
    "ALE", "Atoms", "Banzhaf", "Baseline", "Coefficient", "Conditional", "Density", "Dirac",
    "Expectation", "LinearCombination", "MarginalEffect", "Measure", "PartialDependence",
    "ProductMarginal", "Removal", "Sampler", "ScaledCoefficient", "Shapley", "Stieltjes", "Uniform",
]  # fmt: skip


def _main_effect() -> Measure:
    return PartialDependence() - Expectation()


def _conditional_effect() -> Measure:
    return Conditional() - Expectation()


BY_NAME: dict[str, Callable[[], Measure]] = {
    "main_effect": _main_effect,
    "conditional_effect": _conditional_effect,
    "partial_dependence": PartialDependence,
    "product_marginal": ProductMarginal,
    "conditional": Conditional,
    "uniform": Uniform,
    "expectation": Expectation,
    "shapley": Shapley,
    "banzhaf": Banzhaf,
}


def as_measure(measure: Any) -> Measure:
    """Return a measure from itself or its name."""
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, type) and issubclass(measure, Measure):
        name = measure.__name__
        raise TypeError(f"measure must be an object, got the class {name}: write {name}()")
    if len(getattr(measure, "shape", ())) == 2 or hasattr(type(measure), "columns"):
        raise TypeError(
            f"measure must be a Measure or its name, got {brief(measure)}; the background goes to "
            "fit: MeasureExplainer(model).fit(X)"
        )
    if not isinstance(measure, str) or measure not in BY_NAME:
        raise ValueError(
            f"measure must be a Measure or one of {sorted(BY_NAME)}, got {brief(measure)}"
        )
    return BY_NAME[measure]()


def __dir__() -> list[str]:
    return [*__all__]

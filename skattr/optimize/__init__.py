"""Choosing a measure: optimal centres of mass, searches over measures, and descent."""

from skattr.optimize.centers import OptimalCenter, optimal_center
from skattr.optimize.frank_wolfe import FrankWolfeMeasure
from skattr.optimize.losses import SquaredLoss, ThresholdLoss
from skattr.optimize.search import MeasureSearchCV, mixture, scorer

__all__ = [
    "FrankWolfeMeasure", "MeasureSearchCV", "OptimalCenter", "SquaredLoss", "ThresholdLoss",
    "mixture", "optimal_center", "scorer",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]

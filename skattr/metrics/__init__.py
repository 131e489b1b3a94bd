"""Metrics of explanations, on the user's model and data, and of measures."""

from skattr.metrics.agreement import Agreement, agreement
from skattr.metrics.bands import Band
from skattr.metrics.centers import center_of_mass, first_moments
from skattr.metrics.faithfulness import Faithfulness, faithfulness
from skattr.metrics.linear import f1, precision, recall
from skattr.metrics.perturbation import Perturbation, deletion, insertion
from skattr.metrics.refits import refit
from skattr.metrics.relu import RegionScore, relu_precision, relu_recall
from skattr.metrics.slices import by_slice
from skattr.metrics.solution_sets import SolutionSet, solution_set
from skattr.metrics.stability import Stability, stability

__all__ = [
    "Agreement", "Band", "Faithfulness", "Perturbation", "RegionScore", "SolutionSet", "Stability",
    "agreement", "by_slice", "center_of_mass", "deletion", "f1", "faithfulness", "first_moments",
    "insertion", "precision", "recall", "refit", "relu_precision", "relu_recall", "solution_set",
    "stability",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__]

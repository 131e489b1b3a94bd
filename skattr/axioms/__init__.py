"""Axioms: the guarantees of an attribution, decided on its measure."""

from skattr.axioms.bounds import Bound, bound
from skattr.axioms.check import check
from skattr.axioms.functions import Cell, Coordinate, Symmetrised
from skattr.axioms.table import AxiomTable, Witness

__all__ = ["AxiomTable", "Bound", "Cell", "Coordinate", "Symmetrised", "Witness", "bound", "check"]


def __dir__() -> list[str]:
    return [*__all__]

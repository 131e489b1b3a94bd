"""∫: one algorithm a file, each for one kind of pieces and one view of a measure."""

from skattr.engines.base import Approximation, Engine, Jobs, TooCostly, is_asked_for
from skattr.engines.quasi_monte_carlo import QuasiMonteCarlo
from skattr.engines.riemann import Riemann
from skattr.engines.table import ENGINES, choose

__all__ = [
    "ENGINES",
    "Approximation",
    "Engine",
    "Jobs",
    "QuasiMonteCarlo",
    "Riemann",
    "TooCostly",
    "choose",
    "is_asked_for",
]


def __dir__() -> list[str]:
    return [*__all__]

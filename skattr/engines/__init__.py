"""∫: one algorithm per file, each for one kind of pieces and some views of a measure."""

from skattr.engines.base import Engine, Integral, Request, Rows, RunOptions, TooCostly, is_asked_for
from skattr.engines.evaluation.quasi_monte_carlo import QuasiMonteCarlo
from skattr.engines.evaluation.riemann import Riemann
from skattr.engines.table import ENGINES, choose, engine_table

__all__ = [
    "ENGINES",
    "Engine",
    "Integral",
    "QuasiMonteCarlo",
    "Request",
    "Riemann",
    "Rows",
    "RunOptions",
    "TooCostly",
    "choose",
    "engine_table",
    "is_asked_for",
]


def __dir__() -> list[str]:
    return [*__all__]

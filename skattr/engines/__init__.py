"""∫: one algorithm a file, each for one kind of pieces and one view of a measure."""

from skattr.engines.base import Engine, Jobs
from skattr.engines.table import ENGINES, choose

__all__ = ["ENGINES", "Engine", "Jobs", "choose"]

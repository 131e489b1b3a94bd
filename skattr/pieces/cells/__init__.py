"""Cells: what a model can tell apart in each raw column, and their numbers (codes)."""

from skattr.pieces.cells.bisection import between
from skattr.pieces.cells.cells import Cells
from skattr.pieces.cells.grid import Grid
from skattr.pieces.cells.levels import MISSING, OTHER, level_frame, missing_rows

__all__ = ["MISSING", "OTHER", "Cells", "Grid", "between", "level_frame", "missing_rows"]

"""Curves: attributions as functions of the value of one column; surfaces: of two."""

from skattr.curves.curve import Curve
from skattr.curves.row_curves import Curves
from skattr.curves.surface import Surface

__all__ = ["Curve", "Curves", "Surface"]

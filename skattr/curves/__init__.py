"""Curves: attributions as functions of the value of one column."""

from skattr.curves.curve import Curve

__all__ = ["Curve"]

"""Messages: values in errors, short and on one line; warnings that point at the user's line."""

from __future__ import annotations

import reprlib
import sys
import warnings
from types import FrameType
from typing import Any

import numpy as np


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 20
        self.maxstring = self.maxother = 100

    def repr_instance(self, x: Any, level: int) -> str:
        shape = getattr(x, "shape", None)
        if isinstance(shape, tuple) and len(shape) == 1:
            return f"<{type(x).__name__} of length {shape[0]}>"
        if isinstance(shape, tuple) and shape:
            return f"<{type(x).__name__} of shape {shape}>"
        return " ".join(super().repr_instance(x, level).split())


def brief(value: Any) -> str:
    """Return a repr for an error message: tables by their shape, long values shortened.

    Examples
    --------
    >>> import numpy as np
    >>> brief({"background": np.zeros((600, 8)), "tol": 0.1})
    "{'background': <ndarray of shape (600, 8)>, 'tol': 0.1}"
    """
    return _Brief().repr(value)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the user's line, however deep in this package it arises."""
    frame: FrameType | None = sys._getframe()
    level = 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "skattr":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level + 1)


def check_flag(name: str, value: Any) -> None:
    """Raise unless a parameter is True or False: any text, "no" too, would count as True.

    Examples
    --------
    >>> check_flag("tidy", "no")
    Traceback (most recent call last):
        ...
    ValueError: tidy must be True or False, got 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {brief(value)}")

"""A model that can only be evaluated."""

from __future__ import annotations

from typing import Any

from skattr._typing import override
from skattr.pieces.base import Pieces
from skattr.pieces.outputs import Output


class BlackBox(Pieces):
    """An estimator that can only be evaluated; `reason` says why."""

    def __init__(self, output: Output, row: Any, reason: str) -> None:
        super().__init__(output, row)
        self.reason = reason

    @override
    def describe(self) -> str:
        return f"a black box, known by its predictions alone: {self.reason}"

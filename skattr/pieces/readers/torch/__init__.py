"""torch's modules: Linear, ReLU and similar layers, in any nesting that torch.fx can trace.

Every tensor on the way is an affine function of the inputs and of the units before it. A ReLU turns
its numbers into units, a clipped one into two units each, a + relu(z - a) - relu(z - b). Sums,
parts and joins of such tensors, as in residual or wide-and-deep networks, are affine too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._typing import override
from skattr.modules import as_numbers, is_module, place
from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Front, Net
from skattr.pieces.readers.torch.graph import follow
from skattr.pieces.readers.torch.rules import layer_rule
from skattr.pieces.readers.torch.units import Units

asks_width = True  # a module does not say how many columns it takes


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the one scale of a module; `read` says if it is not piecewise affine."""
    return ("predict",) if is_module(estimator) else ()


def read(estimator: Any, scale: str, width: int) -> list[Net]:
    """Trace the module, and sort its units into layers."""
    import torch

    estimator = getattr(estimator, "_orig_mod", estimator)  # of torch.compile
    module = torch.nn.Sequential(estimator) if layer_rule(estimator) else estimator
    try:
        graph = torch.fx.Tracer().trace(module)
    except Exception as error:  # whatever the module's own code raises
        raise Unreadable(f"torch.fx cannot trace {type(estimator).__name__}: {error}") from error
    rounding = max(1e-8, 100 * torch.finfo(place(estimator)[1]).eps)
    units = Units(width)
    with torch.no_grad():
        layers, weight, bias = units.layers(follow(module, graph, units))
    return [
        Net(
            front=TensorFront(width),
            layers=layers,
            coefficients=weight,
            constant=bias,
            rounding=rounding,
        )
    ]


class TensorFront(Front):
    """Numbers of any type, in float64; the module itself checks how many."""

    def __init__(self, width: int) -> None:
        self.columns = np.arange(width)

    @override
    def inputs(self, X: Any) -> np.ndarray:
        return as_numbers(X)

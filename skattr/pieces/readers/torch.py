"""torch's modules: Linear, ReLU and their kin, in any nesting that torch.fx can trace.

A tensor on the way is an affine function of the inputs and of the units before it; a ReLU makes
units of it, a clipped one two of each number, a + relu(z - a) - relu(z - b). Sums of such tensors,
as in residual networks, are affine functions too. Units that others ask for beyond the next layer
are carried there by units of slope 1.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from skattr.modules import as_numbers, is_module
from skattr.pieces.base import Unreadable
from skattr.pieces.relu import Layer, Net
from skattr.pieces.steps import Track


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the one scale of a module; `read` says why it is not piecewise affine."""
    return ("predict",) if is_module(estimator) else ()


def read(estimator: Any, scale: str) -> list[Net]:
    """Trace the module, and bring what it computes into layers."""
    import torch

    module = torch.nn.Sequential(estimator) if _layer_rule(estimator) else estimator
    try:
        graph = torch.fx.Tracer().trace(module)
    except Exception as error:  # whatever the module's own code raises
        raise Unreadable(f"torch.fx cannot trace {type(estimator).__name__}: {error}") from error
    first = next(estimator.parameters(), torch.empty(0))
    rounding = max(1e-8, 100 * torch.finfo(first.dtype).eps)
    units, output = _follow(module, graph)
    layers, weight, bias = _layered(units, output)
    return [Net(TensorFront(units.n_inputs), layers, weight, bias, rounding=rounding)]


class TensorFront:
    """The checks of a module: numbers of any kind, as many as it wants."""

    def __init__(self, width: int) -> None:
        self.columns = np.arange(width)

    def inputs(self, X: Any) -> np.ndarray:
        """Return X in float64."""
        return as_numbers(X)

    def track(self, c: int, track: Track) -> Track:
        """Return the track as it is."""
        return track


# from a graph to units --------------------------------------------------------------------------


class Affine(NamedTuple):
    """Numbers that are affine in the inputs and units that there are: weight · basis + bias."""

    weight: np.ndarray  # (q, inputs and some units)
    bias: np.ndarray  # (q,)

    def times(self, factor: Any) -> Affine:
        """Return each number times a factor."""
        factor = np.broadcast_to(factor, self.bias.shape)
        return Affine(factor[:, None] * self.weight, factor * self.bias)

    def plus(self, other: Any) -> Affine:
        """Return the sum with a constant or with other affine numbers."""
        if not isinstance(other, Affine):
            return Affine(self.weight, self.bias + np.broadcast_to(other, self.bias.shape))
        q, width = len(self.bias), max(self.weight.shape[1], other.weight.shape[1])
        weight = np.zeros((q, width))
        weight[:, : self.weight.shape[1]] += self.weight
        weight[:, : other.weight.shape[1]] += other.weight
        return Affine(weight, self.bias + other.bias)


class Units:
    """All units found so far, each affine in the inputs and in units before it."""

    def __init__(self) -> None:
        self.n_inputs = 0
        self.groups: list[tuple[Affine, np.ndarray]] = []  # numbers, slopes of the negative side

    def inputs(self, n: int) -> Affine:
        """Return n inputs."""
        self.n_inputs = n
        return Affine(np.eye(n), np.zeros(n))

    def add(self, numbers: Affine, slope: Any = 0.0) -> Affine:
        """Return what units make of numbers."""
        q = len(numbers.bias)
        before = self.n_inputs + sum(len(slopes) for _, slopes in self.groups)
        self.groups.append((numbers, np.broadcast_to(np.asarray(slope, float), q)))
        return Affine(np.eye(q, before + q, before), np.zeros(q))


def _follow(module: Any, graph: Any) -> tuple[Units, Affine]:
    """Follow the graph from its inputs to its output."""
    units = Units()
    found: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            if found:
                raise Unreadable(f"{type(module).__name__} takes more than one input")
            found[node] = units.inputs(_width(module, node))
        elif node.op == "output":
            result = _arguments(node.args[0], found)
            if not isinstance(result, Affine):
                raise Unreadable(f"{type(module).__name__} does not return one tensor")
            return units, result
        elif node.op == "get_attr":
            found[node] = _numpy(operator.attrgetter(node.target)(module))
        else:
            found[node] = _step(module, node, found, units)
    raise Unreadable(f"{type(module).__name__} returns nothing")


def _arguments(args: Any, found: dict) -> Any:
    """Return arguments with nodes replaced by what they are."""
    import torch

    return torch.fx.node.map_arg(args, lambda node: found[node])


def _step(module: Any, node: Any, found: dict, units: Units) -> Any:
    """Return what one node makes of those before it."""
    args, options = _arguments(node.args, found), _arguments(dict(node.kwargs), found)
    if node.op == "call_module":
        layer = module.get_submodule(node.target)
        name, rule = f"the layer {node.target!r} ({type(layer).__name__})", _layer_rule(layer)
        args = (layer, *args)
    else:
        name = f"the call of {getattr(node.target, '__name__', node.target)}"
        rule = CALLS.get(getattr(node.target, "__name__", node.target))
    if rule is None or not any(isinstance(a, Affine) for a in args):
        raise Unreadable(f"{name} of {type(module).__name__} is not read as piecewise affine")
    try:
        result = rule(units, *args, **options)
    except (TypeError, ValueError) as error:
        raise Unreadable(f"{name} of {type(module).__name__} is not understood: {error}") from error
    if _is_in_place(node, args, options):  # whoever else holds the tensor sees the new numbers
        changed = args[node.op == "call_module"]
        found.update({other: result for other, held in found.items() if held is changed})
    return result


def _is_in_place(node: Any, args: tuple, options: dict) -> bool:
    """Tell whether a node writes into its first tensor."""
    if node.op == "call_module":
        return bool(getattr(args[0], "inplace", False))
    name = str(getattr(node.target, "__name__", node.target))
    asked = options.get("inplace", False) or any(a is True for a in args)
    return bool(asked) or name.endswith("_") or name in ("iadd", "isub", "imul")


def _layer_rule(layer: Any) -> Any:
    """Return the rule of a layer of torch's own; what changes its forward has none."""
    import torch

    for kind, rule in LAYERS.items():
        known = getattr(torch.nn, kind)
        if isinstance(layer, known) and type(layer).forward is known.forward:
            return rule
    return None


def _width(module: Any, node: Any) -> int:
    """Return the number of inputs: what the first layer that says so wants."""
    waiting = list(node.users)
    while waiting:
        user = waiting.pop(0)
        if user.op == "call_module":
            layer = module.get_submodule(user.target)
            width = getattr(layer, "in_features", getattr(layer, "num_features", None))
            if width is not None:
                return int(width)
        waiting += list(user.users)
    raise Unreadable(f"no layer of {type(module).__name__} says how many inputs it takes")


def _numpy(tensor: Any) -> np.ndarray:
    import torch

    return tensor.detach().to("cpu", torch.float64).numpy()


def _linear(units: Units, layer: Any, x: Affine) -> Affine:
    weight = _numpy(layer.weight)
    bias = 0.0 if layer.bias is None else _numpy(layer.bias)
    return Affine(weight @ x.weight, weight @ x.bias + bias)


def _batch_norm(units: Units, layer: Any, x: Affine) -> Affine:
    if layer.running_mean is None:
        raise ValueError("it has no running statistics, so rows depend on each other")
    factor = 1 / np.sqrt(_numpy(layer.running_var) + layer.eps)
    shift = -_numpy(layer.running_mean) * factor
    if layer.affine:
        factor, shift = factor * _numpy(layer.weight), shift * _numpy(layer.weight)
        shift = shift + _numpy(layer.bias)
    return x.times(factor).plus(shift)


def _clip(
    units: Units, x: Affine, low: float = -1.0, high: float = 1.0, inplace: Any = 0
) -> Affine:
    """Return low + relu(x - low) - relu(x - high)."""
    above = units.add(x.plus(-low))
    return above.plus(units.add(x.plus(-high)).times(-1.0)).plus(low)


def _flatten(units: Units, x: Affine, start_dim: int = 0, end_dim: int = -1) -> Affine:
    if (start_dim != 1 or end_dim not in (1, -1)) and len(x.bias) > 1:
        raise ValueError(f"it flattens the dimensions {start_dim} to {end_dim}")
    return x


def _squeeze(units: Units, x: Affine, dim: int = -1) -> Affine:
    if len(x.bias) > 1 or dim not in (1, -1):
        raise ValueError("it is no column of one number a row")
    return x


def _add(units: Units, x: Any, y: Any, alpha: float = 1.0) -> Affine:
    if not isinstance(x, Affine):
        return y.times(alpha).plus(x)
    return x.plus(y.times(alpha) if isinstance(y, Affine) else alpha * np.asarray(y))


def _subtract(units: Units, x: Any, y: Any, alpha: float = 1.0) -> Affine:
    return _add(units, x, y, -alpha)


def _multiply(units: Units, x: Any, y: Any) -> Affine:
    if isinstance(x, Affine) and isinstance(y, Affine):
        raise ValueError("it multiplies numbers that both depend on the input")
    return x.times(y) if isinstance(x, Affine) else y.times(x)


def _divide(units: Units, x: Any, y: Any) -> Affine:
    if isinstance(y, Affine):
        raise ValueError("it divides by numbers that depend on the input")
    return x.times(1 / np.asarray(y, float))


def _dropout(
    units: Units, x: Affine, p: float = 0.5, training: bool = True, inplace: Any = 0
) -> Any:
    if training:
        raise ValueError("it is random even in eval mode: pass training=self.training")
    return x


def _leaky(units: Units, x: Affine, negative_slope: float = 0.01, inplace: Any = False) -> Affine:
    return units.add(x, negative_slope)


LAYERS: dict[str, Any] = {
    "Linear": _linear,
    "BatchNorm1d": _batch_norm,
    "ReLU": lambda units, layer, x: units.add(x),
    "LeakyReLU": lambda units, layer, x: units.add(x, layer.negative_slope),
    "PReLU": lambda units, layer, x: units.add(x, _numpy(layer.weight)),
    "ReLU6": lambda units, layer, x: _clip(units, x, 0.0, 6.0),
    "Hardtanh": lambda units, layer, x: _clip(units, x, layer.min_val, layer.max_val),
    "Flatten": lambda units, layer, x: _flatten(units, x, layer.start_dim, layer.end_dim),
    "Identity": lambda units, layer, x: x,
    "Dropout": lambda units, layer, x: x,
}
CALLS: dict[Any, Any] = {  # functions and methods of tensors, by name
    "relu": lambda units, x, inplace=False: units.add(x),
    "relu_": lambda units, x: units.add(x),
    "leaky_relu": _leaky,
    "hardtanh": lambda units, x, min_val=-1.0, max_val=1.0, inplace=False: _clip(
        units, x, min_val, max_val
    ),
    "relu6": lambda units, x, inplace=False: _clip(units, x, 0.0, 6.0),
    "dropout": _dropout,
    "flatten": _flatten,
    "squeeze": _squeeze,
    "add": _add,
    "add_": _add,
    "iadd": _add,
    "sub": _subtract,
    "isub": _subtract,
    "mul": _multiply,
    "imul": _multiply,
    "truediv": _divide,
    "div": _divide,
    "neg": lambda units, x: x.times(-1.0),
}


# from units to layers ---------------------------------------------------------------------------


def _layered(units: Units, output: Affine) -> tuple[list[Layer], np.ndarray, np.ndarray]:
    """Put units into layers, and carry what is asked for later through those in between."""
    basis = units.n_inputs + sum(len(slopes) for _, slopes in units.groups)
    weight, bias, slope = np.zeros((basis, basis)), np.zeros(basis), np.ones(basis)
    level, end = np.zeros(basis, int), units.n_inputs
    for numbers, slopes in units.groups:
        own = slice(end, end + len(slopes))
        weight[own, : numbers.weight.shape[1]], bias[own], slope[own] = *numbers, slopes
        # the units of one group stand in one layer
        asked = np.flatnonzero(numbers.weight.any(axis=0))
        level[own] = 1 + level[asked].max(initial=0)
        end = own.stop
    last = np.zeros((len(output.bias), basis))
    last[:, : output.weight.shape[1]] = output.weight
    depth = int(level.max(initial=0))
    there = np.arange(units.n_inputs)  # what the layer before returns
    layers = []
    for number in range(1, depth + 1):
        new = np.flatnonzero(level == number)
        later = np.concatenate([weight[level > number], last])
        carried = [i for i in there if later[:, i].any()]
        here = np.concatenate([new, np.array(carried, int)])
        fresh = np.isin(here, new)
        own = np.where(fresh[:, None], weight[here], np.eye(basis)[here])
        layers.append(
            Layer(
                np.ascontiguousarray(own[:, there]),
                np.where(fresh, bias[here], 0.0),
                np.where(fresh, slope[here], 1.0),
            )
        )
        there = here
    return layers, np.ascontiguousarray(last[:, there]), output.bias

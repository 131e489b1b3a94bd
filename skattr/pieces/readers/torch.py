"""torch's modules: Linear, ReLU and their kin, in any nesting that torch.fx can trace.

A tensor on the way is an affine function of the inputs and of the units before it; a ReLU makes
units of it, a clipped one two of each number, a + relu(z - a) - relu(z - b). Sums, parts and joins
of such tensors, as in residual or wide-and-deep networks, are affine functions too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from skattr.modules import as_numbers, is_module, place
from skattr.pieces.base import Unreadable
from skattr.pieces.readers.units import Affine, Units
from skattr.pieces.relu import Net
from skattr.pieces.steps import Track

asks_width = True  # a module does not say how many columns it takes


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the one scale of a module; `read` says why it is not piecewise affine."""
    return ("predict",) if is_module(estimator) else ()


def read(estimator: Any, scale: str, width: int) -> list[Net]:
    """Trace the module, and bring what it computes into layers."""
    import torch

    estimator = getattr(estimator, "_orig_mod", estimator)  # what torch.compile was given
    module = torch.nn.Sequential(estimator) if _layer_rule(estimator) else estimator
    try:
        graph = torch.fx.Tracer().trace(module)
    except Exception as error:  # whatever the module's own code raises
        raise Unreadable(f"torch.fx cannot trace {type(estimator).__name__}: {error}") from error
    rounding = max(1e-8, 100 * torch.finfo(place(estimator)[1]).eps)
    units = Units(width)
    with torch.no_grad():
        layers, weight, bias = units.layers(_follow(module, graph, units))
    return [Net(TensorFront(width), layers, weight, bias, rounding=rounding)]


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


# along the graph --------------------------------------------------------------------------------


class Rows:
    """The number of rows, which a module may ask for but not compute with."""


def _follow(module: Any, graph: Any, units: Units) -> Affine:
    """Follow the graph from its inputs to its output."""
    found: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            if found and not node.args:  # no default
                raise Unreadable(f"{type(module).__name__} takes more than one input")
            found[node] = node.args[0] if found else units.inputs()
        elif node.op == "output":
            result = _arguments(node.args[0], found)
            if not isinstance(result, Affine):
                raise Unreadable(f"{type(module).__name__} does not return one tensor")
            return result
        elif node.op == "get_attr":
            found[node] = _constant(operator.attrgetter(node.target)(module))
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
        name, rule = f"the call of {_name(node)}", _call_rule(node, args, options)
    if rule is None:
        raise Unreadable(f"{name} of {type(module).__name__} is not read as piecewise affine")
    try:
        result = rule(units, *args, **options)
        if _is_in_place(node, args, options):
            _write(node, args[node.op == "call_module"], result, found)
    except Exception as error:  # whatever torch raises on what stands for a tensor
        raise Unreadable(f"{name} of {type(module).__name__} is not understood: {error}") from error
    return result


def _name(node: Any) -> str:
    """Return the name of a function or of a method of tensors."""
    return str(getattr(node.target, "__name__", node.target))


def _layer_rule(layer: Any) -> Any:
    """Return the rule of a layer of torch's own; what changes its forward has none."""
    import torch

    for kind, rule in LAYERS.items():
        known = getattr(torch.nn, kind)
        if isinstance(layer, known) and type(layer).forward is known.forward:
            return rule
    return None


def _call_rule(node: Any, args: tuple, options: dict) -> Any:
    """Return the rule of a function or method."""
    function = node.target
    if node.op == "call_method":
        function = partial(_method, node.target)
    everything = _leaves([args, options])
    tensors = [x for x in everything if isinstance(x, Affine)]
    first = args[0] if args else options.get("tensors")
    is_part = isinstance(first, tuple) and _name(node) == "getitem"
    counts = any(isinstance(x, Rows) for x in everything) and not is_part
    if is_part or not (tensors or counts):  # or a constant
        return lambda units, *args, **options: function(*args, **options)
    if _name(node) in CALLS and not counts:
        return CALLS[_name(node)]
    views = _name(node) in VIEWS
    alone = (views or _name(node) in COPIES) and len(tensors) == 1 and first is tensors[0]
    joins = _name(node) in JOINS and all(isinstance(x, Affine) for x in _leaves(first))
    if alone or joins:
        return lambda units, *args, **options: _by_row(function, args, options, views)
    return None


def _method(name: str, x: Any, *args: Any, **options: Any) -> Any:
    return getattr(x, name)(*args, **options)


def _leaves(tree: Any) -> list:
    """Return what lists, tuples and dicts hold."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [leaf for branch in tree for leaf in _leaves(branch)]
    return [tree]


def _mapped(tree: Any, change: Callable) -> Any:
    """Return lists, tuples and dicts with what they hold changed."""
    if isinstance(tree, dict):
        return {key: _mapped(branch, change) for key, branch in tree.items()}
    if isinstance(tree, list | tuple):
        found = [_mapped(branch, change) for branch in tree]
        return found if isinstance(tree, list) else tuple(found)
    return change(tree)


def _by_row(function: Callable, args: tuple, options: dict, views: bool = True) -> Any:
    """Return what a linear function makes of each row, if it looks at one at a time.

    Then a row of zeros behind the others stays one, and changes none of them.
    """
    tensors = [x for x in _leaves([args, options]) if isinstance(x, Affine)]
    rows = max(len(x.table) for x in tensors)
    memory = tensors[0].memory if views else object()

    def padded_to(n: int) -> Any:
        def given(x: Any) -> Any:
            if isinstance(x, Affine):
                return x.padded(n)
            return n if isinstance(x, Rows) else x

        return function(*_mapped(args, given), **_mapped(options, given))

    def tensor(result: Any, longer: Any) -> Affine:
        same = len(result) == rows and len(longer) == rows + 1 and not longer[rows].any()
        size = float(result.abs().max()) if same and result.numel() else 0.0
        if not same or not result.allclose(longer[:rows], rtol=0.0, atol=1e-12 * size):
            raise ValueError("it looks at several rows at a time")
        return Affine(result.contiguous(), memory)

    result, longer = padded_to(rows), padded_to(rows + 1)
    if isinstance(result, list | tuple):
        return tuple(tensor(*both) for both in zip(result, longer, strict=True))
    return tensor(result, longer)


def _is_in_place(node: Any, args: tuple, options: dict) -> bool:
    """Tell whether a node writes into its first tensor."""
    if node.op == "call_module":
        return bool(getattr(args[0], "inplace", False))
    name = _name(node)
    asked = options.get("inplace", False) or (name in KINKS and any(a is True for a in args))
    return bool(asked) or name.endswith("_")


def _write(node: Any, changed: Any, result: Any, found: dict) -> None:
    """Let whoever else holds a tensor see its new numbers."""
    order = {other: i for i, other in enumerate(node.graph.nodes)}
    for other, held in found.items():
        if held is changed:
            found[other] = result
        elif any(isinstance(x, Affine) and x.memory is changed.memory for x in _leaves(held)):
            if any(order[user] > order[node] for user in other.users):
                raise ValueError("it writes into a part of a tensor that is used later")


# rules ------------------------------------------------------------------------------------------


def _constant(tensor: Any) -> Any:
    """Return a tensor of the module's, in float64 if it holds no whole numbers."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return tensor
    copy = tensor.detach().cpu().clone()
    return copy.to(torch.float64) if copy.is_floating_point() else copy


def _linear(units: Units, x: Affine, weight: Any, bias: Any = None) -> Affine:
    if not x.shape:
        raise ValueError("it takes the rows for columns")
    found = Affine(x.table @ _constant(weight).T)
    return found if bias is None else found.plus(_constant(bias))


def _channels(x: Affine, numbers: Any) -> Any:
    """Return one number a channel, the first axis behind the rows, as each row meets them."""
    return _constant(numbers).reshape(-1, *(1 for _ in x.shape[1:]))


def _batch_norm(units: Units, layer: Any, x: Affine) -> Affine:
    if layer.running_mean is None:
        raise ValueError("it has no running statistics, so rows depend on each other")
    factor = 1 / (_constant(layer.running_var) + layer.eps).sqrt()
    shift = -_constant(layer.running_mean) * factor
    if layer.affine:
        factor, shift = factor * _constant(layer.weight), shift * _constant(layer.weight)
        shift = shift + _constant(layer.bias)
    return x.times(_channels(x, factor)).plus(_channels(x, shift))


def _prelu(units: Units, x: Affine, weight: Any) -> Affine:
    return units.add(x, _channels(x, weight) if len(x.shape) else float(weight))


def _clip(units: Units, x: Affine, low: Any = None, high: Any = None) -> Affine:
    """Return low + relu(x - low) - relu(x - high), where low <= high."""
    import torch

    if low is None or (isinstance(low, float) and low == -np.inf):
        return x if high is None else _least(units, x, high)
    if high is None or (isinstance(high, float) and high == np.inf):
        return units.add(x.plus(-low)).plus(low)
    low, high = (torch.as_tensor(bound, dtype=torch.float64) for bound in (low, high))
    low = torch.minimum(low, high)  # so does torch if they are the wrong way round
    return units.add(x.plus(-low)).plus(low).plus(units.add(x.plus(-high)).times(-1.0))


def _largest(units: Units, x: Any, y: Any) -> Affine:
    """Return y + relu(x - y)."""
    return _add(units, units.add(_add(units, x, y, -1.0)), y)


def _least(units: Units, x: Any, y: Any) -> Affine:
    """Return x - relu(x - y)."""
    return _add(units, x, units.add(_add(units, x, y, -1.0)), -1.0)


def _add(units: Units, x: Any, y: Any, alpha: float = 1.0) -> Affine:
    if not isinstance(x, Affine):
        return y.times(alpha).plus(x)
    return x.plus(y.times(alpha) if isinstance(y, Affine) else y * alpha)


def _subtract(units: Units, x: Any, y: Any, alpha: float = 1.0) -> Affine:
    return _add(units, x, y, -alpha)


def _multiply(units: Units, x: Any, y: Any) -> Affine:
    if isinstance(x, Affine) and isinstance(y, Affine):
        raise ValueError("it multiplies numbers that both depend on the input")
    return x.times(y) if isinstance(x, Affine) else y.times(x)


def _divide(units: Units, x: Any, y: Any) -> Affine:
    if isinstance(y, Affine):
        raise ValueError("it divides by numbers that depend on the input")
    return x.times(1.0 / y)


def _dropout(
    units: Units, x: Affine, p: float = 0.5, training: bool = True, inplace: Any = 0
) -> Any:
    if training:
        raise ValueError("it is random even in eval mode: pass training=self.training")
    return x


def _size(units: Units, x: Affine, dim: int | None = None) -> Any:
    whole = (Rows(), *x.shape)
    return whole if dim is None else whole[dim]


def _attribute(units: Units, x: Affine, name: str) -> Any:
    if name not in ("shape", "ndim", "dtype", "device"):
        raise ValueError(f"it asks for {name!r}")
    return _size(units, x) if name == "shape" else getattr(x.table, name)


def _same(units: Units, x: Affine, *args: Any, **options: Any) -> Affine:
    import torch

    for asked in _leaves([args, options]):
        kind = getattr(asked, "dtype", asked)
        if isinstance(kind, torch.dtype) and not kind.is_floating_point:
            raise ValueError(f"it makes numbers of the type {kind}")
    return x


LAYERS: dict[str, Any] = {
    "Linear": lambda units, layer, x: _linear(units, x, layer.weight, layer.bias),
    "BatchNorm1d": _batch_norm,
    "ReLU": lambda units, layer, x: units.add(x),
    "LeakyReLU": lambda units, layer, x: units.add(x, layer.negative_slope),
    "PReLU": lambda units, layer, x: _prelu(units, x, layer.weight),
    "RReLU": lambda units, layer, x: units.add(x, (layer.lower + layer.upper) / 2),
    "ReLU6": lambda units, layer, x: _clip(units, x, 0.0, 6.0),
    "Hardtanh": lambda units, layer, x: _clip(units, x, layer.min_val, layer.max_val),
    "Flatten": lambda units, layer, x: _by_row(layer, (x,), {}),
    "Unflatten": lambda units, layer, x: _by_row(layer, (x,), {}),
    "Identity": lambda units, layer, x: x,
    "Dropout": lambda units, layer, x: x,
    "AlphaDropout": lambda units, layer, x: x,
}
# functions and methods of tensors, by name: with kinks
KINKS: dict[str, Any] = {
    "relu": lambda units, x, inplace=False: units.add(x),
    "leaky_relu": lambda units, x, negative_slope=0.01, inplace=False: units.add(x, negative_slope),
    "prelu": _prelu,
    "hardtanh": lambda units, x, min_val=-1.0, max_val=1.0, inplace=False: _clip(
        units, x, min_val, max_val
    ),
    "relu6": lambda units, x, inplace=False: _clip(units, x, 0.0, 6.0),
    "clamp": lambda units, x, min=None, max=None: _clip(units, x, min, max),
    "clip": lambda units, x, min=None, max=None: _clip(units, x, min, max),
    "clamp_min": lambda units, x, min: _clip(units, x, min),
    "clamp_max": lambda units, x, max: _clip(units, x, None, max),
    "abs": lambda units, x: units.add(x, -1.0),
    "maximum": _largest,
    "minimum": _least,
}
# affine ones with rules of their own
CALLS: dict[str, Any] = {
    **KINKS,
    **{f"{name}_": rule for name, rule in KINKS.items()},
    "linear": _linear,
    "dropout": _dropout,
    "add": _add,
    "add_": _add,
    "sub": _subtract,
    "sub_": _subtract,
    "mul": _multiply,
    "mul_": _multiply,
    "truediv": _divide,
    "div": _divide,
    "div_": _divide,
    "neg": lambda units, x: x.times(-1.0),
    "size": _size,
    "dim": lambda units, x: x.table.ndim,
    "getattr": _attribute,
    "clone": lambda units, x: Affine(x.table),
    **dict.fromkeys(["contiguous", "detach", "double", "float", "to", "type_as"], _same),
}
# and those that torch can do to the table as to any tensor: of one tensor, whose numbers the result
# may share or does not, or of several
VIEWS = {
    "chunk", "expand", "flatten", "getitem", "movedim", "narrow", "permute", "reshape", "select",
    "split", "squeeze", "swapaxes", "tensor_split", "transpose", "unbind", "unflatten",
    "unsqueeze", "view",
}  # fmt: skip
COPIES = {"cumsum", "flip", "index_select", "matmul", "mean", "mm", "repeat", "roll", "sum"}
JOINS = {"cat", "concat", "concatenate", "hstack", "column_stack", "stack"}

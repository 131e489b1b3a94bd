"""torch's modules: Linear, ReLU and similar layers, in any nesting that torch.fx can trace.

Every tensor on the way is an affine function of the inputs and of the units before it. A ReLU turns
its numbers into units, a clipped one into two units each, a + relu(z - a) - relu(z - b). Sums,
parts and joins of such tensors, as in residual or wide-and-deep networks, are affine too.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import numpy as np

from skattr._inputs.modules import as_numbers, is_module, place
from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.links import Link
from skattr.pieces.parts import Front, Net
from skattr.pieces.readers.torch import rules
from skattr.pieces.readers.torch.final_links import final_link
from skattr.pieces.readers.torch.rules import Rows, leaves
from skattr.pieces.readers.torch.units import Affine, Units

asks_width = True  # a module does not say how many columns it takes


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the one scale of a module; `read` says if it is not piecewise affine."""
    return ("predict",) if is_module(estimator) else ()


def read(estimator: Any, scale: str, width: int) -> list[Net]:
    """Trace the module, and sort its units into layers."""
    return _read(*_traced(estimator), width)


def read_linked(estimator: Any, scale: str, width: int) -> tuple[list[Net], Link] | None:
    """Read the module before its last function, if that is a known link."""
    if not is_module(estimator) or scale != "predict":
        return None
    module, graph = _traced(estimator)
    last = final_link(module, graph)
    return None if last is None else (_read(module, graph, width, last[0]), last[1])


def _traced(estimator: Any) -> tuple[Any, Any]:
    """Return a module that torch.fx can trace, and its graph."""
    import torch

    estimator = getattr(estimator, "_orig_mod", estimator)  # of torch.compile
    module = torch.nn.Sequential(estimator) if rules.layer_rule(estimator) else estimator
    try:
        return module, torch.fx.Tracer().trace(module)
    except Exception as error:  # whatever the module's own code raises
        raise Unreadable(f"torch.fx cannot trace {type(estimator).__name__}: {error}") from error


def _read(module: Any, graph: Any, width: int, left_out: Any = None) -> list[Net]:
    """Read a traced module; the node `left_out` passes its numbers on."""
    import torch

    rounding = max(1e-8, 100 * torch.finfo(place(module)[1]).eps)
    units = Units(width)
    with torch.no_grad():
        layers, weight, bias = units.layers(_follow(module, graph, units, left_out))
    return [Net(TensorFront(width), bias, weight, layers, rounding=rounding)]


class TensorFront(Front):
    """Numbers of any type, in float64; the module itself checks how many."""

    def __init__(self, width: int) -> None:
        self.columns = np.arange(width)

    @override
    def inputs(self, X: Any) -> np.ndarray:
        return as_numbers(X)


def _follow(module: Any, graph: Any, units: Units, left_out: Any) -> Affine:
    """Follow the graph of a module from its inputs to its output."""
    values: dict[Any, Any] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            if values and not node.args:  # no default
                raise Unreadable(f"{type(module).__name__} takes more than one input")
            values[node] = node.args[0] if values else units.inputs()
        elif node.op == "output":
            result = _arguments(node.args[0], values)
            if not isinstance(result, Affine):
                raise Unreadable(f"{type(module).__name__} does not return one tensor")
            return result
        elif node.op == "get_attr":
            values[node] = rules.constant(operator.attrgetter(node.target)(module))
        elif node is left_out:
            values[node] = values[node.args[0]]
        else:
            values[node] = _step(module, node, values, units)
    raise Unreadable(f"{type(module).__name__} returns nothing")


def _arguments(args: Any, values: dict) -> Any:
    """Return arguments with nodes replaced by their values."""
    import torch

    return torch.fx.node.map_arg(args, lambda node: values[node])


def _step(module: Any, node: Any, values: dict, units: Units) -> Any:
    """Return the value of a node, given those of the nodes before it."""
    args, options = _arguments(node.args, values), _arguments(dict(node.kwargs), values)
    if node.op == "call_module":
        layer = module.get_submodule(node.target)
        name, rule = f"the layer {node.target!r} ({type(layer).__name__})", rules.layer_rule(layer)
        args = (layer, *args)
    else:
        name, rule = f"the call of {_name(node)}", _call_rule(node, args, options)
    if rule is None:
        raise Unreadable(f"{name} of {type(module).__name__} is not read as piecewise affine")
    try:
        result = rule(units, *args, **options)
        if _is_in_place(node, args, options):
            _write(node, args[node.op == "call_module"], result, values)
    except Exception as error:  # torch raises many kinds
        raise Unreadable(f"{name} of {type(module).__name__} is not understood: {error}") from error
    return result


def _name(node: Any) -> str:
    """Return the name of a function or of a method of tensors."""
    return str(getattr(node.target, "__name__", node.target))


def _call_rule(node: Any, args: tuple, options: dict) -> Any:
    """Return the rule of a function or method, or None."""
    function = node.target
    if node.op == "call_method":
        function = partial(_method, node.target)
    contents = leaves([args, options])
    tensors = [x for x in contents if isinstance(x, Affine)]
    first = args[0] if args else options.get("tensors")
    is_part = isinstance(first, tuple) and _name(node) == "getitem"
    uses_n_rows = any(isinstance(x, Rows) for x in contents) and not is_part
    if is_part or not (tensors or uses_n_rows):  # or a constant
        return lambda units, *args, **options: function(*args, **options)
    if _name(node) in rules.CALLS and not uses_n_rows:
        return rules.CALLS[_name(node)]
    views = _name(node) in rules.VIEWS
    alone = (views or _name(node) in rules.COPIES) and len(tensors) == 1 and first is tensors[0]
    joins = _name(node) in rules.JOINS and all(isinstance(x, Affine) for x in leaves(first))
    if alone or joins:
        return lambda units, *args, **options: rules.by_row(function, args, options, views)
    return None


def _method(name: str, x: Any, *args: Any, **options: Any) -> Any:
    return getattr(x, name)(*args, **options)


def _is_in_place(node: Any, args: tuple, options: dict) -> bool:
    """Tell whether a node writes into its first tensor."""
    if node.op == "call_module":
        return bool(getattr(args[0], "inplace", False))
    name = _name(node)
    asked = options.get("inplace", False) or (name in rules.KINKS and any(a is True for a in args))
    return bool(asked) or name.endswith("_")


def _write(node: Any, changed: Any, result: Any, values: dict) -> None:
    """Update all nodes that hold a tensor which was changed in place."""
    order = {other: i for i, other in enumerate(node.graph.nodes)}
    for other, value in values.items():
        if value is changed:
            values[other] = result
        elif any(isinstance(x, Affine) and x.memory is changed.memory for x in leaves(value)):
            if any(order[user] > order[node] for user in other.users):
                raise ValueError("it writes into a part of a tensor that is used later")

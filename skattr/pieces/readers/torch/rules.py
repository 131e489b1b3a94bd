"""What torch's layers and functions do to affine tensors.

A rule takes the units found so far, and the arguments of a layer's or a function's call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skattr.pieces.readers.torch.units import Affine, Units


class Rows:
    """The number of rows, which a module may pass on but not compute with."""


def layer_rule(layer: Any) -> Any:
    """Return the rule of one of torch's layers; a subclass with another forward has none."""
    import torch

    for kind, rule in LAYERS.items():
        known = getattr(torch.nn, kind)
        if isinstance(layer, known) and type(layer).forward is known.forward:
            return rule
    return None


def leaves(tree: Any) -> list:
    """Return the contents of nested lists, tuples and dicts."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [leaf for branch in tree for leaf in leaves(branch)]
    return [tree]


def _mapped(tree: Any, change: Callable) -> Any:
    """Return nested lists, tuples and dicts with their contents changed."""
    if isinstance(tree, dict):
        return {key: _mapped(branch, change) for key, branch in tree.items()}
    if isinstance(tree, list | tuple):
        branches = [_mapped(branch, change) for branch in tree]
        return branches if isinstance(tree, list) else tuple(branches)
    return change(tree)


def by_row(function: Callable, args: tuple, options: dict, views: bool = True) -> Any:
    """Apply a linear function that treats each row by itself.

    This is checked with one more row of zeros, which must stay zero and change no other row.
    """
    tensors = [x for x in leaves([args, options]) if isinstance(x, Affine)]
    rows = max(len(x.table) for x in tensors)
    memory = tensors[0].memory if views else object()

    def padded_to(n: int) -> Any:
        def padded(x: Any) -> Any:
            if isinstance(x, Affine):
                return x.padded(n)
            return n if isinstance(x, Rows) else x

        return function(*_mapped(args, padded), **_mapped(options, padded))

    def tensor(result: Any, longer: Any) -> Affine:
        same = len(result) == rows and len(longer) == rows + 1 and not longer[rows].any()
        size = float(result.abs().max()) if same and result.numel() else 0.0
        if not same or not result.allclose(longer[:rows], rtol=0.0, atol=1e-12 * size):
            raise ValueError("it uses several rows at a time")
        return Affine(result.contiguous(), memory)

    result, longer = padded_to(rows), padded_to(rows + 1)
    if isinstance(result, list | tuple):
        return tuple(tensor(*both) for both in zip(result, longer, strict=True))
    return tensor(result, longer)


def constant(tensor: Any) -> Any:
    """Return a tensor of the module, in float64 if it does not hold integers."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        return tensor
    copy = tensor.detach().cpu().clone()
    return copy.to(torch.float64) if copy.is_floating_point() else copy


def _linear(units: Units, x: Affine, weight: Any, bias: Any = None) -> Affine:
    if not x.shape:
        raise ValueError("it takes rows for columns")
    product = Affine(x.table @ constant(weight).T)
    return product if bias is None else product.plus(constant(bias))


def _channels(x: Affine, numbers: Any) -> Any:
    """Return one number per channel, the first axis after the rows, in the shape of a row."""
    return constant(numbers).reshape(-1, *(1 for _ in x.shape[1:]))


def _batch_norm(units: Units, layer: Any, x: Affine) -> Affine:
    if layer.running_mean is None:
        raise ValueError("it has no running statistics, so rows depend on each other")
    factor = 1 / (constant(layer.running_var) + layer.eps).sqrt()
    shift = -constant(layer.running_mean) * factor
    if layer.affine:
        factor, shift = factor * constant(layer.weight), shift * constant(layer.weight)
        shift = shift + constant(layer.bias)
    return x.times(_channels(x, factor)).plus(_channels(x, shift))


def _prelu(units: Units, x: Affine, weight: Any) -> Affine:
    return units.add(x, _channels(x, weight) if len(x.shape) else float(weight))


def _clip(units: Units, x: Affine, low: Any = None, high: Any = None) -> Affine:
    """Return low + relu(x - low) - relu(x - high), given that low <= high."""
    import torch

    if low is None or (isinstance(low, float) and low == -np.inf):
        return x if high is None else _smallest(units, x, high)
    if high is None or (isinstance(high, float) and high == np.inf):
        return units.add(x.plus(-low)).plus(low)
    low, high = (torch.as_tensor(bound, dtype=torch.float64) for bound in (low, high))
    low = torch.minimum(low, high)  # as torch does if they are in the wrong order
    return units.add(x.plus(-low)).plus(low).plus(units.add(x.plus(-high)).times(-1.0))


def _largest(units: Units, x: Any, y: Any) -> Affine:
    """Return y + relu(x - y)."""
    return _add(units, units.add(_add(units, x, y, -1.0)), y)


def _smallest(units: Units, x: Any, y: Any) -> Affine:
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

    for asked in leaves([args, options]):
        kind = getattr(asked, "dtype", asked)
        if isinstance(kind, torch.dtype) and not kind.is_floating_point:
            raise ValueError(f"it returns numbers of the type {kind}")
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
    **dict.fromkeys(["Flatten", "Unflatten"], lambda units, layer, x: by_row(layer, (x,), {})),
    **dict.fromkeys(["Identity", "Dropout", "AlphaDropout"], lambda units, layer, x: x),
}
# functions and methods of tensors, by name: those with kinks
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
    "minimum": _smallest,
}
# affine ones that need a rule
CALLS: dict[str, Any] = {
    **KINKS,
    **{f"{name}_": rule for name, rule in KINKS.items()},
    "linear": _linear,
    "dropout": _dropout,
    **dict.fromkeys(["add", "add_"], _add),
    **dict.fromkeys(["sub", "sub_"], _subtract),
    **dict.fromkeys(["mul", "mul_"], _multiply),
    **dict.fromkeys(["truediv", "div", "div_"], _divide),
    "neg": lambda units, x: x.times(-1.0),
    "size": _size,
    "dim": lambda units, x: x.table.ndim,
    "getattr": _attribute,
    "clone": lambda units, x: Affine(x.table),
    **dict.fromkeys(["contiguous", "detach", "double", "float", "to", "type_as"], _same),
}
# affine ones that torch applies to the table as to any tensor: of one tensor, whose numbers the
# result may share (VIEWS) or does not (COPIES), or of several (JOINS)
VIEWS = {
    "chunk", "expand", "flatten", "getitem", "movedim", "narrow", "permute", "reshape", "select",
    "split", "squeeze", "swapaxes", "tensor_split", "transpose", "unbind", "unflatten",
    "unsqueeze", "view",
}  # fmt: skip
COPIES = {"cumsum", "flip", "index_select", "matmul", "mean", "mm", "repeat", "roll", "sum"}
JOINS = {"cat", "concat", "concatenate", "hstack", "column_stack", "stack"}

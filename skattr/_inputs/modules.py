"""Torch modules as models: evaluated in their own precision, on their own device.

torch is imported inside functions: it is an extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr._utils.messages import brief

ROW_BLOCK = 65_536  # rows in one call of a module


def is_module(estimator: Any) -> bool:
    """Tell whether an estimator is a torch module, without importing torch."""
    kinds = type(estimator).__mro__
    return any(kind.__module__.startswith("torch.nn") for kind in kinds)


def check(module: Any) -> None:
    """Refuse a module whose answers are random, or that has no numbers."""
    import torch
    from torch.nn.modules.batchnorm import _NormBase
    from torch.nn.modules.dropout import _DropoutNd

    kind = type(module).__name__
    for name, part in module.named_modules():
        if part.training and isinstance(part, _DropoutNd | _NormBase | torch.nn.RReLU):
            raise ValueError(
                f"{kind} is in training mode, where its layer {name!r} ({type(part).__name__}) "
                "depends on chance or on the other rows: call .eval() first"
            )
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor) or tensor.is_meta:
            raise ValueError(
                f"{kind}: {name!r} has no numbers (device {str(tensor.device)!r}); load its weights"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{kind}: {name!r} holds NaN or infinite numbers")


def place(module: Any) -> tuple[Any, Any]:
    """Return the device and the floating type of a module's parameters."""
    import torch

    tensors = [*module.parameters(), *module.buffers()]
    numbers = [tensor for tensor in tensors if tensor.is_floating_point()]
    dtype = numbers[0].dtype if numbers else torch.get_default_dtype()
    return (tensors[0].device if tensors else torch.device("cpu")), dtype


def check_device(estimator: Any, device: Any) -> None:
    """Refuse a device that is not there, or not the model's."""
    if device is None:
        return
    if not isinstance(device, str):
        raise ValueError(f"device must be 'cpu', 'cuda' or None, got {brief(device)}")
    if device == "cpu" and not is_module(estimator):
        return
    if not is_module(estimator):
        raise ValueError(
            f"device={device!r}: only torch modules run on a device, and the estimator is "
            f"{type(estimator).__name__}"
        )
    import torch

    try:
        wanted = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is not a device: {error}") from error
    if wanted.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r}: there is no CUDA device; use None or 'cpu'")
    there = place(estimator)[0]
    if wanted.type != there.type or (wanted.index or 0) != (there.index or 0):
        raise ValueError(
            f"device={device!r}, but the module is on {str(there)!r}: move it first, "
            f".to({device!r})"
        )


def evaluate(module: Any, points: Any) -> Any:
    """Return the module's answers for a tensor (n, d), as a tensor (n, k) of float64."""
    import torch

    device, dtype = place(module)
    parts = []
    with torch.no_grad():
        for start in range(0, len(points), ROW_BLOCK):
            # a copy always: a module may write into its input
            rows = points[start : start + ROW_BLOCK].to(device=device, dtype=dtype, copy=True)
            answer = module(rows)
            if not isinstance(answer, torch.Tensor):
                raise ValueError(
                    f"{type(module).__name__} returned {type(answer).__name__}, not a tensor"
                )
            parts.append(answer.to(torch.float64).reshape(len(rows), -1))
    return torch.cat(parts)


def predict(module: Any, X: Any) -> np.ndarray:
    """Return the module's answers for a table of numbers, (n, k)."""
    import torch

    points = torch.as_tensor(as_numbers(X))
    if not len(points):
        return np.zeros((0, 1))
    try:
        return evaluate(module, points).cpu().numpy()
    except RuntimeError as error:
        raise ValueError(
            f"{type(module).__name__} refuses a table of {points.shape[1]} columns: {error}"
        ) from error


def as_numbers(X: Any) -> np.ndarray:
    """Return a table as float64 numbers; float32 holds exactly what a float32 module sees."""
    from skattr._inputs import frames

    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        return np.ascontiguousarray(X, dtype=np.float64)
    columns = []
    for k, name in enumerate(frames.labels(X)):
        try:
            columns.append(frames.to_float(frames.column(X, k)))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"a torch module takes numbers, and column {name!r} holds no numbers"
            ) from error
    return np.column_stack(columns)


def like(array: np.ndarray, other: Any) -> Any:
    """Return an array as a tensor where another one is one, on its device."""
    if isinstance(other, np.ndarray):
        return array
    import torch

    return torch.as_tensor(array, device=other.device)


def as_array(tensor: Any) -> np.ndarray:
    """Return a tensor as an array; an array as it is."""
    return tensor if isinstance(tensor, np.ndarray) else tensor.detach().cpu().numpy()

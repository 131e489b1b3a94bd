"""The base of measures that the user writes as functions, and the checks of their results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skattr._files.storage import PicklableTable
from skattr._inputs import frames, modules
from skattr._utils.parameters import changed_parameters
from skattr.measures.background import Background
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.factors.laws import Interval, uniform_law


class Written(Measure):
    """A measure that functions of the user define, for each row x and attribution j.

    x is an array (d,) of numbers, or of objects if a column holds levels; j is the position of the
    column, or the tuple of positions of a group.
    """

    depends = "row"
    mass: float | None = None
    _functions: tuple[str, ...]  # the parameters that are functions

    def _check_parameters(self) -> None:
        for name in self._functions:
            if not callable(getattr(self, name)):
                raise TypeError(
                    f"{type(self).__name__}: {name} must be a function, got {getattr(self, name)!r}"
                )

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        self.names_ = background.names
        self.row_ = PicklableTable(frames.copy(frames.take_rows(background.X, slice(1))))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        changed = changed_parameters(self).items()
        words = ", ".join(f"{name}={_in_words(value)}" for name, value in changed)
        return f"{type(self).__name__}({words})"

    def table(self, points: Any, what: str) -> Any:
        """Return points, an array (m, d) or a frame, as a table like X."""
        if frames.is_frame(points):
            missing = [name for name in self.names_ if name not in frames.labels(points)]
            if missing:
                raise ValueError(
                    f"{what} must return all columns, got a frame without the columns {missing}"
                )
            return frames.reorder(points, self.names_)
        array = np.asarray(points)
        d = len(self.names_)
        if array.ndim != 2 or array.shape[1] != d or not len(array):
            raise ValueError(f"{what} must return points of shape (m, {d}), got {array.shape}")
        if isinstance(self.row_.X, np.ndarray) and self.row_.X.dtype.kind != "O":
            return array
        return frames.with_columns(self.row_.X, {k: array[:, k] for k in range(d)})

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()


class OnDomain(Written):
    """A measure on a box of numbers, the domain, defined by a function of y, x and j."""

    backend: str
    adds_up = False
    no_batches = "the domain moves with the range of the background"
    of_ranges = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.backend not in ("numpy", "torch"):
            raise ValueError(f"backend must be 'numpy' or 'torch', got {self.backend!r}")

    def _learn(self, background: Background, attributions: Sequence[tuple[int, ...]]) -> None:
        super()._learn(background, attributions)
        self.sides_ = np.empty((len(self.names_), 2))
        for k, name in enumerate(self.names_):
            law = uniform_law(background, k, self.domain_)
            if not isinstance(law, Interval):
                raise ValueError(
                    f"{type(self).__name__} is a measure on numbers, and column {name!r} holds "
                    "levels; Atoms and Sampler take them"
                )
            self.sides_[k] = law.ends()

    def points(self, y: np.ndarray) -> Any:
        """Return y as a table like X."""
        return self.table(y, type(self).__name__)


def _in_words(value: Any) -> str:
    """Return the repr of a parameter, or the name of a function, without its address."""
    if isinstance(value, list | tuple) and all(callable(one) for one in value):
        return f"[{', '.join(map(_in_words, value))}]"
    return getattr(value, "__name__", type(value).__name__) if callable(value) else repr(value)


def as_point(x: Any) -> np.ndarray:
    """Return a table of one row as an array (d,) of numbers, or of objects if some are not."""
    if isinstance(x, np.ndarray):
        return x[0].copy()
    columns = range(len(frames.labels(x)))
    if all(frames.is_number(x, k) for k in columns):
        return np.array([frames.to_float(frames.column(x, k))[0] for k in columns])
    point = np.empty(len(columns), object)
    point[:] = [frames.to_list(frames.column(x, k))[0] for k in columns]
    return point


def as_label(columns: tuple[int, ...]) -> Any:
    """Return j as functions get it: the position of a column, or the positions of a group."""
    return columns[0] if len(columns) == 1 else columns


def ask(
    measure: Any, what: str, function: Callable, y: Any, x: np.ndarray, columns: tuple[int, ...],
    shape: tuple[int, ...],
) -> Any:  # fmt: skip
    """Return function(y, x, j), checked: finite numbers of a shape, an array or a tensor as y is.

    `what` is the name of the function in errors, which tell y, x and j.
    """
    answer = _ask_torch if measure.backend == "torch" else _ask_numpy
    values = answer(what, function, y, x, as_label(columns), shape)
    strange = (values != values) | (abs(values) == np.inf)  # on its device
    if strange.any():
        at = np.unravel_index(np.flatnonzero(modules.as_array(strange))[0], shape)
        point = modules.as_array(y)[at[: y.ndim - 1]]
        raise ValueError(
            f"{what} must return finite numbers, got {modules.as_array(values)[at]} at "
            f"y = {_short(point)}, x = {_short(x)}, j = {as_label(columns)}"
        )
    return values


def _ask_numpy(
    what: str, function: Callable, y: Any, x: np.ndarray, j: Any, shape: tuple[int, ...]
) -> Any:
    points = modules.as_array(y)
    try:
        answer = function(_locked(points), _locked(x), j)
    except Exception as error:
        if not re.search("read-?only", str(error)):
            raise
        answer = _on_copies(function, what, points, x, j, error)
    values = np.asarray(answer)
    if values.shape != tuple(shape) or values.dtype.kind not in "biuf":
        raise _wrong_shape(what, values.shape, values.dtype, y, shape)
    return modules.like(values.astype(np.float64, copy=False), y)


def _ask_torch(
    what: str, function: Callable, y: Any, x: np.ndarray, j: Any, shape: tuple[int, ...]
) -> Any:
    import torch

    points = torch.as_tensor(y)
    row = torch.tensor(x, device=points.device)
    before = points._version, row._version
    values = function(points, row, j)
    if (points._version, row._version) != before:
        raise _changes(what, y[0], x, j)
    if not isinstance(values, torch.Tensor) or tuple(values.shape) != tuple(shape):
        raise _wrong_shape(what, getattr(values, "shape", ()), type(values).__name__, y, shape)
    values = values.to(torch.float64)
    return values.detach().cpu().numpy() if isinstance(y, np.ndarray) else values


def _changes(what: str, y: Any, x: np.ndarray, j: Any) -> ValueError:
    return ValueError(
        f"{what} must not change y and x, which it does at y = {_short(modules.as_array(y))}, "
        f"x = {_short(x)}, j = {j}; copy them first (y = y.copy())"
    )


def _wrong_shape(what: str, got: Any, kind: Any, y: Any, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"{what} must return numbers of shape {tuple(shape)} for y of shape {tuple(y.shape)}, got "
        f"{kind} of shape {tuple(got)}"
    )


def _locked(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def _on_copies(
    function: Callable, what: str, y: np.ndarray, x: np.ndarray, label: Any, error: Exception
) -> Any:
    """Call a function that refuses read-only arrays with copies; raise if it changes them."""
    y_copy, x_copy = y.copy(), x.copy()
    answer = function(y_copy, x_copy, label)
    changed = ~same_values(y_copy, y).all(axis=-1)
    if changed.any() or not same_values(x_copy, x).all():
        at = np.unravel_index(np.argmax(changed), changed.shape)
        raise _changes(what, y[at], x, label) from error
    return answer


def same_values(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell where two arrays are equal, or both missing."""
    return (a == b) | ((a != a) & (b != b))


def _short(point: np.ndarray) -> str:
    shown = ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in point[:8].tolist())
    return f"[{shown}{', …' if len(point) > 8 else ''}]"

"""What measures written by the user share: asking his functions, and checking their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Self

import numpy as np

from skattr import frames, modules
from skattr.measures.base import Measure
from skattr.measures.empirical import Expectation
from skattr.measures.factors.laws import Interval, uniform_law
from skattr.storage import PicklableTable


class Written(Measure):
    """A measure that a function of the user's own says, for each row x and attribution j.

    x is an array (d,) of numbers, or of objects where a column holds levels; j is the position of
    the column, or the tuple of positions of a group.
    """

    depends = "row"
    mass: float | None = None
    _functions: tuple[str, ...]  # the parameters that are functions

    def fit(self, X: Any, sample_weight: Any = None, domain: dict | None = None,
            own: Sequence[tuple[int, ...]] | None = None) -> Self:  # fmt: skip
        """Keep the names of the columns, and a row to make rows like it."""
        for name in self._functions:
            if not callable(getattr(self, name)):
                raise TypeError(
                    f"{type(self).__name__}({name}={getattr(self, name)!r}): it is a function"
                )
        super().fit(X, sample_weight, domain, own)
        background = self.background_
        self.names_ = background.names
        self.row_ = PicklableTable(frames.copy(frames.take_rows(background.X, slice(1))))
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        changed = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if value is not signature(type(self)).parameters[name].default
        }
        words = ", ".join(f"{name}={_in_words(value)}" for name, value in changed.items())
        return f"{type(self).__name__}({words})"

    def table(self, points: Any, what: str) -> Any:
        """Return points, an array (m, d) or a frame, as a table like X."""
        if frames.is_frame(points):
            missing = [name for name in self.names_ if name not in frames.labels(points)]
            if missing:
                raise ValueError(f"{what} returned a frame without the columns {missing}")
            return frames.reorder(points, self.names_)
        array = np.asarray(points)
        d = len(self.names_)
        if array.ndim != 2 or array.shape[1] != d or not len(array):
            raise ValueError(f"{what} returned points of shape {array.shape}; it is (m, {d})")
        if isinstance(self.row_.X, np.ndarray) and self.row_.X.dtype.kind != "O":
            return array
        return frames.with_columns(self.row_.X, {k: array[:, k] for k in range(d)})

    def reference(self) -> Measure:
        """Return P."""
        return Expectation()


class OnDomain(Written):
    """A measure on a box of numbers, the domain, written as a function of y, x and j."""

    backend: str
    adds_up = False
    no_batches = "the domain moves with the range of the background"

    def fit(self, X: Any, sample_weight: Any = None, domain: dict | None = None,
            own: Sequence[tuple[int, ...]] | None = None) -> Self:  # fmt: skip
        """Learn the domain: the background's range where none is given."""
        super().fit(X, sample_weight, domain, own)
        if self.backend not in ("numpy", "torch"):
            raise ValueError(f"backend={self.backend!r}: it is 'numpy' or 'torch'")
        background = self.background_
        self.sides_ = np.empty((len(self.names_), 2))
        for k, name in enumerate(self.names_):
            law = uniform_law(background, k, self.domain_)
            if not isinstance(law, Interval):
                raise ValueError(
                    f"{type(self).__name__} is a measure on numbers, and column {name!r} holds "
                    "levels; Atoms and Sampler take them"
                )
            self.sides_[k] = law.ends()
        return self

    def points(self, y: np.ndarray) -> Any:
        """Return numbers (n, d) as a table like X."""
        return self.table(y, type(self).__name__)


def _in_words(value: Any) -> str:
    """Return the repr of a parameter, of a function its name: where it lies says nothing."""
    if isinstance(value, list | tuple) and all(callable(one) for one in value):
        return f"[{', '.join(map(_in_words, value))}]"
    return getattr(value, "__name__", type(value).__name__) if callable(value) else repr(value)


def as_point(x: Any) -> np.ndarray:
    """Return a table of one row as an array (d,): of numbers, or of objects if some are none."""
    if isinstance(x, np.ndarray):
        return x[0].copy()
    columns = range(len(frames.labels(x)))
    if all(frames.is_number(x, k) for k in columns):
        return np.array([frames.to_float(frames.column(x, k))[0] for k in columns])
    point = np.empty(len(columns), object)
    point[:] = [frames.to_list(frames.column(x, k))[0] for k in columns]
    return point


def as_label(columns: tuple[int, ...]) -> Any:
    """Return an attribution as functions get it: a position, or the tuple of a group's."""
    return columns[0] if len(columns) == 1 else columns


def ask(
    measure: Any, what: str, function: Callable, y: Any, x: np.ndarray, columns: tuple[int, ...],
    shape: tuple[int, ...],
) -> Any:  # fmt: skip
    """Return function(y, x, j), numbers of a shape, as y is: an array or a tensor.

    What is wrong with the answer is said with the place.
    """
    answer = _ask_torch if measure.backend == "torch" else _ask_numpy
    values = answer(what, function, y, x, as_label(columns), shape)
    strange = (values != values) | (abs(values) == np.inf)  # on its device
    if strange.any():
        at = np.unravel_index(np.flatnonzero(modules.as_array(strange))[0], shape)
        point = modules.as_array(y)[at[: y.ndim - 1]]
        raise ValueError(
            f"{what} returned {modules.as_array(values)[at]} at y = {_short(point)}, "
            f"x = {_short(x)}, j = {as_label(columns)}"
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
        f"{what} changes its input, at y = {_short(modules.as_array(y))}, x = {_short(x)}, "
        f"j = {j}; it must leave y and x as they are (y = y.copy() first)"
    )


def _wrong_shape(what: str, found: Any, kind: Any, y: Any, shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"{what} returned {kind} of shape {tuple(found)} for y of shape {tuple(y.shape)}; it must "
        f"be numbers of shape {tuple(shape)}"
    )


def _locked(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def _on_copies(
    function: Callable, what: str, y: np.ndarray, x: np.ndarray, label: Any, error: Exception
) -> Any:
    """Ask a function that takes no locked arrays; only one that writes to them is refused."""
    own_y, own_x = y.copy(), x.copy()
    answer = function(own_y, own_x, label)
    changed = ~same_values(own_y, y).all(axis=-1)
    if changed.any() or not same_values(own_x, x).all():
        at = np.unravel_index(np.argmax(changed), changed.shape)
        raise _changes(what, y[at], x, label) from error
    return answer


def same_values(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tell where two arrays are equal, missing values too."""
    return (a == b) | ((a != a) & (b != b))


def _short(point: np.ndarray) -> str:
    shown = ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in point[:8].tolist())
    return f"[{shown}{', …' if len(point) > 8 else ''}]"

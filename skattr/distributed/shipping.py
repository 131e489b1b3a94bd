"""Objects for other processes: pickled once, and unpickled once in each process.

Functions and classes of a notebook or a script pickle too, by cloudpickle.
"""

from __future__ import annotations

import pickle
import uuid
from threading import Lock
from typing import Any

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 carries it
    from joblib.externals import cloudpickle

KEPT = 4  # objects that a process keeps
_kept: dict[str, Any] = {}
_lock = Lock()


class Shipped:
    """An object as bytes; `get` returns the same object in all tasks of a process."""

    def __init__(self, content: Any) -> None:
        self.token = uuid.uuid4().hex
        self.pickle = cloudpickle.dumps(content)

    def get(self) -> Any:
        """Return the object, unpickled if this process has not done so."""
        with _lock:
            if self.token not in _kept:
                while len(_kept) >= KEPT:
                    del _kept[next(iter(_kept))]
                _kept[self.token] = pickle.loads(self.pickle)
            return _kept[self.token]


def check_pickles(explainer: Any) -> None:
    """Raise, naming the parameter, if an explainer cannot reach other processes."""
    for name, value in explainer.get_params(deep=False).items():
        try:
            cloudpickle.dumps(value)
        except Exception as error:  # each library has errors of its own
            raise TypeError(
                f"{name}={type(value).__name__} must pickle to reach the workers, and does not: "
                f"{type(error).__name__}: {error}"
            ) from error


def n_bytes(state: Any) -> int:
    """Return the size of the pickle of a state, without copying arrays."""
    buffers: list[pickle.PickleBuffer] = []
    head = cloudpickle.dumps(state, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


def dumps(state: Any) -> bytes:
    """Return a state as bytes."""
    return cloudpickle.dumps(state)


def loads(content: bytes) -> Any:
    """Return a state."""
    return pickle.loads(content)

"""How kernels are compiled: all of them here, so that caching is decided in one place.

Kernels allocate nothing. Numba need not count references to arrays then, which takes a tenth to a
fourth of the time of small loops, and compiles in a fourth of the time: `np.zeros` inside a kernel
brings seconds of numba's own code along. (Numba does not document `_nrt`; versions 0.61 to 0.68
accept it.) What only kernels call is compiled as a part of them (parts.py).

Compiled kernels are kept where numba keeps them: in NUMBA_CACHE_DIR, beside the package, or in the
user's cache folder. Where none of these can be written, they are compiled in every process.
"""

import logging
import time
import warnings
from typing import Any

import numba.extending
from numba import njit
from numba.core import config, event

from skattr.kernels.parts import linked_only

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_njit: Any = njit  # whose types know neither `_nrt` nor the options about wrappers
PATIENCE = 1.0  # seconds after which users are told what they wait for

DISABLED: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
_kernels: list[Any] = []
_cacheable = True


PART = {**OPTIONS, "no_cpython_wrapper": True, **linked_only()}


def kernel(function: Any) -> Any:
    """Compile a function that Python calls."""
    compiled = _njit(**OPTIONS)(function)
    if not DISABLED:
        _keep(compiled)
        _kernels.append(compiled)
    return compiled


def called(function: Any) -> Any:
    """Compile a function that only kernels call: it has no way in from Python."""
    return _njit(**PART)(function)


def inlined(function: Any) -> Any:
    """Compile a function that becomes part of the kernels that call it, and of nothing else."""
    return _njit(**PART, forceinline=True)(function)


def intrinsic(plain: Any) -> Any:
    """Return a decorator for machine code, given the same in Python for NUMBA_DISABLE_JIT."""

    def decorate(function: Any) -> Any:
        return plain if DISABLED else numba.extending.intrinsic(function)

    return decorate


def _keep(compiled: Any) -> None:
    """Let a kernel be looked for, and kept, on disk, if there is a folder for that."""
    global _cacheable
    if not _cacheable:
        return
    try:
        compiled.enable_caching()
    except RuntimeError:  # numba: no locator available
        _cacheable = False
        warnings.warn(
            "skattr compiles its kernels anew in every process, because neither its own folder "
            "nor the user's cache folder can be written to; set the environment variable "
            "NUMBA_CACHE_DIR to a folder that can",
            stacklevel=2,
        )


def never_called() -> list[str]:
    """Return the names of the kernels that this process has neither compiled nor loaded."""
    return [f"{k.__module__}.{k.__name__}" for k in _kernels if not k.signatures]


class _Compiling(event.Listener):
    """Says what users wait for, once, if compiling takes longer than they expect."""

    def __init__(self) -> None:
        self.depth, self.start, self.seconds, self.told = 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        """Count from the start of a kernel, not of what it calls."""
        if self.depth or any(event.data["dispatcher"] is each for each in _kernels):
            if self.depth == 0:
                self.start = time.perf_counter()
            self.depth += 1
            self._tell()

    def on_end(self, event: Any) -> None:
        """Add up."""
        if self.depth:
            self._tell()
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.start

    def _tell(self) -> None:
        waited = self.seconds + time.perf_counter() - self.start
        if not self.told and waited > PATIENCE:
            self.told = True
            often = "once on this machine" if _cacheable else "in every process"
            logging.getLogger("skattr").warning("skattr: compiling kernels, %s", often)


event.register("numba:compile", _Compiling())

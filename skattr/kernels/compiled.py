"""Decorators that compile kernels, with the same options and caching for all of them.

Kernels allocate nothing. Numba then does not count references to arrays, which takes a tenth to a
fourth of the time of small loops, and compiles in a fourth of the time: `np.zeros` inside a kernel
adds seconds of compiling numba's own code. (Numba does not document `_nrt`; versions 0.61 to 0.68
accept it.) Functions that only kernels call are compiled as parts of them (parts.py).

Compiled kernels are cached where numba caches: in NUMBA_CACHE_DIR, beside the package, or in the
user's cache folder. If none of these is writable, they are compiled in every process.
"""

import gc
import logging
import time
import warnings
from typing import Any

import numba.extending
from numba import njit
from numba.core import config, event

from skattr.kernels import parts

OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_njit: Any = njit  # numba's annotations lack `_nrt` and the options about wrappers
PATIENCE = 1.0  # seconds of compiling after which there is a message

DISABLED: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
_kernels: list[Any] = []
_cacheable = True


_of_kernels, _of_parts = parts.options()
KERNEL = {**OPTIONS, **_of_kernels}
PART = {**OPTIONS, "no_cpython_wrapper": True, **_of_parts}


def kernel(function: Any) -> Any:
    """Compile a function that Python calls."""
    compiled = _njit(**KERNEL)(function)
    if not DISABLED:
        _keep(compiled)
        _kernels.append(compiled)
    return compiled


def called(function: Any) -> Any:
    """Compile a function that only kernels call, not Python."""
    return _njit(**PART)(function)


def inlined(function: Any) -> Any:
    """Compile a function that is inlined into the kernels that call it."""
    return _njit(**PART, forceinline=True)(function)


def intrinsic(plain: Any) -> Any:
    """Return a decorator for LLVM code; `plain` replaces it under NUMBA_DISABLE_JIT."""

    def decorate(function: Any) -> Any:
        return plain if DISABLED else numba.extending.intrinsic(function)

    return decorate


def _keep(compiled: Any) -> None:
    """Enable the cache on disk for a kernel, if there is a writable folder."""
    global _cacheable
    if not _cacheable:
        return
    try:
        compiled.enable_caching()
    except RuntimeError:  # numba: no locator available
        _cacheable = False
        warnings.warn(
            "skattr compiles its kernels anew in every process, because neither its own folder "
            "nor the user's cache folder is writable; set the environment variable "
            "NUMBA_CACHE_DIR to a folder that is",
            stacklevel=2,
        )


def never_called() -> list[str]:
    """Return the names of the kernels that this process has neither compiled nor loaded."""
    return [f"{k.__module__}.{k.__name__}" for k in _kernels if not k.signatures]


class _Compiling(event.Listener):
    """Logs one message if compiling takes longer than PATIENCE.

    While numba compiles, Python collects no garbage: what numba makes is alive until it is done,
    and looking through it again and again took a tenth of the time. Numba holds a lock.
    """

    def __init__(self) -> None:
        self.depth, self.start, self.seconds, self.told = 0, 0.0, 0.0, False
        self.collects = False

    def on_start(self, event: Any) -> None:
        """Start the clock at a kernel, not at the functions that it calls."""
        if self.depth or any(event.data["dispatcher"] is each for each in _kernels):
            if self.depth == 0:
                self.start = time.perf_counter()
                self.collects = gc.isenabled()
                gc.disable()
            self.depth += 1
            self._tell()

    def on_end(self, event: Any) -> None:
        """Add up the time of compiling."""
        if self.depth:
            self._tell()
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.start
                if self.collects:
                    gc.enable()

    def _tell(self) -> None:
        waited = self.seconds + time.perf_counter() - self.start
        if not self.told and waited > PATIENCE:
            self.told = True
            often = "once on this machine" if _cacheable else "in every process"
            logging.getLogger("skattr").warning("skattr: compiling kernels, %s", often)


event.register("numba:compile", _Compiling())

"""How kernels are compiled that allocate nothing: numba need not count references to arrays then.

Counting takes a tenth to a fourth of the time of small loops. Numba does not document `_nrt`:
should a version refuse it, all works without.
"""

from typing import Any

from numba import njit

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}

kernel = njit(**OPTIONS)
inlined = njit(**OPTIONS, forceinline=True)  # becomes part of the kernels that call it

"""Kernels in threads, as they release the GIL; models in joblib's workers. Results keep order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from joblib import Parallel, effective_n_jobs
from joblib.parallel import get_active_backend

from skattr._utils.messages import brief


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless n_jobs is None or an integer other than 0, as joblib takes it.

    Examples
    --------
    >>> check_n_jobs("2")
    Traceback (most recent call last):
        ...
    ValueError: n_jobs must be None or an integer other than 0, got '2'
    """
    is_integer = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_integer or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or an integer other than 0, got {brief(n_jobs)}")


def in_order(function: Callable, items: Iterable, n_jobs: int | None) -> Iterator[Any]:
    """Yield function(item) for each item, in order, with a bounded number of waiting results."""
    n = effective_n_jobs(n_jobs)
    if n == 1:
        yield from map(function, items)
        return
    waiting: deque[Future] = deque()
    with ThreadPoolExecutor(n) as pool:
        for item in items:
            if len(waiting) == 2 * n:
                yield waiting.popleft().result()
            waiting.append(pool.submit(function, item))
        while waiting:
            yield waiting.popleft().result()


def in_workers(tasks: Iterable, n_jobs: int | None) -> Iterator[Any]:
    """Yield the results of joblib's delayed calls."""
    if effective_n_jobs(n_jobs) == 1:  # joblib has a cost per call
        yield from (function(*args, **kwargs) for function, args, kwargs in tasks)
    else:
        # the results of some backends come all at once
        backend, _ = get_active_backend()
        one_by_one = getattr(backend, "supports_return_generator", False)
        yield from Parallel(n_jobs, return_as="generator" if one_by_one else "list")(tasks)

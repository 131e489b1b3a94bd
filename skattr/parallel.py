"""Kernels in threads: they release the GIL, and results come back in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from joblib import effective_n_jobs


def in_order(function: Callable, items: Iterable, n_jobs: int | None) -> Iterator[Any]:
    """Yield function(item) for each item; only a few results wait at any time."""
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

"""Kernels in threads, as they release the GIL; models in joblib's workers. Results keep order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from joblib import Parallel, effective_n_jobs


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


def in_workers(
    tasks: Iterable, total: int, n_jobs: int | None, progress: str | None = None
) -> Iterator[Any]:
    """Yield the results of joblib's delayed calls; `progress` is the title of a bar to show."""
    if effective_n_jobs(n_jobs) == 1:  # joblib takes its time for each call
        results: Iterable = (function(*args, **kwargs) for function, args, kwargs in tasks)
    else:
        results = Parallel(n_jobs, return_as="generator")(tasks)
    yield from with_bar(results, total, progress)


def with_bar(items: Iterable, total: int, progress: str | None) -> Iterable:
    """Return items, with a bar of that title if there is one."""
    if progress is None:
        return items
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("verbose needs tqdm: pip install 'skattr[progress]'") from error
    return tqdm(items, total=total, desc=progress)

"""Settings of all tests: no deadlines (the first call compiles), the same examples every time.

There is a worker for each core, so libraries use one thread each: more would wait for each other.
"""

import os

import pytest
import threadpoolctl
from hypothesis import settings

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

settings.register_profile("skattr", deadline=None, derandomize=True)
settings.load_profile("skattr")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """One thread also where the environment asks for more, or a library came without it."""
    with threadpoolctl.threadpool_limits(1):
        yield

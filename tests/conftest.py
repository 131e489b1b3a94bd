"""Settings of all tests: no deadlines (the first call compiles), the same examples every time.

There is a worker for each core, so libraries use one thread each: more would wait for each other.
"""

import os
import re

import pytest
import threadpoolctl
from hypothesis import settings

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

settings.register_profile("skattr", deadline=None, derandomize=True)
settings.load_profile("skattr")

ALL_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Leave out, without importing them, files of which every test is slow."""
    if config.option.markexpr == "not slow" and collection_path.name.startswith("test_"):
        return bool(ALL_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """One thread also where the environment asks for more, or a library came without it."""
    with threadpoolctl.threadpool_limits(1):
        yield

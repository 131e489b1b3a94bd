"""Which parameters of a test are in the quick lane, `pytest -m "not slow"`."""

import pytest


def quickly(names, quick):
    """Return parameters of which only those in `quick` are not slow."""
    assert set(quick) & set(names)
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in quick)) for name in names]

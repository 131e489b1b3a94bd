"""Settings of all tests: no deadlines (the first call compiles), the same examples every time."""

from hypothesis import settings

settings.register_profile("skattr", deadline=None, derandomize=True)
settings.load_profile("skattr")

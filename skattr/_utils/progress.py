"""A progress bar for long work."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

LONG = 3.0  # seconds of work after which a bar is shown unasked


class Progress:
    """A progress bar on standard error: always shown, never, or only if the work takes long.

    Parameters
    ----------
    verbose : int or None
        1: always, 0: never, None: after `LONG` seconds, and cleared at the end.
    total : int
        The number of steps; `add` increases it.
    unit : str
        What a step is, in the plural.
    hint : str, default=""
        One line above the bar: how much work it is, and how to reduce it.
    """

    def __init__(self, verbose: int | None, total: int, unit: str, hint: str = "") -> None:
        self.verbose, self.total, self.unit, self.hint = verbose, total, unit, hint
        self._done = 0
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        if self.verbose:
            self._show()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, steps: int) -> None:
        """Add steps to the total."""
        self.total += steps
        if self._bar is not None:
            self._bar.total = self.total

    def step(self, name: str, steps: int = 1) -> None:
        """Count steps as done; `name` is shown next to the bar."""
        self._done += steps
        if self._bar is None and self.verbose is None and self._done < self.total:
            if time.monotonic() - self._start > LONG:
                self._show()
                steps = self._done
        if self._bar is not None:
            self._bar.set_description_str(name, refresh=False)
            self._bar.update(steps)

    def _show(self) -> None:
        from tqdm.auto import tqdm  # slow to import

        if self.hint:
            tqdm.write(self.hint, file=sys.stderr)
        asked = bool(self.verbose)
        self._bar = tqdm(
            total=self.total,
            unit=f" {self.unit}",
            leave=asked,
            mininterval=0.1 if asked else 1.0,  # in a log file every change is a line
            delay=0 if asked else 1e-9,  # not drawn before the steps that are done are counted
            file=sys.stderr,
        )
        self._bar.start_t -= time.monotonic() - self._start  # the time left counts all steps
        self._bar.last_print_t = self._bar.start_t

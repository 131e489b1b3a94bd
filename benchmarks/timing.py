"""Clocks, and tables that say whether a floor is met."""

import gc
import math
import time
from dataclasses import dataclass, field


def best(function, repeat=10, clock=time.process_time, warm=True, at_most=10.0):
    """Return the smallest time of several calls of `function`, in seconds.

    CPU time by default, of all threads of this process, so other work on the machine counts little.
    The first call is not timed if `warm`; no further call is made after `at_most` seconds of calls.
    """
    if warm:
        function()
    times = []
    while len(times) < repeat and sum(times) < at_most:
        gc.collect()
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


@dataclass(frozen=True)
class Floor:
    """What a measured number must not be above ("≤") or below ("≥")."""

    sense: str
    bound: float

    def met(self, value):
        """Return whether `value` keeps the floor; a number that is not there does not."""
        return value <= self.bound if self.sense == "≤" else value >= self.bound

    def __str__(self):
        """Write it as in a table."""
        return f"{self.sense} {self.bound:g}"


def at_most(*bounds):
    """Return one floor a column, each an upper bound."""
    return [Floor("≤", bound) for bound in bounds]


def at_least(*bounds):
    """Return one floor a column, each a lower bound."""
    return [Floor("≥", bound) for bound in bounds]


def number(value):
    """Write a number with three digits, text as it is, what was not measured as a dash."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "–"
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass
class Table:
    """Rows of numbers under one header, printed aligned as soon as they are all there."""

    title: str
    columns: list
    rows: list = field(default_factory=list)
    checks: list = field(default_factory=list)

    def add(self, label, values, floors=None):
        """Append a row; with floors every number gets its bound and a mark."""
        floors = floors or [None] * len(values)
        columns = zip(self.columns, values, floors, strict=True)
        cells = [self._cell(label, *each) for each in columns]
        self.rows.append([label, *cells])

    def _cell(self, label, column, value, floor):
        text = number(value)
        if floor is None or text == "–":
            return text
        met = floor.met(value)
        self.checks.append((met, f"{label}, {column}: {text} ({floor})"))
        return f"{text} ({floor}) {'ok' if met else 'MISSED'}"

    def show(self):
        """Print the table, and return its checks: (met, what) for each floor."""
        lines = [[self.title, *self.columns], *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        for first, *rest in lines:
            cells = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
            print("  ".join([first.ljust(widths[0]), *cells]).rstrip())
        print(flush=True)
        return self.checks


def summarize(checks):
    """Print how many floors were checked, and every one that is missed."""
    missed = [what for met, what in checks if not met]
    print(f"floors checked: {len(checks)}, missed: {len(missed)}")
    for what in missed:
        print(f"  {what}")

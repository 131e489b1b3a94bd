"""Clocks, and tables that check numbers against limits."""

import gc
import math
import time
from dataclasses import dataclass, field


def best(function, repeat=10, clock=time.process_time, warm=True, at_most=10.0):
    """Return the smallest time of several calls of `function`, in seconds.

    CPU time by default, of all threads of this process, so that other work on the machine matters
    little. The first call is not timed if `warm`; after `at_most` seconds no more calls are made.
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
class Limit:
    """An upper ("≤") or a lower ("≥") bound on a measured number."""

    sense: str
    bound: float

    def met(self, value):
        """Return whether `value` is within the limit; NaN is not."""
        return value <= self.bound if self.sense == "≤" else value >= self.bound

    def __str__(self):
        """Return the limit as a table shows it."""
        return f"{self.sense} {self.bound:g}"


@dataclass(frozen=True)
class Between:
    """Bounds on a measured number from both sides."""

    low: float
    high: float

    def met(self, value):
        """Return whether `value` is within the bounds; NaN is not."""
        return self.low <= value <= self.high

    def __str__(self):
        """Return the bounds as a table shows them."""
        return f"{self.low:g} to {self.high:g}"


def at_most(*bounds):
    """Return one upper bound per column."""
    return [Limit("≤", bound) for bound in bounds]


def at_least(*bounds):
    """Return one lower bound per column."""
    return [Limit("≥", bound) for bound in bounds]


def number(value):
    """Format a number with three digits, text as it is, and what was not measured as a dash."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "–"
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@dataclass
class Table:
    """Rows of numbers under one header, printed aligned."""

    title: str
    columns: list
    rows: list = field(default_factory=list)
    checks: list = field(default_factory=list)

    def add(self, label, values, limits=None):
        """Append a row; numbers with a limit are shown with it, and marked."""
        limits = limits or [None] * len(values)
        columns = zip(self.columns, values, limits, strict=True)
        cells = [self._cell(label, *each) for each in columns]
        self.rows.append([label, *cells])

    def _cell(self, label, column, value, limit):
        text = number(value)
        if limit is None or text == "–":
            return text
        met = limit.met(value)
        self.checks.append((met, f"{label}, {column}: {text} ({limit})"))
        return f"{text} ({limit}) {'ok' if met else 'MISSED'}"

    def show(self):
        """Print the table, and return its checks: (met, description) for each limit."""
        lines = [[self.title, *self.columns], *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        for first, *rest in lines:
            cells = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
            print("  ".join([first.ljust(widths[0]), *cells]).rstrip())
        print(flush=True)
        return self.checks


def summarize(checks):
    """Print how many limits were checked, and list those that are missed."""
    missed = [what for met, what in checks if not met]
    print(f"limits checked: {len(checks)}, missed: {len(missed)}")
    for what in missed:
        print(f"  {what}")

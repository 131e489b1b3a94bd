"""What a part of the campaign found, and the table of all parts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Result:
    """What was tried, how often, what failed, and what was measured."""

    part: str
    tried: int = 0
    failures: list[str] = field(default_factory=list)
    measured: str = ""

    def check(self, holds: bool, what: str) -> None:
        """Count one trial, and keep its name if it failed."""
        self.tried += 1
        if not holds:
            self.failures.append(what)


def table(results: list[Result]) -> str:
    """Return all results as a table of text."""
    rows = [("part", "tried", "failed", "measured")]
    rows += [(r.part, f"{r.tried:,}", str(len(r.failures)), r.measured) for r in results]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(line.rstrip() for line in lines)

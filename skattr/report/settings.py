"""The settings of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX_OUTPUTS = 5


@dataclass(frozen=True)
class Settings:
    """What was asked for, and what the summary says of this run."""

    title: str
    max_rows: int
    max_features: int
    max_outputs: int
    include_data: bool
    run_time: str
    date: str

    def changed(self) -> dict[str, Any]:
        """Return the arguments of `write_report` that differ from their defaults."""
        defaults = {
            "max_rows": 500,
            "max_features": 20,
            "max_outputs": MAX_OUTPUTS,
            "include_data": True,
        }
        return {
            name: getattr(self, name)
            for name, value in defaults.items()
            if getattr(self, name) != value
        }

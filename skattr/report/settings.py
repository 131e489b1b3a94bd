"""The settings of a report."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What was asked for, and what the summary says of this run."""

    title: str
    run_time: str
    date: str
    max_rows: int = 500
    max_features: int = 20
    max_outputs: int = 5
    include_data: bool = True
    units: dict[Any, str] = field(default_factory=dict)
    output_unit: str = ""
    descriptions: dict[Any, str] = field(default_factory=dict)
    target: Any = None
    slices: Any = None
    labels: tuple[str, str] = ("first", "second")

    def changed(self) -> dict[str, Any]:
        """Return the arguments of `write_report` that differ from their defaults."""
        defaults = {
            each.name: each.default if each.default_factory is MISSING else each.default_factory()
            for each in fields(self)
        }
        return {
            name: getattr(self, name)
            for name, default in defaults.items()
            if default is not MISSING and getattr(self, name) != default
        }

    def about(self, name: Any) -> tuple[str, str]:
        """Return the unit and the description of a column."""
        return self.units.get(name, ""), self.descriptions.get(name, "")

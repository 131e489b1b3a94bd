"""What is drawn below and behind a curve: the strip of data, and shades where support is thin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skattr.plot import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

THIN = 30  # effective rows below which a value is not to be trusted
STRIP = 0.11  # height of the strip of data, as a part of the axes


def shade(ax: Axes, runs: list[tuple[float, float]]) -> list[tuple]:
    """Shade the intervals (begin, width) in which few rows are behind a value."""
    if not runs:
        return []
    area = ax.broken_barh(runs, (0, 1), transform=ax.get_xaxis_transform(), linewidth=0,
                          facecolor=drawing.AMBER, alpha=0.22, zorder=0.4)  # fmt: skip
    return [(area, f"fewer than {THIN} rows behind")]

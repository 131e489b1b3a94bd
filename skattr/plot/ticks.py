"""Ticks of a horizontal axis of numbers: so few that their labels do not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 9  # intervals between ticks
LETTER = 0.62  # the width of a digit, in sizes of the font
GAP = 1.4  # digits between two labels


def keep_apart(ax: Axes) -> None:
    """Let the ticks of the x axis follow its width, unless the user chose them."""
    from matplotlib.ticker import AutoLocator, MaxNLocator

    class Apart(MaxNLocator):
        """Chooses ticks by the length of their labels and the width of the axes when drawn."""

        def tick_values(self, vmin: float, vmax: float) -> Any:
            """Return as many ticks as there is room for."""
            for n in range(MOST, 0, -1):
                self.set_params(nbins=n, steps=[1, 2, 2.5, 5, 10], min_n_ticks=min(n, 2))
                ticks = np.asarray(super().tick_values(vmin, vmax))
                if _fit(self.axis, ticks, vmin, vmax):
                    break
            return ticks

    if type(ax.xaxis.get_major_locator()) is AutoLocator:
        ax.xaxis.set_major_locator(Apart())


def _fit(axis: Any, ticks: np.ndarray, vmin: float, vmax: float) -> bool:
    """Tell whether the labels of ticks have room."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    drawn = ticks[(ticks >= min(vmin, vmax)) & (ticks <= max(vmin, vmax))]
    if len(drawn) < 2:
        return True
    axes = axis.axes
    space = axes.get_window_extent().width / axes.figure.dpi * 72  # points
    between = space * abs(drawn[1] - drawn[0]) / abs(vmax - vmin)
    letters = max(len(label) for label in axis.major.formatter.format_ticks(drawn))
    size = axis.get_tick_params().get("labelsize", rcParams["xtick.labelsize"])
    points = FontProperties(size=size).get_size_in_points()
    return (letters + GAP) * LETTER * points <= between

"""Ticks of an axis of numbers: with thousands separators, and labels that do not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skattr._utils.numbers import ticks as tick_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 9  # intervals between ticks
GAP = 1.4  # the distance between two labels, in digits


def keep_apart(ax: Axes) -> None:
    """Choose the ticks of the x axis by its width, unless the user chose them."""
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


def numbers(years: bool = False) -> Any:
    """Return a formatter that writes numbers with separators and no more decimals than needed."""
    from matplotlib.ticker import Formatter

    class Numbers(Formatter):
        """Writes all ticks of an axis with the same decimals."""

        def format_ticks(self, values: Any) -> list[str]:
            """Return the labels of all ticks."""
            self.set_locs(values)
            return tick_labels(values, years=years)

        def __call__(self, x: float, pos: Any = None) -> str:
            """Return the label of one value."""
            return tick_labels([x], years=years)[0]

    return Numbers()


def write_numbers(axis: Any, years: bool = False) -> None:
    """Write the numbers of an axis with separators, unless the user chose a formatter."""
    from matplotlib.ticker import ScalarFormatter

    if type(axis.get_major_formatter()) is ScalarFormatter:
        axis.set_major_formatter(numbers(years))


def _fit(axis: Any, ticks: np.ndarray, vmin: float, vmax: float) -> bool:
    """Tell whether the labels of ticks fit next to each other."""
    from matplotlib import rcParams

    from skattr.plot import drawing

    drawn = ticks[(ticks >= min(vmin, vmax)) & (ticks <= max(vmin, vmax))]
    if len(drawn) < 2:
        return True
    between = drawing.width_in_points(axis.axes) * abs(drawn[1] - drawn[0]) / abs(vmax - vmin)
    letters = max(len(label) for label in axis.major.formatter.format_ticks(drawn))
    size = axis.get_tick_params().get("labelsize", rcParams["xtick.labelsize"])
    return drawing.text_width(letters + GAP, drawing.font_points(size)) <= between

"""What all pictures share: axes, colours, names and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skattr._utils.messages import brief
from skattr._utils.numbers import count, raw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers tell apart
BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")  # fmt: skip
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER)
NEGATIVE_TO_POSITIVE = (BLUE, "#F7F7F7", ORANGE)
GREY = "#8C8C8C"  # readable on white and on black
LONGEST = 32  # characters of a name that are drawn
ACROSS = 3  # panels next to each other
ALIKE = 20.0  # outputs of a regressor share an axis if none is larger than another by this factor
TALLEST = 160.0  # inches: matplotlib saves at most 2^16 pixels

# a column named $x_1$ is drawn as that
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
PLAIN_FRAME: dict[str, Any] = {"edgecolor": "none", "framealpha": 0.85}  # no line crosses words


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError("skattr.plot needs matplotlib: pip install 'skattr[plot]'") from error


@dataclass
class Panels:
    """The axes of a picture, one for each output."""

    axes: list[Axes]
    outer: list[bool]  # whether names are written on the left of each

    @classmethod
    def of(
        cls,
        ax: Any,
        outputs: Sequence[str],
        size: tuple[float, float],
        panel: tuple[float, float],
        names: Sequence[str] = (),
    ) -> Panels:
        """Return the user's axes, or those of a new figure, with the outputs as titles.

        Parameters
        ----------
        ax : Axes, sequence of Axes or None
            The user's axes, one per output.
        outputs : sequence of str
            The titles, which are not written if there is only one.
        size, panel : (width, height)
            The size in inches of a figure of one output, and of each panel of several.
        names : sequence of str
            The names to be written on the left, which may need a wider figure.
        """
        n = len(outputs)
        if ax is None:
            wide = min(n, ACROSS)
            high = -(-n // wide)
            width, height = size if n == 1 else (panel[0] * wide, panel[1] * high)
            width += max(0.0, names_in_points(names) / 72 - 1.6) if names else 0.0
            pyplot = _imported("matplotlib.pyplot")
            figure = pyplot.figure(figsize=(width, min(height, TALLEST)), layout="constrained")
            axes = [figure.add_subplot(high, wide, i + 1) for i in range(n)]
            outer = [i % wide == 0 for i in range(n)]
            if n > 1:
                figure.get_layout_engine().set(wspace=0.05, hspace=0.05)
        else:
            axes = list(ax.flat) if isinstance(ax, np.ndarray) else [ax] if n == 1 else ax
            if not isinstance(axes, list | tuple) or len(axes) != n:
                raise ValueError(
                    f"ax must be {n} Axes, one for each output, or choose one of the outputs by "
                    f"output=, of {brief(list(outputs))}; got {brief(ax)}"
                )
            outer = [True] * n
        if n > 1:
            for one, name in zip(axes, outputs, strict=True):
                one.set_title(shorten(name), fontsize="medium", **LITERAL)
        return cls(list(axes), outer)

    def result(self) -> Any:
        """Return what plot functions return: one Axes, or an array of them."""
        if len(self.axes) == 1:
            return self.axes[0]
        result = np.empty(len(self.axes), object)
        result[:] = self.axes
        return result

    def width(self, names: Sequence[str]) -> float:
        """Estimate the width of each panel beside the names, in points."""
        part = sum(self.outer) / len(self.outer)  # the share of panels with names
        now = width_in_points(self.axes[0])
        # 0.775: matplotlib's margins before the layout makes room for names
        return max(now / 0.775 - part * names_in_points(names) - 12, 0.3 * now)

    def share(self, axis: str, scale: str) -> None:
        """Give all panels the same limits on one axis, "x" or "y", if they can be compared."""
        limits = np.array([getattr(ax, f"get_{axis}lim")() for ax in self.axes])
        if comparable(scale, limits.max(axis=1) - limits.min(axis=1)):
            for ax in self.axes:
                getattr(ax, f"set_{axis}lim")(limits.min(), limits.max())


def colorbar(axes: list[Axes], mappable: Any, aspect: float = 30, **options: Any) -> Any:
    """Draw one colour bar beside all axes."""
    whole = axes[0] if len(axes) == 1 else axes
    bar = axes[0].figure.colorbar(mappable, ax=whole, pad=0.02, aspect=aspect, **options)
    bar.outline.set_visible(False)
    return bar


def comparable(scale: str, sizes: np.ndarray) -> bool:
    """Tell whether outputs can share an axis: they have one unit, or values of similar size.

    Classes have one unit. The outputs of a regressor may be a price and a share.
    """
    return scale not in ("", "prediction") or sizes.max() <= ALIKE * sizes.min()


def colours_of(n: int) -> list[Any]:
    """Return n colours that can be told apart."""
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    from matplotlib import colormaps

    return list(colormaps["turbo"](np.linspace(0.05, 0.95, n)))


def colour(i: int) -> str:
    """Return the colour of the i-th curve."""
    return PALETTE[i % len(PALETTE)]


def ink() -> str:
    """Return the colour of text in the user's style."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def shorten(name: Any, longest: int = LONGEST) -> str:
    """Return a name on one short line: unprintable characters escaped, a long middle left out."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name))
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"


def name_of_pair(pair: tuple[Any, Any]) -> str:
    """Return the name of a pair of columns."""
    return " × ".join(shorten(name, 20) for name in pair)


def rows(n: int) -> str:
    """Return a number of rows in words."""
    return f"{count(n)} row{'s' if n != 1 else ''}"


def rows_drawn(drawn: int, n: int) -> str:
    """Say how many rows are drawn; "" if all of them are."""
    return f"{count(drawn)} of {rows(n)} drawn" if drawn < n else ""


def value_label(centered: bool, scale: str, output: str | None, what: str = "{}") -> str:
    """Return the label of an axis of values: what they are, and on which scale.

    `output` is None where the axis is that of several outputs.
    """
    words = what.format("attribution, centred" if centered else "attribution")
    if output is None:
        return f"{words} · {scale or 'prediction'}"
    output = shorten(output)
    if scale == "probability":
        unit = f"P({output})"
    elif scale in ("", "prediction") or output == "prediction":
        unit = scale if output == "prediction" and scale else output
    else:
        unit = f"{scale} of {output}"
    return f"{words} · {unit}"


def name_rows(ax: Axes, names: list[str], outer: bool = True) -> None:
    """Write names on the y axis, the first on top; not where panels on the left have them."""
    ax.set_yticks(np.arange(len(names)), names if outer else [""] * len(names), **LITERAL)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def hide_spines(ax: Axes, *sides: str) -> None:
    """Hide some of the spines."""
    ax.spines[[*sides]].set_visible(False)


def label_x(ax: Axes, label: str, years: bool = False) -> None:
    """Label an x axis of numbers, with ticks that do not touch; `years`: they may be years."""
    from skattr.plot.ticks import keep_apart, write_numbers

    ax.set_xlabel(label, **LITERAL)
    write_numbers(ax.xaxis, years)
    keep_apart(ax)


def date_ticks(ax: Axes, most: int) -> None:
    """Write the x axis as dates, with at most `most` ticks."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=2, maxticks=most)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def label_y(ax: Axes, label: str, years: bool = False) -> None:
    """Label a y axis of numbers; `years`: they may be years."""
    from skattr.plot.ticks import write_numbers

    ax.set_ylabel(label, **LITERAL)
    write_numbers(ax.yaxis, years)


def zero_line(ax: Axes, vertical: bool = True) -> None:
    """Draw a line at 0, behind everything else."""
    (ax.axvline if vertical else ax.axhline)(0, color=GREY, linewidth=0.8, zorder=0.5)


def legend(ax: Axes, entries: Sequence[tuple[Any, str]], **options: Any) -> None:
    """Draw a legend of (artist, name), with names as they are."""
    artists = [artist for artist, _ in entries]
    # matplotlib leaves out names that begin with "_", so they are written in afterwards
    options = {"fontsize": "small", **PLAIN_FRAME, **options}
    drawn = ax.legend(artists, ["-"] * len(artists), **options)
    for text, (_, name) in zip(drawn.get_texts(), entries, strict=True):
        text.set(text=name, **LITERAL)


def legend_above(ax: Axes, entries: Sequence[tuple[Any, str]], titled: bool) -> None:
    """Draw a legend above the axes, on the right, and above their title if they have one."""
    legend(ax, entries, ncols=2, loc="lower right", bbox_to_anchor=(1, 1),
           borderaxespad=2.2 if titled else 0.2)  # fmt: skip


def height_of(n_rows: int) -> float:
    """Return the height in inches of a figure with n_rows names on its left."""
    return max(1.1 + 0.3 * n_rows, 2.2)


def evenly_spaced(n: int, most: int) -> np.ndarray:
    """Return at most `most` positions among n, evenly spaced, both ends included."""
    if n <= most:
        return np.arange(n)
    return np.linspace(0, n - 1, most).round().astype(np.intp)


class NoLevel(NamedTuple):
    """What a curve's table has besides levels: missing values, and any other level."""

    label: str


def raw_text(value: Any, longest: int = 20) -> str:
    """Return a raw value as a short text; a level named like a `NoLevel` is in quotes."""
    if isinstance(value, NoLevel):
        return value.label
    if isinstance(value, str) and value in ("missing", "any other"):
        return repr(value)
    return shorten(raw(value), longest)


def text_width(letters: float, points: float) -> float:
    """Estimate the width of a text, in points."""
    return 0.62 * letters * points


def font_points(size: Any) -> float:
    """Return a font size, such as "small", in points."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size).get_size_in_points()


def names_in_points(names: Sequence[str]) -> float:
    """Estimate the width of names on the y axis, in points."""
    size = _imported("matplotlib").rcParams["ytick.labelsize"]
    return text_width(max(map(len, names)), font_points(size))


def width_in_points(ax: Axes) -> float:
    """Return the current width of axes, in points."""
    return ax.get_window_extent().width / ax.figure.dpi * 72


def height_in_points(ax: Axes) -> float:
    """Return the current height of axes, in points."""
    return ax.get_window_extent().height / ax.figure.dpi * 72

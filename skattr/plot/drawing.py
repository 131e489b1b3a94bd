"""What all pictures share: axes, colours, names, numbers, and the choice of columns to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skattr._numbers import count, raw
from skattr.explanation import Explanation
from skattr.messages import brief

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
TALLEST = 160.0  # inches: beyond 2^16 pixels no picture can be saved

LITERAL: dict[str, Any] = {
    "parse_math": False,
    "usetex": False,
}  # a column named $x_1$ is drawn as that


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of a size in inches."""
    if ax is not None:
        return ax
    return _pyplot().subplots(figsize=(width, min(height, TALLEST)), layout="constrained")[1]


def _pyplot() -> Any:
    return _imported("matplotlib.pyplot")


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError("skattr.plot needs matplotlib: pip install 'skattr[plot]'") from error


@dataclass
class Panels:
    """One Axes for each output; a single one has the size and the place of a plain picture."""

    axes: list[Axes]
    outer: list[bool]  # whether names and labels on the left are to be written

    @classmethod
    def of(
        cls,
        ax: Any,
        outputs: Sequence[str],
        size: tuple[float, float],
        panel: tuple[float, float],
        names: Sequence[str] = (),
    ) -> Panels:
        """Return the axes given, or those of a new figure, with the outputs as titles.

        `size` is that of a figure of one output, `panel` that of each of several, in inches;
        `names` on the left make it wider.
        """
        n = len(outputs)
        more = more_for(names) if names else 0.0
        if n == 1:
            return cls([new_axes(ax, size[0] + more, size[1])], [True])
        if ax is not None:
            axes = list(ax.flat) if isinstance(ax, np.ndarray) else ax
            if not isinstance(axes, list | tuple) or len(axes) != n:
                raise ValueError(
                    f"ax must be {n} Axes, one for each output, or choose one of the outputs by "
                    f"output=, of {brief(list(outputs))}; got {brief(ax)}"
                )
            outer = [True] * n
        else:
            wide = min(n, ACROSS)
            high = -(-n // wide)
            figsize = panel[0] * wide + more, min(panel[1] * high, TALLEST)
            figure = _pyplot().figure(figsize=figsize, layout="constrained")
            figure.get_layout_engine().set(wspace=0.05, hspace=0.05)
            grid = figure.add_gridspec(high, wide)
            axes = [figure.add_subplot(grid[divmod(i, wide)]) for i in range(n)]
            outer = [i % wide == 0 for i in range(n)]
        for one, name in zip(axes, outputs, strict=True):
            one.set_title(shorten(name), fontsize="medium", **LITERAL)
        return cls(list(axes), outer)

    def result(self) -> Any:
        """Return what a picture returns: one Axes, or an array of them."""
        if len(self.axes) == 1:
            return self.axes[0]
        result = np.empty(len(self.axes), object)
        result[:] = self.axes
        return result

    def width(self, names: Sequence[str]) -> float:
        """Return about how wide each panel will be beside the names, in points."""
        part = sum(self.outer) / len(self.outer)  # of the panels have names of their own
        return width_beside(self.axes[0], part * names_in_points(names))

    def share(self, axis: str, scale: str) -> None:
        """Give all panels the same limits of values, "x" or "y", if they can be compared."""
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
    """Tell whether outputs have one unit, as classes have, or at least sizes that are alike.

    The outputs of a regressor may be a price and a share, which no axis shows together.
    """
    return scale not in ("", "prediction") or sizes.max() <= ALIKE * sizes.min()


def colours_of(n: int) -> list[Any]:
    """Return n colours to tell n things apart."""
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    from matplotlib import colormaps

    return list(colormaps["turbo"](np.linspace(0.05, 0.95, n)))


def ink() -> str:
    """Return the colour of text, which is readable on the user's background."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def shorten(name: Any, longest: int = LONGEST) -> str:
    """Return a name as one short line: what cannot be printed is escaped, the middle left out."""
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name))
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[-tail:]}"


def rows(n: int) -> str:
    """Return a number of rows."""
    return f"{count(n)} row{'s' if n != 1 else ''}"


def rows_drawn(drawn: int, n: int) -> str:
    """Return how many rows are drawn, "" if all of them are."""
    return f"{count(drawn)} of {rows(n)} drawn" if drawn < n else ""


def others(n: int) -> str:
    """Return the name of the columns that are summed up."""
    return f"{count(n)} other column{'s' if n > 1 else ''}"


def check(explanation: Any, output: Any, max_features: Any = 1) -> list[Explanation]:
    """Return the explanations of the output chosen or of all outputs, or say what is wrong."""
    if not isinstance(explanation, Explanation):
        raise TypeError(
            "explanation must be an Explanation, which explainer.explain(X) returns; got "
            f"{brief(explanation)}"
        )
    check_count("max_features", max_features)
    if len(explanation) == 0:
        raise ValueError("this explanation has no rows to draw")
    if output is not None:
        return [explanation.select(output)]
    return [explanation.select(name) for name in explanation.output_names]


def check_count(name: str, value: Any) -> None:
    """Refuse what is no number of things."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r} must be an int, at least 1")


def values_of(explanation: Explanation, centered: bool) -> np.ndarray:
    """Return the values to draw, (n, g)."""
    return explanation.values - explanation.offset if centered else explanation.values


def errors_of(explanation: Explanation, centered: bool) -> np.ndarray | None:
    """Return the standard errors of the values to draw, (n, g), or None if they are exact."""
    return explanation.centered().std_error if centered else explanation.std_error


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


@dataclass
class Ranking:
    """The columns by importance: those to draw, the rest to sum up, and the names to write."""

    first: np.ndarray  # (m,) positions, the most important one first
    rest: np.ndarray  # (g - m,) positions

    @classmethod
    def of(cls, sizes: np.ndarray, max_features: int) -> Ranking:
        """Rank by sizes, ties in the order of the columns."""
        order = np.argsort(-sizes, kind="stable")
        keep = len(order) if len(order) <= max_features else max_features
        return cls(order[:keep], order[keep:])

    def names(self, explanation: Explanation) -> list[str]:
        """Return the names to write."""
        names = [shorten(explanation.feature_names[j]) for j in self.first]
        return [*names, others(len(self.rest))] if len(self.rest) else names

    def columns(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the columns drawn, and the sum of the rest, (n, m) or (n, m + 1)."""
        drawn = values[:, self.first]
        if not len(self.rest):
            return drawn
        return np.column_stack([drawn, values[:, self.rest].sum(axis=1)])


def mean_sizes(values: Sequence[np.ndarray], scale: str) -> np.ndarray:
    """Return the mean over rows and outputs of |value|, (g,), by which columns are ranked.

    Outputs that cannot be compared count alike, by the shares that columns have in them.
    """
    means = np.array([np.abs(v).mean(axis=0) for v in values])  # (k, g)
    totals = means.sum(axis=1, keepdims=True)
    if not comparable(scale, totals):
        means = np.divide(means, totals, out=np.zeros_like(means), where=totals > 0)
    return means.mean(axis=0)


def mean_and_error(sizes: np.ndarray, std_error: np.ndarray | None, ranking: Ranking) -> tuple:
    """Return the mean of sizes, (n, g), and its standard error, for columns drawn and the rest.

    The error has two parts: that of a mean over rows, and that of approximate values. The second is
    bounded by their mean: rows share points, so their errors need not average out.
    """
    sizes = ranking.columns(sizes)  # (n, m)
    n = len(sizes)
    error = sizes.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(sizes.shape[1])
    if std_error is not None:
        error = np.hypot(error, ranking.columns(std_error).mean(axis=0))
    return sizes.mean(axis=0), error


def name_rows(ax: Axes, names: list[str], outer: bool = True) -> None:
    """Write names on the y axis, the first on top; not where panels on the left have them."""
    ax.set_yticks(np.arange(len(names)), names if outer else [""] * len(names), **LITERAL)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def bare(ax: Axes, *sides: str) -> None:
    """Take spines away."""
    ax.spines[[*sides]].set_visible(False)


def label_x(ax: Axes, label: str, years: bool = False) -> None:
    """Name an x axis of numbers, whose ticks then keep apart; `years`: they may be years."""
    from skattr.plot.ticks import keep_apart, write_numbers

    ax.set_xlabel(label, **LITERAL)
    write_numbers(ax.xaxis, years)
    keep_apart(ax)


def label_y(ax: Axes, label: str, years: bool = False) -> None:
    """Name a y axis of numbers; `years`: they may be years."""
    from skattr.plot.ticks import write_numbers

    ax.set_ylabel(label, **LITERAL)
    write_numbers(ax.yaxis, years)


def zero_line(ax: Axes, vertical: bool = True) -> None:
    """Draw the line of no attribution, behind everything."""
    (ax.axvline if vertical else ax.axhline)(0, color=GREY, linewidth=0.8, zorder=0.5)


def legend(ax: Axes, entries: Sequence[tuple[Any, str]], **options: Any) -> None:
    """Draw a legend of (artist, name), names taken literally."""
    artists = [artist for artist, _ in entries]
    # matplotlib leaves out names that begin with "_", so they are written in afterwards
    drawn = ax.legend(artists, ["-"] * len(artists), frameon=False, fontsize="small", **options)
    for text, (_, name) in zip(drawn.get_texts(), entries, strict=True):
        text.set(text=name, **LITERAL)


def legend_above(ax: Axes, entries: Sequence[tuple[Any, str]], titled: bool) -> None:
    """Draw a legend on the right above the axes, and above their title if they have one."""
    legend(ax, entries, ncols=2, loc="lower right", bbox_to_anchor=(1, 1),
           borderaxespad=2.2 if titled else 0.2)  # fmt: skip


def height_of(n_rows: int) -> float:
    """Return the height of a figure with so many rows of names."""
    return max(1.1 + 0.3 * n_rows, 2.2)


def even(n: int, most: int) -> np.ndarray:
    """Return positions of at most so many of n, evenly spaced, both ends among them."""
    if n <= most:
        return np.arange(n)
    return np.linspace(0, n - 1, most).round().astype(np.intp)


class NoLevel(NamedTuple):
    """A row of a curve's table of levels that is not a level: missing, or any other."""

    label: str


def raw_text(value: Any, longest: int = 20) -> str:
    """Return one raw value as a few characters; a level called as `NoLevel` is in quotes."""
    if isinstance(value, NoLevel):
        return value.label
    if isinstance(value, str) and value in ("missing", "any other"):
        return repr(value)
    return shorten(raw(value), longest)


def text_width(letters: float, points: float) -> float:
    """Return about how wide a text is, in points."""
    return 0.62 * letters * points


def font_points(size: Any) -> float:
    """Return a size of the user's font in points."""
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size).get_size_in_points()


def names_in_points(names: Sequence[str]) -> float:
    """Return about how wide names on the y axis are, in points."""
    size = _imported("matplotlib").rcParams["ytick.labelsize"]
    return text_width(max(map(len, names)), font_points(size))


def more_for(names: Sequence[str]) -> float:
    """Return by how much names ask for a wider figure, in inches."""
    return max(0.0, names_in_points(names) / 72 - 1.6)


def width_beside(ax: Axes, names: float) -> float:
    """Return about how wide axes will be once names of a width have room on the left, in points."""
    now = width_in_points(ax)
    return max(now / 0.775 - names - 12, 0.3 * now)  # 0.775: before any layout


def width_in_points(ax: Axes) -> float:
    """Return the width of axes as they are now, in points."""
    return ax.get_window_extent().width / ax.figure.dpi * 72


def height_in_points(ax: Axes) -> float:
    """Return the height of axes as they are now, in points."""
    return ax.get_window_extent().height / ax.figure.dpi * 72

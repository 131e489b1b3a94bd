"""What all pictures share: axes, colours, names, numbers, and the choice of columns to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from skattr.explanation import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers tell apart
BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")  # fmt: skip
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER)
GREY = "#8C8C8C"  # readable on white and on black
LONGEST = 32  # characters of a name that are drawn
TALLEST = 160.0  # inches: beyond 2^16 pixels no picture can be saved

LITERAL: dict[str, Any] = {
    "parse_math": False,
    "usetex": False,
}  # a column named $x_1$ is drawn as that


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of a size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("skattr.plot needs matplotlib: pip install 'skattr[plot]'") from error
    return plt.subplots(figsize=(width, min(height, TALLEST)), layout="constrained")[1]


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


def number(value: float, sign: bool = False) -> str:
    """Return a number in four digits, with a true minus."""
    text = f"{value:{'+' if sign else ''}.4g}"
    return text.replace("-", "−")


def count(n: int) -> str:
    """Return a number of things, 100 000."""
    return f"{n:_}".replace("_", " ")


def rows(n: int) -> str:
    """Return a number of rows."""
    return f"{count(n)} row{'s' if n != 1 else ''}"


def rows_drawn(drawn: int, n: int) -> str:
    """Return how many rows are drawn, "" if all of them are."""
    return f"{count(drawn)} of {rows(n)} drawn" if drawn < n else ""


def others(n: int) -> str:
    """Return the name of the columns that are summed up."""
    return f"{count(n)} other column{'s' if n > 1 else ''}"


def check(explanation: Any, output: Any, max_features: Any = 1) -> Explanation:
    """Return the explanation of one output, or say what is wrong."""
    if not isinstance(explanation, Explanation):
        raise TypeError(f"an Explanation is drawn, not a {type(explanation).__name__}")
    check_count("max_features", max_features)
    if len(explanation) == 0:
        raise ValueError("this explanation has no rows to draw")
    if output is None and len(explanation.output_names) > 1:
        raise ValueError(which_output(explanation.output_names))
    return explanation if output is None else explanation.select(output)


def which_output(names: tuple[str, ...]) -> str:
    """Return the complaint that an output has to be chosen."""
    return f"there are {len(names)} outputs; choose one by output=, of {str(names)[1:-1]}"


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


def value_label(centered: bool, scale: str, output: str, what: str = "{}") -> str:
    """Return the label of an axis of values: what they are, and on which scale."""
    words = what.format("attribution, centred" if centered else "attribution")
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


def mean_and_error(values: np.ndarray, std_error: np.ndarray | None, ranking: Ranking) -> tuple:
    """Return mean |value| and its standard error, for the columns drawn and the rest.

    The error has two parts: that of a mean over rows, and that of approximate values. The second is
    bounded by their mean: rows share points, so their errors need not average out.
    """
    sizes = ranking.columns(np.abs(values))  # (n, m)
    n = len(sizes)
    error = sizes.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(sizes.shape[1])
    if std_error is not None:
        error = np.hypot(error, ranking.columns(std_error).mean(axis=0))
    return sizes.mean(axis=0), error


def name_rows(ax: Axes, names: list[str]) -> None:
    """Write names on the y axis, the first on top."""
    ax.set_yticks(np.arange(len(names)), names, **LITERAL)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def bare(ax: Axes, *sides: str) -> None:
    """Take spines away."""
    ax.spines[[*sides]].set_visible(False)


def label_x(ax: Axes, label: str) -> None:
    """Name an x axis of numbers, whose ticks then keep apart."""
    from skattr.plot.ticks import keep_apart

    ax.set_xlabel(label, **LITERAL)
    keep_apart(ax)


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


def raw_text(value: Any) -> str:
    """Return one raw value as a few characters; a level called as `NoLevel` is in quotes."""
    if isinstance(value, NoLevel):
        return value.label
    if isinstance(value, str) and value in ("missing", "any other"):
        return repr(value)
    missing = pd.isna(value)
    if isinstance(missing, bool | np.bool_) and missing:
        return "missing"
    if isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer):
        return number(float(value)) if abs(int(value)) > 10**9 else f"{value}".replace("-", "−")
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, pd.Timestamp) and value == value.normalize():
        return str(value.date())
    return shorten(value, 20)

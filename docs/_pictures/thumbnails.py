"""Draw the thumbnails of gallery pages that print or are not run: one sketch for each script.

Run it: python docs/_pictures/thumbnails.py docs/_static/thumbnails
"""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

BLUE, ORANGE, INK, PALE = "#0072b2", "#d55e00", "#33475b", "#cfe3f0"
STEPS = np.array([1.0, 1.3, 1.2, 2.0, 2.6, 2.4, 3.2, 3.5, 3.5])


def block(ax: Axes, x: float, y: float, width: float, height: float, colour: str = PALE) -> None:
    """Draw a rectangle with an outline."""
    ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=INK, linewidth=1.5))


def write(ax: Axes, x: float, y: float, text: str, size: float = 22, colour: str = INK) -> None:
    """Write centred text."""
    ax.text(x, y, text, fontsize=size, ha="center", va="center", color=colour)


def quickstart(ax: Axes) -> None:
    """Draw a step curve, and the integral below it."""
    at = np.arange(9)
    ax.fill_between(at, STEPS, step="post", color=BLUE, alpha=0.15)
    ax.step(at, STEPS, where="post", color=BLUE, linewidth=3)
    write(ax, 5.2, 1.1, "∫ f dμ", 28)


def custom_measure(ax: Axes) -> None:
    """Draw a curve, and two points on it with the weights ½ and -½."""
    x = np.linspace(0.3, 7.7, 200)
    ax.plot(x, 2 + 1.3 * np.sin(x / 1.6 - 1.2), color=BLUE, linewidth=3)
    for at, weight in ((2.4, "−½"), (5.0, "+½")):
        y = 2 + 1.3 * np.sin(at / 1.6 - 1.2)
        ax.plot(at, y, "o", color=ORANGE, markersize=13)
        write(ax, at, y - 0.75, weight)


def pipeline_dataframe(ax: Axes) -> None:
    """Draw a table whose columns are of several kinds."""
    for i, texts in enumerate(
        (("61.7", "48.0", "90.2"), ("Mill", "Station", "–"), ("A", "C", "B"))
    ):
        for row, text in enumerate(texts):
            block(ax, 0.4 + 2.5 * i, 2.4 - row, 2.2, 0.9, (PALE, "#fbe3d3", "#dff0dc")[i])
            write(ax, 1.5 + 2.5 * i, 2.85 - row, text, 15)


def probabilities(ax: Axes) -> None:
    """Draw the logistic function as steps, between 0 and 1."""
    x = np.linspace(0.5, 7.5, 15)
    for y, text in ((0.6, "0"), (3.4, "1")):
        ax.axhline(y, color=INK, linewidth=1, linestyle=":")
        write(ax, 0.2, y, text, 16)
    ax.step(x, 0.6 + 2.8 / (1 + np.exp(4 - x) ** 1.6), where="post", color=BLUE, linewidth=3)


def which_measure(ax: Axes) -> None:
    """Draw a table of what holds and what does not."""
    for row, marks in enumerate(("✓✗✓", "✗✓✓", "✓✓✗")):
        for i, mark in enumerate(marks):
            write(ax, 2 + 2 * i, 3.1 - 1.1 * row, mark, 30, BLUE if mark == "✓" else ORANGE)


def from_shap(ax: Axes) -> None:
    """Draw bars of two libraries, side by side."""
    for i, height in enumerate((3.2, 2.1, 1.4, 0.6)):
        ax.bar([0.9 + 1.9 * i, 1.6 + 1.9 * i], height, width=0.65, color=[ORANGE, BLUE])
    write(ax, 5.2, 3.3, "shap", 20, ORANGE)
    write(ax, 5.2, 2.6, "skattr", 20, BLUE)


def report(ax: Axes) -> None:
    """Draw a page with a title, bars and a curve."""
    block(ax, 1.8, 0.1, 4.4, 3.8, "white")
    ax.plot([2.2, 4.6], [3.5, 3.5], color=INK, linewidth=5)
    for i, width in enumerate((3.2, 2.2, 1.2)):
        ax.barh(2.9 - 0.4 * i, width, left=2.2, height=0.25, color=BLUE)
    ax.step(np.linspace(2.2, 5.8, 9), 0.2 + STEPS / 2.8, where="post", color=ORANGE, linewidth=2.5)


def dask_parquet(ax: Axes) -> None:
    """Draw partitions above each other, and their sum."""
    for i in range(4):
        block(ax, 0.6, 0.3 + 0.9 * i, 3.0, 0.7)
        ax.annotate(
            "", (5.6, 2.0), (3.7, 0.65 + 0.9 * i), arrowprops={"arrowstyle": "-", "color": INK}
        )
    write(ax, 6.3, 2.0, "Σ", 44, BLUE)


def spark(ax: Axes) -> None:
    """Draw partitions side by side, each with its values."""
    for i in range(4):
        block(ax, 0.5 + 1.85 * i, 2.4, 1.5, 1.2)
        block(ax, 0.5 + 1.85 * i, 0.3, 1.5, 0.9, "#fbe3d3")
        ax.annotate(
            "", (1.25 + 1.85 * i, 1.25), (1.25 + 1.85 * i, 2.35),
            arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 2},
        )  # fmt: skip


def paper(ax: Axes) -> None:
    """Draw a rectangle in the unit square, and the line of a point through it."""
    block(ax, 2.0, 0.1, 4.0, 3.8, "white")
    block(ax, 2.9, 0.9, 2.2, 1.7)
    ax.plot([4.2, 4.2], [0.1, 3.9], color=ORANGE, linewidth=2, linestyle="--")
    ax.plot([4.2, 4.2], [0.9, 2.6], color=ORANGE, linewidth=5)
    ax.plot(4.2, 3.2, "o", color=INK, markersize=11)


SKETCHES: tuple[Callable[[Axes], None], ...] = (
    custom_measure, dask_parquet, from_shap, paper, pipeline_dataframe, probabilities, quickstart,
    report, spark, which_measure,
)  # fmt: skip

if __name__ == "__main__":
    for sketch in SKETCHES:
        figure, ax = plt.subplots(figsize=(4, 2.8))
        sketch(ax)
        ax.set(xlim=(0, 8), ylim=(0, 4))
        ax.axis("off")
        figure.savefig(Path(sys.argv[1], f"{sketch.__name__}.png"), dpi=100)
        plt.close(figure)

"""Static figures: drawn by skattr.plot, stored as small PNG images in data URIs."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr.curves.rounded import rounded
from skattr.explanation import Explanation
from skattr.report.settings import Settings
from skattr.report.tables import Column, spread_rows
from skattr.report.words import shown

WIDTH, DPI = 5.4, 106  # inches, and dots per inch: about as wide as the page shows them
COLOURS, SHADES = 48, 128  # of a PNG's palette: of lines and letters, and of a colour scale
MOST_LEVELS = 200  # levels that a curve is drawn for
MOST_POINTS = 1000  # of a cloud, and of a line of the beeswarm


@dataclass(frozen=True)
class Picture:
    """An image as a data URI, what it shows, and its size in pixels."""

    uri: str
    alt: str
    width: int
    height: int


@contextmanager
def style() -> Iterator[None]:
    """Draw with matplotlib's defaults; the user's settings are restored afterwards."""
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "font.size": 10,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "text.parse_math": False,
            }
        )
        # the font may lack letters of a name, and a name may be too long for the figure
        warnings.filterwarnings("ignore", message=".*[Gg]lyph")
        warnings.filterwarnings("ignore", message=".*layout|AutoDateLocator was unable")
        yield


def draw(paint: Callable[[Any], Any], alt: str, height: float, shaded: bool = False) -> Picture:
    """Call `paint` with new Axes and return what it drew."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    paint(ax)
    canvas.draw()
    if keep_inside(ax):
        canvas.draw()
    width, height_px = canvas.get_width_height()
    pixels = np.asarray(canvas.buffer_rgba())
    return Picture(_png(pixels, shaded), alt, width, height_px)


def keep_inside(ax: Any) -> bool:
    """Move labels of axes that would be cut to the end of their axis; return whether any was."""
    page, moved = ax.figure.bbox, False
    for axes in ax.figure.axes:
        for label, along in ((axes.xaxis.label, "x"), (axes.yaxis.label, "y")):
            box = label.get_window_extent()
            if along == "x" and (box.x1 > page.x1 or box.x0 < page.x0):
                label.set(x=1.0, horizontalalignment="right")
                moved = True
            elif along == "y" and (box.y1 > page.y1 or box.y0 < page.y0):
                label.set(y=1.0, horizontalalignment="right")
                room = 0.97 * (axes.bbox.y1 - page.y0)
                label.set_fontsize(label.get_fontsize() * min(1.0, room / box.height))
                moved = True
    return moved


def _png(pixels: np.ndarray, shaded: bool) -> str:
    """Return a PNG with a palette, a third of the size, as a data URI."""
    from PIL import Image  # comes with matplotlib

    image = Image.fromarray(pixels[..., :3].copy())
    # of a colour scale the rare colours count as much as those of large areas
    even, fast = Image.Quantize.MAXCOVERAGE, Image.Quantize.FASTOCTREE
    n, method = (SHADES, even) if shaded else (COLOURS, fast)
    image = image.quantize(n, method, dither=Image.Dither.NONE)
    palette = np.array(image.getpalette()).reshape(-1, 3)
    palette[(palette > 250).all(axis=1)] = 255  # white stays white
    image.putpalette(palette.ravel().tolist())
    buffer = io.BytesIO()
    image.save(buffer, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def without_data(explanation: Explanation) -> Explanation:
    """Return the explanation with every raw value replaced by an empty text."""
    names, k = [], 0
    for columns in explanation.columns:
        names.append(tuple(f"x{k + i}" for i in range(len(columns))))
        k += len(columns)
    return replace(
        explanation, data=np.full((len(explanation), k), "", object), columns=tuple(names)
    )


def overview(
    importance: Explanation, explanation: Explanation, output: str, settings: Settings
) -> tuple[Picture, Picture]:
    """Return the pictures of importance and of all values of one output."""
    from skattr import plot

    max_features = settings.max_features
    n = min(max_features, len(explanation.feature_names))

    def bars(ax: Any) -> None:
        interval = None if importance.importance_by_fold is None else "background"
        plot.bar(importance, max_features=max_features, interval=interval, ax=ax)
        name_unit(ax, settings)

    def swarm(ax: Any) -> None:
        plot.beeswarm(explanation, max_features=max_features, max_points=MOST_POINTS, ax=ax)
        name_unit(ax, settings)

    of = f" of {output}"
    height = 1.0 + 0.28 * n
    return (
        draw(
            bars,
            f"Bar chart: importance{of}, mean of |centred value|, of {n} columns",
            height,
        ),
        draw(
            swarm,
            f"Beeswarm: centred values{of} of the rows explained, for {n} columns",
            1.3 + 0.45 * n,
            shaded=True,
        ),
    )


def waterfall(
    explanation: Explanation, row: int, label: str, output: str, settings: Settings
) -> Picture:
    """Return the waterfall of one row."""
    from skattr import plot

    def paint(ax: Any) -> None:
        plot.waterfall(explanation, row, max_features=12, ax=ax)
        name_unit(ax, settings)

    n = min(12, len(explanation.feature_names))
    alt = f"Waterfall of row {label}: from the mean of f to the prediction"
    return draw(paint, alt if output == "prediction" else f"{alt}, {output}", 1.6 + 0.28 * n)


def name_unit(ax: Any, settings: Settings) -> None:
    """Write the unit of the output on an axis of values."""
    if settings.output_unit:
        ax.set_xlabel(f"{ax.get_xlabel()} in {settings.output_unit}", parse_math=False)


def add_units(ax: Any, unit: str, output_unit: str) -> None:
    """Write the units of a column and of the output on the axes of a curve."""
    from skattr.plot import drawing

    if unit:
        name, line, rest = ax.get_xlabel().partition("\n")
        ax.set_xlabel(f"{name} in {unit}{line}{rest}", **drawing.LITERAL)
    if output_unit:
        ax.set_ylabel(f"{ax.get_ylabel()} in {output_unit}", **drawing.LITERAL)


def panel(
    curve: Any, column: Column, values: np.ndarray, support: Any, output: str, settings: Settings
) -> Picture | None:
    """Draw the curve of a column or, if it has none that is cheap to draw, the rows as points.

    Without data only steps are drawn, at round numbers.
    """
    include_data = settings.include_data
    if column.is_group or (not include_data and (curve is None or curve.kind != "steps")):
        return None
    if is_flat(curve, column):
        return None
    if curve is None or not is_drawn(curve):
        scale = "" if curve is None else curve.scale
        return _cloud(column, values, output, scale, settings.output_unit)
    from skattr import plot

    data = column.parts[0] if include_data else None
    curve = curve if include_data else rounded(curve)

    def paint(ax: Any) -> None:
        band = "background" if curve.n_folds else None
        plot.curve(curve, data=data, support=support if include_data else None, band=band, ax=ax)
        add_units(ax, column.unit, settings.output_unit)

    return draw(
        paint,
        f"Curve: centred attribution of {column.name} to {output}, as a function of its value",
        3.8 if curve.kind == "levels" else 3.2,  # names of levels stand upright
    )


def is_flat(curve: Any, column: Column) -> bool:
    """Return whether the curve of a column of levels is one step, as that of `Expectation`."""
    return column.is_level and curve is not None and curve.kind == "steps"


def is_drawn(curve: Any) -> bool:
    """Return whether the curve is drawn: it has few levels, and no model is evaluated for it."""
    if curve.kind == "levels":
        return len(curve.to_frame()) <= MOST_LEVELS
    return curve.kind != "function"  # which would evaluate the model again


def _cloud(
    column: Column, values: np.ndarray, output: str, scale: str, output_unit: str
) -> Picture | None:
    """Draw the rows explained as points (x_j, value)."""
    if column.is_level:
        return None
    rows = spread_rows(len(values), MOST_POINTS)
    x, dates = axis_places(column.parts[0].iloc[rows])
    if not np.isfinite(x.astype(float)).any():
        return None

    def paint(ax: Any) -> None:
        from skattr.plot import drawing

        ax.axhline(0, color="0.75", linewidth=0.8, zorder=0)
        ax.plot(x, values[rows], ".", color="#0072B2", alpha=0.5, markersize=5)
        if dates:
            drawing.date_ticks(ax, 7)
        drawing.label_x(ax, shown(column.name, 40), years=True)
        drawing.label_y(ax, drawing.value_label(True, scale, output))
        add_units(ax, column.unit, output_unit)

    alt = f"Points: centred values of {column.name} for {output} at the rows explained"
    return draw(paint, alt, 3.0)


def axis_places(column: pd.Series) -> tuple[np.ndarray, bool]:
    """Return the places of raw values on an axis, and whether they are dates."""
    if column.dtype.kind == "m":
        return column.dt.total_seconds().to_numpy(), False
    if column.dtype.kind == "M":
        naive = pd.to_datetime(column, utc=True).dt.tz_localize(None)
        days = (naive - pd.Timestamp(0)) / pd.Timedelta(days=1)  # as matplotlib counts
        return days.to_numpy(), True
    return frames.to_float(column), False

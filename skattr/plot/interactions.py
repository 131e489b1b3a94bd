"""The strength of interactions, as bars or as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skattr._utils.messages import brief
from skattr._utils.numbers import small
from skattr.decomposition import Decomposition
from skattr.plot import drawing
from skattr.plot.selection import check_count, output_positions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("bars", "matrix")


def interactions(
    decomposition: Decomposition,
    *,
    kind: str = "bars",
    output: Any = None,
    max_pairs: int = 15,
    ax: Any = None,
) -> Any:
    """Draw H² of pairs, the strongest first, as bars or as a matrix of columns.

    H² is the part of the joint effect of two columns that is not the sum of their single effects.
    The title says how much of the variance of the model single columns and pairs explain. Several
    outputs have one panel each.

    Parameters
    ----------
    decomposition : Decomposition
        What `skattr.decompose` returned.
    kind : {"bars", "matrix"}, default "bars"
        One bar per pair; or all columns of the pairs drawn against each other.
    output : str or int, optional
        The output, by name or position; all of them by default.
    max_pairs : int, default 15
        The number of pairs drawn; the axis says how many there are.
    ax : matplotlib Axes, optional
        Where to draw, one Axes for each output drawn; a new figure by default.

    Returns
    -------
    Axes, or array of Axes if there are several outputs

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    >>> parts = skattr.decompose(skattr.MeasureExplainer(tree).fit(X), X)
    >>> ax = skattr.plot.interactions(parts, max_pairs=3)
    >>> ax.get_xlabel().splitlines()[0]
    'H², 3 of 45 pairs drawn'
    """
    if not isinstance(decomposition, Decomposition):
        raise TypeError(
            "decomposition must be a Decomposition, which skattr.decompose(explainer, X) returns; "
            f"got {brief(decomposition)}"
        )
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {brief(kind)}")
    check_count("max_pairs", max_pairs)
    outputs = output_positions(decomposition.output_names, output)
    tables = [decomposition.pairs(decomposition.output_names[o]) for o in outputs]
    first = [table[:max_pairs] for table in tables]
    titles = [decomposition.output_names[o] for o in outputs]
    draw, height = (_draw_bars, 0.32) if kind == "bars" else (_draw_matrix, 0.42)
    names = list(map(drawing.name_of_pair, first[0].index))
    n_lines = len(names) if kind == "bars" else len(_columns(first[0]))
    high = max(1.6 + height * n_lines, 2.6)
    panels = drawing.Panels.of(ax, titles, (6.8, high), (5.0, high + 0.3), names)
    for axes, table, o in zip(panels.axes, first, outputs, strict=True):
        draw(axes, table)
        n = len(tables[0])
        some = f"{len(table)} of {n} pairs drawn" if len(table) < n else f"{n} pairs"
        axes.set_xlabel(f"H², {some}\n{_shares(decomposition, o)}", **drawing.LITERAL)
    return panels.result()


def _shares(decomposition: Decomposition, o: int) -> str:
    """Return the shares of single columns and pairs in words."""
    shares = np.asarray(decomposition.shares, float).reshape(3, -1)[:, o]
    single, pairs, left = (f"{100 * share:.0f} %" for share in shares)
    return f"variance: single columns {single}, pairs {pairs}, left {left}"


def _draw_bars(ax: Axes, table: pd.Series) -> None:
    """Draw one bar per pair, the strongest on top, with its number."""
    places = np.arange(len(table))
    ax.barh(places, table, height=0.7, color=drawing.BLUE)
    for place, size in zip(places, table, strict=True):
        ax.annotate(small(round(size, 4)), (size, place), (4, 0), textcoords="offset points",
                    va="center", fontsize="small")  # fmt: skip
    drawing.name_rows(ax, list(map(drawing.name_of_pair, table.index)))
    ax.set_xlim(0, 1.15 * max(float(table.max()), 1e-3))
    drawing.hide_spines(ax, "top", "right")


def _columns(table: pd.Series) -> list[Any]:
    """Return the columns of pairs, in the order in which they appear."""
    return list(dict.fromkeys(label for pair in table.index for label in pair))


def _draw_matrix(ax: Axes, table: pd.Series) -> None:
    """Draw the pairs as squares of a matrix; those that are not drawn stay empty."""
    columns = _columns(table)
    position = {label: p for p, label in enumerate(columns)}
    matrix = np.full((len(columns), len(columns)), np.nan)
    for (a, b), size in table.items():
        matrix[position[a], position[b]] = matrix[position[b], position[a]] = size
    top = max(float(table.max()), 1e-3)
    ax.imshow(matrix, cmap="Blues", vmin=0, vmax=top, aspect="auto")
    for (p, q), size in np.ndenumerate(matrix):
        if not np.isnan(size):
            ink = "white" if size > 0.6 * top else "black"
            ax.text(
                q, p, small(round(size, 4)), ha="center", va="center", fontsize="small", color=ink
            )
    names = [drawing.shorten(label, 20) for label in columns]
    ax.set_yticks(np.arange(len(names)), names, **drawing.LITERAL)
    ax.set_xticks(np.arange(len(names)), names, rotation=40, ha="right", **drawing.LITERAL)
    ax.tick_params(length=0)
    drawing.hide_spines(ax, "top", "right", "left", "bottom")

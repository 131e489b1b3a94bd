"""The section on interactions: how much single columns explain, and the strongest pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.numbers import count, percent, small
from skattr.decomposition import Decomposition, decompose
from skattr.explanation import Explanation
from skattr.measures.base import as_terms
from skattr.pieces import Additive, Boxes, Products
from skattr.report import figures
from skattr.report.rows import ExplainedRows
from skattr.report.settings import Settings
from skattr.report.tables import spread_rows
from skattr.report.words import shown

ROWS = 2000  # over which shares are computed at most
NAMED = 8  # pairs in the table
DRAWN = 3  # pairs whose surfaces are drawn
VALUES = "interaction · "  # how the label of values begins
SMALL = 1e-3  # share of the variance below which a pair is not shown


@dataclass(frozen=True)
class Interactions:
    """Shares in words, and the strongest pairs of one output."""

    single: str  # the share of single columns
    sentence: str
    pairs: list[tuple[str, str, str]]  # the name, the share of the variance, and H²
    pictures: list[figures.Picture]


def find_interactions(explainer: Any, explanation: Explanation) -> Decomposition | None:
    """Return the decomposition over the rows of an explanation, None where it does not apply.

    It applies where pairs are exact and cheap: to models that were read, and measures that depend
    on the own columns, if the explainer keeps its background.
    """
    terms = [term for _, term in as_terms(explainer.measure_)]
    own = all(term.depends != "row" and not term.no_pairs for term in terms)
    own = own and any(term.depends != "nothing" for term in terms)
    read = isinstance(explainer.pieces_, Boxes | Additive | Products)
    every = len(explanation.feature_names) > 1 and len(explanation) > 1
    if not (own and read and every and explainer.keeps_background_):
        return None
    if explanation.predictions is None or not (np.ptp(explanation.predictions, axis=0) > 0).all():
        return None
    rows = spread_rows(len(explanation), ROWS)
    return decompose(explainer, frames.take_rows(explanation.data, rows))


def interactions(
    explainer: Any, explained: ExplainedRows, parts: Decomposition, o: int, settings: Settings
) -> Interactions:
    """Return the section of output o."""
    explanation = explained.explanation
    one = len(parts.output_names) == 1
    name = parts.output_names[o]
    shares = np.asarray(parts.shares, float).reshape(3, -1)[:, o]
    single, pairs, left = (percent(part, 1) for part in shares)
    rows = "all rows" if parts.n_rows == explained.n_rows else f"{count(parts.n_rows)} of the rows"
    sentence = (
        f"Over {rows}, single columns explain {single} of the variance of the predictions, pairs "
        f"of columns add {pairs}, and {left} is left to three and more columns together."
    )
    table = parts.strength[parts.strength["kind"] == "pair"]
    share, h2 = (table[what if one else f"{what}_{name}"] for what in ("share", "H2"))
    order = np.argsort(-share.to_numpy(float), kind="stable")
    strongest = [i for i in order if share.iloc[i] >= SMALL][:NAMED]
    listed = [
        (
            f"{shown(table['first'].iloc[i])} × {shown(table['second'].iloc[i])}",
            percent(share.iloc[i], 1),
            small(round(h2.iloc[i], 4)),
        )
        for i in strongest
    ]
    drawn = [
        (table["first"].iloc[i], table["second"].iloc[i])
        for i in strongest[:DRAWN]
        if settings.include_data
    ]
    pictures = [_picture(explainer, explanation, pair, o, settings) for pair in drawn]
    if share[share > 0].sum() > shares[1] + SMALL:
        sentence += " Shares of single pairs overlap here, and add up to more."
    drawn_pairs = [picture for picture in pictures if picture is not None]
    return Interactions(percent(shares[0]), sentence, listed, drawn_pairs)


def _picture(
    explainer: Any, explanation: Explanation, pair: tuple[Any, Any], o: int, settings: Settings
) -> figures.Picture | None:
    """Draw what a pair of columns does together beyond each alone; groups have no surface."""
    from skattr import plot

    columns = dict(zip(explanation.feature_names, explanation.columns, strict=True))
    if any(len(columns.get(name, ())) != 1 for name in pair):
        return None
    output = explanation.output_names[o]
    surface = explainer.surface(*pair).select(output)
    names = f"{shown(pair[0])} and {shown(pair[1])}"

    def paint(ax: Any) -> None:
        plot.surface(surface, data=explanation.data, interaction=True, ax=ax)
        _name_units(ax, pair, settings)

    alt = f"What {names} do together beyond each alone, for {shown(output)}"
    return figures.draw(paint, alt, 3.8, shaded=True)


def _name_units(ax: Any, pair: tuple[Any, Any], settings: Settings) -> None:
    """Write the units of two columns and of the output on the axes of their picture."""
    units = {str(name): settings.units.get(name, "") for name in pair}
    for axes in ax.figure.axes:  # that of the colours, too
        for axis in (axes.xaxis, axes.yaxis):
            text = axis.get_label_text()
            unit = settings.output_unit if text.startswith(VALUES) else units.get(text, "")
            if unit:
                axis.set_label_text(f"{text} in {unit}", parse_math=False)

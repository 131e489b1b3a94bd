"""The section on what changed between two explainers: two models, or two periods of one.

The rows of the second are also explained by the first: what differs there is a change of the model
(or of its background), and not of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr._utils.numbers import MINUS, decimals, fixed, formatter
from skattr.explanation import Explanation
from skattr.report import figures
from skattr.report.notes import NAMED
from skattr.report.rows import ExplainedRows
from skattr.report.settings import Settings
from skattr.report.shapes import digits, with_unit
from skattr.report.tables import Column
from skattr.report.words import shown

DRAWN = 6  # columns whose curves are drawn, those that differ most
SMALL = 1e-9  # relative to all effects: smaller differences are rounding


@dataclass(frozen=True, eq=False)
class Other:
    """The explainer that comes first, its rows, and the rows of the second as it explains them.

    The last are None if the second lacks columns of the first.
    """

    explainer: Any
    explained: ExplainedRows
    same_rows: Explanation | None

    @classmethod
    def of(cls, explainer: Any, X: Any, features: Any, second: ExplainedRows, same: bool) -> Other:
        """Explain the rows; `same` is whether both have the same rows."""
        explained = ExplainedRows.explained(explainer, X, features)
        if same:
            return cls(explainer, explained, explained.explanation)
        data, names = second.explanation.data, list(explainer.column_names_)
        if frames.is_frame(data):
            if not set(names) <= set(frames.labels(data)):  # it cannot explain these rows
                return cls(explainer, explained, None)
            data = frames.reorder(data, names)
        return cls(explainer, explained, explainer.explain(data, features=features).centered())


@dataclass(frozen=True)
class Comparison:
    """What changed in one output: sentences, a line per column, and curves of both."""

    sentences: list[str]
    lines: list[tuple[str, ...]]  # the name, both importances, their change, and the difference
    pictures: list[figures.Picture]


def check_outputs(names: list[tuple[str, ...]]) -> None:
    """Refuse explainers whose outputs cannot be compared."""
    first, second = names
    if first != second and not len(first) == len(second) == 1:
        raise ValueError(
            f"both explainers must have the same outputs, got {list(first)} and {list(second)}"
        )


def compare(
    explainer: Any, explained: ExplainedRows, other: Other, o: int, settings: Settings
) -> Comparison:
    """Return what changed in output o, column by column."""
    second = _select(explained.explanation, o)
    first = _select(other.explained.explanation, o)
    again = None if other.same_rows is None else _select(other.same_rows, o)
    sizes = [
        dict(zip(one.explanation.feature_names, _column(one.size, o), strict=True))
        for one in (other.explained, explained)
    ]
    names = [*second.feature_names, *(n for n in first.feature_names if n not in sizes[1])]
    differences = {} if again is None else _differences(again, second)
    write = formatter([*sizes[0].values(), *sizes[1].values()])
    order = sorted(names, key=lambda n: -max(differences.get(n, 0.0), _change(sizes, n)))
    lines = [
        (
            shown(name),
            *(write(size[name]) if name in size else "not there" for size in sizes),
            write(sizes[1][name] - sizes[0][name]) if all(name in size for size in sizes) else "–",
            write(differences[name]) if name in differences else "–",
        )
        for name in order[: settings.max_features]
    ]
    drawn = [n for n in order[: settings.max_features] if differences.get(n, 0.0) > 0][:DRAWN]
    pictures = [_picture(explainer, other.explainer, second, n, o, settings) for n in drawn]
    return Comparison(
        _sentences(first, second, differences, sizes, order, settings),
        lines,
        [picture for picture in pictures if picture is not None],
    )


def _select(explanation: Explanation, o: int) -> Explanation:
    return explanation.select(explanation.output_names[o])


def _column(size: np.ndarray, o: int) -> list[float]:
    return (size if size.ndim == 1 else size[:, o]).tolist()


def _change(sizes: list[dict[Any, float]], name: Any) -> float:
    return abs(sizes[1].get(name, 0.0) - sizes[0].get(name, 0.0))


def _differences(again: Explanation, second: Explanation) -> dict[Any, float]:
    """Return the mean |difference| of the effects at the same rows, of columns that both have."""
    positions = {name: j for j, name in enumerate(again.feature_names)}
    whole = float(np.abs(second.values).mean(axis=0).sum())
    differences = {}
    for j, name in enumerate(second.feature_names):
        if name in positions:
            off = float(np.abs(second.values[:, j] - again.values[:, positions[name]]).mean())
            differences[name] = off if off > SMALL * whole else 0.0
    return differences


def _sentences(
    first: Explanation,
    second: Explanation,
    differences: dict[Any, float],
    sizes: list[dict[Any, float]],
    order: list[Any],
    settings: Settings,
) -> list[str]:
    one, two = map(shown, settings.labels)
    lines = []
    if first.predictions is not None and second.predictions is not None:
        means = [float(each.mean()) for each in (first.predictions, second.predictions)]
        places = decimals(max(means, key=abs))
        words = [with_unit(fixed(mean, places), settings.output_unit) for mean in means]
        change = fixed(means[1] - means[0], places, sign=True, minus=MINUS)
        lines.append(
            f"The mean prediction over the rows explained is {words[0]} for “{one}” and {words[1]} "
            f"for “{two}”: a change of {with_unit(change, settings.output_unit)}."
        )
    changed = [name for name in order if differences.get(name, 0.0) > 0]
    if changed:
        name = changed[0]
        lines.append(
            f"At the same rows, the effect of {shown(name)} differs most: by "
            f"{_amount(differences[name], settings)} on average."
        )
    elif differences:
        lines.append("At the same rows, the effects of all columns are the same (difference 0).")
    both = [name for name in order if all(name in size for size in sizes)]
    if both:
        name = max(both, key=lambda each: _change(sizes, each))
        before, after = (size[name] for size in sizes)
        if _change(sizes, name) > SMALL * sum(sizes[1].values()):
            way = "gained" if after > before else "lost"
            lines.append(
                f"{shown(name)} has {way} most importance: from {_amount(before, settings)} to "
                f"{_amount(after, settings)}."
            )
    for size, missing in ((sizes[0], two), (sizes[1], one)):
        alone = [shown(name) for name in order if name in size and name not in both]
        if alone:
            what = "1 column is" if len(alone) == 1 else f"{len(alone)} columns are"
            lines.append(f"{what} not in {missing}: {', '.join(alone[:NAMED])}.")
    return lines


def _amount(value: float, settings: Settings) -> str:
    return with_unit(digits(value, 4), settings.output_unit)


def _picture(
    explainer: Any, other: Any, second: Explanation, name: Any, o: int, settings: Settings
) -> figures.Picture | None:
    """Draw the curves of a column of both explainers; None where one has none that is cheap."""
    from skattr import plot

    j = second.feature_names.index(name)
    column = Column(second, j, *settings.about(name))
    curves = []
    for each in (other, explainer):
        column.find_curve(each, drawn=False)
        curve = column.curve_of(o)
        if curve is None or not figures.is_drawn(curve) or figures.is_flat(curve, column):
            return None
        curves.append(curve)
        column.curve = None
    kinds = {curve.kind for curve in curves}
    if not settings.include_data:
        if kinds != {"steps"}:
            return None
        curves = [figures.rounded(curve) for curve in curves]
    if len(kinds) > 1 and "levels" in kinds:
        return None
    for curve in curves:
        curve.output_names = curves[0].output_names
    data = column.parts[0] if settings.include_data else None

    def paint(ax: Any) -> None:
        plot.curve(curves, data=data, labels=[shown(label, 40) for label in settings.labels], ax=ax)
        figures.add_units(ax, column.unit, settings.output_unit)

    alt = f"Curves: centred attribution of {column.name} in both, as a function of its value"
    return figures.draw(paint, alt, 3.8 if "levels" in kinds else 3.2)

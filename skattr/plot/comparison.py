"""Two measures side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.importance import draw_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def compare(
    first: Explanation,
    second: Explanation,
    *,
    names: Sequence[str] | None = None,
    output: Any = None,
    max_features: int = 15,
    centered: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the importance of columns in two explanations as pairs of bars, with error bars.

    Columns are ordered by the sum of both.

    Parameters
    ----------
    first, second : Explanation
        What to draw, of the same columns and on the same scale; rows may differ.
    names : two str, optional
        What to call them; their measures by default.
    output : str or int, optional
        The output, by name or position; needed if there are several.
    max_features : int, default 15
        Columns with bars of their own; the importance of all others is summed up in one last pair.
    centered : bool, default True
        Whether to take the offsets off.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    >>> joint, independent = (skattr.MeasureExplainer(tree, measure).fit(X).explain(X)
    ...                       for measure in ("partial_dependence", "product_marginal"))
    >>> ax = skattr.plot.compare(joint, independent)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['PartialDependence()', 'ProductMarginal()']
    """
    pair = [drawing.check(explanation, output, max_features) for explanation in (first, second)]
    scales = [explanation.scale for explanation in pair]
    if all(scales) and scales[0] != scales[1]:
        raise ValueError(f"the explanations are on two scales: {scales[0]} and {scales[1]}")
    places = [range(len(pair[0].feature_names)), _aligned(*pair)]
    values = [drawing.values_of(e, centered)[:, at] for e, at in zip(pair, places, strict=True)]
    errors = [drawing.errors_of(explanation, centered) for explanation in pair]
    errors = [e if e is None else e[:, at] for e, at in zip(errors, places, strict=True)]
    sizes = [np.abs(v).mean(axis=0) for v in values]
    ranking = drawing.Ranking.of(sizes[0] + sizes[1], max_features)
    labels = ranking.names(pair[0])
    titles = _titles(pair, names)

    ax = drawing.new_axes(ax, 6.8, drawing.height_of(round(1.4 * len(labels))) + 0.3)
    lines, bars = np.arange(len(labels)), []
    for side in (0, 1):
        mean, error = drawing.mean_and_error(values[side], errors[side], ranking)
        shifted = lines + (side - 0.5) * 0.38
        bars.append(ax.barh(shifted, mean, height=0.36, color=drawing.PALETTE[side]))
        draw_errors(ax, mean, error, shifted)
    drawing.name_rows(ax, labels)
    drawing.bare(ax, "top", "right")
    if not any(size.any() for size in sizes):
        ax.set_xlim(0, 1)
    drawing.legend(ax, list(zip(bars, titles, strict=True)))
    label = drawing.value_label(
        centered, scales[0] or scales[1], pair[0].output_names[0], "mean of |{}|"
    )
    drawing.label_x(ax, label)
    return ax


def _aligned(first: Explanation, second: Explanation) -> list[int]:
    """Return where the second explanation has the columns of the first."""
    if first.feature_names == second.feature_names:  # the same labels may stand there twice
        return list(range(len(first.feature_names)))
    where = {name: j for j, name in enumerate(second.feature_names)}
    missing = {*first.feature_names} ^ {*second.feature_names}
    if missing or len(where) < len(second.feature_names):
        names = sorted(map(str, missing)) or "names that stand there twice"
        raise ValueError(
            f"two explanations of the same columns are compared; these differ: {names}"
        )
    return [where[name] for name in first.feature_names]


def _titles(pair: Sequence[Explanation], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(f"names={names!r} must be two names")
        return [drawing.shorten(name, 60) for name in names]
    measures = [drawing.shorten(" ".join(e.measure.split()), 60) for e in pair]
    return measures if measures[0] != measures[1] else ["first", "second"]

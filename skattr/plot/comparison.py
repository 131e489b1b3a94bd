"""Two explanations side by side, such as those of two measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skattr.explanation import Explanation
from skattr.plot import drawing
from skattr.plot.bars import draw_errors, error_in_words
from skattr.plot.selection import Ranking, Selection, mean_and_error, mean_sizes


def compare(
    first: Explanation,
    second: Explanation,
    *,
    names: Sequence[str] | None = None,
    output: Any = None,
    max_features: int = 15,
    centered: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the importance of columns in two explanations as pairs of bars, with error bars.

    Columns are ordered by the sum of both. Several outputs have one panel each.

    Parameters
    ----------
    first, second : Explanation
        What to draw, of the same columns and on the same scale; rows may differ.
    names : two str, optional
        What to call them; their measures in words by default.
    max_features : int, default 15
        The number of columns with a pair of bars each; the others share one last pair, their sum.
    output, centered, ax
        As in `bar`.

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
    >>> joint, independent = (skattr.MeasureExplainer(tree, measure).fit(X).explain(X)
    ...                       for measure in ("partial_dependence", "product_marginal"))
    >>> ax = skattr.plot.compare(joint, independent)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['partial dependence', 'product marginal', '± 1 standard error over rows']
    """
    pair = [Selection.of(one, output, max_features, centered) for one in (first, second)]
    scales = [selection.scale for selection in pair]
    if all(scales) and scales[0] != scales[1]:
        raise ValueError(
            f"both explanations must be on the same scale, got {scales[0]} and {scales[1]}"
        )
    outputs = pair[0].outputs
    if len(pair[1].outputs) != len(outputs):
        raise ValueError(
            "compare needs two explanations of the same outputs, got "
            f"{first.output_names} and {second.output_names}; choose one by output="
        )
    columns = [range(len(first.feature_names)), _aligned(first, second)]
    sizes = [
        [np.abs(values[:, order]) for values in selection.values]
        for selection, order in zip(pair, columns, strict=True)
    ]
    scale = scales[0] or scales[1]
    ranking = Ranking.of(np.sum([mean_sizes(each, scale) for each in sizes], axis=0), max_features)
    labels = ranking.names(first)
    titles = _titles((first, second), names)

    height = drawing.height_of(round(1.4 * len(labels))) + 0.3
    panels = drawing.Panels.of(ax, outputs, (6.8, height), (3.8, height + 0.3), labels)
    lines = np.arange(len(labels))
    for o, axes in enumerate(panels.axes):
        bars, errors, high = [], [], 0.0
        for side in (0, 1):
            std_error = pair[side].errors(o)
            std_error = None if std_error is None else std_error[:, columns[side]]
            mean, error = mean_and_error(sizes[side][o], std_error, ranking)
            shifted = lines + (side - 0.5) * 0.38
            bars.append(axes.barh(shifted, mean, height=0.36, color=drawing.PALETTE[side]))
            words = error_in_words(std_error is not None)
            errors += draw_errors(axes, mean - error, mean + error, shifted, words)
            high = max(high, float((mean + error).max()))
        axes.set_xlim(0, (high or 1.0) * 1.05)
        drawing.name_rows(axes, labels, panels.outer[o])
        drawing.hide_spines(axes, "top", "right")
        if o == len(outputs) - 1:
            of_errors = {words: drawn for drawn, words in errors}
            entries = [*zip(bars, titles, strict=True), *((d, w) for w, d in of_errors.items())]
            drawing.legend_above(axes, entries, len(outputs) > 1)
        drawing.label_x(axes, drawing.value_label(centered, scale, outputs[o], "mean of |{}|"))
    panels.share("x", scale)
    return panels.result()


def _aligned(first: Explanation, second: Explanation) -> list[int]:
    """Return the positions in the second explanation of the columns of the first."""
    if first.feature_names == second.feature_names:  # some may be equal
        return list(range(len(first.feature_names)))
    where = {name: j for j, name in enumerate(second.feature_names)}
    missing = {*first.feature_names} ^ {*second.feature_names}
    if missing or len(where) < len(second.feature_names):
        names = sorted(map(str, missing)) or "names that are not unique"
        raise ValueError(
            f"compare needs two explanations of the same columns; these differ: {names}"
        )
    return [where[name] for name in first.feature_names]


def _titles(pair: Sequence[Explanation], names: Sequence[str] | None) -> list[str]:
    if names is not None:
        if isinstance(names, str) or len(names) != 2:
            raise ValueError(f"names must be two names, got {names!r}")
        return [drawing.shorten(name, 60) for name in names]
    words = [e.measure_name or " ".join(e.measure.split()) for e in pair]
    measures = [drawing.shorten(name, 60) for name in words]
    return measures if measures[0] != measures[1] else ["first", "second"]

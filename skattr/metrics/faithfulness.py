"""Faithfulness: the correlation of attributions with the effect of columns on predictions.

For one row x, the correlation over attributions j of |value_j|, centred, with the change of the
expected prediction when j alone is known, or j alone is not:

    inc:  |E[f(X) | X_j = x_j] − E f(X)|
    dec:  |f(x) − E[f(X) | X_−j = x_−j]|

The two versions, with conditional expectations, are those of XAI-Bench (Liu, Khandagale, White and
Neiswanger, 2021, "Synthetic benchmarks for scientific research in explainable machine learning").
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.measures import Conditional, Measure, as_measure

KINDS = ("inc", "dec")
_ROUNDING = 1e-12  # differences below this share of the numbers themselves are rounding


@dataclass(frozen=True, eq=False, repr=False)
class Faithfulness:
    """The correlations of `faithfulness`, one per row and output, and their mean.

    Parameters
    ----------
    rows : array (n,), or (n, k) for several outputs
        Correlation over attributions; NaN where it is undefined, because all |values| of the row
        or all changes are equal.
    changes : array (n, g), or (n, g, k)
        The changes of the expected prediction, with their sign.
    kind : {"inc", "dec"}
        The change: a column becomes known, or unknown.
    source : str
        Where the conditional expectations come from.
    support : array (n, g) or None
        Effective number of background rows behind each change, if the measure has one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0] + 2 * X[:, 1])
    >>> explainer = skattr.MeasureExplainer(tree).fit(X)
    >>> result = skattr.metrics.faithfulness(explainer.explain(X[:20]), explainer, X)
    >>> result.kind, result.changes.shape
    ('inc', (20, 3))
    """

    rows: np.ndarray
    changes: np.ndarray
    kind: str
    source: str
    support: np.ndarray | None = None

    @property
    def undefined(self) -> int | np.ndarray:
        """Number of rows without a correlation; (k,) for several outputs."""
        count = np.isnan(self.rows).sum(axis=0)
        return int(count) if count.ndim == 0 else count

    @property
    def mean(self) -> float | np.ndarray:
        """Mean over the rows that have a correlation, NaN if none has; (k,) for several outputs."""
        count = np.sum(~np.isnan(self.rows), axis=0)
        total = np.nansum(self.rows, axis=0)
        mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        return float(mean) if mean.ndim == 0 else mean

    def __repr__(self) -> str:
        mean = np.array2string(np.asarray(self.mean), precision=3)
        text = f"<Faithfulness kind={self.kind!r}, mean={mean}, {len(self.rows)} rows"
        if np.any(self.undefined):
            text += f", of which undefined: {self.undefined}"
        return f"{text}; {self.source}>"


def faithfulness(
    explanation: Explanation,
    explainer: MeasureExplainer,
    X_background: Any = None,
    *,
    kind: str = "inc",
    measure: Measure | str | None = None,
    truth: Any = None,
    sample_weight: Any = None,
) -> Faithfulness:
    """Return the correlation of |values| with changes of the expected prediction.

    For each row, over attributions j: the correlation of the absolute centred values with
    |E[f(X) | X_j = x_j] − E f(X)| ("inc": j becomes known) or with |f(x) − E[f(X) | X_−j = x_−j]|
    ("dec": j is redrawn given the others). The expectations are learned from a background: "dec"
    conditions on all other columns at once, which takes many rows (`support` is how many are behind
    each number). If the law of the data is known, give the changes themselves as `truth`.

    Parameters
    ----------
    explanation : Explanation
        The explanation, of any method. Its `offset` must be 0 if its values are already centred.
    explainer : MeasureExplainer
        A fitted one, whose model, output and settings are used; its measure is not.
    X_background : DataFrame or array (n, d), optional
        Rows to learn the conditional expectations from; required without `truth`.
    kind : {"inc", "dec"}, default="inc"
        The change.
    measure : Measure or str, optional
        The measure of the conditional expectations, `Conditional()` by default.
    truth : array, the shape of the values, optional
        The changes, if they are known: E[f(X) | X_j = x_j] − E f(X) for "inc",
        f(x) − E[f(X) | X_−j = x_−j] for "dec". Their sign does not matter.
    sample_weight : array (n,), optional
        Weights of the background's rows.

    Returns
    -------
    Faithfulness
        `mean`, `rows`, `undefined` (how many rows have no correlation), `changes`, `source`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> import skattr
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)) + rng.normal(size=(500, 1))
    >>> tree = DecisionTreeRegressor(max_depth=4).fit(X, X[:, 0] + 2 * X[:, 1])
    >>> explainer = skattr.MeasureExplainer(tree).fit(X)
    >>> result = skattr.metrics.faithfulness(explainer.explain(X[:50]), explainer, X)
    >>> result.rows.shape, bool(-1 <= result.mean <= 1)
    ((50,), True)
    """
    _check(explanation, explainer, kind)
    support = None
    if truth is not None:
        if X_background is not None or measure is not None or sample_weight is not None:
            raise ValueError(
                "give truth, or X_background, measure and sample_weight to learn it from, not both"
            )
        changes, source = _as_changes(truth, explanation), "changes given as truth"
    elif X_background is None:
        raise ValueError("faithfulness needs X_background to learn from, or the changes as truth")
    else:
        X_background = frames.as_table(X_background, "X_background")
        law = Conditional() if measure is None else as_measure(measure)
        settings = explainer.get_params(deep=False) | {
            "estimator": explainer.estimator_, "measure": law, "engine": "auto",
        }  # fmt: skip
        learn = _increments if kind == "inc" else _decrements
        changes, support = learn(explanation, settings, X_background, sample_weight)
        source = f"{law!r} learned on {len(X_background)} rows"
    sizes = np.abs(explanation.centered().values)
    rows = _correlation(sizes, np.abs(changes), np.abs(explanation.base_value))
    return Faithfulness(rows, changes, kind, source, support)


def _check(explanation: Explanation, explainer: MeasureExplainer, kind: str) -> None:
    if not isinstance(explanation, Explanation):
        raise TypeError(f"explanation must be an Explanation, got {type(explanation).__name__}")
    if not isinstance(explainer, MeasureExplainer):
        raise TypeError(f"explainer must be a MeasureExplainer, got {type(explainer).__name__}")
    check_is_fitted(explainer)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {brief(kind)}")
    if len(explanation.feature_names) < 2:
        raise ValueError(
            "the explanation must have at least two attributions, got only "
            f"{explanation.feature_names[0]!r}"
        )
    outputs, known = explanation.output_names, tuple(explainer.output_names_)
    if outputs != known and not (len(outputs) == 1 and outputs[0] in known):
        raise ValueError(
            f"the explanation must have the outputs {known} or one of them, got {outputs}"
        )


def _as_changes(truth: Any, explanation: Explanation) -> np.ndarray:
    changes = np.array(truth, dtype=np.float64)
    if changes.shape != explanation.values.shape:
        raise ValueError(
            f"truth must have the shape {explanation.values.shape}, got shape {changes.shape}"
        )
    if not np.isfinite(changes).all():
        raise ValueError("truth must be finite, got NaN or infinite values")
    return changes


def _increments(
    explanation: Explanation, settings: dict, X: Any, weight: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return E[f | X_j = x_j] − E f, and the rows behind it."""
    groups = _groups(explanation)
    known = MeasureExplainer(**settings | {"groups": groups}).fit(X, sample_weight=weight)
    wanted = list(explanation.feature_names)
    conditional = known.explain(explanation.data, features=wanted, predictions=False)
    conditional = _same_outputs(conditional, explanation)
    return conditional.values - conditional.base_value, conditional.support


def _decrements(
    explanation: Explanation, settings: dict, X: Any, weight: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return f(x) − E[f | X_−j = x_−j], one explainer per attribution, and the rows behind it."""
    changes, supports = [], []
    labels = frames.labels(explanation.data)
    for columns in explanation.columns:
        others = [label for label in labels if label not in columns]
        name = _new_name("others", labels)
        if not others:
            raise ValueError(
                f"kind='dec' redraws {columns} given the other columns, but there are none"
            )
        known = MeasureExplainer(**settings | {"groups": {name: others}})
        known.fit(X, sample_weight=weight)
        conditional = _same_outputs(known.explain(explanation.data, features=[name]), explanation)
        changes.append(conditional.predictions - conditional.values[:, 0])
        supports.append(conditional.support)
    complete = [support for support in supports if support is not None]
    support = np.concatenate(complete, axis=1) if len(complete) == len(changes) else None
    return np.stack(changes, axis=1), support


def _same_outputs(conditional: Explanation, explanation: Explanation) -> Explanation:
    one = len(explanation.output_names) == 1
    return conditional.select(explanation.output_names[0]) if one else conditional


def _groups(explanation: Explanation) -> dict[Hashable, list] | None:
    """Return the groups of columns in an explanation."""
    groups = {
        name: list(columns)
        for name, columns in zip(explanation.feature_names, explanation.columns, strict=True)
        if columns != (name,)
    }
    return groups or None


def _new_name(name: str, labels: list) -> str:
    while name in labels:
        name += "_"
    return name


def _correlation(sizes: np.ndarray, changes: np.ndarray, base: Any) -> np.ndarray:
    """Return Pearson's correlation over axis 1, NaN where a side is constant up to rounding.

    Both sides are differences of numbers as large as `base`, a float or (k,).
    """
    parts, defined = [], np.array(True)
    for side in (sizes, changes):
        largest = side.max(axis=1, keepdims=True)
        rounding = _ROUNDING * np.maximum(base, largest[:, 0])
        defined = defined & (np.ptp(side, axis=1) > rounding)
        # squares of numbers of unit size are neither 0 nor inf
        unit = np.divide(side, largest, out=np.zeros_like(side), where=largest > 0)
        centred = unit - unit.mean(axis=1, keepdims=True)
        norm = np.sqrt((centred**2).sum(axis=1, keepdims=True))
        parts.append(np.divide(centred, norm, out=np.zeros_like(centred), where=norm > 0))
    return np.where(defined, np.clip((parts[0] * parts[1]).sum(axis=1), -1.0, 1.0), np.nan)

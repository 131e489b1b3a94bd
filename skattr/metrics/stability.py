"""Stability: the same attributions in several models, such as refits on other samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.metrics.bands import Band
from skattr.metrics.spread import Spread

TINY = 1e-12  # of the largest value of an output: smaller values have no sign


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How far the attributions of several models agree; made by `stability`.

    Parameters
    ----------
    importances : array (m, g), or (m, g, k) for several outputs
        The importance of each column in each model: the mean over rows of |value - offset|.
    value_spread : array (g,) or (g, k)
        The spread of single values over models: the standard deviation over models of the centred
        value of a row, as a root mean square over rows. Where the measure has curves this is the
        spread of the curve, weighted by the rows.
    sign_changes : array (g,) or (g, k)
        The mean over rows of the share of pairs of models whose centred values at the row have
        opposite signs.
    feature_names, output_names : tuple
        As in Explanation.
    explainers : tuple of MeasureExplainer
        The models.
    ratio : float or None
    level : float
        What `low` and `high` are: see `stability`.
    n_rows : int
        The number of rows explained.
    scale, measure : str
        As in Explanation.
    exact : bool
        Whether all values are exact; otherwise their approximation is part of every spread.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> from skattr.metrics import stability
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> models = [LinearRegression().fit(X, slope * X[:, 0] + X[:, 1]) for slope in (1.0, 2.0)]
    >>> found = stability([MeasureExplainer(model).fit(X) for model in models], X)
    >>> found.to_frame()[["feature", "importance", "low", "high"]].round(6)
      feature  importance  low  high
    0      x0         1.5  1.0   2.0
    1      x1         0.5  0.5   0.5
    """

    importances: np.ndarray
    value_spread: np.ndarray
    sign_changes: np.ndarray
    feature_names: tuple[Any, ...]
    output_names: tuple[str, ...]
    explainers: tuple[MeasureExplainer, ...]
    ratio: float | None
    level: float
    n_rows: int
    scale: str
    measure: str
    exact: bool

    @property
    def interval_name(self) -> str:
        """What `low` and `high` are, in words."""
        return self._rule.in_words(len(self.explainers))

    @property
    def _rule(self) -> Spread:
        return Spread(self.ratio, self.level)

    def to_frame(self) -> pd.DataFrame:
        """Return one line per output and column, the most important columns first.

        - `importance`: the mean over models; `spread`: their standard deviation; `low`, `high`:
          see `stability`
        - `rank`: the mean over models of the rank by importance, 1 for the most important column,
          ties counting halves; `rank_spread`: the standard deviation of the ranks
        - `sign_changes`, `value_spread`: as above
        """
        g, k = len(self.feature_names), len(self.output_names)
        importances = self.importances.reshape(-1, g, k)
        sizes = self._rule.of(importances)
        ranks = self._rule.of(rankdata(-importances, axis=1))
        order = np.argsort(-sizes.mean.mean(axis=1), kind="stable")
        numbers = {
            "importance": sizes.mean, "spread": sizes.spread, "low": sizes.low, "high": sizes.high,
            "rank": ranks.mean, "rank_spread": ranks.spread,
            "sign_changes": self.sign_changes.reshape(g, k),
            "value_spread": self.value_spread.reshape(g, k),
        }  # fmt: skip
        features = frames.as_index(self.feature_names).take(np.tile(order, k))
        labels = {
            "output": pd.Series(frames.as_index(self.output_names).repeat(g)),
            "feature": pd.Series(features),
        }
        columns = {name: array[order].T.ravel() for name, array in numbers.items()}
        return pd.DataFrame(labels | columns)

    def curve(self, feature: Any, output: Any = None) -> Band:
        """Return the curves of a column in all models, with their mean, spread and interval.

        Parameters
        ----------
        feature : label or int
            The column, by name or, if no column has that name, by position.
        output : str or int, optional
            One of several outputs; all by default.
        """
        curves = tuple(explainer.curve(feature, output) for explainer in self.explainers)
        return Band(curves, self._rule)

    def __repr__(self) -> str:
        how = "exact" if self.exact else "approximate"
        return (
            f"<Stability of {len(self.explainers)} models over {self.n_rows:,} rows: "
            f"{self.measure}, {how}>"
        )


def stability(
    explainers: Sequence[MeasureExplainer],
    X: Any,
    *,
    ratio: float | None = None,
    level: float = 0.95,
) -> Stability:
    """Compare the attributions of several models on the same rows.

    The models are those of cross-validation, of other seeds, or of `refit`. The spread over them
    has whatever differs between them: the rows that they were fitted on, their seeds and, if the
    explainers have backgrounds of their own, the background.

    Parameters
    ----------
    explainers : list of MeasureExplainer
        At least two fitted explainers, with the same columns, measure and outputs.
    X : DataFrame or array (n, d)
        The rows to explain.
    ratio : float, optional
        By default `low` and `high` are the smallest and the largest number among the models.
        With a ratio they are mean ± t √(1/m + ratio) · sd, an interval of the mean over training
        sets of this size. As the training sets of resampling overlap, √(1/m) alone would be far
        too short. Nadeau and Bengio (2003) take the number of rows left out of a fit relative to
        that of rows in it: 0.58 for bootstrap samples (0.368 / 0.632), 1 / (k - 1) for k-fold
        cross-validation. For bootstrap samples 1 is the careful choice: the mean of refits of a
        smooth learner varies as much as one fit. 0 is right for training sets without common rows.
    level : float, default=0.95
        The coverage of that interval.

    Returns
    -------
    Stability
        `to_frame()` has the columns, `curve(feature)` bands of curves.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> from skattr.metrics import stability
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    >>> folds = cross_validate(tree, X, y, return_estimator=True)["estimator"]
    >>> found = stability([MeasureExplainer(model).fit(X) for model in folds], X)
    >>> found
    <Stability of 5 models over 442 rows: PartialDependence() - Expectation(), exact>
    >>> list(found.to_frame()["feature"][:2])
    ['s5', 'bmi']
    """
    Spread(ratio, level)  # raises if they are wrong
    explainers = _check(explainers)
    first: Any = None
    sums, importances, exact = _Sums(), [], True
    for i, explainer in enumerate(explainers):
        explanation = explainer.explain(X, predictions=False)
        first = explanation if first is None else first
        _check_alike(first, explanation, i)
        values = explanation.values - explanation.offset
        sums.add(values)
        importances.append(np.abs(values).mean(axis=0))
        exact = exact and explanation.exact
    return Stability(
        importances=np.stack(importances),
        value_spread=sums.spread(),
        sign_changes=sums.sign_changes(),
        feature_names=first.feature_names,
        output_names=first.output_names,
        explainers=explainers,
        ratio=ratio,
        level=level,
        n_rows=len(first),
        scale=first.scale,
        measure=first.measure,
        exact=exact,
    )


class _Sums:
    """Sums over models of values, (n, g) or (n, g, k), model by model."""

    def __init__(self) -> None:
        self.m = 0

    def add(self, values: np.ndarray) -> None:
        """Add the values of a model."""
        # relative to the first model, so that equal ones give exact zeros
        if self.m == 0:
            self.first = values
            self.total, self.square = np.zeros_like(values), np.zeros_like(values)
            self.signs = [np.zeros(values.shape, np.int32) for _ in range(2)]
        apart = values - self.first
        self.total += apart
        self.square += apart**2
        tiny = TINY * np.abs(values).max(axis=(0, 1))
        self.signs[0] += values > tiny
        self.signs[1] += values < -tiny
        self.m += 1

    def spread(self) -> np.ndarray:
        """Return the standard deviation over models, as a root mean square over rows."""
        variance = (self.square - self.total**2 / self.m) / (self.m - 1)
        return np.sqrt(np.maximum(variance, 0.0).mean(axis=0))

    def sign_changes(self) -> np.ndarray:
        """Return the share of pairs of models with opposite signs, a mean over rows."""
        positive, negative = (counts.astype(float) for counts in self.signs)
        return (2 * positive * negative / (self.m * (self.m - 1))).mean(axis=0)


def _check(explainers: Any) -> tuple[MeasureExplainer, ...]:
    """Return at least two fitted explainers with the same columns."""
    if isinstance(explainers, MeasureExplainer) or not np.iterable(explainers):
        raise TypeError(
            f"explainers must be a list of fitted MeasureExplainers, got {brief(explainers)}"
        )
    several = tuple(explainers.values() if isinstance(explainers, Mapping) else explainers)
    for i, explainer in enumerate(several):
        if not isinstance(explainer, MeasureExplainer):
            raise TypeError(
                f"explainers[{i}] must be a fitted MeasureExplainer, got {brief(explainer)}; for a "
                "model: MeasureExplainer(model).fit(X)"
            )
        check_is_fitted(explainer)
        _check_columns(several[0].column_names_, explainer.column_names_, i)
    if len(several) < 2:
        raise ValueError(f"stability compares at least two explainers, got {len(several)}")
    return several


def _check_columns(first: list, names: list, i: int) -> None:
    if first == names:
        return
    only = [[name for name in a if name not in b] for a, b in ((first, names), (names, first))]
    where = ("explainers[0]", f"explainers[{i}]")
    words = [f"only in {w}: {brief(o)}" for w, o in zip(where, only, strict=True) if o]
    difference = "; ".join(words) or "they are in another order"
    raise ValueError(
        f"explainers must have the same columns, but explainers[0] and explainers[{i}] differ: "
        f"{difference}"
    )


def _check_alike(first: Explanation, other: Explanation, i: int) -> None:
    """Refuse explanations of other groups, measures or outputs, and name the difference."""
    for what, a, b in (
        ("groups", _groups(first), _groups(other)),
        ("measure", first.measure, other.measure),
        ("outputs", first.output_names, other.output_names),
        ("scale of the output", first.scale, other.scale),
    ):
        if a != b:
            raise ValueError(
                f"explainers must have the same {what}, but explainers[0] has {brief(a)} and "
                f"explainers[{i}] has {brief(b)}"
            )


def _groups(explanation: Explanation) -> dict[Any, tuple]:
    return dict(zip(explanation.feature_names, explanation.columns, strict=True))

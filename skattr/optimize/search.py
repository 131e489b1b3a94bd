"""Searches over measures and mixtures of them, in the style of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.measures import LinearCombination, Measure, as_measure
from skattr.measures.base import as_terms
from skattr.metrics import agreement, deletion, f1, faithfulness, insertion, precision, recall

OF_VALUES = (recall, precision, f1, agreement)
OF_MODELS = (faithfulness, deletion, insertion)
# what the explanation of one term says of itself, and is not known of a sum of terms
OF_ONE_TERM: dict[str, Any] = {
    "background_error": None, "centered_background_error": None, "n_folds": 0,
    "importance_by_fold": None, "folds": None, "certificate": None, "measure_name": "",
}  # fmt: skip


def mixture(components: Sequence[Measure | str], weights: Any) -> LinearCombination:
    """Return Σ weight · component.

    Attributions are linear in the weights: `MeasureSearchCV` computes those of the components
    once, for any number of mixtures of them.

    Parameters
    ----------
    components : list of Measure or str
        The measures to mix.
    weights : array (n_components,)
        Finite numbers. If they are positive with sum 1, a mixture of probabilities is one.

    Examples
    --------
    >>> mixture(["partial_dependence", "conditional"], [0.25, 0.75])
    0.25 * PartialDependence() + 0.75 * Conditional()
    """
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (len(components),) or len(components) == 0:
        raise ValueError(f"weights must have shape ({len(components)},), got {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise ValueError("weights must be finite")
    pairs = zip(numbers.tolist(), components, strict=True)
    return LinearCombination(as_terms(LinearCombination([(w, as_measure(c)) for w, c in pairs])))


def scorer(metric: Callable, *, greater_is_better: bool = True, **settings: Any) -> Callable:
    """Return a metric of `skattr.metrics` as a `scoring` of `MeasureSearchCV`.

    Parameters
    ----------
    metric : callable
        `recall`, `precision`, `f1` (settings: weights, alpha, beta), `agreement` (settings: truth,
        which: one of its numbers, "correlation" by default), `faithfulness`, `deletion`,
        `insertion`.
    greater_is_better : bool, default=True
        If False, the score is the negative metric.
    **settings
        Keyword arguments of the metric.

    Returns
    -------
    callable
        (explanation, explainer, X_background) → float.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> from skattr.metrics import deletion
    >>> score = scorer(deletion, greater_is_better=False)
    >>> explanation = explainer.explain(X)
    >>> score(explanation, explainer, X) == -deletion(explanation, explainer, X).mean
    True
    """
    if metric not in (*OF_VALUES, *OF_MODELS):
        known = [each.__name__ for each in (*OF_VALUES, *OF_MODELS)]
        raise ValueError(
            f"metric must be one of {known}, got {metric!r}; for others write a function"
        )
    return _Scorer(metric, 1 if greater_is_better else -1, settings)


class _Scorer:
    def __init__(self, metric: Callable, sign: int, settings: dict) -> None:
        self.metric, self.sign, self.settings = metric, sign, settings

    def __call__(self, explanation: Explanation, explainer: MeasureExplainer, X: Any) -> float:
        settings = dict(self.settings)
        if self.metric in OF_MODELS:
            return self.sign * float(
                np.mean(self.metric(explanation, explainer, X, **settings).mean)
            )
        which = settings.pop("which", "correlation")
        result = self.metric(explanation.centered().values, **settings)
        mean = result.mean[which] if self.metric is agreement else np.mean(result)
        return self.sign * float(mean)


class MeasureSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search for the measure with the best score.

    For each split of the data, measures are learned on one part and attributions of the other are
    scored. Measures that are sums share their terms: each term is fitted and explained once per
    split, whatever the number of mixtures it is in.

    Parameters
    ----------
    explainer : MeasureExplainer
        An explainer, whose measure is replaced.
    candidates : list of Measure or str, or dict of name: Measure
        The measures to compare.
    scoring : {"faithfulness"} or callable, default="faithfulness"
        (explanation, explainer, X_background) → float, larger is better; see `scorer`.
    cv : int, splitter or iterable, default=5
        As in scikit-learn.

    Attributes
    ----------
    best_measure_, best_score_, best_index_, best_explainer_ (fitted on all rows).
    cv_results_ : dict
        "measure", "split0_test_score", …, "mean_test_score", "std_test_score", "rank_test_score".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = LinearRegression().fit(X, X @ [1.0, -2.0, 0.0])
    >>> search = MeasureSearchCV(
    ...     MeasureExplainer(model), ["expectation", "partial_dependence"],
    ...     scorer(f1, weights=[1.0, -2.0, 0.0], alpha=0.1, beta=0.1), cv=3)
    >>> search.fit(X).best_measure_
    PartialDependence()
    """

    def __init__(
        self,
        explainer: MeasureExplainer,
        candidates: Any,
        scoring: str | Callable = "faithfulness",
        cv: Any = 5,
    ) -> None:
        self.explainer = explainer
        self.candidates = candidates
        self.scoring = scoring
        self.cv = cv

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Score every candidate on every split, and fit the best one on all rows.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            Background and explained rows in turn.
        y : array (n,), optional
            Used to fit an estimator that is not fitted, and by the splitter.
        sample_weight : array (n,), optional
            Weights of the rows in the background.

        Returns
        -------
        self
        """
        names, measures = self._candidates()
        score = self._score()
        X = X if frames.is_frame(X) else np.asarray(X)
        splits = list(check_cv(self.cv, y).split(X, y))
        scores = np.empty((len(splits), len(measures)))
        for s, (train, test) in enumerate(splits):
            fit = {"y": _some(y, train), "sample_weight": _some(sample_weight, train)}
            background, rows = frames.take_rows(X, train), frames.take_rows(X, test)
            parts: dict = {}
            for i, measure in enumerate(measures):
                explanation, explainer = self._explained(measure, background, rows, fit, parts)
                scores[s, i] = _number(score, explanation, explainer, background)
        mean = scores.mean(axis=0)
        if np.isnan(mean).all():
            raise ValueError(
                f"every candidate has a score that is NaN on some split; scoring={brief(score)} "
                "must return a number"
            )
        order = np.where(np.isnan(mean), -np.inf, mean)
        self.cv_results_ = {
            "name": names, "measure": measures,
            **{f"split{s}_test_score": each for s, each in enumerate(scores)},
            "mean_test_score": mean, "std_test_score": scores.std(axis=0),
            "rank_test_score": np.array([1 + int((order > each).sum()) for each in order]),
        }  # fmt: skip
        self.best_index_ = int(np.argmax(order))
        self.best_measure_ = measures[self.best_index_]
        self.best_score_ = float(mean[self.best_index_])
        explainer = self._with(self.best_measure_)
        self.best_explainer_ = explainer.fit(X, y, sample_weight=sample_weight)
        return self

    def explain(self, X: Any, **options: Any) -> Explanation:
        """Return the attributions of rows under the best measure.

        Parameters
        ----------
        X : DataFrame or array (n, d)
            The rows.
        **options
            As in `MeasureExplainer.explain`.
        """
        check_is_fitted(self)
        return self.best_explainer_.explain(X, **options)

    def _candidates(self) -> tuple[list, list[Measure]]:
        if isinstance(self.candidates, dict):
            names, measures = list(self.candidates), list(self.candidates.values())
        else:
            measures = list(self.candidates)
            names = [repr(as_measure(measure)) for measure in measures]
        if not measures:
            raise ValueError("candidates must not be empty")
        return names, [as_measure(measure) for measure in measures]

    def _with(self, measure: Measure) -> MeasureExplainer:
        """Return the explainer with another measure, without cloning its fitted estimator."""
        return MeasureExplainer(**self.explainer.get_params(deep=False) | {"measure": measure})

    def _score(self) -> Callable:
        if callable(self.scoring):
            return self.scoring
        if self.scoring == "faithfulness":
            return scorer(faithfulness)
        raise ValueError(
            f"scoring must be 'faithfulness' or a callable, got {brief(self.scoring)}; see "
            "scorer(recall, weights=…, alpha=…, beta=…)"
        )

    def _explained(
        self, measure: Measure, background: Any, rows: Any, fit: dict, parts: dict
    ) -> tuple[Explanation, MeasureExplainer]:
        """Return the explanation of a measure, the sum of those of its terms."""
        terms = []
        for coefficient, term in as_terms(measure):
            key = _identity(term)
            if key not in parts:
                explainer = self._with(term).fit(background, **fit)
                parts[key] = explainer.explain(rows), explainer
            terms.append((coefficient, *parts[key]))
        first = terms[0][1]
        if [coefficient for coefficient, *_ in terms] == [1.0]:
            return replace(first, measure=repr(measure)), terms[0][2]
        explanation = replace(
            first,
            values=sum(c * each.values for c, each, _ in terms),
            offset=sum(c * np.asarray(each.offset) for c, each, _ in terms),
            std_error=_bound((c, each.std_error) for c, each, _ in terms),
            centered_error=_bound((c, _centered_error(each)) for c, each, _ in terms),
            exact=all(each.exact for _, each, _ in terms),
            engine=tuple(name for _, each, _ in terms for name in each.engine),
            measure=repr(measure),
            support=first.support if len(terms) == 1 else None,
            **OF_ONE_TERM,
        )
        return explanation, terms[0][2]


def _centered_error(explanation: Explanation) -> np.ndarray | None:
    error = explanation.centered_error
    return explanation.std_error if error is None else error


def _bound(errors: Iterable[tuple[float, np.ndarray | None]]) -> Any:
    """Return a bound on the standard error of a sum, None if all of it is exact."""
    found = [abs(coefficient) * error for coefficient, error in errors if error is not None]
    return sum(found) if found else None


def _number(score: Callable, *arguments: Any) -> float:
    """Return a score, which must be a number."""
    found = score(*arguments)
    with suppress(TypeError):
        if not isinstance(found, str) and np.ndim(found) == 0:
            return float(found)
    raise ValueError(f"scoring={brief(score)} must return a number, got {brief(found)}")


def _identity(term: Measure) -> Any:
    """Return a key that measures with equal parameters share."""
    try:
        return type(term), joblib.hash(term.get_params())
    except Exception:  # parameters that do not pickle, such as lambdas
        return id(term)


def _some(values: Any, rows: np.ndarray) -> Any:
    return None if values is None else np.asarray(values)[rows]

"""Refits: the user's estimator fitted again on bootstrap samples, each with its explainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import delayed
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, has_fit_parameter

from skattr._inputs import frames
from skattr._inputs.values import as_series
from skattr._utils.messages import brief
from skattr._utils.parallel import check_n_jobs, in_workers
from skattr._utils.progress import Progress
from skattr.explainer import MeasureExplainer

DRAWS = 100  # samples that are drawn to have one with all classes


def refit(
    explainer: MeasureExplainer,
    X: Any,
    y: Any = None,
    *,
    n_refits: int = 20,
    background: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int | None = None,
) -> list[MeasureExplainer]:
    """Fit an estimator again on bootstrap samples of the data, and an explainer to each refit.

    Each sample has as many rows as X, drawn with replacement. Given to `stability`, the refits
    tell how much attributions would change with other data behind the model: the variance of the
    learner, and that of the background.

    Every `random_state` inside the estimator gets a seed of its own, so that the learner's own
    randomness is part of the spread; the result depends on `random_state` alone, not on `n_jobs`.
    The samples of a classifier have all its classes: a sample without one is drawn again.

    Parameters
    ----------
    explainer : MeasureExplainer
        The settings: estimator, measure, output, groups, and so on. It may be fitted or not; it
        does not change, and neither does its estimator, of which clones are fitted.
    X : DataFrame or array (n, d)
        The rows that the estimator is fitted on.
    y : array (n,) or (n, k), optional
        The target, if the estimator needs one.
    n_refits : int, default=20
        The number of refits.
    background : "out_of_bag", or DataFrame or array, optional
        By default the background of an explainer are the rows that its estimator was fitted on,
        as often as they were drawn. "out_of_bag" takes the rows that were not drawn, about 37 %
        of them, as in the literature on partial dependence. A table is the background of all
        explainers, so that the spread has no variance of the background.
    sample_weight : array (n,), optional
        Weights of the rows, for the estimator and for the background.
    clusters : array (n,), optional
        One label per row, such as a patient; clusters are drawn instead of rows, and their rows
        stay together.
    random_state : int, RandomState or None
        Seed of the samples and of the estimators.
    n_jobs : int, optional
        Number of workers, as in joblib.
    verbose : int, optional
        Whether to show progress: 1 always, 0 never, by default if it takes long.

    Returns
    -------
    list of MeasureExplainer
        Fitted explainers, for `stability`; they have no folds of their own, `folds=0`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from skattr import MeasureExplainer
    >>> from skattr.metrics import refit, stability
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> explainers = refit(MeasureExplainer(LinearRegression()), X, y, random_state=0)
    >>> stability(explainers, X)
    <Stability of 20 models over 442 rows: PartialDependence() - Expectation(), exact>
    """
    estimator = _check(explainer, n_refits, n_jobs)
    X = frames.as_table(X)
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    y = _as_target(y, len(X))
    if isinstance(background, str) and background != "out_of_bag":
        raise ValueError(f'background must be a table, None or "out_of_bag", got {background!r}')
    seeds = check_random_state(random_state).randint(2**31, size=n_refits)
    draw = _Draws.of(estimator, len(X), y, clusters, left_out=isinstance(background, str))
    settings = explainer.get_params(deep=False)
    if not isinstance(settings["random_state"], int | np.integer):
        settings["random_state"] = int(seeds[0])
    tasks = (
        delayed(_refit)(settings, X, y, weights, draw, background, int(seed)) for seed in seeds
    )
    result = []
    with Progress(verbose, n_refits, "refits") as bar:
        for fitted in in_workers(tasks, n_jobs):
            result.append(fitted)
            bar.step("refit")
    return result


def _refit(
    settings: dict[str, Any],
    X: Any,
    y: Any,
    weights: np.ndarray | None,
    draw: _Draws,
    background: Any,
    seed: int,
) -> MeasureExplainer:
    """Draw a sample, fit a clone of the estimator to it, and an explainer to its background."""
    rng = np.random.RandomState(seed)
    rows = draw(rng)
    estimator = _seeded(clone(settings["estimator"]), rng)
    options = {} if weights is None else _weights_of_fit(estimator, weights[rows])
    estimator.fit(frames.take_rows(X, rows), _take(y, rows), **options)
    explainer = MeasureExplainer(**settings | {"estimator": estimator, "folds": 0})
    if background is not None and not isinstance(background, str):
        return explainer.fit(background)
    counts = np.bincount(rows, minlength=len(X)).astype(float)
    counts = counts if background is None else (counts == 0).astype(float)
    kept = np.flatnonzero(counts)
    counts = counts if weights is None else counts * weights
    return explainer.fit(frames.take_rows(X, kept), sample_weight=counts[kept])


@dataclass
class _Draws:
    """Draws of rows with replacement, or of clusters of rows.

    Parameters
    ----------
    clusters : array (n,)
        The cluster of each row, as a number; rows alone are clusters of their own.
    classes : array (n,) or None
        Labels that all have to be in a sample.
    left_out : bool
        Whether some rows have to be left out.
    """

    clusters: np.ndarray
    classes: np.ndarray | None
    left_out: bool

    @classmethod
    def of(cls, estimator: Any, n: int, y: Any, clusters: Any, left_out: bool) -> _Draws:
        """Check what there is to draw from."""
        codes = np.arange(n)
        if clusters is not None:
            labels = as_series(clusters)
            if len(labels) != n:
                raise ValueError(
                    f"clusters must have one label for each of the {n} rows, got {len(labels)}"
                )
            codes = pd.factorize(labels)[0]
            if (codes < 0).any():
                raise ValueError("clusters must have no missing labels")
        if codes.max() < 1:
            what = "rows" if clusters is None else "clusters"
            raise ValueError(f"refit draws from at least two {what}, got one")
        classes = None
        if y is not None and len(y.shape) == 1 and _has_classes(estimator):
            classes = pd.factorize(as_series(y), use_na_sentinel=False)[0]
        return cls(codes, classes, left_out)

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        """Return the positions of the rows drawn."""
        n = int(self.clusters.max()) + 1
        for _ in range(DRAWS):
            counts = np.bincount(rng.randint(n, size=n), minlength=n)
            rows = np.repeat(np.arange(len(self.clusters)), counts[self.clusters])
            whole = self.left_out and counts.all()
            if not whole and (self.classes is None or self._has_all_classes(rows)):
                return rows
        raise ValueError(
            f"none of {DRAWS} samples had all classes, and left rows out where they are asked "
            "for: classes with few rows should be joined, or their rows left out"
        )

    def _has_all_classes(self, rows: np.ndarray) -> bool:
        assert self.classes is not None
        n = int(self.classes.max()) + 1
        return bool(np.bincount(self.classes[rows], minlength=n).all())


def _check(explainer: Any, n_refits: Any, n_jobs: Any) -> Any:
    """Check the parameters, and return the estimator, which must be one that can be cloned."""
    if not isinstance(explainer, MeasureExplainer):
        raise TypeError(
            f"explainer must be a MeasureExplainer, such as MeasureExplainer(model), got "
            f"{brief(explainer)}"
        )
    whole = isinstance(n_refits, int | np.integer) and not isinstance(n_refits, bool)
    if not whole or n_refits < 2:
        raise ValueError(f"n_refits must be an integer of at least 2, got {brief(n_refits)}")
    check_n_jobs(n_jobs)
    estimator = explainer.estimator
    if isinstance(estimator, FrozenEstimator):
        raise TypeError("a FrozenEstimator is never fitted again: pass the estimator inside it")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"refit needs an estimator that scikit-learn can clone, got {brief(estimator)}; fit "
            "other models yourself, and give their explainers to stability"
        )
    return estimator


def _as_target(y: Any, n: int) -> Any:
    if y is None:
        return None
    y = y if hasattr(y, "shape") else np.asarray(y)
    if len(y) != n:
        raise ValueError(f"y must have one target for each of the {n} rows of X, got {len(y)}")
    return y


def _take(y: Any, rows: np.ndarray) -> Any:
    if y is None:
        return None
    return frames.take_rows(y, rows) if frames.is_frame(y) else frames.take_values(y, rows)


def _has_classes(estimator: Any) -> bool:
    tagged = hasattr(estimator, "__sklearn_tags__")
    return is_classifier(estimator) if tagged else hasattr(estimator, "predict_proba")


def _seeded(estimator: Any, rng: np.random.RandomState) -> Any:
    """Give every random_state inside an estimator a seed of its own."""
    names = [
        name
        for name in sorted(estimator.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    ]
    return estimator.set_params(**{name: int(rng.randint(2**31)) for name in names})


def _weights_of_fit(estimator: Any, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return weights as arguments of `fit`; those of a Pipeline go to its last step."""
    prefix, last = "", estimator
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not has_fit_parameter(last, "sample_weight"):
        raise TypeError(f"{type(last).__name__}.fit does not take sample_weight")
    return {f"{prefix}sample_weight": weights}

"""scikit-learn's linear models: LinearModel, linear classifiers, SGD, GLMs and RANSAC.

Regressors are linear in what they predict, GLMs on the scale of their link, classifiers in their
decision function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn._loss.link import IdentityLink
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    RANSACRegressor,
    TweedieRegressor,
)
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel
from sklearn.linear_model._stochastic_gradient import BaseSGDRegressor
from sklearn.utils.validation import validate_data

from skattr.pieces.additive import Linear
from skattr.pieces.base import Unreadable
from skattr.pieces.steps import Track

GLMS = (PoissonRegressor, GammaRegressor, TweedieRegressor)
SINGLE = np.dtype(np.float32)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which the model is linear."""
    if isinstance(estimator, GLMS):
        identity = isinstance(estimator._base_loss.link, IdentityLink)
        return ("predict", "raw") if identity else ("raw",)
    if isinstance(estimator, LinearClassifierMixin):
        return ("raw",)
    if isinstance(estimator, RANSACRegressor):
        inner = estimator.estimator_
        return ("predict", "raw") if isinstance(inner, (LinearModel, BaseSGDRegressor)) else ()
    if isinstance(estimator, (LinearModel, BaseSGDRegressor)):
        return ("predict", "raw")
    return ()


def read(estimator: Any, scale: str) -> list[Linear]:
    """Read the coefficients."""
    model = estimator.estimator_ if isinstance(estimator, RANSACRegressor) else estimator
    found = model.coef_
    coefficients = np.atleast_2d(found.toarray() if sparse.issparse(found) else found)
    single = coefficients.dtype == SINGLE
    k, m = coefficients.shape
    if m != estimator.n_features_in_ or np.size(model.intercept_) not in (1, k):
        raise Unreadable(
            f"{type(model).__name__} has coefficients of shape {coefficients.shape} for "
            f"{estimator.n_features_in_} columns"
        )
    return [
        Linear(
            LinearFront(estimator),
            coefficients.astype(np.float64),
            np.broadcast_to(np.ravel(model.intercept_), k).astype(np.float64),
            rounding=1e-5 if single else 1e-8,
        )
    ]


def has_margin(estimator: Any) -> bool:
    """Tell whether this is a GLM."""
    return isinstance(estimator, GLMS)


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return a GLM's answer before its link."""
    return estimator._linear_predictor(X)


class LinearFront:
    """The checks that these estimators make: finite numbers, dense or sparse."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.columns = np.arange(estimator.n_features_in_)

    def inputs(self, X: Any) -> Any:
        """Return X as the model sees it."""
        return validate_data(self.estimator, X, accept_sparse="csr", reset=False)

    def track(self, c: int, track: Track) -> Track:
        """Return the track as it is."""
        return track

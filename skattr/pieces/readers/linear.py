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

from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Linear, rounding_of
from skattr.pieces.readers.validated import ValidatedFront

GLMS = (PoissonRegressor, GammaRegressor, TweedieRegressor)


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
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    coefficients = np.atleast_2d(coef)
    k, m = coefficients.shape
    if m != estimator.n_features_in_ or np.size(model.intercept_) not in (1, k):
        raise Unreadable(
            f"{type(model).__name__} has coefficients of shape {coefficients.shape} for "
            f"{estimator.n_features_in_} columns"
        )
    return [
        Linear(
            front=ValidatedFront(estimator, "csr"),
            coefficients=coefficients.astype(np.float64),
            constant=np.broadcast_to(np.ravel(model.intercept_), k).astype(np.float64),
            rounding=rounding_of(coefficients.dtype),
        )
    ]


def has_margin(estimator: Any) -> bool:
    """Tell whether this is a GLM."""
    return isinstance(estimator, GLMS)


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return a GLM's prediction before its link."""
    return estimator._linear_predictor(X)

"""scikit-learn's linear models: LinearModel, linear classifiers, SGD, GLMs and RANSAC.

Regressors are linear in what they predict, GLMs on the scale of their link, classifiers in their
decision function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn._loss.link import IdentityLink
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    RANSACRegressor,
    SGDClassifier,
    TweedieRegressor,
)
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel
from sklearn.linear_model._stochastic_gradient import BaseSGDRegressor
from sklearn.utils.validation import validate_data

from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.links import CLIPPED, EXP, LOGISTIC, SOFTMAX, Link, Normalised, TwoClasses
from skattr.pieces.parts import Front, Linear, rounding_of
from skattr.pieces.preprocessing.pipeline import to_dense

SOFT = (LogisticRegression, LinearDiscriminantAnalysis)  # softmax, of two classes logistic
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


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link from decision functions to probabilities, or to a GLM's prediction."""
    if isinstance(estimator, GLMS) and scale == "predict":
        name = type(estimator._base_loss.link).__name__
        if name != "LogLink":
            raise Unreadable(f"scikit-learn's {name} is not known here")
        return "raw", EXP
    if not isinstance(estimator, LinearClassifierMixin) or scale != "proba":
        return None
    if isinstance(estimator, SGDClassifier) and estimator.loss == "modified_huber":
        single: Link = CLIPPED
    elif isinstance(estimator, SGDClassifier) or isinstance(estimator, SOFT):
        single = LOGISTIC
    else:
        name = type(estimator).__name__
        raise Unreadable(f"the link from decisions to probabilities of {name} is not known here")
    if len(estimator.classes_) == 2:
        return "raw", TwoClasses(single)
    return "raw", SOFTMAX if isinstance(estimator, SOFT) else Normalised(single)


def read(estimator: Any, scale: str) -> list[Linear]:
    """Read the coefficients."""
    model = estimator.estimator_ if isinstance(estimator, RANSACRegressor) else estimator
    coefficients = np.atleast_2d(to_dense(model.coef_))
    k, m = coefficients.shape
    if m != estimator.n_features_in_ or np.size(model.intercept_) not in (1, k):
        raise Unreadable(
            f"{type(model).__name__} has coefficients of shape {coefficients.shape} for "
            f"{estimator.n_features_in_} columns"
        )
    front, rounding = ValidatedFront(estimator, "csr"), rounding_of(coefficients.dtype)
    constant = np.broadcast_to(np.ravel(model.intercept_), k).astype(np.float64)
    return [Linear(front, constant, coefficients.astype(np.float64), rounding=rounding)]


def has_margin(estimator: Any) -> bool:
    """Tell whether this is a GLM."""
    return isinstance(estimator, GLMS)


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return a GLM's prediction before its link."""
    return estimator._linear_predictor(X)


class ValidatedFront(Front):
    """Finite numbers, as scikit-learn's `validate_data` returns them."""

    def __init__(self, estimator: Any, accept_sparse: Any) -> None:
        self.estimator = estimator
        self.accept_sparse = accept_sparse
        self.columns = np.arange(estimator.n_features_in_)

    @override
    def inputs(self, X: Any) -> Any:
        return validate_data(self.estimator, X, accept_sparse=self.accept_sparse, reset=False)

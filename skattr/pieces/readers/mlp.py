"""scikit-learn's multilayer perceptrons with ReLUs, or without any kink.

Classifiers are read in front of their link, as logits, and so are regressors that have one: the
log of the prediction for the poisson loss.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils.validation import validate_data

from skattr.pieces.relu import SINGLE, Layer, Net
from skattr.pieces.steps import Track

PERCEPTRONS = (MLPRegressor, MLPClassifier)
SLOPES = {"relu": 0.0, "identity": 1.0}  # of the negative side


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which the network is piecewise affine.

    It is asked for them before anything is evaluated, so this is where weights are looked at.
    """
    if isinstance(estimator, PERCEPTRONS):
        _check_weights(estimator)
    if not isinstance(estimator, PERCEPTRONS) or why_not(estimator) is not None:
        return ()
    return ("predict", "raw") if estimator.out_activation_ == "identity" else ("raw",)


def why_not(estimator: Any) -> str | None:
    """Say why a perceptron is not piecewise affine."""
    if isinstance(estimator, PERCEPTRONS) and estimator.activation not in SLOPES:
        name = type(estimator).__name__
        return f"{name} has the activation {estimator.activation!r}; 'relu' is piecewise affine"
    return None


def read(estimator: Any, scale: str) -> list[Net]:
    """Read the weights."""
    weights = [np.asarray(coef, np.float64).T for coef in estimator.coefs_]
    biases = [np.asarray(intercept, np.float64) for intercept in estimator.intercepts_]
    slope = SLOPES[estimator.activation]
    layers = [
        Layer(weight, bias, np.full(len(bias), slope))
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True)
    ]
    rounding = SINGLE if estimator.coefs_[0].dtype == np.float32 else 1e-8
    return [Net(PerceptronFront(estimator), layers, weights[-1], biases[-1], rounding=rounding)]


def _check_weights(estimator: Any) -> None:
    for what in ("coefs_", "intercepts_"):
        for i, array in enumerate(getattr(estimator, what)):
            if not np.isfinite(array).all():
                raise ValueError(
                    f"{type(estimator).__name__}: {what}[{i}] holds NaN or infinite numbers; "
                    "fit it again"
                )


def has_margin(estimator: Any) -> bool:
    """Tell whether there is a link, in front of which no method of its own looks."""
    return isinstance(estimator, PERCEPTRONS) and estimator.out_activation_ != "identity"


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return what the last layer gives before the link."""
    without_link = copy(estimator)
    without_link.out_activation_ = "identity"
    return without_link._forward_pass_fast(X)


class PerceptronFront:
    """The checks that these estimators make: finite numbers, dense or sparse."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.columns = np.arange(estimator.n_features_in_)

    def inputs(self, X: Any) -> Any:
        """Return X as the model sees it."""
        return validate_data(self.estimator, X, accept_sparse=["csr", "csc"], reset=False)

    def track(self, c: int, track: Track) -> Track:
        """Return the track as it is."""
        return track

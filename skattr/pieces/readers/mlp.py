"""scikit-learn's multilayer perceptrons with ReLUs, or without activation.

Classifiers are read before their link, as logits, and so are regressors that have one: the log of
the prediction for the poisson loss.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skattr.pieces.base import Unreadable
from skattr.pieces.links import BINARY, EXP, LOGISTIC, SOFTMAX, Link
from skattr.pieces.parts import Layer, Net, rounding_of
from skattr.pieces.readers.linear import ValidatedFront

PERCEPTRONS = (MLPRegressor, MLPClassifier)
LINKS: dict[str, Link] = {"logistic": LOGISTIC, "softmax": SOFTMAX, "exp": EXP}
SLOPES = {"relu": 0.0, "identity": 1.0}  # of the negative side


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which the network is piecewise affine.

    This is called before anything is evaluated, so weights are checked here.
    """
    if isinstance(estimator, PERCEPTRONS):
        _check_weights(estimator)
    if not isinstance(estimator, PERCEPTRONS) or why_not(estimator) is not None:
        return ()
    return ("predict", "raw") if estimator.out_activation_ == "identity" else ("raw",)


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link of the last layer."""
    final = "proba" if isinstance(estimator, MLPClassifier) else "predict"
    if not isinstance(estimator, PERCEPTRONS) or scale != final or why_not(estimator) is not None:
        return None
    activation = estimator.out_activation_
    if activation not in LINKS:
        raise Unreadable(f"the activation {activation!r} of the last layer is not known here")
    two = activation == "logistic" and final == "proba" and estimator.n_outputs_ == 1
    return "raw", BINARY if two else LINKS[activation]


def why_not(estimator: Any) -> str | None:
    """Return why a perceptron is not piecewise affine."""
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
    front = ValidatedFront(estimator, ["csr", "csc"])
    rounding = rounding_of(estimator.coefs_[0].dtype)
    return [Net(front, biases[-1], weights[-1], layers, rounding=rounding)]


def _check_weights(estimator: Any) -> None:
    for attribute in ("coefs_", "intercepts_"):
        for i, array in enumerate(getattr(estimator, attribute)):
            if not np.isfinite(array).all():
                raise ValueError(
                    f"{type(estimator).__name__}: {attribute}[{i}] holds NaN or infinite numbers; "
                    "fit it again"
                )


def has_margin(estimator: Any) -> bool:
    """Tell whether there is a link: no public method returns the numbers before it."""
    return isinstance(estimator, PERCEPTRONS) and estimator.out_activation_ != "identity"


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the last layer's numbers before the link."""
    without_link = copy(estimator)
    without_link.out_activation_ = "identity"
    return without_link._forward_pass_fast(X)

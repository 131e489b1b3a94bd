"""scikit-learn's kernel machines with the RBF kernel, which is a product over columns.

Support vector machines, KernelRidge, and the mean of Gaussian processes whose kernel is a sum of
products of constants, RBF kernels and white noise (which is 0 between different points).
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Bumps, Front, rounding_of
from skattr.pieces.preprocessing.pipeline import to_dense
from skattr.pieces.readers.linear import ValidatedFront

CLASSIFIERS = (SVC, NuSVC)
MACHINES = (SVR, NuSVR, OneClassSVM, *CLASSIFIERS)
MODELS = (*MACHINES, KernelRidge, GaussianProcessRegressor)


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which the model is a sum of products."""
    if not isinstance(estimator, MODELS) or why_not(estimator) is not None:
        return ()
    return ("raw",) if isinstance(estimator, (*CLASSIFIERS, OneClassSVM)) else ("predict", "raw")


def why_not(estimator: Any) -> str | None:
    """Return why a kernel machine is not a sum of products."""
    name = type(estimator).__name__
    if isinstance(estimator, GaussianProcessClassifier):
        return f"{name} has only probabilities, which are behind a link"
    if isinstance(estimator, GaussianProcessRegressor):
        if not estimator.kernel_.requires_vector_input:  # its rows need not be numbers
            return f"{name} has a kernel without columns, {estimator.kernel_}"
        try:
            _bumps_of(estimator.kernel_, estimator.n_features_in_)
        except Unreadable as reason:
            return str(reason)
    elif isinstance(estimator, MODELS) and estimator.kernel != "rbf":
        return f"{name} has the kernel {estimator.kernel!r}; 'rbf' is a product over columns"
    if isinstance(estimator, CLASSIFIERS) and len(estimator.classes_) > 2:
        if estimator.decision_function_shape == "ovr":
            return (
                f"{name} with decision_function_shape='ovr' counts the votes of pairs of classes; "
                "with 'ovo' it is a sum"
            )
    return None


def read(estimator: Any, scale: str) -> list[Bumps]:
    """Read support vectors or training rows, and their coefficients."""
    if isinstance(estimator, MACHINES):
        return _machine(estimator)
    return _ridge(estimator) if isinstance(estimator, KernelRidge) else _process(estimator)


def _machine(estimator: Any) -> list[Bumps]:
    supports, coefficients = _toarray(estimator.support_vectors_), _toarray(estimator.dual_coef_)
    if len(coefficients) > 1:
        coefficients = _pairs(coefficients, estimator.n_support_)
    constant = np.array(estimator.intercept_, float)
    gammas = np.full(supports.shape[1], float(estimator._gamma))
    return [Bumps(MachineFront(estimator), constant, coefficients, supports, gammas)]


def _pairs(dual: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return the coefficients of each pair of classes, (pairs, M).

    The support vectors are sorted by class. Row l of `dual` holds, for those of a class, their
    coefficients against the l-th of the other classes.
    """
    ends = np.cumsum(n_support)
    of_class = [slice(end - n, end) for n, end in zip(n_support, ends, strict=True)]
    pairs = list(combinations(range(len(of_class)), 2))
    result = np.zeros((len(pairs), dual.shape[1]))
    for row, (i, j) in zip(result, pairs, strict=True):
        row[of_class[i]], row[of_class[j]] = dual[j - 1, of_class[i]], dual[i, of_class[j]]
    return result


def _ridge(estimator: KernelRidge) -> list[Bumps]:
    supports = _toarray(estimator.X_fit_)
    p = supports.shape[1]
    gammas = np.full(p, 1 / p if estimator.gamma is None else float(estimator.gamma))
    coefficients = np.asarray(estimator.dual_coef_, float).reshape(len(supports), -1).T
    constant = np.zeros(len(coefficients))
    front, rounding = ValidatedFront(estimator, ("csr", "csc")), rounding_of(estimator.X_fit_.dtype)
    return [Bumps(front, constant, coefficients, supports, gammas, rounding=rounding)]


def _process(estimator: GaussianProcessRegressor) -> list[Bumps]:
    supports = np.asarray(estimator.X_train_, float)
    alpha = np.asarray(estimator.alpha_, float).reshape(len(supports), -1).T
    coefficients = alpha * np.reshape(estimator._y_train_std, (-1, 1))
    constant = np.broadcast_to(estimator._y_train_mean, len(alpha)).astype(float)
    front, rounding = ValidatedFront(estimator, False), rounding_of(estimator.X_train_.dtype)
    bumps = _bumps_of(estimator.kernel_, supports.shape[1])
    flat = sum(weight for weight, gammas in bumps if not gammas.any())
    constant = constant + flat * coefficients.sum(axis=1)
    curved = [(weight, gammas) for weight, gammas in bumps if gammas.any()]
    parts = [
        Bumps(front, 0 * constant, weight * coefficients, supports, gammas, rounding=rounding)
        for weight, gammas in curved or [(0.0, np.zeros(supports.shape[1]))]
    ]
    return [parts[0].plus(constant), *parts[1:]]


def _bumps_of(kernel: Any, p: int) -> list[tuple[float, np.ndarray]]:
    """Return a kernel of p inputs as Σ weight · exp(-Σ_i γ_i gap_i²), between different points."""
    kind = type(kernel)  # Matern is a subclass of RBF
    if kind is gp.RBF or (kind is gp.Matern and kernel.nu == np.inf):
        return [(1.0, np.broadcast_to(0.5 / np.square(kernel.length_scale), p).astype(float))]
    if kind is gp.ConstantKernel:
        return [(float(kernel.constant_value), np.zeros(p))]
    if kind is gp.WhiteKernel:
        return []
    if kind is gp.Sum:
        return _bumps_of(kernel.k1, p) + _bumps_of(kernel.k2, p)
    if kind is gp.Product:
        pairs = product(_bumps_of(kernel.k1, p), _bumps_of(kernel.k2, p))
        return [(v * w, a + b) for (v, a), (w, b) in pairs]
    raise Unreadable(
        f"the kernel {kernel} of a Gaussian process is not a sum of products over columns, as "
        "constants, RBF and WhiteKernel are"
    )


def _toarray(table: Any) -> np.ndarray:
    return np.ascontiguousarray(to_dense(table), np.float64)


class MachineFront(Front):
    """The checks of support vector machines."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.columns = np.arange(estimator.n_features_in_)

    @override
    def inputs(self, X: Any) -> Any:
        return self.estimator._validate_for_predict(X)

"""Weighted sums of other models: Stacking, TransformedTarget, MultiOutput, OneVsRest.

Stacking with a linear final estimator is Σ_m w_m f_m(x) + b over the outputs f_m of its members. A
scaled target is scaled back by an affine function. The members for several targets, or for one
class against the rest each, become outputs side by side. Other readers read the members.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.linear_model._base import LinearClassifierMixin, LinearModel
from sklearn.multiclass import (
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
    _ConstantPredictor,
)
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from skattr.pieces import readers
from skattr.pieces.base import Unreadable, unwrap
from skattr.pieces.preprocessing.pipeline import to_dense

LINEAR = (LinearModel, LinearClassifierMixin, SGDRegressor)
SCALE_OF = {"predict": "predict", "predict_proba": "proba", "decision_function": "raw"}
# why these meta-estimators have no scale
NO_SUM: dict[Any, str] = {
    CalibratedClassifierCV: "bends the scores of its members, which are not all read",
    (RegressorChain, ClassifierChain): "shows members what others predict: not a weighted sum",
    AdaBoostRegressor: "is a weighted median of its members, not a mean",
    AdaBoostClassifier: "lets its members vote, and labels are not read",
    OneVsOneClassifier: "lets its members vote, which is not a weighted sum",
    OutputCodeClassifier: "looks for the nearest code, which is not a weighted sum",
}


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which an estimator is a weighted sum of its members.

    For regressors `read` checks the members. For classifiers they are checked here, so that one
    whose members cannot be read is a black box on the scale of its probabilities.
    """
    if isinstance(estimator, REGRESSORS):
        return ("predict", "raw")  # without a link they are the same
    if isinstance(estimator, OneVsRestClassifier):
        return ("raw",) if hasattr(estimator, "decision_function") else ()
    if isinstance(estimator, MultiOutputClassifier):
        common = [readers.scales(unwrap(member)) for member in estimator.estimators_]
        return ("proba",) if all("proba" in of_member for of_member in common) else ()
    if isinstance(estimator, StackingClassifier):
        return ("raw",) if _why_no_stack(estimator) is None else ()
    return ()


def read(estimator: Any, scale: str) -> list:
    """Read all members, each with its weight."""
    return next(f(estimator) for kind, f in COMPOSITES.items() if isinstance(estimator, kind))


def why_not(estimator: Any) -> str | None:
    """Return why an estimator without a scale is not a sum of pieces."""
    name = type(estimator).__name__
    for kind, reason in NO_SUM.items():
        if isinstance(estimator, kind):
            return f"{name} {reason}"
    if isinstance(estimator, StackingClassifier):
        return _why_no_stack(estimator)
    if isinstance(estimator, OneVsRestClassifier):
        return f"{name} divides the probabilities of its members by their sum"
    if isinstance(estimator, MultiOutputClassifier):
        return readers.why_none(unwrap(estimator.estimators_[0]), "proba")
    return None


# -- Stacking ------------------------------------------------------------------------------------


def _stack(estimator: Any) -> list:
    """Read the members, weighted by the coefficients of the final estimator."""
    weights, intercept = _affine(estimator)
    k = len(estimator.classes_) if isinstance(estimator, StackingClassifier) else 1
    width = 1 if k == 2 else k  # of two classes it sees the probabilities of the second
    parts = []
    for i, member in enumerate(estimator.estimators_):
        method = estimator.stack_method_[i]
        block = weights[i * width : (i + 1) * width]
        if method == "predict_proba" and k == 2:
            block = np.vstack([np.zeros_like(block), block])
        member_parts = readers.read(unwrap(member), _scale_of(estimator, method))
        parts += [_weighted(part, block) for part in member_parts]
    rest = weights[len(estimator.estimators_) * width :]
    if estimator.passthrough:
        parts += _passed_through(estimator, rest)
    elif len(rest):
        raise Unreadable(f"the members of {type(estimator).__name__} are not understood")
    return [parts[0].plus(intercept), *parts[1:]]


def _weighted(part: Any, weights: np.ndarray) -> Any:
    """Return f @ weights, (k, m)."""
    return part.scaled(float(weights[0, 0])) if weights.size == 1 else part.combined(weights)


def _scale_of(estimator: Any, method: str) -> str:
    if method == "predict" and isinstance(estimator, StackingClassifier):
        raise Unreadable("the final estimator of StackingClassifier sees labels")
    return SCALE_OF[method]


def _passed_through(estimator: Any, weights: np.ndarray) -> list:
    """Read the final estimator's terms of the raw columns as a linear model."""
    model = LinearRegression()
    model.coef_ = weights.T
    model.intercept_ = np.zeros(weights.shape[1])
    model.n_features_in_ = len(weights)
    if hasattr(estimator, "feature_names_in_"):
        model.feature_names_in_ = estimator.feature_names_in_
    try:
        return readers.read(model, "predict")
    except Unreadable as reason:
        name = type(estimator).__name__
        raise Unreadable(
            f"the final estimator of {name} sees raw columns too (passthrough): {reason}"
        ) from reason


def _why_no_stack(estimator: Any) -> str | None:
    """Return why a StackingClassifier is not a weighted sum, without reading its members."""
    if isinstance(estimator.classes_, list):
        return "StackingClassifier has several targets"
    try:
        _affine(estimator)
        for member, method in zip(estimator.estimators_, estimator.stack_method_, strict=True):
            scale = _scale_of(estimator, method)
            if scale not in readers.scales(unwrap(member)):
                return f"a member of the stack: {readers.why_none(unwrap(member), scale)}"
    except Unreadable as reason:
        return str(reason)
    return None


def _affine(stack: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the final estimator as z @ weights + intercept, (p, m) and (m,)."""
    final = unwrap(stack.final_estimator_)
    steps: list = []
    if isinstance(final, Pipeline):
        steps = [unwrap(step) for _, step in final.steps[:-1]]
        final = unwrap(final.steps[-1][1])
    if not isinstance(final, LINEAR):
        raise Unreadable(
            f"the final estimator of {type(stack).__name__}, {type(final).__name__}, is not linear"
        )
    weights = np.atleast_2d(np.asarray(to_dense(final.coef_), np.float64)).T
    intercept = np.broadcast_to(np.asarray(final.intercept_, np.float64), weights.shape[1:])
    for step in reversed(steps):
        affine = None if getattr(step, "clip", False) else scaler(step, "func")
        if affine is None:
            raise Unreadable(
                f"{type(step).__name__} in front of the final estimator of "
                f"{type(stack).__name__} is not affine"
            )
        factor, shift = affine
        weights = weights / np.reshape(factor, (-1, 1))
        intercept = intercept - np.broadcast_to(shift, len(weights)) @ weights
    return weights, intercept


# -- scaled targets ------------------------------------------------------------------------------


def scaler(step: Any, function: str) -> tuple[Any, Any] | None:
    """Return factor and shift of a scaler, x = factor · z + shift, z being its output for x.

    None if the step is not a known scaler. `function` is the function of a FunctionTransformer that
    must not be set.
    """
    if step is None or isinstance(step, str):  # "passthrough"
        return 1.0, 0.0
    if isinstance(step, FunctionTransformer):
        return (1.0, 0.0) if getattr(step, function) is None else None
    if isinstance(step, StandardScaler):
        return step.scale_ if step.with_std else 1.0, step.mean_ if step.with_mean else 0.0
    if isinstance(step, MinMaxScaler):
        return 1 / step.scale_, -step.min_ / step.scale_
    if isinstance(step, MaxAbsScaler):
        return step.scale_, 0.0
    if isinstance(step, RobustScaler):
        factor = step.scale_ if step.with_scaling else 1.0
        return factor, step.center_ if step.with_centering else 0.0
    return None


def _scaled_back(estimator: TransformedTargetRegressor) -> list:
    """Read the regressor, scaled back to the target."""
    factor, shift = _inverse(estimator, unwrap(estimator.transformer_))
    parts = readers.read(unwrap(estimator.regressor_), "predict")
    weights = np.diag(np.atleast_1d(factor))  # one factor, or one per target
    parts = [_weighted(part, weights) for part in parts]
    return [parts[0].plus(shift), *parts[1:]]


def _inverse(estimator: TransformedTargetRegressor, transformer: Any) -> tuple[Any, Any]:
    """Return factor and shift of the target's inverse transform."""
    steps = [transformer]
    if isinstance(transformer, Pipeline):
        steps = [unwrap(step) for _, step in reversed(transformer.steps)]
    factor, shift = 1.0, 0.0
    for step in steps:
        affine = scaler(step, "inverse_func")
        if affine is None:
            name = type(step).__name__
            functions = estimator.transformer is None
            raise Unreadable(
                "the target of TransformedTargetRegressor goes through "
                f"{'func and inverse_func' if functions else f'a {name}'}, neither affine nor "
                "known to work number by number, as numpy's functions do"
            )
        factor, shift = affine[0] * factor, affine[0] * shift + affine[1]
    return factor, shift


# -- members side by side ------------------------------------------------------------------------


def _targets(estimator: MultiOutputRegressor) -> list:
    """Read one member per target."""
    k = len(estimator.estimators_)
    return [
        part.at_outputs([i], k)
        for i, member in enumerate(estimator.estimators_)
        for part in readers.read(unwrap(member), "predict")
    ]


def _targets_of_classes(estimator: MultiOutputClassifier) -> list:
    """Read one member per target, and put the classes of all targets side by side."""
    ends = np.cumsum([len(classes) for classes in estimator.classes_])
    return [
        part.at_outputs(range(end - len(classes), end), ends[-1])
        for member, classes, end in zip(
            estimator.estimators_, estimator.classes_, ends, strict=True
        )
        for part in readers.read(unwrap(member), "proba")
    ]


def _against_the_rest(estimator: OneVsRestClassifier) -> list:
    """Read one member per class, or the one that tells two classes apart."""
    k = len(estimator.estimators_)
    constant = np.zeros(k)
    parts: list = []
    for i, member in enumerate(estimator.estimators_):
        if isinstance(member, _ConstantPredictor):  # all rows had this label, or none
            constant[i] = member.y_[0]
        else:
            member_parts = readers.read(unwrap(member), "raw")
            parts += member_parts if k == 1 else [part.at_outputs([i], k) for part in member_parts]
    if not parts:
        raise Unreadable("every member of OneVsRestClassifier is a constant")
    return [parts[0].plus(constant), *parts[1:]] if constant.any() else parts


COMPOSITES: dict[Any, Any] = {
    (StackingRegressor, StackingClassifier): _stack,
    TransformedTargetRegressor: _scaled_back,
    MultiOutputRegressor: _targets,
    MultiOutputClassifier: _targets_of_classes,
    OneVsRestClassifier: _against_the_rest,
}
REGRESSORS = (StackingRegressor, TransformedTargetRegressor, MultiOutputRegressor)

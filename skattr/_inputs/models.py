"""The user's estimator: whether it is a model, whether it is fitted, and fitting a clone of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skattr._inputs import modules
from skattr._utils.messages import brief

MOST_NAMES = 12  # outputs that are all named


def check(estimator: Any) -> None:
    """Raise an error if the estimator is not a model."""
    if modules.is_module(estimator):
        modules.check(estimator)
        return
    if isinstance(estimator, type):
        raise TypeError(f"{estimator.__name__} is a class, not a model: pass a fitted instance")
    if isinstance(estimator, Pipeline) and not hasattr(estimator, "predict"):
        name, last = estimator.steps[-1]
        none = last is None or isinstance(last, str)
        kind = "passthrough" if none else type(last).__name__
        raise TypeError(
            f"the Pipeline is not a model: its last step {name!r} ({kind}) has no predict; end it "
            "with an estimator that predicts"
        )
    if len(getattr(estimator, "shape", ())) == 2:
        raise TypeError(
            f"estimator must be a model, got {brief(estimator)}: MeasureExplainer(model).fit(X)"
        )
    if not hasattr(estimator, "predict") and not callable(estimator):
        raise TypeError(
            f"{type(estimator).__name__} is not a model: it has no predict and cannot be called"
        )


def in_words(estimator: Any) -> str:
    """Return the class of a model, of a Pipeline those of its steps."""
    if isinstance(estimator, Pipeline):
        steps = [getattr(step, "__name__", type(step).__name__) for _, step in estimator.steps]
        return f"Pipeline: {' → '.join(steps)}"
    return getattr(estimator, "__name__", type(estimator).__name__)


def output_in_words(scale: str, names: Sequence[str]) -> str:
    """Return what is explained: the scale of the numbers, and the outputs.

    Examples
    --------
    >>> output_in_words("prediction", ["prediction"]), output_in_words("probability", ["a", "b"])
    ('prediction', 'probability of a, b')
    >>> output_in_words("prediction", [f"y{j}" for j in range(200)])
    'prediction of y0, y1, y2, … (200 outputs)'
    """
    outputs, scale = ", ".join(names), scale or "output"
    if len(names) > MOST_NAMES:
        outputs = f"{', '.join(names[:3])}, … ({len(names)} outputs)"
    return outputs if outputs == scale else f"{scale} of {outputs}"


def check_width(estimator: Any, names: list) -> None:
    """Refuse X with other columns than the estimator was fitted on."""
    n_columns = len(names)
    known = list(getattr(estimator, "feature_names_in_", []))
    missing = [name for name in known if name not in names]
    if missing and n_columns < len(known):
        raise ValueError(
            f"X lacks the columns {missing} that {type(estimator).__name__} was fitted on"
        )
    # a CatBoost model that was loaded, copied, unpickled or summed says 0 or nothing: it has names
    wanted = getattr(estimator, "n_features_in_", 0)
    wanted = wanted or len(getattr(estimator, "feature_names_", names))
    if wanted != n_columns:
        extra = [name for name in names if name not in known] if known else []
        raise ValueError(
            f"X has {n_columns} columns, but {type(estimator).__name__} was fitted on {wanted}"
            + (f": drop {brief(extra)}" if extra else "")
        )


def works_in_place(estimator: Any) -> bool:
    """Tell whether a step writes into the table that it is given (copy=False)."""
    params = estimator.get_params() if hasattr(estimator, "get_params") else {}
    names = [name for name in params if name == "copy" or name.endswith("__copy")]
    return any(params[name] is False for name in names)


def is_fitted(estimator: Any) -> bool:
    """Tell whether an estimator is fitted; others than scikit-learn's always are."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:  # scikit-learn raises it for sums of CatBoost models too
        says_fitted = getattr(estimator, "is_fitted", None)
        return callable(says_fitted) and bool(says_fitted())
    return True


def fitted(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return the estimator itself if it is fitted, else a clone that is fitted to X and y."""
    if is_fitted(estimator):
        return estimator
    if y is None:
        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet: fit it, or pass y to fit "
            "a clone of it. To keep a fitted estimator when the explainer is cloned, wrap it in "
            "sklearn.frozen.FrozenEstimator"
        )
    weighted = sample_weight is not None and has_fit_parameter(estimator, "sample_weight")
    return clone(estimator).fit(X, y, **({"sample_weight": sample_weight} if weighted else {}))

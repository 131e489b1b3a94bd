"""The function of an estimator that is explained: its scale, its columns and their names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from skattr._inputs import frames, modules
from skattr._inputs.models import works_in_place
from skattr._utils.messages import brief

SCALES = ("auto", "raw", "proba", "predict")
LABELLERS = ("clusterer", "outlier_detector", "density_estimator")  # predict returns labels
SCORES = ("decision_function", "score_samples")


@dataclass(eq=False)
class Output:
    """f: a method of an estimator, and the columns of its result that are explained."""

    estimator: Any
    method: str  # "" for a plain callable, "margin" for a margin that only the reader can compute
    scale: str  # "raw", "proba" or "predict"
    columns: list[int] | None  # None: all
    names: list[str]

    def __call__(self, X: Any) -> np.ndarray:
        """Return f(X), (n, k)."""
        X = frames.copy(X) if works_in_place(self.estimator) else X
        result = _call(self.estimator, self.method, X)
        if self.columns is not None:
            result = result[:, self.columns]
        if result.shape[1] != len(self.names):
            raise ValueError(
                f"{_name(self.estimator)} returned {result.shape[1]} values per row, "
                f"but {len(self.names)} before"
            )
        return result

    def scale_in_words(self, X: Any) -> str:
        """Name the quantity that is explained, "" if it is unknown.

        For "raw" this takes some rows X: which link leads from the raw numbers to the prediction
        tells whether they are log-odds.
        """
        if self.scale != "raw":
            known = {"proba": "probability", "predict": "prediction" if self.method else ""}
            return known[self.scale]
        classifies = hasattr(self.estimator, "__sklearn_tags__") and is_classifier(self.estimator)
        with suppress(Exception):  # f accepts X, another method need not
            raw = self(X)
            final = _call(self.estimator, "predict_proba" if classifies else "predict", X)
            if classifies and raw.shape[1] == 1:
                final = final[:, 1:]  # the positive class
            for name, link in _links(classifies, raw.shape[1]).items():
                linked = link(raw)
                if linked.shape == final.shape and np.allclose(linked, final, rtol=1e-5, atol=1e-6):
                    return name
        scores = classifies or self.method in SCORES
        return self.method.replace("_", " ") if scores else "raw prediction"


def _links(classifies: bool, k: int) -> dict[str, Callable]:
    """Return the links that may lead from raw numbers to predictions, by the name of the former."""
    if classifies:
        return {"log-odds": expit} if k == 1 else {"logit": partial(softmax, axis=1)}
    return {"prediction": np.asarray, "log of the prediction": np.exp, "log-odds": expit}


def _name(estimator: Any) -> str:
    return getattr(estimator, "__name__", type(estimator).__name__)


def _call(estimator: Any, method: str, X: Any) -> np.ndarray:
    if not method and modules.is_module(estimator):
        result: Any = modules.predict(estimator, X)
    elif method in ("margin", "predict"):
        from skattr.pieces import readers

        result = getattr(readers, method)(estimator, X)
    else:
        result = (getattr(estimator, method) if method else estimator)(X)
    if isinstance(result, list) and all(np.ndim(part) == 2 for part in result):
        result = np.concatenate(result, axis=1)  # a classifier with several targets
    if np.iscomplexobj(result):
        raise ValueError(
            f"{_name(estimator)} returned complex numbers; explain its real part or its modulus, "
            "by a function that returns it"
        )
    try:
        values = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError) as error:
        name = _name(estimator)
        raise ValueError(f"{name} returned values that are not numbers: {error}") from error
    if values.ndim not in (1, 2) or len(values) != len(X):
        raise ValueError(
            f"{_name(estimator)} returned an array of shape {values.shape} for {len(X)} rows; "
            "it must be (n,) or (n, k)"
        )
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(
            f"{_name(estimator)} returned no column (an array of shape {values.shape}); it must "
            "return at least one number per row, (n,) or (n, k)"
        )
    values = values.reshape(len(values), -1)
    if not np.isfinite(values).all():
        row, o = np.argwhere(~np.isfinite(values))[0].tolist()
        if np.isnan(values[row, o]):
            raise ValueError(
                f"{_name(estimator)} returned NaN for row {row} of {len(X)}; leave such rows out, "
                "or explain a function that returns numbers for all rows"
            )
        raise ValueError(
            f"{_name(estimator)} returned {values[row, o]} for row {row} of {len(X)}: infinite "
            "values have no mean; explain another output, or a function with bounds, such as "
            "lambda X: np.clip(model.predict(X), low, high)"
        )
    return values


def resolve(
    estimator: Any, output: str, readable: tuple[str, ...], has_margin: bool, X: Any
) -> Output:
    """Choose the function to explain.

    `readable` are the scales on which a reader finds pieces, best first; `has_margin` tells whether
    a reader computes the prediction before the link; X is one row, which shows the number of
    outputs where the estimator does not tell it.
    """
    if not isinstance(output, str) or output not in SCALES:
        raise ValueError(f"output must be one of {list(SCALES)}, got {brief(output)}")
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
        return _classifier(estimator, output, readable, has_margin, X)
    if _kind(estimator) in LABELLERS:
        return _score(estimator, output)
    if not hasattr(estimator, "predict") or modules.is_module(estimator):
        method, scale = "", "predict"
        if output not in ("auto", "predict"):
            raise ValueError(f"output={brief(output)}: a function has one output; use 'auto'")
    elif output == "proba":
        raise ValueError(
            f"output='proba' needs a classifier, got {_name(estimator)}; use 'predict', 'raw' or "
            "'auto'"
        )
    else:
        scale = (*readable, "predict")[0] if output == "auto" else output
        method = _raw_method(estimator, has_margin, "predict") if scale == "raw" else "predict"
    k = getattr(estimator, "n_outputs_", None) or _width(estimator, method, X, readable)
    names = ["prediction"] if k == 1 else [f"y{i}" for i in range(k)]
    return Output(estimator, method, scale, None, names)


def _kind(estimator: Any) -> str | None:
    """Return scikit-learn's type of an estimator, such as "clusterer", if it has one."""
    if not hasattr(estimator, "__sklearn_tags__") or modules.is_module(estimator):
        return None
    return get_tags(estimator).estimator_type


def _score(estimator: Any, output: str) -> Output:
    """Choose the score of an estimator that predicts labels."""
    name = _name(estimator)
    labels = f"{name} predicts labels, which cannot be integrated"
    method = next((method for method in SCORES if hasattr(estimator, method)), None)
    if method is None:
        raise ValueError(
            f"{labels}, and has no {' or '.join(SCORES)}; explain a function of it, such as "
            "lambda X: model.transform(X)[:, 0]"
        )
    if output not in ("auto", "raw"):
        raise ValueError(f"output={output!r}: {labels}; use 'auto' or 'raw' for its {method}")
    return Output(estimator, method, "raw", None, ["score"])


def _width(estimator: Any, method: str, X: Any, readable: tuple[str, ...]) -> int:
    """Return the number of values per row, as a reader knows it or as returned for one row."""
    from skattr.pieces import readers

    try:
        return readers.n_outputs(estimator, X) or _call(estimator, method, X).shape[1]
    except (TypeError, ValueError) as error:
        if not readable:
            raise
        words = not hasattr(estimator, "steps")  # steps may accept text
        raise ValueError(f"the model refuses X: {error}{frames.unusual(X, words)}") from error


def _raw_method(estimator: Any, has_margin: bool, other: str) -> str:
    """Return the method before the link; that of a reader comes first."""
    if has_margin:
        return "margin"
    return "decision_function" if hasattr(estimator, "decision_function") else other


def _classifier(
    estimator: Any, output: str, readable: tuple[str, ...], has_margin: bool, X: Any
) -> Output:
    if output == "predict":
        raise ValueError(
            "output='predict' is refused for a classifier: labels cannot be integrated; "
            "use 'proba' or 'raw'"
        )
    raw = _raw_method(estimator, has_margin, "decision_function")
    methods = {"proba": "predict_proba", "raw": raw}
    available = [s for s, m in methods.items() if m == "margin" or hasattr(estimator, m)]
    if output == "auto":
        choices = [scale for scale in readable if scale in available] or available
        if not choices:
            raise ValueError(
                f"{_name(estimator)} has neither predict_proba nor decision_function to explain"
            )
        output = choices[0]
    elif output not in available:
        raise ValueError(
            f"output={brief(output)}: {_name(estimator)} has no {methods[output]}; "
            f"it has {available or 'neither'}"
        )
    classes = estimator.classes_
    several = isinstance(classes, list)
    targets = classes if several else [classes]
    columns: list[int] = []
    names: list[str] = []
    start = 0
    if output == "raw":
        k = _width(estimator, methods[output], X, readable)
        if k == 1:
            return Output(estimator, methods[output], output, None, [str(classes[-1])])
        pairwise = getattr(estimator, "decision_function_shape", "ovr") == "ovo"
        if several or pairwise or k != len(classes):
            names = [str(i) for i in range(k)]
            return Output(estimator, methods[output], output, None, names)
    # unlike the probabilities of two classes, other pairs of columns are two quantities
    both = output == "raw" or getattr(estimator, "multilabel_", False)
    for i, labels in enumerate(targets):
        shown = [1] if len(labels) == 2 and not both else range(len(labels))
        columns += [start + c for c in shown]
        names += [f"y{i}__{labels[c]}" if several else str(labels[c]) for c in shown]
        start += len(labels)
    return Output(estimator, methods[output], output, columns, names)

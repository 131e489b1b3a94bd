"""Which function of an estimator is explained: its scale, its columns and their names."""

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

from skattr import frames, modules
from skattr.messages import brief
from skattr.models import works_in_place

SCALES = ("auto", "raw", "proba", "predict")
LABELLERS = ("clusterer", "outlier_detector", "density_estimator")  # predict returns labels
SCORES = ("decision_function", "score_samples")


@dataclass(eq=False)
class Output:
    """f: a method of the estimator, and the columns of its result that are explained."""

    estimator: Any
    method: str  # "" for a plain callable, "margin" for what only a reader can ask for
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
                f"{_name(self.estimator)} returned {result.shape[1]} values a row, "
                f"but {len(self.names)} before"
            )
        return result

    def scale_in_words(self, X: Any) -> str:
        """Say what the numbers are, "" if unknown; for "raw" by what the model makes of some rows.

        One decision function is a log-odds and another is not, whatever it is called.
        """
        if self.scale != "raw":
            known = {"proba": "probability", "predict": "prediction" if self.method else ""}
            return known[self.scale]
        classifies = hasattr(self.estimator, "__sklearn_tags__") and is_classifier(self.estimator)
        with suppress(Exception):  # f works at X: that another method does not, is no harm
            raw = self(X)
            final = _call(self.estimator, "predict_proba" if classifies else "predict", X)
            if classifies and raw.shape[1] == 1:
                final = final[:, 1:]  # the positive class
            for words, link in _links(classifies, raw.shape[1]).items():
                made = link(raw)
                if made.shape == final.shape and np.allclose(made, final, rtol=1e-5, atol=1e-6):
                    return words
        scores = classifies or self.method in SCORES
        return self.method.replace("_", " ") if scores else "raw prediction"


def _links(classifies: bool, k: int) -> dict[str, Callable]:
    """Return what may lead from raw numbers to the model's answer, by what that makes of them."""
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
        raise ValueError(f"{_name(estimator)} returned what are no numbers: {error}") from error
    if values.ndim not in (1, 2) or len(values) != len(X):
        raise ValueError(
            f"{_name(estimator)} returned an array of shape {values.shape} for {len(X)} rows; "
            "it must be (n,) or (n, k)"
        )
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(
            f"{_name(estimator)} returned no column (an array of shape {values.shape}); there must "
            "be a number a row to explain, (n,) or (n, k) with k of at least 1"
        )
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values.reshape(len(values), -1)).any(axis=1))[0])
        raise ValueError(f"{_name(estimator)} returned NaN for row {row} of {len(X)}")
    return values.reshape(len(values), -1)


def resolve(
    estimator: Any, output: str, readable: tuple[str, ...], has_margin: bool, X: Any
) -> Output:
    """Choose the function to explain.

    `readable` are the scales on which a reader finds pieces, best first; `has_margin` whether a
    reader knows the answer before the link; X is one row, to see how many values there are where
    nothing else tells.
    """
    if not isinstance(output, str) or output not in SCALES:
        raise ValueError(f"output={brief(output)} is not known; it is one of {list(SCALES)}")
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
        return _classifier(estimator, output, readable, has_margin, X)
    if _kind(estimator) in LABELLERS:
        return _score(estimator, output)
    if not hasattr(estimator, "predict") or modules.is_module(estimator):
        method, scale = "", "predict"
        if output not in ("auto", "predict"):
            raise ValueError(f"output={brief(output)}: a function has no other output than its own")
    elif output == "proba":
        raise ValueError(
            f"output='proba': {_name(estimator)} is no classifier; use 'predict', 'raw' or 'auto'"
        )
    else:
        scale = (*readable, "predict")[0] if output == "auto" else output
        method = _raw_method(estimator, has_margin, "predict") if scale == "raw" else "predict"
    k = getattr(estimator, "n_outputs_", None) or _width(estimator, method, X, readable)
    names = ["prediction"] if k == 1 else [f"y{i}" for i in range(k)]
    return Output(estimator, method, scale, None, names)


def _kind(estimator: Any) -> str | None:
    """Return what scikit-learn calls an estimator, such as "clusterer", if it is one."""
    if not hasattr(estimator, "__sklearn_tags__") or modules.is_module(estimator):
        return None
    return get_tags(estimator).estimator_type


def _score(estimator: Any, output: str) -> Output:
    """Choose the score of an estimator that predicts labels."""
    name = _name(estimator)
    labels = f"{name} predicts labels, which are not a quantity to integrate"
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
    """Return the number of values a row, by looking at one."""
    try:
        return _call(estimator, method, X).shape[1]
    except (TypeError, ValueError) as error:
        if not readable:
            raise
        words = not hasattr(estimator, "steps")  # steps may take them
        raise ValueError(f"the model refuses X: {error}{frames.unusual(X, words)}") from error


def _raw_method(estimator: Any, has_margin: bool, other: str) -> str:
    """Return the method in front of the link; a reader that has one knows it best."""
    if has_margin:
        return "margin"
    return "decision_function" if hasattr(estimator, "decision_function") else other


def _classifier(
    estimator: Any, output: str, readable: tuple[str, ...], has_margin: bool, X: Any
) -> Output:
    if output == "predict":
        raise ValueError(
            "output='predict' is refused for a classifier: labels are no numbers to integrate; "
            "use 'proba' or 'raw'"
        )
    raw = _raw_method(estimator, has_margin, "decision_function")
    methods = {"proba": "predict_proba", "raw": raw}
    there = [s for s, method in methods.items() if method == "margin" or hasattr(estimator, method)]
    if output == "auto":
        choices = [scale for scale in readable if scale in there] or there
        if not choices:
            raise ValueError(
                f"{_name(estimator)} has neither predict_proba nor decision_function to explain"
            )
        output = choices[0]
    elif output not in there:
        raise ValueError(
            f"output={brief(output)}: {_name(estimator)} has no {methods[output]}; "
            f"it has {there or 'none of the two'}"
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
    # two columns that are no probabilities of two classes say two things
    both = output == "raw" or getattr(estimator, "multilabel_", False)
    for i, labels in enumerate(targets):
        chosen = [1] if len(labels) == 2 and not both else range(len(labels))
        columns += [start + c for c in chosen]
        names += [f"y{i}__{labels[c]}" if several else str(labels[c]) for c in chosen]
        start += len(labels)
    return Output(estimator, methods[output], output, columns, names)

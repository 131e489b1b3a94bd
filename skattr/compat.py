"""The interface of shap's TreeExplainer, on exact Shapley values: change one import.

Only the interface is shap's. The values are those of `MeasureExplainer(model, "shapley")`, on the
raw columns that the model takes: numbers are compared as the model compares them, and categories
and missing values go where the model sends them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.pieces import choose_output

__all__ = ["TreeExplainer"]

_OUTPUTS = {"raw": "auto", "probability": "proba"}


def __dir__() -> list[str]:
    return [*__all__]


class TreeExplainer:
    """Shapley values with the interface of `shap.TreeExplainer(model, data)`.

    They are what shap calls interventional: a coalition is worth the mean of f over the background,
    with the coalition's columns set to the values of the row. Use `MeasureExplainer(model,
    "shapley")` for everything that shap's interface does not have: groups of columns, weights,
    batches, other measures, reports.

    Parameters
    ----------
    model : fitted model
        Trees, forests and boosting of scikit-learn, xgboost, lightgbm and catboost, also as the
        last step of a Pipeline, which is explained on its raw columns.
    data : DataFrame or array (n, d)
        The background. Unlike in shap it is required: path-dependent values, shap's default without
        data, depend on the shape of the trees and not only on the function f that they compute.
    model_output : {"raw", "probability"}, default="raw"
        The scale, as in shap. "raw" is what the trees add up to: margins of boosting (the log-odds
        of the second of two classes), the probabilities of all classes of a forest, the prediction
        of a regressor before its link. "probability" needs a model with `predict_proba`; values are
        the Shapley values of the probability, where shap rescales those of the margin.

    Attributes
    ----------
    expected_value : float or array (k,)
        The mean of f over the background.
    feature_names : list
        The labels of the columns; x0, x1, … for an array.
    model, data, model_output : as passed.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from skattr.compat import TreeExplainer
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
    >>> explainer = TreeExplainer(forest, data=X[:100])
    >>> values = explainer.shap_values(X[100:])
    >>> values.shape
    (342, 10)
    >>> end = explainer.expected_value + values.sum(axis=1)
    >>> bool(abs(end - forest.predict(X[100:])).max() < 1e-9)
    True
    """

    def __init__(self, model: Any, data: Any = None, *, model_output: str = "raw") -> None:
        if data is None:
            raise ValueError(
                "TreeExplainer needs background rows: TreeExplainer(model, data=X_background). "
                "Without them shap computes path-dependent values, which are not offered here: "
                "they depend on the shape of the trees, so that two models with equal predictions "
                "get different values. The training rows, or some hundred of them, will do"
            )
        if not isinstance(model_output, str) or model_output not in _OUTPUTS:
            raise ValueError(
                f"model_output must be one of {list(_OUTPUTS)}, got {brief(model_output)}"
            )
        if model_output == "probability" and not hasattr(model, "predict_proba"):
            raise ValueError(
                f"model_output='probability' needs a model with predict_proba, got {brief(model)}; "
                "use 'raw'"
            )
        self.model, self.data, self.model_output = model, data, model_output
        self._explainer = MeasureExplainer(model, "shapley", output=_OUTPUTS[model_output])
        self._explainer.fit(data)
        self._both = _explains_two_probabilities(model, data)
        self.feature_names = self._explainer.column_names_
        base = self._explainer.base_value_
        self.expected_value = np.array([1 - base, base]) if self._both else base

    def shap_values(self, X: Any, *, check_additivity: bool = True) -> np.ndarray:
        """Return the Shapley values of rows, (n, d), or (n, d, k) for k outputs.

        Parameters
        ----------
        X : DataFrame or array (n, d), or one row as a Series or array (d,)
            The rows; the result for one row is (d,) or (d, k).
        check_additivity : bool, default=True
            Whether to evaluate the model at the rows, and raise a RuntimeError if
            `expected_value` and the values do not add up to its predictions.
        """
        explanation = self._explain(X, predictions=check_additivity)
        if check_additivity and not explanation.adds_up():
            worst = np.abs(explanation.remainder().to_numpy()).max()
            raise RuntimeError(
                f"the values and expected_value do not add up to the predictions: they differ by "
                f"up to {worst:.3g}"
            )
        values = explanation.values.copy()
        return values[0] if np.ndim(X) == 1 else values

    def shap_interaction_values(self, X: Any) -> np.ndarray:
        """Return the Shapley interaction indices of rows, (n, d, d), or (n, d, d, k).

        The index of a pair of columns stands on both sides of the diagonal, half on each; the
        diagonal is the Shapley value less these halves, so that each row of a matrix adds up to a
        Shapley value. (shap returns zeros if it has background rows; its own convention of the
        matrix is for path-dependent values.)

        Parameters
        ----------
        X : DataFrame or array (n, d), or one row as a Series or array (d,)
            The rows; the result for one row is (d, d) or (d, d, k).

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from skattr.compat import TreeExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = TreeExplainer(forest, data=X[:100])
        >>> matrix = explainer.shap_interaction_values(X[100:])
        >>> matrix.shape
        (342, 10, 10)
        >>> bool(abs(matrix.sum(axis=2) - explainer.shap_values(X[100:])).max() < 1e-9)
        True
        """
        matrix = self._explainer.explain_pairs(_as_rows(X), predictions=False).to_matrix()
        if self._both:
            matrix = np.stack([-matrix, matrix], axis=-1)
        return matrix[0] if np.ndim(X) == 1 else matrix

    def __call__(self, X: Any) -> Any:
        """Return the values as a shap.Explanation, which shap's plots take (needs shap).

        Parameters
        ----------
        X : DataFrame or array (n, d), or one row as a Series or array (d,)
            The rows.
        """
        explanation = self._explain(X, predictions=True).to_shap()
        return explanation[0] if np.ndim(X) == 1 else explanation

    def _explain(self, X: Any, predictions: bool) -> Explanation:
        explanation = self._explainer.explain(_as_rows(X), predictions=predictions)
        return _both_classes(explanation, self.model.classes_) if self._both else explanation


def _as_rows(X: Any) -> Any:
    """Return a table, if X is one row."""
    if isinstance(X, pd.Series):
        return X.to_frame().T
    return np.asarray(X)[None] if np.ndim(X) == 1 else X


def _explains_two_probabilities(model: Any, data: Any) -> bool:
    """Return whether shap has the probabilities of both classes, `MeasureExplainer` the second.

    It is so for models that add up probabilities, as forests do, and not for boosting.
    """
    if not (hasattr(model, "__sklearn_tags__") and is_classifier(model)):
        return False
    if isinstance(model.classes_, list) or len(model.classes_) != 2:
        return False
    return choose_output(model, "auto", frames.take_rows(data, slice(0, 1))).scale == "proba"


def _both_classes(explanation: Explanation, classes: Any) -> Explanation:
    """Return the explanation of two probabilities, given that of the second."""
    values, base, end = explanation.values, explanation.base_value, explanation.predictions
    return replace(
        explanation,
        values=np.stack([-values, values], axis=-1),
        base_value=np.array([1 - base, base]),
        predictions=None if end is None else np.stack([1 - end, end], axis=-1),
        output_names=tuple(map(str, classes)),
    )

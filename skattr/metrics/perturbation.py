"""Deletion and insertion curves on tables, against a background.

Attributions of a row are ordered, the largest first. Deletion replaces the columns of the first k
by those of a background row, insertion puts the first k into a background row; both average f over
the background:

    deletion_k = E f(Z_{first k}, x_rest),  insertion_k = E f(x_{first k}, Z_rest),  k = 0 … g.

Deletion starts at f(x) and ends at E f, insertion the other way round. With good attributions the
curve moves early. The area under it is taken over the share k/g, by trapezoids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skattr._inputs import frames
from skattr._utils.messages import brief
from skattr.explainer import MeasureExplainer
from skattr.explanation import Explanation
from skattr.measures.background import as_background

ORDERS = ("size", "value")


@dataclass(frozen=True, eq=False)
class Perturbation:
    """The curves of `deletion` or `insertion`.

    Parameters
    ----------
    curves : array (n, g + 1)
        The mean prediction after k attributions, k = 0 … g.
    order : array (n, g)
        The attributions in the order in which they were taken.
    kind : {"deletion", "insertion"}
        Which curves.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> from skattr.metrics import deletion
    >>> result = deletion(explainer.explain(X), explainer, X)
    >>> result.curves.shape
    (4, 3)
    >>> bool(np.allclose(result.curves[:, 0], tree.predict(X)))  # nothing is taken away yet
    True
    """

    curves: np.ndarray
    order: np.ndarray
    kind: str

    @property
    def area(self) -> np.ndarray:
        """The area under the curve of each row over [0, 1], (n,)."""
        return (self.curves[:, 1:] + self.curves[:, :-1]).mean(axis=1) / 2

    @property
    def mean(self) -> float:
        """The mean area."""
        return float(self.area.mean())

    def __repr__(self) -> str:
        return f"<Perturbation: {self.kind}, mean area {self.mean:.4g}, {len(self.curves)} rows>"


def deletion(explanation: Explanation, explainer: MeasureExplainer, X_background: Any, *,
             order: str = "size", sample_weight: Any = None) -> Perturbation:  # fmt: skip
    """Return how the prediction changes when the largest attributions are taken away first.

    Parameters
    ----------
    explanation : Explanation of one output
        The explanation.
    explainer : MeasureExplainer
        A fitted explainer, whose model and output are used.
    X_background : DataFrame or array (m, d)
        The rows that replace columns, all of them: m·(g + 1) evaluations per explained row.
    order : {"size", "value"}
        The largest |centred value| first, or the largest centred value with its sign.
    sample_weight : array (m,), optional
        Weights of the background's rows.

    Returns
    -------
    Perturbation
        `curves`, `area`, `mean`, `order`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> result = deletion(explainer.explain(X), explainer, X)
    >>> result.curves[3].tolist()  # from the prediction to the mean
    [5.0, 3.0, 2.0]
    """
    return _perturbed("deletion", explanation, explainer, X_background, order, sample_weight)


def insertion(explanation: Explanation, explainer: MeasureExplainer, X_background: Any, *,
              order: str = "size", sample_weight: Any = None) -> Perturbation:  # fmt: skip
    """Return how the mean prediction changes when the largest attributions are put in first.

    Parameters
    ----------
    explanation, explainer, X_background, order, sample_weight
        As in `deletion`.

    Returns
    -------
    Perturbation

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from skattr import MeasureExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> tree = DecisionTreeRegressor().fit(X, [0.0, 1.0, 2.0, 5.0])
    >>> explainer = MeasureExplainer(tree).fit(X)
    >>> result = insertion(explainer.explain(X), explainer, X)
    >>> result.curves[3].tolist()  # from the mean to the prediction
    [2.0, 3.5, 5.0]
    """
    return _perturbed("insertion", explanation, explainer, X_background, order, sample_weight)


def _perturbed(
    kind: str, explanation: Explanation, explainer: MeasureExplainer, X: Any, order: str,
    sample_weight: Any,
) -> Perturbation:  # fmt: skip
    if not isinstance(explanation, Explanation):
        raise TypeError(f"explanation must be an Explanation, got {type(explanation).__name__}")
    check_is_fitted(explainer)
    if len(explanation.output_names) > 1:
        raise ValueError(
            f"the explanation must have one output; select one of {explanation.output_names}"
        )
    if order not in ORDERS:
        raise ValueError(f"order must be one of {ORDERS}, got {brief(order)}")
    background = as_background(X, sample_weight)
    rows, labels = explanation.data, frames.labels(explanation.data)
    if frames.is_frame(background.X):
        background.X = frames.reorder(background.X, labels)
    output = list(explainer.output_names_).index(explanation.output_names[0])
    weights = background.weights / background.weights.sum()
    values = explanation.centered().values
    taken = np.argsort(-(np.abs(values) if order == "size" else values), axis=1, kind="stable")
    attributions = [
        tuple(labels.index(name) for name in columns) for columns in explanation.columns
    ]
    rest = tuple(k for k in range(len(labels)) if not any(k in columns for columns in attributions))
    curves = np.empty((len(values), len(attributions) + 1))
    for i in range(len(values)):
        x = frames.take_rows(rows, slice(i, i + 1))
        for k in range(len(attributions) + 1):
            first, last = taken[i, :k], taken[i, k:]
            kept = first if kind == "insertion" else last
            columns = rest + tuple(c for a in kept for c in attributions[a])
            Z = frames.pin(background.X, x, columns) if columns else background.X
            curves[i, k] = weights @ explainer.pieces_.output(Z)[:, output]
    return Perturbation(curves, taken, kind)

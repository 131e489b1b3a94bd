"""The checks that scikit-learn's estimators make of X."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from skattr._typing import override
from skattr.pieces.parts import Front


class ValidatedFront(Front):
    """Finite numbers, as scikit-learn's `validate_data` returns them."""

    def __init__(self, estimator: Any, accept_sparse: Any) -> None:
        self.estimator = estimator
        self.accept_sparse = accept_sparse
        self.columns = np.arange(estimator.n_features_in_)

    @override
    def inputs(self, X: Any) -> Any:
        return validate_data(self.estimator, X, accept_sparse=self.accept_sparse, reset=False)

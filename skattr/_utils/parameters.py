"""Parameters of scikit-learn estimators."""

from __future__ import annotations

from inspect import signature
from typing import Any


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that are not the defaults.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> changed_parameters(Ridge(alpha=2.0))
    {'alpha': 2.0}
    """
    defaults = signature(type(estimator)).parameters
    values = estimator.get_params(deep=False)
    return {name: value for name, value in values.items() if value is not defaults[name].default}

"""Uniform laws behind curved steps, for smooth models."""

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    SplineTransformer,
)

from skattr import MeasureExplainer
from skattr.measures import Uniform
from tests.helpers.smooth import X

CURVED = {
    "splines": lambda: SplineTransformer(5, degree=2),
    "bins": lambda: KBinsDiscretizer(
        4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"
    ),
    "clipped": lambda: MinMaxScaler(clip=True),
    "exponential": lambda: FunctionTransformer(np.exp),
}


def integrates_behind(steps, model, target, n_rows, n_points, atol):
    """Compare with the integral over the other column, by many midpoints of `predict` itself."""
    values = X[["size", "age"]].to_numpy() / [1, 20]
    domain = np.array([[-4.0, 3.0], [0.5, 4.0]])
    model = make_pipeline(CURVED[steps](), model).fit(values, target)
    got = MeasureExplainer(model, Uniform(), domain=domain).fit(values).explain(values[:3]).values
    share = (np.arange(n_points) + 0.5) / n_points
    for i in range(n_rows):
        for k in range(2):
            rows = np.tile(values[i], (len(share), 1))
            low, high = domain[1 - k]
            rows[:, 1 - k] = low + (high - low) * share
            np.testing.assert_allclose(got[i, k], model.predict(rows).mean(), atol=atol)

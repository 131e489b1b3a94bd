"""Coming from shap
================

Coming from shap: the same model explained by shap and by skattr, with one line changed.

On whole numbers the values are equal. On other numbers, which HistGradientBoosting compares in
float64 and shap in float32, shap's do not add up to the prediction, and ours do. Without shap the
example prints our values alone.

Run it: pip install shap && python examples/from_shap.py
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/from_shap.png"

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

import skattr.compat

try:
    import shap
except ImportError:
    shap = None
    print("shap is not installed: pip install shap shows its values beside ours\n")

ROW = 300  # the row that is printed


def ours(model, background, rows):
    """Return the values and their start."""
    explainer = skattr.compat.TreeExplainer(model, data=background)
    return explainer.shap_values(rows), explainer.expected_value


def theirs(model, background, rows):
    """Return the same of shap: only the first line differs. Its own check would raise below."""
    explainer = shap.TreeExplainer(model, data=background)
    return explainer.shap_values(rows, check_additivity=False), explainer.expected_value


def compare(title, model, X):
    """Print the values of one row, and how far all rows are from adding up."""
    print(title)
    background, rows = X[:100], X[ROW:]
    found = {"skattr": ours(model, background, rows)}
    if shap is not None:
        found["shap"] = theirs(model, background, rows)
    table = pd.DataFrame({name: values[0] for name, (values, _) in found.items()}, list(X))
    print(table.round(3).T.to_string())
    prediction = model.predict(rows)
    for name, (values, start) in found.items():
        off = np.abs(start + values.sum(axis=1) - prediction).max()
        print(f"{name}: expected_value + values is off the prediction by at most {off:.1g}")
    if shap is not None:
        differ = np.abs(found["skattr"][0] - found["shap"][0]).max()
        print(f"largest difference of a value: {differ:.1g}")
    print(f"(spread of the predictions: {prediction.std():.1f})\n")


X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = (10 * X).round()
forest = RandomForestRegressor(50, max_depth=6, random_state=0).fit(X, y)
compare("A forest on whole numbers: shap and skattr agree.\n", forest, X)

X, y = load_diabetes(return_X_y=True, as_frame=True)
boosting = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X, y)
compare(
    "HistGradientBoosting on the standardised numbers. Rounded to float32, some fall on the other\n"
    "side of a threshold: shap explains another function than the model, and does not add up to\n"
    "its prediction. (For the same reason it is off on a forest here.)\n",
    boosting,
    X,
)

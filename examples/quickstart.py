"""Quickstart
==========

Which columns move a forest's predictions, and how: a table and one exact curve.

Run it: python examples/quickstart.py
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/quickstart.png"

import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split

from skattr import MeasureExplainer

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
forest = RandomForestRegressor(min_samples_leaf=3, random_state=0).fit(X_train, y_train)

# "main_effect", E f(x_j, X_-j) - E f(X): what a column adds to the mean prediction
explainer = MeasureExplainer(forest).fit(X_train)
explanation = explainer.explain(X_test)

print(explainer.describe(), end="\n\n")
pd.set_option("display.width", 120, "display.max_columns", 20)
print(explanation.to_frame().head().round(2), end="\n\n")
print(explanation.importance().round(2), end="\n\n")

curve = explainer.curve("bmi")
print(f"The attribution of bmi is a step function with {len(curve.to_frame())} steps.")
for bmi in (20.0, 25.0, 30.0, 35.0):
    print(f"  bmi {bmi:.0f}: {curve(bmi)[0]:+.2f}")

"""Probabilities behind a link
===========================

Margins and probabilities of one booster, side by side.

A booster adds up margins (log-odds); people report probabilities. Both are exact here: partial
dependence on the scale of probabilities is the mean of the logistic function of every background
row's margin, with all its jumps. The two scales can rank columns differently, because a step of the
margin moves the probability most where it is near one half.

Run: python examples/probabilities.py
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/probabilities.png"

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import skattr

rng = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "income": rng.lognormal(10, 0.5, 2000).round(),
        "debt": rng.lognormal(8, 1.0, 2000).round(),
        "age": rng.integers(18, 80, 2000),
        "region": pd.Categorical(rng.choice(["north", "south", "west"], 2000)),
    }
)
risk = X["debt"] / X["income"] * 8 - (X["age"] - 40) / 30 + (X["region"] == "south")
defaults = (risk + rng.logistic(size=len(X)) > 2.5).to_numpy()
model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
model.fit(X, defaults)

margins = skattr.MeasureExplainer(model).fit(X)
probabilities = skattr.MeasureExplainer(model, output="proba").fit(X)
print(margins.describe(), probabilities.describe(), sep="\n\n")

rows = X[:200]
importance = pd.DataFrame(
    {
        "log-odds": margins.explain(rows).importance(),
        "probability": probabilities.explain(rows).importance(),
    }
)
print(f"\nmean |main effect| of 200 rows\n{importance.round(3)}")

ages = np.array([20, 30, 40, 50, 60, 70])
curve = pd.DataFrame(
    {
        "log-odds": margins.curve("age")(ages),
        "probability": probabilities.curve("age")(ages),
        "by hand": [
            model.predict_proba(X.assign(age=age))[:, 1].mean() - probabilities.base_value_
            for age in ages
        ],
    },
    index=pd.Index(ages, name="age"),
)
print(f"\nmain effect of age\n{curve.round(4)}")
assert np.allclose(curve["probability"], curve["by hand"], atol=1e-12)

"""One row
=======

One flat: its curves, what would have to change, and its Shapley values.

The prediction of one row as a function of one column is known with all its jumps. From it follows
the smallest change of that column that brings the rent below a limit, and whether there is one.

Run it: python examples/one_row.py [picture.png]
"""

import sys

import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

import skattr
from skattr.datasets import load_flats

X, y = load_flats()
X = X[["area", "rooms", "district", "balcony", "built", "energy"]]
X = X.assign(district=pd.Categorical(X["district"]))
model = HistGradientBoostingRegressor(
    max_iter=150, categorical_features="from_dtype", early_stopping=False, random_state=0
).fit(X, y)
explainer = skattr.MeasureExplainer(model).fit(X)

flat = X[7:8]
rent = model.predict(flat)[0]
limit = 0.9 * rent
print(flat.T.to_string(header=False), f"rent {rent:.0f}, limit {limit:.0f}", sep="\n")

curves = explainer.ice(flat, "area")
print(f"\n{curves}: {len(curves.to_frame())} steps")
print(pd.Series(curves([40, 60, 80, 100])[0], [40, 60, 80, 100], name="rent by area").round(0))

changes = skattr.counterfactual(explainer, flat, limit)
print(f"\nsmallest changes of one column that bring the rent below {limit:.0f}")
print(changes.round({"after": 0, "before": 0, "share": 3}).to_string(index=False))

shapley = skattr.MeasureExplainer(model, "shapley").fit(X).explain(flat)
print(f"\nShapley values, which add up to {rent:.0f} - {shapley.base_value:.0f}")
print(shapley.to_frame().T.round(1).to_string(header=False))

if len(sys.argv) > 1:
    ax = skattr.plot.ice(explainer.ice(X[:80], "area"), centered=True, color="rooms")
    ax.figure.savefig(sys.argv[1])

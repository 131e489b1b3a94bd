"""How sure is it
==============

How far would another background, or another training set, move importances and curves of a forest?

Errors from the rows of the background come with the values. For other training data, the forest is
fitted again on bootstrap samples, each refit with its own background. Importances and curves of the
refits give the spread; slices tell whether groups of rows are treated differently.

Run it: python examples/how_sure.py [picture.png]
"""

import sys

from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import skattr
from skattr.metrics import by_slice, refit, stability

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = RandomForestRegressor(30, min_samples_leaf=5, random_state=0).fit(X, y)
explainer = skattr.MeasureExplainer(forest).fit(X)
explanation = explainer.explain(X)

error = explanation.importance(error=True)
print("importance, and its 95 % interval from the rows of the background")
print(error.round(2).to_string())
bmi = [20.0, 25.0, 30.0, 35.0]
curve = explainer.curve("bmi")
low, high = curve.interval(bmi)
print("\nthe curve of bmi, and its interval from the rows of the background")
for value, at, a, b in zip(bmi, curve(bmi), low, high, strict=True):
    print(f"{value:g}: {at:.1f} ({a:.1f} to {b:.1f})")

explainers = refit(explainer, X, y, n_refits=20, random_state=0)
found = stability(explainers, X)
frame = found.to_frame()
print(f"\nimportance in {len(explainers)} refits; low and high are the {found.interval_name}")
print(frame.drop(columns="output").round(2).to_string(index=False))

first = frame.iloc[0]
unsure = frame[frame["sign_changes"] > 0.25]["feature"].tolist()
print(f"\nthe most important column is {first['feature']}, of rank {first['rank']:.2f} on average")
print(f"two refits often disagree about the sign of values of: {', '.join(unsure) or 'none'}")

at = found.curve("bmi")(bmi)
at.insert(0, "bmi", bmi)
print("\nthe curve of bmi over the refits")
print(at.drop(columns="output").round(1).to_string(index=False))

groups = by_slice(explanation, "age", bins=[40.0, 60.0])
groups = groups[groups["feature"].isin(frame["feature"][:3])]
table = groups.pivot(index="feature", columns="slice", values="mean_value")
error = groups.pivot(index="feature", columns="slice", values="mean_row_error")
print("\nmean values by age, ± one standard error over the rows of the slice")
print((table.round(1).astype(str) + " ± " + error.round(1).astype(str)).to_string())

if len(sys.argv) > 1:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    skattr.plot.bar(explanation, interval=found, max_features=6, ax=axes[0])
    skattr.plot.curve(curve, band="background", data=X, ax=axes[1])
    skattr.plot.curve(curve, band=found, data=X, ax=axes[2])
    figure.savefig(sys.argv[1])

"""Interactions
============

What columns do together, and how much of the model that is.

Flats for rent, and a model that has learned that a square metre costs more in some districts. The
shares say how much of the model single columns explain, H² which pairs act together, a surface
shows how, and Shapley interactions say by how much for one flat.

Run it: python examples/interactions.py [picture.png] (needs matplotlib)
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import skattr
from skattr import MeasureExplainer
from skattr.datasets import load_flats

X, y = load_flats()
X = X[["area", "rooms", "district", "balcony", "built"]]
encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
columns = make_column_transformer(
    (encoder, make_column_selector(dtype_exclude="number")),
    remainder="passthrough",
)
model = make_pipeline(columns, HistGradientBoostingRegressor(random_state=0)).fit(X, y)

explainer = MeasureExplainer(model).fit(X)
parts = skattr.decompose(explainer, X)
print(parts, end="\n\n")
print("Strongest pairs, H²:")
print(parts.pairs().head(4).round(3).to_string(), end="\n\n")

pairs = explainer.explain_pairs(X)
together = pairs.singles.centered().values.sum(axis=1) + pairs.values.sum(axis=1)
left = pairs.predictions - explainer.base_value_ - together
print(f"Single columns and pairs leave {abs(left).mean():.1f} of a rent, on average.", end="\n\n")

shapley = MeasureExplainer(model, "shapley").fit(X)
matrix = shapley.explain_pairs(X[:1]).to_matrix()[0]
names = list(X.columns)
print(f"Shapley interactions of the first flat, {X['district'].iloc[0]}, {X['area'].iloc[0]} m²:")
lower = [(j, k) for j in range(len(names)) for k in range(j)]
for j, k in sorted(lower, key=lambda pair: -abs(matrix[pair]))[:3]:
    print(f"  {names[k]} × {names[j]}: {2 * matrix[j, k]:+.1f}")
print(f"  all entries of the matrix add up to {matrix.sum():+.1f}, the prediction is")
print(f"  {model.predict(X[:1])[0]:.1f} and the mean {shapley.base_value_:.1f}")

figure, axes = plt.subplots(1, 3, figsize=(17, 4.6), layout="constrained")
skattr.plot.interactions(parts, max_pairs=6, ax=axes[0])
skattr.plot.surface(explainer.surface("area", "district"), data=X, interaction=True, ax=axes[1])
skattr.plot.scatter(shapley.explain(X), "area", ax=axes[2])
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)

"""A report
========

One HTML file about a model: python examples/report.py [report.html] (needs jinja2, matplotlib).

Flats for rent, explained twice: by what the model does with each column (partial dependence), and
by what a column says about the rent if the others vary with it (conditional). A third report
compares the two.
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/report.png"

import sys
from pathlib import Path

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skattr import MeasureExplainer, write_report
from skattr.datasets import load_flats
from skattr.measures import Conditional, Expectation, PartialDependence

X, y = load_flats()
X["listed"] = X["listed"].dt.to_period("Q").dt.start_time  # quarters: new days would be unknown
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
levels = make_column_selector(dtype_exclude=["number", "bool"])
model = make_pipeline(
    make_column_transformer((words, levels), remainder="passthrough"),
    HistGradientBoostingRegressor(max_iter=60, random_state=0),
).fit(X_train, y_train)

path = Path(sys.argv[1] if len(sys.argv) > 1 else "report.html")
about = {
    "units": {"area": "m²"},
    "output_unit": "€",
    "descriptions": {"area": "living area", "built": "year of construction"},
}
explainers = {
    "what the model does": MeasureExplainer(model, PartialDependence() - Expectation()),
    "what a column tells": MeasureExplainer(model, Conditional() - Expectation()),
}
for name, explainer in explainers.items():
    explainer.fit(X_train)
    written = write_report(
        explainer,
        X_test,
        path.with_stem(path.stem + "-conditional" * (name == "what a column tells")),
        title=f"Rents: {name}",
        target=1000.0,
        slices="district",
        **about,
    )
    print(f"{written}: {Path(written).stat().st_size / 1e3:.0f} kB")

# %%
# Both in one report: what differs between them, column by column.

written = write_report(
    list(explainers.values()),
    X_test,
    path.with_stem(path.stem + "-compared"),
    title="Rents: two measures",
    labels=tuple(explainers),
    **about,
)
print(f"{written}: {Path(written).stat().st_size / 1e3:.0f} kB")

"""One HTML file about a model: python examples/report.py [report.html] (needs jinja2, matplotlib).

Flats for rent, explained twice: what the model does with each column (partial dependence), and
what a column tells about the rent when the others move along with it (conditional).
"""

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
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
levels = make_column_selector(dtype_exclude=["number", "bool"])
model = make_pipeline(
    make_column_transformer((words, levels), remainder="passthrough"),
    HistGradientBoostingRegressor(max_iter=60, random_state=0),
).fit(X_train, y_train)

path = Path(sys.argv[1] if len(sys.argv) > 1 else "report.html")
for name, measure in (("", PartialDependence()), ("-conditional", Conditional())):
    explainer = MeasureExplainer(model, measure - Expectation()).fit(X_train)
    written = write_report(
        explainer,
        X_test,
        path.with_stem(path.stem + name),
        title=f"Rents: {type(measure).__name__}",
    )
    print(f"{written}: {Path(written).stat().st_size / 1e3:.0f} kB")

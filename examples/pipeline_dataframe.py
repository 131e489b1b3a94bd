"""Pipelines on raw columns
========================

Two pipelines on one mixed table, explained on its raw columns: numbers, strings, a date.

Run it: python examples/pipeline_dataframe.py
"""

# sphinx_gallery_thumbnail_path = "_static/thumbnails/pipeline_dataframe.png"

import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from skattr import MeasureExplainer
from skattr.datasets import load_flats
from skattr.measures import Expectation, PartialDependence

MODELS = {
    "forest": RandomForestRegressor(100, min_samples_leaf=3, random_state=0),
    "boosting": HistGradientBoostingRegressor(max_iter=150, early_stopping=False, random_state=0),
}


def days(frame):
    """Return dates as days since 2022, which a model can take."""
    return (frame - pd.Timestamp("2022-01-01")) / pd.Timedelta(days=1)


def preprocessing():
    """Return the preprocessing of both models: 8 raw columns become about 20."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = OneHotEncoder(
        min_frequency=10, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    order = OrdinalEncoder(categories=[list("ABCDEFG")])
    date = FunctionTransformer(days, feature_names_out="one-to-one")
    return ColumnTransformer(
        [
            ("numbers", numbers, ["area", "rooms", "built"]),
            ("levels", levels, ["district", "heating"]),
            ("order", order, ["energy"]),
            ("date", date, ["listed"]),
        ],
        remainder="passthrough",  # balcony
    )


def thin(frame, n):
    """Return about n rows, evenly spread, the first and the last among them."""
    step = max(1, (len(frame) - 1) // n)
    return pd.concat([frame.iloc[:-1:step], frame.iloc[[-1]]])


def main():
    """Fit and explain both pipelines, and print the results."""
    pd.set_option("display.width", 120, "display.max_columns", 20)
    X, y = load_flats()
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    print(X_test.head(), end="\n\n")

    # E f(x_j, X_-j) - E f(X): what a raw column adds to the mean rent
    measure = PartialDependence() - Expectation()
    explainers, importance = {}, {}
    for name, model in MODELS.items():
        pipeline = make_pipeline(preprocessing(), clone(model)).fit(X_train, y_train)
        explainer = MeasureExplainer(pipeline, measure=measure).fit(X_train)
        explanation = explainer.explain(X_test)
        print(f"{name}: R² {pipeline.score(X_test, y_test):.2f}", explainer.describe(), sep="\n")
        print(explanation.to_frame().head().round(1), end="\n\n")
        explainers[name], importance[name] = explainer, explanation.importance()

    print("Importance, mean |attribution|:")
    print(pd.DataFrame(importance).sort_values("forest", ascending=False).round(1), end="\n\n")

    area = {name: explainer.curve("area") for name, explainer in explainers.items()}
    for name, curve in area.items():
        table = curve.to_frame()
        print(f"Curve of area, {name}: {len(table)} rows ({curve.kind}), in square metres.")
        print(thin(table, 8).round(2).to_string(index=False), end="\n\n")

    print("Curve of district: one value per level; rare levels share that of any other.")
    district = {
        name: explainer.curve("district").to_frame().set_index("level")["value"]
        for name, explainer in explainers.items()
    }
    print(pd.DataFrame(district).round(1))


if __name__ == "__main__":
    main()

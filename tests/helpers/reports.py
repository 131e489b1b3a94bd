"""The sections of a report, and an explainer whose names are all hostile."""

import base64
import importlib.util

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skattr import MeasureExplainer


def unpacked(table):
    """Return the ends, values (k, m) and doubled errors of steps that are stored in a page."""
    kind = "<f4" if table["single"] else "<f8"
    x = np.frombuffer(base64.b64decode(table["x"]), kind).astype(float)
    values, errors = np.array(table["values"], float), None
    if "units" in table:
        pairs = zip(table["values"], table["units"], strict=True)
        values = np.array([np.cumsum(v) * times / 10.0**places for v, (times, places) in pairs])
    if "errors" in table:
        errors = np.array([np.repeat(runs[1::2], runs[::2]) for runs in table["errors"]])
    return x, values, errors


SECTIONS = [
    "words",
    "warnings",
    "importance",
    "beeswarm",
    "features",
    "row",
    "table",
    "checks",
    "summary",
    "reproduce",
]


def hostile_explainer(names, levels, classes, index):
    rng = np.random.default_rng(0)
    n = len(levels)
    names = [name for name in names if "\0" not in name]  # pandas cuts them
    if importlib.util.find_spec("pyarrow"):  # whose strings hold no surrogates: pandas raises
        names = [name for name in names if not any("\ud800" <= c <= "\udfff" for c in name)]
    labels = pd.Index(names, dtype=object)
    index = pd.Index(index, dtype=object)
    X = pd.DataFrame(rng.normal(size=(n, len(names))), columns=labels, index=index)
    X[names[0]] = pd.Series(levels, index=X.index, dtype=object)
    words = make_column_transformer((OneHotEncoder(), [names[0]]), remainder="passthrough")
    y = np.array([*classes, *rng.choice(np.array(classes, object), n - len(classes))], object)
    model = RandomForestClassifier(2, max_depth=2, random_state=0)
    pipeline = make_pipeline(words, model).fit(X, y)
    return MeasureExplainer(pipeline).fit(X), X

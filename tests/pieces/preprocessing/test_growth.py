"""What is built for one-hot columns grows with their levels, not with the square of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.measures import Conditional, PartialDependence, ProductMarginal
from skattr.pieces.preprocessing import routes
from tests.helpers.comparison import by_definition
from tests.oracle import Oracle, described

pytestmark = pytest.mark.slow


def one_column(n_levels, handle_unknown="ignore"):
    """Return a tree that asks for each level of a one-hot column, and its data."""
    rng = np.random.default_rng(0)
    numbers = np.repeat(np.arange(n_levels), 2)
    X = pd.DataFrame({"s": [f"l{i}" for i in numbers], "a": rng.normal(size=len(numbers))})
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown=handle_unknown), ["s"]), remainder="passthrough"
    )
    y = rng.permutation(n_levels)[numbers] + 0.1 * X.a
    return make_pipeline(steps, DecisionTreeRegressor(random_state=0)).fit(X, y), X


@pytest.mark.parametrize("handle_unknown", ["ignore", "error"])
def test_wide_one_hot_columns_are_exact(handle_unknown):
    model, X = one_column(300, handle_unknown)
    assert model[0].sparse_output_ and len(model[0].get_feature_names_out()) > 256
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    rows = X[::37]
    wanted = by_definition(model.predict, X, rows)
    np.testing.assert_allclose(explainer.explain(rows).values, wanted, atol=1e-9)
    frame = explainer.curve("s").to_frame()
    assert len(frame) == 300 + 2 * (handle_unknown == "ignore")
    known = frame[frame.level.str.startswith("l")]
    some = known[::50]
    rows = X[: len(some)].assign(s=some.level.to_numpy())
    wanted = by_definition(model.predict, X, rows, own=[(0,)])[:, 0]
    np.testing.assert_allclose(some.value, wanted, atol=1e-9)
    if handle_unknown == "ignore":
        wanted = by_definition(model.predict, X, X[:1].assign(s="new"), own=[(0,)])[:, 0]
        np.testing.assert_allclose(explainer.curve("s")(["new"]), wanted, atol=1e-9)


@pytest.mark.parametrize("measure", [PartialDependence(), ProductMarginal(), Conditional()])
@pytest.mark.parametrize("n_levels", [61, 62, 63, 64, 65, 126, 128])
def test_levels_at_the_ends_of_words_are_exact(n_levels, measure):
    """The kernels keep sets of codes in words of 64; missing and unknown levels are codes too."""
    model, X = one_column(n_levels)
    explainer = MeasureExplainer(model, measure).fit(X)
    assert explainer.exact_, explainer.describe()
    rows = X[:: n_levels // 8]
    oracle = Oracle(lambda Z: model.predict(Z)[:, None], X)
    wanted = oracle.values(described(explainer.measure_), rows, [(0,)])[:, 0, 0]
    np.testing.assert_allclose(explainer.explain(rows).values[:, 0], wanted, atol=1e-9)


def test_fitted_state_and_signatures_grow_linearly():
    sizes, entries = [], []
    for n_levels in (400, 800):
        model, X = one_column(n_levels)
        explainer = MeasureExplainer(model).fit(X[:100])
        cells = explainer.pieces_.grid.cells[0]
        assert len(cells.inputs) > n_levels / 2
        entries.append(len(cells.signatures.entries))
        sizes.append(len(pickle.dumps(explainer)) - len(pickle.dumps(model)))
    assert entries[1] < 2.2 * entries[0]
    assert sizes[1] < 2.2 * sizes[0]


def test_no_wide_table_is_made_dense(monkeypatch):
    shown = []

    def inputs(self, X):
        shown.append(np.shape(X))
        return original(self, X)

    model, X = one_column(400)
    front = type(MeasureExplainer(model).fit(X[:50]).pieces_.parts[0].front)
    original = front.inputs
    monkeypatch.setattr(front, "inputs", inputs)
    monkeypatch.setattr(routes, "fill_absent", None)  # it is not called
    MeasureExplainer(model).fit(X[:50]).curve("s").to_frame()
    assert len(shown) > 0
    # each column shows its distinct numbers once: one of a one-hot column, those of "a" at most
    assert max(rows for rows, _ in shown) <= 51


def test_many_one_hot_columns():
    rng = np.random.default_rng(0)
    levels = np.array([f"l{i}" for i in range(20)])
    X = pd.DataFrame({f"c{k}": levels[rng.integers(20, size=120)] for k in range(30)})
    y = (X == "l3").sum(axis=1) + (X.c0 == "l1") * (X.c7 == "l2") * 3.0
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), list(X)))
    model = make_pipeline(steps, DecisionTreeRegressor(random_state=0)).fit(X, y)
    explainer = MeasureExplainer(model, "partial_dependence").fit(X)
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    wanted = by_definition(model.predict, X, X[:3])
    np.testing.assert_allclose(explainer.explain(X[:3]).values, wanted, atol=1e-9)

"""Models in .skops files: which are loaded without a word, and which are refused."""

import operator
import os
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression, Ridge, TweedieRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor

from skattr.datasets import load_flats
from skattr.files import load_model
from skattr.trusted import TRUSTED, check_model

skops = pytest.importorskip("skops.io")

FLATS, RENT = load_flats()
FLATS, RENT = FLATS[:80], RENT[:80]
X = FLATS[["rooms", "balcony"]].astype(float)
CLASS = (RENT > RENT.median()).astype(int)
THREE = np.arange(80) % 3


def xgboost(name, **more):
    return getattr(pytest.importorskip("xgboost"), name)(n_estimators=3, **more)


def lightgbm(name, **more):
    return getattr(pytest.importorskip("lightgbm"), name)(n_estimators=3, verbose=-1, **more)


def catboost(name, **more):
    library = pytest.importorskip("catboost")
    return getattr(library, name)(n_estimators=3, verbose=0, allow_writing_files=False, **more)


def flats_pipeline(model):
    words = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (words, ["district", "heating"]),
        (OrdinalEncoder(), ["energy", "listed"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, model).fit(FLATS.fillna({"heating": "none"}), RENT)


MODELS = {
    "tree": lambda: DecisionTreeRegressor(max_depth=3).fit(X, RENT),
    "forest": lambda: RandomForestRegressor(3).fit(X, RENT),
    "forest of classes": lambda: RandomForestClassifier(3).fit(X, THREE),
    "extra trees": lambda: ExtraTreesRegressor(3).fit(X, RENT),
    "boosting": lambda: GradientBoostingRegressor(n_estimators=3).fit(X, RENT),
    "boosting, huber": lambda: GradientBoostingRegressor(n_estimators=3, loss="huber").fit(X, RENT),
    "boosting, classes": lambda: GradientBoostingClassifier(n_estimators=3).fit(X, THREE),
    "histograms": lambda: HistGradientBoostingRegressor(max_iter=3).fit(X, RENT),
    "histograms, classes": lambda: HistGradientBoostingClassifier(max_iter=3).fit(X, THREE),
    "histograms, poisson": lambda: HistGradientBoostingRegressor(max_iter=3, loss="poisson").fit(
        X, RENT
    ),
    "histograms, categories": lambda: HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=2
    ).fit(FLATS[["area", "energy"]], FLATS["energy"].isin(["B", "D", "F"])),
    "bagging": lambda: BaggingRegressor(n_estimators=2, max_features=0.5).fit(X, RENT),
    "isolation": lambda: IsolationForest(n_estimators=3, max_features=0.5).fit(X),
    "votes": lambda: VotingRegressor([("a", Ridge()), ("b", DecisionTreeRegressor())]).fit(X, RENT),
    "stack": lambda: StackingRegressor([("a", Ridge()), ("b", DecisionTreeRegressor())]).fit(
        X, RENT
    ),
    "search": lambda: GridSearchCV(DecisionTreeRegressor(), {"max_depth": [1, 2]}, cv=2).fit(
        X, RENT
    ),
    "search, classes": lambda: GridSearchCV(RandomForestClassifier(2), {"max_depth": [1, 2]}).fit(
        X, CLASS
    ),
    "calibrated": lambda: CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, CLASS),
    "tweedie": lambda: TweedieRegressor(power=1.5).fit(X, RENT),
    "tweedie, identity": lambda: TweedieRegressor(power=0, link="identity").fit(X, RENT),
    "network": lambda: MLPRegressor(hidden_layer_sizes=(3,), max_iter=5).fit(X, RENT),
    "network, sgd": lambda: MLPClassifier(hidden_layer_sizes=(3,), solver="sgd", max_iter=5).fit(
        X, CLASS
    ),
    "process": lambda: GaussianProcessRegressor(
        ConstantKernel(1, "fixed") * RBF(1, "fixed") + WhiteKernel(1, "fixed")
    ).fit(X, RENT),
    "splines": lambda: make_pipeline(SplineTransformer(n_knots=3), Ridge()).fit(X, RENT),
    "pipeline": lambda: flats_pipeline(RandomForestRegressor(2)),
    "xgboost": lambda: xgboost("XGBRegressor").fit(X, RENT),
    "xgboost, classes": lambda: xgboost("XGBClassifier").fit(X, CLASS),
    "xgboost, forest": lambda: xgboost("XGBRFRegressor").fit(X, RENT),
    "xgboost, forest of classes": lambda: xgboost("XGBRFClassifier").fit(X, CLASS),
    "xgboost, ranks": lambda: xgboost("XGBRanker").fit(X, CLASS, qid=np.zeros(80, int)),
    "xgboost, pipeline": lambda: flats_pipeline(xgboost("XGBRegressor")),
    "lightgbm": lambda: lightgbm("LGBMRegressor").fit(X, RENT),
    "lightgbm, classes": lambda: lightgbm("LGBMClassifier").fit(X, CLASS),
    "lightgbm, ranks": lambda: lightgbm("LGBMRanker").fit(X, CLASS, group=[80]),
    "lightgbm, categories": lambda: lightgbm("LGBMRegressor").fit(FLATS[["area", "energy"]], RENT),
    "lightgbm, booster": lambda: lightgbm("LGBMRegressor").fit(X, RENT).booster_,
    "catboost": lambda: catboost("CatBoostRegressor").fit(X, RENT),
    "catboost, classes": lambda: catboost("CatBoostClassifier").fit(X, CLASS),
}


def table_of(model):
    names = getattr(model, "feature_names_in_", X.columns)
    return FLATS.fillna({"heating": "none"})[list(names)]


@pytest.mark.filterwarnings("ignore:.*hasn't converged yet")
@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_loaded_without_trust(name, tmp_path):
    model = MODELS[name]()
    skops.dump(model, tmp_path / "model.skops")
    loaded = load_model(str(tmp_path / "model.skops"), [])
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(table_of(model)), model.predict(table_of(model)))


def test_the_list_is_of_names_that_exist_and_is_sorted():
    assert list(TRUSTED) == sorted(set(TRUSTED), key=str.lower)
    for name in TRUSTED:
        module, _, kind = name.rpartition(".")
        library = pytest.importorskip(module.partition(".")[0])
        assert library and callable(getattr(import_module(module), kind)), name


LEAKS = {
    "a function of the system": FunctionTransformer(os.system),
    "a function of the user's": FunctionTransformer(lambda X: X),
    "eval": FunctionTransformer(eval),
    "a method": FunctionTransformer(Ridge().fit),
    "an operator": FunctionTransformer(operator.methodcaller("to_csv", "stolen.csv")),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_can_run_code_is_refused(name, tmp_path):
    model = make_pipeline(LEAKS[name], Ridge())
    try:
        skops.dump(model, tmp_path / "model.skops")
    except Exception as error:  # skops does not even write it
        pytest.skip(str(error))
    with pytest.raises(ValueError, match="--trust"):
        load_model(str(tmp_path / "model.skops"), [])


def test_search_trees_are_refused(tmp_path):
    skops.dump(KNeighborsRegressor().fit(X, RENT), tmp_path / "model.skops")
    with pytest.raises(ValueError, match=r"--trust sklearn\.neighbors\._kd_tree\.KDTree"):
        load_model(str(tmp_path / "model.skops"), [])


def test_a_partial_of_another_function_is_refused(tmp_path):
    path = str(tmp_path / "model.skops")
    step = FunctionTransformer(partial(np.add, 1.0))  # skops trusts numpy's ufuncs
    skops.dump(make_pipeline(step, Ridge()).fit(X, RENT), path)
    with pytest.raises(ValueError, match=r"functools\.partial of <ufunc 'add'>"):
        load_model(path, [])
    assert load_model(path, ["functools.partial"])


def change_tree(tree, **changes):
    """A copy of a tree of scikit-learn's with other nodes."""
    _, arguments, state = tree.__reduce__()
    nodes = state["nodes"].copy()
    for name, (i, value) in changes.items():
        nodes[name][i] = value
    new = type(tree)(*arguments)
    new.__setstate__(state | {"nodes": nodes})
    return new


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"left_child": (0, 10**6)}, "do not make a tree"),
        ({"right_child": (0, 10**6)}, "do not make a tree"),
        ({"right_child": (0, -2)}, "do not make a tree"),
        ({"left_child": (1, 0)}, "do not make a tree"),  # round and round
        ({"left_child": (0, 2)}, "do not make a tree"),
        ({"feature": (0, 2)}, "beyond the 2 that the model takes"),
        ({"feature": (0, -1)}, "beyond the 2 that the model takes"),
    ],
)
@pytest.mark.parametrize("kind", ["tree", "forest", "boosting"])
def test_trees_that_point_elsewhere_are_refused(kind, changes, words, tmp_path):
    model = MODELS[kind]()
    if kind == "tree":
        model.tree_ = change_tree(model.tree_, **changes)
    else:
        last = np.ravel(model.estimators_)[-1]
        last.tree_ = change_tree(last.tree_, **changes)
    path = str(tmp_path / "model.skops")
    skops.dump(model, path)
    with pytest.raises(ValueError, match=words) as error:
        load_model(path, [])
    assert path in str(error.value)


def test_a_member_that_claims_more_columns_than_its_forest():
    forest = MODELS["forest"]()
    wide = np.hstack([X, X])
    rng = np.random.default_rng(0)
    wide[:, 3] = rng.normal(size=len(wide))
    forest.estimators_[1] = DecisionTreeRegressor(max_depth=1).fit(wide, wide[:, 3])
    with pytest.raises(ValueError, match="beyond the 2 that the model takes"):
        check_model(forest, [])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("left", 10**6, "do not make a tree"),
        ("right", 0, "do not make a tree"),
        ("feature_idx", 2, "beyond the 2 that the model takes"),
        ("bitset_idx", 10**6, "a set of categories that is not there"),
    ],
)
def test_histogram_trees_that_point_elsewhere_are_refused(name, value, words, tmp_path):
    model = MODELS["histograms, categories"]()
    trees = [tree for stage in model._predictors for tree in stage]
    by_set = [(tree, i) for tree in trees for i in np.flatnonzero(tree.nodes["is_categorical"])]
    tree, i = by_set[0]
    tree.nodes[name][i] = value
    path = str(tmp_path / "model.skops")
    skops.dump(model, path)
    with pytest.raises(ValueError, match=words):
        load_model(path, [])

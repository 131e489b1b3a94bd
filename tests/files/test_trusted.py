"""Models in .skops files: which are loaded without a word, and which are refused."""

import io
import json
import operator
import os
from contextlib import suppress
from functools import partial
from importlib import import_module
from zipfile import ZipFile

import numpy as np
import pytest
from scipy.sparse import csr_matrix
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
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM
from sklearn.tree import DecisionTreeRegressor

from skattr._files.intact import check_model
from skattr._files.results import load_model
from skattr._files.trusted import TRUSTED
from skattr.datasets import load_flats

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
    "machine": lambda: SVR().fit(X, RENT),
    "machine, classes": lambda: SVC().fit(X, THREE),
    "machine, nu": lambda: NuSVC().fit(X, THREE),
    "machine, one class": lambda: OneClassSVM().fit(X),
    "machine, sparse": lambda: SVC().fit(csr_matrix(X), THREE),
    "linear, sparse": lambda: LogisticRegression().fit(X, THREE).sparsify(),
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


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:.*hasn't converged yet", "ignore:.*is deprecated", "ignore:X has feature names"
)
@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_loaded_without_trust(name, tmp_path):
    model = MODELS[name]()
    skops.dump(model, tmp_path / "model.skops")
    loaded = load_model(str(tmp_path / "model.skops"), [])
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(table_of(model)), model.predict(table_of(model)))


# names of other versions than those that are installed
ELSEWHERE = (
    "scipy._lib.array_api_compat.numpy._aliases.asarray",  # scipy before 1.18
    "scipy.interpolate._bsplines._BSpline",  # scipy 1.18
)


@pytest.mark.parametrize("loader", TRUSTED)
def test_the_lists_are_of_names_that_exist_and_are_sorted(loader):
    assert list(TRUSTED[loader]) == sorted(set(TRUSTED[loader]), key=str.lower)
    for name in TRUSTED[loader]:
        if name not in ELSEWHERE:
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
        ({"feature": (0, 2**62)}, "beyond the 2 that the model takes"),
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


def test_histogram_trees_without_nodes_or_with_short_sets(tmp_path):
    path = str(tmp_path / "model.skops")
    for change, words in (
        (lambda tree: {"nodes": tree.nodes[:0]}, "do not make a tree"),
        (lambda tree: {"nodes": tree.nodes[None]}, "do not make a tree"),
        (lambda tree: {"raw_left_cat_bitsets": tree.raw_left_cat_bitsets[:, :4]}, "256 bits"),
        (lambda tree: {"raw_left_cat_bitsets": np.zeros((9, 8))}, "256 bits"),
    ):
        model = MODELS["histograms, categories"]()
        tree = model._predictors[0][0]
        tree.__dict__.update(change(tree))
        skops.dump(model, path)
        with pytest.raises(ValueError, match=words):
            load_model(path, [])


def change_steps(model):
    model._preprocessor = make_column_transformer(("drop", ["area"]), remainder="passthrough")
    model._preprocessor.fit(FLATS[["area", "energy"]])


def drop_a_column(model):
    steps = model._preprocessor
    steps._transformer_to_input_indices["numerical"] = []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: setattr(model, "_in_fit", True), "has not come to an end"),
        (lambda model: setattr(model, "n_features_in_", 3), "categories|column"),
        (lambda model: setattr(model, "n_features_in_", None), "beyond the 0"),
        (lambda model: delattr(model, "n_features_in_"), "beyond the 0"),
        (
            lambda model: setattr(model._bin_mapper, "is_categorical_", np.zeros(2, np.uint8)),
            "a column that has none",
        ),
        (
            lambda model: setattr(model._bin_mapper, "is_categorical_", np.ones(1, np.uint8)),
            "a column that has none",
        ),
        (change_steps, "in another way"),
        (drop_a_column, "tampered"),
    ],
)
def test_histogram_boosting_that_gets_another_table(change, words, tmp_path):
    model = MODELS["histograms, categories"]()
    change(model)
    path = str(tmp_path / "model.skops")
    skops.dump(model, path)
    with pytest.raises(ValueError, match=words):
        load_model(path, [])


def wide_tree():
    """A tree that asks for the third of three columns."""
    wide = np.random.default_rng(0).normal(size=(80, 3))
    return DecisionTreeRegressor(max_depth=1).fit(wide, wide[:, 2])


def without_columns(tree):
    del tree.n_features_in_  # scikit-learn does not look then
    return tree


def in_pipeline(tree):
    model = make_pipeline(StandardScaler(), tree)
    model.__dict__["n_features_in_"] = 3
    return model


HIDDEN = {
    "at the top": lambda: without_columns(wide_tree()),
    "in a pipeline": lambda: in_pipeline(without_columns(wide_tree())),
    "in an attribute": lambda: holding(Ridge().fit(X, RENT), "extra", wide_tree().tree_),
    "in a list": lambda: holding(Ridge().fit(X, RENT), "extra", [[wide_tree().tree_]]),
    "in a dict": lambda: holding(Ridge().fit(X, RENT), "extra", {"a": {"b": wide_tree().tree_}}),
    "in an array": lambda: holding(
        Ridge().fit(X, RENT), "extra", np.array([[wide_tree().tree_]], dtype=object)
    ),
    "in a forest": lambda: holding(MODELS["forest"](), "estimators_", [wide_tree()]),
    "in a forest, without columns": lambda: holding(
        MODELS["forest"](), "estimators_", [without_columns(wide_tree())]
    ),
}


def holding(model, name, value):
    setattr(model, name, value)
    return model


@pytest.mark.parametrize("name", HIDDEN)
def test_trees_that_are_hidden(name, tmp_path):
    path = str(tmp_path / "model.skops")
    skops.dump(HIDDEN[name](), path)
    with pytest.raises(ValueError, match="a tree asks for a column beyond the"):
        load_model(path, [])


def test_an_attribute_in_place_of_a_method(tmp_path):
    """What would keep scikit-learn from looking at a table."""
    path = str(tmp_path / "model.skops")
    for model, name in ((wide_tree(), "_validate_X_predict"), (MODELS["forest"](), "predict")):
        skops.dump(holding(model, name, np.maximum), path)
        with pytest.raises(ValueError, match="replaces a method"):
            load_model(path, [])


@pytest.mark.slow
def test_more_trees_than_outputs(tmp_path):
    model = MODELS["boosting"]()
    model.estimators_ = np.hstack([model.estimators_] * 50)
    path = str(tmp_path / "model.skops")
    skops.dump(model, path)
    with pytest.raises(ValueError, match="one tree for each output"):
        load_model(path, [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("t", np.arange(3.0)),
        ("t", np.arange(30.0)[::-1].copy()),
        ("t", np.arange(10)),
        ("c", np.zeros((1, 1))),
        ("k", 10**6),
        ("k", -1),
    ],
)
def test_splines_whose_arrays_do_not_fit(name, value, tmp_path):
    model = MODELS["splines"]()
    spline = model[0].bsplines_[0]
    own = vars(getattr(spline, "_delegate_to", spline))
    own[name if name in own else f"_{name}"] = value
    path = str(tmp_path / "model.skops")
    skops.dump(model, path)
    with pytest.raises(ValueError, match="tampered with"):
        load_model(path, [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_n_support", np.array([10**6, 1, 1], dtype=np.int32)),
        ("_n_support", np.array([100, -50, 30], dtype=np.int32)),
        ("_n_support", np.ones(300, dtype=np.int32)),
        ("support_", np.zeros(10**6, dtype=np.int32)),
        ("support_vectors_", np.zeros((1, 2))),
        ("_dual_coef_", np.zeros((2, 1))),
        ("_intercept_", np.zeros(1)),
        ("_probA", np.zeros(1)),
    ],
)
def test_support_vector_machines_whose_arrays_do_not_fit(name, value, tmp_path):
    path = str(tmp_path / "model.skops")
    skops.dump(holding(MODELS["machine, classes"](), name, value), path)
    with pytest.raises(ValueError, match="do not fit together"):
        load_model(path, [])


def test_sparse_matrices_that_point_elsewhere(tmp_path):
    model = MODELS["linear, sparse"]()
    model.coef_.indices[0] = 10**6
    path = str(tmp_path / "model.skops")
    skops.dump(model, path)
    with pytest.raises(ValueError, match="tampered with"):
        load_model(path, [])


# Files that skops does not write ----------------------------------------------------------------


def rewritten(path, change, arrays=None):
    """Change what stands in a .skops file; return the first tree's description."""
    with ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files["schema.json"])
    change(schema)
    files["schema.json"] = json.dumps(schema).encode()
    with ZipFile(path, "w") as archive:
        for name, content in (files | (arrays or {})).items():
            archive.writestr(name, content)


def described(schema, loader):
    """The descriptions of a kind in a file, those that hold others first."""
    if isinstance(schema, dict):
        own = [schema] if schema.get("__loader__") == loader else []
        return own + [found for item in schema.values() for found in described(item, loader)]
    items = schema if isinstance(schema, list) else []
    return [found for item in items for found in described(item, loader)]


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def tree_arguments(schema):
    return described(schema, "TreeNode")[0]["__reduce__"]["args"]["content"]


def many_outputs(schema):
    tree_arguments(schema)[2] |= {"content": "1000000000", "__id__": 7}


def other_classes(schema):
    tree_arguments(schema)[1] |= {"file": "other.npy", "__id__": 7}


def by_number(schema):
    """The outputs are a number that has stood for another one before."""
    first = next(each for each in described(schema, "JsonNode"))
    first |= {"content": "1000000000", "__id__": 7}
    tree_arguments(schema)[2]["__id__"] = 7


def no_nodes(schema):
    described(schema, "TreeNode")[0]["content"]["content"]["node_count"] |= {
        "content": "0",
        "__id__": 7,
    }


def fewer_nodes(schema):
    described(schema, "TreeNode")[0]["content"]["content"]["node_count"] |= {
        "content": "3",
        "__id__": 7,
    }


def less_depth(schema):
    described(schema, "TreeNode")[0]["content"]["content"]["max_depth"] |= {
        "content": "1",
        "__id__": 7,
    }


def short_values(schema):
    described(schema, "TreeNode")[0]["content"]["content"]["values"] |= {
        "file": "other.npy",
        "__id__": 7,
    }


def called(schema):
    """A boosting library's model is made by a call, with the name of a file."""
    schema["content"]["content"]["extra"] = {
        "__class__": "Booster",
        "__module__": "xgboost.core",
        "__loader__": "ConstructorFromReduceNode",
        "content": {
            "__class__": "tuple",
            "__module__": "builtins",
            "__loader__": "TupleNode",
            "content": [],
        },
    }


def called_for_a_key(schema):
    """What makes keys of text is not a type."""
    types = described(schema, "DictNode")[0]["key_types"]
    types["content"][0] = {
        "__class__": "check_array",
        "__module__": "sklearn.utils.validation",
        "__loader__": "FunctionNode",
    }


def other_dtype(schema):
    schema["content"]["content"]["extra"] = {
        "__class__": "dtype",
        "__module__": "numpy",
        "__loader__": "LossNode",
        "__reduce__": {"args": {"__loader__": "TupleNode", "content": [],
                                "__class__": "tuple", "__module__": "builtins"}},
        "content": {"__loader__": "TupleNode", "content": [],
                    "__class__": "tuple", "__module__": "builtins"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (many_outputs, "how many classes"),
        (other_classes, "how many classes"),
        (by_number, "one number stands for two objects"),
        (no_nodes, "has no nodes"),
        (fewer_nodes, "do not make a tree"),
        (less_depth, "deeper than it says"),
        (short_values, "Wrong shape for value array"),
        (called, "by ConstructorFromReduceNode, which skops does not do"),
        (called_for_a_key, "not what skops writes"),
        (other_dtype, "numpy.dtype by LossNode, which skops does not do"),
    ],
)
def test_files_that_skops_does_not_write(change, words, tmp_path):
    path = str(tmp_path / "model.skops")
    skops.dump(MODELS["tree"](), path)
    rewritten(path, change, {"other.npy": npy(np.zeros(0, dtype=np.int64))})
    with pytest.raises(ValueError, match=words) as error:
        load_model(path, [])
    assert path in str(error.value)


@pytest.mark.slow
def test_any_change_of_one_number_is_named_or_harmless(tmp_path):
    """Bytes of a file's arrays, at random: a named error, or nothing that ends the process."""
    path = str(tmp_path / "model.skops")
    rng = np.random.default_rng(0)
    for kind in ("tree", "histograms, categories"):
        model = MODELS[kind]()
        skops.dump(model, path)
        with ZipFile(path) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        arrays = [name for name in files if name.endswith(".npy")]
        for _ in range(60):
            name = arrays[rng.integers(len(arrays))]
            content = bytearray(files[name])
            content[rng.integers(128, max(129, len(content))) % len(content)] = rng.integers(256)
            with ZipFile(path, "w") as archive:
                for each, old in files.items():
                    archive.writestr(each, bytes(content) if each == name else old)
            try:
                loaded = load_model(path, [])
            except ValueError as error:
                assert path in str(error)
            else:
                with suppress(Exception):  # of Python's, that is
                    loaded.predict(table_of(model))

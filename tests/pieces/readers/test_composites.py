"""Estimators made of others, against the definition by their own methods on raw rows."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeCV,
    SGDRegressor,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import (
    ClassifierChain,
    MultiOutputClassifier,
    MultiOutputRegressor,
    RegressorChain,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skattr import MeasureExplainer
from skattr.pieces import readers
from skattr.pieces.base import unwrap
from skattr.pieces.readers.sklearn_trees import read as read_trees
from tests.helpers.comparison import by_definition, cube

pytestmark = pytest.mark.slow

COLUMNS = ["age", "size", "town"]


def table(seed=0, n=120):
    """Two columns of numbers and one of words."""
    rng = np.random.default_rng(seed)
    age, size = rng.normal(40, 9, n).round(), rng.gamma(2.0, 3.0, n).round(2)
    town = rng.choice(["Bonn", "Jena", "Ulm"], n)
    return pd.DataFrame(dict(zip(COLUMNS, (age, size, town), strict=True)))


def target(X):
    """A number that no model gets for nothing."""
    return X["age"] * (X["town"] == "Ulm") + X["size"] ** 2 + 1000.0


def classes(X, k):
    """The target in k parts, with words for labels."""
    cuts = np.quantile(target(X), np.linspace(0, 1, k + 1)[1:-1])
    return np.array(["low", "middle", "high", "top"])[np.searchsorted(cuts, target(X))]


def targets(X):
    """Three targets of different sizes."""
    return np.column_stack([target(X), X["age"] / 100 - X["size"], 1e3 * (X["town"] == "Jena")])


def prepared(model, encoder=None):
    """A model behind a scaler and an encoder."""
    encoder = OneHotEncoder() if encoder is None else encoder
    steps = make_column_transformer((StandardScaler(), ["age", "size"]), (encoder, ["town"]))
    return make_pipeline(steps, model)


def tree(depth=4):
    return prepared(DecisionTreeRegressor(max_depth=depth, random_state=0))


def forest():
    return prepared(RandomForestRegressor(4, max_depth=4, random_state=0), OrdinalEncoder())


def hist():
    model = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5, early_stopping=False)
    return prepared(model, OrdinalEncoder())


def class_tree(depth=3):
    return prepared(DecisionTreeClassifier(max_depth=depth, random_state=0))


def class_forest():
    return prepared(RandomForestClassifier(4, max_depth=4, random_state=0))


def boosted():
    return prepared(GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0))


def hist_classifier():
    model = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, early_stopping=False)
    return prepared(model, OrdinalEncoder())


def probabilities(model):
    """Probabilities of all classes of all targets but the first of two."""

    def f(X):
        found = model.predict_proba(X)
        found = found if isinstance(found, list) else [found]
        return np.column_stack([p[:, 1:] if p.shape[1] == 2 else p for p in found])

    return f


def agrees(model, f, X, **settings):
    background, rows = X[:30], X[26:34]
    explainer = MeasureExplainer(model, "partial_dependence", **settings).fit(background)
    found = explainer.explain(rows)
    wanted = cube(by_definition(f, background, rows))
    spread = np.ptp(np.reshape(f(X), (len(X), -1)), axis=0)
    error = np.abs(found.values.reshape(wanted.shape) - wanted)
    assert (error <= 1e-10 * spread + 1e-13).all(), (error.max(axis=(0, 1)), spread)
    assert_allclose(np.ravel(found.predictions), np.ravel(f(rows)), rtol=1e-12)
    return explainer


def exact(model, f, X, **settings):
    explainer = agrees(model, f, X, **settings)
    assert explainer.engine_ == ("one_violation",), explainer.describe()
    return explainer


def black_box(model, f, X, *words, **settings):
    explainer = agrees(model, f, X, **settings)
    assert explainer.engine_ == ("finite_sum",)
    for word in ("black box", *words):
        assert word in explainer.describe(), explainer.describe()


def linked(model, f, X, **settings):
    """Read as pieces behind a link, and equal to the definition."""
    explainer = agrees(model, f, X, **settings)
    assert explainer.engine_ == ("linked_boxes",), explainer.describe()
    assert "exact, behind a link" in explainer.describe()


# -- Stacking ------------------------------------------------------------------------------------

FINALS = [
    None,
    LinearRegression(),
    Ridge(alpha=3.0, fit_intercept=False),
    RidgeCV(),
    Lasso(alpha=0.5),
    ElasticNet(alpha=0.5),
    LinearSVR(loss="squared_epsilon_insensitive", dual=False),
    GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=2),
    make_pipeline(StandardScaler(), Ridge()),
    make_pipeline(
        RobustScaler(),
        "passthrough",
        MinMaxScaler((1, 3)),
        SGDRegressor(max_iter=20_000, random_state=0),
    ),
]


@pytest.mark.parametrize("final", FINALS, ids=repr)
def test_stacking_with_a_linear_final_estimator(final):
    X = table()
    members = [("a", tree()), ("b", forest()), ("c", hist())]
    model = StackingRegressor(members, final, cv=2).fit(X, target(X))
    exact(model, model.predict, X)


def test_stacking_of_members_that_are_dropped_or_fitted_before():
    X = table()
    y = target(X)
    members = [("a", tree().fit(X, y)), ("b", "drop"), ("c", FrozenEstimator(hist().fit(X, y)))]
    model = StackingRegressor(members, Ridge(), cv="prefit").fit(X, y)
    exact(model, model.predict, X)
    exact(model, model.predict, X, output="raw")


@pytest.mark.parametrize(
    "final, word",
    [
        (RandomForestRegressor(3, random_state=0), "RandomForestRegressor, is not linear"),
        (PoissonRegressor(), "PoissonRegressor, is not linear"),
        (make_pipeline(PCA(), Ridge()), "PCA"),
        (make_pipeline(MinMaxScaler(clip=True), Ridge()), "MinMaxScaler"),
        (make_pipeline(FunctionTransformer(np.sqrt), Ridge()), "FunctionTransformer"),
    ],
)
def test_stacking_with_a_final_estimator_that_bends(final, word):
    X = table()
    y = target(X) - 990.0  # far from 0 a regression with a link learns a constant
    model = StackingRegressor([("a", tree()), ("b", forest())], final, cv=2).fit(X, y)
    assert np.ptp(model.predict(X)) > 1
    black_box(model, model.predict, X, word)


def test_stacking_of_a_member_that_is_no_sum():
    X = table()
    members = [("a", tree()), ("b", prepared(AdaBoostRegressor(n_estimators=3, random_state=0)))]
    model = StackingRegressor(members, cv=2).fit(X, target(X))
    black_box(model, model.predict, X, "AdaBoostRegressor", "median")


def test_stacking_that_passes_raw_columns_through():
    X = table()[["age", "size"]]
    members = [
        ("a", DecisionTreeRegressor(max_depth=4, random_state=0)),
        ("b", RandomForestRegressor(3, random_state=0)),
    ]
    model = StackingRegressor(members, Ridge(), cv=2, passthrough=True).fit(X, X["size"] ** 2)
    if readers.scales(LinearRegression()):
        agrees(model, model.predict, X)
    else:
        black_box(model, model.predict, X, "passthrough")


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("final", [LogisticRegression(max_iter=2000), RidgeClassifier()])
def test_stacking_of_probabilities(k, final):
    X = table()
    members = [("a", class_tree()), ("b", class_forest()), ("c", "drop")]
    model = StackingClassifier(members, final, cv=2).fit(X, classes(X, k))
    explainer = exact(model, model.decision_function, X)
    assert explainer.output_names_ == list(
        map(str, model.classes_[-1:] if k == 2 else model.classes_)
    )


@pytest.mark.parametrize("k", [2, 3])
def test_stacking_of_decision_functions(k):
    X = table()
    members = [("a", boosted()), ("b", hist_classifier())]
    model = StackingClassifier(
        members, LogisticRegression(max_iter=2000), cv=2, stack_method="decision_function"
    )
    model.fit(X, classes(X, k))
    exact(model, model.decision_function, X)
    linked(model, probabilities(model), X, output="proba")


def test_stacking_of_mixed_outputs():
    X = table()
    y = classes(X, 3)
    searched = GridSearchCV(class_forest(), {"randomforestclassifier__max_depth": [2, 3]}, cv=2)
    inner = StackingClassifier(
        [("a", class_tree()), ("b", searched)], RidgeClassifier(), cv=2
    )  # it has a decision function only
    model = StackingClassifier([("a", inner), ("b", class_tree(2))], cv=2).fit(X, y)
    assert model.stack_method_ == ["decision_function", "predict_proba"]
    exact(model, model.decision_function, X)


@pytest.mark.parametrize(
    "settings, word",
    [
        ({"stack_method": "predict"}, "labels"),
        ({"final_estimator": GaussianNB()}, "GaussianNB, is not linear"),
        ({"estimators": [("a", hist_classifier())]}, "'raw', not on 'proba'"),
        ({"estimators": [("a", prepared(GaussianNB()))]}, "no reader for GaussianNB"),
    ],
)
def test_stacking_of_classifiers_that_is_no_sum(settings, word):
    X = table()
    y = (classes(X, 2) == "low").astype(int)
    model = StackingClassifier([("a", class_tree()), ("b", class_forest())], cv=2)
    model.set_params(**settings).fit(X, y)
    black_box(model, probabilities(model), X, word)


# -- transformed targets -------------------------------------------------------------------------

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((1, 3)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
    FunctionTransformer(),
    make_pipeline(MinMaxScaler(), StandardScaler(), FunctionTransformer()),
    None,
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_a_target_that_is_scaled(scaler):
    X = table()
    for inner, y in [(forest(), target(X)), (forest(), targets(X)), (hist(), target(X))]:
        model = TransformedTargetRegressor(inner, transformer=scaler).fit(X, y)
        explainer = exact(model, model.predict, X)
    assert explainer.output_names_ == ["prediction"]


def test_a_scaled_target_as_last_step_and_of_several_members():
    X = table()
    inner = TransformedTargetRegressor(
        DecisionTreeRegressor(max_depth=3, random_state=0), transformer=MinMaxScaler()
    )
    model = prepared(inner).fit(X, target(X))
    exact(model, model.predict, X)
    several = MultiOutputRegressor(hist())
    model = TransformedTargetRegressor(several, transformer=StandardScaler()).fit(X, targets(X))
    explainer = exact(model, model.predict, X)
    assert explainer.output_names_ == ["y0", "y1", "y2"]


@pytest.mark.parametrize(
    "settings",
    [
        {"func": np.log, "inverse_func": np.exp},
        {"transformer": PowerTransformer()},
        {"transformer": make_pipeline(StandardScaler(), PowerTransformer())},
    ],
)
def test_a_target_that_is_bent(settings):
    X = table()
    y = target(X) - 990.0  # far from 0 powers can be so steep that they have no inverse
    model = TransformedTargetRegressor(tree(), check_inverse=False, **settings).fit(X, y)
    linked(model, model.predict, X)
    vote = VotingRegressor([("a", model), ("b", tree())]).fit(X, y)
    linked(vote, vote.predict, X)


def test_a_scaled_target_of_a_model_with_a_link():
    X = table()
    poisson = HistGradientBoostingRegressor(loss="poisson", max_iter=3, min_samples_leaf=5)
    model = TransformedTargetRegressor(prepared(poisson, OrdinalEncoder())).fit(X, target(X))
    linked(model, model.predict, X)


# -- side by side --------------------------------------------------------------------------------


@pytest.mark.parametrize("member", [tree(), hist()], ids=["tree", "hist"])
def test_several_targets(member):
    X = table()
    model = MultiOutputRegressor(member).fit(X, targets(X))
    explainer = exact(model, model.predict, X)
    assert explainer.output_names_ == ["y0", "y1", "y2"]
    assert explainer.pieces_.table.values.shape[1] == 1


def test_several_targets_behind_steps_and_of_stacks():
    X = table()
    model = prepared(MultiOutputRegressor(DecisionTreeRegressor(max_depth=3, random_state=0))).fit(
        X, targets(X)
    )
    exact(model, model.predict, X)
    stack = StackingRegressor([("a", tree()), ("b", hist())], Ridge(), cv=2)
    model = MultiOutputRegressor(stack).fit(X, targets(X))
    exact(model, model.predict, X)


@pytest.mark.parametrize("member", [class_tree(), class_forest()], ids=["tree", "forest"])
def test_several_targets_of_classes(member):
    X = table()
    y = np.column_stack([classes(X, 3), X["town"] == "Ulm", np.where(X["age"] > 40, "old", "new")])
    model = MultiOutputClassifier(member).fit(X, y.astype(str))
    explainer = exact(model, probabilities(model), X)
    names = ["y0__high", "y0__low", "y0__middle", "y1__True", "y2__old"]
    assert explainer.output_names_ == names


def test_several_targets_of_classes_without_probabilities_in_pieces():
    X = table()
    y = np.column_stack([classes(X, 2), X["town"]])
    model = MultiOutputClassifier(hist_classifier()).fit(X, y)
    linked(model, probabilities(model), X)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("member", [boosted(), hist_classifier()], ids=["boosting", "hist"])
def test_one_against_the_rest(k, member):
    X = table()
    model = OneVsRestClassifier(member).fit(X, classes(X, k))
    explainer = exact(model, model.decision_function, X, output="raw")
    labels = list(map(str, model.classes_))
    assert explainer.output_names_ == (labels[1:] if k == 2 else labels)
    assert MeasureExplainer(model, "partial_dependence").fit(X[:5]).engine_ == ("one_violation",)
    linked(model, probabilities(model), X, output="proba")


def test_one_against_the_rest_of_probabilities():
    X = table()
    model = OneVsRestClassifier(class_tree()).fit(X, classes(X, 3))
    black_box(model, probabilities(model), X, "OneVsRestClassifier divides")


@pytest.mark.parametrize("n_labels", [2, 3])
def test_labels_that_all_rows_may_have(n_labels):
    X = table()
    y = np.column_stack([X["age"] > 40, X["town"] == "Ulm", np.ones(len(X))])[:, :n_labels]
    seen = pytest.warns(UserWarning, match="Label 2") if n_labels == 3 else nullcontext()
    with seen:
        model = OneVsRestClassifier(boosted()).fit(X, y.astype(int))
    explainer = exact(model, model.decision_function, X, output="raw")
    assert explainer.output_names_ == list("012")[:n_labels]
    agrees(model, model.predict_proba, X, output="proba")


# -- what is no sum, and what changes nothing ----------------------------------------------------


def test_reasons():
    X = table()
    y = target(X)
    chain = RegressorChain(prepared_numbers(DecisionTreeRegressor(max_depth=3, random_state=0)))
    numbers = X[["age", "size"]]
    chain.fit(numbers, targets(X)[:, :2])
    black_box(chain, chain.predict, numbers, "RegressorChain", "what others predict")
    model = prepared(AdaBoostRegressor(n_estimators=3, random_state=0)).fit(X, y)
    black_box(model, model.predict, X, "AdaBoostRegressor", "median")
    bag = BaggingRegressor(model.steps[-1][1], n_estimators=2).fit(numbers, y)
    black_box(
        bag, bag.predict, numbers, "member of BaggingRegressor", "AdaBoostRegressor", "median"
    )


def prepared_numbers(model):
    return make_pipeline(StandardScaler(), model)


@pytest.mark.parametrize(
    "model, words",
    [
        (
            prepared(AdaBoostClassifier(n_estimators=3, random_state=0)),
            ["AdaBoostClassifier", "vote"],
        ),
        (prepared(CalibratedClassifierCV(GaussianNB(), cv=2)), ["CalibratedClassifierCV"]),
    ],
)
def test_reasons_of_classifiers(model, words):
    X = table()
    model.fit(X, classes(X, 3))
    black_box(model, probabilities(model), X, *words)


@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(class_tree(), cv=2),
        CalibratedClassifierCV(class_tree(), cv=2, method="isotonic"),
        VotingClassifier([("a", boosted())], voting="soft"),
    ],
)
def test_classifiers_behind_links(model):
    X = table()
    model.fit(X, classes(X, 3))
    linked(model, probabilities(model), X)


def test_reasons_of_classifiers_without_probabilities():
    X = table()
    numbers = X[["age", "size"]]
    pairs = OneVsOneClassifier(GradientBoostingClassifier(n_estimators=2))
    pairs.fit(numbers, classes(X, 3))
    black_box(pairs, pairs.decision_function, numbers, "OneVsOneClassifier", "vote")
    chain = ClassifierChain(DecisionTreeClassifier(max_depth=2))
    y = np.column_stack([X["age"] > 40, X["size"] > 5]).astype(int)
    assert "what others predict" in readers.why_none(chain.fit(numbers, y))
    vote = VotingClassifier([("a", class_tree())]).fit(X, classes(X, 3))
    assert "not a mean" in readers.why_none(vote)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: FixedThresholdClassifier(model, threshold=0.2),
        lambda model: TunedThresholdClassifierCV(model, cv=2),
        lambda model: GridSearchCV(model, {"memory": [None]}, cv=2),
        lambda model: RandomizedSearchCV(model, {"memory": [None]}, n_iter=1, cv=2),
        lambda model: FixedThresholdClassifier(GridSearchCV(model, {"memory": [None]}, cv=2)),
    ],
)
def test_wrappers_of_the_model_itself(wrap):
    X = table()
    y = (classes(X, 2) == "low").astype(int)
    model = wrap(class_forest()).fit(X, y)
    assert hasattr(unwrap(model), "steps")
    exact(model, probabilities(model), X)
    model = wrap(boosted()).fit(X, y)
    exact(model, model.decision_function, X)
    both = VotingClassifier([("a", wrap(class_forest())), ("b", class_tree())], voting="soft")
    both.fit(X, y)
    exact(both, probabilities(both), X)


def test_a_halving_search():
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    X = table()
    model = HalvingGridSearchCV(tree(), {"decisiontreeregressor__max_depth": [2, 4]}, cv=2)
    model.fit(X, target(X))
    exact(model, model.predict, X)


# -- nested --------------------------------------------------------------------------------------


def test_nested():
    X = table()
    y = target(X)
    voting = VotingRegressor([("a", tree()), ("b", hist()), ("c", "drop")], weights=[1, 2.5, 9])
    models = [
        voting,
        TransformedTargetRegressor(voting, transformer=StandardScaler()),
        StackingRegressor(
            [
                ("v", voting),
                ("t", TransformedTargetRegressor(forest(), transformer=RobustScaler())),
            ],
            cv=2,
        ),
    ]
    for model in models:
        exact(model.fit(X, y), model.predict, X)
        exact(model, model.predict, X, output="raw")
    model = MultiOutputRegressor(models[1]).fit(X, targets(X))
    exact(model, model.predict, X)
    numbers = X[["age", "size"]]
    inner = prepared_numbers(GradientBoostingRegressor(n_estimators=3, max_depth=2))
    members = [("a", inner), ("b", DecisionTreeRegressor(max_depth=3, random_state=0))]
    stack = StackingRegressor(members, Ridge(), cv=2)
    model = BaggingRegressor(stack, n_estimators=3, random_state=0).fit(numbers, y)
    exact(model, model.predict, numbers)


def test_soft_voting_of_pipelines():
    X = table()
    members = [("a", class_tree()), ("b", class_forest())]
    for k in (2, 3):
        model = VotingClassifier(members, voting="soft", weights=[1, 2]).fit(X, classes(X, k))
        exact(model, probabilities(model), X)


def test_outputs_are_shifted_and_only_widened_if_they_must():
    X = table()[["age", "size"]]
    (part,) = read_trees(
        RandomForestClassifier(3, random_state=0).fit(X, classes(X.assign(town=""), 2)), "proba"
    )
    shifted = part.at_outputs([3, 4], 6)
    assert shifted.values.shape[1] == 2
    assert shifted.outputs.tolist() == [3] * 3
    assert len(shifted.constant) == 6
    assert part.at_outputs([0, 2], 3).values.shape[1] == 3
    assert part.at_outputs([1, 0], 2).values[:, ::-1].tolist() == part.values.tolist()

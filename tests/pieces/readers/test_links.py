"""Links of all readers: what a model predicts is its margins behind a known function."""

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skattr import MeasureExplainer
from skattr.measures import PartialDependence
from skattr.pieces import BlackBox, Linked
from tests.helpers.boosters import make_frame, models
from tests.helpers.case import proba
from tests.helpers.comparison import by_definition

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3)).round(1)
SCORE = X[:, 0] * X[:, 1] + X[:, 2] + RNG.normal(size=90) / 4
CLASSES = {2: (SCORE > 0).astype(int), 3: np.digitize(SCORE, [-0.4, 0.6])}
POSITIVE = np.exp(SCORE / 2)
HIST = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5)
TREES = GradientBoostingClassifier(n_estimators=4, random_state=0)


def check(model, output, f, background, rows, tolerance=1e-12):
    """The model is read behind a link, and values equal sums over its own predictions."""
    explainer = MeasureExplainer(model, PartialDependence(), output=output).fit(background)
    assert isinstance(explainer.pieces_, Linked), explainer.describe()
    assert explainer.refuted_ is None and explainer.exact_
    wanted = by_definition(f, background, rows)
    values = explainer.explain(rows).values
    np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance)
    return explainer


# -- scikit-learn --------------------------------------------------------------------------------

CLASSIFIERS = {
    "boosting": TREES,
    "hist": HIST,
    "logistic": LogisticRegression(),
    "sgd": SGDClassifier(loss="log_loss", random_state=0),
    "sgd clipped": SGDClassifier(loss="modified_huber", random_state=0),
    "network": MLPClassifier((5,), max_iter=600, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), HIST),
    "calibrated by isotonic": CalibratedClassifierCV(HIST, cv=2, method="isotonic"),
    "calibrated by sigmoid": CalibratedClassifierCV(TREES, cv=2),
    "calibrated network": CalibratedClassifierCV(
        MLPClassifier((3,), max_iter=900, random_state=0), cv=2
    ),
    "calibrated by temperature": CalibratedClassifierCV(HIST, cv=2, method="temperature"),
    "calibrated machine": CalibratedClassifierCV(LinearSVC(), cv=3),
    "vote": VotingClassifier([("a", HIST), ("b", TREES)], voting="soft", weights=[1, 3]),
    "vote with a tree": VotingClassifier(
        [("a", HIST), ("b", DecisionTreeClassifier(max_depth=2))], voting="soft"
    ),
    "bag": BaggingClassifier(HIST, 3, max_features=2, random_state=0),
    "one against the rest": OneVsRestClassifier(HIST),
    "stack": StackingClassifier([("a", RandomForestClassifier(3, max_depth=3))], cv=2),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, classes):
    model = CLASSIFIERS[name].fit(X, CLASSES[classes])
    check(model, "proba", lambda Z: proba(model, Z), X[:25], X[25:30])


REGRESSORS = {
    "hist gamma": HistGradientBoostingRegressor(loss="gamma", max_iter=4),
    "poisson": PoissonRegressor(),
    "log target": TransformedTargetRegressor(
        RandomForestRegressor(3, max_depth=3, random_state=0), func=np.log, inverse_func=np.exp
    ),
    "power of the target": TransformedTargetRegressor(Ridge(), transformer=PowerTransformer()),
    "quantiles of the target": TransformedTargetRegressor(
        Ridge(), transformer=QuantileTransformer(n_quantiles=20)
    ),
    "vote of predictions": VotingRegressor(
        [("a", PoissonRegressor()), ("b", RandomForestRegressor(3, max_depth=3, random_state=0))]
    ),
    "targets": MultiOutputRegressor(HistGradientBoostingRegressor(loss="poisson", max_iter=3)),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    y = np.stack([POSITIVE, POSITIVE**2], axis=1) if name == "targets" else POSITIVE
    model = REGRESSORS[name].fit(X, y)
    check(model, "predict", model.predict, X[:25], X[25:30], 1e-10)


def test_several_targets_of_classes():
    y = np.stack([CLASSES[2], CLASSES[3]], axis=1)
    model = MultiOutputClassifier(HIST).fit(X, y)
    check(model, "proba", lambda Z: proba(model, Z), X[:20], X[20:24])


def test_raw_columns_behind_a_pipeline():
    frame = pd.DataFrame({"a": X[:, 0], "s": np.array(["x", "y", "z"])[np.arange(90) % 3]})
    encoder = make_column_transformer((OneHotEncoder(), ["s"]), remainder="passthrough")
    for last in (HIST, LogisticRegression()):
        model = make_pipeline(encoder, last).fit(frame, CLASSES[2])
        f = lambda Z, model=model: model.predict_proba(Z)[:, 1]  # noqa: E731
        explainer = check(model, "proba", f, frame[:25], frame[25:30])
        assert explainer.curve("s").kind == "levels"


# -- boosting libraries --------------------------------------------------------------------------

SETTINGS = {
    "xgboost": (["reg:logistic", "count:poisson", "reg:gamma", "reg:tweedie"], "objective"),
    "lightgbm": (["poisson", "gamma", "tweedie", "cross_entropy", "cross_entropy_lambda"],
                 "objective"),
    "catboost": (["Poisson", "Tweedie:variance_power=1.5"], "loss_function"),
}  # fmt: skip
TOLERANCE = {"xgboost": 2e-6, "lightgbm": 1e-12, "catboost": 1e-12}  # xgboost adds up in float32


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("library", TOLERANCE)
def test_boosted_classifiers(library, classes):
    frame, y = make_frame()
    numbers = frame[["a", "b"]]
    target = (y > 1).astype(int) if classes == 2 else np.digitize(y, [0.5, 1.5])
    model = models(library)[1].fit(numbers, target)
    check(
        model, "proba", lambda Z: proba(model, Z), numbers[:30], numbers[30:36],
        TOLERANCE[library],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("library", "objective"), [(lib, o) for lib, (names, _) in SETTINGS.items() for o in names]
)
def test_boosted_regressors(library, objective):
    frame, y = make_frame()
    numbers = frame[["a", "b"]]
    regressor = models(library)[0].set_params(**{SETTINGS[library][1]: objective})
    bounded = "logistic" in objective or "entropy" in objective
    target = 1 / (1 + np.exp(-y)) if bounded else np.exp(y / 3)
    model = regressor.fit(numbers, target)
    check(model, "predict", model.predict, numbers[:30], numbers[30:36], TOLERANCE[library])


def test_a_random_forest_of_lightgbm_links_the_mean_of_its_trees():
    lightgbm = pytest.importorskip("lightgbm")
    frame, y = make_frame()
    numbers = frame[["a", "b"]]
    model = lightgbm.LGBMClassifier(
        boosting_type="rf", n_estimators=5, bagging_freq=1, bagging_fraction=0.6, verbose=-1,
        n_jobs=1,
    ).fit(numbers, y > 1)  # fmt: skip
    check(model, "proba", lambda Z: proba(model, Z), numbers[:20], numbers[20:24])


def test_links_that_nobody_knows_stay_black_boxes_with_the_reason():
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    frame, y = make_frame()
    numbers = frame[["a", "b"]]

    def squared(target, prediction):
        return prediction - target, np.ones(len(target))

    cases = [
        (xgboost.XGBRegressor(objective="binary:hinge", n_estimators=3), y > 1, "binary:hinge"),
        (lightgbm.LGBMRegressor(objective=squared, n_estimators=3, verbose=-1), y, None),
        (TransformedTargetRegressor(Ridge(), func=np.cbrt, inverse_func=lambda z: z**3),
         y, "inverse_func"),
    ]  # fmt: skip
    numbers = numbers.fillna(0.0)
    for model, target, reason in cases:
        explainer = MeasureExplainer(model.fit(numbers, target), output="predict").fit(numbers[:30])
        if reason is None:  # no link at all
            assert "boxes" in explainer.describe() and "link" not in explainer.describe()
        else:
            assert isinstance(explainer.pieces_, BlackBox)
            assert reason in explainer.describe()


# -- torch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", ["sigmoid", "softmax", "squeezed", "function", "log", "exp"])
def test_torch(final):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    k = 3 if final in ("softmax", "function", "log") else 1

    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(
                torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, k)
            )

        def forward(self, x):
            z = self.body(x)
            if final == "squeezed":
                return torch.sigmoid(z).squeeze(1)
            return torch.exp(z) if final == "exp" else torch.softmax(z, dim=-1)

    layer = {
        "sigmoid": torch.nn.Sigmoid(), "softmax": torch.nn.Softmax(1), "log": torch.nn.LogSoftmax(1)
    }  # fmt: skip
    module = torch.nn.Sequential(Named().body, layer[final]) if final in layer else Named()
    module = module.double().eval()

    def f(Z):
        with torch.no_grad():
            return module(torch.from_numpy(Z)).numpy()

    check(module, "auto", f, X[:20], X[20:24])


def test_a_softmax_over_rows_is_not_a_link():
    torch = pytest.importorskip("torch")
    from skattr.pieces.readers.torch import read_linked

    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Softmax(0)).eval()
    assert read_linked(module, "predict", 3) is None

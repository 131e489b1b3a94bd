"""Linear models behind preprocessing, fitted on the table of towns."""

import warnings

import numpy as np
from sklearn import linear_model
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.svm import LinearSVC, LinearSVR

from tests.helpers.towns import EFFECT, X, one_hot
from tests.helpers.towns import PREPARATIONS as TOWN_PREPARATIONS

SCORE = 0.1 * X["age"].to_numpy() + X["size"].to_numpy() ** 2 + EFFECT + 0.3 * X["code"].to_numpy()
TARGETS = {
    "number": SCORE,
    "positive": np.exp(0.2 * SCORE),
    "binary": np.where(SCORE > np.median(SCORE), "yes", "no"),
    "classes": np.array(["low", "mid", "high"])[np.digitize(SCORE, [4, 6])],
    "targets": np.stack([SCORE, -SCORE + X["size"], X["age"]], axis=1),
}
PREPARATIONS = TOWN_PREPARATIONS | {
    "splines": (lambda: make_column_transformer(
        (SplineTransformer(4), ["age", "size"]), (one_hot(), ["code", "city"])), X),
}  # fmt: skip
MODELS = {
    "LinearRegression": "number",
    "Ridge": "targets",
    "RidgeCV": "number",
    "Lasso": "number",
    "ElasticNetCV": "number",
    "MultiTaskLasso": "targets",
    "LassoLars": "number",
    "OrthogonalMatchingPursuit": "number",
    "BayesianRidge": "number",
    "ARDRegression": "number",
    "HuberRegressor": "number",
    "QuantileRegressor": "number",
    "TheilSenRegressor": "number",
    "RANSACRegressor": "number",
    "SGDRegressor": "number",
    "PoissonRegressor": "positive",
    "GammaRegressor": "positive",
    "TweedieRegressor": "number",
    "LogisticRegression": "binary",
    "LogisticRegressionCV": "classes",
    "SGDClassifier": "classes",
    "RidgeClassifier": "binary",
    "Perceptron": "classes",
}
ALL = {
    **MODELS,
    "LinearSVR": "number",
    "LinearSVC": "classes",
    "LinearDiscriminantAnalysis": "classes",
}
DENSE = (
    "LassoLars", "OrthogonalMatchingPursuit", "BayesianRidge", "ARDRegression", "TheilSenRegressor",
    "LinearDiscriminantAnalysis",
)  # fmt: skip
LOGS = ("PoissonRegressor", "GammaRegressor")


def fitted_model(preparation, name):
    """A pipeline, its background and f, which asks only for what scikit-learn answers."""
    build, data = PREPARATIONS[preparation]
    others = {"LinearSVR": LinearSVR, "LinearSVC": LinearSVC,
              "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis}  # fmt: skip
    model = others.get(name) or getattr(linear_model, name)
    seed = {"random_state": 0} if "random_state" in model().get_params() else {}
    pipeline = make_pipeline(build(), model(**seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model need not be good to be explained
        pipeline.fit(data, TARGETS[ALL[name]])

    def f(Z):
        if hasattr(pipeline, "decision_function"):
            y = pipeline.decision_function(Z)
        else:
            y = pipeline.predict(Z)
        return np.reshape(np.log(y) if name in LOGS else y, (len(Z), -1))

    return pipeline, data, f

"""RBF kernel machines behind preprocessing, fitted on the table of towns."""

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.gaussian_process.kernels import WhiteKernel as White
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, SplineTransformer
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from tests.helpers.towns import EFFECT, X, one_hot
from tests.helpers.towns import PREPARATIONS as TOWN_PREPARATIONS

SCORE = 0.1 * X["age"].to_numpy() * EFFECT + X["size"].to_numpy() ** 2 + 0.3 * X["code"].to_numpy()
TARGETS = {
    "number": SCORE,
    "binary": np.where(SCORE > np.median(SCORE), "yes", "no"),
    "classes": np.array(["low", "mid", "high"])[np.digitize(SCORE, [-1, 3])],
    "targets": np.stack([SCORE, -SCORE + X["size"], X["age"]], axis=1),
}
NUMBERS = X[["size", "age", "code"]].to_numpy() / [1, 10, 2]
PREPARATIONS = TOWN_PREPARATIONS | {
    "curved": (lambda: make_column_transformer(
        (SplineTransformer(4), ["age"]), (QuantileTransformer(n_quantiles=9), ["size"]),
        (one_hot(), ["code", "city"])), X),
}  # fmt: skip
GROUPS = {"g": ["city", "age"]}
OWN = [(0, 2), (1,), (3,)]


def process(kernel=None, **settings):
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-2, **settings)


MODELS = {
    "SVR": (SVR, "number"),
    "NuSVR": (lambda: NuSVR(gamma=0.3, C=5.0), "number"),
    "SVC": (SVC, "binary"),
    "SVC of pairs": (lambda: SVC(decision_function_shape="ovo"), "classes"),
    "NuSVC of pairs": (lambda: NuSVC(nu=0.3, decision_function_shape="ovo"), "classes"),
    "OneClassSVM": (OneClassSVM, "number"),
    "KernelRidge": (lambda: KernelRidge(kernel="rbf", gamma=0.2), "number"),
    "KernelRidge of targets": (lambda: KernelRidge(kernel="rbf"), "targets"),
    "process": (process, "number"),
    "process of a sum": (lambda: process(
        ConstantKernel(2.0) * RBF(0.7) + ConstantKernel(0.5) * RBF(3.0) * RBF(2.0)
        + ConstantKernel(4.0) + White(0.1), normalize_y=True), "number"),
    "process of targets": (
        lambda: process(RBF(1.5) + White(0.2), normalize_y=True), "targets"),
    "smooth Matern": (lambda: process(Matern(1.2, nu=np.inf)), "number"),
}  # fmt: skip
DENSE = [name for name in MODELS if "process" in name or "Matern" in name]


def fitted_model(preparation, name):
    """A pipeline, its background and f, which asks only for what scikit-learn answers."""
    build, data = PREPARATIONS[preparation]
    model, target = MODELS[name]
    pipeline = make_pipeline(build(), model()).fit(data, TARGETS[target])
    decides = hasattr(pipeline, "decision_function")

    def f(Z):
        return np.reshape(
            pipeline.decision_function(Z) if decides else pipeline.predict(Z), (len(Z), -1)
        )

    return pipeline, data, f

"""The table of pipelines: mixed frames × preprocessing × models, and f on raw rows.

`PREPARATIONS` has one line for each preprocessing, `MODELS` one for each model, and `CASES` names
the pairs that are always tested; `make_case(preparation, model, container, seed)` builds a pair.
``Case.f`` calls only the estimator's own methods on raw rows, as in `cases.py`.

A preparation's columns are written ``"age income? city?+"``: ``?`` has missing values, ``+`` has
levels that training never saw.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import pandas as pd
import polars as pl
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.helpers.case import Case, margin, predict, proba
from tests.oracle import Oracle, columns, has_trees, splits, table, take

N_TRAIN = 40
N_BACKGROUND = 6
N_EXPLAINED = 6
TOWNS = ["Ulm", "Bonn", "Kiel", "Graz", "Bern"]  # the last is rare in training
GRADES = ["low", "mid", "high"]
RARE = "never seen in training"
FLOATS = ("age", "income", "size")
FAR = {"age": [-80.5, 300.0], "income": [1e-3, 900.0], "size": [-44.0, 71.5]}


@dataclass
class PipelineCase(Case):
    """A case, and what is known about how it must be read."""

    reads: str = "boxes"  # or "additive", "linked" or "black box"
    settings: dict = field(default_factory=dict)  # of the explainer
    edges: dict = field(default_factory=dict)  # column: neighbouring floats between which f jumps
    open: tuple = ()  # columns whose cells cannot be listed
    step: str | None = None  # the step that mixes columns
    train: object = None
    y: object = None


# -- raw columns ---------------------------------------------------------------------------------


def town_names(rng, n):
    """Strings of unequal frequency; every one is there if there is room."""
    drawn = rng.choice(TOWNS, size=n, p=[0.4, 0.25, 0.2, 0.12, 0.03]).astype(object)
    drawn[: len(TOWNS)] = TOWNS[:n]
    return rng.permutation(drawn)


NATURES = {
    "age": lambda rng, n: np.round(40 + 15 * rng.normal(size=n), 1),
    "income": lambda rng, n: np.exp(rng.normal(size=n)),
    "size": lambda rng, n: rng.normal(size=n),
    "constant": lambda rng, n: np.full(n, 2.5),
    "code": lambda rng, n: rng.integers(1, 5, size=n),
    "member": lambda rng, n: rng.random(n) < 0.5,
    "day": lambda rng, n: np.datetime64("2024-02-27", "s") + rng.integers(0, 9**8, n),
    "city": town_names,  # pandas' own strings, NaN where missing
    "street": town_names,  # objects, None where missing
    "lane": town_names,  # objects, None and NaN
    "grade": lambda rng, n: rng.choice(GRADES, size=n).astype(object),  # category dtype
}
UNSEEN = {"code": 9}


def tokens(text):
    """``name, has missing, has unseen`` of each column of a preparation."""
    return [(t.rstrip("?+"), "?" in t, "+" in t) for t in text.split()]


def names_of(text):
    """Names of the columns of a preparation."""
    return [name for name, _, _ in tokens(text)]


def draw(rng, text, n):
    """Columns by name, nothing missing yet."""
    return {name: NATURES[name](rng, n) for name in names_of(text)}


def spoilt(rng, values, text, unseen):
    """The same columns with missing and, if wanted, unseen entries; one entry always stays."""
    out = {}
    for name, has_missing, has_unseen in tokens(text):
        column = values[name].copy()
        gone = rng.random(len(column)) < 0.2
        gone[0], gone[1:2] = False, True
        if has_unseen and unseen:
            column[rng.random(len(column)) < 0.25] = UNSEEN.get(name, RARE)
        if has_missing:
            gone &= column != TOWNS[-1]  # training shows every level to the encoders
            column = column.astype(object if column.dtype == object else float)
            nothing = np.array([None, np.nan], dtype=object) if name == "lane" else [None]
            if column.dtype == object:
                column[gone] = rng.permutation(np.resize(nothing, gone.sum()))
            else:
                column[gone] = np.nan
        out[name] = column
    return out


def target(rng, values, n_targets=1):
    """Noisy numbers that depend on every column, on which entries miss, and on pairs."""
    ys = []
    for _ in range(n_targets):
        total, before = 0.0, 1.0
        for name, column in values.items():
            effect = effect_of(rng, name, column)
            total = total + effect * (1 + 0.5 * before)
            before = effect
        ys.append(total + 0.1 * rng.normal(size=len(total)))
    return np.column_stack(ys) if n_targets > 1 else ys[0]


def effect_of(rng, name, column):
    """A number for each entry of one column."""
    missing = pd.isna(column)
    if column.dtype == object or name == "code":
        sizes = dict(zip(pd.unique(column[~missing]), rng.permutation(9), strict=False))
        return np.array([7.0 if m else sizes[v] for v, m in zip(column, missing, strict=True)]) / 4
    numbers = column.astype(np.int64 if column.dtype.kind == "M" else float).astype(float)
    numbers[missing] = 0.0
    if np.ptp(numbers) > 0:
        numbers = (numbers - numbers.mean()) / numbers.std()
    return np.sin(2 * numbers) + numbers + 2.0 * missing


def as_target(y, kind):
    """The target that a model wants: a number, a positive one, labels or several numbers."""
    if kind == "positive":
        return np.exp(0.3 * y)
    if isinstance(kind, int):
        ranks = np.argsort(np.argsort(y)) * kind // len(y)
        return np.array(["no", "yes", "perhaps"])[ranks]
    return y


# -- containers ----------------------------------------------------------------------------------


def pandas_series(name, values):
    """A column as pandas holds it."""
    if name == "grade":
        return pd.Series(pd.Categorical(values, categories=[*GRADES[::-1], RARE]))
    if name in ("street", "lane"):
        return pd.Series(values, dtype=object)
    return pd.Series(values, dtype="str" if name == "city" else values.dtype)


def polars_series(name, values):
    """A column as polars holds it."""
    if name == "grade":
        return pl.Series(values.tolist(), dtype=pl.Enum([*GRADES[::-1], RARE]))
    return pl.Series(values.tolist() if values.dtype == object else values)


def nullable(frame):
    """Numbers and booleans in pandas' nullable dtypes."""
    kinds = {"f": "Float64", "i": "Int64", "b": "boolean"}
    return frame.astype({c: kinds[t.kind] for c, t in frame.dtypes.items() if t.kind in kinds})


def contained(values, container, rng):
    """Columns as a frame (its index has duplicates) or an array."""
    if container == "polars":
        return pl.DataFrame({name: polars_series(name, v) for name, v in values.items()})
    if container == "array":
        return np.column_stack(list(values.values()))
    frame = pd.DataFrame({name: pandas_series(name, v) for name, v in values.items()})
    frame.index = rng.integers(0, 3, size=len(frame))
    if container == "numbered":
        return frame.set_axis([7 * k + 1 for k in range(frame.shape[1])][::-1], axis=1)
    return nullable(frame) if container == "nullable" else frame


def by_position(preparation, names):
    """A ColumnTransformer that takes its columns by position: frames without string names."""
    if isinstance(preparation, Pipeline):
        preparation.steps[0] = (preparation.steps[0][0], by_position(preparation[0], names))
    elif isinstance(preparation, ColumnTransformer):
        preparation.transformers = [
            (name, step, [names.index(c) for c in chosen] if isinstance(chosen, list) else chosen)
            for name, step, chosen in preparation.transformers
        ]
    return preparation


# -- objects under the oracle --------------------------------------------------------------------

POOL = np.array([*TOWNS, RARE, None, np.nan], dtype=object)


def place_in_pool(value):
    """The number of an object; None and NaN are two things, as they are to an encoder."""
    if isinstance(value, float):
        return len(POOL) - 1.0
    return float(POOL.tolist().index(value))


def objects_of(X):
    """Positions of the columns of objects."""
    return [k for k, t in enumerate(X.dtypes) if pd.api.types.is_object_dtype(t)]


def numbered(X):
    """Columns of objects as numbers: a frame made anew would turn None into NaN."""
    if not isinstance(X, pd.DataFrame):
        return X
    X = X.copy()
    for k in objects_of(X):
        X.isetitem(k, np.array([place_in_pool(v) for v in X.iloc[:, k]]))
    return X


def on_numbered(f, like):
    """f of numbered rows; rows that hold objects are left alone."""
    if not isinstance(like, pd.DataFrame):
        return f
    objects = objects_of(like)

    def of_rows(Z):
        for k in set(objects) - set(objects_of(Z)):
            Z = Z.copy()
            Z.isetitem(k, pd.Series(POOL[Z.iloc[:, k].astype(int)], Z.index, dtype=object))
        return f(Z)

    return of_rows


class RawOracle(Oracle):
    """The definition, with columns of objects handed to f as they are."""

    def __post_init__(self):
        self.objects = objects_of(self.X) if isinstance(self.X, pd.DataFrame) else []
        self.f = on_numbered(self.f, self.X)
        self.X = numbered(self.X)
        super().__post_init__()

    def plain(self, X, k):
        """Column k as Python's own values, None where missing; whether they have an order."""
        if k not in self.objects:
            return super().plain(X, k)
        values = [POOL[int(v)] for v in X.iloc[:, k]]
        return [None if pd.isna(v) else v for v in values], False

    def support(self, parameters, X, own):
        """The effective number of rows behind each row of X."""
        return super().support(parameters, numbered(X), own)

    def values(self, terms, X, own):
        """phi, (rows of X, attributions, k)."""
        return super().values(terms, numbered(X), own)


# -- functions for FunctionTransformer -----------------------------------------------------------


def days(X):
    """Datetimes as days since 2024, one output."""
    return ((X - pd.Timestamp("2024-01-01")) / pd.Timedelta("1D")).to_numpy(dtype=float)


def month_and_weekday(X):
    """Two outputs of one datetime column."""
    day = X.iloc[:, 0]
    return np.column_stack([day.dt.month, day.dt.day_of_week]).astype(float)


def waves(X):
    """Two outputs of one number, neither monotone."""
    x = np.asarray(X, dtype=float)[:, [0]]
    return np.hstack([np.sin(3 * x), x**2])


def squares(X):
    """One output that is not monotone."""
    return np.asarray(X, dtype=float) ** 2


def variances(X, y):
    """Scores for SelectKBest."""
    return np.var(X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float), axis=0)


# -- preprocessing -------------------------------------------------------------------------------


@dataclass
class Preparation:
    """One preprocessing: its raw columns, and how to make it."""

    text: str
    make: Callable
    missing: bool = False  # missing values reach the model
    sparse: bool = False  # the model gets a sparse matrix
    affine: bool = False  # first come the numbers, scaled; then what comes from levels
    open: tuple = ()  # columns whose cells cannot be listed if the model is a tree
    step: str | None = None  # the step that mixes columns
    kinds: tuple = ("number",)  # targets beyond "number" that it can be fitted to
    containers: tuple = ("pandas",)


ANY = ("number", "positive", 2, 3)
FRAMES = ("pandas", "nullable", "polars", "numbered")
ARRAYS = (*FRAMES, "array")


def parts(*chosen, **settings):
    """A ColumnTransformer of ``(step, "columns")``."""
    listed = [
        (f"part{i}", step, columns.split() if isinstance(columns, str) else columns)
        for i, (step, columns) in enumerate(chosen)
    ]
    return ColumnTransformer(listed, **settings)


def rest(*chosen, **settings):
    """The same with all other columns passed through."""
    return parts(*chosen, remainder="passthrough", **settings)


def whole(make, text="age size", **settings):
    """A step on all columns at once, which are numbers."""
    settings = {"kinds": ANY, "containers": ARRAYS, **settings}
    return Preparation(text, make, **settings)


def part(text, make, **settings):
    """A ColumnTransformer or what contains one."""
    settings = {"kinds": ANY, "containers": FRAMES, **settings}
    return Preparation(text, make, **settings)


def bins(encode, strategy="quantile"):
    """Three bins."""
    how = {"quantile_method": "averaged_inverted_cdf"} if strategy == "quantile" else {}
    return KBinsDiscretizer(3, encode=encode, strategy=strategy, **how)


def one_hot(**settings):
    """A dense encoder that takes unknown levels."""
    return OneHotEncoder(**{"handle_unknown": "ignore", "sparse_output": False, **settings})


def ordinal(**settings):
    """An encoder that takes unknown levels."""
    unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    return OrdinalEncoder(**{**unknown, **settings})


def numeric_and_levels(after=(), **settings):
    """What most people write."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    levels = make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot())
    first = parts((numbers, "age income"), (levels, "city"), (one_hot(), "grade"), **settings)
    return make_pipeline(first, *after) if after else first


MIXED = "age? income city?+ grade?+"

PREPARATIONS = {
    # numbers
    "standard": whole(StandardScaler, affine=True),
    "standard, missing": whole(StandardScaler, "age? size?", missing=True, affine=True),
    "minmax": whole(lambda: MinMaxScaler((-1, 2)), affine=True),
    "minmax clip": whole(lambda: MinMaxScaler(clip=True), affine=True),
    "maxabs": whole(MaxAbsScaler, affine=True),
    "robust": whole(RobustScaler, affine=True),
    "quantile": whole(lambda: QuantileTransformer(n_quantiles=9)),
    "quantile normal": whole(
        lambda: QuantileTransformer(n_quantiles=7, output_distribution="normal")
    ),
    "power": whole(PowerTransformer),
    "box-cox": whole(lambda: PowerTransformer("box-cox", standardize=False), "income"),
    "imputer": whole(SimpleImputer, "age? size"),
    "imputer indicator": whole(lambda: SimpleImputer(add_indicator=True), "age? size? income"),
    "missing indicator": whole(
        lambda: FeatureUnion([("value", SimpleImputer()), ("gone", MissingIndicator())]),
        "age? size?",
    ),
    "only the indicator": whole(lambda: MissingIndicator(features="all"), "age? size?"),
    "bins one-hot": whole(lambda: bins("onehot"), sparse=True),
    "bins dense": whole(lambda: bins("onehot-dense", "uniform")),
    "bins ordinal": whole(lambda: bins("ordinal", "kmeans"), "age size"),
    "binarizer": part(
        "age size",
        lambda: rest((Binarizer(threshold=40), "age")),
        containers=("pandas", "numbered", "polars"),
    ),
    "log1p": part("income size", lambda: rest((FunctionTransformer(np.log1p), "income"))),
    "negative": part("age size", lambda: rest((FunctionTransformer(np.negative), "age"))),
    "squares": part("size age", lambda: rest((FunctionTransformer(squares), "size"))),
    "waves": part("size age", lambda: rest((FunctionTransformer(waves), "size")), open=("size",)),
    "splines": whole(lambda: SplineTransformer(3, degree=2), open=("age", "size")),
    "spline of one": part(
        "age size", lambda: rest((SplineTransformer(4), "age")), open=("age",), containers=FRAMES
    ),
    "days": part(
        "day age", lambda: rest((FunctionTransformer(days), "day")), containers=("pandas",)
    ),
    "months": part(
        "day age",
        lambda: rest((FunctionTransformer(month_and_weekday), "day")),
        open=("day",),
        containers=("pandas",),
    ),
    # levels
    "one-hot": part("city age", lambda: parts((OneHotEncoder(), "city")), sparse=True),
    "one-hot dense": part("age city?+", lambda: rest((one_hot(), "city"))),
    "one-hot sparse": part("city?+ street?+", lambda: one_hot(sparse_output=True), sparse=True),
    "one-hot None": part("street?+ age", lambda: rest((one_hot(), "street"))),
    "one-hot None and NaN": part(
        "lane?+ age", lambda: rest((one_hot(), "lane")), containers=("pandas", "numbered")
    ),
    "one-hot drop first": part("city+ age", lambda: rest((one_hot(drop="first"), "city"))),
    "one-hot drop if binary": part(
        "member city? age", lambda: rest((one_hot(drop="if_binary"), "member city"))
    ),
    "one-hot refuses": part(
        "city? code age", lambda: rest((one_hot(handle_unknown="error"), "city code"))
    ),
    "one-hot codes": part("code+ age", lambda: rest((one_hot(), "code"))),
    "one-hot codes, missing": part("code?+ age", lambda: rest((one_hot(), "code"))),
    "one-hot category": part("grade?+ age", lambda: rest((one_hot(), "grade"))),
    "min frequency": part(
        "city?+ age",
        lambda: rest((one_hot(min_frequency=6, handle_unknown="infrequent_if_exist"), "city")),
    ),
    "max categories": part(
        "city?+ age",
        lambda: rest(
            (one_hot(max_categories=3, handle_unknown="infrequent_if_exist", drop="first"), "city")
        ),
    ),
    "infrequent, unknown ignored": part(
        "city+ age", lambda: rest((one_hot(min_frequency=0.2), "city"))
    ),
    "ordinal": part("city+ street age", lambda: rest((ordinal(), "city street"))),
    "ordinal missing": part(
        "city?+ grade?+ age", lambda: rest((ordinal(encoded_missing_value=-2), "city grade"))
    ),
    "ordinal NaN": part(
        "city?+ age", lambda: rest((ordinal(unknown_value=np.nan), "city")), missing=True
    ),
    "ordinal infrequent": part("city+ age", lambda: rest((ordinal(max_categories=3), "city"))),
    "ordinal refuses": part(
        "grade age", lambda: rest((OrdinalEncoder(categories=[GRADES]), "grade"))
    ),
    "target": part(
        "city?+ street?+ age",
        lambda: rest((TargetEncoder(cv=KFold(2)), "city street")),
    ),
    "imputed levels": part(
        "city?+ age",
        lambda: rest(
            (
                make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), one_hot()),
                "city",
            )
        ),
        containers=("pandas", "numbered"),
    ),
    "booleans": part("member age code", lambda: rest((StandardScaler(), "member"))),
    # together
    "mixed": part(MIXED, numeric_and_levels, containers=("pandas", "numbered")),
    "mixed pandas": part(
        MIXED,
        lambda: numeric_and_levels().set_output(transform="pandas"),
        containers=("pandas",),
    ),
    "affine": part(
        "age? income city+",
        lambda: parts(
            (make_pipeline(SimpleImputer(), StandardScaler()), "age income"), (one_hot(), "city")
        ),
        affine=True,
    ),
    "drop": part("age size city", lambda: rest((one_hot(), "city"), ("drop", "size"))),
    "remainder drop": part(
        "age size city", lambda: parts(("passthrough", "age"), (one_hot(), "city"))
    ),
    "selectors": part(
        "age city member size",
        lambda: parts(
            (RobustScaler(), make_column_selector(dtype_include=np.number)),
            (one_hot(), make_column_selector(dtype_exclude=np.number)),
        ),
        containers=("pandas",),
    ),
    "remainder scaled": part(
        "age size city", lambda: parts((one_hot(), "city"), remainder=MaxAbsScaler())
    ),
    "a column twice": part(
        "age size", lambda: parts((StandardScaler(), "age size"), (bins("ordinal"), "age"))
    ),
    "union": part(
        "age city size",
        lambda: rest(
            (FeatureUnion([("scaled", StandardScaler()), ("bins", bins("onehot-dense"))]), "age"),
            (FeatureUnion([("a", one_hot()), ("b", ordinal())]), "city"),
        ),
    ),
    "two transformers": part(
        "age? city size",
        lambda: make_pipeline(
            parts((SimpleImputer(), "age"), (ordinal(), "city"), ("passthrough", "size")),
            ColumnTransformer([("b", one_hot(), [1]), ("a", StandardScaler(), [2])]),
        ),
    ),
    "nested": part(
        "age? size city",
        lambda: parts(
            (
                parts(
                    (make_pipeline(SimpleImputer(), StandardScaler()), "age"),
                    ("passthrough", "size"),
                ),
                "age size",
            ),
            (one_hot(), "city"),
        ),
        containers=("pandas",),
    ),
    "identity": part("age size", lambda: make_pipeline("passthrough", FunctionTransformer())),
    "scaler after": part(
        MIXED, lambda: numeric_and_levels((StandardScaler(),)), containers=("pandas", "numbered")
    ),
    "sparse, scaler after": part(
        "code city+ street",
        lambda: make_pipeline(one_hot(sparse_output=True), StandardScaler(with_mean=False)),
        sparse=True,
        containers=("pandas",),
    ),
    "variance threshold": part(
        "age constant city",
        lambda: make_pipeline(
            rest((one_hot(sparse_output=True), "city"), sparse_threshold=1.0),
            VarianceThreshold(0.05),
        ),
        sparse=True,
    ),
    "select k best": part(
        MIXED,
        lambda: numeric_and_levels((SelectKBest(variances, k=4),)),
        containers=("pandas", "numbered"),
    ),
    "select from model": part(
        MIXED,
        lambda: numeric_and_levels(
            (SelectFromModel(DecisionTreeRegressor(random_state=0), threshold=0.02),)
        ),
        kinds=("number", "positive"),
        containers=("pandas", "numbered"),
    ),
    "everything": part(
        "age? income day city?+ street?+ grade?+ member code",
        lambda: parts(
            (SimpleImputer(add_indicator=True), "age"),
            (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), "income"),
            (FunctionTransformer(days), "day"),
            (one_hot(min_frequency=4, handle_unknown="infrequent_if_exist"), "city"),
            (ordinal(), "street"),
            (one_hot(drop="if_binary"), "grade"),
            (one_hot(drop="if_binary"), "member"),
            (one_hot(), "code"),
        ),
        containers=("pandas",),
    ),
    # steps that mix columns
    "pca": part(
        "age size city",
        lambda: parts((PCA(2), "age size"), (one_hot(), "city")),
        step="PCA",
    ),
    "polynomial": whole(lambda: PolynomialFeatures(2), step="PolynomialFeatures"),
    "neighbours": whole(lambda: KNNImputer(n_neighbors=2), "age? size", step="KNNImputer"),
    "normalizer": part(
        "age size city",
        lambda: make_pipeline(rest((one_hot(), "city")), Normalizer()),
        step="Normalizer",
    ),
    # the model itself takes the frame
    "frame": part(
        "age? grade?+ size", lambda: "passthrough", missing=True, containers=("pandas", "polars")
    ),
}


# -- models --------------------------------------------------------------------------------------


@dataclass
class Model:
    """One model: how to put it behind a preparation, f, its target and what it is read as."""

    build: Callable  # (maker of a preparation) -> estimator
    f: Callable
    kind: object = "number"
    reads: str = "boxes"  # or "additive", "linked" or "black box"
    missing: bool = False  # takes missing values
    sparse: bool = True  # takes sparse matrices
    frames: bool = False  # takes categories in a frame itself
    settings: dict = field(default_factory=dict)
    n_targets: int = 1


def log_predict(model, X):
    """The prediction on the scale of a log link, (n, 1)."""
    return np.log(model.predict(X)).reshape(len(X), -1)


def behind(make, estimator):
    """A preparation and a model as one pipeline."""
    return Pipeline([("prepare", make()), ("model", estimator)])


def last(estimator, **settings):
    """A model as the last step."""
    return partial(behind_settings, estimator, settings)


def behind_settings(estimator, settings, make):
    """A fresh model behind a preparation."""
    return behind(make, estimator(**settings))


SMALL = {"max_leaf_nodes": 6, "random_state": 0}
FOREST = {**SMALL, "n_estimators": 3, "max_features": 0.8}
HIST = {
    "max_iter": 3,
    "max_leaf_nodes": 5,
    "min_samples_leaf": 2,
    "early_stopping": False,
    "random_state": 0,
}
BOOST = {"n_estimators": 3, "max_depth": 2, "random_state": 0}
hist_kind = {"missing": True, "sparse": False, "frames": True}


def linear(build, f=predict, kind="number", **settings):
    """A model that is linear in what it sees."""
    return Model(build, f, kind, reads="additive", **settings)


def tree():
    """One small tree."""
    return DecisionTreeRegressor(**SMALL)


def voting(make):
    """A weighted mean of two pipelines."""
    forest = RandomForestRegressor(**FOREST)
    pipelines = [("a", behind(make, forest)), ("b", behind(make, tree()))]
    return VotingRegressor(pipelines, weights=[1, 2.5])


def soft_voting(make):
    """A mean of probabilities of two pipelines."""
    forest, small = RandomForestClassifier(**FOREST), DecisionTreeClassifier(**SMALL)
    pipelines = [("a", behind(make, forest)), ("b", behind(make, small))]
    return VotingClassifier(pipelines, voting="soft")


def stacking(make):
    """A weighted sum of trees, behind a preparation."""
    trees = [("a", tree()), ("b", ExtraTreesRegressor(**FOREST))]
    return behind(make, StackingRegressor(trees, final_estimator=Ridge(), cv=2))


def stacked_pipelines(make):
    """A weighted sum of pipelines."""
    pipelines = [("a", behind(make, tree())), ("b", behind(make, RandomForestRegressor(**FOREST)))]
    return StackingRegressor(pipelines, final_estimator=Ridge(), cv=2)


def search(make):
    """A search around the pipeline."""
    return GridSearchCV(behind(make, tree()), {"model__min_samples_leaf": [1, 3]}, cv=2)


def calibrated(make):
    """Calibrated probabilities."""
    return CalibratedClassifierCV(behind(make, DecisionTreeClassifier(**SMALL)), cv=2)


def scaled_target(estimator, make):
    """A pipeline whose target is scaled: an affine function of its pieces."""
    return TransformedTargetRegressor(behind(make, estimator), transformer=StandardScaler())


def scaled_target_inside(make):
    """The same as the last step."""
    return behind(make, TransformedTargetRegressor(tree(), transformer=MinMaxScaler((1, 3))))


def log_target(make):
    """A pipeline on the log scale of its target: no sum of its pieces."""
    return TransformedTargetRegressor(behind(make, tree()), func=np.log, inverse_func=np.exp)


MODELS = {
    "forest": Model(last(RandomForestRegressor, **FOREST), predict, missing=True),
    "hist": Model(last(HistGradientBoostingRegressor, **HIST), predict, **hist_kind),
    "hist binary": Model(last(HistGradientBoostingClassifier, **HIST), margin, 2, **hist_kind),
    "hist multiclass": Model(last(HistGradientBoostingClassifier, **HIST), margin, 3, **hist_kind),
    "hist poisson": Model(
        last(HistGradientBoostingRegressor, **HIST, loss="poisson"),
        log_predict,
        "positive",
        **hist_kind,
    ),
    "boosting": Model(last(GradientBoostingRegressor, **BOOST), predict),
    "boosting binary": Model(last(GradientBoostingClassifier, **BOOST), margin, 2),
    "tree binary": Model(last(DecisionTreeClassifier, **SMALL), proba, 2, missing=True),
    "tree multiclass": Model(last(DecisionTreeClassifier, **SMALL), proba, 3, missing=True),
    "extra trees": Model(last(ExtraTreesRegressor, **FOREST), predict, missing=True),
    "extra trees binary": Model(last(ExtraTreesClassifier, **FOREST), proba, 2, missing=True),
    "linear": linear(last(LinearRegression)),
    "ridge": linear(last(Ridge)),
    "lasso": linear(last(Lasso, alpha=0.01, max_iter=20_000, tol=1e-3)),
    "elastic net": linear(last(ElasticNet, alpha=0.01, max_iter=20_000, tol=1e-3)),
    "logistic": linear(last(LogisticRegression, max_iter=3000), margin, 2),
    "logistic multiclass": linear(last(LogisticRegression, max_iter=3000), margin, 3),
    "svc": linear(last(LinearSVC, C=0.1, max_iter=100_000), margin, 2),
    "svr": linear(last(LinearSVR, C=0.1, max_iter=100_000)),
    "sgd": linear(last(SGDRegressor, random_state=0, max_iter=20_000)),
    "poisson": linear(last(PoissonRegressor, max_iter=1000), log_predict, "positive"),
    "gamma": linear(last(GammaRegressor, max_iter=1000), log_predict, "positive"),
    "voting": Model(voting, predict, missing=True),
    "soft voting": Model(soft_voting, proba, 2, missing=True),
    "stacking": Model(stacking, predict, missing=True),
    "stacked pipelines": Model(stacked_pipelines, predict, missing=True),
    "search": Model(search, predict, missing=True),
    "frozen": Model(last(RandomForestRegressor, **FOREST), predict, missing=True),
    "calibrated": Model(calibrated, proba, 2, reads="linked", missing=True),
    "log target": Model(log_target, predict, "positive", reads="linked", missing=True),
    "scaled target": Model(partial(scaled_target, tree()), predict, missing=True),
    "scaled target inside": Model(scaled_target_inside, predict, missing=True),
    "scaled target, linear": linear(partial(scaled_target, Ridge())),
    "targets": Model(
        lambda make: behind(make, MultiOutputRegressor(tree())), predict, missing=True, n_targets=2
    ),
    "targets of pipelines": Model(
        lambda make: MultiOutputRegressor(behind(make, tree())), predict, missing=True, n_targets=2
    ),
    "targets, linear": linear(
        lambda make: behind(make, MultiOutputRegressor(Ridge())), n_targets=2
    ),
    "one against the rest": linear(
        lambda make: behind(make, OneVsRestClassifier(LogisticRegression(max_iter=3000))),
        margin,
        3,
        settings={"output": "raw"},
    ),
    "one against the rest, trees": Model(
        lambda make: behind(make, OneVsRestClassifier(GradientBoostingClassifier(**BOOST))),
        margin,
        3,
        settings={"output": "raw"},
    ),
}


# -- which pairs ---------------------------------------------------------------------------------


def fits(preparation, model):
    """Whether scikit-learn can fit this pair."""
    first, second = PREPARATIONS[preparation], MODELS[model]
    return (
        second.kind in first.kinds
        and (second.missing or not first.missing)
        and (second.sparse or not first.sparse)
        and (second.frames or preparation != "frame")
        and (second.n_targets == 1 or preparation != "target")
    )


def pairs():
    """Every preparation with a tree and a linear model, every model behind mixed data."""
    listed = [(p, m) for p in PREPARATIONS for m in ("forest", "ridge", "hist") if fits(p, m)]
    # HistGradientBoosting where a forest says nothing new: missing values and levels
    listed = [
        (p, m)
        for p, m in listed
        if m != "hist" or PREPARATIONS[p].missing or p in ("frame", "mixed", "imputer", "quantile")
    ]
    listed += [("mixed", m) for m in MODELS]
    listed += [("frame", m) for m in MODELS if MODELS[m].frames]
    listed += [("affine", m) for m in ("boosting", "logistic", "svc", "extra trees")]
    listed += [("target", "tree multiclass"), ("target", "logistic multiclass")]
    return [pair for pair in dict.fromkeys(listed) if fits(*pair)]


CASES = pairs()


# -- rows that are hard --------------------------------------------------------------------------


def edges_of(rng, f, X, names):
    """For columns of floats some neighbouring numbers between which f jumps, found from f alone.

    Each round cuts every interval into 64 and keeps the first part in which f changes.
    """
    spots = []  # column, row that the other columns come from, low, high
    for k in (k for k, name in enumerate(names) if name in FLOATS):
        grid = columns(X)[k]
        grid = np.unique(grid[np.isfinite(grid)])
        row = int(rng.integers(len(X)))
        y = at_values(f, X, [(k, row, grid)])[0]
        jumps = np.flatnonzero((y[1:] != y[:-1]).any(axis=1))
        for i in rng.permutation(jumps)[:3]:
            spots.append((k, row, grid[i], grid[i + 1]))
    while any(np.nextafter(low, high) < high for _, _, low, high in spots):
        asked = [(k, row, np.linspace(low, high, 65)) for k, row, low, high in spots]
        for place, y in enumerate(at_values(f, X, asked)):
            k, row, points = asked[place]
            i = np.flatnonzero((y[1:] != y[:-1]).any(axis=1))[0]
            spots[place] = (k, row, points[i], points[i + 1])
    found = {}
    for k, _, low, high in spots:
        found.setdefault(names[k], []).extend([float(low), float(high)])
    return found


def at_values(f, X, asked):
    """f with one column of one row set to some points, a list of (points, outputs)."""
    rows = np.concatenate([np.full(len(points), row) for _, row, points in asked])
    values = [take(column, rows) for column in columns(X)]
    ends = np.cumsum([len(points) for _, _, points in asked])
    for (k, _, points), end in zip(asked, ends, strict=True):
        values[k][end - len(points) : end] = points
    return np.split(f(table(X, values)), ends[:-1])


def hard_rows(rng, text, edges, n):
    """Fresh rows with floats moved to where f jumps, beside it or far away."""
    values = draw(rng, text, n)
    for name in FLOATS:
        for r in np.flatnonzero(rng.random(n) < 0.5) if name in values else ():
            near = edges.get(name, [])
            beside = [np.nextafter(e, end) for e in near for end in (-np.inf, np.inf)]
            values[name][r] = rng.choice([*near * 3, *beside, *FAR[name]])
    return spoilt(rng, values, text, unseen=True)


def raw_breaks(preparation, estimator, names):
    """Raw places where f jumps: thresholds behind an affine scaler, mapped back."""
    found = [[] for _ in names]
    if not preparation.affine or not isinstance(estimator, Pipeline):
        return None
    is_linear = hasattr(estimator[-1], "coef_")
    if not is_linear and not has_trees(estimator[-1]):  # a vote of both has members of either kind
        return None
    scaler = estimator[0]
    if isinstance(scaler, ColumnTransformer):
        scaler = scaler.named_transformers_["part0"][-1]
    if getattr(scaler, "clip", False):
        for k in range(scaler.n_features_in_):
            found[k] += [scaler.data_min_[k], scaler.data_max_[k]]
    if not is_linear:
        for column, _, edge in splits(estimator[-1]):
            if column < scaler.n_features_in_:
                point = np.full((1, scaler.n_features_in_), edge)
                # x = t · scale + mean, without the bounds of a clipped range
                found[column].append(float(scaler.inverse_transform(point)[0, column]))
    return [sorted(places) for places in found]


# -- cases ---------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def make_case(preparation, model, container="pandas", seed=0):
    """One case, the same for the same arguments."""
    first, second = PREPARATIONS[preparation], MODELS[model]
    where = [sorted(PREPARATIONS).index(preparation), sorted(MODELS).index(model), seed]
    rng = np.random.default_rng(where)
    names = names_of(first.text)
    values = spoilt(rng, draw(rng, first.text, N_TRAIN), first.text, unseen=False)
    y = as_target(target(rng, values, second.n_targets), second.kind)
    train = contained(values, container, rng)
    by_name = container in ("pandas", "nullable", "polars")
    make = first.make if by_name else lambda: by_position(first.make(), names)
    estimator = second.build(make).fit(train, y)
    if model == "frozen":
        estimator = FrozenEstimator(estimator)
    f = partial(second.f, estimator)
    reads = second.reads if first.step is None else "black box"
    edges = edges_of(rng, on_numbered(f, train), numbered(train), names) if reads == "boxes" else {}
    sizes = (N_BACKGROUND if seed % 4 < 3 else 1, N_EXPLAINED)

    def draw_rows(rng, n):
        return contained(hard_rows(rng, first.text, edges, n), container, rng)

    rows = [draw_rows(rng, n) for n in sizes]
    return PipelineCase(
        estimator,
        f,
        *rows,
        reads=reads,
        settings=second.settings,
        breaks=raw_breaks(first, estimator, names),
        edges=edges,
        open=first.open if reads == "boxes" else (),
        step=first.step,
        train=train,
        y=y,
        draw=draw_rows,
    )

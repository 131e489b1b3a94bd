"""Random small trees, forests and boosting of scikit-learn, with data that is hard for them."""

from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from tests.helpers.case import Case, margin, predict, proba, seed_of
from tests.oracle import breaks, columns, declared_levels, has_trees, splits, table

N_TRAIN = 60
LEVELS = np.array(["red", "green", "blue", "grey"])
RARE = "never seen in training"

# -- training data -------------------------------------------------------------------------------


def numbers(rng, missing):
    """Columns of several natures: normal, coarse (many ties), integer, constant, one-or-missing."""
    natures = ["normal", "coarse", "integer", "constant"] + ["one or missing"] * missing
    chosen = ["normal", *rng.choice(natures, size=rng.integers(0, 4))]
    if rng.random() < 0.2:
        missing, chosen = False, ["integer"] * len(chosen)
    out = []
    for nature in rng.permutation(chosen):
        column = {
            "normal": lambda: rng.normal(size=N_TRAIN),
            "coarse": lambda: np.round(2 * rng.normal(size=N_TRAIN)) / 2,
            "integer": lambda: rng.integers(-2, 4, size=N_TRAIN).astype(float),
            "constant": lambda: np.full(N_TRAIN, 1.5),
            "one or missing": lambda: np.where(rng.random(N_TRAIN) < 0.5, np.nan, 1.0),
        }[nature]()
        if missing and nature != "constant" and rng.random() < 0.7:
            column[rng.random(N_TRAIN) < 0.15] = np.nan
        out.append(column)
    return out


def target(rng, values):
    """A noisy number that depends on every column, on which entries miss, and on pairs."""
    effects = []
    for column in values:
        if column.dtype != np.float64:
            column = np.searchsorted(np.sort(LEVELS), column).astype(float)
        present = np.where(np.isfinite(column), column, 0.0)
        effects.append(rng.normal() * np.sin(2 * present) + present + 2.0 * np.isnan(column))
    pairs = sum(a * b for a, b in pairwise(effects))
    return sum(effects) + pairs + 0.3 * rng.normal(size=N_TRAIN)


def as_classes(y, n_classes):
    """A number cut into classes at quantiles; labels are strings."""
    ranks = np.argsort(np.argsort(y)) * n_classes // len(y)
    return np.array(["no", "yes", "perhaps", "later"])[ranks]


# -- containers ----------------------------------------------------------------------------------


def contained(values, kind):
    """Columns as an array or a frame."""
    if kind.startswith("float") or kind.startswith("int"):
        return np.column_stack(values).astype(kind)
    if kind == "object":
        return np.column_stack([v.astype(object) for v in values])
    names = [f"column {k}" for k in range(len(values))]
    if kind == "polars":
        return pl.DataFrame({n: _polars_series(v) for n, v in zip(names, values, strict=True)})
    frame = pd.DataFrame({n: _pandas_series(v) for n, v in zip(names, values, strict=True)})
    return frame.astype("Float64") if kind == "nullable" else frame


def _integral(values):
    if values.dtype != np.float64 or not np.isfinite(values).all():
        return False
    return bool(np.all(values == np.rint(values)))


def _pandas_series(values):
    if values.dtype == np.float64:
        return pd.Series(values.astype(np.int64) if _integral(values) else values)
    return pd.Series(pd.Categorical(values, categories=[*LEVELS, RARE]))


def _polars_series(values):
    if values.dtype == np.float64:
        return pl.Series(values)
    return pl.Series(values.tolist(), dtype=pl.Enum([*LEVELS, RARE]))


def any_container(rng, values):
    """A container that can hold these numbers without changing them much."""
    kinds = ["float64", "float64", "float32", "pandas", "pandas", "polars"]
    if len(values) > 1:  # scikit-learn 1.9 cannot write into pandas 3's single nullable column
        kinds.append("nullable")
    if all(_integral(v) for v in values):
        kinds += ["int64"] * 3
    return str(rng.choice(kinds))


# -- rows that are hard --------------------------------------------------------------------------


def beside(threshold):
    """A threshold, its neighbours in float64 and in float32, and those casts' rounding points."""
    single = np.float32(threshold)
    steps = [np.nextafter(single, np.float32(end)) for end in (-np.inf, np.inf)]
    near = [np.nextafter(threshold, end) for end in (-np.inf, np.inf)]
    halves = [(float(single) + float(step)) / 2 for step in steps]
    halves += [np.nextafter(h, end) for h in halves for end in (-np.inf, np.inf)]
    return np.array([threshold, *near, float(single), *map(float, steps), *halves])


def hard_rows(rng, model, values, n, extra=(), kind="float64"):
    """Training rows with many entries moved to thresholds, beside them, far away or to `extra`."""
    picked = rng.integers(0, len(values[0]), size=n)
    if n > 2 and rng.random() < 0.5:
        picked[1] = picked[0]  # duplicated rows
    places = [[] for _ in values]
    for column, threshold, _ in splits(model) if has_trees(model) else ():
        places[column].append(threshold)
    out = []
    for column, thresholds in zip(values, places, strict=True):
        column = column[picked]
        for r in np.flatnonzero(rng.random(n) < 0.5):
            if column.dtype != np.float64:
                column[r] = rng.choice([*LEVELS, *extra])
                continue
            pool = [rng.choice(beside(rng.choice(thresholds)))] * 3 if thresholds else []
            column[r] = rng.choice([*pool, 7.25, -9.5, *extra])
            if kind == "int64":
                column[r] = np.rint(column[r])
        out.append(column)
    return out


def finish(rng, model, f, values, kind, extra=(), infinite=False):
    """The case of a fitted model: background and rows to explain."""
    if kind == "int64":
        extra, infinite = (), False
    wild = [np.inf, -np.inf] if infinite else []
    background_wild = wild if rng.random() < 0.5 else []
    n, m = (int(rng.choice([1, 3, 4, 5, 5])) for _ in range(2))
    background = hard_rows(rng, model, values, n, [*extra, *background_wild], kind)
    for known, column in zip(values, background, strict=True):  # every column has a finite entry
        present = known[~pd.isna(known)]
        if column.dtype == np.float64 and not np.isfinite(column).any():
            column[-1] = present[np.isfinite(present)][0]
        if column.dtype != np.float64 and pd.isna(column).all():
            column[-1] = present[0]
    explained = hard_rows(rng, model, values, m, [*extra, *wild], kind)
    background, explained = contained(background, kind), contained(explained, kind)
    finite = not any(np.isinf(c).any() for c in columns(background) if c.dtype == np.float64)
    levels = {int(k) for k in declared_levels(model)} if has_trees(model) else set()

    def draw(rng, n):
        return contained(hard_rows(rng, model, values, n, [*extra, *wild], kind), kind)

    edges = breaks(model) if has_trees(model) else None
    return Case(model, partial(f, model), background, explained, levels, finite, draw, edges)


# -- builders ------------------------------------------------------------------------------------


def plain(make, f, rng, classes=0, missing=True, infinite=False, targets=1, positive=False):
    """A model of numbers only."""
    values = numbers(rng, missing)
    kind = any_container(rng, values)
    ys = [target(rng, values) for _ in range(targets)]
    if classes:
        ys = [as_classes(y, classes + (t > 0)) for t, y in enumerate(ys)]
    if positive:
        ys = [np.exp(0.2 * y) for y in ys]
    y = np.column_stack(ys) if targets > 1 else ys[0]
    model = make(rng).fit(contained(values, kind), y)
    return finish(rng, model, f, values, kind, [np.nan] * missing, infinite)


def tree_settings(rng):
    """Small trees."""
    return {"max_leaf_nodes": int(rng.integers(2, 9)), "random_state": seed_of(rng)}


def forest_settings(rng):
    """Few small trees."""
    return {"n_estimators": 3, "max_features": 0.7, **tree_settings(rng)}


def boosting_settings(rng):
    """Few small steps."""
    return {"n_estimators": 3, "max_depth": 2, "random_state": seed_of(rng)}


def hist_settings(rng):
    """Few small steps on few rows."""
    return {
        "max_iter": int(rng.integers(1, 5)),
        "max_leaf_nodes": int(rng.integers(2, 6)),
        "min_samples_leaf": 2,
        "early_stopping": False,
        "random_state": seed_of(rng),
    }


def of(kind, settings, **fixed):
    """``rng -> unfitted estimator`` of one class."""
    return lambda rng: kind(**{**settings(rng), **fixed})


def hist_monotonic(rng):
    """Monotonic constraints on two columns."""
    values = [rng.normal(size=N_TRAIN), np.round(rng.normal(size=N_TRAIN), 1)]
    values[1][rng.random(N_TRAIN) < 0.2] = np.nan
    y = values[0] ** 3 + np.nan_to_num(values[1], nan=2.0) + values[0] * np.isnan(values[1])
    model = HistGradientBoostingRegressor(**hist_settings(rng), monotonic_cst=[1, -1])
    model.fit(contained(values, "float64"), y)
    return finish(rng, model, predict, values, "float64", [np.nan], infinite=True)


def hist_categories(rng, kind="pandas", classes=0, wrap=None):
    """Native categories in a frame: strings as category dtype, missing and unseen levels."""
    words = rng.choice(LEVELS[: int(rng.integers(2, 5))], size=N_TRAIN).astype(object)
    values = [rng.normal(size=N_TRAIN), words, rng.integers(0, 3, N_TRAIN).astype(float)]
    y = target(rng, values)
    if rng.random() < 0.7:
        words[rng.random(N_TRAIN) < 0.2] = None
        y = y + 2.0 * pd.isna(words)
    shuffled = rng.permutation(3)
    values = [values[k] for k in shuffled]
    settings = hist_settings(rng)
    if classes:
        y = as_classes(y, classes)
        model, f = HistGradientBoostingClassifier(**settings), margin
    else:
        model, f = HistGradientBoostingRegressor(**settings), predict
    if kind == "object":
        model.set_params(categorical_features=[int(np.flatnonzero(shuffled == 1)[0])])
    model = model if wrap is None else wrap(model)
    model = model.fit(contained(values, kind), y)
    case = finish(rng, model, f, values, kind)
    return spoiled(case, rng, lambda rng, X: with_rare_levels(rng, X, [None, RARE]))


def spoiled(case, rng, spoil):
    """A case whose rows are changed, also those drawn later."""
    case.background, case.X = spoil(rng, case.background), spoil(rng, case.X)
    draw = case.draw
    case.draw = lambda rng, n: spoil(rng, draw(rng, n))
    return case


def with_rare_levels(rng, X, extra):
    """Some strings of a frame replaced by missing and by a level that training never saw."""
    kept = columns(X)
    for k, column in enumerate(kept):
        if column.dtype == np.float64 or (column.dtype == object and column[0] != str(column[0])):
            continue
        words = np.array([None if pd.isna(v) else v for v in column], dtype=object)
        words[0] = words[0] or LEVELS[0]
        for r in range(1, len(words)):
            if rng.random() < 0.4:
                words[r] = extra[rng.integers(len(extra))]
        like = contained([words], "polars" if isinstance(X, pl.DataFrame) else "pandas")
        kept[k] = words if isinstance(X, np.ndarray) else columns(like)[0]
    return table(X, kept)


def hist_strings(rng):
    """A plain string column that ``categorical_features`` names."""
    words = rng.choice(LEVELS, size=N_TRAIN).astype(object)
    values = [rng.normal(size=N_TRAIN), words]
    y = target(rng, values)
    words[:9] = None
    frame = contained(values, "pandas").astype({"column 1": "str"})
    model = HistGradientBoostingRegressor(**hist_settings(rng), categorical_features=["column 1"])
    model.fit(frame, y)
    case = finish(rng, model, predict, values, "pandas", [])
    return spoiled(
        case,
        rng,
        lambda rng, X: with_rare_levels(rng, X, [None, RARE]).astype({"column 1": "str"}),
    )


def hist_codes(rng, classes=0, wrap=None):
    """Integer codes in an array, declared by ``categorical_features``; unseen codes are missing."""
    codes = rng.integers(0, 6, size=N_TRAIN).astype(float)
    values = [rng.normal(size=N_TRAIN), codes, rng.integers(0, 3, size=N_TRAIN).astype(float)]
    y = target(rng, values)
    kind = str(rng.choice(["float64", "float32"]))
    if rng.random() < 0.5:
        codes[rng.random(N_TRAIN) < 0.2] = np.nan
    settings = {**hist_settings(rng), "categorical_features": [1, 2]}
    if classes:
        y = as_classes(y, classes)
        model, f = HistGradientBoostingClassifier(**settings), margin
    else:
        model, f = HistGradientBoostingRegressor(**settings), predict
    model = model if wrap is None else wrap(model)
    model.fit(contained(values, kind), y)
    return spoiled(finish(rng, model, f, values, kind), rng, with_rare_codes)


def with_rare_codes(rng, X):
    """Codes of an array: seen, unseen and missing."""
    X[0, 1] = np.nan_to_num(X[0, 1])
    for r in range(1, len(X)):
        if rng.random() < 0.6:
            X[r, 1] = rng.choice([0, 3, 5, 9, np.nan])
    X[np.isin(X[:, 2], [0, 1, 2, 9], invert=True), 2] = 1
    return X


def hist_missing_or_not(rng):
    """One value or missing: the split is "missing or not", with a threshold at +inf."""
    values = [np.where(rng.random(N_TRAIN) < 0.5, np.nan, 2.0), rng.normal(size=N_TRAIN)]
    y = 3.0 * np.isnan(values[0]) + values[1] * (1 + np.isnan(values[0]))
    settings = {**hist_settings(rng), "max_leaf_nodes": 5}
    model = HistGradientBoostingRegressor(**settings).fit(contained(values, "float64"), y)
    return finish(rng, model, predict, values, "float64", [np.nan], infinite=True)


def forest_missing_or_not(rng):
    """The same for scikit-learn's own trees."""
    values = [np.where(rng.random(N_TRAIN) < 0.5, np.nan, 2.0), rng.normal(size=N_TRAIN)]
    y = 3.0 * np.isnan(values[0]) + values[1] * (1 + np.isnan(values[0]))
    settings = {**forest_settings(rng), "max_features": 1.0}
    model = RandomForestRegressor(**settings).fit(contained(values, "pandas"), y)
    return finish(rng, model, predict, values, "pandas", [np.nan])


def frame_with_booleans(rng):
    """A forest on a pandas frame with a boolean column: uniform laws take its levels."""
    values = [rng.normal(size=N_TRAIN), rng.integers(0, 2, size=N_TRAIN).astype(float)]
    y = target(rng, values)
    frame = contained(values, "pandas").astype({"column 1": bool})
    model = RandomForestClassifier(**forest_settings(rng)).fit(frame, as_classes(y, 3))
    case = finish(rng, model, proba, values, "pandas")
    return spoiled(case, rng, lambda rng, X: X.assign(**{"column 1": X["column 1"] > 0.5}))


def subspace(kind, base, f, rng, classes=0):
    """Bagging whose members see some of the columns, perhaps one of them twice."""
    values = [*numbers(rng, True)[:3], rng.normal(size=N_TRAIN)]
    y = target(rng, values)
    y = as_classes(y, classes) if classes else y
    drawn = {"bootstrap_features": bool(rng.integers(2)), "max_features": 0.7, "max_samples": 0.8}
    model = kind(base(rng), n_estimators=3, random_state=seed_of(rng), **drawn)
    container = any_container(rng, values)
    model.fit(contained(values, container), y)
    return finish(rng, model, f, values, container, [np.nan])


def bagging_without_a_class(rng):
    """Bootstraps that miss a rare class: the members' probabilities have fewer columns."""
    values = numbers(rng, False)
    y = as_classes(target(rng, values), 2)
    y[:1] = "perhaps"
    model = BaggingClassifier(
        DecisionTreeClassifier(**tree_settings(rng)), n_estimators=4, random_state=seed_of(rng)
    ).fit(contained(values, "float64"), y)
    return finish(rng, model, proba, values, "float64")


def voting_regressor(rng):
    """A weighted mean of unlike models: float32 and float64 thresholds meet in one column."""
    parts = [
        ("tree", DecisionTreeRegressor(**tree_settings(rng))),
        ("hist", HistGradientBoostingRegressor(**hist_settings(rng))),
        ("bag", BaggingRegressor(ExtraTreeRegressor(max_leaf_nodes=4), 2, random_state=1)),
        ("gone", "drop"),
    ]
    weights = None if rng.random() < 0.3 else [1, 2.5, 0.5, 7]
    return VotingRegressor(parts, weights=weights)


def voting_soft(rng):
    """A weighted mean of probabilities."""
    parts = [
        ("forest", RandomForestClassifier(**forest_settings(rng))),
        ("extra", ExtraTreesClassifier(**forest_settings(rng))),
        ("tree", DecisionTreeClassifier(**tree_settings(rng))),
    ]
    return VotingClassifier(parts, voting="soft", weights=[3, 1, 0.5])


def bagged(model):
    """Bagging of one kind of member."""
    return BaggingRegressor(model, n_estimators=2, random_state=3)

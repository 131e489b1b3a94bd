"""CatBoost: regressors, classifiers, rankers and plain models.

A row goes right at a split if float32(x) > border or, at a split on a category, if it has that
category; missing numbers go to the side of the column's `nan_mode`, left where training saw none.
A model keeps only hashes of its categories, so the library itself is asked which one a raw value
is: a second model, the probe, has one tree per category, which returns its number. All sums are in
float64. Learned statistics of categories, texts and embeddings are not boxes.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.cells.levels import UnnamedLevel
from skattr.pieces.links import BINARY, EXP, LOGISTIC, SOFTMAX, Link
from skattr.pieces.parts import Trees
from skattr.pieces.readers.catboost.front import CATEGORY, CatFront, library, refusals
from skattr.pieces.readers.catboost.nodes import nested_nodes, symmetric_nodes
from skattr.pieces.readers.sklearn_trees import last_left

NUMBER, STATISTIC = "FloatFeature", "OnlineCtr"  # types of splits, besides CATEGORY
MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}
LINKS: dict[str, Link] = {
    "Logloss": BINARY,
    "CrossEntropy": BINARY,
    "MultiClass": SOFTMAX,
    "MultiClassOneVsAll": LOGISTIC,
    "MultiLogloss": LOGISTIC,
    "MultiCrossEntropy": LOGISTIC,
}
LARGEST = float(np.finfo(np.float32).max)
ROUNDS_TO_LARGEST = np.nextafter(LARGEST + 2.0**103, 0.0)  # the largest float64 that does


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = _kinds(estimator)
    if "CatBoost" not in kinds:
        return ()
    if "CatBoostClassifier" in kinds:
        return ("raw",)
    # only some regressors have a link: plain models and rankers predict the sum of their trees
    if "CatBoostRegressor" in kinds and estimator._get_default_prediction_type() != "RawFormulaVal":
        return ("raw",)
    return ("predict", "raw")


def _kinds(estimator: Any) -> set[str]:
    """Return the names of CatBoost's classes that an estimator belongs to."""
    return {
        kind.__name__
        for kind in type(estimator).__mro__
        if kind.__module__.partition(".")[0] == "catboost"
    }


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link of the loss."""
    kinds = _kinds(estimator)
    classifies = "CatBoostClassifier" in kinds
    if "CatBoost" not in kinds or scale != ("proba" if classifies else "predict"):
        return None
    if not classifies:
        kind = estimator._get_default_prediction_type()
        if kind != "Exponent":
            raise Unreadable(f"the link to CatBoost's prediction type {kind!r} is not known here")
        return "raw", EXP
    loss = str(estimator._object._get_loss_function_name()).partition(":")[0]
    if loss not in LINKS:
        raise Unreadable(f"the link of CatBoost's loss {loss!r} is not known here")
    return "raw", LINKS[loss]


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the sum of the trees, (n,) or (n, k)."""
    with refusals(X):
        return library().CatBoost.predict(estimator, X, prediction_type="RawFormulaVal")


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read all trees that the model has kept."""
    catboost = library()
    exported = _export(estimator)
    try:
        return [_read(estimator, exported)]
    except (KeyError, TypeError, IndexError, ValueError, catboost.CatBoostError) as error:
        raise Unreadable(
            f"the JSON format of catboost {catboost.__version__} is not known here ({error!r})"
        ) from error


def _export(estimator: Any) -> dict:
    """Return the model as CatBoost's JSON, which holds borders and leaves to the last bit."""
    catboost = library()
    for kind in ("text", "embedding"):
        features: list = getattr(estimator, f"get_{kind}_feature_indices", list)()
        if features:
            names = [estimator.feature_names_[k] for k in features]
            raise Unreadable(f"catboost's {kind} features {names} are not boxes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        try:
            estimator.save_model(str(path), format="json")
        except catboost.CatBoostError as error:  # such as borders at infinity
            raise Unreadable(
                f"catboost {catboost.__version__} cannot write the model as JSON: {error}"
            ) from error
        return json.loads(path.read_bytes())


def _read(estimator: Any, exported: dict) -> Trees:
    trees = exported.get("oblivious_trees")
    nodes = nested_nodes(exported["trees"]) if trees is None else symmetric_nodes(trees)
    info = exported["features_info"]
    _check_types(nodes.splits, info)
    scale, bias = exported["scale_and_bias"]
    level = np.array([split["split_type"] == CATEGORY for split in nodes.splits], bool)
    feature, value = _features_and_values(nodes.splits)
    numeric, categorical = np.unique(feature[~level]), np.unique(feature[level])
    hashes = [np.unique(value[level & (feature == c)]).astype(int) for c in categorical]
    front = CatFront(estimator, info, numeric, categorical, hashes)

    column = np.searchsorted(numeric, feature)
    edge = np.full(len(value), np.nan)
    edge[~level] = np.where(value == LARGEST, ROUNDS_TO_LARGEST, last_left(value))[~level]
    treatment = {
        f["feature_index"]: f["nan_value_treatment"] for f in info.get("float_features", [])
    }
    missing_left = np.ones(len(value), np.uint8)  # an unknown category is not equal
    missing_left[~level] = [MISSING_LEFT[treatment[f]] for f in feature[~level]]
    members = np.full(len(value), -1)
    for c, (f, known) in enumerate(zip(categorical, hashes, strict=True), start=len(numeric)):
        at = level & (feature == f)
        column[at] = c
        members[at] = np.searchsorted(known, value[at])
    k = nodes.values.shape[1]
    part = Trees(
        front=front,
        roots=nodes.roots,
        outputs=np.zeros(len(nodes.roots), np.int64),
        column=_at_nodes(column, nodes.split, -1),
        left=nodes.left,
        right=nodes.right,
        edge=_at_nodes(edge, nodes.split, np.nan),
        missing_left=_at_nodes(missing_left, nodes.split, 0),
        values=nodes.values * scale,
        constant=np.zeros(k) + (bias or 0.0),
        depth=nodes.depth,
    )
    if hashes:
        part.members = _at_nodes(members, nodes.split, -1)
        # set l is all levels but l, for every input
        part.sets = 1 - np.eye(max(map(len, hashes)), dtype=np.uint8)
        for c, known in enumerate(hashes, start=len(numeric)):
            part.levels[c] = [UnnamedLevel(h) for h in known.tolist()]
            part.known[c] = np.ones(len(known), bool)
    return part


def _check_types(splits: list[dict], info: dict) -> None:
    """Refuse splits on anything but one raw column."""
    types = {split["split_type"] for split in splits}
    if STATISTIC in types:
        name = {
            f["feature_index"]: f["feature_id"] or f["flat_feature_index"]
            for f in info["categorical_features"]
        }
        used = {
            element["cat_feature_index"]
            for statistic in info["ctrs"]
            for element in statistic["elements"]
            if "cat_feature_index" in element
        }
        raise Unreadable(
            f"catboost's learned statistics of the categories of {[name[c] for c in sorted(used)]} "
            "are not boxes; one_hot_max_size of at least their number of categories avoids them"
        )
    if unknown := types - {NUMBER, CATEGORY}:
        version = library().__version__
        raise Unreadable(f"the splits {sorted(unknown)} of catboost {version} are not known here")


def _features_and_values(splits: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Return for each split the feature (counted within its type), and the border or the hash."""
    keys = {NUMBER: ("float_feature_index", "border"), CATEGORY: ("cat_feature_index", "value")}
    feature = [split[keys[split["split_type"]][0]] for split in splits]
    value = [split[keys[split["split_type"]][1]] for split in splits]
    return np.array(feature, np.int64), np.array(value, np.float64)


def _at_nodes(by_split: np.ndarray, split: np.ndarray, at_leaves: Any) -> np.ndarray:
    """Return an array by split as one by node."""
    return np.append(by_split, np.array(at_leaves, by_split.dtype))[split]

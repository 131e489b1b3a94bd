"""CatBoost: regressors, classifiers, rankers and plain models.

A row goes right at a split if float32(x) > border or, at a split on a category, if it has that
category; missing numbers go to the side of the column's `nan_mode`, left where training saw none.
A model keeps only hashes of its categories, so the library itself is asked which one a raw value
is: a second model, the probe, has one tree per category, which returns its number. All sums are in
float64. Learned statistics of categories, texts and embeddings are not boxes.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr._inputs import frames
from skattr._typing import override
from skattr.pieces.base import Unreadable
from skattr.pieces.cells.levels import UnnamedLevel
from skattr.pieces.parts import Front, Trees
from skattr.pieces.readers.sklearn_trees import last_left

NUMBER, CATEGORY, STATISTIC = "FloatFeature", "OneHotFeature", "OnlineCtr"  # types of splits
MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}
LARGEST = float(np.finfo(np.float32).max)
ROUNDS_TO_LARGEST = np.nextafter(LARGEST + 2.0**103, 0.0)  # the largest float64 that does


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = {
        kind.__name__
        for kind in type(estimator).__mro__
        if kind.__module__.partition(".")[0] == "catboost"
    }
    if "CatBoost" not in kinds:
        return ()
    if "CatBoostClassifier" in kinds:
        return ("raw",)
    # only some regressors have a link: plain models and rankers predict the sum of their trees
    if "CatBoostRegressor" in kinds and estimator._get_default_prediction_type() != "RawFormulaVal":
        return ("raw",)
    return ("predict", "raw")


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return the sum of the trees, (n,) or (n, k)."""
    library = _library()
    with _refusals(X):
        return library.CatBoost.predict(estimator, X, prediction_type="RawFormulaVal")


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read all trees that the model has kept."""
    library = _library()
    exported = _export(estimator)
    try:
        return [_read(estimator, exported)]
    except (KeyError, TypeError, IndexError, ValueError, library.CatBoostError) as error:
        raise Unreadable(
            f"the JSON format of catboost {library.__version__} is not known here ({error!r})"
        ) from error


def _library() -> Any:
    try:
        import catboost
    except ImportError as error:
        raise ImportError("CatBoost models need pip install 'skattr[boosters]'") from error
    return catboost


def _export(estimator: Any) -> dict:
    """Return the model as CatBoost's JSON, which holds borders and leaves to the last bit."""
    library = _library()
    for kind in ("text", "embedding"):
        features: list = getattr(estimator, f"get_{kind}_feature_indices", list)()
        if features:
            names = [estimator.feature_names_[k] for k in features]
            raise Unreadable(f"catboost's {kind} features {names} are not boxes")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        try:
            estimator.save_model(str(path), format="json")
        except library.CatBoostError as error:  # such as borders at infinity
            raise Unreadable(
                f"catboost {library.__version__} cannot write the model as JSON: {error}"
            ) from error
        return json.loads(path.read_bytes())


class Nodes(NamedTuple):
    """The nodes of all trees, and their splits."""

    roots: np.ndarray  # (n_trees,)
    split: np.ndarray  # (n_nodes,) which of the splits, or -1 at a leaf
    left: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,)
    values: np.ndarray  # (n_leaves, k)
    depth: int
    splits: list[dict]


def _symmetric(trees: list[dict]) -> Nodes:
    """Unfold trees that have the same split at all nodes of a level.

    A leaf's number has bit i if split i sends right; with the last split at the root and children
    at 2 i + 1 and 2 i + 2, the leaves come in the order of their numbers.
    """
    depth = np.array([len(tree["splits"]) for tree in trees])
    sizes = 2 ** (depth + 1) - 1
    roots = np.cumsum(sizes) - sizes
    root = np.repeat(roots, sizes)
    number = np.arange(sizes.sum()) - root  # within the tree
    level = np.frexp(number + 1.0)[1] - 1
    leaf = level == np.repeat(depth, sizes)
    left = np.where(leaf, 0, root + 2 * number + 1)
    return Nodes(
        roots,
        np.where(leaf, -1, np.repeat(np.cumsum(depth), sizes) - 1 - level),
        left,
        np.where(leaf, 0, left + 1),
        np.concatenate([tree["leaf_values"] for tree in trees]).reshape(leaf.sum(), -1),
        int(depth.max()),
        [split for tree in trees for split in tree["splits"]],
    )


def _nested(trees: list[dict]) -> Nodes:
    """Flatten nested trees into a table, the left child right after its parent."""
    roots: list[int] = []
    split: list[int] = []
    children: tuple[list, list] = ([], [])
    values: list = []
    splits: list[dict] = []
    deepest = 0
    for tree in trees:
        roots.append(len(split))
        todo: list[tuple] = [(tree, None, 0, 0)]
        while todo:
            node, parent, side, depth = todo.pop()
            number = len(split)
            if parent is not None:
                children[side][parent] = number
            for child in children:
                child.append(0)
            if "split" in node:
                split.append(len(splits))
                splits.append(node["split"])
                todo.append((node["right"], number, 1, depth + 1))
                todo.append((node["left"], number, 0, depth + 1))
            else:
                split.append(-1)
                values.append(node["value"])
                deepest = max(deepest, depth)
    left, right = (np.array(child) for child in children)
    leaves = np.array(values, np.float64).reshape(len(values), -1)
    return Nodes(np.array(roots), np.array(split), left, right, leaves, deepest, splits)


def _read(estimator: Any, exported: dict) -> Trees:
    symmetric = "oblivious_trees" in exported
    nodes = _symmetric(exported["oblivious_trees"]) if symmetric else _nested(exported["trees"])
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
        version = _library().__version__
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


class CatFront(Front):
    """CatBoost's own containers, and a model, the probe, that returns the numbers of categories.

    The inputs are the columns that some split uses, first numbers, then categories.
    """

    takes_missing = True  # as numbers; `inputs` refuses missing categories, as the library does
    takes_infinite = True
    dtype = np.dtype(np.float32)

    def __init__(
        self,
        estimator: Any,
        info: dict,
        numeric: np.ndarray,
        categorical: np.ndarray,
        hashes: list[np.ndarray],
    ) -> None:
        kinds = [info.get("float_features", []), info.get("categorical_features", [])]
        flat = [{f["feature_index"]: f["flat_feature_index"] for f in kind} for kind in kinds]
        self.estimator = estimator
        self.numeric = np.array([flat[0][f] for f in numeric], np.intp)
        self.columns = np.append(self.numeric, [flat[1][f] for f in categorical]).astype(np.intp)
        self.categorical = sorted(flat[1].values())  # also those that no split uses
        # empty for a model that was fitted on an array
        self.names = {f["flat_feature_index"]: f["feature_id"] for kind in kinds for f in kind}
        self.probe = _probe(info, categorical, hashes) if hashes else None

    @override
    def inputs(self, X: Any) -> np.ndarray:
        library = _library()
        self._check(X)
        with _refusals(X):
            pool = library.Pool(X, cat_features=self.categorical)
            levels = self._level_numbers(pool)
            if not len(self.numeric):
                return levels
            if self.categorical:  # a container with categories does not show its numbers
                floats = library.Pool(_columns(X, self.numeric)).get_features()
            else:
                floats = pool.get_features()[:, self.numeric]
            return np.append(floats, levels, axis=1)

    def _level_numbers(self, pool: Any) -> np.ndarray:
        """Return the number of each category, NaN for one that is not known."""
        predict = _library().CatBoost.predict
        if self.probe is None:
            predict(self.estimator, pool, ntree_end=1)  # only for its checks of names and widths
            return np.empty((pool.num_row(), 0), np.float32)
        numbers = predict(self.probe, pool).reshape(pool.num_row(), -1).astype(np.float32)
        return np.where(numbers > 0, numbers - 1, np.float32(np.nan))

    def _check(self, X: Any) -> None:
        """Refuse columns in another order, and missing categories, which may end the process."""
        if not frames.is_frame(X):
            return
        labels = [str(name) for name in frames.labels(X)]
        for k in self.columns:
            name = self.names[k]
            if name and name in labels and labels.index(name) != k:
                raise ValueError(
                    f"column {name!r} is number {labels.index(name)} of X, but number {k} of the "
                    "model: bring the columns into the model's order"
                )
        for k in self.categorical:
            values = frames.column(X, k) if k < len(labels) else pd.Series()
            # checked here, because a polars Categorical with a null ends the process
            missing = values.is_null() if isinstance(values, nw.Series) else values.isna()
            if missing.any():
                raise ValueError(
                    f"column {labels[k]!r} has missing values, which CatBoost does not accept as "
                    "categories; give them a name"
                )


def _probe(info: dict, categorical: np.ndarray, hashes: list[np.ndarray]) -> Any:
    """Return a model with one output per column of categories: 1 + number, 0 if not known.

    It has the features of the model, so that it accepts and refuses the same X.
    """
    width = len(hashes)
    trees: list[dict] = []
    for o, (feature, known) in enumerate(zip(categorical.tolist(), hashes, strict=True)):
        for number, category in enumerate(known.tolist()):
            split = {
                "split_type": CATEGORY,
                "split_index": len(trees),
                "cat_feature_index": feature,
                "value": category,
            }
            leaves = np.zeros((2, width))
            leaves[1, o] = number + 1
            trees.append(
                {"splits": [split], "leaf_values": leaves.ravel().tolist(), "leaf_weights": [0, 0]}
            )
    of_feature = dict(zip(categorical.tolist(), hashes, strict=True))
    features = {
        "float_features": [{**f, "borders": []} for f in info.get("float_features", [])],
        "categorical_features": [
            {**f, "values": np.asarray(of_feature.get(f["feature_index"], [])).tolist()}
            for f in info["categorical_features"]
        ],
    }
    model = {
        "features_info": features,
        "model_info": {},
        "oblivious_trees": trees,
        "scale_and_bias": [1, [0.0] * width],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.json")
        path.write_text(json.dumps(model))
        return _library().CatBoost().load_model(str(path), format="json")


def _columns(X: Any, columns: np.ndarray) -> Any:
    """Return some columns of a frame, an array or a sparse matrix."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, columns]
    if frames.is_frame(X):
        labels = frames.labels(X)
        return frames.reorder(X, [labels[k] for k in columns])
    return (X.tocsr() if hasattr(X, "tocsr") else X)[:, columns]


@contextmanager
def _refusals(X: Any) -> Iterator[None]:
    """Turn CatBoost's errors about X, of many types, into a ValueError that names the column."""
    try:
        yield
    except Exception as error:
        match = re.search(r"feature_idx=(\d+)", str(error))
        name = f"column {frames.labels(X)[int(match[1])]!r}: " if match else ""
        raise ValueError(f"{name}CatBoost refuses X: {error}") from error

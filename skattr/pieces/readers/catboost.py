"""CatBoost: regressors, classifiers, rankers and plain models.

A row goes right at a split if float32(x) > border or, at a split on a category, if it has that
category; missing numbers go to the side of the column's `nan_mode`, left where training saw none.
A model knows its categories by hashes alone, so which one a raw value is, the library is asked: a
second model, the probe, has for each category a tree that answers with its number. All sums are in
float64. Learned statistics of categories, texts and embeddings are no boxes.
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

from skattr import frames
from skattr.pieces.base import Unreadable
from skattr.pieces.boxes import Trees
from skattr.pieces.cells import Nameless
from skattr.pieces.readers.sklearn_trees import last_left

NUMBER, CATEGORY, STATISTIC = "FloatFeature", "OneHotFeature", "OnlineCtr"  # kinds of splits
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
    # only regressors have a link, and only some: plain models and rankers predict what they sum
    if "CatBoostRegressor" in kinds and estimator._get_default_prediction_type() != "RawFormulaVal":
        return ("raw",)
    return ("predict", "raw")


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return what the trees add up to, (n,) or (n, k)."""
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
    """Return the model's own JSON, which holds borders and leaves to the last bit."""
    library = _library()
    for kind in ("text", "embedding"):
        found: list = getattr(estimator, f"get_{kind}_feature_indices", list)()
        if found:
            names = [estimator.feature_names_[k] for k in found]
            raise Unreadable(f"catboost's {kind} features {names} are no boxes")
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
    """The nodes of all trees, and the splits that they ask."""

    roots: np.ndarray  # (n_trees,)
    asked: np.ndarray  # (n_nodes,) split, or -1 at a leaf
    left: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,)
    values: np.ndarray  # (n_leaves, k)
    depth: int
    splits: list[dict]


def _symmetric(trees: list[dict]) -> Nodes:
    """Unfold trees that ask the same split at all nodes of a level.

    A leaf's number has bit i if split i sends right; with the last split at the root and children
    at 2 i + 1 and 2 i + 2, the leaves stand in the order of their numbers.
    """
    depth = np.array([len(tree["splits"]) for tree in trees])
    sizes = 2 ** (depth + 1) - 1
    roots = np.cumsum(sizes) - sizes
    root = np.repeat(roots, sizes)
    place = np.arange(sizes.sum()) - root
    level = np.frexp(place + 1.0)[1] - 1
    leaf = level == np.repeat(depth, sizes)
    left = np.where(leaf, 0, root + 2 * place + 1)
    return Nodes(
        roots,
        np.where(leaf, -1, np.repeat(np.cumsum(depth), sizes) - 1 - level),
        left,
        np.where(leaf, 0, left + 1),
        np.concatenate([tree["leaf_values"] for tree in trees]).reshape(leaf.sum(), -1),
        int(depth.max()),
        [split for tree in trees for split in tree["splits"]],
    )


def _grown(trees: list[dict]) -> Nodes:
    """Put nested trees into a table, the left child right behind its parent."""
    roots: list[int] = []
    asked: list[int] = []
    children: tuple[list, list] = ([], [])
    values: list = []
    splits: list[dict] = []
    deepest = 0
    for tree in trees:
        roots.append(len(asked))
        todo: list[tuple] = [(tree, None, 0, 0)]
        while todo:
            node, parent, side, depth = todo.pop()
            number = len(asked)
            if parent is not None:
                children[side][parent] = number
            for child in children:
                child.append(0)
            if "split" in node:
                asked.append(len(splits))
                splits.append(node["split"])
                todo.append((node["right"], number, 1, depth + 1))
                todo.append((node["left"], number, 0, depth + 1))
            else:
                asked.append(-1)
                values.append(node["value"])
                deepest = max(deepest, depth)
    left, right = (np.array(child) for child in children)
    leaves = np.array(values, np.float64).reshape(len(values), -1)
    return Nodes(np.array(roots), np.array(asked), left, right, leaves, deepest, splits)


def _read(estimator: Any, exported: dict) -> Trees:
    symmetric = "oblivious_trees" in exported
    nodes = _symmetric(exported["oblivious_trees"]) if symmetric else _grown(exported["trees"])
    info = exported["features_info"]
    _check_kinds(nodes.splits, info)
    scale, bias = exported["scale_and_bias"]
    level = np.array([split["split_type"] == CATEGORY for split in nodes.splits], bool)
    feature, value = _sides(nodes.splits)
    numeric, categorical = np.unique(feature[~level]), np.unique(feature[level])
    hashes = [np.unique(value[level & (feature == c)]).astype(int) for c in categorical]
    front = CatFront(estimator, info, numeric, categorical, hashes)

    column = np.searchsorted(numeric, feature)
    edge = np.full(len(value), np.nan)
    edge[~level] = np.where(value == LARGEST, ROUNDS_TO_LARGEST, last_left(value))[~level]
    treatment = {
        f["feature_index"]: f["nan_value_treatment"] for f in info.get("float_features", [])
    }
    missing_left = np.ones(len(value), np.uint8)  # a category that is not known is not equal
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
        column=_at_nodes(column, nodes.asked, -1),
        left=nodes.left,
        right=nodes.right,
        edge=_at_nodes(edge, nodes.asked, np.nan),
        missing_left=_at_nodes(missing_left, nodes.asked, 0),
        values=nodes.values * scale,
        constant=np.zeros(k) + (bias or 0.0),
        depth=nodes.depth,
    )
    if hashes:
        part.members = _at_nodes(members, nodes.asked, -1)
        # set l is all levels but l, of whatever input
        part.sets = 1 - np.eye(max(map(len, hashes)), dtype=np.uint8)
        for c, known in enumerate(hashes, start=len(numeric)):
            part.levels[c] = [Nameless(h) for h in known.tolist()]
            part.known[c] = np.ones(len(known), bool)
    return part


def _check_kinds(splits: list[dict], info: dict) -> None:
    """Refuse splits that are no questions about one raw column."""
    kinds = {split["split_type"] for split in splits}
    if STATISTIC in kinds:
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
            "are no boxes; one_hot_max_size of at least their number of categories avoids them"
        )
    if kinds - {NUMBER, CATEGORY}:
        raise Unreadable(
            f"catboost {_library().__version__} has splits {sorted(kinds - {NUMBER, CATEGORY})} "
            "that are not known here"
        )


def _sides(splits: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Return of each split the feature (counted among its kind), and the border or the hash."""
    keys = {
        NUMBER: ("float_feature_index", "border"),
        CATEGORY: ("cat_feature_index", "value"),
    }
    feature = [split[keys[split["split_type"]][0]] for split in splits]
    value = [split[keys[split["split_type"]][1]] for split in splits]
    return np.array(feature, np.int64), np.array(value, np.float64)


def _at_nodes(of_splits: np.ndarray, asked: np.ndarray, at_leaves: Any) -> np.ndarray:
    """Return an array of splits as one of nodes."""
    return np.append(of_splits, np.array(at_leaves, of_splits.dtype))[asked]


class CatFront:
    """The library's own containers: what it makes of numbers, and the probe for categories.

    Inputs are the columns that some split asks for, first numbers, then categories.
    """

    takes_missing = True  # as numbers; `inputs` refuses missing categories, as the library does
    takes_infinite = True
    dtype = np.dtype(np.float32)
    absent = 0.0

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
        self.changes = np.zeros(len(self.columns), bool)
        self.categorical = sorted(flat[1].values())  # also those that no split asks for
        # a model that was fitted on an array has no names
        self.names = {f["flat_feature_index"]: f["feature_id"] for kind in kinds for f in kind}
        self.probe = _probe(info, categorical, hashes) if hashes else None

    def inputs(self, X: Any) -> np.ndarray:
        """Return X as the trees see it."""
        library = _library()
        self._check(X)
        with _refusals(X):
            pool = library.Pool(X, cat_features=self.categorical)
            numbers = self._numbers(pool)
            if not len(self.numeric):
                return numbers
            if self.categorical:  # a container with categories does not show its numbers
                floats = library.Pool(_columns(X, self.numeric)).get_features()
            else:
                floats = pool.get_features()[:, self.numeric]
            return np.append(floats, numbers, axis=1)

    def _numbers(self, pool: Any) -> np.ndarray:
        """Ask the library for the level number of each category, NaN for one not known."""
        predict = _library().CatBoost.predict
        if self.probe is None:
            predict(self.estimator, pool, ntree_end=1)  # for its checks of names and widths alone
            return np.empty((pool.num_row(), 0), np.float32)
        found = predict(self.probe, pool).reshape(pool.num_row(), -1).astype(np.float32)
        return np.where(found > 0, found - 1, np.float32(np.nan))

    def _check(self, X: Any) -> None:
        """Refuse what the library takes by another order, and what it dies of."""
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
            # said here, because a polars Categorical with a null ends the process
            missing = values.is_null() if isinstance(values, nw.Series) else values.isna()
            if missing.any():
                raise ValueError(
                    f"column {labels[k]!r} has missing values, which CatBoost does not take as "
                    "categories; give them a name"
                )


def _probe(info: dict, categorical: np.ndarray, hashes: list[np.ndarray]) -> Any:
    """Return a model with an output for each column of categories: 1 + number, 0 if not known.

    Its features are those of the model, so that it takes and refuses the same X.
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
    """Turn the library's refusals of X, of many types, into a ValueError that names the column."""
    try:
        yield
    except Exception as error:
        found = re.search(r"feature_idx=(\d+)", str(error))
        name = f"column {frames.labels(X)[int(found[1])]!r}: " if found else ""
        raise ValueError(f"{name}CatBoost refuses X: {error}") from error

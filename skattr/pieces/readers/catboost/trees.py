"""CatBoost's exported trees as Trees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.cells.levels import UnnamedLevel
from skattr.pieces.parts import Trees
from skattr.pieces.readers.catboost.front import CATEGORY, CatFront, import_catboost
from skattr.pieces.readers.sklearn_trees import last_left

NUMBER, STATISTIC = "FloatFeature", "OnlineCtr"  # types of splits besides CATEGORY
MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}
LARGEST = float(np.finfo(np.float32).max)
ROUNDS_TO_LARGEST = np.nextafter(LARGEST + 2.0**103, 0.0)  # the largest float64 that does


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


def read_trees(estimator: Any, exported: dict) -> Trees:
    """Return the trees of an exported model."""
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
        raise Unreadable(
            f"catboost {import_catboost().__version__} has splits {sorted(unknown)} that are not "
            "known here"
        )


def _features_and_values(splits: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Return for each split the feature (counted within its type), and the border or the hash."""
    keys = {
        NUMBER: ("float_feature_index", "border"),
        CATEGORY: ("cat_feature_index", "value"),
    }
    feature = [split[keys[split["split_type"]][0]] for split in splits]
    value = [split[keys[split["split_type"]][1]] for split in splits]
    return np.array(feature, np.int64), np.array(value, np.float64)


def _at_nodes(by_split: np.ndarray, split: np.ndarray, at_leaves: Any) -> np.ndarray:
    """Return an array by split as one by node."""
    return np.append(by_split, np.array(at_leaves, by_split.dtype))[split]

"""XGBoost: the estimators of its scikit-learn interface, and its own Booster.

It casts x to float32 and goes left if `x < threshold`; missing goes where the node says. A split on
categories sends those of its set right and all others left. It is a sum of boxes on the scale of
its margin, before the link, which it adds up in float32. A Booster is read with all its trees, as
its `inplace_predict` uses them; the estimators stop at the best iteration.
"""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

import numpy as np

from skattr._inputs import frames
from skattr.pieces.base import Unreadable
from skattr.pieces.cells.levels import UnnamedLevel
from skattr.pieces.links import BINARY, EXP, LOGISTIC, SOFTMAX, Link
from skattr.pieces.parts import SINGLE, Trees
from skattr.pieces.readers.sklearn_trees import last_left
from skattr.pieces.readers.xgboost.front import BoosterFront
from skattr.pieces.readers.xgboost.ubjson import Parser

# the objectives whose prediction is the margin, all rankings among them
NO_LINK = (
    "reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror",
    "reg:quantileerror", "binary:logitraw", "rank:",
)  # fmt: skip
LINKS: dict[str, Link] = {
    "binary:logistic": LOGISTIC, "reg:logistic": LOGISTIC, "multi:softprob": SOFTMAX,
    "multi:softmax": SOFTMAX, "count:poisson": EXP, "reg:gamma": EXP, "reg:tweedie": EXP,
    "survival:cox": EXP, "survival:aft": EXP,
}  # fmt: skip
BEYOND = 2.0**128 - 2.0**103  # the smallest float64 that rounds to inf in float32
# a number that no split names: it goes left at every split, which missing need not do
OTHER = UnnamedLevel("any other")


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    names = _kinds(estimator)
    if not names:
        return ()
    if "XGBClassifier" in names or not _objective(estimator).startswith(NO_LINK):
        return ("raw",)
    return ("predict", "raw")


def _kinds(estimator: Any) -> set[str]:
    """Return the names of XGBoost's classes that an estimator belongs to, if it can be read."""
    kinds = [kind for kind in type(estimator).__mro__ if kind.__module__.startswith("xgboost.")]
    names = {kind.__name__ for kind in kinds}
    known = names & {"XGBModel", "Booster"} and not any("dask" in k.__module__ for k in kinds)
    return names if known else set()


def _objective(estimator: Any) -> str:
    return json.loads(_booster(estimator).save_config())["learner"]["objective"]["name"]


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link of the objective."""
    names = _kinds(estimator)
    classifies = "XGBClassifier" in names
    if not names or scale != ("proba" if classifies else "predict"):
        return None
    objective = _objective(estimator)
    if objective not in LINKS:
        raise Unreadable(f"the link of XGBoost's objective {objective!r} is not known here")
    two = LINKS[objective] is LOGISTIC and classifies and not _multilabel(estimator)
    return "raw", BINARY if two else LINKS[objective]


def _multilabel(estimator: Any) -> bool:
    config = json.loads(_booster(estimator).save_config())
    return int(config["learner"]["learner_model_param"]["num_target"]) > 1


def _booster(estimator: Any) -> Any:
    return estimator.get_booster() if hasattr(estimator, "get_booster") else estimator


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return XGBoost's own margin, (n,) or (n, k)."""
    return _call(estimator, X, raw=True)


def predict(estimator: Any, X: Any) -> np.ndarray:
    """Return XGBoost's own prediction."""
    return _call(estimator, X, raw=False)


def _call(estimator: Any, X: Any, raw: bool) -> np.ndarray:
    """Return XGBoost's own prediction; a Booster takes X itself, not a DMatrix."""
    if hasattr(estimator, "get_booster"):
        return estimator.predict(X, output_margin=raw)
    if json.loads(estimator.save_config())["learner"]["gradient_booster"]["name"] != "gblinear":
        try:
            return estimator.inplace_predict(X, predict_type="margin" if raw else "value")
        except TypeError:  # a container that only a DMatrix accepts
            pass
    import xgboost

    types = None if frames.is_frame(X) else estimator.feature_types
    matrix = xgboost.DMatrix(X, feature_types=types, enable_categorical=True)
    return estimator.predict(matrix, output_margin=raw, validate_features=frames.is_frame(X))


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a fitted estimator or a Booster."""
    version = None
    try:
        saved = Parser(bytes(_booster(estimator).save_raw("ubj"))).value()
        version = ".".join(map(str, saved["version"]))
        return [_read(estimator, saved)]
    except (KeyError, IndexError, TypeError, ValueError, struct.error) as error:
        raise Unreadable(
            f"the format (ubj) of XGBoost {version or 'of this version'} is not known here "
            f"({type(error).__name__}: {error})"
        ) from error


def _read(estimator: Any, saved: dict) -> Trees:
    learner = saved["learner"]
    gradient_booster = learner["gradient_booster"]
    if gradient_booster["name"] == "gblinear":
        raise Unreadable("XGBoost's gblinear is a linear model: it has no trees")
    model = gradient_booster.get("gbtree", gradient_booster)["model"]
    # of dart: XGBoost 3.2 writes them beside the model, 3.4 into it
    weight_drop = gradient_booster.get("weight_drop", model.get("weight_drop"))
    n_trees = _n_trees(estimator, model)
    if n_trees == 0:
        raise Unreadable("this XGBoost model has no trees")
    trees = model["trees"][:n_trees]
    names = _names(learner, model)
    missing = np.float32(getattr(estimator, "missing", np.nan))
    for c, categories in names.items():
        if missing in range(len(categories)):  # what XGBoost does then depends on the order in X
            raise Unreadable(
                f"missing={missing:g} is also the number of a category of {_label(learner, c)}"
            )
    constant = _base_margin(_booster(estimator), saved, model)
    sizes = np.array([len(tree["left_children"]) for tree in trees])
    nodes, tree_of, depth = _nodes(trees, sizes)
    leaf = nodes["left"] < 0
    values = _leaf_values(trees, nodes, leaf)
    if weight_drop is not None and len(weight_drop):
        values *= np.asarray(weight_drop, float)[tree_of[leaf], None]
    n_codes = _n_codes(trees, nodes, names)
    levels = {c: categories.tolist() for c, categories in names.items()}
    levels |= {c: [*range(n), OTHER] for c, n in n_codes.items()}
    return Trees(
        front=BoosterFront(learner, names, n_codes, missing),
        roots=np.searchsorted(tree_of, np.arange(n_trees)),
        outputs=np.asarray(model["tree_info"][:n_trees], np.int64),
        column=np.where(leaf, -1, nodes["column"]),
        left=nodes["left"],
        right=nodes["right"],
        edge=nodes["edge"],
        missing_left=nodes["missing_left"].astype(np.uint8),
        values=values,
        constant=constant,
        depth=depth,
        members=nodes["members"],
        sets=_sets(trees, max(map(len, levels.values()), default=0)),
        # a number that means missing is not a category
        known={c: np.array([c in names or v != missing for v in own]) for c, own in levels.items()},
        levels=levels,
        rounding=SINGLE,
    )


def _n_trees(estimator: Any, model: dict) -> int:
    """Return how many trees `predict` uses: for an estimator, those up to the best iteration."""
    if hasattr(estimator, "get_booster"):
        try:
            return int(model["iteration_indptr"][estimator.best_iteration + 1])
        except AttributeError:  # no early stopping
            pass
    return len(model["trees"])


def _base_margin(booster: Any, saved: dict, model: dict) -> np.ndarray:
    """Return the margin of the same model without trees.

    `base_score` is on the scale of the prediction, and each objective has its own link to the
    margin, so XGBoost itself is asked.
    """
    bare: dict[str, Any] = {"gbtree_model_param": {**model["gbtree_model_param"], "num_trees": "0"}}
    bare |= {"trees": [], "tree_info": [], "iteration_indptr": [0]}
    bare |= {"cats": {"enc": [], "feature_segments": [], "sorted_idx": []}}
    learner = {
        **saved["learner"],
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {"name": "gbtree", "model": bare},
    }
    # else XGBoost would learn it, as there are no trees yet
    learner["learner_model_param"] = {**learner["learner_model_param"], "boost_from_average": "0"}
    text = json.dumps({**saved, "learner": learner}, default=np.ndarray.tolist)
    empty = type(booster)({"nthread": 1})
    empty.load_model(bytearray(text.encode()))
    row = np.zeros((1, int(learner["learner_model_param"]["num_feature"])))
    return empty.inplace_predict(row, predict_type="margin").reshape(-1).astype(np.float64)


def _joined(trees: list, name: str) -> np.ndarray:
    return np.concatenate([tree[name] for tree in trees])


def _nodes(trees: list, sizes: np.ndarray) -> tuple[dict, np.ndarray, int]:
    """Return the nodes that can be reached, sorted by tree and depth; their trees; and the depth.

    XGBoost leaves nodes that it pruned in the table.
    """
    starts = np.cumsum(sizes) - sizes
    shift = np.repeat(starts, sizes)
    left, right = _joined(trees, "left_children"), _joined(trees, "right_children")
    leaf = left < 0
    left = np.where(leaf, -1, left + shift)
    right = np.where(leaf, -1, right + shift)
    members = np.full(len(left), -1)
    n_sets = [len(tree["categories_nodes"]) for tree in trees]
    of_sets = _joined(trees, "categories_nodes").astype(np.intp) + np.repeat(starts, n_sets)
    members[of_sets] = np.arange(len(of_sets))
    if not np.array_equal(members >= 0, (_joined(trees, "split_type") == 1) & ~leaf):
        raise ValueError("a split on categories without a set")

    level = np.full(len(left), -1)
    at, depth = starts, -1
    while len(at):
        depth += 1
        level[at] = depth
        inner = at[~leaf[at]]
        at = np.concatenate([left[inner], right[inner]])
    tree_of = np.repeat(np.arange(len(trees)), sizes)
    order = np.lexsort((level, tree_of))
    order = order[level[order] >= 0]
    position = np.full(len(left) + 1, -1)  # the last one means no child
    position[order] = np.arange(len(order))
    threshold = _joined(trees, "split_conditions")[order]
    nodes = {
        "column": _joined(trees, "split_indices")[order],
        "left": position[left[order]],
        "right": position[right[order]],
        "edge": _edges(threshold),
        "missing_left": _joined(trees, "default_left")[order] == 1,
        "members": members[order],
        "source": order,
        "threshold": threshold,
    }
    # nothing is below -inf or NaN: all but missing go right, which is stored with sides swapped
    never = (nodes["left"] >= 0) & (nodes["members"] < 0) & ~(threshold > -np.inf)
    nodes["left"], nodes["right"] = (
        np.where(never, nodes["right"], nodes["left"]),
        np.where(never, nodes["left"], nodes["right"]),
    )
    nodes["missing_left"] ^= never
    nodes["edge"][never] = np.inf
    return nodes, tree_of[order], depth


def _edges(threshold: np.ndarray) -> np.ndarray:
    """Return the largest float64 whose float32 is < threshold."""
    with np.errstate(over="ignore"):  # to -inf
        below = np.nextafter(threshold, np.float32(-np.inf))
    edge = last_left(below.astype(np.float64))
    edge[below == -np.inf] = -BEYOND
    edge[threshold == np.inf] = np.nextafter(BEYOND, 0.0)
    return edge


def _leaf_values(trees: list, nodes: dict, leaf: np.ndarray) -> np.ndarray:
    """Return the values of the leaves, (n_leaves, width)."""
    width = int(trees[0]["tree_param"]["size_leaf_vector"])
    if width <= 1:
        return nodes["threshold"][leaf][:, None].astype(np.float64)
    source = nodes["source"][leaf]
    if "leaf_weights" not in trees[0]:  # before 3.2, every node has its vector
        return _joined(trees, "base_weights").reshape(-1, width)[source].astype(np.float64)
    sizes = [len(tree["left_children"]) for tree in trees]
    counts = np.array([len(tree["leaf_weights"]) // width for tree in trees])
    row = _joined(trees, "right_children") + np.repeat(np.cumsum(counts) - counts, sizes)
    vectors = _joined(trees, "leaf_weights").reshape(-1, width)
    return vectors[row[source]].astype(np.float64)


def _sets(trees: list, width: int) -> np.ndarray:
    """Return for each split on categories which of them go left: all but those of its set."""
    sizes = _joined(trees, "categories_sizes").astype(np.intp)
    categories = _joined(trees, "categories").astype(np.intp)
    if sizes.sum() != len(categories):
        raise ValueError("sets of categories that share members")
    sets = np.ones((len(sizes), width), np.uint8)
    sets[np.repeat(np.arange(len(sizes)), sizes), categories] = 0
    return sets


def _names(learner: dict, model: dict) -> dict[int, np.ndarray]:
    """Return the named categories of each column that has them, in the order of their numbers."""
    names = {}
    for c, stored in enumerate(model.get("cats", {}).get("enc", [])):
        values = np.asarray(stored["values"])
        if "type" in stored:
            names[c] = values
        elif len(stored["offsets"]):
            if (values < 0).any():
                raise Unreadable(
                    "XGBoost does not keep category names that are not ASCII, as in "
                    f"{_label(learner, c)}; rename the categories and fit again"
                )
            text = values.astype(np.uint8).tobytes().decode("ascii")
            ends = np.asarray(stored["offsets"])
            names[c] = np.array([text[a:b] for a, b in pairwise(ends)], object)
    if not names and "c" in learner["feature_types"] and len(learner["feature_names"]):
        raise Unreadable(
            "this XGBoost model does not hold the names of its categories, only numbers that "
            "depend on X; XGBoost 3.1 and later keep them: fit again"
        )
    return names


def _n_codes(trees: list, nodes: dict, names: dict) -> dict[int, int]:
    """Return how many categories are compared in each column where they are mere numbers."""
    at = nodes["members"] >= 0
    columns = np.unique(nodes["column"][at])
    if len(columns) == 0:
        return {}
    sizes = _joined(trees, "categories_sizes").astype(np.intp)
    largest = np.maximum.reduceat(_joined(trees, "categories"), np.cumsum(sizes) - sizes) + 1
    return {
        int(c): int(largest[nodes["members"][at & (nodes["column"] == c)]].max())
        for c in columns
        if c not in names
    }


def _label(learner: dict, c: int) -> str:
    names = learner["feature_names"]
    return f"column {names[c] if len(names) else f'x{c}'!r}"

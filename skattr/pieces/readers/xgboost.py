"""XGBoost: the estimators of its scikit-learn interface, and its own Booster.

It casts x to float32 and goes left if `x < threshold`; missing goes where the node says. A split on
categories sends those of its set right and any other one left. A sum of boxes it is on the scale of
its margin, in front of the link, which it adds up in float32. A Booster is read as its
`inplace_predict` answers, with all its trees; the estimators stop at the best iteration.
"""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from skattr import frames
from skattr.pieces.base import Unreadable
from skattr.pieces.boxes import SINGLE, Trees
from skattr.pieces.cells import Nameless
from skattr.pieces.readers.sklearn_trees import last_left

# the objectives whose prediction is the margin, and all rankings
NO_LINK = (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "binary:logitraw",
    "rank:",
)
BEYOND = 2.0**128 - 2.0**103  # the smallest float64 that float32 takes for inf
# the numbers of Universal Binary JSON, which are big-endian
NUMBERS = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}
FORMS = {marker: struct.Struct(form) for marker, form in NUMBERS.items()}
CONSTANTS = {"T": True, "F": False, "Z": None}


# a number that no split names: it goes left at every split, which missing need not do
OTHER = Nameless("any other")


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = [kind for kind in type(estimator).__mro__ if kind.__module__.startswith("xgboost.")]
    names = {kind.__name__ for kind in kinds}
    if not names & {"XGBModel", "Booster"} or any("dask" in kind.__module__ for kind in kinds):
        return ()
    objective = json.loads(_booster(estimator).save_config())["learner"]["objective"]["name"]
    if "XGBClassifier" in names or not objective.startswith(NO_LINK):
        return ("raw",)
    return ("predict", "raw")


def _booster(estimator: Any) -> Any:
    return estimator.get_booster() if hasattr(estimator, "get_booster") else estimator


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return XGBoost's own margin, (n,) or (n, k)."""
    return _call(estimator, X, raw=True)


def predict(estimator: Any, X: Any) -> np.ndarray:
    """Return XGBoost's own prediction."""
    return _call(estimator, X, raw=False)


def _call(estimator: Any, X: Any, raw: bool) -> np.ndarray:
    """Return XGBoost's own answer; a Booster takes X as it is, without a DMatrix."""
    if hasattr(estimator, "get_booster"):
        return estimator.predict(X, output_margin=raw)
    if json.loads(estimator.save_config())["learner"]["gradient_booster"]["name"] != "gblinear":
        try:
            return estimator.inplace_predict(X, predict_type="margin" if raw else "value")
        except TypeError:  # a container that only a DMatrix takes
            pass
    import xgboost

    types = None if frames.is_frame(X) else estimator.feature_types
    matrix = xgboost.DMatrix(X, feature_types=types, enable_categorical=True)
    return estimator.predict(matrix, output_margin=raw, validate_features=frames.is_frame(X))


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a fitted estimator or a Booster."""
    version = None
    try:
        model = _Parser(bytes(_booster(estimator).save_raw("ubj"))).value()
        version = ".".join(map(str, model["version"]))
        return [_read(estimator, model)]
    except (KeyError, IndexError, TypeError, ValueError, struct.error) as error:
        raise Unreadable(
            f"the format (ubj) of XGBoost {version or 'of this version'} is not known here "
            f"({type(error).__name__}: {error})"
        ) from error


class _Parser:
    """Reads Universal Binary JSON; an array of numbers of one type becomes a numpy array."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0

    def value(self) -> Any:
        """Read the next value."""
        marker = self._marker()
        if marker == "{":
            return self._object()
        if marker == "[":
            return self._array()
        if marker == "S":
            return self._string()
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        return self._number(marker)

    def _marker(self) -> str:
        self.at += 1
        return chr(self.text[self.at - 1])

    def _peek(self, marker: bytes) -> bool:
        if self.text[self.at] != marker[0]:
            return False
        self.at += 1
        return True

    def _number(self, marker: str) -> Any:
        form = FORMS[marker]
        self.at += form.size
        return form.unpack_from(self.text, self.at - form.size)[0]

    def _string(self) -> str:
        length = self._number(self._marker())
        self.at += length
        return self.text[self.at - length : self.at].decode()

    def _object(self) -> dict:
        found = {}
        while not self._peek(b"}"):
            name = self._string()
            found[name] = self.value()
        return found

    def _array(self) -> Any:
        kind = self._marker() if self._peek(b"$") else None
        if not self._peek(b"#"):
            found = []
            while not self._peek(b"]"):
                found.append(self.value())
            return found
        length = self._number(self._marker())
        if kind is None:
            return [self.value() for _ in range(length)]
        array = np.frombuffer(self.text, NUMBERS[kind], length, self.at)
        self.at += array.nbytes
        return array.astype(array.dtype.newbyteorder("="))


def _read(estimator: Any, saved: dict) -> Trees:
    learner = saved["learner"]
    gradient_booster = learner["gradient_booster"]
    if gradient_booster["name"] == "gblinear":
        raise Unreadable("XGBoost's gblinear is a linear model: it has no trees")
    dart = gradient_booster["name"] == "dart"
    model = (gradient_booster["gbtree"] if dart else gradient_booster)["model"]
    n_trees = _n_trees(estimator, model)
    if n_trees == 0:
        raise Unreadable("this XGBoost model has no trees")
    trees = model["trees"][:n_trees]
    names = _names(learner, model)
    missing = np.float32(getattr(estimator, "missing", np.nan))
    for c, found in names.items():
        if missing in range(len(found)):  # what XGBoost does then depends on the order in X
            raise Unreadable(
                f"missing={missing:g} is also the number of a category of {_label(learner, c)}"
            )
    constant = _base_margin(_booster(estimator), saved, model)
    sizes = np.array([len(tree["left_children"]) for tree in trees])
    nodes, tree_of, depth = _nodes(trees, sizes)
    leaf = nodes["left"] < 0
    values = _leaf_values(trees, nodes, leaf)
    if dart:
        values *= np.asarray(gradient_booster["weight_drop"], float)[tree_of[leaf], None]
    n_codes = _n_codes(trees, nodes, names)
    levels = {c: found.tolist() for c, found in names.items()}
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
        # a number that means missing is no category
        known={
            c: np.array([c in names or v != missing for v in found]) for c, found in levels.items()
        },
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
    """Return what all trees stand on: the answer of the same model without trees.

    `base_score` is on the scale of the prediction, and each objective has its own way to the
    margin; XGBoost knows it best.
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
    # else XGBoost means to learn it, as there are no trees yet
    learner["learner_model_param"] = {**learner["learner_model_param"], "boost_from_average": "0"}
    text = json.dumps({**saved, "learner": learner}, default=np.ndarray.tolist)
    empty = type(booster)({"nthread": 1})
    empty.load_model(bytearray(text.encode()))
    row = np.zeros((1, int(learner["learner_model_param"]["num_feature"])))
    return empty.inplace_predict(row, predict_type="margin").reshape(-1).astype(np.float64)


def _joined(trees: list, name: str) -> np.ndarray:
    return np.concatenate([tree[name] for tree in trees])


def _nodes(trees: list, sizes: np.ndarray) -> tuple[dict, np.ndarray, int]:
    """Return the nodes that can be reached, by trees and levels; their trees; and the depth.

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
    place = np.full(len(left) + 1, -1)  # the last one stands for no child
    place[order] = np.arange(len(order))
    threshold = _joined(trees, "split_conditions")[order]
    nodes = {
        "column": _joined(trees, "split_indices")[order],
        "left": place[left[order]],
        "right": place[right[order]],
        "edge": _edges(threshold),
        "missing_left": _joined(trees, "default_left")[order] == 1,
        "members": members[order],
        "source": order,
        "threshold": threshold,
    }
    # nothing is below -inf or NaN: all but missing go right, which is written the other way round
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
    with np.errstate(over="ignore"):  # -inf is below the least number
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
    own = _joined(trees, "right_children") + np.repeat(np.cumsum(counts) - counts, sizes)
    vectors = _joined(trees, "leaf_weights").reshape(-1, width)
    return vectors[own[source]].astype(np.float64)


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
    """Return the categories of each column that has them by name, in the order of their numbers."""
    found = {}
    for c, stored in enumerate(model.get("cats", {}).get("enc", [])):
        values = np.asarray(stored["values"])
        if "type" in stored:
            found[c] = values
        elif len(stored["offsets"]):
            if (values < 0).any():
                raise Unreadable(
                    f"XGBoost does not keep category names beyond ASCII whole, as in "
                    f"{_label(learner, c)}; rename the categories and fit again"
                )
            text = values.astype(np.uint8).tobytes().decode("ascii")
            ends = np.asarray(stored["offsets"])
            found[c] = np.array([text[a:b] for a, b in pairwise(ends)], object)
    if not found and "c" in learner["feature_types"] and len(learner["feature_names"]):
        raise Unreadable(
            "this XGBoost model does not hold the names of its categories, only numbers that "
            "depend on X; XGBoost 3.1 and later keep them: fit again"
        )
    return found


def _n_codes(trees: list, nodes: dict, names: dict) -> dict[int, int]:
    """Return for each column whose categories are mere numbers one more than the largest asked."""
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


class BoosterFront:
    """XGBoost's own checks of X, its numbers for categories and the cast to float32."""

    takes_missing = True
    takes_infinite = True
    dtype = np.dtype(np.float32)
    absent = np.nan

    def __init__(self, learner: dict, names: dict, n_codes: dict, missing: np.float32) -> None:
        self.columns = np.arange(int(learner["learner_model_param"]["num_feature"]))
        self.labels = list(learner["feature_names"])
        self.names = names  # column → its categories
        self.n_codes = n_codes  # column → how many numbers of categories are told apart
        self.missing = missing  # a value that means missing, besides NaN
        self.changes = np.full(len(self.columns), not np.isnan(missing))
        self.changes[[*names, *n_codes]] = False

    def inputs(self, X: Any) -> np.ndarray:
        """Return X as the trees see it."""
        labels = frames.labels(X) if len(X.shape) == 2 else []
        if len(labels) != len(self.columns):
            raise ValueError(
                f"X has shape {X.shape}, but XGBoost was fitted on {len(self.columns)} columns"
            )
        with np.errstate(over="ignore"):
            values = self._frame(X, labels) if frames.is_frame(X) else self._array(X)
        values[values == self.missing] = np.nan
        for c, n in self.n_codes.items():
            codes = values[:, c]
            if (np.isfinite(codes) & (codes != np.trunc(codes))).any():
                raise ValueError(f"column {labels[c]!r} holds categories, which are whole numbers")
            codes[(codes < 0) | (codes >= n)] = n
        return values

    def _array(self, X: Any) -> np.ndarray:
        X = np.asarray(X)
        if X.dtype.kind not in "biufO":
            raise ValueError(f"XGBoost takes no array of type {X.dtype}")
        if self.names:
            c = next(iter(self.names))
            raise ValueError(
                f"column {self.labels[c]!r} has categories, which an array cannot name: "
                "pass a data frame"
            )
        return X.astype(np.float32)

    def _frame(self, X: Any, labels: list) -> np.ndarray:
        found = [" ".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in labels]
        if self.labels and found != self.labels:
            raise ValueError(f"feature_names mismatch: XGBoost has {self.labels}, X has {found}")
        values = np.empty((len(X), len(labels)), np.float32, order="F")
        for c, label in enumerate(labels):
            column = frames.column(X, c)
            if _is_categorical(column) != (c in self.names):
                wanted = "categories" if c in self.names else "numbers"
                raise ValueError(f"column {label!r} is of type {column.dtype}; it wants {wanted}")
            if c in self.names:
                values[:, c] = _level_numbers(column, self.names[c], label)
            else:
                values[:, c] = _numbers(column, label)
        return values


def _is_categorical(column: Any) -> bool:
    return isinstance(column.dtype, pd.CategoricalDtype | nw.Categorical | nw.Enum)


def _numbers(column: Any, label: Any) -> np.ndarray:
    """Return a column of a frame as XGBoost casts it: integers in one step."""
    dtype = column.dtype
    if isinstance(column, nw.Series):
        if not (dtype.is_integer() or dtype.is_float() or dtype == nw.Boolean):
            raise ValueError(f"column {label!r} is of type {dtype}, which XGBoost does not take")
        return (column.to_numpy() if not column.null_count() else frames.to_float(column)).astype(
            np.float32
        )
    if not (pd.api.types.is_any_real_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)):
        raise ValueError(f"column {label!r} is of type {dtype}, which XGBoost does not take")
    return column.to_numpy(dtype=np.float32, na_value=np.nan)


def _level_numbers(column: Any, names: np.ndarray, label: Any) -> np.ndarray:
    """Return the model's numbers of a column's categories, whatever their order in X.

    XGBoost means to refuse categories that it does not know, but takes most of them for others.
    """
    number_of = {name: i for i, name in enumerate(names.tolist())}
    if isinstance(column, nw.Series):
        levels = pd.Index(column.cast(nw.String).to_list(), dtype=object)
        codes = np.where(levels.isna(), -1, np.arange(len(levels)))
        levels = levels.where(~levels.isna(), names[0])
    else:
        levels, codes = column.cat.categories, column.cat.codes.to_numpy()
    if len(levels) == 0 or (names.dtype.kind != "O" and levels.dtype != names.dtype):
        raise ValueError(
            f"column {label!r} has categories of type {levels.dtype}; XGBoost has {names.dtype}"
        )
    unknown = [level for level in levels if level not in number_of]
    if unknown:
        raise ValueError(
            f"column {label!r} has categories that XGBoost does not know: {unknown[:5]}; "
            f"it knows {names.tolist()[:20]}"
        )
    numbers = np.array([number_of[level] for level in levels], np.float32)
    return np.where(codes < 0, np.float32(np.nan), numbers[codes])

"""LightGBM: its scikit-learn estimators and its Booster.

It compares in float64, `x <= threshold`, and takes any |x| <= 1e-35 for 0.0. What a node does with
NaN depends on the missing type of its column: none (NaN is 0.0), zero (0.0 and NaN are missing) or
nan. At a split on categories it casts x to an integer, towards zero; values that are not in the
set, NaN and negative ones included, go right. A random forest (`average_output`) is the mean of its
trees, and so is its margin here, though LightGBM's raw_score is their sum.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from skattr.pieces.base import Unreadable
from skattr.pieces.links import (
    EXP,
    LOGISTIC,
    SIGNED_SQUARE,
    SOFTMAX,
    SOFTPLUS,
    Link,
    TwoClasses,
    scaled,
)
from skattr.pieces.parts import Trees
from skattr.pieces.readers.lightgbm.front import TINY, LightGBMFront, is_wrapper

BELOW = float(np.nextafter(-TINY, -1.0))
IS_CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a node's decision type; the missing type follows
ZERO, NAN = 1, 2  # missing types; 0 is none
# the objectives without a link, unless `sqrt` follows; "" is an objective of the user's own
PLAIN = {
    "", "regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank",
    "rank_xendcg",
}  # fmt: skip

LINKS: dict[str, Link] = {
    "binary": LOGISTIC, "multiclass": SOFTMAX, "multiclassova": LOGISTIC,
    "cross_entropy": LOGISTIC, "cross_entropy_lambda": SOFTPLUS, "poisson": EXP, "gamma": EXP,
    "tweedie": EXP,
}  # fmt: skip


def scales(estimator: Any) -> tuple[str, ...]:
    """Return the scales on which this reader finds boxes."""
    kinds = _kinds(estimator)
    if not kinds:
        return ()
    if ("lightgbm.sklearn", "LGBMClassifier") in kinds:
        return ("raw",)
    name, *options = _objective(_header(estimator))
    return ("predict", "raw") if name in PLAIN and "sqrt" not in options else ("raw",)


def _kinds(estimator: Any) -> set[tuple[str, str]]:
    """Return the modules and names of an estimator's classes, if it is LightGBM's own."""
    kinds = {(kind.__module__, kind.__name__) for kind in type(estimator).__mro__}
    wrapper = ("lightgbm.sklearn", "LGBMModel") in kinds
    remote = any(module == "lightgbm.dask" for module, _ in kinds)
    return kinds if not remote and (wrapper or ("lightgbm.basic", "Booster") in kinds) else set()


def _objective(head: dict[str, str]) -> list[str]:
    """Return the name of the objective and its options; "" is one of the user's own."""
    return head.get("objective", "").split() or [""]


def link(estimator: Any, scale: str) -> tuple[str, Link] | None:
    """Return the link of the objective, of which a random forest takes the mean margin."""
    kinds = _kinds(estimator)
    classifies = ("lightgbm.sklearn", "LGBMClassifier") in kinds
    if not kinds or scale != ("proba" if classifies else "predict"):
        return None
    head = _header(estimator)
    name, *options = _objective(head)
    single: Link
    if "sqrt" in options:
        single = SIGNED_SQUARE
    elif name in LINKS:
        words = (word.partition(":") for word in options)
        slope = next((float(value) for key, _, value in words if key == "sigmoid"), 1.0)
        single = scaled(LINKS[name], slope)
    else:
        raise Unreadable(f"the link of LightGBM's objective {name or 'of your own'} is not known")
    two = classifies and int(head["num_tree_per_iteration"]) == 1
    return "raw", TwoClasses(single) if two else single


def margin(estimator: Any, X: Any) -> np.ndarray:
    """Return LightGBM's prediction before the link, (n,) or (n, k); for a forest, the mean."""
    if sparse.issparse(X):
        X = sparse.csr_matrix(X)  # LightGBM copies a sparse array, with a warning
    result = estimator.predict(X, raw_score=True)
    head = _header(estimator)
    if "average_output" in head:
        booster = _booster(estimator)
        n_iterations = booster.num_trees() // int(head["num_tree_per_iteration"])
        best = booster.best_iteration
        result = result / (min(best, n_iterations) if best > 0 else n_iterations)
    return result


def read(estimator: Any, scale: str) -> list[Trees]:
    """Read a fitted estimator or a Booster, up to its best iteration as `predict` does."""
    if is_wrapper(estimator) and estimator.get_params().get("pred_early_stop"):
        raise Unreadable("with pred_early_stop LightGBM skips trees, which ones depends on the row")
    text = _booster(estimator).model_to_string()
    head, fields = _parse(text)
    if head.get("version") != "v4":
        raise _unknown(head, "only v4 is")
    if "1" in fields.get("is_linear", []):
        raise Unreadable("linear_tree=True: the leaves of LightGBM are linear, not constant")
    if not fields:
        raise Unreadable("the LightGBM model has no trees")
    try:
        return [_TreeFields(estimator, head, fields, _flagged_columns(text)).trees()]
    except (KeyError, ValueError, IndexError) as error:
        raise _unknown(head, repr(error)) from error


def _unknown(head: dict[str, str], reason: str) -> Unreadable:
    return Unreadable(
        f"the model format {head.get('version')} of lightgbm {version('lightgbm')} is not known "
        f"here ({reason})"
    )


def _booster(estimator: Any) -> Any:
    return estimator.booster_ if is_wrapper(estimator) else estimator


def _header(estimator: Any) -> dict[str, str]:
    return _parse(_booster(estimator).model_to_string(num_iteration=1))[0]


def _parse(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the header of a saved model, and for each field of its trees the lines."""
    above, _, rest = text.partition("\ntree_sizes=")
    head = {}
    for line in above.split("\n"):
        key, _, value = line.partition("=")
        head[key] = value
    fields: dict[str, list[str]] = {}
    for line in rest.partition("\nend of trees")[0].split("\n")[1:]:
        key, equals, value = line.partition("=")
        if equals:
            fields.setdefault(key, []).append(value)
    return head, fields


def _flagged_columns(text: str) -> list[int]:
    """Return the columns that the parameters of the training name as categorical."""
    match = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, re.MULTILINE)
    return [int(c) for c in match[1].split(",") if c] if match else []


def _floats(lines: list[str]) -> np.ndarray:
    return np.array([float(word) for line in lines for word in line.split()])


def _integers(lines: list[str]) -> np.ndarray:
    return np.array([int(word) for line in lines for word in line.split()], np.int64)


class _TreeFields:
    """The fields of all trees, as arrays over all splits."""

    def __init__(self, estimator: Any, head: dict, fields: dict, flagged: list[int]) -> None:
        self.head = head
        self.n_columns = int(head["max_feature_idx"]) + 1
        self.n_leaves = _integers(fields["num_leaves"])
        self.tree = np.repeat(np.arange(len(self.n_leaves)), self.n_leaves - 1)  # of each split
        self.column = _integers(fields["split_feature"])
        self.threshold = _floats(fields["threshold"])
        self.children = [_integers(fields[key]) for key in ("left_child", "right_child")]
        self.leaf_value = _floats(fields["leaf_value"])
        kind = _integers(fields["decision_type"])
        self.categorical = (kind & IS_CATEGORICAL) > 0
        self.default_left = (kind & DEFAULT_LEFT) > 0
        self.missing = kind >> 2
        if len(self.leaf_value) != self.n_leaves.sum() or (self.missing > NAN).any():
            raise ValueError("leaves or missing types")
        self.sets = _CategorySets(self, fields)
        known = _known_codes(head["feature_infos"].split(), flagged)
        lists = getattr(_booster(estimator), "pandas_categorical", None)
        categories = None if lists is None else _locate_categories(lists, known, head)
        self.front = LightGBMFront(estimator, self.n_columns, categories)
        self._find_levels(known)
        self._find_zeros()

    def trees(self) -> Trees:
        """Return all trees in one table, the splits of each before its leaves."""
        sizes = 2 * self.n_leaves - 1
        roots = np.cumsum(sizes) - sizes
        n_nodes = int(sizes.sum())
        within = np.arange(n_nodes) - np.repeat(roots, sizes)
        leaf = within >= np.repeat(self.n_leaves - 1, sizes)
        split = np.flatnonzero(~leaf)

        def over_nodes(values: Any, other: Any) -> np.ndarray:
            result = np.full(n_nodes, other, np.asarray(values).dtype)
            result[split] = values
            return result

        left, right = (
            roots[self.tree] + np.where(c < 0, self.n_leaves[self.tree] - 1 + ~c, c)
            for c in self.children
        )
        if (np.minimum(left, right) <= split).any():
            raise ValueError("a child comes before its parent")
        k = int(self.head["num_tree_per_iteration"])
        n_parts = len(roots) // k if "average_output" in self.head else 1
        part = Trees(
            front=self.front,
            roots=roots,
            outputs=np.arange(len(roots)) % k,
            column=over_nodes(self.column, -1),
            left=over_nodes(left, 0),
            right=over_nodes(right, 0),
            edge=over_nodes(_last_left(self.threshold), np.nan),
            missing_left=over_nodes(self._left(np.array([np.nan]))[:, 0], False),
            values=self.leaf_value[:, None] / n_parts,
            constant=np.zeros(k),
            depth=_depth(roots, over_nodes(left, -1), over_nodes(right, -1)),
        )
        self._add_sets(part, split)
        return part

    def _left(self, values: np.ndarray, splits: Any = slice(None)) -> np.ndarray:
        """Tell which values (m,) go left at some splits, (n_splits, m), as LightGBM decides."""
        missing = self.missing[splits, None]
        numbers = np.where(np.isnan(values) & (missing != NAN), 0.0, values)
        lost = np.isnan(numbers) | ((missing == ZERO) & (np.abs(numbers) <= TINY))
        below = numbers <= self.threshold[splits, None]
        ordered = np.where(lost, self.default_left[splits, None], below)
        return np.where(self.categorical[splits, None], self.sets.contain(values, splits), ordered)

    def _find_levels(self, known: dict[int, np.ndarray]) -> None:
        """Find the columns of levels: pandas' categories, and integers split as categories."""
        front = self.front
        ordered = set(np.unique(self.column[~self.categorical]).tolist())
        for c, levels in (front.categories or {}).items():
            front.codes[c] = np.arange(len(levels), dtype=np.float64)
            if c in ordered:
                front.whole.add(c)
        split = set(np.unique(self.column[self.categorical]).tolist())
        for c in sorted((split | (known.keys() - ordered)) - front.codes.keys()):
            if c in ordered:
                raise Unreadable(f"column {c} holds categories for some trees, numbers for others")
            # the header knows only the last training
            codes = np.union1d(known.get(c, []), self.sets.codes(self.column == c))
            if len(codes):
                front.codes[c] = codes

    def _find_zeros(self) -> None:
        """Find the columns where 0.0 means missing."""
        levels = np.isin(self.column, list(self.front.codes))
        zero = np.unique(self.column[(self.missing == ZERO) & ~self.categorical & ~levels])
        other = np.unique(self.column[(self.missing != ZERO) & ~levels])
        both = np.intersect1d(zero, other)
        if len(both):
            raise Unreadable(f"in column {both[0]} 0.0 is missing for some trees, not for others")
        self.front.zero_is_missing[zero] = True

    def _add_sets(self, part: Trees, split: np.ndarray) -> None:
        """Add the levels, and for each split on them the set that goes left."""
        codes_of = self.front.codes
        if not codes_of:
            return
        on_levels = np.isin(self.column, list(codes_of))
        part.members = np.full(len(part.column), -1)
        part.members[split[on_levels]] = np.arange(on_levels.sum())
        part.edge[split[on_levels]] = np.nan
        part.sets = np.zeros((on_levels.sum(), max(map(len, codes_of.values()))), np.uint8)
        for c, codes in codes_of.items():
            here = self.column == c
            part.sets[here[on_levels], : len(codes)] = self._left(codes, here)
            named = (self.front.categories or {}).get(c)
            part.levels[c] = [int(v) for v in codes] if named is None else named
            part.known[c] = np.ones(len(codes), bool)


def _last_left(threshold: np.ndarray) -> np.ndarray:
    """Return the largest float64 that goes left, given that |x| <= TINY is 0.0."""
    zero = np.where(threshold >= 0, TINY, BELOW)
    return np.where((threshold >= -TINY) & (threshold < TINY), zero, threshold)


def _depth(roots: np.ndarray, left: np.ndarray, right: np.ndarray) -> int:
    """Return the number of splits on the longest path; a leaf has the child -1."""
    depth = 0
    nodes = roots[left[roots] >= 0]
    while len(nodes):
        depth += 1
        nodes = np.concatenate([left[nodes], right[nodes]])
        nodes = nodes[left[nodes] >= 0]
    return depth


class _CategorySets:
    """The sets of categories at the splits: bit sets with 32 bits per word."""

    def __init__(self, trees: _TreeFields, fields: dict) -> None:
        n_sets = _integers(fields["num_cat"])
        bounds = _integers(fields.get("cat_boundaries", []))
        self.words = _integers(fields.get("cat_threshold", []))
        self.start = np.zeros(len(trees.tree), np.int64)  # of each split's words
        self.size = np.zeros(len(trees.tree), np.int64)
        if not len(bounds):
            return
        n_bounds = np.where(n_sets > 0, n_sets + 1, 0)
        first_bound = np.cumsum(n_bounds) - n_bounds
        n_words = np.zeros(len(n_sets), np.int64)
        n_words[n_sets > 0] = bounds[(first_bound + n_sets)[n_sets > 0]]
        first_word = np.cumsum(n_words) - n_words
        at = trees.categorical
        tree = trees.tree[at]
        bound = first_bound[tree] + trees.threshold[at].astype(np.int64)
        self.start[at] = first_word[tree] + bounds[bound]
        self.size[at] = bounds[bound + 1] - bounds[bound]

    def contain(self, values: np.ndarray, splits: Any) -> np.ndarray:
        """Tell whether whole numbers (m,) are in the sets of some splits, (n_splits, m)."""
        if not len(self.words):
            return np.zeros((len(self.start[splits]), len(values)), bool)
        codes = np.where(np.isnan(values), -1, values).astype(np.int64)
        word = codes >> 5
        inside = (word >= 0) & (word < self.size[splits, None])
        words = self.words[np.where(inside, self.start[splits, None] + word, 0)]
        return inside & ((words >> (codes & 31)) & 1).astype(bool)

    def codes(self, splits: np.ndarray) -> np.ndarray:
        """Return all numbers that are in the sets of some splits."""
        size = self.size[splits]
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        words = self.words[np.repeat(self.start[splits], size) + within]
        filled = words != 0  # few, where numbers are large
        row, bit = np.nonzero((words[filled, None] >> np.arange(32)) & 1)
        return np.unique(within[filled][row] * 32 + bit).astype(np.float64)


def _known_codes(infos: list[str], flagged: list[int]) -> dict[int, np.ndarray]:
    """Return the categorical columns, and their codes seen in the last training."""
    known = {c: np.empty(0) for c in flagged if c < len(infos)}
    for c, info in enumerate(infos):
        if info[0] not in "[n":  # neither [low:high] nor none
            codes = np.array([float(code) for code in info.split(":")])
            known[c] = np.unique(codes[codes >= 0])  # -1 is missing
    return known


def _locate_categories(
    lists: list[list], known: dict[int, np.ndarray], head: dict
) -> dict[int, list]:
    """Return the columns of pandas' categories, of which the model knows only the order.

    An ordered category is a column of numbers to LightGBM, so all columns may have to be searched.
    Taking the first column that fits for each list of levels, and taking the last one, bounds all
    choices: if both agree, there is only one.
    """
    infos = head["feature_infos"].split()

    def fits(c: int, levels: list) -> bool:
        if c in known:
            return known[c].max(initial=0) < max(len(levels), 1)
        if infos[c] == "none":
            return True
        low, high = (float(end) for end in infos[c][1:-1].split(":"))
        return low >= 0 and high < len(levels) and low % 1 == 0 == high % 1

    def first_fits(columns: list[int], wanted: list[list]) -> list[int]:
        left = iter(columns)
        first = (next((c for c in left if fits(c, levels)), None) for levels in wanted)
        return [c for c in first if c is not None]

    for columns in (sorted(known), list(range(len(infos)))):
        first = first_fits(columns, lists)
        if len(first) == len(lists) and first == first_fits(columns[::-1], lists[::-1])[::-1]:
            return dict(zip(first, lists, strict=True))
    raise Unreadable(
        f"LightGBM was trained on {len(lists)} columns of pandas' type category, but does not tell "
        "which; it does if none of them is ordered and no other column is categorical"
    )

"""LightGBM's saved trees as Trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.parts import Trees
from skattr.pieces.readers.lightgbm.categories import CategorySets, known_codes, locate_categories
from skattr.pieces.readers.lightgbm.front import TINY, LightGBMFront
from skattr.pieces.readers.lightgbm.text import floats, integers

BELOW = float(np.nextafter(-TINY, -1.0))
IS_CATEGORICAL, DEFAULT_LEFT = 1, 2  # bits of a node's decision type; the missing type follows
ZERO, NAN = 1, 2  # missing types; 0 is none


class TreeFields:
    """The fields of all trees, as arrays over all splits."""

    def __init__(
        self, estimator: Any, booster: Any, head: dict, fields: dict, flagged: list[int]
    ) -> None:
        self.head = head
        self.n_columns = int(head["max_feature_idx"]) + 1
        self.n_leaves = integers(fields["num_leaves"])
        self.tree = np.repeat(np.arange(len(self.n_leaves)), self.n_leaves - 1)  # of each split
        self.column = integers(fields["split_feature"])
        self.threshold = floats(fields["threshold"])
        self.children = [integers(fields[key]) for key in ("left_child", "right_child")]
        self.leaf_value = floats(fields["leaf_value"])
        kind = integers(fields["decision_type"])
        self.categorical = (kind & IS_CATEGORICAL) > 0
        self.default_left = (kind & DEFAULT_LEFT) > 0
        self.missing = kind >> 2
        if len(self.leaf_value) != self.n_leaves.sum() or (self.missing > NAN).any():
            raise ValueError("leaves or missing types")
        self.sets = CategorySets(self.tree, self.categorical, self.threshold, fields)
        known = known_codes(head["feature_infos"].split(), flagged)
        lists = getattr(booster, "pandas_categorical", None)
        categories = None if lists is None else locate_categories(lists, known, head)
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

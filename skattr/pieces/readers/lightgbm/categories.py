"""The categories of LightGBM's columns, and the sets of them at its splits."""

from __future__ import annotations

from typing import Any

import numpy as np

from skattr.pieces.base import Unreadable
from skattr.pieces.readers.lightgbm.text import integers


class CategorySets:
    """The sets of categories at the splits: bit sets with 32 bits per word."""

    def __init__(
        self, tree: np.ndarray, categorical: np.ndarray, threshold: np.ndarray, fields: dict
    ) -> None:
        n_sets = integers(fields["num_cat"])
        bounds = integers(fields.get("cat_boundaries", []))
        self.words = integers(fields.get("cat_threshold", []))
        self.start = np.zeros(len(tree), np.int64)  # of each split's words
        self.size = np.zeros(len(tree), np.int64)
        if not len(bounds):
            return
        n_bounds = np.where(n_sets > 0, n_sets + 1, 0)
        first_bound = np.cumsum(n_bounds) - n_bounds
        n_words = np.zeros(len(n_sets), np.int64)
        n_words[n_sets > 0] = bounds[(first_bound + n_sets)[n_sets > 0]]
        first_word = np.cumsum(n_words) - n_words
        tree = tree[categorical]
        bound = first_bound[tree] + threshold[categorical].astype(np.int64)
        self.start[categorical] = first_word[tree] + bounds[bound]
        self.size[categorical] = bounds[bound + 1] - bounds[bound]

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


def known_codes(infos: list[str], flagged: list[int]) -> dict[int, np.ndarray]:
    """Return the categorical columns, and their codes seen in the last training."""
    known = {c: np.empty(0) for c in flagged if c < len(infos)}
    for c, info in enumerate(infos):
        if info[0] not in "[n":  # neither [low:high] nor none
            codes = np.array([float(code) for code in info.split(":")])
            known[c] = np.unique(codes[codes >= 0])  # -1 is missing
    return known


def locate_categories(
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

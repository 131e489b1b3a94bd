"""The nodes of CatBoost's trees, which are symmetric or nested in its JSON."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Nodes(NamedTuple):
    """The nodes of all trees, and their splits."""

    roots: np.ndarray  # (n_trees,)
    split: np.ndarray  # (n_nodes,) which of the splits, or -1 at a leaf
    left: np.ndarray  # (n_nodes,)
    right: np.ndarray  # (n_nodes,)
    values: np.ndarray  # (n_leaves, k)
    depth: int
    splits: list[dict]


def symmetric_nodes(trees: list[dict]) -> Nodes:
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


def nested_nodes(trees: list[dict]) -> Nodes:
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

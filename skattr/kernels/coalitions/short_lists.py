"""Coalitions on boxes where few rows are left: rows are compared one by one.

With one explained row, or in a part of a tree that few rows reach, background rows that are
disjoint from no explained row are dropped at each split, and the other way round.
"""

import numpy as np

from skattr.kernels.boxes.layout import COLUMN, MISSING, SPLIT, goes_left
from skattr.kernels.compiled import inlined


@inlined
def advance_short(
    nodes, node, now, sets, is_set, codes, failed, ids, n, lists, level, bit, none,
    x_failed, nx, n_rows, list_of,
):  # fmt: skip
    """Fill the failed sets of background rows at a child, and drop what is disjoint from no x."""
    k = nodes[node, COLUMN]
    split = nodes[node, SPLIT]
    left = now == 1
    low = 1 - nodes[node, MISSING]
    unordered = is_set[k]
    below = level + 1
    x = x_failed[below, 0]
    kept = np.int64(0)
    for i in range(n):
        row = i if lists < 0 else np.int64(ids[lists, i])
        c = codes[k, row]
        if unordered:
            goes = goes_left(nodes, node, sets, is_set, c)
        else:
            goes = (c >= low) & (c <= split)
        f = failed[level, i] | (none if goes == left else bit)
        keep = (f & x) == none
        if not keep:
            for r in range(1, nx):
                if (f & x_failed[below, r]) == none:
                    keep = True
                    break
        ids[below, kept] = row
        failed[below, kept] = f
        kept += keep
    n_rows[below] = kept
    list_of[below] = below
    return kept


@inlined
def keep_short(failed, ids, n, lists, level, z_failed, nz, none, n_rows, list_of):
    """Drop the explained rows that are disjoint from no background row."""
    kept = np.int64(0)
    for i in range(n):
        f = failed[level, i]
        keep = False
        for q in range(nz):
            if (f & z_failed[level, q]) == none:
                keep = True
                break
        ids[level, kept] = i if lists < 0 else ids[lists, i]
        failed[level, kept] = f
        kept += keep
    n_rows[level] = kept
    list_of[level] = level
